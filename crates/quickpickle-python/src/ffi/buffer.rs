//! The buffer protocol and PickleBuffer.

use pyo3::ffi;
use pyo3::prelude::*;

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

    /// Asks `obj` for its memory, if that is in one piece, in C or Fortran order; None where it is not.
    pub(crate) fn in_one_piece(obj: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: as above.
        if unsafe { ffi::PyObject_GetBuffer(obj.as_ptr(), &mut *view, ffi::PyBUF_FULL_RO) } < 0 {
            return Err(PyErr::fetch(obj.py()));
        }
        let exported = Exported { view };
        // SAFETY: a view that has been filled.
        let whole =
            unsafe { ffi::PyBuffer_IsContiguous(&*exported.view, b'A' as std::ffi::c_char) };
        Ok((whole != 0).then_some(exported))
    }

    /// Whether its memory may not be written.
    pub(crate) fn is_readonly(&self) -> bool {
        self.view.readonly != 0
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
