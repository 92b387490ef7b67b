//! The unpickler's memo: number -> object, owning.
//!
//! Numbers come from the pickle and may be absurd: only those near what has been filled are kept in an array.

use std::collections::HashMap;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::ffi::build;
use crate::ffi::slots::{Other, Slots};

/// Numbers up to this far beyond twice the objects remembered go into the array.
const SLACK: usize = 1024;

/// The longest value of an argument that is kept in place of the object.
pub(super) const ARGUMENT_MAX: usize = 14;
/// Arguments for which room is kept allocated between loads, at most.
const KEEP: usize = 1 << 14;

/// The only argument of a call that has been made. Neither it nor its tuple exists any more: a pickle may refer to both
/// again, but hardly any does, and as objects they would cost more than all else about the call.
#[derive(Clone, Copy)]
pub(super) struct Argument {
    bytes: [u8; ARGUMENT_MAX],
    len: u8,
    is_text: bool,
}

impl Argument {
    /// The argument of this value: a str, or bytes. None if it is too long.
    #[inline(always)]
    pub(super) fn of(value: &[u8], is_text: bool) -> Option<Self> {
        let mut bytes = [0; ARGUMENT_MAX];
        bytes.get_mut(..value.len())?.copy_from_slice(value);
        Some(Argument {
            bytes,
            len: value.len() as u8,
            is_text,
        })
    }

    /// The object, made again.
    pub(super) fn make<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value = &self.bytes[..usize::from(self.len)];
        if self.is_text {
            build::text(py, value)
        } else {
            Ok(PyBytes::new(py, value).into_any())
        }
    }
}

/// Objects remembered.
pub(crate) struct Memo {
    dense: Slots,
    sparse: HashMap<usize, Py<PyAny>>,
    count: usize,
    arguments: Vec<Argument>,
}

impl Memo {
    /// An empty memo.
    pub(crate) fn new() -> Self {
        Memo {
            dense: Slots::new(),
            sparse: HashMap::new(),
            count: 0,
            arguments: Vec::new(),
        }
    }

    /// How many numbers have been given: the one that MEMOIZE gives next.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Whether exactly the numbers below [`Memo::len`] have been given.
    #[inline(always)]
    pub(super) fn is_dense(&self) -> bool {
        self.count == self.dense.len() && self.sparse.is_empty()
    }

    /// The object of a number.
    #[inline(always)]
    pub(super) fn get<'py>(&self, py: Python<'py>, number: usize) -> Option<Bound<'py, PyAny>> {
        match self.dense.object(py, number) {
            None if !self.sparse.is_empty() => self
                .sparse
                .get(&number)
                .map(|object| object.bind(py).clone()),
            found => found,
        }
    }

    /// What a number without an object stands for.
    pub(super) fn other<'py>(&self, py: Python<'py>, number: usize) -> Other<'py> {
        self.dense.other(py, number)
    }

    /// Remembers an object. The one it replaces is returned, to be dropped by the caller.
    #[inline(always)]
    pub(super) fn put<'py>(
        &mut self,
        number: usize,
        object: Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyAny>> {
        if number == self.dense.len() && self.sparse.is_empty() {
            self.dense.push(object);
            self.count += 1;
            return None;
        }
        self.put_anywhere(number, object)
    }

    #[inline(never)]
    fn put_anywhere<'py>(
        &mut self,
        number: usize,
        object: Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyAny>> {
        let py = object.py();
        let is_near = number < self.dense.len() || number <= self.count * 2 + SLACK;
        if is_near && !self.sparse.contains_key(&number) {
            self.dense.extend_to(number + 1);
            let (old, was_empty) = self.dense.replace(number, object);
            self.count += usize::from(was_empty);
            return old;
        }
        let old = self.sparse.insert(number, object.unbind());
        self.count += usize::from(old.is_none());
        old.map(|old| old.into_bound(py))
    }

    /// Gives the next number to a state being read. The memo is dense.
    #[inline(always)]
    pub(super) fn put_pending(&mut self, mark: usize) {
        self.dense.push_pending(mark);
        self.count += 1;
    }

    /// The state being read went into `instance`.
    #[inline(always)]
    pub(super) fn put_state(&mut self, number: usize, instance: Bound<'_, PyAny>) {
        self.dense.settle(number, instance);
    }

    /// Gives the next two numbers to an argument and to its tuple. The memo is dense.
    #[inline(always)]
    pub(super) fn put_argument(&mut self, argument: Argument) {
        self.dense.push_argument(self.arguments.len());
        self.arguments.push(argument);
        self.count += 2;
    }

    /// An argument that was left out.
    pub(super) fn argument(&self, at: usize) -> Option<&Argument> {
        self.arguments.get(at)
    }

    /// Forgets everything. The memo is empty before the first object is dropped, which may run code.
    #[inline(always)]
    pub(crate) fn clear(&mut self, py: Python<'_>) {
        self.count = 0;
        self.dense.clear(py);
        if !self.sparse.is_empty() {
            drop(std::mem::take(&mut self.sparse));
        }
        if !self.arguments.is_empty() {
            self.clear_arguments();
        }
    }

    #[cold]
    fn clear_arguments(&mut self) {
        self.arguments.clear();
        self.arguments.shrink_to(KEEP);
    }

    /// For the cyclic collector.
    pub(super) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.sparse
            .values()
            .try_for_each(|object| visit.call(object))?;
        self.dense.visit(visit)
    }

    /// All numbers in use.
    pub(super) fn numbers(&self) -> Vec<usize> {
        (0..self.dense.len())
            .chain(self.sparse.keys().copied())
            .collect()
    }
}
