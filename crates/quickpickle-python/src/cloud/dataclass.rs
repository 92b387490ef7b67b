//! The objects by which dataclasses say "nothing": what counts is which one it is.

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::ffi::compat;
use crate::pickler::Engine;

use super::by_value;

/// Writes MISSING and its like as what `dataclasses` has under that name; false where it is none of them.
pub(super) fn save_sentinel(engine: &mut Engine, obj: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = obj.py();
    let module = PyString::intern(py, "dataclasses");
    let Some(dataclasses) = by_value::loaded(module.as_any())? else {
        return Ok(false);
    };
    for name in ["MISSING", "KW_ONLY", "_HAS_DEFAULT_FACTORY"] {
        let name = PyString::intern(py, name);
        if compat::optional_attribute(&dataclasses, &name)?.is_some_and(|found| found.is(obj)) {
            engine.save_named(obj, &module, &name)?;
            return Ok(true);
        }
    }
    Ok(false)
}
