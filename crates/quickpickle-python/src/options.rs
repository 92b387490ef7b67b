//! Keyword arguments, checked.

use std::borrow::Cow;
use std::ffi::{CStr, CString};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyString};

use crate::ffi::compat;

/// The highest protocol.
pub(crate) const HIGHEST_PROTOCOL: u8 = 5;
/// The protocol where none is named: that of the running version's `pickle`.
pub(crate) const DEFAULT_PROTOCOL: u8 = if cfg!(Py_3_14) { 5 } else { 4 };

/// The protocol meant by an argument.
pub(crate) fn protocol(argument: Option<&Bound<'_, PyAny>>) -> PyResult<u8> {
    let Some(argument) = argument else {
        return Ok(DEFAULT_PROTOCOL);
    };
    let number: std::ffi::c_long = argument.extract()?;
    match number {
        ..0 => Ok(HIGHEST_PROTOCOL),
        0..=5 => Ok(number as u8),
        _ => Err(PyValueError::new_err(format!(
            "pickle protocol must be <= {HIGHEST_PROTOCOL}"
        ))),
    }
}

/// A buffer callback, which needs protocol 5.
pub(crate) fn buffer_callback<'py>(
    argument: Option<Bound<'py, PyAny>>,
    protocol: u8,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if argument.is_some() && protocol < 5 {
        return Err(PyValueError::new_err("buffer_callback needs protocol >= 5"));
    }
    Ok(argument)
}

/// Out-of-band buffers: any iterable.
pub(crate) fn buffers<'py>(
    argument: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyIterator>>> {
    argument.map(|buffers| buffers.try_iter()).transpose()
}

/// Encoding of Python 2 strings and what to do about errors in them, as arguments of `function`; `None` for the defaults.
pub(crate) fn encoding(
    function: &str,
    encoding: Option<&Bound<'_, PyAny>>,
    errors: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Cow<'static, CStr>, Cow<'static, CStr>)> {
    let text = |name: &str, given: Option<&Bound<'_, PyAny>>, default: &'static CStr| {
        let Some(given) = given else {
            return Ok(Cow::Borrowed(default));
        };
        let Ok(text) = given.cast::<PyString>() else {
            return Err(PyTypeError::new_err(format!(
                "{function}() argument '{name}' must be str, not {}",
                compat::type_name(&given.get_type())
            )));
        };
        let text = CString::new(text.to_str()?)
            .map_err(|_| PyValueError::new_err("embedded null character"))?;
        Ok(Cow::Owned(text))
    };
    Ok((
        text("encoding", encoding, c"ASCII")?,
        text("errors", errors, c"strict")?,
    ))
}
