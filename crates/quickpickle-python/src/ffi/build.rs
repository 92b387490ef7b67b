//! Making objects: what the unpickler needs faster than the bindings have it.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// An int.
#[inline(always)]
pub(crate) fn int(py: Python<'_>, value: i32) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromLong(value.into())) }
}

/// A float.
#[inline(always)]
pub(crate) fn float(py: Python<'_>, value: f64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyFloat_FromDouble(value)) }
}

/// An int from little-endian two's complement.
pub(crate) fn long<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if let Some(small) = quickpickle_format::int::from_le_bytes(bytes) {
        return Ok(small.into_pyobject(py)?.into_any());
    }
    // SAFETY: the bytes are alive during the call; a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, _PyLong_FromByteArray(bytes.as_ptr(), bytes.len(), 1, 1)) }
}

unsafe extern "C" {
    fn _PyLong_FromByteArray(
        bytes: *const u8,
        count: usize,
        little_endian: std::ffi::c_int,
        is_signed: std::ffi::c_int,
    ) -> *mut ffi::PyObject;
}

/// A str from UTF-8 in which lone surrogates may stand.
#[inline(always)]
pub(crate) fn text<'py>(py: Python<'py>, utf8: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if !utf8.is_ascii() || utf8.len() <= 1 {
        return text_decoded(py, utf8);
    }
    // SAFETY: a new str for `len` ASCII characters, not yet seen by anyone, gets exactly as many; they follow the header.
    unsafe {
        let made = ffi::PyUnicode_New(utf8.len() as ffi::Py_ssize_t, 127);
        let bound = Bound::from_owned_ptr_or_err(py, made)?;
        let data = made.cast::<ffi::PyASCIIObject>().add(1).cast::<u8>();
        std::ptr::copy_nonoverlapping(utf8.as_ptr(), data, utf8.len());
        Ok(bound)
    }
}

#[inline(never)]
fn text_decoded<'py>(py: Python<'py>, utf8: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the bytes are alive during the call; a new reference, or null with an exception.
    unsafe {
        let data = utf8.as_ptr().cast();
        let made = ffi::PyUnicode_DecodeUTF8(data, utf8.len() as ffi::Py_ssize_t, c"surrogatepass".as_ptr());
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// A str decoded as Python's `str(bytes, encoding, errors)`.
pub(crate) fn decoded<'py>(
    py: Python<'py>,
    bytes: &[u8],
    encoding: &std::ffi::CStr,
    errors: &std::ffi::CStr,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: all arguments are alive during the call; a new reference, or null with an exception.
    unsafe {
        let data = bytes.as_ptr().cast();
        let len = bytes.len() as ffi::Py_ssize_t;
        Bound::from_owned_ptr_or_err(py, ffi::PyUnicode_Decode(data, len, encoding.as_ptr(), errors.as_ptr()))
    }
}

/// A str from a line in raw-unicode-escape.
pub(crate) fn raw_unicode_escaped<'py>(py: Python<'py>, line: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    decoded(py, line, c"raw-unicode-escape", c"strict")
}

/// bytes from a line with Python's backslash escapes.
pub(crate) fn escaped_bytes<'py>(py: Python<'py>, line: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    unsafe extern "C" {
        fn PyBytes_DecodeEscape(
            text: *const std::ffi::c_char,
            len: ffi::Py_ssize_t,
            errors: *const std::ffi::c_char,
            unicode: ffi::Py_ssize_t,
            recode: *const std::ffi::c_char,
        ) -> *mut ffi::PyObject;
    }
    // SAFETY: the line is alive during the call; a new reference, or null with an exception.
    unsafe {
        let null = std::ptr::null();
        let made = PyBytes_DecodeEscape(line.as_ptr().cast(), line.len() as ffi::Py_ssize_t, null, 0, null);
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// An int from text, as `int(text, base)`.
pub(crate) fn int_from_text<'py>(py: Python<'py>, text: &std::ffi::CStr, base: i32) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the text is alive during the call; a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromString(text.as_ptr(), std::ptr::null_mut(), base)) }
}

/// A float from text; an error unless all of it is one.
pub(crate) fn float_from_text(py: Python<'_>, text: &std::ffi::CStr) -> PyResult<f64> {
    // SAFETY: the text is alive during the call. Without an end pointer all of the text has to be a number.
    unsafe {
        let value = ffi::PyOS_string_to_double(text.as_ptr(), std::ptr::null_mut(), std::ptr::null_mut());
        if value == -1.0 && !ffi::PyErr_Occurred().is_null() {
            return Err(PyErr::fetch(py));
        }
        Ok(value)
    }
}

/// `class.__new__(class, *args, **kwargs)`, through the class's slot.
pub(crate) fn new_instance<'py>(
    class: &Bound<'py, PyType>,
    args: &Bound<'py, PyAny>,
    kwargs: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let ty = class.as_type_ptr();
    // SAFETY: the class is alive and the caller has checked that it has `tp_new`, that `args` is a tuple and `kwargs` a
    // dict.
    unsafe {
        match (*ty).tp_new {
            Some(new) => {
                let kwargs = kwargs.map_or(std::ptr::null_mut(), |kwargs| kwargs.as_ptr());
                Bound::from_owned_ptr_or_err(class.py(), new(ty, args.as_ptr(), kwargs))
            }
            None => Err(pyo3::exceptions::PyTypeError::new_err("class cannot be instantiated")),
        }
    }
}

/// `callable(*args)`.
pub(crate) fn call<'py>(callable: &Bound<'py, PyAny>, args: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: both are alive; the callee checks that `args` is a tuple.
    unsafe {
        Bound::from_owned_ptr_or_err(callable.py(), ffi::PyObject_CallObject(callable.as_ptr(), args.as_ptr()))
    }
}

/// Interns a str: the one object of that text.
pub(crate) fn interned<'py>(text: Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    let py = text.py();
    // SAFETY: an exact str is replaced by the interned one, ownership included; anything else is left alone.
    unsafe {
        let mut ptr = text.into_ptr();
        if ffi::PyUnicode_CheckExact(ptr) != 0 {
            ffi::PyUnicode_InternInPlace(&mut ptr);
        }
        Bound::from_owned_ptr(py, ptr)
    }
}

/// Whether the cyclic collector is on.
pub(crate) fn collector_is_on(_py: Python<'_>) -> bool {
    // SAFETY: the GIL is held.
    unsafe { ffi::PyGC_IsEnabled() != 0 }
}

/// Switches the cyclic collector on or off.
pub(crate) fn switch_collector(_py: Python<'_>, on: bool) {
    // SAFETY: the GIL is held.
    unsafe {
        if on { ffi::PyGC_Enable() } else { ffi::PyGC_Disable() };
    }
}
