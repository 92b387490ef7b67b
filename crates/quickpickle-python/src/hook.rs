//! Hooks that users give a Pickler or Unpickler: attributes or methods of a subclass.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::ffi::compat;
#[cfg(Py_3_13)]
use crate::ffi::own_hook;

/// A hook: something callable, or the function of a method of the pickler itself, kept apart so as not to form a cycle.
pub(crate) enum Hook {
    /// Anything callable.
    Callable(Py<PyAny>),
    /// The function of a method.
    Method(Py<PyAny>),
}

impl Hook {
    /// The hook that was found as an attribute of `owner`.
    pub(crate) fn of(found: Bound<'_, PyAny>, owner: &Bound<'_, PyAny>) -> Self {
        match compat::function_bound_to(&found, owner) {
            Some(function) => Hook::Method(function.unbind()),
            None => Hook::Callable(found.unbind()),
        }
    }

    /// The hook, ready to be called.
    pub(crate) fn bound<'py>(&self, owner: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Hook::Callable(hook) => Ok(hook.bind(owner.py()).clone()),
            Hook::Method(function) => compat::bind_method(function.bind(owner.py()), owner),
        }
    }

    /// For the cyclic collector.
    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let (Hook::Callable(held) | Hook::Method(held)) = self;
        visit.call(held)
    }

    /// The same hook once more.
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Hook::Callable(hook) => Hook::Callable(hook.clone_ref(py)),
            Hook::Method(function) => Hook::Method(function.clone_ref(py)),
        }
    }
}

/// Persistent hooks can be set on instances up to 3.12, and again since 3.13.1.
#[cfg(Py_3_13)]
pub(crate) fn prepare(py: Python<'_>) {
    if py.version_info() >= (3, 13, 1) {
        own_hook::install::<crate::pickler::Pickler>(py);
        own_hook::install::<crate::unpickler::Unpickler>(py);
    }
}

/// The attribute of that name where a subclass or the instance has one of its own; None where it is `base`'s.
pub(crate) fn overridden<'py>(
    own: &Bound<'py, PyAny>,
    base: &Bound<'py, PyType>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let class = own.get_type();
    if class.is(base) {
        return Ok(None);
    }
    let inherited = class.getattr(name)?.is(&base.getattr(name)?);
    let in_instance = match compat::optional_attribute(own, intern!(own.py(), "__dict__"))? {
        Some(attributes) => attributes.contains(name)?,
        None => false,
    };
    if inherited && !in_instance {
        return Ok(None);
    }
    own.getattr(name).map(Some)
}
