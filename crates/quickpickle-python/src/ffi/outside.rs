//! Calls into the interpreter that run other code, or wait, and from which a thread may never come back.
//!
//! Up to 3.13 the interpreter ends a thread that asks for the GIL while it shuts down, daemon threads above all, by
//! `pthread_exit`, which unwinds the thread's stack: through Rust frames, whose clean-up would run without the GIL or end
//! the process. Here, in the innermost frame of ours, such a thread is made to wait for the end of the process instead,
//! which is what 3.14 does by itself.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

unsafe extern "C-unwind" {
    #[link_name = "PyObject_VectorcallDict"]
    fn vectorcall(
        callable: *mut ffi::PyObject,
        args: *const *mut ffi::PyObject,
        count: usize,
        names: *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;
    #[link_name = "PyObject_CallObject"]
    fn call_object(callable: *mut ffi::PyObject, args: *mut ffi::PyObject) -> *mut ffi::PyObject;
    #[link_name = "PyIter_Next"]
    fn iterator_next(iterator: *mut ffi::PyObject) -> *mut ffi::PyObject;
    #[link_name = "PyImport_Import"]
    fn import_module(name: *mut ffi::PyObject) -> *mut ffi::PyObject;
    #[cfg(not(Py_3_13))]
    #[link_name = "_PyObject_LookupAttr"]
    fn lookup_attribute(
        object: *mut ffi::PyObject,
        name: *mut ffi::PyObject,
        found: *mut *mut ffi::PyObject,
    ) -> std::ffi::c_int;
    #[cfg(Py_3_13)]
    #[link_name = "PyObject_GetOptionalAttr"]
    fn lookup_attribute(
        object: *mut ffi::PyObject,
        name: *mut ffi::PyObject,
        found: *mut *mut ffi::PyObject,
    ) -> std::ffi::c_int;
}

/// Whoever unwinds through this waits until the process ends.
struct NoWayBack;

impl Drop for NoWayBack {
    fn drop(&mut self) {
        loop {
            std::thread::sleep(std::time::Duration::from_secs(3600));
        }
    }
}

/// Runs a call of the interpreter's, to `function`. Nothing in `call` owns anything.
///
/// Which function it is stays hidden from the compiler: the bindings declare the same ones as never unwinding, and a
/// linker that optimises takes their word for ours, and the guard away.
#[inline(always)]
fn guarded<F, R>(function: F, call: impl FnOnce(F) -> R) -> R {
    if cfg!(Py_3_14) {
        return call(function);
    }
    let function = std::hint::black_box(function);
    let guard = NoWayBack;
    let result = call(function);
    std::mem::forget(guard);
    result
}

type VectorcallDict = unsafe extern "C-unwind" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    usize,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;
type OfOne = unsafe extern "C-unwind" fn(*mut ffi::PyObject) -> *mut ffi::PyObject;
type OfTwo =
    unsafe extern "C-unwind" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;
type Lookup = unsafe extern "C-unwind" fn(
    *mut ffi::PyObject,
    *mut ffi::PyObject,
    *mut *mut ffi::PyObject,
) -> std::ffi::c_int;

/// `callable()`.
#[inline]
pub(crate) fn call0<'py>(callable: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (callable_ptr, null) = (callable.as_ptr(), std::ptr::null_mut());
    // SAFETY: the callable is alive during the call; a new reference or null with an exception comes back.
    unsafe {
        let made = guarded(vectorcall as VectorcallDict, |call| {
            call(callable_ptr, std::ptr::null(), 0, null)
        });
        Bound::from_owned_ptr_or_err(callable.py(), made)
    }
}

/// `callable(argument)`.
#[inline]
pub(crate) fn call1<'py>(
    callable: &Bound<'py, PyAny>,
    argument: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    call(callable, [argument])
}

/// `callable(*arguments)`.
#[inline]
pub(crate) fn call<'py, const N: usize>(
    callable: &Bound<'py, PyAny>,
    arguments: [&Bound<'py, PyAny>; N],
) -> PyResult<Bound<'py, PyAny>> {
    let (callable_ptr, null) = (callable.as_ptr(), std::ptr::null_mut());
    let arguments = arguments.map(|argument| argument.as_ptr());
    // SAFETY: callable and arguments are alive during the call; a new reference or null with an exception comes back.
    unsafe {
        let made = guarded(vectorcall as VectorcallDict, |call| {
            call(callable_ptr, arguments.as_ptr(), N, null)
        });
        Bound::from_owned_ptr_or_err(callable.py(), made)
    }
}

/// `callable(*arguments)`, where `arguments` should be a tuple.
#[inline]
pub(crate) fn call_with<'py>(
    callable: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (callable_ptr, arguments) = (callable.as_ptr(), arguments.as_ptr());
    // SAFETY: both are alive; the callee checks that `arguments` is a tuple; a new reference or null with an exception
    // comes back.
    unsafe {
        let made = guarded(call_object as OfTwo, |call| call(callable_ptr, arguments));
        Bound::from_owned_ptr_or_err(callable.py(), made)
    }
}

/// `class.__new__`, as its slot has it.
///
/// # Safety
/// `new` is the slot of the live type `ty`; `args` is a live tuple, `kwargs` null or a live dict.
pub(super) unsafe fn new_instance(
    new: ffi::newfunc,
    ty: *mut ffi::PyTypeObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the same function; that it may unwind is only said to the compiler.
    let new: unsafe extern "C-unwind" fn(
        *mut ffi::PyTypeObject,
        *mut ffi::PyObject,
        *mut ffi::PyObject,
    ) -> *mut ffi::PyObject = unsafe { std::mem::transmute(new) };
    // SAFETY: the caller's promise.
    guarded(new, |new| unsafe { new(ty, args, kwargs) })
}

/// The next item of an iterator; None at its end.
pub(crate) fn next<'py>(iterator: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let ptr = iterator.as_ptr();
    // SAFETY: the caller has found it to be an iterator; a new reference, or null with or without an exception.
    unsafe {
        match Bound::from_owned_ptr_or_opt(
            iterator.py(),
            guarded(iterator_next as OfOne, |next| next(ptr)),
        ) {
            Some(item) => Ok(Some(item)),
            None => PyErr::take(iterator.py()).map_or(Ok(None), Err),
        }
    }
}

/// `__import__(name)`, then the module itself and not its package: what `PyImport_Import` does.
pub(crate) fn import<'py>(name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let ptr = name.as_ptr();
    // SAFETY: the name is alive; a new reference or null with an exception comes back.
    unsafe {
        Bound::from_owned_ptr_or_err(
            name.py(),
            guarded(import_module as OfOne, |import| import(ptr)),
        )
    }
}

/// `getattr(obj, name, None)`, without making an exception only to drop it.
#[inline]
pub(crate) fn optional_attribute<'py>(
    obj: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut found = std::ptr::null_mut();
    let (object, name) = (obj.as_ptr(), name.as_ptr());
    let place = &raw mut found;
    // SAFETY: both are alive; the callee fills `found` with a new reference, or null with or without an exception.
    unsafe {
        if guarded(lookup_attribute as Lookup, |look| look(object, name, place)) < 0 {
            return Err(PyErr::fetch(obj.py()));
        }
        Ok(Bound::from_owned_ptr_or_opt(obj.py(), found))
    }
}
