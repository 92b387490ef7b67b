//! The entry points `dumps` and `loads`.
//!
//! Nearly all calls have one positional argument and nothing else. Those go straight to work; all others go to the same
//! functions as the bindings wrap them, which parse any arguments.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::ffi;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// A function of one object.
type Quick = for<'py> fn(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>;

/// The functions that parse arguments.
static THOROUGH: PyOnceLock<[Py<PyAny>; 2]> = PyOnceLock::new();

struct Definition(ffi::PyMethodDef);

// SAFETY: a definition is only ever read.
unsafe impl Sync for Definition {}

static DUMPS: Definition = definition(
    c"dumps",
    dumps,
    c"dumps(obj, protocol=None, *, fix_imports=True, buffer_callback=None)\n--\n\n\
      Return the pickled representation of obj as bytes; as pickle.dumps.",
);

static LOADS: Definition = definition(
    c"loads",
    loads,
    c"loads(data, /, *, fix_imports=True, encoding='ASCII', errors='strict', buffers=())\n--\n\n\
      Read and return an object from the pickle data in a bytes-like object; as pickle.loads.",
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

unsafe extern "C" fn dumps(
    _module: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: called by the interpreter, with the GIL held, as METH_FASTCALL | METH_KEYWORDS says.
    unsafe { enter(args, count, names, crate::api::dumps_plain, 0) }
}

unsafe extern "C" fn loads(
    _module: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe { enter(args, count, names, crate::api::loads_plain, 1) }
}

/// # Safety
/// The GIL is held, and the arguments are those of a METH_FASTCALL | METH_KEYWORDS function.
#[inline(always)]
unsafe fn enter(
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
    quick: Quick,
    thorough: usize,
) -> *mut ffi::PyObject {
    // SAFETY: the GIL is held; arguments are alive for the call. No panic crosses into the interpreter.
    unsafe {
        Python::attach_unchecked(|py| {
            if count != 1 || !names.is_null() {
                return match THOROUGH.get(py) {
                    Some(functions) => ffi::PyObject_Vectorcall(
                        functions[thorough].as_ptr(),
                        args,
                        count as usize,
                        names,
                    ),
                    None => std::ptr::null_mut(),
                };
            }
            let argument = Bound::from_borrowed_ptr(py, *args);
            let result = catch_unwind(AssertUnwindSafe(|| quick(&argument)))
                .unwrap_or_else(|_| Err(PanicException::new_err("internal error in quickpickle")));
            match result {
                Ok(object) => object.into_ptr(),
                Err(error) => {
                    error.restore(py);
                    std::ptr::null_mut()
                }
            }
        })
    }
}

/// Adds `dumps` and `loads` to the module. `dumps` and `loads` given are the functions that parse arguments.
pub(crate) fn add(
    module: &Bound<'_, PyModule>,
    dumps: Bound<'_, PyAny>,
    loads: Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = module.py();
    let name = module.name()?;
    let _ = THOROUGH.set(py, [dumps.unbind(), loads.unbind()]);
    for (attribute, definition) in [("dumps", &DUMPS), ("loads", &LOADS)] {
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
