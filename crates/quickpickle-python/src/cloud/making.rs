//! How a class can be made where its own metaclass or bases would refuse to make the empty one that a skeleton is.
//!
//! A skeleton has the class's name and bases and next to nothing in its body. A metaclass that looks for something there,
//! or a base whose `__init_subclass__` wants an argument, fails on it. What they did was done when the class was defined,
//! and shows in its dict, so they need not be run again: the class is made by the next metaclass that does not look, and
//! given its bases afterwards. Both need nothing that receivers do not have.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyString, PyTuple, PyType};

use crate::ffi::compat;
use crate::ffi::function_view::{self, class_dict};

use super::code;

/// How to make a class.
#[derive(Default)]
pub(super) struct Making<'py> {
    /// What makes it in the place of its metaclass.
    pub(super) constructor: Option<Bound<'py, PyAny>>,
    /// The class to derive from at first, in the place of its bases, which it is given afterwards.
    pub(super) stand_in: Option<Bound<'py, PyAny>>,
    /// `type.__setattr__`, where its metaclass's own must be passed by.
    pub(super) setattr: Option<Bound<'py, PyAny>>,
}

/// How to make a class.
pub(super) fn of<'py>(class: &Bound<'py, PyType>) -> PyResult<Making<'py>> {
    let py = class.py();
    let metaclass = class.get_type();
    let mut making = Making::default();
    if !metaclass.is(py.get_type::<PyType>()) {
        making.constructor = constructor(&metaclass)?;
        if let Some(setattr) = in_mro(&metaclass, "__setattr__")?
            && setattr.is_instance_of::<PyFunction>()
        {
            making.setattr = Some(plain_setattr(py)?);
        }
    }
    if wants_arguments(class)? {
        making.stand_in = stand_in(class, making.constructor.as_ref())?;
        if making.stand_in.is_none()
            && let Some(arguments) = guessed_arguments(class)?
        {
            let constructor = match making.constructor.take() {
                Some(constructor) => constructor,
                None => metaclass.into_any(),
            };
            let partial = py.import("functools")?.getattr(intern!(py, "partial"))?;
            making.constructor = Some(partial.call((constructor,), Some(&arguments))?);
        }
    }
    Ok(making)
}

/// `type.__setattr__`
pub(super) fn plain_setattr(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.get_type::<PyType>().getattr(intern!(py, "__setattr__"))
}

/// What is found under a name along the bases of a class, without asking its metaclass.
fn in_mro<'py>(class: &Bound<'py, PyType>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    for base in class.mro().iter() {
        if let Ok(base) = base.cast::<PyType>()
            && let Some(found) = class_dict(base)?.get_item(name)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// What makes a class in the place of a metaclass that might fail; None where the metaclass itself can.
fn constructor<'py>(metaclass: &Bound<'py, PyType>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = metaclass.py();
    let mut first_safe = None;
    let mro = metaclass.mro();
    for base in mro.iter().collect::<Vec<_>>().into_iter().rev() {
        let Ok(base) = base.cast_into::<PyType>() else {
            continue;
        };
        let is_safe = is_of_library(&base)?
            || class_dict(&base).and_then(|dict| {
                for name in ["__new__", "__init__", "__prepare__"] {
                    if let Some(found) = dict.get_item(name)?
                        && !is_harmless(&found, 4)?
                    {
                        return Ok(false);
                    }
                }
                Ok(true)
            })?;
        if !is_safe {
            break;
        }
        first_safe = Some(base);
    }
    let Some(safe) = first_safe.filter(|safe| !safe.is(metaclass)) else {
        return Ok(None);
    };
    let new = safe.getattr(intern!(py, "__new__"))?;
    let partial = py.import("functools")?.getattr(intern!(py, "partial"))?;
    partial.call1((new, metaclass)).map(Some)
}

/// The function below decorators.
fn function_of<'py>(found: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyFunction>>> {
    if let Ok(function) = found.cast_exact::<PyFunction>() {
        return Ok(Some(function.clone()));
    }
    let inner = crate::ffi::compat::optional_attribute(found, intern!(found.py(), "__func__"))?;
    Ok(inner.and_then(|inner| inner.cast_into_exact::<PyFunction>().ok()))
}

/// Whether a function can be called with this many arguments and does nothing that could fail on an empty body.
fn is_harmless(found: &Bound<'_, PyAny>, count: usize) -> PyResult<bool> {
    let Some(function) = function_of(found)? else {
        // Written in C.
        return Ok(true);
    };
    if !takes(&function, count)? {
        return Ok(false);
    }
    let py = found.py();
    let view = function_view::view(&function);
    let globals = view.globals.pin(py).cast_into::<PyDict>()?;
    let code = view.code.pin(py);
    code::is_harmless(&code, &globals)
}

/// Whether a function can be called with this many arguments by position and none by keyword.
fn takes(function: &Bound<'_, PyFunction>, count: usize) -> PyResult<bool> {
    let py = function.py();
    let code = function.getattr(intern!(py, "__code__"))?;
    let int = |name: &str| code.getattr(name)?.extract::<usize>();
    let (positional, keyword_only, flags) = (
        int("co_argcount")?,
        int("co_kwonlyargcount")?,
        int("co_flags")?,
    );
    let length = |name: &str| -> PyResult<usize> {
        let found = function.getattr(name)?;
        if found.is_none() { Ok(0) } else { found.len() }
    };
    let has_rest = flags & 4 != 0;
    Ok(
        positional - length("__defaults__")?.min(positional) <= count
            && (positional >= count || has_rest)
            && length("__kwdefaults__")? >= keyword_only,
    )
}

/// Whether some base's `__init_subclass__` cannot be called without arguments.
fn wants_arguments(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let py = class.py();
    for base in class.mro().iter().skip(1) {
        let Ok(base) = base.cast::<PyType>() else {
            continue;
        };
        if compat::is_heap_type(base)
            && let Some(found) = class_dict(base)?.get_item(intern!(py, "__init_subclass__"))?
            && let Some(function) = function_of(&found)?
            && (!takes(&function, 1)? || code::raises(&function.getattr("__code__")?)?)
            && !is_of_library(base)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What to call `__init_subclass__` with where it has to be called: the class's attributes of the names that it wants,
/// which is where such arguments are usually kept. None where it has no such.
fn guessed_arguments<'py>(class: &Bound<'py, PyType>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let py = class.py();
    let arguments = PyDict::new(py);
    for base in class.mro().iter().skip(1) {
        let Ok(base) = base.cast_into::<PyType>() else {
            continue;
        };
        let Some(found) = class_dict(&base)?.get_item(intern!(py, "__init_subclass__"))? else {
            continue;
        };
        let Some(function) = function_of(&found)? else {
            continue;
        };
        let code = function.getattr(intern!(py, "__code__"))?;
        let (positional, keyword_only) = (
            code.getattr(intern!(py, "co_argcount"))?
                .extract::<usize>()?,
            code.getattr(intern!(py, "co_kwonlyargcount"))?
                .extract::<usize>()?,
        );
        let names = code
            .getattr(intern!(py, "co_varnames"))?
            .cast_into::<PyTuple>()?;
        for index in 1..positional + keyword_only {
            let name = names.get_item(index)?.cast_into::<PyString>()?;
            if let Some(value) = compat::optional_attribute(class.as_any(), &name)? {
                arguments.set_item(name, value)?;
            }
        }
    }
    Ok((!arguments.is_empty()).then_some(arguments))
}

fn is_of_library(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let module = class.module()?;
    Ok(matches!(
        module.to_str().unwrap_or_default(),
        "typing" | "abc" | "enum" | "typing_extensions"
    ))
}

/// A class from which one can be derived without any `__init_subclass__`, and whose place the real bases can take; None
/// where there is no such.
fn stand_in<'py>(
    class: &Bound<'py, PyType>,
    constructor: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = class.py();
    let of_types = py.get_type::<PyType>();
    let bases = class
        .getattr(intern!(py, "__bases__"))?
        .cast_into::<PyTuple>()?;
    // The nearest base that is free of it, with all that it derives from.
    let mut free = None;
    for base in class.mro().iter().skip(1) {
        let Ok(base) = base.cast_into::<PyType>() else {
            continue;
        };
        if !wants_arguments(&base)?
            && !class_dict(&base)?
                .get_item("__init_subclass__")?
                .is_some_and(|found| function_of(&found).is_ok_and(|function| function.is_some()))
        {
            free = Some(base);
            break;
        }
    }
    let Some(free) = free else {
        return Ok(None);
    };
    let name = class.getattr(intern!(py, "__name__"))?;
    let arguments = (&name, (free,), PyDict::new(py));
    let made = of_types.as_any().call1(arguments);
    // Tried on a class that is thrown away.
    let tried = made.and_then(|stand_in| {
        let constructor = match constructor {
            Some(constructor) => constructor.clone(),
            None => class.get_type().into_any(),
        };
        let sample = constructor.call1((&name, (&stand_in,), PyDict::new(py)))?;
        let setattr = plain_setattr(py)?;
        setattr.call1((&sample, intern!(py, "__bases__"), &bases))?;
        setattr.call1((&sample, intern!(py, "__bases__"), (&stand_in,)))?;
        Ok(stand_in)
    });
    match tried {
        Ok(stand_in) => Ok(Some(stand_in)),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}
