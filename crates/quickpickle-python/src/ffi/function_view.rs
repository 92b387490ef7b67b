//! Functions, code objects and cells, read from their own fields.
//!
//! What is found out about a code object is kept in it (PEP 523's extra data): it can neither outlive the code object nor
//! be taken for another one's that comes to lie at the same address.

use std::ffi::c_void;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFunction, PyType};

use super::object::{Anchor, TypePtr};
use crate::cloud::code::CodeParts;

/// The fields of a function; valid as long as the function is alive and no other code has run.
pub(crate) struct FunctionView {
    pub(crate) code: Anchor,
    pub(crate) globals: Anchor,
    pub(crate) name: Anchor,
    pub(crate) qualname: Anchor,
    pub(crate) defaults: Option<Anchor>,
    pub(crate) kwdefaults: Option<Anchor>,
    pub(crate) closure: Option<Anchor>,
    pub(crate) doc: Option<Anchor>,
    pub(crate) module: Option<Anchor>,
    /// Attributes of its own, if a dict for them exists.
    pub(crate) dict: Option<Anchor>,
    /// Type parameters, if it has any (3.12 and later).
    pub(crate) type_params: Option<Anchor>,
    /// Annotations, if it has any and they are in a dict already.
    pub(crate) annotations: Annotations,
}

/// How a function keeps its annotations.
pub(crate) enum Annotations {
    /// There are none.
    None,
    /// In a dict.
    Dict(Anchor),
    /// In a form that becomes a dict when they are asked for.
    Compact,
}

/// Reads the fields of a function.
pub(crate) fn view(function: &Bound<'_, PyFunction>) -> FunctionView {
    // SAFETY: an exact function, which cannot be subclassed; its fields are null or objects that it holds.
    unsafe {
        let fields = &*function.as_ptr().cast::<ffi::PyFunctionObject>();
        let anchor =
            |field: *mut ffi::PyObject| (!field.is_null()).then(|| Anchor::from_field(field));
        let annotations = fields.func_annotations;
        #[cfg(Py_3_14)]
        let lazy =
            !fields.func_annotate.is_null() && !std::ptr::eq(fields.func_annotate, ffi::Py_None());
        #[cfg(not(Py_3_14))]
        let lazy = false;
        FunctionView {
            code: Anchor::from_field(fields.func_code),
            globals: Anchor::from_field(fields.func_globals),
            name: Anchor::from_field(fields.func_name),
            qualname: Anchor::from_field(fields.func_qualname),
            defaults: anchor(fields.func_defaults),
            kwdefaults: anchor(fields.func_kwdefaults),
            closure: anchor(fields.func_closure),
            doc: anchor(fields.func_doc),
            module: anchor(fields.func_module),
            dict: anchor(fields.func_dict),
            #[cfg(Py_3_12)]
            type_params: anchor(fields.func_typeparams).filter(|_| {
                ffi::PyTuple_CheckExact(fields.func_typeparams) != 0
                    && ffi::PyTuple_GET_SIZE(fields.func_typeparams) > 0
            }),
            #[cfg(not(Py_3_12))]
            type_params: None,
            annotations: if annotations.is_null() {
                if lazy {
                    Annotations::Compact
                } else {
                    Annotations::None
                }
            } else if ffi::PyDict_CheckExact(annotations) != 0 {
                Annotations::Dict(Anchor::from_field(annotations))
            } else {
                Annotations::Compact
            },
        }
    }
}

/// What a cell holds, if anything.
pub(crate) fn cell_contents<'py>(cell: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    if !is_cell(cell) {
        return None;
    }
    // SAFETY: checked to be a cell; a new reference to what it holds, or null without an exception.
    unsafe { Bound::from_owned_ptr_or_opt(cell.py(), ffi::PyCell_Get(cell.as_ptr())) }
}

/// Whether the object is a cell.
#[inline(always)]
pub(crate) fn is_cell(obj: &Bound<'_, PyAny>) -> bool {
    // SAFETY: comparing the type of a live object.
    unsafe { ffi::PyCell_Check(obj.as_ptr()) != 0 }
}

/// Whether the object is a code object.
#[inline(always)]
pub(crate) fn is_code(obj: &Bound<'_, PyAny>) -> bool {
    // SAFETY: comparing the type of a live object.
    unsafe { ffi::Py_TYPE(obj.as_ptr()) == &raw mut ffi::PyCode_Type }
}

impl TypePtr {
    /// Whether it is the type of code objects or that of cells.
    #[inline(always)]
    pub(crate) fn is_code_or_cell(self) -> bool {
        self.as_ptr() == &raw mut ffi::PyCode_Type || self.as_ptr() == &raw mut ffi::PyCell_Type
    }
}

/// The type of code objects.
pub(crate) fn code_type(py: Python<'_>) -> Anchor {
    let _ = py;
    // SAFETY: a static type, which lives for ever.
    unsafe { Anchor::from_field((&raw mut ffi::PyCode_Type).cast()) }
}

/// The dict of a class, in which the interpreter itself looks attributes up.
pub(crate) fn class_dict<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyDict>> {
    // SAFETY: the class is alive, and holds its dict, an exact one, from when it is made.
    unsafe {
        #[cfg(Py_3_12)]
        let dict =
            Bound::from_owned_ptr_or_err(class.py(), ffi::PyType_GetDict(class.as_type_ptr()))?;
        #[cfg(not(Py_3_12))]
        let dict = Bound::from_borrowed_ptr_or_err(class.py(), (*class.as_type_ptr()).tp_dict)?;
        Ok(dict.cast_into::<PyDict>()?)
    }
}

/// Index of our extra data in code objects.
static INDEX: PyOnceLock<ffi::Py_ssize_t> = PyOnceLock::new();

unsafe extern "C" fn free(extra: *mut c_void) {
    if extra.is_null() {
        return;
    }
    // SAFETY: called once, when its code object dies, with what `set_parts` put there; the GIL is held by whoever frees the
    // code object.
    unsafe {
        Python::attach_unchecked(|_| drop(Box::from_raw(extra.cast::<CodeParts>())));
    }
}

fn index(py: Python<'_>) -> PyResult<ffi::Py_ssize_t> {
    let index = INDEX.get_or_init(py, || {
        // SAFETY: the GIL is held; the function lives as long as the process, because extensions are never unloaded.
        unsafe { ffi::PyUnstable_Eval_RequestCodeExtraIndex(free) }
    });
    if *index < 0 {
        return Err(PyRuntimeError::new_err(
            "all places for extra data of code objects are taken",
        ));
    }
    Ok(*index)
}

/// What has been found out about a code object before.
#[inline]
pub(crate) fn parts<'a>(code: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a CodeParts>> {
    let index = index(code.py())?;
    debug_assert!(is_code(code));
    let mut extra = std::ptr::null_mut();
    // SAFETY: a code object; what is found was put there by `set_parts`, is never replaced and lives as long as the code
    // object, which is borrowed for 'a.
    unsafe {
        if ffi::PyUnstable_Code_GetExtra(code.as_ptr(), index, &mut extra) < 0 {
            return Err(PyErr::fetch(code.py()));
        }
        Ok(extra.cast::<CodeParts>().as_ref())
    }
}

/// Keeps what has been found out about a code object in it, and returns it. What is there already stays.
pub(crate) fn set_parts<'a>(
    code: &'a Bound<'_, PyAny>,
    found: CodeParts,
) -> PyResult<&'a CodeParts> {
    if let Some(found) = parts(code)? {
        return Ok(found);
    }
    let index = index(code.py())?;
    let extra = Box::into_raw(Box::new(found));
    // SAFETY: a code object, which has nothing at that index: it takes the box over, to be freed by `free`. If it does not,
    // the box is ours again.
    unsafe {
        if ffi::PyUnstable_Code_SetExtra(code.as_ptr(), index, extra.cast()) < 0 {
            drop(Box::from_raw(extra));
            return Err(PyErr::fetch(code.py()));
        }
        Ok(&*extra)
    }
}
