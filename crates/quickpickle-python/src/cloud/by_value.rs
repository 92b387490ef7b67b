//! By value or by reference: whether a function, class or module is found under the name it claims, in a module that is
//! not registered to be pickled by value.

use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule, PySet, PyString};

use crate::ffi::compat;

static REGISTRY: PyOnceLock<Py<PySet>> = PyOnceLock::new();

/// Names of modules that are pickled by value.
pub(crate) fn registry(py: Python<'_>) -> PyResult<&Bound<'_, PySet>> {
    let set = REGISTRY.get_or_try_init(py, || PySet::empty(py).map(Bound::unbind))?;
    Ok(set.bind(py))
}

/// Whether a module, or a package it is in, is registered.
pub(crate) fn is_registered(py: Python<'_>, name: &str) -> PyResult<bool> {
    let registry = registry(py)?;
    if registry.is_empty() {
        return Ok(false);
    }
    let mut name = name;
    loop {
        if registry.contains(name)? {
            return Ok(true);
        }
        match name.rsplit_once('.') {
            Some((parent, _)) => name = parent,
            None => return Ok(false),
        }
    }
}

fn is_module_registered(module: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = module.py();
    if registry(py)?.is_empty() {
        return Ok(false);
    }
    let name = module.getattr(intern!(py, "__name__"))?;
    match name.cast::<PyString>() {
        Ok(name) => is_registered(py, &name.to_string_lossy()),
        Err(_) => Ok(false),
    }
}

/// `sys.modules`.
pub(crate) fn modules(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static SYS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let sys = SYS.get_or_try_init(py, || py.import("sys").map(|sys| sys.into_any().unbind()))?;
    sys.bind(py).getattr(intern!(py, "modules"))
}

/// A module in `sys.modules`.
pub(crate) fn loaded<'py>(name: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match name.cast::<PyString>() {
        Ok(name) => Ok(compat::loaded_module(name)?.filter(|module| !module.is_none())),
        Err(_) => Ok(None),
    }
}

/// The attribute that a dotted name leads to, None where there is none.
pub(crate) fn dotted<'py>(
    from: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = from.py();
    let text = name.to_string_lossy();
    if !text.contains('.') && text != "<locals>" {
        return compat::optional_attribute(from, name);
    }
    let mut found = from.clone();
    for part in text.split('.') {
        if part == "<locals>" {
            return Ok(None);
        }
        match compat::optional_attribute(&found, &PyString::new(py, part))? {
            Some(next) => found = next,
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// The module an object says it is in, or one in which it is found under `name`.
pub(crate) fn which_module<'py>(
    obj: &Bound<'py, PyAny>,
    name: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = obj.py();
    if let Some(module) = compat::optional_attribute(obj, intern!(py, "__module__"))?
        && !module.is_none()
    {
        return Ok(Some(module));
    }
    let Ok(name) = name.cast::<PyString>() else {
        return Ok(None);
    };
    // A copy: looking attributes up may import.
    let modules = modules(py)?.call_method0(intern!(py, "copy"))?;
    let Ok(modules) = modules.cast::<PyDict>() else {
        return Ok(None);
    };
    for (module_name, module) in modules.iter() {
        if !module.is_instance_of::<PyModule>() || is_main(&module_name) {
            continue;
        }
        // What goes wrong in looking into a module is none of our business.
        if let Ok(Some(found)) = dotted(&module, name)
            && found.is(obj)
        {
            return Ok(Some(module_name));
        }
    }
    Ok(None)
}

fn is_main(name: &Bound<'_, PyAny>) -> bool {
    name.cast::<PyString>()
        .is_ok_and(|name| name == "__main__" || name == "__mp_main__")
}

/// The module and the name under which the object can be imported, if there are such.
pub(crate) fn lookup<'py>(
    obj: &Bound<'py, PyAny>,
    name: Option<Bound<'py, PyAny>>,
) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let Some((module, name, found)) = find(obj, name)? else {
        return Ok(None);
    };
    Ok(found.is(obj).then_some((module, name)))
}

/// The module that an object claims to be in, the name it claims to have, and what is found there.
pub(crate) type Found<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// What is found under the name that an object claims.
pub(crate) fn find<'py>(
    obj: &Bound<'py, PyAny>,
    name: Option<Bound<'py, PyAny>>,
) -> PyResult<Option<Found<'py>>> {
    let py = obj.py();
    let mut name = name;
    for attribute in [intern!(py, "__qualname__"), intern!(py, "__name__")] {
        if name.is_none() {
            name = compat::optional_attribute(obj, attribute)?.filter(|name| !name.is_none());
        }
    }
    let name = name.unwrap_or_else(|| py.None().into_bound(py));
    let Some(module_name) = which_module(obj, &name)? else {
        return Ok(None);
    };
    let is_main = module_name
        .cast::<PyString>()
        .is_ok_and(|name| name == "__main__");
    let (false, Ok(text)) = (is_main, name.cast::<PyString>()) else {
        return Ok(None);
    };
    let Some(module) = loaded(&module_name)? else {
        return Ok(None);
    };
    let found = match dotted(&module, text) {
        Ok(found) => found,
        Err(error) if error.is_instance_of::<PyAttributeError>(py) => None,
        Err(error) => return Err(error),
    };
    Ok(found.map(|found| (module, name, found)))
}

/// Whether a function or class is pickled by reference.
pub(crate) fn is_by_reference(obj: &Bound<'_, PyAny>) -> PyResult<bool> {
    match lookup(obj, None)? {
        Some((module, _)) => Ok(!is_module_registered(&module)?),
        None => Ok(false),
    }
}

/// Whether what is found in a module may be referred to: the module is not registered.
pub(crate) fn may_refer_to(module: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(!is_module_registered(module)?)
}

/// Whether a module is pickled by reference.
pub(crate) fn is_module_by_reference(module: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = module.py();
    if is_module_registered(module)? {
        return Ok(false);
    }
    let name = module.getattr(intern!(py, "__name__"))?;
    modules(py)?.contains(name)
}

/// Register a module to make its functions and classes picklable by value.
///
/// They then load in processes where the module cannot be imported. Submodules of a package are registered with it.
/// ValueError: module is no module, or not one in sys.modules.
#[pyfunction]
#[pyo3(signature = (module))]
pub(crate) fn register_pickle_by_value(module: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = module.py();
    let name = module_name(module)?;
    if !modules(py)?.contains(&name)? {
        return Err(PyValueError::new_err(format!(
            "{} was not imported correctly, have you used an `import` statement to access it?",
            module.str()?
        )));
    }
    registry(py)?.add(name)
}

/// Unregister a module that register_pickle_by_value was given. ValueError: it is not registered.
#[pyfunction]
#[pyo3(signature = (module))]
pub(crate) fn unregister_pickle_by_value(module: &Bound<'_, PyAny>) -> PyResult<()> {
    let name = module_name(module)?;
    if !registry(module.py())?.discard(name)? {
        return Err(PyValueError::new_err(format!(
            "{} is not registered for pickle by value",
            module.str()?
        )));
    }
    Ok(())
}

/// The names of the modules registered to be pickled by value, as a new set.
#[pyfunction]
pub(crate) fn list_registry_pickle_by_value(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    registry(py)?.call_method0(intern!(py, "copy"))
}

fn module_name<'py>(module: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if !module.is_instance_of::<PyModule>() {
        return Err(PyValueError::new_err(format!(
            "Input should be a module object, got {} instead",
            module.str()?
        )));
    }
    module.getattr(intern!(module.py(), "__name__"))
}
