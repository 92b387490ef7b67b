//! What `quickpickle.cloudpickle` calls: dumping by value, and the questions that programs ask about it.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyRecursionError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PySet, PyType};

use crate::options;
use crate::pickler::{Settings, with_engine};
use crate::python_types::{library, pickling_error};

use super::wire::{self, DEFAULT_NAMESPACE};
use super::{Cloud, by_value, class, code, file, misc};

/// How to write by value, from arguments.
pub(crate) fn cloud(
    py: Python<'_>,
    namespace: &str,
    keep_filenames: bool,
    deterministic: bool,
    exact_exceptions: bool,
) -> PyResult<Cloud> {
    Ok(Cloud {
        wire: wire::wire(py, namespace)?,
        keeps_filenames: keep_filenames,
        is_deterministic: deterministic,
        keeps_exceptions: exact_exceptions,
        is_anonymous: false,
    })
}

/// The protocol meant by an argument: the highest where there is none.
pub(crate) fn protocol(argument: Option<&Bound<'_, PyAny>>) -> PyResult<u8> {
    match argument {
        None => Ok(options::HIGHEST_PROTOCOL),
        argument => options::protocol(argument),
    }
}

/// The error that cloudpickle makes of nesting that is too deep.
pub(crate) fn too_deep(py: Python<'_>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyRecursionError>(py) {
        return error;
    }
    let made = pickling_error(
        py,
        "Could not pickle object as excessively deep recursion required.",
    );
    made.set_cause(py, Some(error));
    made
}

/// Reducers that programs have put into the table that all CloudPicklers share.
static REDUCERS: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
static HAS_REDUCERS: AtomicBool = AtomicBool::new(false);
/// The table as it is born.
static DEFAULT_REDUCERS: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// Those reducers, if there are any.
pub(crate) fn reducers(py: Python<'_>) -> Option<Py<PyAny>> {
    if !HAS_REDUCERS.load(Ordering::Relaxed) {
        return None;
    }
    REDUCERS
        .get(py)
        .map(|reducers| reducers.clone_ref(py).into_any())
}

/// Whether a reducer is the one that the shared table has for a class from birth, and so is built in.
pub(crate) fn is_built_in(class: &Bound<'_, PyType>, reducer: &Bound<'_, PyAny>) -> PyResult<bool> {
    match DEFAULT_REDUCERS.get(class.py()) {
        Some(table) => Ok(table
            .bind(class.py())
            .get_item(class)?
            .is_some_and(|known| known.is(reducer))),
        None => Ok(false),
    }
}

/// Tell which reducers the shared table has from birth.
#[pyfunction]
#[pyo3(signature = (table, /))]
pub(crate) fn _set_default_reducers(table: &Bound<'_, PyDict>) -> PyResult<()> {
    let _ = DEFAULT_REDUCERS.set(table.py(), table.copy()?.unbind());
    Ok(())
}

/// Tell which reducers of the shared table are not those it has from birth.
#[pyfunction]
#[pyo3(signature = (table, /))]
pub(crate) fn _set_reducers(table: &Bound<'_, PyDict>) -> PyResult<()> {
    let py = table.py();
    let reducers = REDUCERS
        .get_or_init(py, || PyDict::new(py).unbind())
        .bind(py);
    reducers.clear();
    reducers.update(table.as_mapping())?;
    HAS_REDUCERS.store(!reducers.is_empty(), Ordering::Relaxed);
    Ok(())
}

fn settings(
    py: Python<'_>,
    protocol: Option<&Bound<'_, PyAny>>,
    buffer_callback: Option<Bound<'_, PyAny>>,
    cloud: Cloud,
) -> PyResult<Settings> {
    let protocol = self::protocol(protocol)?;
    Ok(Settings {
        protocol,
        fix_imports: true,
        buffer_callback: options::buffer_callback(buffer_callback, protocol)?.map(Bound::unbind),
        dispatch_table: reducers(py),
        cloud: Some(cloud),
        ..Settings::default()
    })
}

/// What an object is written as by itself.
pub(super) fn dump_alone<'py>(
    obj: &Bound<'py, PyAny>,
    cloud: Cloud,
) -> PyResult<Bound<'py, PyBytes>> {
    let py = obj.py();
    let settings = settings(py, None, None, cloud)?;
    with_engine(py, |engine| {
        engine.dump(obj, &settings)?;
        engine.take_bytes(py)
    })
}

/// `cloud_dumps(obj)`, without further arguments.
pub(crate) fn dumps_plain<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static PLAIN: PyOnceLock<Settings> = PyOnceLock::new();
    let py = obj.py();
    if HAS_REDUCERS.load(Ordering::Relaxed) {
        let dumps = cloud_dumps(obj, None, None, DEFAULT_NAMESPACE, false, false, false)?;
        return Ok(dumps.into_any());
    }
    let settings = PLAIN.get_or_try_init(py, || {
        settings(
            py,
            None,
            None,
            cloud(py, DEFAULT_NAMESPACE, false, false, false)?,
        )
    })?;
    with_engine(py, |engine| {
        engine
            .dump(obj, settings)
            .map_err(|error| too_deep(py, error))?;
        engine.take_bytes(py).map(Bound::into_any)
    })
}

/// Return the pickled representation of obj as bytes, with what cannot be imported by value; as cloudpickle.dumps.
#[pyfunction]
#[pyo3(
    signature = (obj, protocol=None, buffer_callback=None, *, namespace=DEFAULT_NAMESPACE, keep_filenames=false, deterministic=false, exact_exceptions=false),
    text_signature = "(obj, protocol=None, buffer_callback=None, *, namespace='cloudpickle.cloudpickle', keep_filenames=False, deterministic=False, exact_exceptions=False)"
)]
pub(crate) fn cloud_dumps<'py>(
    obj: &Bound<'py, PyAny>,
    protocol: Option<&Bound<'py, PyAny>>,
    buffer_callback: Option<Bound<'py, PyAny>>,
    namespace: &str,
    keep_filenames: bool,
    deterministic: bool,
    exact_exceptions: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let py = obj.py();
    let cloud = cloud(
        py,
        namespace,
        keep_filenames,
        deterministic,
        exact_exceptions,
    )?;
    let settings = settings(py, protocol, buffer_callback, cloud)?;
    with_engine(py, |engine| {
        engine
            .dump(obj, &settings)
            .map_err(|error| too_deep(py, error))?;
        engine.take_bytes(py)
    })
}

/// Write a pickled representation of obj to the open file, with what cannot be imported by value; as cloudpickle.dump.
#[expect(clippy::too_many_arguments, reason = "each is one of Python's")]
#[pyfunction]
#[pyo3(
    signature = (obj, file, protocol=None, buffer_callback=None, *, namespace=DEFAULT_NAMESPACE, keep_filenames=false, deterministic=false, exact_exceptions=false),
    text_signature = "(obj, file, protocol=None, buffer_callback=None, *, namespace='cloudpickle.cloudpickle', keep_filenames=False, deterministic=False, exact_exceptions=False)"
)]
pub(crate) fn cloud_dump<'py>(
    obj: &Bound<'py, PyAny>,
    file: &Bound<'py, PyAny>,
    protocol: Option<&Bound<'py, PyAny>>,
    buffer_callback: Option<Bound<'py, PyAny>>,
    namespace: &str,
    keep_filenames: bool,
    deterministic: bool,
    exact_exceptions: bool,
) -> PyResult<()> {
    let py = obj.py();
    let write = file
        .getattr_opt(intern!(py, "write"))?
        .ok_or_else(|| PyTypeError::new_err("file must have a 'write' attribute"))?;
    let cloud = cloud(
        py,
        namespace,
        keep_filenames,
        deterministic,
        exact_exceptions,
    )?;
    let mut settings = settings(py, protocol, buffer_callback, cloud)?;
    settings.write = Some(write.unbind());
    with_engine(py, |engine| {
        engine
            .dump(obj, &settings)
            .map_err(|error| too_deep(py, error))?;
        engine.forget(py);
        engine.flush(py, &settings)
    })
}

/// Names of globals that a code object and those in its constants use.
#[pyfunction]
#[pyo3(signature = (code, /))]
pub(crate) fn _extract_code_globals<'py>(code: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let py = code.py();
    if !crate::ffi::function_view::is_code(code) {
        return Err(PyTypeError::new_err("a code object is needed"));
    }
    let names = PyDict::new(py);
    for name in &code::parts(code)?.globals {
        names.set_item(name, py.None())?;
    }
    Ok(names)
}

/// The attributes of a class that are its own, as pairs of name and value in the order of their names.
#[pyfunction]
#[pyo3(signature = (class_, /))]
pub(crate) fn _class_items<'py>(class_: &Bound<'py, PyType>) -> PyResult<class::Items<'py>> {
    class::own_items(class_, &crate::ffi::function_view::class_dict(class_)?)
}

/// How a text file is pickled: a function and its arguments.
#[pyfunction]
#[pyo3(signature = (file, /))]
pub(crate) fn _reduce_file<'py>(
    file: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Vec<Bound<'py, PyAny>>)> {
    let py = file.py();
    Ok(match file::find(file)? {
        file::Found::Stream(args) => (library(py)?.getattr.bind(py).clone(), args),
        file::Found::Content(copy) => {
            let function = py
                .import("quickpickle._native")?
                .getattr("_file_reconstructor")?;
            (function, vec![copy])
        }
    })
}

/// Whether a function, class or module is pickled by reference.
#[pyfunction]
#[pyo3(signature = (obj, name=None, /))]
pub(crate) fn _is_by_reference(
    obj: &Bound<'_, PyAny>,
    name: Option<Bound<'_, PyAny>>,
) -> PyResult<bool> {
    if obj.is_instance_of::<pyo3::types::PyModule>() {
        return by_value::is_module_by_reference(obj);
    }
    match by_value::lookup(obj, name)? {
        Some((module, _)) => by_value::may_refer_to(&module),
        None => Ok(false),
    }
}

/// The module and the name under which an object can be imported, or None.
#[pyfunction]
#[pyo3(signature = (obj, name=None, /))]
pub(crate) fn _lookup<'py>(
    obj: &Bound<'py, PyAny>,
    name: Option<Bound<'py, PyAny>>,
) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    by_value::lookup(obj, name)
}

/// The name of the module that an object is in, or None.
#[pyfunction]
#[pyo3(signature = (obj, name, /))]
pub(crate) fn _which_module<'py>(
    obj: &Bound<'py, PyAny>,
    name: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    by_value::which_module(obj, name)
}

/// The set of the names of modules that are pickled by value; not a copy.
#[pyfunction]
pub(crate) fn _pickle_by_value_modules(py: Python<'_>) -> PyResult<Bound<'_, PySet>> {
    Ok(by_value::registry(py)?.clone())
}

/// The name that the module types has for a builtin class, or None.
#[pyfunction]
#[pyo3(signature = (class_, /))]
pub(crate) fn _types_name<'py>(class_: &Bound<'py, PyType>) -> PyResult<Option<Bound<'py, PyAny>>> {
    misc::types_name(class_)
}
