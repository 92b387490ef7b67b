//! Classes by value: a skeleton under an id, then what the class's dict holds.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use quickpickle_format::opcode::byte;

use crate::ffi::compat;
use crate::ffi::function_view::class_dict;
use crate::ffi::object::Anchor;
use crate::pickler::{Engine, Script};

use super::misc::{Callee, write_call};
use super::wire::Helper;
use super::{Cloud, enums, making, tracked_id};

/// Names and values of a class's dict, in the order in which they are written.
pub(crate) type Items<'py> = Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

/// Attributes that a class gets anew when it is made, or that its base's stand for: left out where they are the base's.
const IMPLICIT: [&str; 15] = [
    "__abstractmethods__",
    "__annotations__",
    "__callable_proto_members_only__",
    "__dict__",
    "__doc__",
    "__firstlineno__",
    "__hash__",
    "__match_args__",
    "__module__",
    "__parameters__",
    "__slots__",
    "__static_attributes__",
    "__type_params__",
    "__weakref__",
    "_is_protocol",
];

/// Writes a dynamic class.
pub(crate) fn save(engine: &mut Engine, class: &Bound<'_, PyType>, cloud: Cloud) -> PyResult<()> {
    let py = class.py();
    let dict = class_dict(class)?;
    let name = class.getattr(intern!(py, "__name__"))?;
    let bases = match dict.get_item(intern!(py, "__orig_bases__"))? {
        Some(bases) => bases,
        None => class.getattr(intern!(py, "__bases__"))?,
    };
    let module = match dict.contains(intern!(py, "__module__"))? {
        true => Some(class.getattr(intern!(py, "__module__"))?),
        false => None,
    };
    let dict_property = dict
        .get_item(intern!(py, "__dict__"))?
        .filter(|found| compat::is_property(found));
    let slots = slots(class, &dict)?;
    let id = tracked_id(class.as_any(), cloud)?;
    let making = making::of(class)?;
    let mut items = state(class, &dict, cloud)?;
    let drop_item = |items: &mut Items<'_>, name: &str| {
        items.retain(|(key, _)| !key.cast::<PyString>().is_ok_and(|key| key == name));
    };
    if slots.is_some() {
        drop_item(&mut items, "__slots__");
    }
    if making.setattr.is_some() {
        // It is there already, and setting it again would drop `__firstlineno__`.
        drop_item(&mut items, "__module__");
    }
    let real_bases = class.getattr(intern!(py, "__bases__"))?;
    let setattr = making::plain_setattr(py)?;
    let of_types = py.get_type::<PyType>().into_any();
    let stand_in = match &making.stand_in {
        // A class that nothing else needs: a name, its base, and no body.
        Some(stand_in) => {
            let bases = stand_in.getattr(intern!(py, "__bases__"))?;
            Some(vec![name.clone(), bases, PyDict::new(py).into_any()])
        }
        None => None,
    };

    let own = Anchor::of(class.as_any());
    let mut script = Script::new(engine, cloud.wire, class.as_any());
    let s = &mut script;
    s.begin_object();
    s.helper(Helper::MakeSkeletonClass);
    s.open_tuple(6);
    s.save_made(
        making
            .constructor
            .unwrap_or_else(|| class.get_type().into_any()),
    );
    s.save_made(name);
    let is_stand_in = stand_in.is_some();
    match stand_in {
        Some(args) => {
            s.open_tuple(1);
            write_call(s, Callee::Object(of_types), args);
            s.close_tuple(1);
        }
        None => s.save_made(bases),
    }
    let kwargs = [
        (intern!(py, "__module__"), module),
        (intern!(py, "__slots__"), slots),
        (intern!(py, "__dict__"), dict_property),
    ];
    let count = kwargs.iter().filter(|(_, value)| value.is_some()).count();
    let mut body = s.open_dict(count);
    for (key, value) in kwargs {
        if let Some(value) = value {
            s.name(key);
            s.save_made(value);
            s.end_item(&mut body);
        }
    }
    s.close_dict(body);
    s.save_made(id);
    s.none();
    s.close_tuple(6);
    s.reduce();
    s.remember(own);
    if is_stand_in {
        let name = intern!(py, "__bases__").clone().into_any();
        let args = vec![class.clone().into_any(), name, real_bases];
        write_call(s, Callee::Object(setattr), args);
        s.opcode(byte::POP);
    }
    match making.setattr {
        Some(setattr) => write_attributes(s, py, class, &setattr, items)?,
        None => write_state(s, py, own, items),
    }
    script.finish()
}

/// The slots that instances of a class have, if it has any of its own. Empty ones are not told: there is nothing to make.
fn slots<'py>(
    class: &Bound<'py, PyType>,
    dict: &Bound<'py, PyDict>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = class.py();
    let Some(slots) = dict.get_item(intern!(py, "__slots__"))? else {
        return Ok(None);
    };
    if slots.is_instance_of::<PyString>() {
        return Ok(Some(slots));
    }
    match slots.len() {
        Ok(0) => Ok(None),
        Ok(_) => Ok(Some(slots)),
        Err(_) => {
            // An iterator, which making the class has used up.
            let mut names = Vec::new();
            for (name, value) in dict.iter() {
                if compat::is_member(&value) {
                    names.push(name);
                }
            }
            Ok(Some(PyTuple::new(py, names)?.into_any()))
        }
    }
}

/// Writes the calls that fill a class whose metaclass does not let it be changed.
fn write_attributes<'py>(
    s: &mut Script<'_, 'py>,
    py: Python<'py>,
    class: &Bound<'py, PyType>,
    setattr: &Bound<'py, PyAny>,
    items: Items<'py>,
) -> PyResult<()> {
    let own = Anchor::of(class.as_any());
    for (key, value) in items {
        if key.is(intern!(py, "_abc_impl")) {
            continue;
        }
        s.save_made(setattr.clone());
        s.open_tuple(3);
        s.save(own);
        let key = s.hold(key);
        s.copy(key);
        s.save_made(value);
        s.close_tuple(3);
        s.reduce();
        s.opcode(byte::POP);
    }
    Ok(())
}

/// Writes the call that fills a class.
pub(crate) fn write_state<'py>(
    s: &mut Script<'_, 'py>,
    py: Python<'py>,
    own: Anchor,
    items: Items<'py>,
) {
    s.helper(Helper::ClassSetstate);
    s.save(own);
    s.open_tuple(2);
    let registry = intern!(py, "_abc_impl");
    let mut state = s.open_dict(items.len());
    for (key, value) in items {
        if key.is(registry) {
            s.save(Anchor::of(registry.as_any()));
        } else {
            let key = s.hold(key);
            s.copy(key);
        }
        s.save_made(value);
        s.end_item(&mut state);
    }
    s.close_dict(state);
    let empty = s.open_dict(0);
    s.close_dict(empty);
    s.close_tuple(2);
    s.opcode(byte::TUPLE2);
    s.reduce();
    s.opcode(byte::POP);
}

/// The attributes of a class that are its own, sorted by name.
pub(crate) fn own_items<'py>(
    class: &Bound<'py, PyType>,
    dict: &Bound<'py, PyDict>,
) -> PyResult<Items<'py>> {
    Ok(without_names(named_items(class, dict)?))
}

/// As [`Items`], with each name's text.
type NamedItems<'py> = Vec<(String, Bound<'py, PyAny>, Bound<'py, PyAny>)>;

fn without_names(items: NamedItems<'_>) -> Items<'_> {
    items
        .into_iter()
        .map(|(_, key, value)| (key, value))
        .collect()
}

fn named_items<'py>(
    class: &Bound<'py, PyType>,
    dict: &Bound<'py, PyDict>,
) -> PyResult<NamedItems<'py>> {
    let py = class.py();
    let is_enum = enums::is_enum(class)?;
    let bases = class
        .getattr(intern!(py, "__bases__"))?
        .cast_into::<PyTuple>()?;
    let mut dicts = Vec::with_capacity(bases.len());
    for base in bases.iter() {
        if let Ok(base) = base.cast::<PyType>() {
            dicts.push(class_dict(base)?);
        }
    }
    let mut items = Vec::with_capacity(dict.len());
    for (key, value) in dict.iter() {
        let Ok(name) = key.cast::<PyString>() else {
            continue;
        };
        let text = name.to_string_lossy().into_owned();
        // An enumeration is given much that its base has too.
        if text.starts_with('_') && (is_enum || IMPLICIT.contains(&text.as_str())) {
            let mut inherited = None;
            for dict in &dicts {
                inherited = dict.get_item(name)?;
                if inherited.is_some() {
                    break;
                }
            }
            if inherited.is_some_and(|inherited| inherited.is(&value)) {
                continue;
            }
        }
        items.push((text, key, value));
    }
    items.sort_unstable_by(|(one, ..), (other, ..)| one.cmp(other));
    Ok(items)
}

/// What fills a class once it is made.
pub(crate) fn state<'py>(
    class: &Bound<'py, PyType>,
    dict: &Bound<'py, PyDict>,
    cloud: Cloud,
) -> PyResult<Items<'py>> {
    let py = class.py();
    let mut items = named_items(class, dict)?;
    let registered = if class.get_type().is(py.get_type::<PyType>()) {
        None
    } else {
        abc_registry(class, cloud)?
    };
    // What the slots make, under whatever names: they make it again.
    let has_slots = dict.contains(intern!(py, "__slots__"))?;
    items.retain(|(name, _, value)| {
        let is_made_anew = match name.as_str() {
            "__weakref__" | "__dict__" => true,
            "__annotate_func__" => cfg!(Py_3_14),
            "_abc_cache" | "_abc_negative_cache" | "_abc_negative_cache_version" | "_abc_impl" => {
                registered.is_some()
            }
            _ => false,
        };
        !(is_made_anew || has_slots && compat::is_member(value))
    });
    let mut items = without_names(items);
    if let Some(registered) = registered {
        let name = intern!(py, "_abc_impl").clone().into_any();
        items.push((name, registered.into_any()));
    }
    Ok(items)
}

/// The classes registered with an abstract base class; None for any other class.
fn abc_registry<'py>(
    class: &Bound<'py, PyType>,
    cloud: Cloud,
) -> PyResult<Option<Bound<'py, PyList>>> {
    let py = class.py();
    let Some(abc) = super::by_value::loaded(intern!(py, "abc").as_any())? else {
        return Ok(None);
    };
    let meta = abc.getattr(intern!(py, "ABCMeta"))?;
    if !class.get_type().is_subclass(&meta)? {
        return Ok(None);
    }
    let mut registered = Vec::new();
    let dump = abc.call_method1(intern!(py, "_get_dump"), (class,))?;
    for reference in dump.get_item(0)?.try_iter()? {
        let found = reference?.call0()?;
        if !found.is_none() {
            registered.push(found);
        }
    }
    if cloud.is_deterministic {
        // They are in a set, ordered by addresses.
        registered.sort_by_cached_key(|class| {
            ["__module__", "__qualname__"].map(|name| {
                class
                    .getattr(name)
                    .map_or_else(|_| String::new(), |name| name.to_string())
            })
        });
    }
    PyList::new(py, registered).map(Some)
}
