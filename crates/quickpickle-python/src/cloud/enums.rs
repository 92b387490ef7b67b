//! Enumerations by value: members by name and value, then the rest of the class.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use crate::ffi::function_view::class_dict;
use crate::ffi::object::Anchor;
use crate::pickler::{Engine, Script};

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
    let mut items = class::state(class, &dict)?;
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
    script.finish()
}
