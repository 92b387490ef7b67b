//! The pickler's memo: which objects have been written, under which number.
//!
//! A table of open addressing keyed by address, hashed from the low bits so that objects allocated one after the other
//! lie side by side; emptied by counting up a generation. Beside it a log of all remembered objects by number.
//!
//! Objects that can be met only once are **logged** without entering the table. Before other code runs (and could find
//! them by other ways) [`Memo::settle`] enters them and takes a reference to everything, so that addresses stay unique.
//!
//! Measured when this was designed: multiplicative hashes lose 2-3x on large graphs, skipping the table gains 10-35% on
//! middle-sized ones and 2x on large ones.

use std::ptr::NonNull;

use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::object::Obj;

/// Slots of the smallest table; a power of two.
const SMALLEST: usize = 128;
/// Slots above which a table is not kept for the next pickle.
const KEEP: usize = 1 << 15;
/// The log's mark for an object that is not in the table.
const LOGGED: usize = 1;

#[derive(Clone, Copy)]
struct Slot {
    address: usize,
    number: u32,
    generation: u32,
}

/// A free slot: see [`Memo::look`].
#[derive(Clone, Copy)]
pub(crate) struct Vacant(usize);

/// Objects written so far.
pub(crate) struct Memo {
    slots: Vec<Slot>,
    generation: u32,
    /// Slots in use.
    used: usize,
    /// Slots in use from which the table grows before one more is; 0 while there is no table.
    limit: usize,
    /// Addresses of all objects in the order they were written, some marked [`LOGGED`]; 0 for numbers without object.
    log: Vec<usize>,
    /// How much of the log has been settled: is in the table, and holds a reference.
    settled: usize,
    /// Number of the first entry of the log.
    first: usize,
}

impl Memo {
    /// An empty memo; nothing is allocated.
    pub(crate) const fn new() -> Self {
        Memo {
            slots: Vec::new(),
            generation: 1,
            used: 0,
            limit: 0,
            log: Vec::new(),
            settled: 0,
            first: 0,
        }
    }

    /// How many objects are remembered.
    pub(crate) fn len(&self) -> usize {
        self.log.len()
    }

    /// The slot at `at`, which is masked with the size of the table.
    #[inline(always)]
    fn slot(&self, at: usize) -> Slot {
        debug_assert!(at < self.slots.len());
        // SAFETY: every index comes from `find`, which masks it with one less than the size, a power of two.
        unsafe { *self.slots.get_unchecked(at) }
    }

    /// The number that will be given out next.
    pub(crate) fn next(&self) -> usize {
        self.first + self.log.len()
    }

    /// Index of the slot that holds `address`, or of the free one where it would go.
    #[inline(always)]
    fn find(&self, address: usize) -> usize {
        debug_assert!(self.slots.len().is_power_of_two());
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = ((address >> 4) ^ (address >> 18)) & mask;
        loop {
            let slot = self.slot(at);
            if slot.generation != self.generation || slot.address == address {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// The number under which `obj` was remembered.
    #[inline(always)]
    pub(crate) fn get(&self, obj: Obj<'_>) -> Option<usize> {
        self.number_of(obj.address())
    }

    /// The number under which the object at `address` was remembered.
    #[inline(always)]
    pub(crate) fn number_of(&self, address: usize) -> Option<usize> {
        if self.used == 0 {
            return None;
        }
        let slot = self.slot(self.find(address));
        (slot.generation == self.generation).then_some(slot.number as usize)
    }

    /// The number under which `obj` was remembered, or the place where it would be put: [`Memo::put_at`] takes it as long
    /// as nothing else has been put.
    #[inline(always)]
    pub(crate) fn look(&mut self, obj: Obj<'_>) -> Result<usize, Vacant> {
        if self.is_full() {
            self.grow(self.used + 1);
        }
        let at = self.find(obj.address());
        let slot = self.slot(at);
        if slot.generation == self.generation {
            Ok(slot.number as usize)
        } else {
            Err(Vacant(at))
        }
    }

    /// Remembers `obj`, for which [`Memo::look`] has found a place; returns its number.
    #[inline(always)]
    pub(crate) fn put_at(&mut self, vacant: Vacant, obj: Obj<'_>) -> usize {
        let number = self.first + self.log.len();
        self.used += 1;
        // Checked, since a place given out before the table was emptied or grew would be wrong.
        self.slots[vacant.0] = Slot {
            address: obj.address(),
            number: number as u32,
            generation: self.generation,
        };
        self.log.push(obj.address());
        number
    }

    /// Whether one more entry would crowd the table.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.used >= self.limit
    }

    /// Remembers `obj`; returns its number.
    #[inline(always)]
    pub(crate) fn put(&mut self, obj: Obj<'_>) -> usize {
        let number = self.first + self.log.len();
        self.enter(obj.address(), number);
        self.log.push(obj.address());
        number
    }

    /// Remembers `obj`, which can be met again only after [`Memo::settle`]; returns its number.
    #[inline(always)]
    pub(crate) fn log(&mut self, obj: Obj<'_>) -> usize {
        let number = self.first + self.log.len();
        self.log.push(obj.address() | LOGGED);
        number
    }

    /// Uses up a number for something that no one can meet again; returns it.
    #[inline(always)]
    pub(crate) fn skip(&mut self) -> usize {
        let number = self.first + self.log.len();
        self.log.push(0);
        number
    }

    #[inline(always)]
    fn enter(&mut self, address: usize, number: usize) {
        if self.is_full() {
            self.grow(self.used + 1);
        }
        let at = self.find(address);
        if self.slot(at).generation != self.generation {
            self.used += 1;
        }
        self.slots[at] = Slot {
            address,
            number: number as u32,
            generation: self.generation,
        };
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, entries: usize) {
        let size = (entries * 2).next_power_of_two().max(SMALLEST);
        let empty = Slot {
            address: 0,
            number: 0,
            generation: 0,
        };
        let old = std::mem::replace(&mut self.slots, vec![empty; size]);
        self.limit = size * 2 / 3;
        for slot in old {
            if slot.generation == self.generation {
                let at = self.find(slot.address);
                self.slots[at] = slot;
            }
        }
    }

    /// Enters logged objects into the table and takes a reference to every object that has none yet. After it other code
    /// may run. Cheap when called again.
    #[inline(always)]
    pub(crate) fn settle(&mut self, py: Python<'_>) {
        if self.settled < self.log.len() {
            self.settle_rest(py);
        }
    }

    #[inline(never)]
    fn settle_rest(&mut self, _py: Python<'_>) {
        for number in self.settled..self.log.len() {
            let marked = self.log[number];
            let address = marked & !LOGGED;
            if marked & LOGGED != 0 {
                self.log[number] = address;
                self.enter(address, self.first + number);
            }
            if address != 0 {
                // SAFETY: an address in the log that is not settled belongs to an object that was alive when it was
                // written, and nothing has run since that could have freed it.
                unsafe { ffi::Py_INCREF(address as *mut ffi::PyObject) };
            }
        }
        self.settled = self.log.len();
    }

    /// Forgets everything. Objects whose last reference was the memo's are freed, which may run code; the memo is
    /// consistent before that happens.
    #[inline(always)]
    pub(crate) fn clear(&mut self, py: Python<'_>) {
        // Where no other code ran, no references were taken: all there is to do for most small pickles.
        if self.settled == 0 && self.log.capacity() <= KEEP && self.slots.len() <= KEEP {
            self.log.clear();
            (self.first, self.used) = (0, 0);
            self.next_generation();
        } else {
            self.clear_all(py);
        }
    }

    /// Makes all slots free.
    #[inline(always)]
    fn next_generation(&mut self) {
        match self.generation.checked_add(1) {
            Some(next) => self.generation = next,
            None => (self.generation, self.slots, self.limit) = (1, Vec::new(), 0),
        }
    }

    #[inline(never)]
    fn clear_all(&mut self, _py: Python<'_>) {
        let mut log = std::mem::take(&mut self.log);
        let settled = std::mem::take(&mut self.settled);
        self.first = 0;
        self.used = 0;
        if self.slots.len() > KEEP {
            (self.slots, self.limit) = (Vec::new(), 0);
        }
        self.next_generation();
        for &address in &log[..settled] {
            if let Some(object) = NonNull::new(address as *mut ffi::PyObject) {
                // SAFETY: settled entries own a reference each, which is given up exactly once: the log was taken out.
                unsafe { ffi::Py_DECREF(object.as_ptr()) };
            }
        }
        // Keep the allocation, unless code that ran above has started a log of its own.
        if self.log.capacity() == 0 && log.capacity() <= KEEP {
            log.clear();
            self.log = log;
        }
    }

    /// All remembered objects with their numbers, for `Pickler.memo`. Settles first.
    pub(crate) fn entries<'py>(&mut self, py: Python<'py>) -> Vec<(usize, Bound<'py, PyAny>)> {
        self.settle(py);
        let live = self
            .slots
            .iter()
            .filter(|slot| slot.generation == self.generation);
        let live = live.take(if self.used == 0 { 0 } else { usize::MAX });
        let mut entries = Vec::new();
        for slot in live {
            // SAFETY: all entries are settled, so the objects are alive.
            let object =
                unsafe { Bound::from_borrowed_ptr(py, slot.address as *mut ffi::PyObject) };
            entries.push((slot.number as usize, object));
        }
        entries
    }

    /// Has objects numbered from `next` on, where fewer than that are remembered.
    pub(crate) fn start_at(&mut self, next: usize) {
        self.first = next.saturating_sub(self.log.len());
    }

    /// Remembers `object` under a number of the caller's choice; the memo holds a reference. Settles first.
    pub(crate) fn insert(&mut self, object: Bound<'_, PyAny>, number: u32) {
        self.settle(object.py());
        let address = object.as_ptr() as usize;
        if self.number_of(address).is_some() {
            let at = self.find(address);
            self.slots[at].number = number;
            return;
        }
        self.enter(address, number as usize);
        self.log.push(address);
        self.settled = self.log.len();
        std::mem::forget(object);
    }

    /// For the cyclic collector: the objects to which the memo holds references.
    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        for address in &self.log[..self.settled] {
            if *address != 0 {
                // SAFETY: a settled entry that is not 0 is one reference, which is what a Py is.
                visit.call(unsafe { &*std::ptr::from_ref(address).cast::<Py<PyAny>>() })?;
            }
        }
        Ok(())
    }
}

impl Drop for Memo {
    fn drop(&mut self) {
        if self.settled > 0 {
            // Without an interpreter there is nothing left to give references back to.
            let _ = Python::try_attach(|py| self.clear(py));
        }
    }
}
