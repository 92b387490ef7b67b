//! The rest of what payloads call by name: types, type variables, modules, views of dicts, marks of dataclass fields.

use pyo3::exceptions::{PyAttributeError, PyKeyError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PyString, PyTuple, PyType};

use super::class::tracked;
use super::function::builtins;
use crate::ffi::compat;

/// A type of the `types` module, by its name there.
pub(super) fn builtin_type<'py>(name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = name.py();
    let name = name.cast::<PyString>()?;
    match name.to_str()? {
        "CodeType" => Ok(crate::ffi::function::code_class(py).into_any()),
        "FunctionType" | "LambdaType" => Ok(crate::ffi::function::class(py).into_any()),
        // What Python 2 called classes of the old kind.
        "ClassType" => Ok(py.get_type::<PyType>().into_any()),
        _ => py.import(intern!(py, "types"))?.getattr(name),
    }
}

/// The type variable that has the id, or a new one.
pub(super) fn typevar<'py>(
    name: &Bound<'py, PyAny>,
    bound: &Bound<'py, PyAny>,
    constraints: &Bound<'py, PyAny>,
    covariant: &Bound<'py, PyAny>,
    contravariant: &Bound<'py, PyAny>,
    id: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = name.py();
    tracked(id, || {
        let keywords = PyDict::new(py);
        keywords.set_item(intern!(py, "bound"), bound)?;
        keywords.set_item(intern!(py, "covariant"), covariant)?;
        keywords.set_item(intern!(py, "contravariant"), contravariant)?;
        let mut args = vec![name.clone()];
        for constraint in constraints.try_iter()? {
            args.push(constraint?);
        }
        py.import(intern!(py, "typing"))?
            .getattr(intern!(py, "TypeVar"))?
            .call(PyTuple::new(py, args)?, Some(&keywords))
    })
}

/// A module, imported: the module itself and not its package.
pub(super) fn subimport<'py>(name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    compat::import(name.cast::<PyString>()?.as_any())
}

/// A module that cannot be imported, made of its variables.
pub(super) fn dynamic_subimport<'py>(
    name: &Bound<'py, PyAny>,
    variables: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = name.py();
    let made = py.get_type::<PyModule>().call1((name,))?;
    let of_module = made.getattr(intern!(py, "__dict__"))?;
    of_module.call_method1(intern!(py, "update"), (variables,))?;
    of_module.set_item(intern!(py, "__builtins__"), builtins(py)?)?;
    Ok(made)
}

fn ordered_dict(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import(intern!(py, "collections"))?
        .getattr(intern!(py, "OrderedDict"))
}

/// The items of a dict.
pub(super) fn dict_items<'py>(
    dict: &Bound<'py, PyAny>,
    is_ordered: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = dict.py();
    if is_ordered {
        ordered_dict(py)?
            .call1((dict,))?
            .call_method0(intern!(py, "items"))
    } else {
        dict.call_method0(intern!(py, "items"))
    }
}

/// These as the keys of a dict.
pub(super) fn dict_keys<'py>(
    keys: &Bound<'py, PyAny>,
    is_ordered: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let class = if is_ordered {
        ordered_dict(py)?
    } else {
        py.get_type::<PyDict>().into_any()
    };
    class
        .call_method1(intern!(py, "fromkeys"), (keys,))?
        .call_method0(intern!(py, "keys"))
}

/// These as the values of a dict, whose keys are numbers.
pub(super) fn dict_values<'py>(
    values: &Bound<'py, PyAny>,
    is_ordered: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    let dict = if is_ordered {
        ordered_dict(py)?.call0()?
    } else {
        PyDict::new(py).into_any()
    };
    for (number, value) in values.try_iter()?.enumerate() {
        dict.set_item(number, value?)?;
    }
    dict.call_method0(intern!(py, "values"))
}

/// What `dataclasses` marks fields with, by its name: there is one of each, compared by identity.
pub(super) fn dataclass_sentinel<'py>(name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = name.py();
    let dataclasses = py.import(intern!(py, "dataclasses"))?;
    for attribute in ["_FIELD", "_FIELD_CLASSVAR", "_FIELD_INITVAR"] {
        let sentinel = dataclasses.getattr(attribute)?;
        if sentinel.getattr(intern!(py, "name"))?.eq(name)? {
            return Ok(sentinel);
        }
    }
    Err(PyKeyError::new_err(name.clone().unbind()))
}

/// Setting a slot has failed. What `dataclasses` keeps of a class has slots in later Python versions that it has not in
/// earlier ones, where nothing asks for them; then that is no error.
pub(crate) fn of_other_version(instance: &Bound<'_, PyAny>, error: PyErr) -> PyResult<()> {
    let py = instance.py();
    let class = instance.get_type();
    if error.is_instance_of::<PyAttributeError>(py)
        && class.module()?.to_str()? == "dataclasses"
        && matches!(class.name()?.to_str()?, "_DataclassParams" | "Field")
    {
        return Ok(());
    }
    Err(error)
}

/// What an earlier Python version has instead of a name that it does not have, where dynamic classes of later ones refer
/// to it.
pub(crate) fn find_earlier<'py>(
    module: &Bound<'py, PyString>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    // The method `__replace__` of dataclasses, since 3.13.
    if module.to_str()? == "dataclasses" && name.to_str()? == "_replace" {
        return compat::import(module.as_any())?.getattr_opt(intern!(module.py(), "replace"));
    }
    Ok(None)
}
