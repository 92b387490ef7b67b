//! Context variables: by the name of a module that has them, else anew under the same name and default.

use pyo3::exceptions::PyLookupError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PyString};

use crate::pickler::Engine;

use super::misc::{Callee, call};
use super::{Cloud, by_value};

/// Writes a context variable.
pub(super) fn save(
    engine: &mut Engine,
    variable: &Bound<'_, PyAny>,
    cloud: Cloud,
) -> PyResult<bool> {
    let py = variable.py();
    if let Some((module, name)) = home(variable)? {
        engine.save_named(variable, &module, &name)?;
        return Ok(true);
    }
    let name = variable.getattr(intern!(py, "name"))?;
    let class = variable.get_type().into_any();
    // In an empty context it has its default.
    let empty = py.import("contextvars")?.call_method0("Context")?;
    let get = variable.getattr(intern!(py, "get"))?;
    let callee = match empty.call_method1(intern!(py, "run"), (get,)) {
        Ok(default) => {
            let kwargs = PyDict::new(py);
            kwargs.set_item(intern!(py, "default"), default)?;
            py.import("functools")?
                .getattr(intern!(py, "partial"))?
                .call((class,), Some(&kwargs))?
        }
        Err(error) if error.is_instance_of::<PyLookupError>(py) => class,
        Err(error) => return Err(error),
    };
    call(engine, variable, Callee::Object(callee), vec![name], cloud)?;
    Ok(true)
}

/// Module and name under which a receiver finds the variable.
fn home<'py>(
    variable: &Bound<'py, PyAny>,
) -> PyResult<Option<(Bound<'py, PyString>, Bound<'py, PyString>)>> {
    let py = variable.py();
    let modules = by_value::modules(py)?.call_method0(intern!(py, "copy"))?;
    let modules = modules.cast_into::<PyDict>()?;
    for (module_name, module) in modules.iter() {
        let (Ok(module_name), Ok(module)) = (
            module_name.cast_into::<PyString>(),
            module.cast_into::<PyModule>(),
        ) else {
            continue;
        };
        let text = module_name.to_string_lossy().into_owned();
        if text == "__main__" || text == "__mp_main__" {
            continue;
        }
        for (name, value) in module.dict().iter() {
            if value.is(variable)
                && let Ok(name) = name.cast_into::<PyString>()
            {
                if by_value::is_registered(py, &text)? {
                    break;
                }
                return Ok(Some((module_name, name)));
            }
        }
    }
    Ok(None)
}
