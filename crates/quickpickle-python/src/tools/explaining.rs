//! What is in a pickle, as plain Python data.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use quickpickle_format::Error;
use quickpickle_format::explain::{Explanation, Node, Repeated, explain};

use super::fault;
use crate::ffi::buffer::Exported;

/// What ends an explanation: the pickle, or whoever watches it.
enum Stop {
    Pickle(Error),
    Python(PyErr),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Pickle(error)
    }
}

/// Return what is in the pickle at the start of data; the keys are those that quickpickle.tools reads.
#[pyfunction]
#[pyo3(signature = (data, progress=None, /))]
pub(crate) fn tools_explain<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let exported = Exported::of(data)?;
    let report = |done: u64| {
        py.check_signals().map_err(Stop::Python)?;
        match progress {
            Some(progress) => progress.call1((done,)).map(drop).map_err(Stop::Python),
            None => Ok(()),
        }
    };
    let found = explain(exported.bytes(), report).map_err(|stop| match stop {
        Stop::Pickle(error) => fault(&error, 0),
        Stop::Python(error) => error,
    })?;
    as_dict(py, &found)
}

fn as_dict<'py>(py: Python<'py>, found: &Explanation) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("bytes", found.bytes)?;
    dict.set_item("objects", found.objects)?;
    dict.set_item("root", node(py, &found.root)?)?;
    let globals = found.globals.iter().map(|global| {
        let (module, name) = (&global.module, &global.name);
        (module, name, global.count, global.calls, global.offset)
    });
    dict.set_item("globals", PyList::new(py, globals.collect::<Vec<_>>())?)?;
    let repeated = |all: &[Repeated]| {
        let rows = all
            .iter()
            .map(|one| (one.kind.clone(), one.bytes, one.count, one.offset));
        PyList::new(py, rows.collect::<Vec<_>>())
    };
    dict.set_item("shared", repeated(&found.shared)?)?;
    dict.set_item("duplicates", repeated(&found.duplicates)?)?;
    Ok(dict)
}

fn node<'py>(py: Python<'py>, part: &Node) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("role", &part.role)?;
    dict.set_item("kind", &part.kind)?;
    dict.set_item("count", part.count)?;
    dict.set_item("bytes", part.bytes)?;
    dict.set_item("offset", part.offset)?;
    dict.set_item("largest", part.largest)?;
    dict.set_item("largest_offset", part.largest_offset)?;
    dict.set_item("by_value", part.by_value)?;
    let children = part
        .children
        .iter()
        .map(|child| node(py, child))
        .collect::<PyResult<Vec<_>>>()?;
    dict.set_item("children", children)?;
    Ok(dict)
}
