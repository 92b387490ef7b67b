//! The buffer protocol and PickleBuffer.

use std::marker::PhantomData;

use pyo3::ffi;
use pyo3::prelude::*;

unsafe extern "C" {
    fn PyPickleBuffer_GetBuffer(obj: *mut ffi::PyObject) -> *const ffi::Py_buffer;
}

/// What a PickleBuffer looks at.
pub(crate) struct View<'a> {
    buffer: *const ffi::Py_buffer,
    holder: PhantomData<&'a ()>,
}

/// The view of a PickleBuffer; an error where it has been released.
pub(crate) fn view<'a>(buffer: &'a Bound<'_, PyAny>) -> PyResult<View<'a>> {
    // SAFETY: the callee checks that it is a PickleBuffer, and that it has not been released.
    let view = unsafe { PyPickleBuffer_GetBuffer(buffer.as_ptr()) };
    if view.is_null() {
        return Err(PyErr::fetch(buffer.py()));
    }
    Ok(View {
        buffer: view,
        holder: PhantomData,
    })
}

impl View<'_> {
    /// Whether its memory is in one piece, in C or Fortran order.
    pub(crate) fn is_contiguous(&self) -> bool {
        // SAFETY: the view is held by the PickleBuffer.
        unsafe { ffi::PyBuffer_IsContiguous(self.buffer, b'A' as std::ffi::c_char) != 0 }
    }

    /// Whether its memory may not be written.
    pub(crate) fn is_readonly(&self) -> bool {
        // SAFETY: as above.
        unsafe { (*self.buffer).readonly != 0 }
    }

    /// Its memory as bytes, to be copied at once: nothing else may run while it is used.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: a contiguous view is `len` bytes at `buf`; while the view is held they stay where they are.
        unsafe {
            let view = &*self.buffer;
            if view.len == 0 || !self.is_contiguous() {
                return &[];
            }
            std::slice::from_raw_parts(view.buf.cast(), view.len as usize)
        }
    }
}

/// Owns a view of any object's memory as bytes.
pub(crate) struct Exported {
    view: Box<ffi::Py_buffer>,
}

// SAFETY: a view may be read and released on any thread that holds the GIL.
unsafe impl Send for Exported {}

impl Exported {
    /// Asks `obj` for its memory, contiguous, as bytes.
    pub(crate) fn of(obj: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: the view is writable memory that the callee fills; the object is alive, and the view will hold it.
        if unsafe { ffi::PyObject_GetBuffer(obj.as_ptr(), &mut *view, ffi::PyBUF_CONTIG_RO) } < 0 {
            return Err(PyErr::fetch(obj.py()));
        }
        Ok(Exported { view })
    }

    /// Its memory. An exporter may let others write to it, so what is read is only as good as the user's care; its size
    /// and place do not change.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.view.len <= 0 {
            return &[];
        }
        // SAFETY: a contiguous view of `len` bytes, held until dropped.
        unsafe { std::slice::from_raw_parts(self.view.buf.cast(), self.view.len as usize) }
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        // SAFETY: filled by PyObject_GetBuffer, released once. Views are dropped where they were made, with the GIL held.
        unsafe { ffi::PyBuffer_Release(&mut *self.view) };
    }
}
