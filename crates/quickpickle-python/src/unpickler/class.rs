//! The Unpickler class: settings, hooks, memo, load.

use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyString, PyTuple};

use super::Hooks;
use super::global::{find_class, not_initialised};
use super::load::load_stream;
use super::machine::Memory;
use super::source::File;
use crate::ffi::compat;
#[cfg(Py_3_13)]
use crate::ffi::own_hook::OwnHook;
use crate::hook::{self, Hook};
use crate::options;
use crate::slot::{Slot, Taken};

/// What `__init__` was given, and attributes.
struct Config {
    file: File,
    fix_imports: bool,
    encoding: Cow<'static, CStr>,
    errors: Cow<'static, CStr>,
    buffers: Option<Py<PyIterator>>,
    persistent_load: Option<Hook>,
}

/// Reads pickles from a file; as pickle.Unpickler.
///
/// file: has read(n), readline() and, better, readinto() or peek().
/// fix_imports: map Python 2 names where the pickle's protocol is below 3.
/// encoding, errors: how Python 2 strings are decoded; encoding="bytes" leaves them bytes.
/// buffers: out-of-band buffers, in the order in which they were handed to buffer_callback.
///
/// Loading a pickle can run any code its author chose: never load data you do not trust.
#[pyclass(
    subclass,
    weakref,
    immutable_type,
    module = "quickpickle",
    name = "Unpickler",
    frozen
)]
pub(crate) struct Unpickler {
    config: Mutex<Option<Config>>,
    /// None while a load is running.
    memory: Slot<Memory>,
    /// Protocol of the pickle being loaded, or last loaded, as far as it has said.
    protocol: AtomicU8,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn in_use() -> PyErr {
    PyRuntimeError::new_err("Unpickler object is already used")
}

/// An instance may be given a hook of its own, whatever its class has.
#[cfg(Py_3_13)]
impl OwnHook for Unpickler {
    const ATTRIBUTE: &'static CStr = c"persistent_load";

    fn own_hook(&self, py: Python<'_>) -> Option<Hook> {
        locked(&self.config)
            .as_ref()
            .and_then(|config| Some(config.persistent_load.as_ref()?.clone_ref(py)))
    }

    fn set_own_hook(&self, hook: Option<Hook>) {
        let old = match &mut *locked(&self.config) {
            Some(config) => std::mem::replace(&mut config.persistent_load, hook),
            None => None,
        };
        drop(old);
    }
}

#[pymethods]
impl Unpickler {
    #[new]
    #[pyo3(
        signature = (*_args, **_kwargs),
        text_signature = "(file, *, fix_imports=True, encoding='ASCII', errors='strict', buffers=())"
    )]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Unpickler {
            config: Mutex::new(None),
            memory: Slot::new(Memory::new),
            protocol: AtomicU8::new(0),
        }
    }

    #[pyo3(signature = (file, *, fix_imports=true, encoding=None, errors=None, buffers=None))]
    fn __init__(
        slf: &Bound<'_, Self>,
        file: &Bound<'_, PyAny>,
        fix_imports: bool,
        encoding: Option<&Bound<'_, PyAny>>,
        errors: Option<&Bound<'_, PyAny>>,
        buffers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        let file = File::of(file)?;
        let buffers = options::buffers(buffers)?.map(Bound::unbind);
        let (encoding, errors) = options::encoding("Unpickler", encoding, errors)?;
        this.take_memory()?.clear(py);
        let config = Config {
            file,
            fix_imports,
            encoding,
            errors,
            buffers,
            persistent_load: None,
        };
        let old = locked(&this.config).replace(config);
        drop(old);
        let own = slf.as_any();
        if cfg!(not(Py_3_13)) {
            let hook = compat::optional_attribute(own, intern!(py, "persistent_load"))?
                .map(|hook| Hook::of(hook, own));
            let old = match &mut *locked(&this.config) {
                Some(config) => std::mem::replace(&mut config.persistent_load, hook),
                None => None,
            };
            drop(old);
        }
        Ok(())
    }

    /// Read a pickled object from the file and return it.
    fn load<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let own = slf.as_any();
        // Nothing but copying happens while this is locked: all else may run other code.
        let (file, hooks, persistent_load) = {
            let config = locked(&this.config);
            let Some(config) = &*config else {
                drop(config);
                return Err(not_initialised(&compat::type_name(&own.get_type()), py));
            };
            let hooks = Hooks {
                fix_imports: config.fix_imports,
                encoding: config.encoding.clone(),
                errors: config.errors.clone(),
                buffers: config
                    .buffers
                    .as_ref()
                    .map(|buffers| buffers.bind(py).clone()),
                find_class: None,
                owner: None,
                persistent_load: None,
            };
            let hook = config.persistent_load.as_ref();
            (
                config.file.clone_ref(py),
                hooks,
                hook.map(|hook| hook.clone_ref(py)),
            )
        };
        let base = py.get_type::<Self>();
        let find_class = hook::overridden(own, &base, intern!(py, "find_class"))?;
        let persistent_load = match persistent_load {
            Some(hook) => Some(hook.bound(own)?),
            None if cfg!(Py_3_13) => hook::overridden(own, &base, intern!(py, "persistent_load"))?,
            None => None,
        };
        this.protocol.store(0, Ordering::Relaxed);
        let hooks = Hooks {
            find_class,
            persistent_load,
            owner: Some(slf.clone()),
            ..hooks
        };
        let mut memory = this.take_memory()?;
        load_stream(py, file, &mut memory, &hooks)
    }

    /// Return an object from a specified module: imports it and gets the attribute. Override it to restrict what can be loaded.
    #[pyo3(signature = (module_name, global_name, /))]
    fn find_class<'py>(
        &self,
        module_name: &Bound<'py, PyAny>,
        global_name: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let fix_imports = locked(&self.config)
            .as_ref()
            .is_none_or(|config| config.fix_imports);
        let Ok(module_name) = module_name.cast::<PyString>() else {
            return Err(PyTypeError::new_err(if cfg!(Py_3_11) {
                "module name must be a string".to_owned()
            } else {
                let found = compat::type_name(&module_name.get_type());
                format!("__import__() argument 1 must be str, not {found}")
            }));
        };
        let global_name = global_name.cast::<PyString>()?;
        find_class(
            module_name,
            global_name,
            self.protocol.load(Ordering::Relaxed),
            fix_imports,
        )
    }

    /// The object of a persistent id. Override it to find objects that are kept elsewhere.
    #[cfg(Py_3_13)]
    #[pyo3(signature = (pid, /))]
    fn persistent_load(&self, pid: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(crate::python_types::unpickling_error(
            pid.py(),
            super::NO_PERSISTENT_LOAD,
        ))
    }

    /// callable: given a persistent id, its object
    #[cfg(not(Py_3_13))]
    #[getter]
    fn get_persistent_load<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let hook = locked(&slf.get().config)
            .as_ref()
            .and_then(|config| Some(config.persistent_load.as_ref()?.clone_ref(py)));
        match hook {
            Some(hook) => hook.bound(slf.as_any()),
            None => Err(pyo3::exceptions::PyAttributeError::new_err(
                "persistent_load",
            )),
        }
    }

    #[cfg(not(Py_3_13))]
    #[setter]
    fn set_persistent_load(slf: &Bound<'_, Self>, value: Bound<'_, PyAny>) -> PyResult<()> {
        if !value.is_callable() {
            return Err(PyTypeError::new_err(
                "persistent_load must be a callable taking one argument",
            ));
        }
        let hook = Hook::of(value, slf.as_any());
        let old = match &mut *locked(&slf.get().config) {
            Some(config) => config.persistent_load.replace(hook),
            None => None,
        };
        drop(old);
        Ok(())
    }

    #[cfg(not(Py_3_13))]
    #[deleter]
    fn delete_persistent_load(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("attribute deletion is not supported"))
    }

    #[deleter]
    fn delete_memo(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("attribute deletion is not supported"))
    }

    /// UnpicklerMemo: the objects read so far, by number
    #[getter]
    fn get_memo(slf: &Bound<'_, Self>) -> UnpicklerMemo {
        UnpicklerMemo {
            unpickler: slf.clone().unbind(),
        }
    }

    #[setter]
    fn set_memo(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        let mut entries = Vec::new();
        if let Ok(other) = value.cast::<UnpicklerMemo>() {
            entries = other.get().entries(py)?;
        } else if let Ok(dict) = value.cast::<PyDict>() {
            for (number, object) in dict.iter() {
                let number = number
                    .cast::<pyo3::types::PyInt>()
                    .map_err(|_| PyTypeError::new_err("memo key must be integers"))?;
                let number = number.extract::<isize>().map_err(|_| {
                    PyOverflowError::new_err("Python int too large to convert to C ssize_t")
                })?;
                let number = usize::try_from(number)
                    .map_err(|_| PyValueError::new_err("memo key must be positive integers."))?;
                entries.push((number, object));
            }
        } else {
            return Err(PyTypeError::new_err(format!(
                "'memo' attribute must be an UnpicklerMemoProxy object or dict, not {}",
                compat::type_name(&value.get_type())
            )));
        }
        let mut memory = self.take_memory()?;
        memory.clear(py);
        entries.sort_by_key(|&(number, _)| number);
        for (number, object) in entries {
            drop(memory.memo.put(number, object));
        }
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.memory
            .look(|memory| memory.memo.visit(&visit))
            .transpose()?;
        let Ok(config) = self.config.try_lock() else {
            return Ok(());
        };
        let Some(config) = &*config else {
            return Ok(());
        };
        config.file.visit(&visit)?;
        visit.call(&config.buffers)?;
        config
            .persistent_load
            .as_ref()
            .map_or(Ok(()), |hook| hook.visit(&visit))
    }

    fn __clear__(&self) {
        let memory = self.memory.empty();
        let config = self.config.try_lock().map(|mut config| config.take());
        drop((memory, config));
    }
}

impl Unpickler {
    /// Takes the memory out, so that nothing that runs meanwhile can use it.
    fn take_memory(&self) -> PyResult<Taken<'_, Memory>> {
        self.memory.take().ok_or_else(in_use)
    }
}

/// The memo of an Unpickler.
#[pyclass(module = "quickpickle", frozen, immutable_type)]
pub(crate) struct UnpicklerMemo {
    unpickler: Py<Unpickler>,
}

impl UnpicklerMemo {
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Vec<(usize, Bound<'py, PyAny>)>> {
        let unpickler = self.unpickler.get();
        let mut memory = unpickler.take_memory()?;
        // What was left out is made now.
        let hooks = Hooks::plain();
        let numbers = memory.memo.numbers();
        let mut machine = super::machine::Machine::new(py, &mut memory, &hooks);
        let made: Result<Vec<_>, _> = numbers
            .iter()
            .map(|&number| machine.resolve(number))
            .collect();
        let entries = numbers
            .iter()
            .filter_map(|&number| Some((number, memory.memo.get(py, number)?)))
            .collect();
        drop(memory);
        made.map_err(|fail| fail.into_pyerr(py))?;
        Ok(entries)
    }
}

#[pymethods]
impl UnpicklerMemo {
    /// Remove all items from memo.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let unpickler = self.unpickler.get();
        unpickler.take_memory()?.clear(py);
        Ok(())
    }

    /// Copy the memo to a new dict: number -> object.
    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let copy = PyDict::new(py);
        for (number, object) in self.entries(py)? {
            copy.set_item(number, object)?;
        }
        Ok(copy)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (py.get_type::<PyDict>(), (self.copy(py)?,)).into_pyobject(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.unpickler)
    }
}

impl Unpickler {
    /// The pickle has said its protocol.
    pub(super) fn has_protocol(&self, protocol: u8) {
        self.protocol.store(protocol, Ordering::Relaxed);
    }
}
