//! CPython functions and layouts that the bindings do not declare, and what differs between versions.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

pub(crate) use super::outside::{import, optional_attribute};

unsafe extern "C" {
    pub(super) static mut PyPickleBuffer_Type: ffi::PyTypeObject;
    fn PySys_Audit(
        event: *const std::ffi::c_char,
        format: *const std::ffi::c_char,
        ...
    ) -> std::ffi::c_int;
    fn _PyType_Lookup(ty: *mut ffi::PyTypeObject, name: *mut ffi::PyObject) -> *mut ffi::PyObject;
    static mut PyMethod_Type: ffi::PyTypeObject;
    fn PyMethod_New(function: *mut ffi::PyObject, to: *mut ffi::PyObject) -> *mut ffi::PyObject;
    fn PyMethod_Function(method: *mut ffi::PyObject) -> *mut ffi::PyObject;
    fn PyMethod_Self(method: *mut ffi::PyObject) -> *mut ffi::PyObject;
    pub(super) fn _PyBytes_Resize(
        bytes: *mut *mut ffi::PyObject,
        size: ffi::Py_ssize_t,
    ) -> std::ffi::c_int;
}

/// One slot of a set's table. A slot that was emptied holds a dummy key whose hash is -1, which no key has.
#[repr(C)]
pub(super) struct SetEntry {
    pub(super) key: *mut ffi::PyObject,
    pub(super) hash: ffi::Py_hash_t,
}

/// Whether a str is compact and ASCII: its characters, one byte each, follow its header.
///
/// # Safety
/// `text` is a live str, ready where versions know such a thing.
#[inline(always)]
pub(super) unsafe fn is_compact_ascii(text: *mut ffi::PyObject) -> bool {
    // SAFETY: the caller's promise. In 3.14 the state is a word of bit fields behind the hash: two bits interned, three kind,
    // one compact, one ascii; `build::prepare` looks whether that is so.
    unsafe {
        #[cfg(not(Py_3_14))]
        {
            ffi::PyUnicode_IS_COMPACT_ASCII(text) != 0
        }
        #[cfg(Py_3_14)]
        {
            let state = text
                .cast::<u8>()
                .add(size_of::<ffi::PyObject>() + 16)
                .cast::<u32>();
            *state & (3 << 5) == 3 << 5
        }
    }
}

/// The type's version tag, which changes with every change to it or to its bases and is never used twice; None where the
/// type has none at the moment.
///
/// # Safety
/// `ty` is a live type.
#[inline(always)]
pub(super) unsafe fn type_version(ty: *mut ffi::PyTypeObject) -> Option<u32> {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(Py_3_13))]
        if (*ty).tp_flags & (1 << 19) == 0 {
            return None;
        }
        match (*ty).tp_version_tag {
            0 => None,
            tag => Some(tag),
        }
    }
}

/// The class's version tag, given one if it has none at the moment; None where it can have none.
pub(crate) fn class_version(class: &Bound<'_, PyType>) -> Option<u32> {
    let ty = class.as_type_ptr();
    // SAFETY: class and name are alive. A lookup along the bases gives the class a version; what it finds is borrowed and
    // not used.
    unsafe {
        type_version(ty).or_else(|| {
            _PyType_Lookup(ty, pyo3::intern!(class.py(), "__dict__").as_ptr());
            type_version(ty)
        })
    }
}

/// The class's version tag, None where it has none at the moment.
#[inline(always)]
pub(crate) fn version_now(class: &Bound<'_, PyType>) -> Option<u32> {
    // SAFETY: the class is alive.
    unsafe { type_version(class.as_type_ptr()) }
}

/// The magnitude's digits of an exact int (30 bits each, least significant first) and whether it is negative.
///
/// # Safety
/// `int` is a live int.
#[inline(always)]
pub(super) unsafe fn long_digits<'a>(int: *mut ffi::PyObject) -> (&'a [u32], bool) {
    // SAFETY: the caller's promise; the digits of an int never change.
    unsafe {
        #[cfg(not(Py_3_12))]
        let (count, negative) = {
            let size = (*int.cast::<ffi::PyVarObject>()).ob_size;
            (size.unsigned_abs(), size < 0)
        };
        #[cfg(Py_3_12)]
        let (count, negative) = {
            // lv_tag: the sign in the low two bits (0 positive, 1 zero, 2 negative), the count from the fourth bit.
            let tag = *int.cast::<ffi::PyObject>().add(1).cast::<usize>();
            (tag >> 3, tag & 3 == 2)
        };
        let offset = size_of::<ffi::PyObject>() + size_of::<usize>();
        let digits = int.cast::<u8>().add(offset).cast::<u32>();
        (std::slice::from_raw_parts(digits, count), negative)
    }
}

/// The value of an exact int of at most one digit.
///
/// # Safety
/// `int` is a live int.
#[inline(always)]
pub(super) unsafe fn long_digit(int: *mut ffi::PyObject) -> Option<i32> {
    // SAFETY: the caller's promise; as in `long_digits`, and a digit is only read where there is one.
    unsafe {
        #[cfg(not(Py_3_12))]
        let sign = (*int.cast::<ffi::PyVarObject>()).ob_size;
        #[cfg(Py_3_12)]
        let sign = {
            let tag = *int.cast::<ffi::PyObject>().add(1).cast::<usize>();
            if tag >= 2 << 3 {
                return None;
            }
            1 - (tag & 3) as isize
        };
        if sign == 0 {
            return Some(0);
        }
        if !(-1..=1).contains(&sign) {
            return None;
        }
        let offset = size_of::<ffi::PyObject>() + size_of::<usize>();
        let digit = *int.cast::<u8>().add(offset).cast::<u32>();
        Some(sign as i32 * digit as i32)
    }
}

/// The value of an object that is an exact int of at most one digit (less than 2**30 in magnitude).
#[inline(always)]
pub(crate) fn exact_small_int(obj: &Bound<'_, PyAny>) -> Option<i32> {
    // SAFETY: alive, and an exact int where it is read.
    unsafe {
        if ffi::PyLong_CheckExact(obj.as_ptr()) == 0 {
            return None;
        }
        long_digit(obj.as_ptr())
    }
}

/// Whether the object is the descriptor of a slot.
pub(crate) fn is_member(obj: &Bound<'_, PyAny>) -> bool {
    // SAFETY: comparing addresses; the object is alive.
    unsafe { ffi::Py_TYPE(obj.as_ptr()) == &raw mut ffi::PyMemberDescr_Type }
}

/// Whether the object is the descriptor of an attribute with functions to get and set it.
pub(crate) fn is_getset(obj: &Bound<'_, PyAny>) -> bool {
    // SAFETY: comparing addresses; the object is alive.
    unsafe { ffi::Py_TYPE(obj.as_ptr()) == &raw mut ffi::PyGetSetDescr_Type }
}

/// Whether the object is a property, exactly.
pub(crate) fn is_property(obj: &Bound<'_, PyAny>) -> bool {
    unsafe extern "C" {
        static mut PyProperty_Type: ffi::PyTypeObject;
    }
    // SAFETY: comparing addresses; the object is alive.
    unsafe { ffi::Py_TYPE(obj.as_ptr()) == &raw mut PyProperty_Type }
}

/// Whether the object is a static method or a class method, exactly.
pub(crate) fn is_static_or_class_method(obj: &Bound<'_, PyAny>) -> bool {
    unsafe extern "C" {
        static mut PyStaticMethod_Type: ffi::PyTypeObject;
        static mut PyClassMethod_Type: ffi::PyTypeObject;
    }
    // SAFETY: comparing addresses; the object is alive.
    unsafe {
        let class = ffi::Py_TYPE(obj.as_ptr());
        class == &raw mut PyStaticMethod_Type || class == &raw mut PyClassMethod_Type
    }
}

/// Whether the object is a PickleBuffer.
pub(crate) fn is_pickle_buffer(obj: &Bound<'_, PyAny>) -> bool {
    // SAFETY: comparing addresses; the object is alive.
    unsafe { ffi::Py_TYPE(obj.as_ptr()) == &raw mut PyPickleBuffer_Type }
}

/// Whether the object is an exception.
pub(crate) fn is_exception(obj: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is alive, and so is its type.
    unsafe { ffi::PyExceptionInstance_Check(obj.as_ptr()) != 0 }
}

/// Whether the object has `__next__`.
pub(crate) fn is_iterator(obj: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is alive.
    unsafe { ffi::PyIter_Check(obj.as_ptr()) != 0 }
}

/// Whether the class was made at run time, and not built into the interpreter.
pub(crate) fn is_heap_type(class: &Bound<'_, PyType>) -> bool {
    // SAFETY: the class is alive.
    unsafe { (*class.as_type_ptr()).tp_flags & ffi::Py_TPFLAGS_HEAPTYPE != 0 }
}

/// The class's name as error messages of the interpreter have it (`tp_name`).
pub(crate) fn type_name(class: &Bound<'_, PyType>) -> String {
    // SAFETY: the class is alive; `tp_name` is a string that ends with a zero byte.
    unsafe { std::ffi::CStr::from_ptr((*class.as_type_ptr()).tp_name) }
        .to_string_lossy()
        .chars()
        .take(200)
        .collect()
}

/// The last part of the class's name as the interpreter itself has it.
#[inline]
pub(crate) fn last_name<'a>(class: &'a Bound<'_, PyType>) -> std::borrow::Cow<'a, str> {
    // SAFETY: the class is alive; `tp_name` is a string that ends with a zero byte and lives as long as the class has that
    // name, which only other code could change.
    let name =
        unsafe { std::ffi::CStr::from_ptr((*class.as_type_ptr()).tp_name) }.to_string_lossy();
    match name.rsplit_once('.') {
        Some((_, last)) => last.to_owned().into(),
        None => name,
    }
}

/// The name of an object's class as error messages have it: with its module since 3.14.
pub(crate) fn class_name_of(object: &Bound<'_, PyAny>) -> String {
    let class = object.get_type();
    if cfg!(Py_3_14)
        && let Ok(name) = class.fully_qualified_name()
    {
        return name.to_string_lossy().into_owned();
    }
    type_name(&class)
}

/// A method bound to an object.
pub(crate) fn bind_method<'py>(
    function: &Bound<'py, PyAny>,
    to: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: both are alive; a new reference or null with an exception comes back.
    unsafe { Bound::from_owned_ptr_or_err(to.py(), PyMethod_New(function.as_ptr(), to.as_ptr())) }
}

/// The function of a bound method; None if it is something else.
pub(crate) fn method_function<'py>(method: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: alive; what the accessor borrows is held by the method, checked to be one.
    unsafe {
        if ffi::Py_TYPE(method.as_ptr()) != &raw mut PyMethod_Type {
            return None;
        }
        Some(Bound::from_borrowed_ptr(
            method.py(),
            PyMethod_Function(method.as_ptr()),
        ))
    }
}

/// The function of a method bound to `to`; None if it is something else.
pub(crate) fn function_bound_to<'py>(
    method: &Bound<'py, PyAny>,
    to: &Bound<'py, PyAny>,
) -> Option<Bound<'py, PyAny>> {
    // SAFETY: all are alive; what the accessors borrow is held by the method, checked to be one.
    unsafe {
        if ffi::Py_TYPE(method.as_ptr()) != &raw mut PyMethod_Type
            || PyMethod_Self(method.as_ptr()) != to.as_ptr()
        {
            return None;
        }
        Some(Bound::from_borrowed_ptr(
            to.py(),
            PyMethod_Function(method.as_ptr()),
        ))
    }
}

/// Raises the audit event of looking up a global (`pickle.find_class`).
pub(crate) fn audit_find_class(module: &Bound<'_, PyAny>, name: &Bound<'_, PyAny>) -> PyResult<()> {
    // SAFETY: the format asks for two objects, which are alive.
    let status = unsafe {
        PySys_Audit(
            c"pickle.find_class".as_ptr(),
            c"OO".as_ptr(),
            module.as_ptr(),
            name.as_ptr(),
        )
    };
    if status < 0 {
        Err(PyErr::fetch(module.py()))
    } else {
        Ok(())
    }
}

/// `setattr(object, name, value)`, where `name` need not be a str: then it is the interpreter that complains.
pub(crate) fn set_attribute(
    object: &Bound<'_, PyAny>,
    name: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    // SAFETY: all are alive.
    let status = unsafe { ffi::PyObject_SetAttr(object.as_ptr(), name.as_ptr(), value.as_ptr()) };
    if status < 0 {
        Err(PyErr::fetch(object.py()))
    } else {
        Ok(())
    }
}

/// Whether `sys.modules` has a plain module of that name whose own dict has `obj` under `name`: then importing the module
/// and looking the name up would find it too.
pub(crate) fn is_in_module(
    obj: &Bound<'_, PyAny>,
    module: &Bound<'_, PyString>,
    name: &Bound<'_, PyString>,
) -> bool {
    let py = obj.py();
    let get = |dict: *mut ffi::PyObject, key: &Bound<'_, PyString>| {
        // SAFETY: `dict` is null or alive, and an exact dict where it is read; what is found is borrowed, and a reference
        // is taken before anything else runs.
        unsafe {
            if dict.is_null() || ffi::PyDict_CheckExact(dict) == 0 {
                return None;
            }
            let found = ffi::PyDict_GetItemWithError(dict, key.as_ptr());
            if found.is_null() {
                ffi::PyErr_Clear();
                return None;
            }
            Some(Bound::from_borrowed_ptr(py, found))
        }
    };
    // SAFETY: the GIL is held; both dicts are borrowed from the interpreter and from a module that is held.
    unsafe {
        let Some(module) = get(ffi::PyImport_GetModuleDict(), module) else {
            return false;
        };
        if ffi::Py_TYPE(module.as_ptr()) != &raw mut ffi::PyModule_Type {
            return false;
        }
        get(ffi::PyModule_GetDict(module.as_ptr()), name).is_some_and(|found| found.is(obj))
    }
}

/// The qualified name of a class whose metaclass is `type` itself.
pub(crate) fn qualified_name<'py>(class: &Bound<'py, PyAny>) -> Option<Bound<'py, PyString>> {
    // SAFETY: the object is alive, and a type where it is used as one; a new reference, or null with an exception.
    unsafe {
        if ffi::Py_TYPE(class.as_ptr()) != &raw mut ffi::PyType_Type {
            return None;
        }
        #[cfg(Py_3_11)]
        let name = ffi::PyType_GetQualName(class.as_ptr().cast());
        #[cfg(not(Py_3_11))]
        let name = ffi::PyObject_GetAttr(
            class.as_ptr(),
            pyo3::intern!(class.py(), "__qualname__").as_ptr(),
        );
        let Some(name) = Bound::from_owned_ptr_or_opt(class.py(), name) else {
            ffi::PyErr_Clear();
            return None;
        };
        name.cast_into().ok()
    }
}

/// Whether the object is a class built into the interpreter or an extension, of the module named.
pub(crate) fn is_static_class_of(class: &Bound<'_, PyAny>, module: &str) -> bool {
    // SAFETY: the object is alive, and a type where it is used as one; `tp_name` is a string that ends with a zero byte.
    unsafe {
        if ffi::Py_TYPE(class.as_ptr()) != &raw mut ffi::PyType_Type {
            return false;
        }
        let ty = class.as_ptr().cast::<ffi::PyTypeObject>();
        if (*ty).tp_flags & ffi::Py_TPFLAGS_HEAPTYPE != 0 {
            return false;
        }
        let name = std::ffi::CStr::from_ptr((*ty).tp_name).to_bytes();
        name.strip_prefix(module.as_bytes())
            .is_some_and(|rest| rest.first() == Some(&b'.'))
    }
}

/// What `sys.modules` has under a name: a module that is being imported is not waited for, as nothing in it is asked for
/// that it might not have yet.
pub(crate) fn loaded_module<'py>(
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = name.py();
    // SAFETY: the interpreter keeps the table, which is a dict unless it has been replaced; what is found is borrowed, and
    // a reference taken at once.
    unsafe {
        let table = ffi::PyImport_GetModuleDict();
        if table.is_null() || ffi::PyDict_CheckExact(table) == 0 {
            return module_in_table(name);
        }
        let found = ffi::PyDict_GetItemWithError(table, name.as_ptr());
        match Bound::from_borrowed_ptr_or_opt(py, found) {
            Some(module) => Ok(Some(module)),
            None => PyErr::take(py).map_or(Ok(None), Err),
        }
    }
}

/// The module of that name in `sys.modules`, if it is there.
pub(crate) fn module_in_table<'py>(
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    unsafe extern "C" {
        fn PyImport_GetModule(name: *mut ffi::PyObject) -> *mut ffi::PyObject;
    }
    // SAFETY: the name is alive; a new reference comes back, or null with or without an exception.
    unsafe {
        match Bound::from_owned_ptr_or_opt(name.py(), PyImport_GetModule(name.as_ptr())) {
            Some(module) => Ok(Some(module)),
            None => PyErr::take(name.py()).map_or(Ok(None), Err),
        }
    }
}
