//! Dynamic classes and enums: made empty first, so that what is inside can refer to them, then given their attributes.
//!
//! A class whose id is known is not made again: no hook of its bases or its metaclass runs a second time. Whether it is
//! given its attributes again is an option ([`reset_classes`]): cloudpickle does so, which winds back class attributes
//! that have been changed since, and it is the default here too.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyAttributeError, PyException, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::function::pair;
use crate::cloud::tracker;
use crate::ffi::{build, compat, instance};

/// Whether loading a class that this process has already gives it the attributes that the payload holds.
static RESETS: AtomicBool = AtomicBool::new(true);

/// Whether loading a class that this process has already gives it the attributes that the payload holds.
fn resets_classes() -> bool {
    RESETS.load(Ordering::Relaxed)
}

/// Whether loading a class that this process has already gives it the attributes that the payload holds; set first, if
/// an argument is given. Returns what was the case before.
#[pyfunction]
#[pyo3(signature = (reset=None, /))]
pub(crate) fn reset_classes(reset: Option<bool>) -> bool {
    match reset {
        Some(reset) => RESETS.swap(reset, Ordering::Relaxed),
        None => resets_classes(),
    }
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
    if !resets_classes() && tracker::is_tracked(class) && tracker::is_complete(class) {
        return Ok(class.clone());
    }
    let plain = class
        .cast::<PyType>()
        .ok()
        .filter(|class| instance::sets_attributes_plainly(class));
    let registry_name = intern!(py, "_abc_impl");
    let mut registry = None;
    for (name, value) in state.iter() {
        if name.eq(registry_name)? {
            registry = Some(value);
        } else if !plain.is_some_and(|class| instance::has_own(class, &name, &value)) {
            set_attribute(class, &name, &value)?;
        }
    }
    // Setting `__module__` removes it.
    if cfg!(Py_3_13)
        && let Some(line) = state.get_item(intern!(py, "__firstlineno__"))?
    {
        set_attribute(class, intern!(py, "__firstlineno__").as_any(), &line)?;
    }
    if let Some(registry) = registry.filter(|registry| !registry.is_none()) {
        for subclass in registry.try_iter()? {
            class.call_method1(intern!(py, "register"), (subclass?,))?;
        }
    }
    tracker::mark_complete(class);
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
