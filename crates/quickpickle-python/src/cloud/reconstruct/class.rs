//! Dynamic classes and enums: made empty first, so that what is inside can refer to them, then given their attributes.
//!
//! A class whose id is known is not made again: no hook of its bases or its metaclass runs a second time. Whether it is
//! given its attributes again is an option ([`reset_classes`]). cloudpickle does so, which winds back class attributes that
//! have been changed since. Here a class that was defined in this process stays as it is, and to one that was loaded
//! before goes what its sender has changed since ([`Base`]).

use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::exceptions::{PyAttributeError, PyException, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple, PyType};

use super::function::pair;
use crate::cloud::base::Base;
use crate::cloud::tracker::{self, Standing};
use crate::ffi::function_view::class_dict;
use crate::ffi::{build, compat, instance};

/// Loading a class that this process has already leaves it alone.
const NEVER: u8 = 0;
/// It gives the class all attributes that the payload holds.
const ALWAYS: u8 = 1;
/// It gives a class that was loaded before the attributes that its sender has changed since.
const CHANGED: u8 = 2;

static RESETS: AtomicU8 = AtomicU8::new(CHANGED);

/// What loading a class that this process has already does to its attributes; set first, if an argument is given.
///
/// "changed", the default: a class that was defined in this process stays as it is; one that was loaded before is given
/// what its sender has changed since. True: all attributes are set as the payload has them, as cloudpickle does. False:
/// none is. Returns what was the case before. ValueError: it is none of these.
#[pyfunction]
#[pyo3(signature = (reset=None, /))]
pub(crate) fn reset_classes<'py>(
    py: Python<'py>,
    reset: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let before = match reset {
        Some(reset) => {
            let how = match reset.cast_exact::<PyBool>() {
                Ok(always) if always.is_true() => ALWAYS,
                Ok(_) => NEVER,
                Err(_) if reset.eq("changed")? => CHANGED,
                Err(_) => {
                    return Err(PyValueError::new_err(
                        "classes are reset never (False), always (True) or where \"changed\"",
                    ));
                }
            };
            RESETS.swap(how, Ordering::Relaxed)
        }
        None => RESETS.load(Ordering::Relaxed),
    };
    Ok(match before {
        CHANGED => PyString::new(py, "changed").into_any(),
        how => PyBool::new(py, how == ALWAYS).to_owned().into_any(),
    })
}

/// The class that has the id, or a new one without attributes but those of `attributes`.
pub(super) fn make<'py>(
    constructor: &Bound<'py, PyAny>,
    name: &Bound<'py, PyAny>,
    bases: &Bound<'py, PyAny>,
    attributes: &Bound<'py, PyAny>,
    id: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    tracked(id, || {
        new_class(constructor, name, bases, attributes).or_else(|error| {
            // What a metaclass or a base wants to see in a class, or to be told of one, it has seen when the class was
            // defined; the class as it was then is what its state makes of it.
            match without_hooks(constructor, name, bases, attributes) {
                Ok(made) if error.is_instance_of::<PyException>(name.py()) => Ok(made),
                _ => Err(error),
            }
        })
    })
}

/// A new class for which neither the metaclass's own code nor `__init_subclass__` is run.
fn without_hooks<'py>(
    constructor: &Bound<'py, PyAny>,
    name: &Bound<'py, PyAny>,
    bases: &Bound<'py, PyAny>,
    attributes: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = name.py();
    let of_types = py.get_type::<PyType>();
    let new = |metaclass: &Bound<'py, PyAny>, bases: &Bound<'py, PyAny>| {
        let namespace = attributes.cast::<PyDict>()?.copy()?;
        of_types.call_method1(intern!(py, "__new__"), (metaclass, name, bases, namespace))
    };
    let resolved = py
        .import(intern!(py, "types"))?
        .call_method1(intern!(py, "resolve_bases"), (bases,))?;
    let resolved = resolved.cast::<PyTuple>()?;
    // The metaclass that is most derived, as `type` finds it.
    let mut metaclass = constructor.clone();
    for base in resolved.iter() {
        let of_base = base.get_type();
        if of_base.is_subclass(&metaclass)? {
            metaclass = of_base.into_any();
        }
    }
    new(&metaclass, resolved.as_any()).or_else(|error| {
        // Bases that object to a subclass are told of none if it becomes theirs later.
        let stand_in = of_types.call1(("object", PyTuple::empty(py), PyDict::new(py)))?;
        let made = new(&metaclass, PyTuple::new(py, [stand_in])?.as_any())?;
        made.setattr(intern!(py, "__bases__"), resolved)
            .map_err(|_| error)?;
        Ok(made)
    })
}

/// What has the id; what `make` makes, if nothing has.
pub(super) fn tracked<'py>(
    id: &Bound<'py, PyAny>,
    make: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(id) = tracker::id_argument(id)? else {
        return make();
    };
    if let Some(found) = tracker::find(id)? {
        return Ok(found);
    }
    tracker::lookup_or_track(id, &make()?)
}

/// As `types.new_class`, which is where anything but a plain class is left to.
fn new_class<'py>(
    constructor: &Bound<'py, PyAny>,
    name: &Bound<'py, PyAny>,
    bases: &Bound<'py, PyAny>,
    attributes: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = name.py();
    let namespace = PyDict::new(py);
    for (key, value) in attributes.cast::<PyDict>()?.iter() {
        namespace.set_item(build::interned(key), value)?;
    }
    let of_types = py.get_type::<PyType>();
    if constructor.is(&of_types)
        && let Ok(tuple) = bases.cast_exact::<PyTuple>()
        && tuple.iter().all(|base| base.get_type().is(&of_types))
    {
        return of_types.call1((name, bases, namespace));
    }
    let types = py.import(intern!(py, "types"))?;
    let resolved = types.call_method1(intern!(py, "resolve_bases"), (bases,))?;
    let keywords = PyDict::new(py);
    keywords.set_item(intern!(py, "metaclass"), constructor)?;
    let (metaclass, prepared, keywords): (
        Bound<'py, PyAny>,
        Bound<'py, PyAny>,
        Bound<'py, PyDict>,
    ) = types
        .call_method1(intern!(py, "prepare_class"), (name, &resolved, keywords))?
        .extract()?;
    prepared.call_method1(intern!(py, "update"), (namespace,))?;
    if !resolved.is(bases) {
        prepared.set_item(intern!(py, "__orig_bases__"), bases)?;
    }
    metaclass.call((name, resolved, prepared), Some(&keywords))
}

/// The enum that has the id, or a new one with these members.
pub(super) fn make_enum<'py>(
    bases: &Bound<'py, PyAny>,
    name: &Bound<'py, PyAny>,
    qualname: &Bound<'py, PyAny>,
    members: &Bound<'py, PyAny>,
    module: &Bound<'py, PyAny>,
    id: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = name.py();
    tracked(id, || {
        // The last of the bases is the enum.
        let count = bases.len()?;
        let base = bases.get_item(count.saturating_sub(1))?;
        let metaclass = base.get_type();
        let namespace = metaclass.call_method1(intern!(py, "__prepare__"), (name, bases))?;
        for member in members.call_method0(intern!(py, "items"))?.try_iter()? {
            let (name, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = member?.extract()?;
            namespace.set_item(name, value)?;
        }
        let made =
            metaclass.call_method1(intern!(py, "__new__"), (&metaclass, name, bases, namespace))?;
        made.setattr(intern!(py, "__module__"), module)?;
        made.setattr(intern!(py, "__qualname__"), qualname)?;
        Ok(made)
    })
}

/// Gives a class its attributes.
pub(super) fn set_state<'py>(
    class: &Bound<'py, PyAny>,
    state: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    let (state, _) = pair(state)?;
    let state = state.cast::<PyDict>()?;
    let standing = tracker::standing(class);
    let base = match (RESETS.load(Ordering::Relaxed), &standing) {
        (_, Standing::Untracked | Standing::Incomplete) | (ALWAYS, _) => None,
        (NEVER, _) | (_, Standing::Home) => return Ok(class.clone()),
        (_, Standing::Loaded(base)) => base.as_deref(),
    };
    let as_type = class.cast::<PyType>().ok();
    let plain = as_type.filter(|class| instance::sets_attributes_plainly(class));
    let own = match (base, as_type) {
        (Some(_), Some(class)) => Some(class_dict(class)?),
        _ => None,
    };
    // Noted before it is set: then nobody else can have changed it yet.
    let mut next = (!matches!(standing, Standing::Untracked)).then(|| Base::new(state.len()));
    let registry_name = intern!(py, "_abc_impl");
    let mut registry = None;
    let mut sets_module = false;
    for (at, (name, value)) in state.iter().enumerate() {
        let name = build::interned(name);
        if let Some(next) = &mut next {
            next.add(&name, &value);
        }
        if name.eq(registry_name)? {
            registry = Some(value);
            continue;
        }
        if let (Some(base), Some(own)) = (base, &own)
            && base.keeps(at, &name, &value, own.get_item(&name)?.as_ref())
        {
            continue;
        }
        if !plain.is_some_and(|class| instance::has_own(class, &name, &value)) {
            sets_module |= cfg!(Py_3_13) && name.eq(intern!(py, "__module__"))?;
            set_attribute(class, &name, &value)?;
        }
    }
    // Setting `__module__` removes it.
    if sets_module && let Some(line) = state.get_item(intern!(py, "__firstlineno__"))? {
        set_attribute(class, intern!(py, "__firstlineno__").as_any(), &line)?;
    }
    if let Some(registry) = registry.filter(|registry| !registry.is_none()) {
        for subclass in registry.try_iter()? {
            class.call_method1(intern!(py, "register"), (subclass?,))?;
        }
    }
    tracker::mark_complete(class, next);
    Ok(class.clone())
}

/// Sets an attribute of a class. A metaclass that refuses to has not been asked when the class was first defined either:
/// then it is set as `type` does it.
fn set_attribute(
    class: &Bound<'_, PyAny>,
    name: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = class.py();
    let Err(error) = compat::set_attribute(class, name, value) else {
        return Ok(());
    };
    let of_types = py.get_type::<PyType>();
    let refuses =
        error.is_instance_of::<PyAttributeError>(py) || error.is_instance_of::<PyTypeError>(py);
    if !refuses
        || class
            .cast::<PyType>()
            .is_ok_and(instance::sets_attributes_plainly)
        || !name.is_instance_of::<PyString>()
    {
        return Err(error);
    }
    match of_types.call_method1(intern!(py, "__setattr__"), (class, name, value)) {
        Ok(_) => Ok(()),
        Err(_) => Err(error),
    }
}
