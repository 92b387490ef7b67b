//! The embedded engine: an append-only log in a directory.
//!
//! Truth is on disk, in numbered segments; memory holds an index of names. `format` knows bytes, `scan` and `replay` read them, `open`
//! repairs, `segment` appends, `compact` gives space back, `commit` decides who writes and when a write counts.

mod batch;
mod commit;
mod compact;
mod engine;
mod format;
mod index;
mod open;
mod replay;
mod scan;
mod segment;
mod table;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::engine::{Durability, Wait};

pub use engine::LogEngine;

/// Directory for damaged bytes, inside the store.
pub(crate) const QUARANTINE: &str = "quarantine";
/// Left where a sync failed: what the page cache says about the files may not be what the device has.
pub(crate) const POISONED: &str = "POISONED";

/// How a log is opened.
///
/// ```
/// use quickpickle_recovery::{Durability, LogOptions};
///
/// let options = LogOptions { durability: Durability::None, strict: true, ..LogOptions::default() };
/// assert!(!options.read_only);
/// ```
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// When a change counts as stored.
    pub durability: Durability,
    /// Refuse to open a damaged store instead of going on with what is left.
    pub strict: bool,
    /// Take no lock and change nothing; writing fails. A log in use can be read this way.
    pub read_only: bool,
    /// What to do while another process holds the store.
    pub wait: Wait,
    /// Ends the wait when set.
    pub cancel: Option<Arc<AtomicBool>>,
    /// A new segment begins once this many bytes are full.
    pub segment_bytes: u64,
    /// How much space to take at a time with [`Durability::Always`]; makes syncs cheaper.
    pub preallocate_bytes: u64,
    /// Compact in the background once dead records outweigh live ones.
    pub auto_compact: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Always,
            strict: false,
            read_only: false,
            wait: Wait::No,
            cancel: None,
            segment_bytes: 16 << 20,
            preallocate_bytes: 1 << 20,
            auto_compact: true,
        }
    }
}
