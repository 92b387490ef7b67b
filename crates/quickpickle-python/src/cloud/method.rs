//! Bound methods.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::ffi::compat;
use crate::pickler::Engine;

use super::misc::{Callee, call, getattr};
use super::{Cloud, by_value};

/// Writes a bound method: function and object; that of a class that can be imported as the class's attribute.
pub(super) fn save(engine: &mut Engine, method: &Bound<'_, PyAny>, cloud: Cloud) -> PyResult<bool> {
    let py = method.py();
    let function = method.getattr(intern!(py, "__func__"))?;
    let owner = method.getattr(intern!(py, "__self__"))?;
    if owner.is_instance_of::<PyType>()
        && let Some(name) = compat::optional_attribute(&function, intern!(py, "__name__"))?
        && let Ok(text) = name.cast::<pyo3::types::PyString>()
        && by_value::is_by_reference(&owner)?
        && let Some(found) = compat::optional_attribute(&owner, text)?
        && compat::function_bound_to(&found, &owner).is_some_and(|found| found.is(&function))
    {
        call(engine, method, getattr(py)?, vec![owner, name], cloud)?;
        return Ok(true);
    }
    let callee = Callee::Object(method.get_type().into_any());
    call(engine, method, callee, vec![function, owner], cloud)?;
    Ok(true)
}
