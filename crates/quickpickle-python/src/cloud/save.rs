//! Which way an object goes that is no plain data: by value, by the name it has, or as any other pickler has it.

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyFunction, PyType};

use crate::ffi::compat;
use crate::pickler::{Engine, Settings};
use crate::python_types::library;

use super::{Cloud, api, by_value, class, enums, function, misc};

/// Saves an object; false, and nothing is written, where it goes the way of plain pickle.
pub(crate) fn save(
    engine: &mut Engine,
    obj: &Bound<'_, PyAny>,
    cloud: Cloud,
    settings: &Settings,
) -> PyResult<bool> {
    if let Ok(function) = obj.cast_exact::<PyFunction>() {
        return function::save(engine, function, cloud);
    }
    if let Ok(class) = obj.cast::<PyType>() {
        return save_class(engine, class, cloud, settings);
    }
    if settings.dispatch_table.is_some() && in_table(obj, settings)? {
        return Ok(false);
    }
    misc::save(engine, obj, cloud)
}

fn save_class(
    engine: &mut Engine,
    class: &Bound<'_, PyType>,
    cloud: Cloud,
    settings: &Settings,
) -> PyResult<bool> {
    let py = class.py();
    let is_plain = class.get_type().is(py.get_type::<PyType>());
    if is_plain {
        for singleton in [py.None(), py.Ellipsis(), py.NotImplemented()] {
            if singleton.bind(py).get_type().is(class) {
                return Ok(false);
            }
        }
        if let Some(name) = misc::types_name(class)? {
            misc::save_types_name(engine, class, name, cloud)?;
            return Ok(true);
        }
    } else if in_table(class.as_any(), settings)? {
        // A reducer for classes of this metaclass.
        return Ok(false);
    }
    // What C code holds in place cannot be made elsewhere.
    if !compat::is_heap_type(class) || by_value::is_by_reference(class.as_any())? {
        return Ok(false);
    }
    if enums::is_enum(class)? {
        enums::save(engine, class, cloud)?;
    } else {
        class::save(engine, class, cloud)?;
    }
    Ok(true)
}

/// Whether a table of reducers has one for the object's class.
fn in_table(obj: &Bound<'_, PyAny>, settings: &Settings) -> PyResult<bool> {
    let py = obj.py();
    let class = obj.get_type();
    if let Some(table) = &settings.dispatch_table {
        match table.bind(py).get_item(&class) {
            Ok(reducer) if api::is_built_in(&class, &reducer)? => return Ok(false),
            Ok(_) => return Ok(true),
            Err(error) if error.is_instance_of::<PyKeyError>(py) => {}
            Err(error) => return Err(error),
        }
    }
    library(py)?.dispatch_table.bind(py).contains(class)
}
