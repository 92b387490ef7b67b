//! Exceptions made anew from their arguments and attributes, without calling their class.
//!
//! As they are usually pickled, the class is called with `args`, which an `__init__` of its own may not accept, or may
//! put into words a second time.

use pyo3::exceptions::PyBaseException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use quickpickle_format::opcode::byte;

use crate::ffi::compat;
use crate::ffi::object::Anchor;
use crate::pickler::{Engine, Script};

use super::Cloud;

/// Writes an exception; false, and nothing is written, for anything else, and where its class says itself how to pickle it.
pub(super) fn save(engine: &mut Engine, obj: &Bound<'_, PyAny>, cloud: Cloud) -> PyResult<bool> {
    let py = obj.py();
    if !obj.is_instance_of::<PyBaseException>() || engine.protocol() < 2 {
        return Ok(false);
    }
    let class = obj.get_type();
    let base = py.get_type::<PyBaseException>();
    for name in [
        intern!(py, "__reduce__"),
        intern!(py, "__reduce_ex__"),
        intern!(py, "__setstate__"),
        intern!(py, "__new__"),
    ] {
        let own = compat::optional_attribute(class.as_any(), name)?;
        let of_base = compat::optional_attribute(base.as_any(), name)?;
        let is_same = match (&own, &of_base) {
            (Some(own), Some(of_base)) => own.eq(of_base)?,
            _ => true,
        };
        // Classes in C have a `__new__` of their own that wants no more than theirs.
        let is_python = own.is_some_and(|own| own.is_instance_of::<pyo3::types::PyFunction>());
        if !is_same && (is_python || name != "__new__") {
            return Ok(false);
        }
    }
    let args = obj.getattr(intern!(py, "args"))?.cast_into::<PyTuple>()?;
    let state = obj
        .getattr(intern!(py, "__dict__"))?
        .cast_into::<PyDict>()?;
    let mut script = Script::new(engine, cloud.wire, obj);
    script.begin_object();
    script.save_made(class.into_any());
    script.save_made(args.into_any());
    script.opcode(byte::NEWOBJ);
    script.remember(Anchor::of(obj));
    if !state.is_empty() {
        script.save_made(state.into_any());
        script.opcode(byte::BUILD);
    }
    script.finish()?;
    Ok(true)
}
