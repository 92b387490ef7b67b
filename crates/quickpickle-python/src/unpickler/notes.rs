//! Notes on load errors: where in the pickle, for which class, and what may help. The exception itself stays as it is.

use pyo3::exceptions::{PyTypeError, PyUnicodeDecodeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;

pub(super) use crate::python_types::add_note as add;

/// An exception from rebuilding an object by calling `callable`.
#[cold]
pub(super) fn rebuilding(callable: &Bound<'_, PyAny>, at: u64, error: PyErr) -> PyErr {
    let py = callable.py();
    let name = name_of(callable);
    let what = if callable.is_instance_of::<PyType>() {
        "while rebuilding"
    } else {
        "while calling"
    };
    add(
        py,
        &error,
        format!("{what} {name}, at byte {at} of the pickle"),
    );
    if error.is_instance_of::<PyTypeError>(py)
        && let Ok(class) = callable.cast::<PyType>()
        && class
            .is_subclass_of::<pyo3::exceptions::PyBaseException>()
            .unwrap_or(false)
    {
        add(
            py,
            &error,
            format!(
                "exceptions are rebuilt by calling the class with their args, which {name} does not accept; \
             a __reduce__ method can say how it is to be unpickled"
            ),
        );
    }
    error
}

/// An exception from giving an instance its state.
#[cold]
pub(super) fn setting_state(instance: &Bound<'_, PyAny>, at: u64, error: PyErr) -> PyErr {
    let py = instance.py();
    add(
        py,
        &error,
        format!(
            "while setting the state of {}, at byte {at} of the pickle",
            name_of(instance.get_type().as_any())
        ),
    );
    error
}

/// An exception from looking up a global.
#[cold]
pub(super) fn finding(py: Python<'_>, module: &str, name: &str, at: u64, error: PyErr) -> PyErr {
    add(
        py,
        &error,
        format!("while looking for {module}.{name}, at byte {at} of the pickle"),
    );
    if module == "__main__" {
        add(
            py,
            &error,
            "__main__ is the running script: what was defined in another one is not found there"
                .into(),
        );
    }
    error
}

/// An exception from decoding a Python 2 str.
#[cold]
pub(super) fn decoding(py: Python<'_>, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyUnicodeDecodeError>(py) {
        add(py, &error, "the pickle holds a Python 2 str that is not text in this encoding: pass encoding='latin1' \
             for text and numpy arrays, or encoding='bytes' to get bytes".into());
    }
    error
}

fn name_of(object: &Bound<'_, PyAny>) -> String {
    let py = object.py();
    let named = || -> PyResult<String> {
        let name: String = object.getattr(intern!(py, "__qualname__"))?.extract()?;
        let module: String = object.getattr(intern!(py, "__module__"))?.extract()?;
        Ok(if module == "builtins" {
            name
        } else {
            format!("{module}.{name}")
        })
    };
    named().unwrap_or_else(|_| object.get_type().to_string())
}

/// What data that is no pickle at all may be, by its first bytes.
pub(super) fn foreign(data: &[u8]) -> Option<&'static str> {
    Some(match data {
        [] => "the input is empty",
        [0x1f, 0x8b, ..] => "these bytes are gzip: open them with gzip first",
        [b'B', b'Z', b'h', ..] => "these bytes are bzip2: open them with bz2 first",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "these bytes are xz: open them with lzma first",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "these bytes are zstandard: decompress them first",
        [b'P', b'K', 3 | 5, ..] => {
            "these bytes are a zip archive, as torch.save and numpy.savez write"
        }
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => {
            "these bytes are a .npy file: read them with numpy.load"
        }
        [
            b'v',
            b'e',
            b'r',
            b's',
            b'i',
            b'o',
            b'n',
            b' ',
            b'h',
            b't',
            b't',
            b'p',
            ..,
        ] => "these bytes are a Git LFS pointer: fetch the file itself with git lfs pull",
        _ if starts_like_html(data) => "these bytes are HTML: a web page instead of the file",
        _ => return None,
    })
}

fn starts_like_html(data: &[u8]) -> bool {
    let start: Vec<u8> = data
        .iter()
        .copied()
        .skip_while(u8::is_ascii_whitespace)
        .take(9)
        .collect();
    let start = start.to_ascii_lowercase();
    start.starts_with(b"<!doctype") || start.starts_with(b"<html")
}
