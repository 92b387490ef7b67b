//! The entry points `dumps` and `loads`.
//!
//! Nearly all calls have one positional argument and nothing else. Those go straight to work; all others go to the same
//! functions as the bindings wrap them, which parse any arguments. The way in is the bindings' own trampoline, which knows
//! that the GIL is held, and stops panics.

use std::ffi::CStr;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::impl_::trampoline::MethodDef;
use pyo3::impl_::trampoline::fastcall_cfunction_with_keywords as trampoline;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The functions that parse arguments.
static THOROUGH: PyOnceLock<[Py<PyAny>; 3]> = PyOnceLock::new();

struct Definition(ffi::PyMethodDef);

// SAFETY: a definition is only ever read.
unsafe impl Sync for Definition {}

static DUMPS: Definition = definition(
    c"dumps",
    trampoline::<Dumps>,
    c"dumps(obj, protocol=None, *, fix_imports=True, buffer_callback=None)\n--\n\n\
      Return the pickled representation of obj as bytes; as pickle.dumps.",
);

static LOADS: Definition = definition(
    c"loads",
    trampoline::<Loads>,
    c"loads(data, /, *, fix_imports=True, encoding='ASCII', errors='strict', buffers=())\n--\n\n\
      Read and return an object from the pickle data in a bytes-like object; as pickle.loads.",
);

static CLOUD_DUMPS: Definition = definition(
    c"cloud_dumps",
    trampoline::<CloudDumps>,
    c"cloud_dumps(obj, protocol=None, buffer_callback=None, *, namespace='cloudpickle.cloudpickle', keep_filenames=False, \
      deterministic=False, exact_exceptions=False)\n--\n\n\
      Return the pickled representation of obj as bytes, with what cannot be imported by value; as cloudpickle.dumps.",
);

const fn definition(
    name: &'static CStr,
    function: ffi::PyCFunctionFastWithKeywords,
    doc: &'static CStr,
) -> Definition {
    Definition(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: function,
        },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: doc.as_ptr(),
    })
}

struct Dumps;

impl MethodDef<trampoline::Func> for Dumps {
    const METH: trampoline::Func = dumps;
}

struct CloudDumps;

impl MethodDef<trampoline::Func> for CloudDumps {
    const METH: trampoline::Func = cloud_dumps;
}

struct Loads;

impl MethodDef<trampoline::Func> for Loads {
    const METH: trampoline::Func = loads;
}

unsafe fn dumps(
    py: Python<'_>,
    _module: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> PyResult<*mut ffi::PyObject> {
    if count == 1 && names.is_null() {
        // SAFETY: one argument, alive for the call.
        let object = unsafe { Borrowed::from_ptr(py, *args) };
        return crate::api::dumps_plain(&object).map(Bound::into_ptr);
    }
    // SAFETY: the arguments as they came.
    unsafe { thorough(py, 0, args, count, names) }
}

unsafe fn cloud_dumps(
    py: Python<'_>,
    _module: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> PyResult<*mut ffi::PyObject> {
    if count == 1 && names.is_null() {
        // SAFETY: one argument, alive for the call.
        let object = unsafe { Borrowed::from_ptr(py, *args) };
        return crate::cloud::api::dumps_plain(&object).map(Bound::into_ptr);
    }
    // SAFETY: the arguments as they came.
    unsafe { thorough(py, 2, args, count, names) }
}

unsafe fn loads(
    py: Python<'_>,
    _module: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> PyResult<*mut ffi::PyObject> {
    if count == 1 && names.is_null() {
        // SAFETY: one argument, alive for the call.
        let data = unsafe { Borrowed::from_ptr(py, *args) };
        return crate::api::loads_plain(&data).map(Bound::into_ptr);
    }
    // SAFETY: the arguments as they came.
    unsafe { thorough(py, 1, args, count, names) }
}

/// # Safety
/// The arguments are those of a METH_FASTCALL | METH_KEYWORDS function.
#[cold]
unsafe fn thorough(
    py: Python<'_>,
    function: usize,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> PyResult<*mut ffi::PyObject> {
    let functions = THOROUGH
        .get(py)
        .ok_or_else(|| PyRuntimeError::new_err("quickpickle is not initialised"))?;
    // SAFETY: the caller's promise: `count` arguments, and names for those that follow.
    unsafe {
        let made =
            ffi::PyObject_Vectorcall(functions[function].as_ptr(), args, count as usize, names);
        Bound::from_owned_ptr_or_err(py, made).map(Bound::into_ptr)
    }
}

/// Adds `dumps`, `loads` and `cloud_dumps` to the module, given the functions of those names that parse arguments.
pub(crate) fn add(module: &Bound<'_, PyModule>, functions: [Bound<'_, PyAny>; 3]) -> PyResult<()> {
    let py = module.py();
    let name = module.name()?;
    let _ = THOROUGH.set(py, functions.map(Bound::unbind));
    for (attribute, definition) in [
        ("dumps", &DUMPS),
        ("loads", &LOADS),
        ("cloud_dumps", &CLOUD_DUMPS),
    ] {
        // SAFETY: the definition lives for ever; the interpreter only reads it, though it asks for a mutable pointer.
        let function = unsafe {
            let definition = (&raw const definition.0).cast_mut();
            let made = ffi::PyCFunction_NewEx(definition, std::ptr::null_mut(), name.as_ptr());
            Bound::from_owned_ptr_or_err(py, made)?
        };
        module.add(attribute, function)?;
    }
    Ok(())
}
