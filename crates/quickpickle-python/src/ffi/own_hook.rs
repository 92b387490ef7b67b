//! An attribute that instances have beside a method of that name: `persistent_id` and `persistent_load` since 3.13.1.
//!
//! Classes have these as methods, which an attribute of the instance comes before. The bindings could look attributes up
//! only with a call of their own for each, on every version; here the class's two places for that are filled by hand.

use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::ffi;
use pyo3::panic::PanicException;
use pyo3::prelude::*;

use crate::hook::Hook;

/// A class whose instances may have a hook of their own.
pub(crate) trait OwnHook:
    pyo3::PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync
{
    /// The attribute's name.
    const ATTRIBUTE: &'static CStr;

    /// The hook, if the instance has one of its own.
    fn own_hook(&self, py: Python<'_>) -> Option<Hook>;

    /// Gives the instance a hook of its own, or takes it away.
    fn set_own_hook(&self, hook: Option<Hook>);
}

/// Has instances of the class look up and set the attribute. Once, before anyone derives from the class.
pub(crate) fn install<T: OwnHook>(py: Python<'_>) {
    let class = py.get_type::<T>();
    let ty = class.as_type_ptr();
    // SAFETY: the class is alive, made by this module and not in use yet; classes derived from it inherit the functions,
    // which then get instances of T too.
    unsafe {
        (*ty).tp_getattro = Some(get::<T>);
        (*ty).tp_setattro = Some(set::<T>);
    }
}

/// # Safety
/// `name` is a live object.
unsafe fn is_hook<T: OwnHook>(name: *mut ffi::PyObject) -> bool {
    // SAFETY: the caller's promise; compared only if it is a str.
    unsafe {
        ffi::PyUnicode_Check(name) != 0
            && ffi::PyUnicode_CompareWithASCIIString(name, T::ATTRIBUTE.as_ptr()) == 0
    }
}

unsafe extern "C" fn get<T: OwnHook>(
    object: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: called by the interpreter, with the GIL held, for an instance of T and a name, both alive. No panic crosses
    // into the interpreter.
    unsafe {
        if is_hook::<T>(name) {
            let found = Python::attach_unchecked(|py| {
                let object = Bound::from_borrowed_ptr(py, object);
                let own = object.cast_unchecked::<T>();
                let found = catch_unwind(AssertUnwindSafe(|| {
                    let hook = own.get().own_hook(py)?;
                    Some(hook.bound(own.as_any()))
                }))
                .unwrap_or_else(|_| Some(Err(internal_error())))?;
                Some(found.map_or_else(
                    |error| {
                        error.restore(py);
                        std::ptr::null_mut()
                    },
                    Bound::into_ptr,
                ))
            });
            if let Some(found) = found {
                return found;
            }
        }
        ffi::PyObject_GenericGetAttr(object, name)
    }
}

unsafe extern "C" fn set<T: OwnHook>(
    object: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> c_int {
    // SAFETY: as above; a value of null deletes.
    unsafe {
        if !is_hook::<T>(name) {
            return ffi::PyObject_GenericSetAttr(object, name, value);
        }
        Python::attach_unchecked(|py| {
            let object = Bound::from_borrowed_ptr(py, object);
            let own = object.cast_unchecked::<T>();
            let hook = Bound::from_borrowed_ptr_or_opt(py, value);
            let done = catch_unwind(AssertUnwindSafe(|| {
                own.get()
                    .set_own_hook(hook.map(|hook| Hook::Callable(hook.unbind())))
            }));
            if done.is_err() {
                internal_error().restore(py);
                return -1;
            }
            0
        })
    }
}

fn internal_error() -> PyErr {
    PanicException::new_err("internal error in quickpickle")
}
