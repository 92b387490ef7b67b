//! Everything else that cloudpickle has a reducer for, and what it has none for and should.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyType};
use quickpickle_format::opcode::byte;

use crate::ffi::compat;
use crate::ffi::function_view;
use crate::ffi::object::Anchor;
use crate::pickler::{Engine, Script};
use crate::python_types::library;

use super::special::{self, Special};
use super::wire::Helper;
use super::{
    Cloud, code, context, dataclass, exception, file, functools, method, sets, typing, weak,
};

/// The name that `types` has for a builtin class.
pub(crate) fn types_name<'py>(class: &Bound<'py, PyType>) -> PyResult<Option<Bound<'py, PyAny>>> {
    static NAMES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let py = class.py();
    let names = NAMES.get_or_try_init(py, || {
        let names = PyDict::new(py);
        let of_types = py.import("types")?.dict();
        for (name, value) in of_types.iter() {
            if value.get_type().is(py.get_type::<PyType>()) {
                names.set_item(value.as_ptr() as usize, name)?;
            }
        }
        Ok::<_, PyErr>(names.unbind())
    })?;
    names.bind(py).get_item(class.as_ptr() as usize)
}

/// Writes a class by the name that `types` has for it.
pub(crate) fn save_types_name(
    engine: &mut Engine,
    class: &Bound<'_, PyType>,
    name: Bound<'_, PyAny>,
    cloud: Cloud,
) -> PyResult<()> {
    let mut script = Script::new(engine, cloud.wire, class.as_any());
    let name = script.hold(name);
    script.builtin_type(Anchor::of(class.as_any()), name);
    script.finish()
}

/// Writes an object that is neither a function nor a class; false, and nothing is written, where it needs no such care.
pub(crate) fn save<'py>(
    engine: &mut Engine,
    obj: &Bound<'py, PyAny>,
    cloud: Cloud,
) -> PyResult<bool> {
    let py = obj.py();
    if function_view::is_code(obj) {
        let parts = code::parts(obj)?;
        let mut script = Script::new(engine, cloud.wire, obj);
        code::write(&mut script, py, Anchor::of(obj), parts, cloud);
        script.finish()?;
        return Ok(true);
    }
    if function_view::is_cell(obj) {
        let content = function_view::cell_contents(obj);
        let mut script = Script::new(engine, cloud.wire, obj);
        script.begin_object();
        match content {
            None => {
                script.helper(Helper::MakeEmptyCell);
                script.empty_tuple();
            }
            Some(content) => {
                script.helper(Helper::MakeCell);
                script.open_tuple(1);
                script.save_made(content);
                script.close_tuple(1);
            }
        }
        script.reduce();
        script.remember(Anchor::of(obj));
        script.finish()?;
        return Ok(true);
    }
    if let Some(sorted) = engine.sorted_items(obj) {
        let sorted = sorted.bind(py).clone();
        let mut script = Script::new(engine, cloud.wire, obj);
        script.begin_object();
        script.opcode(byte::MARK);
        for item in sorted.iter() {
            script.save_made(item);
        }
        script.opcode(byte::FROZENSET);
        script.remember(Anchor::of(obj));
        script.finish()?;
        return Ok(true);
    }
    if cloud.is_deterministic && engine.protocol() >= 4 && sets::save(engine, obj, cloud)? {
        return Ok(true);
    }
    if compat::is_exception(obj) {
        return exception::save(engine, obj, cloud);
    }
    let Some(special) = special::special(&obj.get_type())? else {
        return Ok(false);
    };
    let own = |name: &Bound<'py, PyString>| obj.getattr(name);
    let list = || py.get_type::<PyList>().call1((obj,));
    let dict = || py.get_type::<PyDict>().call1((obj,));
    let yes = || pyo3::types::PyBool::new(py, true).to_owned().into_any();
    let call = |engine: &mut Engine, callee: Callee<'py>, args: Vec<Bound<'py, PyAny>>| {
        call(engine, obj, callee, args, cloud)
    };
    let class = || Callee::Object(obj.get_type().into_any());
    match special {
        Special::ClassOrStaticMethod => {
            let function = own(intern!(py, "__func__"))?;
            call(engine, class(), vec![function])?;
        }
        Special::Property => {
            let names = [
                intern!(py, "fget"),
                intern!(py, "fset"),
                intern!(py, "fdel"),
                intern!(py, "__doc__"),
            ];
            let args = names.into_iter().map(own).collect::<PyResult<_>>()?;
            let property = py.import("builtins")?.getattr(intern!(py, "property"))?;
            call(engine, Callee::Object(property), args)?;
        }
        Special::MemoryView => {
            let bytes = obj.call_method0(intern!(py, "tobytes"))?;
            let callee = py.get_type::<pyo3::types::PyBytes>().into_any();
            call(engine, Callee::Object(callee), vec![bytes])?;
        }
        Special::GetSetDescriptor => {
            let args = vec![
                own(intern!(py, "__objclass__"))?,
                own(intern!(py, "__name__"))?,
            ];
            call(engine, getattr(py)?, args)?;
        }
        Special::MappingProxy => call(engine, class(), vec![dict()?])?,
        Special::Module => save_module(engine, obj, cloud)?,
        Special::Method => return method::save(engine, obj, cloud),
        Special::Logger => {
            let args = vec![own(intern!(py, "name"))?];
            call(engine, get_logger(py)?, args)?;
        }
        Special::RootLogger => call(engine, get_logger(py)?, Vec::new())?,
        Special::WeakSet => call(engine, class(), vec![list()?])?,
        Special::DictKeys => {
            call(engine, Callee::Helper(Helper::MakeDictKeys), vec![list()?])?;
        }
        Special::DictValues => {
            call(
                engine,
                Callee::Helper(Helper::MakeDictValues),
                vec![list()?],
            )?;
        }
        Special::DictItems => {
            call(engine, Callee::Helper(Helper::MakeDictItems), vec![dict()?])?;
        }
        Special::OrderedKeys => {
            let args = vec![list()?, yes()];
            call(engine, Callee::Helper(Helper::MakeDictKeys), args)?;
        }
        Special::OrderedValues => {
            let args = vec![list()?, yes()];
            call(engine, Callee::Helper(Helper::MakeDictValues), args)?;
        }
        Special::OrderedItems => {
            let args = vec![dict()?, yes()];
            call(engine, Callee::Helper(Helper::MakeDictItems), args)?;
        }
        Special::FieldSentinel => {
            let args = vec![own(intern!(py, "name"))?];
            call(engine, Callee::Helper(Helper::FieldSentinel), args)?;
        }
        Special::File => file::save(engine, obj, cloud)?,
        Special::TypeVar => typing::save_typevar(engine, obj, cloud)?,
        Special::ParamSpec | Special::TypeVarTuple => {
            return typing::save_parameter(engine, obj, special, cloud);
        }
        Special::NewType => return typing::save_new_type(engine, obj, cloud),
        Special::TypeAlias => return typing::save_alias(engine, obj, cloud),
        Special::DataclassSentinel => return dataclass::save_sentinel(engine, obj),
        Special::CachedFunction => return functools::save_cached(engine, obj, cloud),
        Special::CachedProperty => return functools::save_cached_property(engine, obj, cloud),
        Special::ContextVar => return context::save(engine, obj, cloud),
        Special::WeakRef => weak::save_ref(engine, obj, cloud)?,
        Special::WeakDict => weak::save_dict(engine, obj, cloud)?,
        Special::WeakMethod => return weak::save_method(engine, obj, cloud),
    }
    Ok(true)
}

/// What is called to make an object anew.
pub(crate) enum Callee<'py> {
    /// A helper of cloudpickle.
    Helper(Helper),
    /// Anything that can be pickled.
    Object(Bound<'py, PyAny>),
}

/// `builtins.getattr`.
pub(crate) fn getattr(py: Python<'_>) -> PyResult<Callee<'_>> {
    let getattr = library(py)?.getattr.bind(py).clone();
    Ok(Callee::Object(getattr))
}

fn get_logger(py: Python<'_>) -> PyResult<Callee<'_>> {
    let function = py.import("logging")?.getattr(intern!(py, "getLogger"))?;
    Ok(Callee::Object(function))
}

/// Writes `obj` as a call.
pub(crate) fn call<'py>(
    engine: &mut Engine,
    obj: &Bound<'py, PyAny>,
    callee: Callee<'py>,
    args: Vec<Bound<'py, PyAny>>,
    cloud: Cloud,
) -> PyResult<()> {
    let mut script = Script::new(engine, cloud.wire, obj);
    script.begin_object();
    write_call(&mut script, callee, args);
    script.remember(Anchor::of(obj));
    script.finish()
}

/// Writes a call, without remembering what it gives.
pub(crate) fn write_call<'py>(
    script: &mut Script<'_, 'py>,
    callee: Callee<'py>,
    args: Vec<Bound<'py, PyAny>>,
) {
    match callee {
        Callee::Helper(helper) => script.helper(helper),
        Callee::Object(object) => script.save_made(object),
    }
    let len = args.len();
    script.open_tuple(len);
    for arg in args {
        script.save_made(arg);
    }
    script.close_tuple(len);
    script.reduce();
}

fn save_module(engine: &mut Engine, module: &Bound<'_, PyAny>, cloud: Cloud) -> PyResult<()> {
    let py = module.py();
    let name = module.getattr(intern!(py, "__name__"))?;
    let state = if super::by_value::is_module_by_reference(module)? {
        None
    } else {
        let state = module
            .getattr(intern!(py, "__dict__"))?
            .cast_into::<PyDict>()?
            .copy()?;
        if state.contains(intern!(py, "__builtins__"))? {
            state.del_item(intern!(py, "__builtins__"))?;
        }
        Some(state)
    };
    let mut script = Script::new(engine, cloud.wire, module);
    script.begin_object();
    let is_dynamic = state.is_some();
    script.helper(if is_dynamic {
        Helper::DynamicSubimport
    } else {
        Helper::Subimport
    });
    script.open_tuple(1 + usize::from(is_dynamic));
    script.save_made(name);
    if let Some(state) = state {
        script.save_made(state.into_any());
    }
    script.close_tuple(1 + usize::from(is_dynamic));
    script.reduce();
    script.remember(Anchor::of(module));
    script.finish()
}
