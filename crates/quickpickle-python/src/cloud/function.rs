//! Functions by value: code, the globals they use, and all else that is set on a function.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyList, PyModule, PyString, PyTuple, PyType};
use quickpickle_format::opcode::byte;

use crate::ffi::compat;
use crate::ffi::function_view::{self, Annotations};
use crate::ffi::object::{Anchor, quiet};
use crate::ffi::types::{Kind, classify};
use crate::pickler::{BaseGlobals, Engine, Head, Script, Stage};

use super::wire::Helper;
use super::{Cloud, by_value, code, globals, misc};

/// Writes a function by value; false, and nothing is written, where it is pickled by reference.
pub(crate) fn save(
    engine: &mut Engine,
    function: &Bound<'_, PyFunction>,
    cloud: Cloud,
) -> PyResult<bool> {
    let py = function.py();
    if !is_surely_dynamic(function)
        && let Some((module, _, found)) = by_value::find(function.as_any(), None)?
        && by_value::may_refer_to(&module)?
    {
        if found.is(function) {
            return Ok(false);
        }
        // The function of a class method: under its name there is a method.
        if compat::method_function(&found).is_some_and(|of_method| of_method.is(function))
            && is_of_importable_class(&found)?
        {
            let name = intern!(py, "__func__").clone().into_any();
            misc::call(
                engine,
                function.as_any(),
                misc::getattr(py)?,
                vec![found, name],
                cloud,
            )?;
            return Ok(true);
        }
    }
    // All that may run other code comes first.
    let code = function_view::view(function).code.pin(py);
    let parts = code::parts(&code)?;
    let all_globals = function_view::view(function)
        .globals
        .pin(py)
        .cast_into::<PyDict>()?;
    let mut used = globals::used(&all_globals, parts)?;
    let annotations = match function_view::view(function).annotations {
        Annotations::None => None,
        Annotations::Dict(dict) => Some(dict.pin(py)),
        Annotations::Compact => Some(function.getattr(intern!(py, "__annotations__"))?),
    };
    if let Some(annotations) = &annotations
        && let Ok(annotations) = annotations.cast::<PyDict>()
    {
        globals::add_annotated(&mut used, &all_globals, annotations)?;
    }
    let mut modules: Vec<_> = used
        .iter()
        .filter(|(_, value)| value.is_instance_of::<PyModule>())
        .map(|(_, value)| value.clone())
        .collect();
    let closure = function_view::view(function)
        .closure
        .map(|closure| closure.pin(py));
    let closure = closure
        .as_ref()
        .and_then(|closure| closure.cast::<PyTuple>().ok());
    if let Some(closure) = closure {
        globals::modules_in_cells(closure, &mut modules);
    }
    let submodules = if modules.is_empty() {
        Vec::new()
    } else {
        globals::submodules(py, &modules, parts)?
    };
    let submodules = if submodules.is_empty() {
        None
    } else {
        Some(PyList::new(py, submodules)?.into_any())
    };
    let origin = if engine.knows_globals(all_globals.as_any()) {
        [const { None }; 4]
    } else {
        globals::origin(&all_globals)?
    };
    let attributes = match function_view::view(function).dict {
        Some(dict) => dict.pin(py).cast::<PyDict>()?.iter().collect(),
        None => Vec::new(),
    };
    let origin_names = globals::origin_names(py);

    // From here on nothing runs but the script.
    let view = function_view::view(function);
    let own = Anchor::of(function.as_any());
    let asks_hooks = engine.asks_hooks();
    let no_annotations = annotations.as_ref().is_none_or(|annotations| {
        annotations
            .cast_exact::<PyDict>()
            .is_ok_and(|annotations| annotations.is_empty())
    });
    let has_plain_fields = no_annotations && view.kwdefaults.is_none() && view.defaults.is_none();
    let ends = closure.is_none() && submodules.is_none();
    let stage = engine.write_head(
        py,
        &Head {
            wire: cloud.wire,
            function: own,
            code: Anchor::of(&code),
            parts,
            file: (!cloud.keeps_filenames).then(|| Anchor::of(code::dynamic_filename(py).as_any())),
            code_type: (
                function_view::code_type(py),
                Anchor::of(code::code_type_name(py).as_any()),
            ),
            globals: all_globals.as_any(),
            origin: &origin,
            origin_keys: origin_names.map(|name| Anchor::of(name.as_any())),
            cells: closure.map(|_| parts.free_count),
            name: view.name,
            qualname: view.qualname,
            annotations: annotations.as_ref().map(Anchor::of),
            module: view.module,
            doc: view.doc,
            stage: match (attributes.is_empty(), has_plain_fields, ends) {
                (false, ..) => Stage::Made,
                (_, false, _) => Stage::Named,
                (.., false) => Stage::Documented,
                _ => Stage::Closed,
            },
        },
    );
    let mut script = Script::new(engine, cloud.wire, function.as_any());
    let s = &mut script;
    if stage < Stage::Made {
        s.begin_object();
        s.helper(Helper::MakeFunction);
        s.open_tuple(5);
        let code_anchor = s.hold(code.clone());
        if asks_hooks || s.is_remembered(code_anchor) {
            s.save(code_anchor);
        } else {
            code::write(s, py, code_anchor, parts, cloud);
        }
        let items = origin_names.into_iter().zip(origin);
        s.base_globals(BaseGlobals {
            of: Some(all_globals.into_any().unbind()),
            items: items
                .filter_map(|(name, value)| {
                    Some((name.clone().into_any().unbind(), value?.unbind()))
                })
                .collect(),
        });
        s.none();
        s.none();
        if closure.is_some() {
            s.open_tuple(parts.free_count);
            for _ in 0..parts.free_count {
                s.boundary();
                s.helper(Helper::MakeEmptyCell);
                s.empty_tuple();
                s.reduce();
                s.number();
            }
            s.close_tuple(parts.free_count);
        } else {
            s.none();
        }
        s.close_tuple(5);
        s.reduce();
        s.remember(own);
        s.helper(Helper::FunctionSetstate);
        s.save(own);
    }
    let key = |s: &mut Script<'_, '_>, key: &Bound<'_, PyString>| s.name(key);
    let count = 10 + usize::from(view.type_params.is_some());
    let mut state = if stage < Stage::Named {
        s.open_tuple(2);
        let mut state = s.open_dict(attributes.len());
        for (name, value) in attributes {
            let name = s.hold(name);
            s.copy(name);
            s.save_made(value);
            s.end_item(&mut state);
        }
        s.close_dict(state);
        let mut state = s.open_dict(count);
        key(s, intern!(py, "__name__"));
        s.copy(view.name);
        s.end_item(&mut state);
        key(s, intern!(py, "__qualname__"));
        s.copy(view.qualname);
        s.end_item(&mut state);
        state
    } else {
        s.opened_dict(count)
    };
    if stage < Stage::Documented {
        key(s, intern!(py, "__annotations__"));
        match annotations {
            Some(annotations) => s.save_made(annotations),
            None => {
                let empty = s.open_dict(0);
                s.close_dict(empty);
            }
        }
        s.end_item(&mut state);
        key(s, intern!(py, "__kwdefaults__"));
        s.save_or_none(view.kwdefaults);
        s.end_item(&mut state);
        key(s, intern!(py, "__defaults__"));
        s.save_or_none(view.defaults);
        s.end_item(&mut state);
        key(s, intern!(py, "__module__"));
        s.save_or_none(view.module);
        s.end_item(&mut state);
        key(s, intern!(py, "__doc__"));
        s.save_or_none(view.doc);
        s.end_item(&mut state);
    }
    let mut inner = if stage < Stage::Closed {
        key(s, intern!(py, "__closure__"));
        match closure {
            Some(closure) => save_closure(s, closure),
            None => s.none(),
        }
        s.end_item(&mut state);
        key(s, intern!(py, "_cloudpickle_submodules"));
        match submodules {
            Some(list) => s.save_made(list),
            None => {
                s.boundary();
                s.empty_list();
            }
        }
        s.end_item(&mut state);
        key(s, intern!(py, "__globals__"));
        s.open_dict(used.len())
    } else {
        s.open_items(used.len())
    };
    for (name, value) in used {
        s.save_made(name);
        s.save_made(value);
        s.end_item(&mut inner);
    }
    s.close_dict(inner);
    s.end_item(&mut state);
    if let Some(type_params) = view.type_params {
        // Set like any other attribute by whoever fills the function.
        key(s, intern!(py, "__type_params__"));
        s.save(type_params);
        s.end_item(&mut state);
    }
    s.close_dict(state);
    s.close_tuple(2);
    s.opcode(byte::TUPLE2);
    s.reduce();
    s.opcode(byte::POP);
    script.finish()?;
    Ok(true)
}

/// The tuple of a function's cells: as it is where it has been written, else item by item.
fn save_closure(script: &mut Script<'_, '_>, closure: &Bound<'_, PyTuple>) {
    let own = Anchor::of(closure.as_any());
    if script.is_interrupted() || script.is_remembered(own) {
        return script.save(own);
    }
    script.begin_object();
    script.open_tuple(closure.len());
    for cell in closure.iter_borrowed() {
        script.cell(Anchor::of(&cell));
    }
    script.end_tuple_object(own, closure.len());
}

/// Whether a function cannot be found in any module by the name it has.
fn is_surely_dynamic(function: &Bound<'_, PyFunction>) -> bool {
    let view = function_view::view(function);
    quiet(function.py(), |q| {
        let text = |anchor: Anchor| match classify(anchor.obj(q)) {
            Kind::Str(text) => text.utf8(q).unwrap_or_default(),
            _ => b"",
        };
        view.module
            .is_some_and(|module| text(module) == b"__main__")
            || is_local(text(view.qualname))
    })
}

/// Whether a method is bound to a class that is pickled by reference. What it is bound to is pickled with it, so it must
/// not be something that has this function in it.
fn is_of_importable_class(method: &Bound<'_, PyAny>) -> PyResult<bool> {
    let own = method.getattr(intern!(method.py(), "__self__"))?;
    Ok(own.is_instance_of::<PyType>() && by_value::is_by_reference(&own)?)
}

/// Whether a qualified name is that of something inside of a function.
fn is_local(name: &[u8]) -> bool {
    const MARK: &[u8] = b"<locals>";
    let last = name.len().saturating_sub(MARK.len() - 1);
    (0..last).any(|at| name[at] == MARK[0] && name[at..].starts_with(MARK))
}
