//! A bytes object that grows while it is written, so that a large pickle is never copied as a whole.

use std::ptr::{NonNull, copy_nonoverlapping};

use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quickpickle_format::Sink;

use super::compat;

/// Room of a new buffer, in bytes: holds most pickles.
const INITIAL: usize = 16 * 1024;
/// Content from this size on is given away with its buffer instead of being copied, and a buffer that has grown beyond it
/// is not kept for the next pickle.
const KEEP: usize = 128 * 1024;

/// A growing buffer inside an unfinished bytes object.
///
/// Out of memory is remembered: what is written after is dropped, and [`GrowingBytes::take`] raises MemoryError.
pub(crate) struct GrowingBytes {
    /// An unshared bytes object with `room` bytes; None before the first write.
    object: Option<NonNull<ffi::PyObject>>,
    /// Where its bytes are; dangling while there is none, when `room` is 0.
    data: NonNull<u8>,
    room: usize,
    len: usize,
    exhausted: bool,
}

// SAFETY: the buffer is plain memory that no one else refers to; it is touched only by threads that hold the GIL, since
// all methods are reached through picklers.
unsafe impl Send for GrowingBytes {}

impl GrowingBytes {
    /// An empty buffer; nothing is allocated.
    pub(crate) const fn new() -> Self {
        GrowingBytes {
            object: None,
            data: NonNull::dangling(),
            room: 0,
            len: 0,
            exhausted: false,
        }
    }

    #[inline(always)]
    fn data(&self) -> *mut u8 {
        self.data.as_ptr()
    }

    /// Takes over an unshared bytes object of `room` bytes, or none.
    fn hold(&mut self, object: *mut ffi::PyObject, room: usize) {
        self.object = NonNull::new(object);
        (self.data, self.room) = match self.object {
            // SAFETY: a live bytes object, whose bytes are never at null.
            Some(object) => unsafe {
                let data = ffi::PyBytes_AS_STRING(object.as_ptr()).cast_mut();
                (NonNull::new_unchecked(data.cast()), room)
            },
            None => (NonNull::dangling(), 0),
        };
    }

    /// What has been written.
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: the first `len` bytes have been written; nothing changes them while borrowed.
        unsafe { std::slice::from_raw_parts(self.data(), self.len) }
    }

    /// Makes room for `more` bytes; false where memory is out.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, more: usize) -> bool {
        if self.exhausted {
            return false;
        }
        let wanted = self
            .len
            .checked_add(more)
            .and_then(|least| least.checked_add(self.room / 2))
            .unwrap_or(usize::MAX);
        let wanted = wanted.max(INITIAL).min(isize::MAX as usize - 64);
        // SAFETY: called with the GIL held; the object is unshared, as _PyBytes_Resize demands, and is replaced by what
        // the call leaves: null on failure, the old object then being freed.
        unsafe {
            let mut object = match self.object {
                Some(object) => {
                    let mut object = object.as_ptr();
                    compat::_PyBytes_Resize(&mut object, wanted as ffi::Py_ssize_t);
                    object
                }
                None => ffi::PyBytes_FromStringAndSize(std::ptr::null(), wanted as ffi::Py_ssize_t),
            };
            if wanted < self.len.saturating_add(more) {
                ffi::Py_CLEAR(&mut object);
            }
            self.hold(object, wanted);
            if self.object.is_none() {
                ffi::PyErr_Clear();
                (self.len, self.exhausted) = (0, true);
                return false;
            }
        }
        true
    }

    #[inline(always)]
    fn has_room(&mut self, more: usize) -> bool {
        // No overflow: len <= room, and an object has at most isize::MAX bytes.
        self.room - self.len >= more || self.grow(more)
    }

    /// The content as a bytes object; the buffer is empty after.
    #[inline(always)]
    pub(crate) fn take<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        if self.exhausted {
            self.exhausted = false;
            return Err(PyMemoryError::new_err(()));
        }
        let Some(object) = self.object else {
            return Ok(PyBytes::new(py, &[]));
        };
        let len = std::mem::take(&mut self.len);
        // SAFETY: `len` bytes have been written. A given away object is shrunk to its content first (which ends it with
        // a zero byte), and is no longer ours.
        unsafe {
            let made = if len < KEEP {
                ffi::PyBytes_FromStringAndSize(
                    ffi::PyBytes_AS_STRING(object.as_ptr()),
                    len as ffi::Py_ssize_t,
                )
            } else {
                let mut object = object.as_ptr();
                self.hold(std::ptr::null_mut(), 0);
                compat::_PyBytes_Resize(&mut object, len as ffi::Py_ssize_t);
                object
            };
            Ok(Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked())
        }
    }

    /// Gives memory back, where more was needed than is worth keeping between pickles.
    #[inline(always)]
    pub(crate) fn shrink(&mut self) {
        self.len = 0;
        self.exhausted = false;
        if self.room > KEEP {
            *self = Self::new();
        }
    }
}

/// Copies `len` bytes, which are few: up to 16 without a call, as one or two pieces that may overlap.
///
/// # Safety
/// As [`copy_nonoverlapping`].
#[inline(always)]
unsafe fn copy_short(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise; both pieces lie within the `len` bytes.
    unsafe {
        match len {
            0..=3 => {
                if len > 0 {
                    *to = *from;
                    to.add(len / 2).write(*from.add(len / 2));
                    to.add(len - 1).write(*from.add(len - 1));
                }
            }
            4..=7 => {
                let (head, tail) = (
                    from.cast::<[u8; 4]>().read(),
                    from.add(len - 4).cast::<[u8; 4]>().read(),
                );
                to.cast::<[u8; 4]>().write(head);
                to.add(len - 4).cast::<[u8; 4]>().write(tail);
            }
            8..=16 => {
                let (head, tail) = (
                    from.cast::<[u8; 8]>().read(),
                    from.add(len - 8).cast::<[u8; 8]>().read(),
                );
                to.cast::<[u8; 8]>().write(head);
                to.add(len - 8).cast::<[u8; 8]>().write(tail);
            }
            _ => copy_nonoverlapping(from, to, len),
        }
    }
}

impl Sink for GrowingBytes {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        if self.has_room(N) {
            // SAFETY: there is room for N more bytes, and the buffer is only ours.
            unsafe { copy_nonoverlapping(bytes.as_ptr(), self.data().add(self.len), N) };
            self.len += N;
        }
    }

    #[inline(always)]
    fn put_start<const N: usize>(&mut self, bytes: [u8; N], used: usize) {
        if self.has_room(N) {
            // SAFETY: as for `put`; no more of the N bytes count than were written.
            unsafe { copy_nonoverlapping(bytes.as_ptr(), self.data().add(self.len), N) };
            self.len += used.min(N);
        }
    }

    #[inline(always)]
    fn put_slice(&mut self, bytes: &[u8]) {
        if self.has_room(bytes.len()) {
            // SAFETY: there is room for all of `bytes`, which cannot lie in a buffer that is only ours.
            unsafe { copy_nonoverlapping(bytes.as_ptr(), self.data().add(self.len), bytes.len()) };
            self.len += bytes.len();
        }
    }

    #[inline(always)]
    fn put_both<const N: usize>(&mut self, header: [u8; N], payload: &[u8]) {
        if self.has_room(N + payload.len()) {
            // SAFETY: there is room for both; neither lies in a buffer that is only ours.
            unsafe {
                let at = self.data().add(self.len);
                copy_nonoverlapping(header.as_ptr(), at, N);
                copy_short(payload.as_ptr(), at.add(N), payload.len());
            }
            self.len += N + payload.len();
        }
    }

    #[inline(always)]
    fn put_between<const N: usize>(&mut self, header: [u8; N], payload: &[u8], last: u8) {
        let len = payload.len();
        if self.has_room(N + len + 1) {
            // SAFETY: there is room for all three; none lies in a buffer that is only ours.
            unsafe {
                let at = self.data().add(self.len);
                copy_nonoverlapping(header.as_ptr(), at, N);
                copy_short(payload.as_ptr(), at.add(N), len);
                at.add(N + len).write(last);
            }
            self.len += N + len + 1;
        }
    }

    #[inline(always)]
    fn patch(&mut self, at: usize, bytes: [u8; 8]) {
        if at + 8 <= self.len {
            // SAFETY: within what has been written.
            unsafe { copy_nonoverlapping(bytes.as_ptr(), self.data().add(at), 8) };
        }
    }

    fn remove(&mut self, at: usize, count: usize) {
        if at + count <= self.len {
            // SAFETY: source and target lie within what has been written; `copy` allows the overlap.
            unsafe {
                let data = self.data();
                let rest = self.len - at - count;
                if rest <= 8 {
                    // The commonest: what is left of a pickle too short for a frame.
                    for i in 0..rest {
                        data.add(at + i).write(*data.add(at + count + i));
                    }
                } else {
                    std::ptr::copy(data.add(at + count), data.add(at), rest);
                }
            }
            self.len -= count;
        }
    }

    #[inline(always)]
    fn clear(&mut self) {
        self.len = 0;
        self.exhausted = false;
    }
}

impl Drop for GrowingBytes {
    fn drop(&mut self) {
        if let Some(object) = self.object.take() {
            // A thread's pool may go after the interpreter did; then the memory goes with the process.
            // SAFETY: the object is ours; a bytes object frees plain memory and runs no code. The GIL is held wherever a
            // pickler is dropped; at thread exit it is taken here.
            if let Some(()) = Python::try_attach(|_py| unsafe { ffi::Py_DECREF(object.as_ptr()) }) {
            }
        }
    }
}
