//! Exceptions made anew from their arguments and attributes, without calling their class.
//!
//! As they are usually pickled, the class is called with `args`, which an `__init__` of its own may not accept, or may
//! put into words a second time. Where that is so ([`exception_init`]), or for all that have a constructor of their own if
//! that is asked for, the class's nearest base in C makes the exception and fills what it keeps in C, which is what the
//! constructor has had it do; names are those of builtins, so any receiver can load it.

use pyo3::exceptions::{PyBaseException, PyException};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyString, PyTuple, PyType};
use quickpickle_format::opcode::byte;

use crate::ffi::compat;
use crate::ffi::function_view::class_dict;
use crate::ffi::object::Anchor;
use crate::pickler::{Engine, Script};
use crate::python_types::library;

use super::misc::{getattr, write_call};
use super::{Cloud, exception_init};

/// Writes an exception whose class cannot simply be called; false, and nothing is written, for anything else, and where
/// its class says itself how to pickle it.
pub(super) fn save(engine: &mut Engine, obj: &Bound<'_, PyAny>, cloud: Cloud) -> PyResult<bool> {
    let py = obj.py();
    let class = obj.get_type();
    if engine.protocol() < 2
        || !compat::is_heap_type(&class)
        || !is_left_to_base(&class)?
        || library(py)?.dispatch_table.bind(py).contains(&class)?
    {
        return Ok(false);
    }
    let constructor = exception_init::of(&class)?;
    if constructor.is_in_c() {
        return Ok(false);
    }
    // As C code has it: the class, arguments and state.
    let reduced = obj.call_method0(intern!(py, "__reduce__"))?;
    let Ok(reduced) = reduced.cast_into_exact::<PyTuple>() else {
        return Ok(false);
    };
    let (Some(callee), Some(args)) = (reduced.as_slice().first(), reduced.as_slice().get(1)) else {
        return Ok(false);
    };
    let (true, Ok(args)) = (callee.is(&class), args.cast_exact::<PyTuple>()) else {
        return Ok(false);
    };
    let state = reduced
        .as_slice()
        .get(2)
        .filter(|state| !state.is_none())
        .cloned();
    let attributes = state.as_ref().and_then(|state| state.cast::<PyDict>().ok());
    if !cloud.keeps_exceptions && constructor.can_be_called(args, attributes)? {
        return Ok(false);
    }
    write(engine, obj, &class, args, state, &constructor, cloud)?;
    Ok(true)
}

/// Writes an exception as what its nearest base in C makes of its arguments.
fn write<'py>(
    engine: &mut Engine,
    obj: &Bound<'py, PyAny>,
    class: &Bound<'py, PyType>,
    args: &Bound<'py, PyTuple>,
    state: Option<Bound<'py, PyAny>>,
    constructor: &exception_init::Constructor<'py>,
    cloud: Cloud,
) -> PyResult<()> {
    let py = obj.py();
    let Some(base) = base_in_c(class)? else {
        return Ok(());
    };
    let attribute = |name: &Bound<'py, PyString>| vec![base.clone(), name.clone().into_any()];
    let getattr = || getattr(py);
    let size = intern!(py, "__basicsize__");
    let keeps_more = !base
        .getattr(size)?
        .eq(py.get_type::<PyException>().getattr(size)?)?;
    let new = match constructor.has_new() {
        true => Some((getattr()?, attribute(intern!(py, "__new__")))),
        false => None,
    };
    let init = match keeps_more {
        true => Some((getattr()?, attribute(intern!(py, "__init__")))),
        false => None,
    };
    let own = Anchor::of(obj);
    let mut script = Script::new(engine, cloud.wire, obj);
    let s = &mut script;
    s.begin_object();
    match new {
        Some((callee, names)) => {
            write_call(s, callee, names);
            write_arguments(s, class.as_any(), args);
            s.reduce();
        }
        None => {
            s.save_made(class.clone().into_any());
            s.save_made(args.clone().into_any());
            s.opcode(byte::NEWOBJ);
        }
    }
    s.remember(own);
    if let Some((callee, names)) = init {
        write_call(s, callee, names);
        write_arguments(s, obj, args);
        s.reduce();
        s.opcode(byte::POP);
    }
    if let Some(state) = state {
        s.save_made(state);
        s.opcode(byte::BUILD);
    }
    script.finish()
}

/// Writes a tuple of `first` and what is in `rest`.
fn write_arguments<'py>(
    s: &mut Script<'_, 'py>,
    first: &Bound<'py, PyAny>,
    rest: &Bound<'py, PyTuple>,
) {
    let len = 1 + rest.len();
    s.open_tuple(len);
    s.save(Anchor::of(first));
    for arg in rest.iter() {
        s.save_made(arg);
    }
    s.close_tuple(len);
}

/// The nearest of a class's bases that is not made by a class statement.
fn base_in_c<'py>(class: &Bound<'py, PyType>) -> PyResult<Option<Bound<'py, PyAny>>> {
    for base in class.mro().iter() {
        let base = base.cast_into::<PyType>()?;
        if !compat::is_heap_type(&base) {
            return Ok(base
                .is_subclass_of::<PyBaseException>()?
                .then(|| base.into_any()));
        }
    }
    Ok(None)
}

/// Whether the methods that say how to pickle an exception are those of C code.
fn is_left_to_base(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let py = class.py();
    for base in class.mro().iter() {
        let base = base.cast_into::<PyType>()?;
        if !compat::is_heap_type(&base) {
            return Ok(true);
        }
        let dict = class_dict(&base)?;
        for name in [
            intern!(py, "__reduce__"),
            intern!(py, "__reduce_ex__"),
            intern!(py, "__getnewargs__"),
            intern!(py, "__getnewargs_ex__"),
        ] {
            if dict.contains(name)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The function that a class statement defines under a name, along the bases of a class.
pub(super) fn functions<'py>(
    class: &Bound<'py, PyType>,
    name: &Bound<'py, PyString>,
) -> PyResult<Vec<Option<Bound<'py, PyFunction>>>> {
    let mut found = Vec::new();
    for base in class.mro().iter() {
        let base = base.cast_into::<PyType>()?;
        if compat::is_heap_type(&base)
            && let Some(value) = class_dict(&base)?.get_item(name)?
        {
            let inner = compat::optional_attribute(&value, intern!(class.py(), "__func__"))?;
            found.push(inner.unwrap_or(value).cast_into_exact::<PyFunction>().ok());
        }
    }
    Ok(found)
}
