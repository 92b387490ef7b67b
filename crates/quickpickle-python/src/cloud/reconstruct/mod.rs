//! What rebuilds functions, classes and what belongs to them: the functions that payloads call by cloudpickle's names.
//!
//! The unpickler looks these names up here and imports nothing for them ([`find`]); it calls what it finds directly
//! ([`of`]). To Python each is a callable of the same name and parameters. They build what cloudpickle's functions build;
//! where that loses something, [`class`] and [`function`] say what is done instead.

mod class;
mod code;
mod function;
mod misc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};

use code::make_code;

use super::known;
use super::tracker;
use super::wire_names::{NAMES, Name, is_cloudpickle};
use crate::ffi::build;
use crate::ffi::function::{is_code_class, new_cell};

pub(crate) use class::reset_classes;
pub(crate) use misc::{find_earlier, of_other_version};

/// A function that rebuilds something. Payloads name it; the unpickler calls it.
#[pyclass(
    module = "cloudpickle.cloudpickle",
    name = "Reconstructor",
    frozen,
    immutable_type
)]
pub(crate) struct Reconstructor {
    name: Name,
}

static ALL: PyOnceLock<[Py<Reconstructor>; NAMES.len()]> = PyOnceLock::new();

fn all(py: Python<'_>) -> PyResult<&'static [Py<Reconstructor>; NAMES.len()]> {
    ALL.get_or_try_init(py, || {
        let mut made = Vec::with_capacity(NAMES.len());
        for (name, ..) in NAMES {
            made.push(Py::new(py, Reconstructor { name })?);
        }
        made.try_into()
            .map_err(|_| PyTypeError::new_err("as many objects as names"))
    })
}

/// Adds all of them to the module, each under its name.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for ((_, name, ..), object) in NAMES.iter().zip(all(module.py())?) {
        module.add(*name, object)?;
    }
    Ok(())
}

/// What a global of a payload means, if it is one of cloudpickle's that is built here.
#[inline]
pub(crate) fn find<'py>(
    module: &Bound<'py, PyString>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = module.py();
    if let Some(at) = known::helper(module, name) {
        return Ok(Some(all(py)?[at].bind(py).clone().into_any()));
    }
    let Ok(text) = module.to_str() else {
        return Ok(None);
    };
    if !is_cloudpickle(text.as_bytes()) {
        return Ok(None);
    }
    let Ok(name) = name.to_str() else {
        return Ok(None);
    };
    let Some(at) = NAMES.iter().position(|(_, known, ..)| *known == name) else {
        return Ok(None);
    };
    Ok(Some(all(py)?[at].bind(py).clone().into_any()))
}

/// `callable(*args)`, as REDUCE does it: what rebuilds functions and classes is run directly, and code is looked at first.
#[inline(always)]
pub(crate) fn call<'py>(
    callable: &Bound<'py, PyAny>,
    args: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(own) = of(callable)
        && let Ok(args) = args.cast_exact::<PyTuple>()
    {
        return own.call(callable.py(), args);
    }
    if is_code_class(callable) {
        return make_code(args);
    }
    build::call(callable, args)
}

/// The object as one of these functions.
#[inline(always)]
fn of<'a, 'py>(callable: &'a Bound<'py, PyAny>) -> Option<&'a Reconstructor> {
    callable
        .cast_exact::<Reconstructor>()
        .ok()
        .map(|found| found.get())
}

/// The name under which payloads call the object, if it is one of these functions.
#[allow(dead_code, reason = "for dumping them")]
pub(crate) fn wire_name(callable: &Bound<'_, PyAny>) -> Option<&'static str> {
    of(callable).map(Reconstructor::text)
}

impl Reconstructor {
    fn text(&self) -> &'static str {
        NAMES[self.name as usize].1
    }

    /// Calls the function with the arguments of a payload.
    pub(crate) fn call<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (_, text, required, parameters) = NAMES[self.name as usize];
        let args = args.as_slice();
        if args.len() < required || args.len() > parameters.len() {
            return Err(wrong_count(text, required, parameters.len(), args.len()));
        }
        match (self.name, args) {
            (Name::MakeFunction, [code, globals, name, defaults, closure]) => {
                function::make(code, globals, name, defaults, closure)
            }
            (Name::FunctionSetstate, [function, state]) => function::set_state(function, state),
            (Name::MakeCell, [value]) => new_cell(py, Some(value)),
            (Name::MakeCell | Name::MakeEmptyCell, []) => new_cell(py, None),
            (Name::BuiltinType, [name]) => misc::builtin_type(name),
            (Name::MakeSkeletonClass, [constructor, name, bases, attributes, id, _]) => {
                class::make(constructor, name, bases, attributes, id)
            }
            (Name::MakeSkeletonEnum, [bases, name, qualname, members, module, id, _]) => {
                class::make_enum(bases, name, qualname, members, module, id)
            }
            (Name::ClassSetstate, [class, state]) => class::set_state(class, state),
            (Name::MakeTypevar, [name, bound, constraints, covariant, contravariant, id]) => {
                misc::typevar(name, bound, constraints, covariant, contravariant, id)
            }
            (Name::Subimport, [name]) => misc::subimport(name),
            (Name::DynamicSubimport, [name, variables]) => misc::dynamic_subimport(name, variables),
            (Name::MakeDictItems, [dict, rest @ ..]) => misc::dict_items(dict, is_true(rest)?),
            (Name::MakeDictKeys, [keys, rest @ ..]) => misc::dict_keys(keys, is_true(rest)?),
            (Name::MakeDictValues, [values, rest @ ..]) => {
                misc::dict_values(values, is_true(rest)?)
            }
            (Name::DataclassFieldSentinel, [name]) => misc::dataclass_sentinel(name),
            (Name::FileReconstructor, [file]) => Ok(file.clone()),
            (Name::LookupClassOrTrack, [id, class]) => class::tracked(id, || Ok(class.clone())),
            (Name::GetOrCreateTrackerId, [class]) => Ok(tracker::id_of(class)?.into_any()),
            _ => Err(wrong_count(text, required, parameters.len(), args.len())),
        }
    }
}

/// The optional flag behind the other arguments.
fn is_true(rest: &[Bound<'_, PyAny>]) -> PyResult<bool> {
    rest.first().map_or(Ok(false), |flag| flag.is_truthy())
}

#[cold]
fn wrong_count(name: &str, required: usize, most: usize, given: usize) -> PyErr {
    let takes = if required == most {
        format!("{most}")
    } else {
        format!("from {required} to {most}")
    };
    PyTypeError::new_err(format!(
        "{name}() takes {takes} positional arguments but {given} were given"
    ))
}

#[pymethods]
impl Reconstructor {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let Some(kwargs) = kwargs.filter(|kwargs| !kwargs.is_empty()) else {
            return self.call(py, args);
        };
        let (_, text, _, parameters) = NAMES[self.name as usize];
        let mut all: Vec<_> = args.iter().collect();
        for parameter in parameters.iter().skip(args.len()) {
            match kwargs.get_item(parameter)? {
                Some(value) => all.push(value),
                None => break,
            }
        }
        if all.len() - args.len() != kwargs.len() {
            return Err(PyTypeError::new_err(format!(
                "{text}() got arguments that it has no parameters for, or has twice"
            )));
        }
        self.call(py, &PyTuple::new(py, all)?)
    }

    #[getter]
    fn __name__(&self) -> &'static str {
        self.text()
    }

    #[getter]
    fn __qualname__(&self) -> &'static str {
        self.text()
    }

    fn __repr__(&self) -> String {
        format!("<function {} of quickpickle>", self.text())
    }

    fn __reduce__(&self) -> &'static str {
        self.text()
    }
}
