//! Opening a store from Python: settings in, engine out, with signals heeded all the while.
//!
//! Opening can take long: a standby waits for the lock for days, a large log is read as a whole. It is done on a thread of its own while
//! the caller looks after signals, so that Ctrl-C ends a standby at once.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use quickpickle_recovery::{
    Compression, Config, Durability, EngineKind, Error, ErrorKind, PersistenceEngine, Result, Wait,
};

use super::errors::to_python;

/// How often signals are looked after.
const LOOK: Duration = Duration::from_millis(50);
/// How long a cancelled opening is waited for; longer than a standby sleeps.
const CANCELLED: Duration = Duration::from_secs(1);

/// The arguments of `RecoveryEngine.open`, as Python gave them.
pub(super) struct Arguments {
    pub(super) url: Option<String>,
    pub(super) directory: Option<PathBuf>,
    pub(super) engine: Option<String>,
    pub(super) sync: String,
    pub(super) compression: Option<String>,
    pub(super) strict: bool,
    pub(super) read_only: bool,
    pub(super) wait: Option<f64>,
    pub(super) segment_bytes: Option<u64>,
    pub(super) auto_compact: Option<bool>,
    pub(super) operation_timeout: Option<f64>,
    pub(super) session_timeout: Option<f64>,
}

impl Arguments {
    fn config(&self) -> Result<Config> {
        let mut config = match (&self.url, &self.directory) {
            (Some(url), None) => Config::from_url(url)?,
            (None, Some(directory)) => Config {
                directory: Some(directory.clone()),
                ..Config::default()
            },
            _ => return Err(setting("url", "give a URL or a directory, not both")),
        };
        if let Some(engine) = &self.engine {
            let wanted = EngineKind::parse(engine)?;
            if config.engine.is_some_and(|named| named != wanted) {
                let message = format!("the URL names another engine than {engine:?}");
                return Err(setting("engine", &message));
            }
            config.engine = Some(wanted);
        }
        config.durability = Durability::parse(&self.sync)?;
        config.compression = Compression::parse(self.compression.as_deref().unwrap_or("none"))?;
        config.strict = self.strict;
        config.read_only = self.read_only;
        config.wait = match self.wait {
            None => Wait::No,
            Some(seconds) if seconds == f64::INFINITY => Wait::Forever,
            Some(seconds) => Wait::For(duration("wait", seconds)?),
        };
        if self.segment_bytes.is_some_and(|bytes| bytes < 4096) {
            return Err(setting("segment_bytes", "must be 4096 or more"));
        }
        config.segment_bytes = self.segment_bytes;
        config.auto_compact = self.auto_compact;
        let timeout = |name, seconds: Option<f64>| seconds.map(|s| duration(name, s)).transpose();
        config.operation_timeout = timeout("operation_timeout", self.operation_timeout)?;
        config.session_timeout = timeout("session_timeout", self.session_timeout)?;
        Ok(config)
    }
}

fn setting(name: &str, message: &str) -> Error {
    Error::new(ErrorKind::Config, name, message)
}

fn duration(name: &str, seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| setting(name, &format!("{seconds} is not a time in seconds")))
}

/// An engine, and the directory it works in if it does in one.
pub(super) type Opened = (Box<dyn PersistenceEngine>, Option<PathBuf>);

/// Opens the store; a signal handler that raises, such as Ctrl-C's, ends the wait with its exception.
pub(super) fn open(py: Python<'_>, arguments: &Arguments) -> PyResult<Opened> {
    let mut config = arguments.config().map_err(|error| to_python(py, &error))?;
    let cancel = Arc::new(AtomicBool::new(false));
    config.cancel = Some(Arc::clone(&cancel));
    let directory = match config.engine_kind() {
        EngineKind::Log | EngineKind::FileSystem => config.directory.clone(),
        EngineKind::ZooKeeper | EngineKind::BlackHole => None,
    };
    let (sender, mut receiver) = sync_channel(1);
    std::thread::Builder::new()
        .name("recovery-open".into())
        // An engine nobody waits for any more is dropped by the channel, which closes it.
        .spawn(move || drop(sender.send(config.open())))?;
    loop {
        // Borrowed mutably, because a receiver may not be shared without the GIL.
        let waiting = &mut receiver;
        match py.detach(move || waiting.recv_timeout(LOOK)) {
            Ok(opened) => {
                let engine = opened.map_err(|error| to_python(py, &error))?;
                return Ok((engine, directory));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("opening the store panicked"));
            }
        }
        if let Err(raised) = py.check_signals() {
            cancel.store(true, Ordering::Relaxed);
            // So that the lock is free again by the time the caller goes on, whoever it went to.
            py.detach(move || drop(receiver.recv_timeout(CANCELLED)));
            return Err(raised);
        }
    }
}
