//! A worker's output: buffered, and never held back for long.
//!
//! What is written collects in a buffer. It is sent when the buffer is full, when the worker says so, and by a thread of
//! its own once the oldest byte has waited for the interval, also while a user's function is busy and has the GIL. What is
//! larger than the buffer goes straight through.
//!
//! The thread begins with the first write, so none exists when a daemon forks, and ends with `close`. An error that it meets is
//! raised by the next call. In a child that a user's function forks there is no thread, and what the parent had
//! collected is the parent's to send. What must stay true: bytes leave in the order in which they were written, because
//! whoever sends holds the lock meanwhile.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::ffi::buffer::Exported;
use crate::ffi::descriptor;

struct State {
    file: Option<File>,
    pending: Vec<u8>,
    /// When the oldest byte that is pending was written.
    since: Instant,
    /// What the thread met.
    error: Option<io::Error>,
    /// Whether the thread waits for something to be written.
    is_idle: bool,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    capacity: usize,
    interval: Duration,
}

/// What remains to be done after a part of the work.
enum Step {
    Done,
    /// A signal came: Python's handlers are to run, then go on from this many bytes of the data.
    Interrupted(usize),
}

impl State {
    /// Send what is pending; interrupted after a part of it, so that signals are looked at.
    fn send(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Err(ErrorKind::NotConnected.into());
        };
        if self.pending.is_empty() {
            return Ok(());
        }
        let count = file.write(&self.pending)?;
        // A signal ends a write that has begun early, without an error.
        let is_all = count == self.pending.len();
        self.pending.drain(..count);
        if is_all {
            Ok(())
        } else {
            Err(ErrorKind::Interrupted.into())
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held; if it did, the buffer would still be whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Add to what is pending, which has room.
    fn collect(&self, state: &mut State, data: &[u8]) {
        if state.pending.is_empty() && !data.is_empty() {
            state.since = Instant::now();
            if state.is_idle {
                self.wake.notify_one();
            }
        }
        state.pending.extend_from_slice(data);
    }

    /// Write without the GIL: sends what is pending if there is no room, and what is larger than the buffer.
    fn write(&self, data: &[u8]) -> io::Result<Step> {
        let mut state = self.lock();
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        if state.pending.len() + data.len() > self.capacity {
            match state.send() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    return Ok(Step::Interrupted(0));
                }
                other => other?,
            }
        }
        if data.len() <= self.capacity {
            self.collect(&mut state, data);
            return Ok(Step::Done);
        }
        let Some(file) = &mut state.file else {
            return Err(ErrorKind::NotConnected.into());
        };
        match file.write(data) {
            Ok(count) if count == data.len() => Ok(Step::Done),
            Ok(count) => Ok(Step::Interrupted(count)),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Step::Interrupted(0)),
            Err(error) => Err(error),
        }
    }

    fn flush(&self) -> io::Result<Step> {
        let mut state = self.lock();
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        if state.file.is_none() {
            return Ok(Step::Done);
        }
        match state.send() {
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Step::Interrupted(0)),
            other => other.map(|()| Step::Done),
        }
    }

    /// The thread: sends what has waited for the interval, until there is no file any more.
    fn run(&self) {
        descriptor::refuse_signals();
        let mut state = self.lock();
        while state.file.is_some() {
            if state.pending.is_empty() || state.error.is_some() {
                state.is_idle = true;
                state = self
                    .wake
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                state.is_idle = false;
                continue;
            }
            let waited = state.since.elapsed();
            if waited < self.interval {
                let rest = self.interval - waited;
                let woken = self.wake.wait_timeout(state, rest);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
            } else if let Err(error) = state.send()
                && error.kind() != ErrorKind::Interrupted
            {
                state.error = Some(error);
            }
        }
    }
}

/// A buffered writer to a descriptor that sends what it holds after an interval at the latest.
#[pyclass(module = "quickpickle._native", frozen)]
pub(crate) struct TimelyWriter {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The process that writes.
    process: AtomicU32,
}

#[pymethods]
impl TimelyWriter {
    #[new]
    #[pyo3(signature = (descriptor, capacity = 65_536, interval = 0.01))]
    fn new(descriptor: i32, capacity: usize, interval: f64) -> PyResult<Self> {
        let interval = Duration::try_from_secs_f64(interval)
            .map_err(|_| PyValueError::new_err("interval must be a number of seconds"))?;
        let state = State {
            file: Some(descriptor::duplicate(descriptor)?),
            pending: Vec::new(),
            since: Instant::now(),
            error: None,
            is_idle: false,
        };
        Ok(TimelyWriter {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                wake: Condvar::new(),
                capacity,
                interval,
            }),
            thread: Mutex::new(None),
            process: AtomicU32::new(std::process::id()),
        })
    }

    /// Take bytes; returns how many, which is all of them.
    #[pyo3(signature = (data, /))]
    fn write(&self, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        let py = data.py();
        let exported = Exported::of(data)?;
        let bytes = exported.bytes();
        self.begin()?;
        match self.shared.state.try_lock() {
            Ok(mut state) if state.pending.len() + bytes.len() <= self.shared.capacity => {
                if state.file.is_none() {
                    return Err(PyValueError::new_err("write to closed file"));
                }
                if let Some(error) = state.error.take() {
                    return Err(error.into());
                }
                self.shared.collect(&mut state, bytes);
                return Ok(bytes.len());
            }
            _ => {}
        }
        let (shared, mut rest) = (&self.shared, bytes);
        loop {
            match py.detach(|| shared.write(rest))? {
                Step::Done => return Ok(bytes.len()),
                Step::Interrupted(sent) => rest = &rest[sent..],
            }
            py.check_signals()?;
        }
    }

    /// Send what is held.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.settle()?;
        let shared = &self.shared;
        while let Step::Interrupted(_) = py.detach(|| shared.flush())? {
            py.check_signals()?;
        }
        Ok(())
    }

    /// Send what is held, end the thread and close; twice is fine. The descriptor that was given stays open.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.settle()?;
        if self.closed() {
            return Ok(());
        }
        let flushed = self.flush(py);
        py.detach(|| {
            self.shared.lock().file = None;
            self.shared.wake.notify_all();
            let thread = self
                .thread
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            if let Some(thread) = thread {
                // It cannot have panicked; if it had, there would be nothing to do about it.
                let _ = thread.join();
            }
        });
        flushed
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        match self.shared.state.try_lock() {
            Ok(state) => state.file.is_none(),
            // Somebody is sending.
            Err(_) => false,
        }
    }

    fn writable(&self) -> bool {
        true
    }

    fn readable(&self) -> bool {
        false
    }

    fn seekable(&self) -> bool {
        false
    }
}

impl TimelyWriter {
    /// Start the thread, if there is none.
    fn begin(&self) -> PyResult<()> {
        self.settle()?;
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let made = thread::Builder::new().name("quickpickle".into());
            *thread = Some(made.spawn(move || shared.run())?);
        }
        Ok(())
    }

    /// In a child, leave to the parent what is its own; an error if its thread was sending when it forked.
    fn settle(&self) -> PyResult<()> {
        let process = std::process::id();
        if self.process.load(Ordering::Relaxed) == process {
            return Ok(());
        }
        match self.shared.state.try_lock() {
            Ok(mut state) => {
                state.pending.clear();
                state.error = None;
                state.is_idle = false;
            }
            Err(_) => {
                return Err(PyRuntimeError::new_err(
                    "the process was forked while its output was being sent",
                ));
            }
        }
        // There is no such thread here, to be waited for or let go.
        std::mem::forget(
            self.thread
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        self.process.store(process, Ordering::Relaxed);
        Ok(())
    }
}
