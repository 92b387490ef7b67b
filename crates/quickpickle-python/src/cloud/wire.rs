//! Names that payloads hold: the helpers of cloudpickle that rebuild what travels by value, and the module they are in.
//!
//! Names written into a pickle are public for ever. Every one that is written stands here; what an Unpickler does on
//! meeting one is the business of the loading side.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The module whose helpers are named where nothing else is asked for.
pub(crate) const DEFAULT_NAMESPACE: &str = "cloudpickle.cloudpickle";

macro_rules! helpers {
    ($($variant:ident = $name:literal,)*) => {
        /// A helper that payloads call.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Helper {
            $(#[doc = $name] $variant,)*
        }

        /// Names of the helpers, by their number.
        const NAMES: &[&str] = &[$($name,)*];
    };
}

helpers! {
    BuiltinType = "_builtin_type",
    ClassSetstate = "_class_setstate",
    DynamicSubimport = "dynamic_subimport",
    FieldSentinel = "_get_dataclass_field_type_sentinel",
    FileReconstructor = "_file_reconstructor",
    FunctionSetstate = "_function_setstate",
    LookupClassOrTrack = "_lookup_class_or_track",
    MakeCell = "_make_cell",
    MakeDictItems = "_make_dict_items",
    MakeDictKeys = "_make_dict_keys",
    MakeDictValues = "_make_dict_values",
    MakeEmptyCell = "_make_empty_cell",
    MakeFunction = "_make_function",
    MakeSkeletonClass = "_make_skeleton_class",
    MakeSkeletonEnum = "_make_skeleton_enum",
    MakeTypevar = "_make_typevar",
    Subimport = "subimport",
}

impl Helper {
    /// Its name.
    #[inline(always)]
    pub(crate) fn text(self) -> &'static str {
        NAMES[self as usize]
    }
}

/// The helpers of one module, as objects to write and to remember.
pub(crate) struct Wire {
    /// The module's name.
    pub(crate) module: Py<PyAny>,
    /// Its text.
    pub(crate) module_text: String,
    /// Name of each helper, and the object that stands for it in memos.
    helpers: Vec<(Py<PyAny>, Py<PyAny>)>,
}

impl Wire {
    /// Name of a helper.
    pub(crate) fn name(&self, helper: Helper) -> &Py<PyAny> {
        &self.helpers[helper as usize].0
    }

    /// The object that stands for a helper in memos.
    pub(crate) fn key(&self, helper: Helper) -> &Py<PyAny> {
        &self.helpers[helper as usize].1
    }
}

/// Modules that have been asked for; few, and kept for ever.
static WIRES: Mutex<Option<HashMap<String, &'static Wire>>> = Mutex::new(None);

/// The helpers of a module. Errors where its name cannot be that of a module.
pub(crate) fn wire(py: Python<'_>, module: &str) -> PyResult<&'static Wire> {
    {
        let wires = WIRES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wire) = wires.as_ref().and_then(|wires| wires.get(module)) {
            return Ok(wire);
        }
    }
    if module.is_empty() || module.len() > 200 || module.contains(['\n', '\r']) {
        return Err(PyValueError::new_err(
            "the namespace must be the name of a module",
        ));
    }
    let object = py.get_type::<PyAny>();
    let helpers = NAMES
        .iter()
        .map(|name| {
            Ok((
                PyString::intern(py, name).into_any().unbind(),
                object.call0()?.unbind(),
            ))
        })
        .collect::<PyResult<_>>()?;
    let made = Wire {
        // Not interned: neither is the name of a module inside of a package.
        module: PyString::new(py, module).into_any().unbind(),
        module_text: module.to_owned(),
        helpers,
    };
    let mut wires = WIRES.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(wires
        .get_or_insert_default()
        .entry(module.to_owned())
        .or_insert_with(|| Box::leak(Box::new(made))))
}
