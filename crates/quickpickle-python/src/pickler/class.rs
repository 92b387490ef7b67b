//! The Pickler class: settings, hooks, memo, dump.

#[cfg(Py_3_13)]
use std::ffi::CStr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyAttributeError, PyRuntimeError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::ffi::compat;
#[cfg(Py_3_13)]
use crate::ffi::own_hook::OwnHook;
use crate::hook::{self, Hook};
use crate::options;
use crate::python_types::pickling_error;
use crate::slot::{Slot, Taken};

use super::engine::{Engine, Settings};

/// What `__init__` was given, and attributes.
#[derive(Default)]
struct Config {
    protocol: u8,
    fix_imports: bool,
    write: Option<Py<PyAny>>,
    buffer_callback: Option<Py<PyAny>>,
    persistent_id: Option<Hook>,
    dispatch_table: Option<Py<PyAny>>,
}

/// Writes pickles to a file; as pickle.Pickler.
///
/// file: has a write() method that takes one bytes argument.
/// protocol: 0 to 5, negative for the highest; None for pickle.DEFAULT_PROTOCOL.
/// fix_imports: map names to Python 2's where protocol is below 3.
/// buffer_callback: called with each PickleBuffer; a false result leaves it out of the pickle (protocol 5).
#[pyclass(
    subclass,
    weakref,
    immutable_type,
    module = "quickpickle",
    name = "Pickler",
    frozen
)]
pub(crate) struct Pickler {
    config: Mutex<Config>,
    /// None while a dump is running.
    engine: Slot<Engine>,
    fast: AtomicI32,
    bin: AtomicI32,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn in_use() -> PyErr {
    PyRuntimeError::new_err("Pickler object is already used")
}

/// An instance may be given a hook of its own, whatever its class has.
#[cfg(Py_3_13)]
impl OwnHook for Pickler {
    const ATTRIBUTE: &'static CStr = c"persistent_id";

    fn own_hook(&self, py: Python<'_>) -> Option<Hook> {
        locked(&self.config)
            .persistent_id
            .as_ref()
            .map(|hook| hook.clone_ref(py))
    }

    fn set_own_hook(&self, hook: Option<Hook>) {
        let old = std::mem::replace(&mut locked(&self.config).persistent_id, hook);
        drop(old);
    }
}

#[pymethods]
impl Pickler {
    #[new]
    #[pyo3(
        signature = (*_args, **_kwargs),
        text_signature = "(file, protocol=None, fix_imports=True, buffer_callback=None)"
    )]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self::blank()
    }

    #[pyo3(signature = (file, protocol=None, fix_imports=true, buffer_callback=None))]
    fn __init__(
        slf: &Bound<'_, Self>,
        file: &Bound<'_, PyAny>,
        protocol: Option<&Bound<'_, PyAny>>,
        fix_imports: bool,
        buffer_callback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let protocol = options::protocol(protocol)?;
        Self::set_up(slf, file, protocol, fix_imports, buffer_callback)?;
        let own = slf.as_any();
        let table = compat::optional_attribute(own, intern!(slf.py(), "dispatch_table"))?
            .map(Bound::unbind);
        let old = std::mem::replace(&mut locked(&slf.get().config).dispatch_table, table);
        drop(old);
        Ok(())
    }

    /// Write a pickled representation of obj to the open file.
    #[pyo3(signature = (obj, /))]
    fn dump(slf: &Bound<'_, Self>, obj: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let mut settings = Self::settings(slf)?;
        settings.reducer_override =
            compat::optional_attribute(slf.as_any(), intern!(py, "reducer_override"))?
                .map(Bound::unbind);
        Self::run(slf, obj, &settings)
    }

    /// Forget which objects have been written, so that the next pickle stands by itself.
    fn clear_memo(&self, py: Python<'_>) -> PyResult<()> {
        self.take_engine()?.forget(py);
        Ok(())
    }

    /// int: whether protocols 0 and 1 are written in binary
    #[getter]
    fn get_bin(&self) -> i32 {
        self.bin.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_bin(&self, value: i32) {
        self.bin.store(value, Ordering::Relaxed);
    }

    #[deleter]
    fn delete_bin(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("can't delete numeric/char attribute"))
    }

    /// int: nonzero to write without remembering what has been written; such pickles are larger and cannot be recursive
    #[getter]
    fn get_fast(&self) -> i32 {
        self.fast.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_fast(&self, value: i32) {
        self.fast.store(value, Ordering::Relaxed);
    }

    #[deleter]
    fn delete_fast(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("can't delete numeric/char attribute"))
    }

    /// mapping: reducers by class, in place of copyreg's; unset at first
    #[getter]
    fn get_dispatch_table(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let config = locked(&self.config);
        let table = config
            .dispatch_table
            .as_ref()
            .map(|table| table.clone_ref(py));
        table.ok_or_else(|| PyAttributeError::new_err("dispatch_table"))
    }

    #[setter]
    fn set_dispatch_table(&self, value: Py<PyAny>) {
        let old = locked(&self.config).dispatch_table.replace(value);
        drop(old);
    }

    #[deleter]
    fn delete_dispatch_table(&self) -> PyResult<()> {
        let old = locked(&self.config).dispatch_table.take();
        old.map(drop)
            .ok_or_else(|| PyAttributeError::new_err("dispatch_table"))
    }

    /// The persistent id of an object, None to write the object itself. Override it to have objects kept elsewhere.
    #[cfg(Py_3_13)]
    #[pyo3(signature = (obj, /))]
    fn persistent_id(&self, obj: &Bound<'_, PyAny>) {
        let _ = obj;
    }

    /// callable: given an object, its persistent id, or None to write the object itself
    #[cfg(not(Py_3_13))]
    #[getter]
    fn get_persistent_id<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let hook = locked(&slf.get().config)
            .persistent_id
            .as_ref()
            .map(|hook| hook.clone_ref(py));
        match hook {
            Some(hook) => hook.bound(slf.as_any()),
            None => Err(PyAttributeError::new_err("persistent_id")),
        }
    }

    #[cfg(not(Py_3_13))]
    #[setter]
    fn set_persistent_id(slf: &Bound<'_, Self>, value: Bound<'_, PyAny>) -> PyResult<()> {
        if !value.is_callable() {
            return Err(PyTypeError::new_err(
                "persistent_id must be a callable taking one argument",
            ));
        }
        let hook = Hook::of(value, slf.as_any());
        let old = locked(&slf.get().config).persistent_id.replace(hook);
        drop(old);
        Ok(())
    }

    #[cfg(not(Py_3_13))]
    #[deleter]
    fn delete_persistent_id(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("attribute deletion is not supported"))
    }

    #[deleter]
    fn delete_memo(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("attribute deletion is not supported"))
    }

    /// PicklerMemo: the objects written so far, by id
    #[getter]
    fn get_memo(slf: &Bound<'_, Self>) -> PicklerMemo {
        PicklerMemo {
            pickler: slf.clone().unbind(),
        }
    }

    #[setter]
    fn set_memo(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        let mut entries = Vec::new();
        if let Ok(other) = value.cast::<PicklerMemo>() {
            let other = other.get().pickler.bind(py).clone();
            entries = other.get().take_engine()?.memo().entries(py);
        } else if let Ok(dict) = value.cast::<PyDict>() {
            // Collected first: what is asked of the entries may run code.
            let all: Vec<_> = dict.iter().collect();
            for (_, entry) in all {
                let pair = entry.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
                let pair = pair
                    .ok_or_else(|| PyTypeError::new_err("'memo' values must be 2-item tuples"))?;
                entries.push((
                    pair.get_item(0)?.extract::<isize>()? as usize,
                    pair.get_item(1)?,
                ));
            }
        } else {
            return Err(PyTypeError::new_err(format!(
                "'memo' attribute must be a PicklerMemoProxy object or dict, not {}",
                compat::type_name(&value.get_type())
            )));
        }
        let mut engine = self.take_engine()?;
        engine.forget(py);
        entries.sort_by_key(|&(number, _)| number);
        // Numbers that no opcode holds are of no use: such objects are written anew.
        entries.retain(|&(number, _)| number < u32::MAX as usize);
        let next = entries.last().map_or(0, |&(number, _)| number + 1);
        for (number, object) in entries {
            let Ok(number) = u32::try_from(number) else {
                continue;
            };
            engine.memo().insert(object, number);
        }
        // Numbers may be missing from it: those of states that were no objects.
        engine.memo().start_at(next);
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.engine
            .look(|engine| engine.visit(&visit))
            .transpose()?;
        let Ok(config) = self.config.try_lock() else {
            return Ok(());
        };
        visit.call(&config.write)?;
        visit.call(&config.buffer_callback)?;
        visit.call(&config.dispatch_table)?;
        config
            .persistent_id
            .as_ref()
            .map_or(Ok(()), |hook| hook.visit(&visit))
    }

    fn __clear__(&self) {
        let engine = self.engine.empty();
        let config = self
            .config
            .try_lock()
            .map(|mut config| std::mem::take(&mut *config));
        drop((engine, config));
    }
}

impl Pickler {
    /// One that has not been initialised.
    pub(super) fn blank() -> Self {
        Pickler {
            config: Mutex::default(),
            engine: Slot::new(Engine::new),
            fast: AtomicI32::new(0),
            bin: AtomicI32::new(0),
        }
    }

    /// What `__init__` does but for the table of reducers.
    pub(super) fn set_up(
        slf: &Bound<'_, Self>,
        file: &Bound<'_, PyAny>,
        protocol: u8,
        fix_imports: bool,
        buffer_callback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        let write = file
            .getattr_opt(intern!(py, "write"))?
            .ok_or_else(|| PyTypeError::new_err("file must have a 'write' attribute"))?;
        let buffer_callback = options::buffer_callback(buffer_callback, protocol)?;
        this.take_engine()?.forget(py);
        this.fast.store(0, Ordering::Relaxed);
        this.bin.store(i32::from(protocol > 0), Ordering::Relaxed);
        let config = Config {
            protocol,
            fix_imports,
            write: Some(write.unbind()),
            buffer_callback: buffer_callback.map(Bound::unbind),
            ..Config::default()
        };
        // Dropped, like all that follows, with nothing locked: that may run other code.
        let mut old = std::mem::replace(&mut *locked(&this.config), config);
        if old.write.is_none() {
            // Set by a subclass before it called this.
            let mut config = locked(&this.config);
            config.persistent_id = old.persistent_id.take();
            config.dispatch_table = old.dispatch_table.take();
        }
        drop(old);
        let own = slf.as_any();
        let hook = if cfg!(Py_3_13) {
            None
        } else {
            compat::optional_attribute(own, intern!(py, "persistent_id"))?
                .map(|hook| Hook::of(hook, own))
        };
        let old = std::mem::replace(&mut locked(&this.config).persistent_id, hook);
        drop(old);
        Ok(())
    }

    /// What a dump is asked to do, but for `reducer_override`.
    pub(super) fn settings(slf: &Bound<'_, Self>) -> PyResult<Settings> {
        let py = slf.py();
        let this = slf.get();
        let own = slf.as_any();
        let (mut settings, persistent_id) = {
            let config = locked(&this.config);
            let settings = Settings {
                protocol: config.protocol,
                fix_imports: config.fix_imports,
                fast: this.fast.load(Ordering::Relaxed) != 0,
                write: config.write.as_ref().map(|write| write.clone_ref(py)),
                buffer_callback: config
                    .buffer_callback
                    .as_ref()
                    .map(|hook| hook.clone_ref(py)),
                persistent_id: None,
                reducer_override: None,
                dispatch_table: config
                    .dispatch_table
                    .as_ref()
                    .map(|table| table.clone_ref(py)),
                cloud: None,
            };
            let persistent_id = config.persistent_id.as_ref();
            (settings, persistent_id.map(|hook| hook.clone_ref(py)))
        };
        if settings.write.is_none() {
            let class = compat::type_name(&own.get_type());
            let message = format!("Pickler.__init__() was not called by {class}.__init__()");
            return Err(pickling_error(py, message));
        }
        // `bin` says whether protocols 0 and 1 write text or binary.
        if settings.protocol <= 1 {
            settings.protocol = u8::from(this.bin.load(Ordering::Relaxed) != 0);
        }
        let persistent_id = match persistent_id {
            Some(hook) => Some(hook.bound(own)?),
            None if cfg!(Py_3_13) => {
                hook::overridden(own, &py.get_type::<Self>(), intern!(py, "persistent_id"))?
            }
            None => None,
        };
        settings.persistent_id = persistent_id.map(Bound::unbind);
        Ok(settings)
    }

    /// Dumps an object.
    pub(super) fn run(
        slf: &Bound<'_, Self>,
        obj: &Bound<'_, PyAny>,
        settings: &Settings,
    ) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        let mut engine = this.take_engine()?;
        let written = engine.dump(obj, settings).and_then(|()| {
            // The file is other code too.
            engine.keep_memo(py);
            engine.flush(py, settings)
        });
        engine.give_back(py);
        written
    }

    /// Takes the engine out, so that nothing that runs meanwhile can use it.
    fn take_engine(&self) -> PyResult<Taken<'_, Engine>> {
        self.engine.take().ok_or_else(in_use)
    }
}

/// The memo of a Pickler.
#[pyclass(module = "quickpickle", frozen, immutable_type)]
pub(crate) struct PicklerMemo {
    pickler: Py<Pickler>,
}

#[pymethods]
impl PicklerMemo {
    /// Remove all items from memo.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.pickler.get().clear_memo(py)
    }

    /// Copy the memo to a new dict: id of an object -> (its number, the object).
    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let pickler = self.pickler.get();
        let entries = pickler.take_engine()?.memo().entries(py);
        let copy = PyDict::new(py);
        for (number, object) in entries {
            copy.set_item(object.as_ptr() as usize, (number, object))?;
        }
        Ok(copy)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (py.get_type::<PyDict>(), (self.copy(py)?,)).into_pyobject(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.pickler)
    }
}
