//! Pickles made of other pickles.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::fault;
use crate::ffi::buffer::Exported;

/// Return the pickle without memo writes that nothing reads.
#[pyfunction]
#[pyo3(signature = (data, /))]
pub(crate) fn tools_optimize<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let exported = Exported::of(data)?;
    let made = quickpickle_format::optimize(exported.bytes()).map_err(|error| fault(&error, 0))?;
    Ok(PyBytes::new(py, &made))
}
