//! The functions `dump`, `dumps`, `load`, `loads`: arguments in, result out.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::ffi::buffer::Exported;
use crate::options;
use crate::pickler::{Settings, dumps_small, with_engine};
use crate::unpickler::{Hooks, load_bytes, load_file};

/// Return the pickled representation of obj as bytes; as pickle.dumps.
#[pyfunction]
#[pyo3(signature = (obj, protocol=None, *, fix_imports=true, buffer_callback=None))]
pub(crate) fn dumps<'py>(
    obj: &Bound<'py, PyAny>,
    protocol: Option<&Bound<'py, PyAny>>,
    fix_imports: bool,
    buffer_callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let py = obj.py();
    let protocol = options::protocol(protocol)?;
    let buffer_callback = options::buffer_callback(buffer_callback, protocol)?.map(Bound::unbind);
    let settings = Settings {
        protocol,
        fix_imports,
        buffer_callback,
        ..Settings::default()
    };
    with_engine(py, |engine| {
        engine.dump(obj, &settings)?;
        engine.take_bytes(py)
    })
}

/// What `dumps(obj)` is asked to do.
static PLAIN: Settings = Settings {
    protocol: options::DEFAULT_PROTOCOL,
    fix_imports: true,
    fast: false,
    write: None,
    buffer_callback: None,
    persistent_id: None,
    reducer_override: None,
    dispatch_table: None,
    cloud: None,
};

/// `dumps(obj)`, without further arguments.
pub(crate) fn dumps_plain<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if let Some(pickle) = dumps_small(obj, PLAIN.protocol) {
        return Ok(pickle.into_any());
    }
    let py = obj.py();
    with_engine(py, |engine| {
        engine.dump(obj, &PLAIN)?;
        engine.take_bytes(py).map(Bound::into_any)
    })
}

/// `loads(data)`, without further arguments.
pub(crate) fn loads_plain<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    load_any(data, &Hooks::plain())
}

/// Write a pickled representation of obj to the open file; as pickle.dump.
#[pyfunction]
#[pyo3(signature = (obj, file, protocol=None, *, fix_imports=true, buffer_callback=None))]
pub(crate) fn dump(
    obj: &Bound<'_, PyAny>,
    file: &Bound<'_, PyAny>,
    protocol: Option<&Bound<'_, PyAny>>,
    fix_imports: bool,
    buffer_callback: Option<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let py = obj.py();
    let protocol = options::protocol(protocol)?;
    let write = file
        .getattr_opt(intern!(py, "write"))?
        .ok_or_else(|| PyTypeError::new_err("file must have a 'write' attribute"))?;
    let buffer_callback = options::buffer_callback(buffer_callback, protocol)?.map(Bound::unbind);
    let settings = Settings {
        protocol,
        fix_imports,
        buffer_callback,
        write: Some(write.unbind()),
        ..Settings::default()
    };
    with_engine(py, |engine| {
        engine.dump(obj, &settings)?;
        // Nothing is to be remembered while the file runs.
        engine.forget(py);
        engine.flush(py, &settings)
    })
}

/// Read and return an object from the pickle data in a bytes-like object; as pickle.loads.
#[pyfunction]
#[pyo3(
    signature = (data, /, *, fix_imports=true, encoding=None, errors=None, buffers=None),
    text_signature = "(data, /, *, fix_imports=True, encoding='ASCII', errors='strict', buffers=())"
)]
pub(crate) fn loads<'py>(
    data: &Bound<'py, PyAny>,
    fix_imports: bool,
    encoding: Option<&Bound<'py, PyAny>>,
    errors: Option<&Bound<'py, PyAny>>,
    buffers: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    load_any(
        data,
        &hooks("loads", fix_imports, encoding, errors, buffers)?,
    )
}

/// The pickle in a bytes-like object.
#[inline(always)]
fn load_any<'py>(data: &Bound<'py, PyAny>, hooks: &Hooks<'py>) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(data) = data.cast_exact::<PyBytes>() {
        return load_bytes(data.py(), data.as_bytes(), hooks);
    }
    load_exported(data, hooks)
}

#[inline(never)]
fn load_exported<'py>(data: &Bound<'py, PyAny>, hooks: &Hooks<'py>) -> PyResult<Bound<'py, PyAny>> {
    let exported = Exported::of(data)?;
    load_bytes(data.py(), exported.bytes(), hooks)
}

/// Read and return an object from the pickle data stored in a file; as pickle.load.
#[pyfunction]
#[pyo3(
    signature = (file, *, fix_imports=true, encoding=None, errors=None, buffers=None),
    text_signature = "(file, *, fix_imports=True, encoding='ASCII', errors='strict', buffers=())"
)]
pub(crate) fn load<'py>(
    file: &Bound<'py, PyAny>,
    fix_imports: bool,
    encoding: Option<&Bound<'py, PyAny>>,
    errors: Option<&Bound<'py, PyAny>>,
    buffers: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    load_file(
        file,
        &hooks("load", fix_imports, encoding, errors, buffers)?,
    )
}

fn hooks<'py>(
    function: &str,
    fix_imports: bool,
    encoding: Option<&Bound<'py, PyAny>>,
    errors: Option<&Bound<'py, PyAny>>,
    buffers: Option<&Bound<'py, PyAny>>,
) -> PyResult<Hooks<'py>> {
    let (encoding, errors) = options::encoding(function, encoding, errors)?;
    Ok(Hooks {
        fix_imports,
        encoding,
        errors,
        buffers: options::buffers(buffers)?,
        find_class: None,
        owner: None,
        persistent_load: None,
    })
}
