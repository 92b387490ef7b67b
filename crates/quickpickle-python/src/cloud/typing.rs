//! Type variables and other things of `typing` that are known by name.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use quickpickle_format::opcode::byte;

use crate::ffi::compat;
use crate::ffi::object::Anchor;
use crate::pickler::{Engine, Script};

use super::misc::{Callee, call, getattr, write_call};
use super::special::Special;
use super::wire::Helper;
use super::{Cloud, by_value, tracked_id};

/// The module and name under which a receiver finds the object.
fn home<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let name = obj.getattr(intern!(obj.py(), "__name__"))?;
    match by_value::lookup(obj, Some(name))? {
        Some((module, name)) if by_value::may_refer_to(&module)? => Ok(Some((module, name))),
        _ => Ok(None),
    }
}

/// Writes a TypeVar.
pub(super) fn save_typevar(
    engine: &mut Engine,
    variable: &Bound<'_, PyAny>,
    cloud: Cloud,
) -> PyResult<()> {
    let py = variable.py();
    if let Some((module, name)) = home(variable)? {
        return call(engine, variable, getattr(py)?, vec![module, name], cloud);
    }
    let mut args = [
        intern!(py, "__name__"),
        intern!(py, "__bound__"),
        intern!(py, "__constraints__"),
        intern!(py, "__covariant__"),
        intern!(py, "__contravariant__"),
    ]
    .into_iter()
    .map(|name| variable.getattr(name))
    .collect::<PyResult<Vec<_>>>()?;
    args.push(tracked_id(variable, cloud)?);
    let callee = Callee::Helper(Helper::MakeTypevar);
    call(engine, variable, callee, args, cloud)
}

/// A class with those keyword arguments that are not what it takes anyway.
fn with_arguments<'py>(
    class: Bound<'py, PyAny>,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    if kwargs.is_empty() {
        return Ok(class);
    }
    py.import("functools")?
        .getattr(intern!(py, "partial"))?
        .call((class,), Some(kwargs))
}

/// Writes a ParamSpec or TypeVarTuple; false where it is pickled by reference.
pub(super) fn save_parameter(
    engine: &mut Engine,
    parameter: &Bound<'_, PyAny>,
    special: Special,
    cloud: Cloud,
) -> PyResult<bool> {
    let py = parameter.py();
    if home(parameter)?.is_some() {
        return Ok(false);
    }
    let kwargs = PyDict::new(py);
    if special == Special::ParamSpec {
        for (argument, attribute) in [
            ("bound", "__bound__"),
            ("covariant", "__covariant__"),
            ("contravariant", "__contravariant__"),
        ] {
            let value = parameter.getattr(attribute)?;
            if value.is_truthy()? {
                kwargs.set_item(argument, value)?;
            }
        }
    }
    if let Some(has_default) = compat::optional_attribute(parameter, intern!(py, "has_default"))?
        && has_default.call0()?.is_truthy()?
    {
        kwargs.set_item("default", parameter.getattr(intern!(py, "__default__"))?)?;
    }
    let name = parameter.getattr(intern!(py, "__name__"))?;
    let callee = with_arguments(parameter.get_type().into_any(), &kwargs)?;
    let id = tracked_id(parameter, cloud)?;
    // Tracked as a TypeVar is: the same in every pickle that holds it.
    let mut script = Script::new(engine, cloud.wire, parameter);
    script.begin_object();
    script.helper(Helper::LookupClassOrTrack);
    script.open_tuple(2);
    script.save_made(id);
    write_call(&mut script, Callee::Object(callee), vec![name]);
    script.close_tuple(2);
    script.reduce();
    script.remember(Anchor::of(parameter));
    script.finish()?;
    Ok(true)
}

/// Writes a NewType; false where it is pickled by reference.
pub(super) fn save_new_type(
    engine: &mut Engine,
    new_type: &Bound<'_, PyAny>,
    cloud: Cloud,
) -> PyResult<bool> {
    let py = new_type.py();
    if by_value::is_by_reference(new_type)? {
        return Ok(false);
    }
    let state = new_type
        .getattr(intern!(py, "__dict__"))?
        .cast_into::<PyDict>()?
        .copy()?;
    let supertype = new_type.getattr(intern!(py, "__supertype__"))?;
    if state.contains(intern!(py, "__supertype__"))? {
        state.del_item(intern!(py, "__supertype__"))?;
    }
    let name = new_type.getattr(intern!(py, "__name__"))?;
    let class = new_type.get_type().into_any();
    let mut script = Script::new(engine, cloud.wire, new_type);
    script.begin_object();
    write_call(&mut script, Callee::Object(class), vec![name, supertype]);
    script.remember(Anchor::of(new_type));
    script.save_made(state.into_any());
    script.opcode(byte::BUILD);
    script.finish()?;
    Ok(true)
}

/// Writes what a `type` statement makes; false where it is pickled by reference.
pub(super) fn save_alias(
    engine: &mut Engine,
    alias: &Bound<'_, PyAny>,
    cloud: Cloud,
) -> PyResult<bool> {
    let py = alias.py();
    if home(alias)?.is_some() {
        return Ok(false);
    }
    let kwargs = PyDict::new(py);
    let parameters = alias.getattr(intern!(py, "__type_params__"))?;
    if parameters.is_truthy()? {
        kwargs.set_item(intern!(py, "type_params"), parameters)?;
    }
    let callee = with_arguments(alias.get_type().into_any(), &kwargs)?;
    let args = vec![
        alias.getattr(PyString::intern(py, "__name__"))?,
        alias.getattr(PyString::intern(py, "__value__"))?,
    ];
    call(engine, alias, Callee::Object(callee), args, cloud)?;
    Ok(true)
}
