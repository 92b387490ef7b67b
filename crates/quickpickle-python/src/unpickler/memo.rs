//! The unpickler's memo: number -> object, owning.
//!
//! Numbers come from the pickle and may be absurd: only those near what has been filled are kept in an array.

use std::collections::HashMap;

use pyo3::prelude::*;

/// Numbers up to this far beyond twice the objects remembered go into the array.
const SLACK: usize = 1024;
/// Entries kept allocated between loads, at most.
const KEEP: usize = 1 << 15;

/// What a number stands for where there is no object yet.
pub(super) enum Deferred {
    /// The state of an instance, being read: the index of its mark.
    Pending(usize),
    /// The state of that instance, which went into it without a dict of its own.
    StateOf(Py<PyAny>),
}

/// Objects remembered.
pub(crate) struct Memo {
    dense: Vec<Option<Py<PyAny>>>,
    sparse: HashMap<usize, Py<PyAny>>,
    deferred: HashMap<usize, Deferred>,
    count: usize,
}

impl Memo {
    /// An empty memo.
    pub(crate) fn new() -> Self {
        Memo { dense: Vec::new(), sparse: HashMap::new(), deferred: HashMap::new(), count: 0 }
    }

    /// How many numbers have been given: the one that MEMOIZE gives next.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The object of a number.
    #[inline(always)]
    pub(super) fn get<'py>(&self, py: Python<'py>, number: usize) -> Option<Bound<'py, PyAny>> {
        match self.dense.get(number) {
            Some(Some(object)) => Some(object.bind(py).clone()),
            _ => self.sparse.get(&number).map(|object| object.bind(py).clone()),
        }
    }

    /// Remembers an object. The one it replaces is returned, to be dropped by the caller.
    #[inline(always)]
    pub(super) fn put(&mut self, number: usize, object: Bound<'_, PyAny>) -> Option<Py<PyAny>> {
        if number == self.dense.len() && self.sparse.is_empty() && self.deferred.is_empty() {
            self.dense.push(Some(object.unbind()));
            self.count += 1;
            return None;
        }
        self.put_anywhere(number, object)
    }

    #[inline(never)]
    fn put_anywhere(&mut self, number: usize, object: Bound<'_, PyAny>) -> Option<Py<PyAny>> {
        let deferred = self.deferred.remove(&number);
        let old = self.place(number).replace(object.unbind());
        self.count += usize::from(old.is_none() && deferred.is_none());
        match deferred {
            Some(Deferred::StateOf(instance)) => Some(instance),
            _ => old,
        }
    }

    fn place(&mut self, number: usize) -> Place<'_> {
        if number < self.dense.len() {
            return Place::Dense(&mut self.dense[number]);
        }
        if number <= self.count * 2 + SLACK && !self.sparse.contains_key(&number) {
            self.dense.resize_with(number + 1, || None);
            return Place::Dense(&mut self.dense[number]);
        }
        Place::Sparse(&mut self.sparse, number)
    }

    /// Remembers something that is not an object yet, under the next number of MEMOIZE.
    pub(super) fn defer(&mut self, number: usize, what: Deferred) {
        // An object under that number is left to `take`: only numbers not given yet are deferred.
        if self.deferred.insert(number, what).is_none() {
            self.count += 1;
        }
        if number == self.dense.len() {
            self.dense.push(None);
        }
    }

    /// What a number without an object stands for.
    pub(super) fn deferred(&mut self, number: usize) -> Option<&mut Deferred> {
        self.deferred.get_mut(&number)
    }

    /// Whether a number has not been given.
    pub(super) fn is_free(&self, number: usize) -> bool {
        !matches!(self.dense.get(number), Some(Some(_)))
            && !self.sparse.contains_key(&number)
            && !self.deferred.contains_key(&number)
    }

    /// Forgets everything. The memo is empty before the first object is dropped, which may run code.
    pub(crate) fn clear(&mut self, py: Python<'_>) {
        self.count = 0;
        let mut dense = std::mem::take(&mut self.dense);
        for object in dense.drain(..).flatten() {
            drop(object.into_bound(py));
        }
        if dense.capacity() <= KEEP && self.dense.capacity() == 0 {
            self.dense = dense;
        }
        if !self.sparse.is_empty() {
            drop(std::mem::take(&mut self.sparse));
        }
        if !self.deferred.is_empty() {
            drop(std::mem::take(&mut self.deferred));
        }
    }

    /// Numbers and objects, for `Unpickler.memo`.
    pub(super) fn entries<'py>(&self, py: Python<'py>) -> Vec<(usize, Bound<'py, PyAny>)> {
        let dense = self.dense.iter().enumerate().filter_map(|(number, object)| Some((number, object.as_ref()?)));
        dense.chain(self.sparse.iter().map(|(&number, object)| (number, object)))
            .map(|(number, object)| (number, object.bind(py).clone()))
            .collect()
    }

    /// Numbers that stand for something that is not an object yet.
    pub(super) fn deferred_numbers(&self) -> Vec<usize> {
        self.deferred.keys().copied().collect()
    }
}

enum Place<'a> {
    Dense(&'a mut Option<Py<PyAny>>),
    Sparse(&'a mut HashMap<usize, Py<PyAny>>, usize),
}

impl Place<'_> {
    fn replace(self, object: Py<PyAny>) -> Option<Py<PyAny>> {
        match self {
            Place::Dense(place) => place.replace(object),
            Place::Sparse(map, number) => map.insert(number, object),
        }
    }
}
