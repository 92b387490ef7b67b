//! The CloudPickler class: a Pickler that writes by value what its receiver could not import.

use std::sync::{Mutex, PoisonError};

use pyo3::PyClassInitializer;
use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::cloud::{Cloud, api};
use crate::ffi::compat;
use crate::ffi::function_view::class_dict;
use crate::hook;

use super::class::Pickler;

/// A Pickler that writes functions and classes by value where they cannot be imported; as cloudpickle.Pickler.
///
/// file: has a write() method that takes one bytes argument.
/// protocol: 0 to 5, negative for the highest; None for the highest.
/// buffer_callback: called with each PickleBuffer; a false result leaves it out of the pickle (protocol 5).
/// namespace: the module whose helpers payloads name.
/// keep_filenames: keep the names of files in code objects.
/// deterministic: give equal bytes for equal functions and classes in any process.
/// exact_exceptions: make exceptions anew from their state, without calling their class.
#[pyclass(
    extends = Pickler,
    subclass,
    immutable_type,
    module = "quickpickle",
    name = "CloudPickler",
    frozen
)]
pub(crate) struct CloudPickler {
    cloud: Mutex<Option<Cloud>>,
}

#[pymethods]
impl CloudPickler {
    #[new]
    #[pyo3(
        signature = (*_args, **_kwargs),
        text_signature = "(file, protocol=None, buffer_callback=None, *, namespace='cloudpickle.cloudpickle', keep_filenames=False, deterministic=False, exact_exceptions=False)"
    )]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<Self> {
        PyClassInitializer::from(Pickler::blank()).add_subclass(CloudPickler {
            cloud: Mutex::new(None),
        })
    }

    #[expect(clippy::too_many_arguments, reason = "each is one of Python's")]
    #[pyo3(signature = (file, protocol=None, buffer_callback=None, *, namespace=crate::cloud::wire::DEFAULT_NAMESPACE, keep_filenames=false, deterministic=false, exact_exceptions=false))]
    fn __init__(
        slf: &Bound<'_, Self>,
        file: &Bound<'_, PyAny>,
        protocol: Option<&Bound<'_, PyAny>>,
        buffer_callback: Option<Bound<'_, PyAny>>,
        namespace: &str,
        keep_filenames: bool,
        deterministic: bool,
        exact_exceptions: bool,
    ) -> PyResult<()> {
        let cloud = api::cloud(
            slf.py(),
            namespace,
            keep_filenames,
            deterministic,
            exact_exceptions,
        )?;
        let protocol = api::protocol(protocol)?;
        let base = slf.cast::<Pickler>()?;
        Pickler::set_up(base, file, protocol, true, buffer_callback)?;
        *slf.get()
            .cloud
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(cloud);
        Ok(())
    }

    /// Write a pickled representation of obj to the open file.
    #[pyo3(signature = (obj, /))]
    fn dump(slf: &Bound<'_, Self>, obj: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let base = slf.cast::<Pickler>()?;
        let mut settings = Pickler::settings(base)?;
        settings.cloud = *slf
            .get()
            .cloud
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        settings.reducer_override = hook::overridden(
            slf.as_any(),
            &py.get_type::<Self>(),
            intern!(py, "reducer_override"),
        )?
        .map(Bound::unbind);
        settings.dispatch_table = own_table(slf.as_any())?
            .map(Bound::unbind)
            .or_else(|| api::reducers(py));
        Pickler::run(base, obj, &settings).map_err(|error| api::too_deep(py, error))
    }

    /// How to write an object that is no plain data: NotImplemented, for the way built in. Override it to change that.
    #[pyo3(signature = (obj, /))]
    fn reducer_override<'py>(&self, obj: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
        obj.py().NotImplemented().into_bound(obj.py())
    }
}

/// The table of reducers that a CloudPickler has been given, in whichever way: set on the instance, through the
/// descriptor of a base, or by a subclass. None where it has the one it is born with.
fn own_table<'py>(own: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = own.py();
    let name = intern!(py, "dispatch_table");
    if let Some(attributes) = compat::optional_attribute(own, intern!(py, "__dict__"))?
        && let Ok(attributes) = attributes.cast::<PyDict>()
        && let Some(table) = attributes.get_item(name)?
    {
        return Ok(Some(table));
    }
    let mut of_class = None;
    for class in own.get_type().mro().iter() {
        let Ok(class) = class.cast_into::<pyo3::types::PyType>() else {
            continue;
        };
        let Some(entry) = class_dict(&class)?.get_item(name)? else {
            continue;
        };
        if compat::is_member(&entry) {
            match entry.call_method1(intern!(py, "__get__"), (own, own.get_type())) {
                Ok(table) => return Ok(Some(table)),
                Err(error) if error.is_instance_of::<PyAttributeError>(py) => {}
                Err(error) => return Err(error),
            }
        } else if of_class.is_none() {
            of_class = Some(entry);
        }
    }
    match of_class {
        Some(entry) if entry.is_instance_of::<DefaultTable>() || compat::is_getset(&entry) => {
            Ok(None)
        }
        Some(_) => own.getattr(name).map(Some),
        None => Ok(None),
    }
}

/// The class attribute that is the table of reducers; made when it is asked for, because that takes imports.
#[pyclass(module = "quickpickle", frozen, immutable_type)]
pub(crate) struct DefaultTable {
    attribute: String,
}

#[pymethods]
impl DefaultTable {
    #[new]
    #[pyo3(signature = (attribute, /))]
    fn new(attribute: String) -> Self {
        DefaultTable { attribute }
    }

    fn __get__<'py>(
        &self,
        instance: &Bound<'py, PyAny>,
        _owner: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = instance.py();
        py.import(intern!(py, "quickpickle._reducers"))?
            .getattr(self.attribute.as_str())
    }
}
