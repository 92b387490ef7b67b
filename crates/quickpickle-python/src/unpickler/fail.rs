//! Why a load stops: a Python exception, or a fault of the format in the words that `pickle` has for it.

use pyo3::exceptions::{PyEOFError, PyValueError};
use pyo3::prelude::*;
use quickpickle_format::{Error, ErrorKind, Opcode};

use crate::python_types::unpickling_error;

/// The reason, boxed so that the result of each operation is one word.
pub(crate) struct Fail(Box<Reason>);

enum Reason {
    Format(Error),
    Python(PyErr),
}

impl From<Error> for Fail {
    #[cold]
    fn from(error: Error) -> Self {
        Fail(Box::new(Reason::Format(error)))
    }
}

impl From<PyErr> for Fail {
    #[cold]
    fn from(error: PyErr) -> Self {
        Fail(Box::new(Reason::Python(error)))
    }
}

impl Fail {
    /// An UnpicklingError.
    #[cold]
    pub(super) fn new(py: Python<'_>, message: impl Into<String>) -> Self {
        unpickling_error(py, message).into()
    }

    /// The exception that Python sees. A format fault is given the byte at which it was found as a note.
    pub(crate) fn into_pyerr(self, py: Python<'_>) -> PyErr {
        let error = match *self.0 {
            Reason::Python(error) => return error,
            Reason::Format(error) => error,
        };
        let raised = match error.kind {
            ErrorKind::UnexpectedEnd => PyEOFError::new_err("Ran out of input"),
            ErrorKind::Truncated => unpickling_error(py, "pickle data was truncated"),
            ErrorKind::UnknownOpcode(byte) => {
                let shown = if (0x20..0x7f).contains(&byte) && !matches!(byte, b'\'' | b'\\') {
                    format!("invalid load key, '{}'.", char::from(byte))
                } else {
                    format!("invalid load key, '\\x{byte:02x}'.")
                };
                unpickling_error(py, shown)
            }
            ErrorKind::NegativeLength(Opcode::Long4) => {
                unpickling_error(py, "LONG pickle has negative byte count")
            }
            ErrorKind::NegativeLength(_) if cfg!(Py_3_14) => {
                unpickling_error(py, "BINSTRING pickle has negative byte count")
            }
            // Up to 3.13 the reference takes this length for a huge one.
            ErrorKind::NegativeLength(_) => unpickling_error(py, "pickle data was truncated"),
            ErrorKind::UnsupportedProtocol(version) => {
                PyValueError::new_err(format!("unsupported pickle protocol: {version}"))
            }
            kind => unpickling_error(py, kind.to_string()),
        };
        super::notes::add(
            py,
            &raised,
            format!("at byte {} of the pickle", error.offset),
        );
        raised
    }
}
