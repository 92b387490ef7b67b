//! Objects that need care, told by their exact type.
//!
//! Types of C modules that are always there are looked up once. The others can only be met once their module has been
//! imported, so they are recognised by their name when one is met, and remembered.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::ffi::compat;

/// What kind of care an object needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Special {
    CachedFunction,
    CachedProperty,
    ClassOrStaticMethod,
    ContextVar,
    DataclassSentinel,
    DictItems,
    DictKeys,
    DictValues,
    FieldSentinel,
    File,
    GetSetDescriptor,
    Logger,
    MappingProxy,
    MemoryView,
    Method,
    Module,
    NewType,
    OrderedItems,
    OrderedKeys,
    OrderedValues,
    ParamSpec,
    Property,
    RootLogger,
    TypeAlias,
    TypeVar,
    TypeVarTuple,
    WeakDict,
    WeakMethod,
    WeakRef,
    WeakSet,
}

use Special::*;

/// Types that are looked up: an expression for each.
const LOOKED_UP: &[(&str, Special)] = &[
    ("classmethod", ClassOrStaticMethod),
    ("staticmethod", ClassOrStaticMethod),
    ("property", Property),
    ("memoryview", MemoryView),
    ("type(type.__dict__['__dict__'])", GetSetDescriptor),
    ("type(type.__dict__)", MappingProxy),
    ("type(__import__('sys'))", Module),
    ("type(type('_', (), {'_': lambda self: 0})()._)", Method),
    ("type({}.keys())", DictKeys),
    ("type({}.values())", DictValues),
    ("type({}.items())", DictItems),
    (
        "type(__import__('_collections').OrderedDict().keys())",
        OrderedKeys,
    ),
    (
        "type(__import__('_collections').OrderedDict().values())",
        OrderedValues,
    ),
    (
        "type(__import__('_collections').OrderedDict().items())",
        OrderedItems,
    ),
    ("__import__('_weakref').ref", WeakRef),
    (
        "__import__('_functools')._lru_cache_wrapper",
        CachedFunction,
    ),
    ("__import__('_contextvars').ContextVar", ContextVar),
    ("__import__('_io').TextIOWrapper", File),
];

/// Types that are recognised by module and name.
const NAMED: &[(&str, &str, Special)] = &[
    ("logging", "Logger", Logger),
    ("logging", "RootLogger", RootLogger),
    ("_weakrefset", "WeakSet", WeakSet),
    ("weakref", "WeakKeyDictionary", WeakDict),
    ("weakref", "WeakValueDictionary", WeakDict),
    ("weakref", "WeakMethod", WeakMethod),
    ("dataclasses", "_FIELD_BASE", FieldSentinel),
    ("dataclasses", "_MISSING_TYPE", DataclassSentinel),
    ("dataclasses", "_KW_ONLY_TYPE", DataclassSentinel),
    (
        "dataclasses",
        "_HAS_DEFAULT_FACTORY_CLASS",
        DataclassSentinel,
    ),
    ("functools", "cached_property", CachedProperty),
    ("typing", "NewType", NewType),
    ("typing", "TypeVar", TypeVar),
    ("typing", "ParamSpec", ParamSpec),
    ("typing", "TypeVarTuple", TypeVarTuple),
    ("typing", "TypeAliasType", TypeAlias),
    ("abc", "abstractclassmethod", ClassOrStaticMethod),
    ("abc", "abstractstaticmethod", ClassOrStaticMethod),
    ("abc", "abstractproperty", Property),
];

/// By the type's address, in its order. Types found by name are held for ever.
static KNOWN: PyOnceLock<Vec<(usize, Special)>> = PyOnceLock::new();
static MET: Mutex<Vec<(usize, Special)>> = Mutex::new(Vec::new());

/// What care an object of that type needs, if any.
pub(crate) fn special(class: &Bound<'_, PyType>) -> PyResult<Option<Special>> {
    let py = class.py();
    let known = KNOWN.get_or_try_init(py, || find(py))?;
    let address = class.as_ptr() as usize;
    if let Ok(at) = known.binary_search_by_key(&address, |&(address, _)| address) {
        return Ok(Some(known[at].1));
    }
    let name = compat::last_name(class);
    if !NAMED.iter().any(|&(_, known, _)| known == name) {
        return Ok(None);
    }
    {
        let met = MET.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&(_, special)) = met.iter().find(|&&(met, _)| met == address) {
            return Ok(Some(special));
        }
    }
    let module = class.module()?;
    let module = module.to_str().unwrap_or_default();
    let found = NAMED
        .iter()
        .find(|&&(of, known, _)| known == name && of == module);
    let Some(&(_, _, special)) = found else {
        return Ok(None);
    };
    // A class that only calls itself so is none of these.
    let real = by_name(class, module, &name)?;
    if !real {
        return Ok(None);
    }
    std::mem::forget(class.clone());
    MET.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push((address, special));
    Ok(Some(special))
}

fn by_name(class: &Bound<'_, PyType>, module: &str, name: &str) -> PyResult<bool> {
    let py = class.py();
    let module = pyo3::types::PyString::new(py, module);
    let Some(module) = super::by_value::loaded(module.as_any())? else {
        return Ok(false);
    };
    let found = compat::optional_attribute(&module, &pyo3::types::PyString::new(py, name))?;
    Ok(found.is_some_and(|found| found.is(class)))
}

fn find(py: Python<'_>) -> PyResult<Vec<(usize, Special)>> {
    let builtins = py.import("builtins")?;
    let eval = builtins.getattr("eval")?;
    let mut known = LOOKED_UP
        .iter()
        .map(|&(expression, special)| {
            let class = eval.call1((expression, builtins.dict()))?;
            Ok((class.into_ptr() as usize, special))
        })
        .collect::<PyResult<Vec<_>>>()?;
    known.sort_by_key(|&(address, _)| address);
    Ok(known)
}
