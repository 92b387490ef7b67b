//! Functions: made from code and globals first, so that what they refer to can refer to them, then given their state.

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::cloud::known;
use crate::ffi::compat;
use crate::ffi::function::{self, Field};

/// What each of the known keys means in a function's state; None for what has been seen to already.
const FIELDS: [Option<Field>; 13] = [
    Some(Field::Name),
    Some(Field::QualifiedName),
    Some(Field::Annotations),
    Some(Field::KeywordDefaults),
    Some(Field::Defaults),
    Some(Field::Module),
    Some(Field::Doc),
    None,
    None,
    None,
    Some(Field::Other),
    Some(Field::Other),
    Some(Field::Other),
];

static BUILTINS: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// The dict that functions find builtins in.
pub(super) fn builtins(py: Python<'_>) -> PyResult<&Bound<'_, PyDict>> {
    Ok(BUILTINS
        .get_or_try_init(py, || {
            Ok::<_, PyErr>(py.import("builtins")?.dict().unbind())
        })?
        .bind(py))
}

/// A function of code and globals. Functions that share their globals are given the same dict by the payload.
pub(super) fn make<'py>(
    code: &Bound<'py, PyAny>,
    globals: &Bound<'py, PyAny>,
    name: &Bound<'py, PyAny>,
    defaults: &Bound<'py, PyAny>,
    closure: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = code.py();
    let name_of_builtins = intern!(py, "__builtins__");
    if let Ok(globals) = globals.cast_exact::<PyDict>() {
        globals.set_item(name_of_builtins, builtins(py)?)?;
        if let Some(made) = function::new(code, globals, name, defaults, closure)? {
            return Ok(made);
        }
    } else {
        globals.set_item(name_of_builtins, builtins(py)?)?;
    }
    // Something is not as it should be: the constructor says what.
    function::class(py).call1((code, globals, name, defaults, closure))
}

/// Gives a function its state: a pair of its attributes and of what has a place of its own.
pub(super) fn set_state<'py>(
    object: &Bound<'py, PyAny>,
    state: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let (attributes, own) = pair(state)?;
    if !attributes.is_truthy()? {
        // Left alone, so that no dict is made for it.
    } else {
        object
            .getattr(intern!(py, "__dict__"))?
            .call_method1(intern!(py, "update"), (attributes,))?;
    }
    let own = own.cast::<PyDict>()?;
    let required = |name: &Bound<'py, PyString>| {
        own.get_item(name)?
            .ok_or_else(|| PyKeyError::new_err(name.clone().unbind()))
    };
    let globals = required(intern!(py, "__globals__"))?;
    let closure = required(intern!(py, "__closure__"))?;
    // Imported by being rebuilt; nothing more is done with them.
    required(intern!(py, "_cloudpickle_submodules"))?;
    set_globals(object, &globals)?;
    if !closure.is_none() {
        set_closure(object, &closure)?;
    }
    for (name, value) in own.iter() {
        // A pickle's strings are these very objects; other strings of the same text may come from a caller.
        let field = match known::key(&name) {
            Some(at) => FIELDS[at],
            None => match name.cast::<PyString>() {
                Ok(text) => known::number(text.to_str().unwrap_or_default())
                    .map_or(Some(Field::Other), |at| FIELDS[at]),
                Err(_) => Some(Field::Other),
            },
        };
        let Some(field) = field else {
            continue;
        };
        if !function::set_field(object, field, &value) {
            compat::set_attribute(object, &name, &value)?;
        }
    }
    Ok(py.None().into_bound(py))
}

/// A state's two parts.
pub(super) fn pair<'py>(
    state: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    match state.cast::<PyTuple>() {
        Ok(pair) if pair.len() == 2 => Ok((pair.get_item(0)?, pair.get_item(1)?)),
        _ => Err(PyTypeError::new_err(
            "the state of a function or class must be a pair",
        )),
    }
}

fn set_globals<'py>(object: &Bound<'py, PyAny>, globals: &Bound<'py, PyAny>) -> PyResult<()> {
    let py = object.py();
    let of_function = match function::globals(object) {
        Some(found) => found,
        None => object.getattr(intern!(py, "__globals__"))?,
    };
    match (
        of_function.cast_exact::<PyDict>(),
        globals.cast_exact::<PyDict>(),
    ) {
        (Ok(of_function), Ok(globals)) => {
            if !globals.is_empty() {
                of_function.update(globals.as_mapping())?;
            }
        }
        _ => {
            of_function.call_method1(intern!(py, "update"), (globals,))?;
        }
    }
    of_function.set_item(intern!(py, "__builtins__"), builtins(py)?)
}

/// Gives the function the cells of its state. Cells that several functions have are one in the payload, and so stay
/// one; cloudpickle copies what is in them into cells of each function's own.
fn set_closure<'py>(object: &Bound<'py, PyAny>, closure: &Bound<'py, PyAny>) -> PyResult<()> {
    let py = object.py();
    if function::set_closure(object, closure)? {
        return Ok(());
    }
    let cells = object.getattr(intern!(py, "__closure__"))?;
    for (at, cell) in closure.try_iter()?.enumerate() {
        if let Some(value) = function::cell_contents(&cell?)? {
            function::set_cell(&cells.get_item(at)?, &value)?;
        }
    }
    Ok(())
}
