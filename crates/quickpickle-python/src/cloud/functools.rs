//! Caches of `functools`: the function travels, what it has cached stays at home.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use quickpickle_format::opcode::byte;

use crate::ffi::object::Anchor;
use crate::pickler::{Engine, Script};

use super::misc::{Callee, write_call};
use super::{Cloud, by_value};

/// Writes what `lru_cache` makes of a function; false where it is pickled by reference.
pub(super) fn save_cached(
    engine: &mut Engine,
    cached: &Bound<'_, PyAny>,
    cloud: Cloud,
) -> PyResult<bool> {
    let py = cached.py();
    if by_value::is_by_reference(cached)? {
        return Ok(false);
    }
    let functools = py.import("functools")?;
    let decorator = functools.getattr(intern!(py, "lru_cache"))?;
    let function = cached.getattr(intern!(py, "__wrapped__"))?;
    let parameters = cached.call_method0(intern!(py, "cache_parameters"))?;
    let args = vec![
        parameters.get_item(intern!(py, "maxsize"))?,
        parameters.get_item(intern!(py, "typed"))?,
    ];
    // What has been set on it besides what the decorator sets anew.
    let own = cached
        .getattr(intern!(py, "__dict__"))?
        .cast_into::<PyDict>()?;
    let of_function = function.getattr(intern!(py, "__dict__"))?;
    let state = PyDict::new(py);
    for (name, value) in own.iter() {
        let name_text = name.str()?;
        let is_set_anew = ["__wrapped__", "cache_parameters"].contains(&name_text.to_str()?)
            || of_function.cast::<PyDict>().is_ok_and(|of| {
                of.get_item(&name)
                    .is_ok_and(|found| found.is_some_and(|f| f.is(&value)))
            });
        if !is_set_anew {
            state.set_item(name, value)?;
        }
    }
    let mut script = Script::new(engine, cloud.wire, cached);
    script.begin_object();
    write_call(&mut script, Callee::Object(decorator), args);
    script.open_tuple(1);
    script.save_made(function);
    script.close_tuple(1);
    script.reduce();
    script.remember(Anchor::of(cached));
    if !state.is_empty() {
        script.save_made(state.into_any());
        script.opcode(byte::BUILD);
    }
    script.finish()?;
    Ok(true)
}

/// Writes a `cached_property` of versions in which it holds a lock, which cannot be pickled; false where it holds none.
pub(super) fn save_cached_property(
    engine: &mut Engine,
    property: &Bound<'_, PyAny>,
    cloud: Cloud,
) -> PyResult<bool> {
    let py = property.py();
    let own = property
        .getattr(intern!(py, "__dict__"))?
        .cast_into::<PyDict>()?;
    let function = property.getattr(intern!(py, "func"))?;
    if !own.contains(intern!(py, "lock"))? {
        return Ok(false);
    }
    let state = own.copy()?;
    for name in ["lock", "func"] {
        if state.contains(name)? {
            state.del_item(name)?;
        }
    }
    let class = property.get_type().into_any();
    let mut script = Script::new(engine, cloud.wire, property);
    script.begin_object();
    write_call(&mut script, Callee::Object(class), vec![function]);
    script.remember(Anchor::of(property));
    script.save_made(state.into_any());
    script.opcode(byte::BUILD);
    script.finish()?;
    Ok(true)
}
