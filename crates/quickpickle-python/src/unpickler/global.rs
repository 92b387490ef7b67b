//! Globals: GLOBAL, STACK_GLOBAL, INST, extension codes; `find_class` and what it does by default.

use pyo3::exceptions::{PyAttributeError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::fail::Fail;
use super::machine::Machine;
use super::notes;
use super::source::Feed;
use crate::cloud::reconstruct;
use crate::ffi::{compat, outside};
use crate::python_types::{library, loaded_module, unpickling_error};

impl<'py> Machine<'py, '_> {
    /// The two lines of GLOBAL and INST, looked up.
    pub(super) fn global_lines<S: Feed>(
        &mut self,
        source: &mut S,
        encoding: &std::ffi::CStr,
    ) -> Result<Bound<'py, PyAny>, Fail>
    where
        Fail: From<S::Error>,
    {
        let py = self.py;
        // As `bytes.decode()`, with its exception; the first line before the second is read.
        let text = |source: &mut S| -> Result<Bound<'py, PyString>, Fail> {
            let line = super::construct::full_line(source)?;
            let text = crate::ffi::build::decoded(py, &line, encoding, c"strict")?;
            Ok(text.cast_into::<PyString>().map_err(PyErr::from)?)
        };
        let (module, name) = (text(source)?, text(source)?);
        self.check_frame(source)?;
        self.find_class(&module, &name)
    }

    /// Asks the Unpickler's `find_class`, if a subclass has one, or looks the global up.
    pub(super) fn find_class(
        &mut self,
        module: &Bound<'py, PyString>,
        name: &Bound<'py, PyString>,
    ) -> Result<Bound<'py, PyAny>, Fail> {
        let at = self.at;
        let (protocol, fix_imports) = (self.protocol, self.hooks.fix_imports);
        let hook = self.hooks.find_class.clone();
        let found = self.outside(|_| match hook {
            Some(hook) => outside::call(&hook, [module.as_any(), name.as_any()]),
            None => find_class(module, name, protocol, fix_imports),
        });
        found.map_err(|error| {
            let (module, name) = (module.to_string_lossy(), name.to_string_lossy());
            notes::finding(self.py, &module, &name, at, error).into()
        })
    }

    /// The object of an extension code.
    pub(super) fn extension(&mut self, code: i32) -> Result<Bound<'py, PyAny>, Fail> {
        let py = self.py;
        let library = library(py)?;
        if code <= 0 {
            return Err(Fail::new(py, "EXT specifies code <= 0"));
        }
        // A `find_class` of one's own is asked each time: what some other load was given is not for this one.
        let is_shared = self.hooks.find_class.is_none();
        if is_shared && let Some(found) = library.extension_cache.bind(py).get_item(code)? {
            return Ok(found);
        }
        let Some(pair) = library.inverted_registry.bind(py).get_item(code)? else {
            return Err(
                PyValueError::new_err(format!("unregistered extension code {code}")).into(),
            );
        };
        let pair = pair
            .cast::<PyTuple>()
            .ok()
            .filter(|pair| pair.len() == 2)
            .and_then(|pair| {
                let (module, name) = (pair.get_item(0).ok()?, pair.get_item(1).ok()?);
                Some((
                    module.cast_into::<PyString>().ok()?,
                    name.cast_into::<PyString>().ok()?,
                ))
            });
        let Some((module, name)) = pair else {
            let message = format!("_inverted_registry[{code}] isn't a 2-tuple of strings");
            return Err(PyValueError::new_err(message).into());
        };
        let found = self.find_class(&module, &name)?;
        if is_shared {
            library.extension_cache.bind(py).set_item(code, &found)?;
        }
        Ok(found)
    }
}

/// What `Unpickler.find_class` does where it is not overridden: maps Python 2 names, imports, gets the attribute.
pub(super) fn find_class<'py>(
    module: &Bound<'py, PyString>,
    name: &Bound<'py, PyString>,
    protocol: u8,
    fix_imports: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = module.py();
    compat::audit_find_class(module, name)?;
    let (mut module, mut name) = (module.clone(), name.clone());
    if protocol < 3 && fix_imports {
        (module, name) = python3_names(module, name)?;
    }
    if let Some(found) = reconstruct::find(&module, &name)? {
        return Ok(found);
    }
    let holder = match loaded_module(&module)? {
        Some(loaded) => loaded,
        None => compat::import(module.as_any())?,
    };
    if cfg!(Py_3_14) {
        return attribute_of_module(&module, &name, &holder, protocol);
    }
    let text = name.to_string_lossy();
    if protocol < 4 || !text.contains('.') && text != "<locals>" {
        return match compat::optional_attribute(&holder, &name)? {
            Some(found) => Ok(found),
            None => match reconstruct::find_earlier(&module, &name)? {
                Some(found) => Ok(found),
                None => Err(no_attribute(&holder, &name)?),
            },
        };
    }
    if text.split('.').any(|part| part == "<locals>") {
        return Err(local_attribute(&holder, &name)?);
    }
    let mut found = holder.clone();
    for part in text.split('.') {
        found = match compat::optional_attribute(&found, &PyString::new(py, part))? {
            Some(next) => next,
            None => return Err(no_attribute(&holder, &name)?),
        };
    }
    Ok(found)
}

/// The attribute, or the complaint, as since 3.14.
fn attribute_of_module<'py>(
    module: &Bound<'py, PyString>,
    name: &Bound<'py, PyString>,
    holder: &Bound<'py, PyAny>,
    protocol: u8,
) -> PyResult<Bound<'py, PyAny>> {
    let py = module.py();
    let text = name.to_string_lossy();
    if protocol < 4 || !text.contains('.') {
        return holder.getattr(name);
    }
    let mut found = holder.clone();
    for part in name.call_method1("split", (".",))?.try_iter()? {
        found = match found.getattr(part?.cast::<PyString>()?) {
            Ok(next) => next,
            Err(cause) if cause.is_instance_of::<PyAttributeError>(py) => {
                let error = PyAttributeError::new_err(format!(
                    "Can't resolve path {} on module {}",
                    name.repr()?,
                    module.repr()?
                ));
                error.set_context(py, Some(cause));
                return Err(error);
            }
            Err(error) => return Err(error),
        };
    }
    Ok(found)
}

fn local_attribute(holder: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> PyResult<PyErr> {
    Ok(PyAttributeError::new_err(format!(
        "Can't {} local attribute {} on {}",
        if cfg!(Py_3_13) { "get" } else { "pickle" },
        name.repr()?,
        holder.repr()?
    )))
}

fn no_attribute(holder: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> PyResult<PyErr> {
    Ok(PyAttributeError::new_err(format!(
        "Can't get attribute {} on {}",
        name.repr()?,
        holder.repr()?
    )))
}

/// Module and name as Python 3 has them.
fn python3_names<'py>(
    module: Bound<'py, PyString>,
    name: Bound<'py, PyString>,
) -> PyResult<(Bound<'py, PyString>, Bound<'py, PyString>)> {
    let py = module.py();
    let library = library(py)?;
    if let Some(mapped) = library.names_2to3.bind(py).get_item((&module, &name))? {
        let pair = mapped
            .cast::<PyTuple>()
            .ok()
            .filter(|pair| pair.len() == 2)
            .ok_or_else(|| {
                PyRuntimeError::new_err(format!(
                    "_compat_pickle.NAME_MAPPING values should be 2-tuples, not {}",
                    compat::type_name(&mapped.get_type())
                ))
            })?;
        let (module, name) = (pair.get_item(0)?, pair.get_item(1)?);
        return match (module.cast::<PyString>(), name.cast::<PyString>()) {
            (Ok(module), Ok(name)) => Ok((module.clone(), name.clone())),
            _ => Err(PyRuntimeError::new_err(format!(
                "_compat_pickle.NAME_MAPPING values should be pairs of str, not ({}, {})",
                compat::type_name(&module.get_type()),
                compat::type_name(&name.get_type())
            ))),
        };
    }
    if let Some(mapped) = library.modules_2to3.bind(py).get_item(&module)? {
        return match mapped.cast_into::<PyString>() {
            Ok(mapped) => Ok((mapped, name)),
            Err(other) => Err(PyRuntimeError::new_err(format!(
                "_compat_pickle.IMPORT_MAPPING values should be strings, not {}",
                compat::type_name(&other.into_inner().get_type())
            ))),
        };
    }
    Ok((module, name))
}

/// The exception for an Unpickler used before it was initialised.
pub(super) fn not_initialised(class: &str, py: Python<'_>) -> PyErr {
    unpickling_error(
        py,
        format!("Unpickler.__init__() was not called by {class}.__init__()"),
    )
}
