//! The contract every engine keeps, and the reports engines give about themselves.
//!
//! Once `persist` or `unpersist` has returned `Ok`, the change is as durable as the engine's [`Durability`] level says. Once one of them has
//! returned an error that poisons (I/O, full disk), no later write answers `Ok` until the store is opened again. A call that failed may
//! or may not have taken effect; the next open tells. The last write of a name wins, and removing a name that is not there succeeds.

use std::fmt;
use std::time::Duration;

use crate::entry::{CodecId, Entry};
use crate::error::{Error, ErrorKind, Result};

/// When a change counts as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// `persist` returns after the operating system has confirmed the data is on the device. Survives power loss.
    #[default]
    Always,
    /// `persist` returns once the operating system has the data; a sync follows within this time. Weaker: a power loss can take the
    /// changes of the last interval, a killed process loses nothing.
    Group(Duration),
    /// `persist` returns once the operating system has the data, which writes it out when it likes. Weaker still: a power loss can take
    /// anything not yet written out, a killed process loses nothing.
    None,
}

impl Durability {
    /// Reads `always`, `none`, `group` (10 ms), `group(20)` or `group:20` (milliseconds).
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        match text {
            "always" => return Ok(Self::Always),
            "none" => return Ok(Self::None),
            "group" => return Ok(Self::Group(Duration::from_millis(10))),
            _ => {}
        }
        let millis = text.strip_prefix("group").and_then(|rest| {
            rest.strip_prefix(':')
                .or_else(|| rest.strip_prefix('(').and_then(|r| r.strip_suffix(')')))
        });
        let millis = millis.map(|m| m.trim().trim_end_matches("ms").trim());
        match millis.and_then(|m| m.parse::<u64>().ok()) {
            Some(millis) if (1..=60_000).contains(&millis) => {
                Ok(Self::Group(Duration::from_millis(millis)))
            }
            _ => Err(Error::new(
                ErrorKind::Config,
                "sync",
                format!(
                    "{text:?} is not a durability level; use always, group(MILLISECONDS) with 1 to 60000, or none"
                ),
            )),
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::Group(interval) => write!(f, "group({})", interval.as_millis()),
            Self::None => f.write_str("none"),
        }
    }
}

/// What to do when another process holds the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Wait {
    /// Fail at once with [`ErrorKind::Locked`].
    #[default]
    No,
    /// Stand by for at most this long, then fail with [`ErrorKind::Locked`].
    For(Duration),
    /// Stand by until the holder is gone.
    Forever,
}

/// A stretch of stored bytes that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file or node.
    pub place: String,
    /// Where the stretch begins, in bytes from the start of the file.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
    /// What is wrong with it.
    pub reason: String,
    /// Where its bytes were put aside, if they were.
    pub quarantined_to: Option<String>,
}

/// What opening or verifying a store found.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Report {
    /// Entries alive.
    pub entries: u64,
    /// Records (or files, or nodes) read and found good.
    pub records: u64,
    /// Bytes looked at.
    pub bytes_scanned: u64,
    /// Bytes of an incomplete last write that were dropped: what a crash in the middle of a write leaves.
    pub torn_tail_bytes: u64,
    /// Damage that is not a torn tail.
    pub damage: Vec<Damage>,
    /// Records known to be missing, from gaps in the sequence numbers.
    pub missing_records: u64,
    /// The store was closed in good order by whoever had it last.
    pub closed_cleanly: bool,
    /// Remarks that need no action, such as leftovers of an interrupted compaction.
    pub notes: Vec<String>,
}

impl Report {
    /// No damage and nothing missing. A torn tail is no damage: it was never acknowledged as durable.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty() && self.missing_records == 0
    }
}

/// What a compaction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CompactReport {
    /// Bytes on disk before.
    pub bytes_before: u64,
    /// Bytes on disk after.
    pub bytes_after: u64,
    /// Entries kept.
    pub entries: u64,
}

/// How much a store holds.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Stats {
    /// Engine name: `log`, `file_system`, `zookeeper`, `black_hole`.
    pub engine: String,
    /// Where it is: a directory or a ZooKeeper address.
    pub location: String,
    /// Durability in force, as text.
    pub sync: String,
    /// Store id, in hex; empty for engines without one.
    pub store_id: String,
    /// Version of the format on disk.
    pub format_version: u32,
    /// Entries alive.
    pub entries: u64,
    /// Bytes of live names and values, with their framing.
    pub live_bytes: u64,
    /// Bytes the store takes.
    pub total_bytes: u64,
    /// Files or nodes the store consists of.
    pub files: u64,
    /// An earlier failure stops all writing.
    pub poisoned: bool,
}

/// A store of named bytes that survives its process.
///
/// All methods take `&self` and may be called from several threads.
///
/// ```
/// use quickpickle_recovery::{LogEngine, LogOptions, PersistenceEngine};
///
/// # fn main() -> quickpickle_recovery::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// let engine = LogEngine::open(directory.path(), LogOptions::default())?;
/// engine.persist("worker_1", b"alive")?;
/// engine.persist("app_7", b"running")?;
/// engine.unpersist("app_7")?;
/// let workers = engine.read("worker_")?;
/// assert_eq!(workers[0].value, b"alive");
/// engine.close()?;
/// # Ok(())
/// # }
/// ```
pub trait PersistenceEngine: Send + Sync {
    /// Stores `value` under `name` with the tag of its codec, replacing what was there.
    fn persist_tagged(&self, name: &str, codec: CodecId, value: &[u8]) -> Result<()>;

    /// Stores `value` under `name`, tagged [`CodecId::RAW`].
    fn persist(&self, name: &str, value: &[u8]) -> Result<()> {
        self.persist_tagged(name, CodecId::RAW, value)
    }

    /// Stores many entries; engines that can do so pay for one sync only. Not atomic: after a crash some may be there and others not.
    fn persist_batch(&self, entries: &[Entry]) -> Result<()> {
        entries
            .iter()
            .try_for_each(|entry| self.persist_tagged(&entry.name, entry.codec, &entry.value))
    }

    /// Removes `name`; succeeds if it is not there.
    fn unpersist(&self, name: &str) -> Result<()>;

    /// All entries whose name starts with `prefix`, ordered by name. Never skips a damaged entry silently: fails instead.
    fn read(&self, prefix: &str) -> Result<Vec<Entry>>;

    /// The names that start with `prefix`, ordered.
    fn names(&self, prefix: &str) -> Result<Vec<String>>;

    /// The entry called exactly `name`, or `None`.
    fn get(&self, name: &str) -> Result<Option<Entry>>;

    /// Whether there is an entry called exactly `name`. Engines that know without reading its value do not read it, so one that is
    /// damaged counts as there.
    fn contains(&self, name: &str) -> Result<bool> {
        Ok(self.get(name)?.is_some())
    }

    /// Returns once everything acknowledged so far is on the device, whatever the durability level.
    fn sync(&self) -> Result<()>;

    /// What was found when the store was opened.
    fn opening_report(&self) -> Report;

    /// Reads the whole store again and checks it. Changes nothing.
    fn verify(&self) -> Result<Report>;

    /// Gives back space held by replaced and removed entries.
    fn compact(&self) -> Result<CompactReport>;

    /// How much the store holds.
    fn stats(&self) -> Result<Stats>;

    /// After a failure that poisoned the engine: builds the store anew from what it holds, without giving up the lock, and lets writes
    /// through again if that succeeds. `Ok` on an engine that is not poisoned changes nothing.
    fn revive(&self) -> Result<()>;

    /// For the child of a fork: lets go of the files and locks that came with it, without writing, syncing or unlocking anything, so that
    /// the store stays its parent's and the lock goes when the parent does. The engine is closed afterwards and must not be dropped in
    /// the child: its threads are not there to be joined. What another thread of the parent was using during the fork cannot be let go.
    fn disown(&self) {}

    /// Makes everything durable and releases the store. Closing twice is fine; other calls fail with [`ErrorKind::Closed`] afterwards.
    fn close(&self) -> Result<()>;
}

impl fmt::Debug for dyn PersistenceEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PersistenceEngine")
    }
}
