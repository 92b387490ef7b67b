//! Enumerations by value: members by name and value, then the rest of the class.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};
use quickpickle_format::opcode::byte;

use crate::ffi::function_view::class_dict;
use crate::ffi::object::Anchor;
use crate::pickler::{Engine, Script};
use crate::python_types::library;

use super::misc::{Callee, write_call};
use super::wire::Helper;
use super::{Cloud, by_value, class, tracked_id};

/// Attributes that making the class sets anew.
const MADE_ANEW: [&str; 5] = [
    "_generate_next_value_",
    "_member_names_",
    "_member_map_",
    "_member_type_",
    "_value2member_map_",
];

/// Whether the class is an enumeration.
pub(super) fn is_enum(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let py = class.py();
    if class.get_type().is(py.get_type::<PyType>()) {
        return Ok(false);
    }
    let Some(module) = by_value::loaded(intern!(py, "enum").as_any())? else {
        return Ok(false);
    };
    class.is_subclass(&module.getattr(intern!(py, "Enum"))?)
}

/// Writes an enumeration.
pub(super) fn save<'py>(
    engine: &mut Engine,
    class: &Bound<'py, PyType>,
    cloud: Cloud,
) -> PyResult<()> {
    let py = class.py();
    let dict = class_dict(class)?;
    let attribute = |name: &Bound<'py, PyString>| class.getattr(name);
    let bases = attribute(intern!(py, "__bases__"))?;
    let name = attribute(intern!(py, "__name__"))?;
    let qualname = attribute(intern!(py, "__qualname__"))?;
    let module = attribute(intern!(py, "__module__"))?;
    let id = tracked_id(class.as_any(), cloud)?;
    // All names: iterating over the class leaves out aliases, and of flags what combines others.
    let members = PyDict::new(py);
    let by_name = attribute(intern!(py, "__members__"))?;
    for pair in by_name.call_method0(intern!(py, "items"))?.try_iter()? {
        let pair = pair?;
        members.set_item(
            pair.get_item(0)?,
            pair.get_item(1)?.getattr(intern!(py, "value"))?,
        )?;
    }
    // What members have of their own besides name and value.
    let mut extras = Vec::new();
    for pair in by_name.call_method0(intern!(py, "items"))?.try_iter()? {
        let (name, member) = (
            pair.as_ref()
                .map_err(|error| error.clone_ref(py))?
                .get_item(0)?,
            pair?.get_item(1)?,
        );
        let is_alias = !member.getattr(intern!(py, "_name_"))?.eq(&name)?;
        let Ok(attributes) = member
            .getattr(intern!(py, "__dict__"))?
            .cast_into::<PyDict>()
        else {
            continue;
        };
        let extra = PyDict::new(py);
        for (key, value) in attributes.iter() {
            let is_own = key.cast::<PyString>().is_ok_and(|key| {
                let key = key.to_string_lossy();
                !(key.starts_with('_') && key.ends_with('_'))
            });
            if is_own {
                extra.set_item(key, value)?;
            }
        }
        if !is_alias && !extra.is_empty() {
            extras.push((name, extra));
        }
    }
    let getattr = library(py)?.getattr.bind(py).clone();
    let mut items = class::state(class, &dict, cloud)?;
    items.retain(|(key, _)| {
        let is_new = key
            .cast::<PyString>()
            .is_ok_and(|key| !MADE_ANEW.iter().any(|name| key == name));
        is_new && !members.contains(key).unwrap_or(false)
    });
    let own = Anchor::of(class.as_any());
    let mut script = Script::new(engine, cloud.wire, class.as_any());
    let s = &mut script;
    s.begin_object();
    s.helper(Helper::MakeSkeletonEnum);
    s.open_tuple(7);
    s.save_made(bases);
    s.save_made(name);
    s.save_made(qualname);
    s.save_made(members.into_any());
    s.save_made(module);
    s.save_made(id);
    s.none();
    s.close_tuple(7);
    s.reduce();
    s.remember(own);
    class::write_state(s, py, own, items);
    for (name, extra) in extras {
        let args = vec![class.clone().into_any(), name];
        write_call(s, Callee::Object(getattr.clone()), args);
        s.save_made(extra.into_any());
        s.opcode(byte::BUILD);
        s.opcode(byte::POP);
    }
    script.finish()
}
