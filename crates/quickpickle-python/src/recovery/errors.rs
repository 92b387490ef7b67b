//! The recovery crate's errors as exceptions of `quickpickle.recovery`.

use std::error::Error as _;
use std::io;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use quickpickle_recovery::Error;

/// `quickpickle.recovery.errors.of_kind`: kind, message, place and number of the system's error in, exception out.
static OF_KIND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The exception for an error; if even that cannot be had, whatever got in the way.
pub(super) fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    let errno = error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>())
        .and_then(io::Error::raw_os_error);
    let make = || {
        OF_KIND
            .import(py, "quickpickle.recovery.errors", "of_kind")?
            .call1((
                error.kind().as_str(),
                error.to_string(),
                error.place(),
                errno,
            ))
    };
    make().map_or_else(|error| error, PyErr::from_value)
}
