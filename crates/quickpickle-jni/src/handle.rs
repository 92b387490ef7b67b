//! Java's `long` and the engine it stands for.
//!
//! A handle is the number of an entry in a table, not an address: numbers are given out once, `close` takes the entry out, and whatever
//! comes later with the same number finds nothing and gets [`ErrorKind::Closed`]. A call that is under way holds its own reference, so
//! that an engine is freed once, after the last call in it. This is the one place of the crate where unsafe code would be allowed; it
//! needs none.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, RwLock};

use quickpickle_recovery::{Config, Error, ErrorKind, PersistenceEngine, Result, Wait};

static SLOTS: LazyLock<RwLock<HashMap<i64, Arc<Slot>>>> = LazyLock::new(RwLock::default);
static NEXT: AtomicI64 = AtomicI64::new(1);

/// An engine: prepared, then open, then closed.
pub(crate) struct Slot {
    config: Config,
    /// Ends the wait for the store's lock.
    cancel: Arc<AtomicBool>,
    engine: OnceLock<Box<dyn PersistenceEngine>>,
    /// Held while opening, so that the store is opened once.
    opening: Mutex<()>,
}

/// Reads the settings, keys and values in turn, and gives out a handle.
///
/// Fails with [`ErrorKind::Config`] where a setting makes no sense or one is missing. Nothing on disk is touched.
pub(crate) fn prepare(settings: &[String]) -> Result<i64> {
    let cancel = Arc::new(AtomicBool::new(false));
    let mut config = Config {
        wait: Wait::Forever,
        ..Config::default()
    };
    for pair in settings.chunks(2) {
        let [key, value] = pair else {
            return Err(Error::new(
                ErrorKind::Config,
                &pair[0],
                "the last key has no value",
            ));
        };
        config.set(key, value)?;
    }
    config.cancel = Some(Arc::clone(&cancel));
    let slot = Slot {
        config,
        cancel,
        engine: OnceLock::new(),
        opening: Mutex::new(()),
    };
    let handle = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut slots = SLOTS.write().unwrap_or_else(PoisonError::into_inner);
    slots.insert(handle, Arc::new(slot));
    Ok(handle)
}

/// The engine behind `handle`, or [`ErrorKind::Closed`] if there is none any more.
pub(crate) fn get(handle: i64) -> Result<Arc<Slot>> {
    let slots = SLOTS.read().unwrap_or_else(PoisonError::into_inner);
    slots.get(&handle).map(Arc::clone).ok_or_else(closed)
}

/// Closes the engine in good order, or ends its wait for the lock. A handle that is closed already is left alone.
pub(crate) fn close(handle: i64) -> Result<()> {
    let mut slots = SLOTS.write().unwrap_or_else(PoisonError::into_inner);
    let slot = slots.remove(&handle);
    drop(slots);
    let Some(slot) = slot else { return Ok(()) };
    slot.cancel.store(true, Ordering::Release);
    slot.engine.get().map_or(Ok(()), |engine| engine.close())
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "", "the engine is closed")
}

impl Slot {
    /// The settings the engine is made from.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Opens the store, which makes this process its one writer. With `wait`, stands by for the lock as the settings say, for ever unless
    /// they do; without, fails with [`ErrorKind::Locked`] at once. Opening an open engine changes nothing.
    pub(crate) fn open(&self, wait: bool) -> Result<()> {
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if self.engine.get().is_some() {
            return Ok(());
        }
        let mut config = self.config.clone();
        if !wait {
            config.wait = Wait::No;
        }
        let result = config.open();
        if self.cancel.load(Ordering::Acquire) {
            // Closed meanwhile: what was opened goes again, by being dropped.
            return Err(closed());
        }
        let _ = self.engine.set(result?);
        if self.cancel.load(Ordering::Acquire) {
            // Closed between the look and the leap: whoever closes may have seen no engine.
            return self.engine()?.close().and(Err(closed()));
        }
        Ok(())
    }

    /// The open engine.
    pub(crate) fn engine(&self) -> Result<&dyn PersistenceEngine> {
        let not_open = || Error::new(ErrorKind::Closed, "", "the engine is not open yet");
        self.engine.get().map(AsRef::as_ref).ok_or_else(not_open)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn log_in(directory: &std::path::Path) -> i64 {
        let settings = ["spark.quickpickle.recovery.engine", "log"];
        let place = directory.display().to_string();
        let mut settings: Vec<String> = settings.map(String::from).to_vec();
        settings.extend(["spark.deploy.recoveryDirectory".into(), place]);
        prepare(&settings).unwrap()
    }

    fn kind<T>(result: Result<T>) -> ErrorKind {
        result.map(drop).unwrap_err().kind()
    }

    #[test]
    fn a_closed_handle_finds_nothing_and_closing_twice_is_fine() {
        let directory = tempfile::tempdir().unwrap();
        let handle = log_in(directory.path());
        let slot = get(handle).unwrap();
        assert_eq!(kind(slot.engine()), ErrorKind::Closed);
        slot.open(false).unwrap();
        slot.open(true).unwrap();
        slot.engine().unwrap().persist("name", b"value").unwrap();
        close(handle).unwrap();
        assert_eq!(kind(get(handle)), ErrorKind::Closed);
        close(handle).unwrap();
        // Whoever still holds it, as a call under way does, gets an error and no store.
        assert_eq!(
            kind(slot.engine().unwrap().persist("name", b"other")),
            ErrorKind::Closed
        );
        assert_eq!(kind(get(0)), ErrorKind::Closed);
        assert_eq!(kind(get(-1)), ErrorKind::Closed);

        let again = log_in(directory.path());
        assert_ne!(again, handle);
        get(again).unwrap().open(false).unwrap();
        let entries = get(again).unwrap().engine().unwrap().read("").unwrap();
        assert_eq!(entries[0].value, b"value");
        close(again).unwrap();
    }

    #[test]
    fn closing_ends_the_wait_for_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let (first, second) = (log_in(directory.path()), log_in(directory.path()));
        get(first).unwrap().open(false).unwrap();
        assert_eq!(kind(get(second).unwrap().open(false)), ErrorKind::Locked);
        let waiting = std::thread::spawn(move || get(second).unwrap().open(true));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished());
        let started = Instant::now();
        close(second).unwrap();
        assert_eq!(kind(waiting.join().unwrap()), ErrorKind::Closed);
        assert!(started.elapsed() < Duration::from_secs(10));
        close(first).unwrap();
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_before_anything_is_touched() {
        let refused = |settings: &[&str]| {
            let settings: Vec<String> = settings.iter().map(|&text| text.into()).collect();
            kind(prepare(&settings))
        };
        assert_eq!(
            refused(&["spark.quickpickle.recovery.sync", "sometimes"]),
            ErrorKind::Config
        );
        assert_eq!(
            refused(&["spark.quickpickle.recovery.nonsense", "1"]),
            ErrorKind::Config
        );
        assert_eq!(
            refused(&["spark.deploy.recoveryDirectory"]),
            ErrorKind::Config
        );
    }
}
