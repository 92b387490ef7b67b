//! The unpickler's array of remembered objects: one word for each number.

use std::mem::ManuallyDrop;

use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

/// What a slot holds; the low bits of its word say which. Objects are aligned to more than that. Where the second bit is
/// set, the word is no reference but a number.
const OBJECT: usize = 0;
const STATE: usize = 1;
const PENDING: usize = 2;
const ARGUMENT: usize = 3;
const TAG: usize = 3;

/// Slots kept allocated between loads, at most.
const KEEP: usize = 1 << 15;

/// Slots by number, owning what they hold.
pub(crate) struct Slots {
    words: Vec<usize>,
}

// The words are references, which may be given up on any thread that holds the GIL; as integers they are Send already.

/// What a slot without an object holds.
pub(crate) enum Other<'py> {
    /// Nothing.
    Nothing,
    /// The state of this instance, which has no dict of its own.
    StateOf(Bound<'py, PyAny>),
    /// A state being read: the index of its mark.
    Pending(usize),
    /// The argument of a call, which has been made: where its value is kept.
    Argument(usize),
    /// The tuple of that argument.
    ArgumentTuple(usize),
}

impl Slots {
    /// No slots; nothing is allocated.
    pub(crate) const fn new() -> Self {
        Slots { words: Vec::new() }
    }

    /// Number of slots.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// The object in a slot, if it holds one.
    #[inline(always)]
    pub(crate) fn object<'py>(&self, py: Python<'py>, number: usize) -> Option<Bound<'py, PyAny>> {
        let word = *self.words.get(number)?;
        if word & TAG != OBJECT || word == 0 {
            return None;
        }
        // SAFETY: an untagged word other than 0 is a reference that the slot owns.
        Some(unsafe { Bound::from_borrowed_ptr(py, word as *mut ffi::PyObject) })
    }

    /// What a slot holds that has no object.
    pub(crate) fn other<'py>(&self, py: Python<'py>, number: usize) -> Other<'py> {
        match self.words.get(number) {
            // SAFETY: a word tagged so is a reference that the slot owns.
            Some(&word) if word & TAG == STATE => Other::StateOf(unsafe {
                Bound::from_borrowed_ptr(py, (word & !TAG) as *mut ffi::PyObject)
            }),
            Some(&word) if word & TAG == PENDING => Other::Pending(word >> 2),
            Some(&word) if word & TAG == ARGUMENT && word & 4 == 0 => Other::Argument(word >> 3),
            Some(&word) if word & TAG == ARGUMENT => Other::ArgumentTuple(word >> 3),
            _ => Other::Nothing,
        }
    }

    /// Adds a slot with an object.
    #[inline(always)]
    pub(crate) fn push(&mut self, object: Bound<'_, PyAny>) {
        self.words.push(object.into_ptr() as usize);
    }

    /// Adds a slot for a state being read.
    #[inline(always)]
    pub(crate) fn push_pending(&mut self, mark: usize) {
        self.words.push(mark << 2 | PENDING);
    }

    /// Adds two slots: for the argument of a call, whose value is kept at `at`, and for the tuple of it.
    #[inline(always)]
    pub(crate) fn push_argument(&mut self, at: usize) {
        self.words.push(at << 3 | ARGUMENT);
        self.words.push(at << 3 | 4 | ARGUMENT);
    }

    /// Adds empty slots up to `len`.
    pub(crate) fn extend_to(&mut self, len: usize) {
        if len > self.words.len() {
            self.words.resize(len, 0);
        }
    }

    /// Puts an object into a slot there is; returns what was in it, to be dropped by the caller, and whether it was empty.
    pub(crate) fn replace<'py>(
        &mut self,
        number: usize,
        object: Bound<'py, PyAny>,
    ) -> (Option<Bound<'py, PyAny>>, bool) {
        let py = object.py();
        let Some(slot) = self.words.get_mut(number) else {
            return (Some(object), false);
        };
        let old = std::mem::replace(slot, object.into_ptr() as usize);
        (owned(py, old), old == 0)
    }

    /// Turns a slot that holds a state being read into one for the state of `instance`.
    #[inline(always)]
    pub(crate) fn settle(&mut self, number: usize, instance: Bound<'_, PyAny>) {
        if let Some(slot) = self.words.get_mut(number)
            && *slot & TAG == PENDING
        {
            *slot = instance.into_ptr() as usize | STATE;
        }
    }

    /// Empties all slots. They are gone before the first object is dropped, which may run code.
    #[inline(always)]
    pub(crate) fn clear(&mut self, py: Python<'_>) {
        if !self.words.is_empty() {
            self.clear_all(py);
        }
    }

    #[inline(never)]
    fn clear_all(&mut self, py: Python<'_>) {
        let mut words = std::mem::take(&mut self.words);
        for &word in &words {
            drop(owned(py, word));
        }
        if words.capacity() <= KEEP && self.words.capacity() == 0 {
            words.clear();
            self.words = words;
        }
    }

    /// For the cyclic collector: the objects to which slots hold references.
    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        for &word in &self.words {
            if is_reference(word) {
                // SAFETY: such a word without its tag is one reference, which is what a Py is; it stays the slot's.
                let object = ManuallyDrop::new(unsafe {
                    std::mem::transmute::<usize, Py<PyAny>>(word & !TAG)
                });
                visit.call(&*object)?;
            }
        }
        Ok(())
    }
}

/// Whether a word holds a reference, tagged or not.
#[inline(always)]
fn is_reference(word: usize) -> bool {
    word != 0 && word & PENDING == 0
}

/// The reference in a word, now the caller's.
#[inline(always)]
fn owned(py: Python<'_>, word: usize) -> Option<Bound<'_, PyAny>> {
    if !is_reference(word) {
        return None;
    }
    // SAFETY: such a word is a reference that was the slot's; words are turned into references once, when they leave it.
    Some(unsafe { Bound::from_owned_ptr(py, (word & !TAG) as *mut ffi::PyObject) })
}

impl Drop for Slots {
    fn drop(&mut self) {
        if !self.words.is_empty() {
            // Without an interpreter there is nothing left to give references back to.
            let _ = Python::try_attach(|py| self.clear_all(py));
        }
    }
}
