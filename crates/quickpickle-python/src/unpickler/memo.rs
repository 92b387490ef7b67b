//! The unpickler's memo: number -> object, owning.
//!
//! Numbers come from the pickle and may be absurd: only those near what has been filled are kept in an array.

use std::collections::HashMap;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::ffi::slots::{Other, Slots};

/// Numbers up to this far beyond twice the objects remembered go into the array.
const SLACK: usize = 1024;

/// Objects remembered.
pub(crate) struct Memo {
    dense: Slots,
    sparse: HashMap<usize, Py<PyAny>>,
    count: usize,
}

impl Memo {
    /// An empty memo.
    pub(crate) fn new() -> Self {
        Memo {
            dense: Slots::new(),
            sparse: HashMap::new(),
            count: 0,
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

    /// Forgets everything. The memo is empty before the first object is dropped, which may run code.
    #[inline(always)]
    pub(crate) fn clear(&mut self, py: Python<'_>) {
        self.count = 0;
        self.dense.clear(py);
        if !self.sparse.is_empty() {
            drop(std::mem::take(&mut self.sparse));
        }
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
