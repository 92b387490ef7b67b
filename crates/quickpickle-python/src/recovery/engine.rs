//! The class `RecoveryEngine`: an engine of any kind, as Python calls it.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use quickpickle_recovery::{CodecId, Entry, Error, ErrorKind, PersistenceEngine, Result};

use super::errors::to_python;
use super::opening::{Arguments, open};
use super::reports;

/// A crash-safe store of named bytes; use quickpickle.recovery.open.
#[pyclass(frozen, module = "quickpickle._native")]
pub(crate) struct RecoveryEngine {
    /// `None` only while it is dropped.
    engine: Option<Box<dyn PersistenceEngine>>,
    /// The process that opened it.
    owner: u32,
    /// Where its files are, if it has any.
    #[pyo3(get)]
    directory: Option<OsString>,
}

impl RecoveryEngine {
    /// Runs `work` on the engine without the GIL.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&dyn PersistenceEngine) -> Result<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| self.engine().and_then(work))
            .map_err(|error| to_python(py, &error))
    }

    /// The engine, in the process that opened it: a forked child shares its files and has none of its threads.
    fn engine(&self) -> Result<&dyn PersistenceEngine> {
        match &self.engine {
            Some(engine) if self.owner == std::process::id() => Ok(&**engine),
            _ => Err(Error::new(
                ErrorKind::Closed,
                "",
                format!(
                    "the store belongs to process {}, which opened it; open it in this one, once that has closed it",
                    self.owner
                ),
            )),
        }
    }
}

#[pymethods]
impl RecoveryEngine {
    /// Open a store; blocks as wait says, and is ended by signals.
    #[staticmethod]
    #[pyo3(signature = (
        *, url=None, directory=None, engine=None, sync="always", compression=None, strict=false,
        read_only=false, wait=None, segment_bytes=None, auto_compact=None, operation_timeout=None, session_timeout=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn open(
        py: Python<'_>,
        url: Option<String>,
        directory: Option<PathBuf>,
        engine: Option<String>,
        sync: &str,
        compression: Option<String>,
        strict: bool,
        read_only: bool,
        wait: Option<f64>,
        segment_bytes: Option<u64>,
        auto_compact: Option<bool>,
        operation_timeout: Option<f64>,
        session_timeout: Option<f64>,
    ) -> PyResult<Self> {
        let arguments = Arguments {
            url,
            directory,
            engine,
            sync: sync.to_owned(),
            compression,
            strict,
            read_only,
            wait,
            segment_bytes,
            auto_compact,
            operation_timeout,
            session_timeout,
        };
        let (engine, directory) = open(py, &arguments)?;
        Ok(Self {
            engine: Some(engine),
            owner: std::process::id(),
            directory: directory.map(PathBuf::into_os_string),
        })
    }

    /// Store value under name, tagged with the number of its codec.
    #[pyo3(signature = (name, codec, value, /))]
    fn persist(
        &self,
        py: Python<'_>,
        name: &str,
        codec: u16,
        value: &Bound<'_, PyBytes>,
    ) -> PyResult<()> {
        let value = value.as_bytes();
        self.run(py, |engine| {
            engine.persist_tagged(name, CodecId::from_u16(codec), value)
        })
    }

    /// Store many (name, codec, value) with one sync.
    #[pyo3(signature = (entries, /))]
    fn persist_batch(
        &self,
        py: Python<'_>,
        entries: Vec<(String, u16, Bound<'_, PyBytes>)>,
    ) -> PyResult<()> {
        let entries: Vec<Entry> = entries
            .into_iter()
            .map(|(name, codec, value)| Entry {
                name,
                codec: CodecId::from_u16(codec),
                value: value.as_bytes().to_vec(),
            })
            .collect();
        self.run(py, |engine| engine.persist_batch(&entries))
    }

    /// Remove name; succeeds if it is not there.
    #[pyo3(signature = (name, /))]
    fn unpersist(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.run(py, |engine| engine.unpersist(name))
    }

    /// Return (name, codec, value) of all entries whose name starts with prefix, ordered by name.
    #[pyo3(signature = (prefix, /))]
    fn read<'py>(&self, py: Python<'py>, prefix: &str) -> PyResult<Bound<'py, PyList>> {
        let entries = self.run(py, |engine| engine.read(prefix))?;
        let list = PyList::empty(py);
        for Entry { name, codec, value } in entries {
            let value = PyBytes::new(py, &value);
            list.append((name, codec.to_u16(), value))?;
        }
        Ok(list)
    }

    /// Return the names that start with prefix, ordered.
    #[pyo3(signature = (prefix, /))]
    fn names(&self, py: Python<'_>, prefix: &str) -> PyResult<Vec<String>> {
        self.run(py, |engine| engine.names(prefix))
    }

    /// Whether there is an entry called name.
    #[pyo3(signature = (name, /))]
    fn contains(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.run(py, |engine| engine.contains(name))
    }

    /// Return (codec, value) of the entry called name, or None.
    #[pyo3(signature = (name, /))]
    fn get<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let entry = self.run(py, |engine| engine.get(name))?;
        entry
            .map(|entry| (entry.codec.to_u16(), PyBytes::new(py, &entry.value)).into_pyobject(py))
            .transpose()
    }

    /// Return once everything stored so far is on the device.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |engine| engine.sync())
    }

    /// What was found when the store was opened.
    fn opening_report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = self.run(py, |engine| Ok(engine.opening_report()))?;
        reports::report(py, &report)
    }

    /// Read the whole store again and check it; changes nothing.
    fn verify<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = self.run(py, |engine| engine.verify())?;
        reports::report(py, &report)
    }

    /// Give back the space of what was replaced and removed.
    fn compact<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = self.run(py, |engine| engine.compact())?;
        reports::compaction(py, report)
    }

    /// How much the store holds.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.run(py, |engine| engine.stats())?;
        reports::stats(py, &stats)
    }

    /// Let writes through again after a failure, if the store can be built anew.
    fn revive(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |engine| engine.revive())
    }

    /// In the child of a fork: let go of files and locks without touching them.
    fn disown(&self) {
        if self.owner != std::process::id()
            && let Some(engine) = &self.engine
        {
            engine.disown();
        }
    }

    /// Make everything durable and release the store; closing twice is fine.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.owner != std::process::id() {
            return Ok(());
        }
        self.run(py, |engine| engine.close())
    }
}

impl Drop for RecoveryEngine {
    fn drop(&mut self) {
        let engine = self.engine.take();
        if self.owner == std::process::id() {
            // Closing joins threads and syncs; neither needs the GIL, and nobody may wait for us with it.
            Python::attach(|py| py.detach(move || drop(engine)));
        } else {
            std::mem::forget(engine);
        }
    }
}

/// The name of a codec's number, such as `pickle` or `java+lz4`.
#[pyfunction]
#[pyo3(signature = (codec, /))]
pub(crate) fn recovery_codec_name(codec: u16) -> String {
    CodecId::from_u16(codec).to_string()
}
