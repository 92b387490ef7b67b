//! The unpickler's stack: owned objects, taken off in bulk without touching their reference counts.

use std::ptr::NonNull;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// Objects kept allocated between loads, at most.
const KEEP: usize = 1 << 15;

/// A stack of owned objects.
pub(crate) struct Stack {
    /// Each entry is one reference.
    items: Vec<NonNull<ffi::PyObject>>,
}

// SAFETY: references may be given up on any thread that holds the GIL, which all methods that do so ask for.
unsafe impl Send for Stack {}

impl Stack {
    /// An empty stack; nothing is allocated.
    pub(crate) const fn new() -> Self {
        Stack { items: Vec::new() }
    }

    /// Number of objects.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Puts an object on top.
    #[inline(always)]
    pub(crate) fn push(&mut self, object: Bound<'_, PyAny>) {
        // SAFETY: a Bound is not null; its reference passes to the stack.
        self.items
            .push(unsafe { NonNull::new_unchecked(object.into_ptr()) });
    }

    /// Takes the object on top.
    #[inline(always)]
    pub(crate) fn pop<'py>(&mut self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        // SAFETY: the entry's reference passes to the caller.
        self.items
            .pop()
            .map(|item| unsafe { Bound::from_owned_ptr(py, item.as_ptr()) })
    }

    /// The object at `index` from the bottom.
    #[inline(always)]
    pub(crate) fn get<'py>(&self, py: Python<'py>, index: usize) -> Option<Bound<'py, PyAny>> {
        // SAFETY: the stack holds the object; the caller gets a reference of its own.
        self.items
            .get(index)
            .map(|item| unsafe { Bound::from_borrowed_ptr(py, item.as_ptr()) })
    }

    /// The object on top.
    #[inline(always)]
    pub(crate) fn top<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.get(py, self.len().checked_sub(1)?)
    }

    /// Puts an object at `index` from the bottom, moving up what is there.
    pub(crate) fn insert(&mut self, index: usize, object: Bound<'_, PyAny>) {
        // SAFETY: as in `push`.
        let object = unsafe { NonNull::new_unchecked(object.into_ptr()) };
        self.items.insert(index.min(self.items.len()), object);
    }

    /// Puts objects where they belong, counted from the bottom as the stack is now and in ascending order, each in front
    /// of what is there.
    pub(crate) fn insert_all(&mut self, new: Vec<(usize, Bound<'_, PyAny>)>) {
        let mut at = new.first().map_or(0, |&(at, _)| at).min(self.items.len());
        let mut above = self.items.split_off(at).into_iter();
        for (place, object) in new {
            let moved = place.saturating_sub(at);
            self.items.extend(above.by_ref().take(moved));
            at += moved;
            self.push(object);
        }
        self.items.extend(above);
    }

    /// Removes all objects from `from` on. They are off the stack before the first is dropped, which may run code.
    pub(crate) fn truncate(&mut self, py: Python<'_>, from: usize) {
        if from < self.items.len() {
            let dropped = self.items.split_off(from);
            for item in dropped {
                // SAFETY: the entry's reference is given up once.
                drop(unsafe { Bound::from_owned_ptr(py, item.as_ptr()) });
            }
        }
    }

    /// Empties the stack, keeping a reasonable allocation.
    #[inline(always)]
    pub(crate) fn clear(&mut self, py: Python<'_>) {
        if !self.items.is_empty() {
            self.truncate(py, 0);
        }
        if self.items.capacity() > KEEP {
            self.items = Vec::new();
        }
    }

    /// Takes all objects from `from` on as a tuple.
    #[inline(always)]
    pub(crate) fn take_tuple<'py>(
        &mut self,
        py: Python<'py>,
        from: usize,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let count = self.items.len().saturating_sub(from);
        // SAFETY: a new tuple with `count` empty places, filled with the references of the entries, which then no longer
        // belong to the stack.
        unsafe {
            let tuple = ffi::PyTuple_New(count as ffi::Py_ssize_t);
            let made = Bound::from_owned_ptr_or_err(py, tuple)?;
            let places = (&raw mut (*tuple.cast::<ffi::PyTupleObject>()).ob_item)
                .cast::<*mut ffi::PyObject>();
            let items = self.items.as_ptr().add(from).cast::<*mut ffi::PyObject>();
            if count <= 3 {
                for at in 0..count {
                    places.add(at).write(*items.add(at));
                }
            } else {
                std::ptr::copy_nonoverlapping(items, places, count);
            }
            self.items.set_len(from);
            Ok(made.cast_into_unchecked())
        }
    }

    /// Takes all objects from `from` on to the end of a list.
    pub(crate) fn take_into_list(&mut self, list: &Bound<'_, PyList>, from: usize) -> PyResult<()> {
        let py = list.py();
        let count = self.items.len().saturating_sub(from);
        let object = list.as_ptr().cast::<ffi::PyListObject>();
        // SAFETY: `list` is a list. One that has no storage yet gets one of the interpreter's own kind, filled with the
        // references of the entries, which then no longer belong to the stack.
        unsafe {
            if !cfg!(Py_GIL_DISABLED)
                && (*object).ob_item.is_null()
                && (*object).allocated == 0
                && count > 0
            {
                let storage =
                    ffi::PyMem_Malloc(count * size_of::<usize>()).cast::<*mut ffi::PyObject>();
                if storage.is_null() {
                    return Err(pyo3::exceptions::PyMemoryError::new_err(()));
                }
                std::ptr::copy_nonoverlapping(self.items.as_ptr().add(from).cast(), storage, count);
                self.items.set_len(from);
                (*object).ob_item = storage;
                (*object).allocated = count as ffi::Py_ssize_t;
                (*object).ob_base.ob_size = count as ffi::Py_ssize_t;
                return Ok(());
            }
        }
        let more = self.take_tuple(py, from)?;
        list.set_slice(list.len(), list.len(), &more)
    }

    /// Takes all objects from `from` on, names and values in turn, as the attributes of an instance that has none yet, if
    /// its class expects just these names in this order; false, and nothing is taken, where it does not.
    #[inline(always)]
    pub(crate) fn take_into_values(&mut self, instance: &Bound<'_, PyAny>, from: usize) -> bool {
        let Some(pairs) = self.items.get(from..) else {
            return false;
        };
        // One too many is an error, which others raise.
        if !pairs.len().is_multiple_of(2) {
            return false;
        }
        // SAFETY: the entries are live objects, alternating names and values; on success the values' references have
        // passed to the instance and the names' remain to be given up.
        unsafe {
            if !super::instance::set_fresh_values(instance, pairs) {
                return false;
            }
            let len = self.items.len();
            self.items.set_len(from);
            for at in (from..len).step_by(2) {
                let name = *self.items.as_ptr().add(at);
                drop(Bound::from_owned_ptr(instance.py(), name.as_ptr()));
            }
        }
        true
    }

    /// Takes all objects from `from` on, keys and values in turn, into a dict. An odd one at the end is left.
    pub(crate) fn take_into_dict(&mut self, dict: &Bound<'_, PyDict>, from: usize) -> PyResult<()> {
        let from = from.min(self.items.len());
        // SAFETY: the entries are live; on success their references have passed to the dict, and they leave the stack.
        unsafe {
            if super::dict_table::fill(dict, &self.items[from..]) {
                self.items.set_len(from);
                return Ok(());
            }
        }
        let pairs = (self.items.len() - from) / 2;
        let mut failed = false;
        for pair in 0..pairs {
            // SAFETY: the entries stay on the stack, and so alive, until all have been set; hashing and comparing keys may
            // run code, but none that reaches this stack. The dict takes references of its own.
            failed = unsafe {
                let pair = self.items.as_ptr().add(from + 2 * pair);
                ffi::PyDict_SetItem(dict.as_ptr(), (*pair).as_ptr(), (*pair.add(1)).as_ptr()) < 0
            };
            if failed {
                break;
            }
        }
        let error = failed.then(|| PyErr::fetch(dict.py()));
        self.drop_from(dict.py(), from);
        error.map_or(Ok(()), Err)
    }

    /// Gives up the entries from `from` on, in place: for entries whose objects others hold too, mostly.
    #[inline(always)]
    fn drop_from(&mut self, py: Python<'_>, from: usize) {
        while self.items.len() > from {
            drop(self.pop(py));
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if !self.items.is_empty() {
            // Without an interpreter there is nothing left to give references back to.
            let _ = Python::try_attach(|py| self.clear(py));
        }
    }
}
