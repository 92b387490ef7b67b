//! Keyword arguments, checked.

use std::borrow::Cow;
use std::ffi::{CStr, CString};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;

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

/// Encoding of Python 2 strings and what to do about errors in them; `None` for the defaults.
pub(crate) fn encoding(
    encoding: Option<&str>,
    errors: Option<&str>,
) -> PyResult<(Cow<'static, CStr>, Cow<'static, CStr>)> {
    let text = |given: Option<&str>, default: &'static CStr| match given {
        None => Ok(Cow::Borrowed(default)),
        Some(text) => {
            let text =
                CString::new(text).map_err(|_| PyValueError::new_err("embedded null character"))?;
            Ok::<_, PyErr>(Cow::Owned(text))
        }
    };
    Ok((text(encoding, c"ASCII")?, text(errors, c"strict")?))
}
