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
use crate::error::{Error, ErrorKind};
use crate::storage::Storage;

/// Name of the lock file in a directory. Its content is the holder's process id, for people.
pub(crate) const LOCK: &str = "LOCK";

/// How often a standby looks.
const POLL: Duration = Duration::from_millis(25);

/// A held lock; dropping it gives the directory free.
pub(crate) struct Held {
    _lock: Box<dyn Any + Send + Sync>,
}

/// How long to stand by for a store that somebody else holds.
pub(crate) struct Patience<'a> {
    wait: Wait,
    cancel: Option<&'a Arc<AtomicBool>>,
    started: Instant,
}

impl<'a> Patience<'a> {
    /// Patience as `wait` says, beginning now. Setting `cancel` ends it.
    pub(crate) fn new(wait: Wait, cancel: Option<&'a Arc<AtomicBool>>) -> Self {
        Self {
            wait,
            cancel,
            started: Instant::now(),
        }
    }

    /// Sleeps for a moment; or says why not, if there is no patience left.
    pub(crate) fn pause(&self) -> Result<(), &'static str> {
        let left = match self.wait {
            Wait::No => {
                return Err("another process holds this store; stop it, or stand by for it");
            }
            Wait::For(limit) => match limit.checked_sub(self.started.elapsed()) {
                Some(left) if !left.is_zero() => left,
                _ => {
                    return Err(
                        "another process still holds this store after the time to stand by",
                    );
                }
            },
            Wait::Forever => POLL,
        };
        if self
            .cancel
            .is_some_and(|cancel| cancel.load(Ordering::Relaxed))
        {
            return Err("standing by was cancelled");
        }
        std::thread::sleep(left.min(POLL));
        Ok(())
    }
}

/// Takes the lock of `directory`, waiting as long as there is patience.
pub(crate) fn acquire(
    storage: &dyn Storage,
    directory: &Path,
    patience: &Patience<'_>,
) -> crate::error::Result<Held> {
    let path = directory.join(LOCK);
    let mut told = false;
    loop {
        let lock = storage
            .lock(&path)
            .map_err(|error| Error::io("take the lock", &path, error))?;
        if let Some(lock) = lock {
            return Ok(Held { _lock: lock });
        }
        if !told && patience.wait != Wait::No {
            tracing::info!(directory = %directory.display(), "standing by: another process holds the store");
            told = true;
        }
        patience
            .pause()
            .map_err(|reason| Error::new(ErrorKind::Locked, directory.display(), reason))?;
    }
}
