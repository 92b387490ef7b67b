//! The exclusive lock on a directory, and standing by for it.
//!
//! One writer at a time. The lock belongs to an open file and goes when its process goes, however it goes; a standby polls for it on the
//! monotonic clock, so that a clock set back or forth neither ends nor prolongs the wait.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::engine::Wait;
use crate::error::{Error, ErrorKind, Result};
use crate::storage::Storage;

/// Name of the lock file in a directory. Its content is the holder's process id, for people.
pub(crate) const LOCK: &str = "LOCK";

/// How often a standby looks.
const POLL: Duration = Duration::from_millis(25);

/// A held lock; dropping it gives the directory free.
pub(crate) struct Held {
    _lock: Box<dyn Any + Send + Sync>,
}

/// Takes the lock of `directory`, waiting as `wait` says. Setting `cancel` ends the wait.
pub(crate) fn acquire(
    storage: &dyn Storage,
    directory: &Path,
    wait: Wait,
    cancel: Option<&Arc<AtomicBool>>,
) -> Result<Held> {
    let path = directory.join(LOCK);
    let started = Instant::now();
    let mut told = false;
    loop {
        let lock = storage
            .lock(&path)
            .map_err(|error| Error::io("take the lock", &path, error))?;
        if let Some(lock) = lock {
            return Ok(Held { _lock: lock });
        }
        let locked = |message: &str| Error::new(ErrorKind::Locked, directory.display(), message);
        let left = match wait {
            Wait::No => {
                return Err(locked(
                    "another process holds this store; stop it, or stand by for it",
                ));
            }
            Wait::For(limit) => match limit.checked_sub(started.elapsed()) {
                Some(left) if !left.is_zero() => left,
                _ => {
                    return Err(locked(
                        "another process still holds this store after the time to stand by",
                    ));
                }
            },
            Wait::Forever => POLL,
        };
        if cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(locked("standing by was cancelled"));
        }
        if !told {
            tracing::info!(directory = %directory.display(), "standing by: another process holds the store");
            told = true;
        }
        std::thread::sleep(left.min(POLL));
    }
}
