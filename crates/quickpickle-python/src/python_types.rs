//! Python objects looked up once: copyreg's tables, the 2/3 name maps, pickle's exceptions, interned names.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::ffi::compat;

/// What the standard library holds for picklers and unpicklers.
pub(crate) struct Library {
    /// `copyreg.dispatch_table`
    pub(crate) dispatch_table: Py<PyDict>,
    /// `copyreg._extension_registry`: (module, name) -> code
    pub(crate) extension_registry: Py<PyDict>,
    /// `copyreg._inverted_registry`: code -> (module, name)
    pub(crate) inverted_registry: Py<PyDict>,
    /// `copyreg._extension_cache`: code -> object
    pub(crate) extension_cache: Py<PyDict>,
    /// `_compat_pickle.NAME_MAPPING`: Python 2 (module, name) -> Python 3
    pub(crate) names_2to3: Py<PyDict>,
    /// `_compat_pickle.IMPORT_MAPPING`: Python 2 module -> Python 3
    pub(crate) modules_2to3: Py<PyDict>,
    /// `_compat_pickle.REVERSE_NAME_MAPPING`
    pub(crate) names_3to2: Py<PyDict>,
    /// `_compat_pickle.REVERSE_IMPORT_MAPPING`
    pub(crate) modules_3to2: Py<PyDict>,
    /// `pickle.PicklingError`
    pub(crate) pickling_error: Py<PyAny>,
    /// `pickle.UnpicklingError`
    pub(crate) unpickling_error: Py<PyAny>,
    /// `builtins.getattr`
    pub(crate) getattr: Py<PyAny>,
    /// `functools.partial`
    pub(crate) partial: Py<PyAny>,
    /// `_codecs.encode`
    pub(crate) codecs_encode: Py<PyAny>,
    /// `object.__reduce_ex__`
    pub(crate) object_reduce_ex: Py<PyAny>,
    /// `object.__reduce__`
    pub(crate) object_reduce: Py<PyAny>,
    /// `object.__getstate__` (3.11 and later)
    pub(crate) object_getstate: Option<Py<PyAny>>,
}

static LIBRARY: PyOnceLock<Library> = PyOnceLock::new();

/// The library's objects, imported on first use.
pub(crate) fn library(py: Python<'_>) -> PyResult<&'static Library> {
    LIBRARY.get_or_try_init(py, || {
        let copyreg = py.import("copyreg")?;
        let compat = py.import("_compat_pickle")?;
        let pickle = py.import("pickle")?;
        let object = py.import("builtins")?.getattr("object")?;
        let table = |module: &Bound<'_, PyModule>, name: &str| -> PyResult<Py<PyDict>> {
            Ok(module.getattr(name)?.cast_into::<PyDict>()?.unbind())
        };
        Ok(Library {
            dispatch_table: table(&copyreg, "dispatch_table")?,
            extension_registry: table(&copyreg, "_extension_registry")?,
            inverted_registry: table(&copyreg, "_inverted_registry")?,
            extension_cache: table(&copyreg, "_extension_cache")?,
            names_2to3: table(&compat, "NAME_MAPPING")?,
            modules_2to3: table(&compat, "IMPORT_MAPPING")?,
            names_3to2: table(&compat, "REVERSE_NAME_MAPPING")?,
            modules_3to2: table(&compat, "REVERSE_IMPORT_MAPPING")?,
            pickling_error: pickle.getattr("PicklingError")?.unbind(),
            unpickling_error: pickle.getattr("UnpicklingError")?.unbind(),
            getattr: py.import("builtins")?.getattr("getattr")?.unbind(),
            partial: py.import("functools")?.getattr("partial")?.unbind(),
            codecs_encode: py.import("_codecs")?.getattr("encode")?.unbind(),
            object_reduce_ex: object.getattr("__reduce_ex__")?.unbind(),
            object_reduce: object.getattr("__reduce__")?.unbind(),
            object_getstate: object.getattr_opt("__getstate__")?.map(Bound::unbind),
        })
    })
}

/// A `pickle.PicklingError`.
pub(crate) fn pickling_error(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raised(py, |library| &library.pickling_error, message.into())
}

/// A `pickle.UnpicklingError`.
pub(crate) fn unpickling_error(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raised(py, |library| &library.unpickling_error, message.into())
}

/// A `pickle.PicklingError` whose text is `template % args`, put together by Python: names need not be valid UTF-8.
pub(crate) fn pickling_error_of<'py>(
    py: Python<'py>,
    template: &str,
    args: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyErr {
    let build = || -> PyResult<PyErr> {
        let text = PyString::new(py, template)
            .call_method1(intern!(py, "__mod__"), (args.into_pyobject(py)?,))?;
        Ok(PyErr::from_value(
            library(py)?.pickling_error.bind(py).call1((text,))?,
        ))
    };
    build().unwrap_or_else(|error| error)
}

/// Adds a note (PEP 678) to an exception.
pub(crate) fn add_note(py: Python<'_>, error: &PyErr, note: String) {
    let value = error.value(py);
    let added = if cfg!(Py_3_11) {
        value
            .call_method1(intern!(py, "add_note"), (note,))
            .map(drop)
    } else {
        let name = intern!(py, "__notes__");
        match value.getattr_opt(name) {
            Ok(Some(notes)) => notes.call_method1(intern!(py, "append"), (note,)).map(drop),
            Ok(None) => PyList::new(py, [note]).and_then(|notes| value.setattr(name, notes)),
            Err(error) => Err(error),
        }
    };
    // An exception that takes no notes is still the exception.
    drop(added);
}

fn raised(py: Python<'_>, class: impl Fn(&Library) -> &Py<PyAny>, message: String) -> PyErr {
    match library(py).and_then(|library| class(library).bind(py).call1((message,))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// The module named `name` in `sys.modules`, if it is there and not in the middle of being imported.
pub(crate) fn loaded_module<'py>(
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = name.py();
    let Some(module) = compat::module_in_table(name)? else {
        return Ok(None);
    };
    if module.is_none() {
        return Ok(None);
    }
    let importing = match compat::optional_attribute(&module, intern!(py, "__spec__")) {
        Ok(Some(spec)) if !spec.is_none() => {
            let flag = compat::optional_attribute(&spec, intern!(py, "_initializing"));
            matches!(flag, Ok(Some(flag)) if flag.is_truthy().unwrap_or(true))
        }
        Ok(_) => false,
        Err(_) => true,
    };
    Ok((!importing).then_some(module))
}
