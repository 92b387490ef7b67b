//! The engine that keeps nothing: for a master that needs no recovery, and to measure what the others cost.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::{CompactReport, PersistenceEngine, Report, Stats};
use crate::entry::{self, CodecId, Entry};
use crate::error::{Error, ErrorKind, Result};

/// Accepts everything, returns nothing.
#[derive(Debug, Default)]
pub struct BlackHoleEngine {
    closed: AtomicBool,
}

impl BlackHoleEngine {
    /// A new black hole.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn open(&self) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::new(
                ErrorKind::Closed,
                "black_hole",
                "the engine is closed",
            ));
        }
        Ok(())
    }
}

impl PersistenceEngine for BlackHoleEngine {
    fn persist_tagged(&self, name: &str, _codec: CodecId, value: &[u8]) -> Result<()> {
        self.open()?;
        entry::check_sizes(name, value)
    }

    fn unpersist(&self, _name: &str) -> Result<()> {
        self.open()
    }

    fn read(&self, _prefix: &str) -> Result<Vec<Entry>> {
        self.open().map(|()| Vec::new())
    }

    fn names(&self, _prefix: &str) -> Result<Vec<String>> {
        self.open().map(|()| Vec::new())
    }

    fn get(&self, _name: &str) -> Result<Option<Entry>> {
        self.open().map(|()| None)
    }

    fn sync(&self) -> Result<()> {
        self.open()
    }

    fn opening_report(&self) -> Report {
        Report {
            closed_cleanly: true,
            ..Report::default()
        }
    }

    fn verify(&self) -> Result<Report> {
        self.open().map(|()| self.opening_report())
    }

    fn compact(&self) -> Result<CompactReport> {
        self.open().map(|()| CompactReport::default())
    }

    fn stats(&self) -> Result<Stats> {
        self.open()?;
        Ok(Stats {
            engine: "black_hole".into(),
            sync: "none".into(),
            ..Stats::default()
        })
    }

    fn revive(&self) -> Result<()> {
        self.open()
    }

    fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Relaxed);
        Ok(())
    }
}
