//! The log as a [`PersistenceEngine`]: opening, reading, maintenance and closing around the committer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLockReadGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use super::commit::{Committer, Health, Writer, locked};
use super::compact::write_snapshot;
use super::format::{FORMAT_VERSION, Operation, SegmentHeader, segment_name};
use super::index::{Index, Location, Segment, entry_of, read_records};
use super::{LogOptions, open, replay};
use crate::engine::{CompactReport, Damage, Durability, PersistenceEngine, Report, Stats};
use crate::entry::{self, CodecId, Entry};
use crate::error::{Error, ErrorKind, Result};
use crate::lock::{self, Held, Patience};
use crate::storage::{OsStorage, Storage};

/// The embedded engine. See the crate documentation for what it promises and `docs/recovery-format.md` for its files.
pub struct LogEngine {
    shared: Arc<Shared>,
    background: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    committer: Committer,
    options: LogOptions,
    report: Mutex<Report>,
    lock: Mutex<Option<Held>>,
    /// Held while segments are replaced or read as a whole.
    maintenance: Mutex<()>,
}

/// Where a log is and what its segments have in common.
pub(crate) struct Place {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) directory: PathBuf,
    pub(crate) store_id: [u8; 16],
    pub(crate) step: u64,
}

impl Place {
    pub(crate) fn segment(&self, number: u64) -> PathBuf {
        self.directory.join(segment_name(number))
    }

    /// See [`open::leave_word`].
    pub(crate) fn leave_word(&self) {
        open::leave_word(&*self.storage, &self.directory);
    }
}

/// Wakes a background thread.
#[derive(Default)]
pub(crate) struct Signal {
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Default)]
struct SignalState {
    raised: bool,
    stop: bool,
}

impl Signal {
    pub(crate) fn raise(&self) {
        locked(&self.state).raised = true;
        self.changed.notify_all();
    }

    fn stop(&self) {
        locked(&self.state).stop = true;
        self.changed.notify_all();
    }

    /// Waits for a change; `false` once stopped.
    fn wait(&self) -> bool {
        let mut state = locked(&self.state);
        while !state.raised && !state.stop {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.raised = false;
        !state.stop
    }

    /// Sleeps for `time`, or until stopped.
    fn sleep(&self, time: Duration) {
        let state = locked(&self.state);
        let _ = self
            .changed
            .wait_timeout_while(state, time, |state| !state.stop);
    }
}

impl LogEngine {
    /// Opens the log in `directory`, creating it if need be.
    ///
    /// Fails with [`ErrorKind::Locked`] if another process has it, [`ErrorKind::Corrupt`] if it is damaged and `strict` is set, and
    /// [`ErrorKind::Version`] if a newer release or another engine wrote it.
    pub fn open(directory: impl AsRef<Path>, options: LogOptions) -> Result<Self> {
        Self::open_on(Arc::new(OsStorage), directory.as_ref(), options)
    }

    /// Like [`LogEngine::open`], on any [`Storage`].
    pub fn open_on(
        storage: Arc<dyn Storage>,
        directory: &Path,
        options: LogOptions,
    ) -> Result<Self> {
        let patience = Patience::new(options.wait, options.cancel.as_ref());
        let held = if options.read_only {
            None
        } else {
            storage
                .create_dir(directory)
                .map_err(|error| Error::io("create the directory", directory, error))?;
            Some(lock::acquire(&*storage, directory, &patience)?)
        };
        let opened = open_retrying(&*storage, directory, &options, &patience)?;
        let step = if options.durability == Durability::Always {
            options.preallocate_bytes
        } else {
            0
        };
        let place = Place {
            storage,
            directory: directory.to_owned(),
            store_id: opened.store_id,
            step,
        };
        let report = opened.report;
        log_findings(directory, &report);
        let unmarked = !report.closed_cleanly && report.records > 0;
        let committer = Committer::new(
            opened.index,
            opened.active,
            opened.next_sequence,
            unmarked,
            &options,
            place,
        );
        let shared = Arc::new(Shared {
            committer,
            report: Mutex::new(report),
            lock: Mutex::new(held),
            maintenance: Mutex::new(()),
            options,
        });
        let background = shared.start_background()?;
        Ok(Self {
            shared,
            background: Mutex::new(background),
        })
    }

    /// Id of the store, drawn when it was created.
    #[must_use]
    pub fn store_id(&self) -> [u8; 16] {
        self.shared.committer.place.store_id
    }
}

/// A reader takes no lock, so a compaction may remove a segment between its listing and its opening; then the listing is old news. A
/// writer's lock goes before the newest segment's where a forked child lets go of both, one after the other.
fn open_retrying(
    storage: &dyn Storage,
    directory: &Path,
    options: &LogOptions,
    patience: &Patience<'_>,
) -> Result<open::Opened> {
    const ATTEMPTS: usize = 5;
    let mut gone = 0;
    loop {
        match open::open(storage, directory, options) {
            Err(error)
                if options.read_only
                    && gone < ATTEMPTS
                    && error.kind() == ErrorKind::Io
                    && error.is_not_found() =>
            {
                gone += 1;
            }
            Err(error) if error.kind() == ErrorKind::Locked && patience.pause().is_ok() => {}
            result => return result,
        }
    }
}

fn log_findings(directory: &Path, report: &Report) {
    let directory = directory.display();
    if !report.is_sound() {
        tracing::error!(
            %directory,
            damaged = report.damage.len(),
            missing = report.missing_records,
            "the log is damaged; going on with what is left"
        );
    }
    if report.torn_tail_bytes > 0 {
        tracing::warn!(%directory, bytes = report.torn_tail_bytes, "an incomplete last write was dropped");
    }
    tracing::info!(%directory, entries = report.entries, records = report.records, "log opened");
}

impl std::fmt::Debug for LogEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogEngine")
            .field("directory", &self.shared.committer.place.directory)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.committer
            .index
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// One thread to sync groups, one to compact: a long compaction must not put off a sync.
    fn start_background(self: &Arc<Self>) -> Result<Vec<JoinHandle<()>>> {
        let mut threads = Vec::new();
        let mut start = |name: &str, work: fn(&Self)| {
            let shared = Arc::clone(self);
            let thread = std::thread::Builder::new()
                .name(name.into())
                .spawn(move || work(&shared));
            threads.push(thread.map_err(|error| {
                Error::io("start a thread", &self.committer.place.directory, error)
            })?);
            Ok(())
        };
        if !self.options.read_only {
            if matches!(self.options.durability, Durability::Group(_)) {
                start("recovery-sync", Self::sync_groups)?;
            }
            if self.options.auto_compact {
                // The last owner may have ended before it came to that.
                if self.wants_compaction() {
                    self.committer.rotated.raise();
                }
                start("recovery-compact", Self::compact_when_worthwhile)?;
            }
        }
        Ok(threads)
    }

    fn sync_groups(&self) {
        let Durability::Group(interval) = self.options.durability else {
            return;
        };
        while self.committer.written.wait() {
            self.committer.written.sleep(interval);
            // An error poisons the engine; the next write tells its caller.
            let _ = self.sync();
        }
    }

    fn compact_when_worthwhile(&self) {
        while self.committer.rotated.wait() {
            if self.wants_compaction()
                && let Err(error) = self.compact()
            {
                tracing::warn!(%error, "compaction failed; it is tried again after the next segment");
            }
        }
    }

    /// Dead records outweigh live ones, by a segment at least.
    fn wants_compaction(&self) -> bool {
        let index = self.index();
        let dead = index.total_bytes().saturating_sub(index.live_bytes());
        dead > index.live_bytes().max(self.options.segment_bytes)
    }

    fn sync(&self) -> Result<()> {
        let mut writer = self.committer.writer();
        self.committer.check(&writer)?;
        let result = self.committer.sync_active(&mut writer);
        self.committer.poison_on_error(&mut writer, result)
    }

    fn compact(&self) -> Result<CompactReport> {
        let _maintenance = locked(&self.maintenance);
        let committer = &self.committer;
        let (number, base_sequence, bytes_before) = {
            let mut writer = committer.writer();
            committer.check(&writer)?;
            let bytes_before = self.index().total_bytes();
            // Leaves one number free: the snapshot takes its place between the old segments and the new one.
            let rotated = committer.rotate(&mut writer, 2);
            let number = committer.poison_on_error(&mut writer, rotated)?;
            (number - 1, writer.next_sequence, bytes_before)
        };
        let (segments, live) = {
            let index = self.index();
            (index.segments.clone(), index.live().before(number))
        };
        let place = &committer.place;
        let header = SegmentHeader {
            version: FORMAT_VERSION,
            snapshot: true,
            store_id: place.store_id,
            number,
            base_sequence,
        };
        let snapshot = write_snapshot(
            &*place.storage,
            &place.directory,
            header,
            &segments,
            &live.locations,
        )?;
        let old: Vec<u64> = segments
            .range(..number)
            .map(|(&number, _)| number)
            .collect();
        let report = {
            let mut index = committer
                .index
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            index.relocate(&live, &snapshot.moved);
            index.segments.insert(number, snapshot.segment);
            for number in &old {
                index.segments.remove(number);
            }
            CompactReport {
                bytes_before,
                bytes_after: index.total_bytes(),
                entries: index.len() as u64,
            }
        };
        for number in old {
            // A segment that stays is removed when the store is opened next; it no longer counts either way.
            let path = place.segment(number);
            if let Err(error) = place.storage.remove(&path) {
                tracing::warn!(path = %path.display(), %error, "a replaced segment could not be removed");
            }
        }
        Ok(report)
    }

    fn read_at(&self, locations: impl FnOnce(&Index) -> Vec<Location>) -> Result<Vec<Entry>> {
        // The segments are taken together with the locations: a compaction that comes between changes both.
        let (locations, segments) = {
            let index = self.index();
            (locations(&index), index.segments.clone())
        };
        let mut entries = Vec::with_capacity(locations.len());
        read_records(&segments, &locations, |_, header, record| {
            entries.push(entry_of(header, record)?);
            Ok(())
        })?;
        Ok(entries)
    }

    fn closed(&self) -> Result<()> {
        match self.committer.writer().health {
            Health::Closed => Err(Error::new(
                ErrorKind::Closed,
                self.committer.place.directory.display(),
                "the engine is closed",
            )),
            _ => Ok(()),
        }
    }

    /// Replays what is on disk up to where this engine has written.
    fn verify(&self) -> Result<Report> {
        self.closed()?;
        let _maintenance = locked(&self.maintenance);
        let (segments, entries): (BTreeMap<u64, Segment>, usize) = {
            // With the writer's lock held no record is half written and no name half indexed.
            let _writer = self.committer.writer();
            let index = self.index();
            (index.segments.clone(), index.len())
        };
        let mut report = replay::replay(segments)?.report;
        if report.is_sound() && report.entries != entries as u64 {
            report.damage.push(Damage {
                place: self.committer.place.directory.display().to_string(),
                offset: 0,
                length: 0,
                reason: format!(
                    "the disk holds {} entries, memory {entries}",
                    report.entries
                ),
                quarantined_to: None,
            });
        }
        Ok(report)
    }

    fn revive(&self) -> Result<()> {
        let _maintenance = locked(&self.maintenance);
        let committer = &self.committer;
        let mut writer = committer.writer();
        match writer.health {
            Health::Good => return Ok(()),
            Health::Closed => return committer.check(&writer),
            Health::Poisoned(_) => {}
        }
        let place = &committer.place;
        // The old handle goes first: its lock on the segment would stand in our own way.
        let old = writer.active.take();
        let mut index = committer
            .index
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        index.segments.clear();
        drop(old);
        let opened = open::open(&*place.storage, &place.directory, &self.options)?;
        if opened.store_id != place.store_id {
            return Err(Error::new(
                ErrorKind::Corrupt,
                place.directory.display(),
                "the directory holds another store now",
            ));
        }
        *index = opened.index;
        writer.active = opened.active;
        writer.next_sequence = opened.next_sequence;
        writer.dirty_since = None;
        writer.unmarked = true;
        writer.health = Health::Good;
        *locked(&self.report) = opened.report;
        tracing::info!(directory = %place.directory.display(), "the log writes again");
        Ok(())
    }

    fn close(&self) -> Result<()> {
        let mut writer = self.committer.writer();
        let result = match writer.health {
            Health::Closed => return Ok(()),
            Health::Poisoned(_) => self.committer.check(&writer),
            Health::Good if writer.active.is_none() => Ok(()),
            Health::Good => self.mark_closed(&mut writer),
        };
        writer.active = None;
        writer.health = Health::Closed;
        drop(writer);
        let mut index = self
            .committer
            .index
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        index.segments.clear();
        index.clear_names();
        *locked(&self.lock) = None;
        result
    }

    /// Last record, last sync, and the space taken ahead given back.
    fn mark_closed(&self, writer: &mut Writer) -> Result<()> {
        if writer.unmarked {
            let mut batch = super::commit::Batch::default();
            batch.push(Operation::Close, CodecId::RAW, "", &[])?;
            self.committer.write(writer, &mut batch)?;
        }
        let result = self.committer.sync_active(writer);
        self.committer.poison_on_error(writer, result)?;
        if let Some(active) = &writer.active {
            // Only tidiness, so an error is none.
            let _ = active.file.set_len(active.end);
        }
        Ok(())
    }
}

impl Drop for LogEngine {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "the log was not closed in good order");
        }
    }
}

impl PersistenceEngine for LogEngine {
    fn persist_tagged(&self, name: &str, codec: CodecId, value: &[u8]) -> Result<()> {
        self.shared
            .committer
            .commit(|batch| batch.push(Operation::Put, codec, name, value))
    }

    fn persist_batch(&self, entries: &[Entry]) -> Result<()> {
        self.shared.committer.commit(|batch| {
            entries.iter().try_for_each(|entry| {
                batch.push(Operation::Put, entry.codec, &entry.name, &entry.value)
            })
        })
    }

    fn unpersist(&self, name: &str) -> Result<()> {
        if !self.shared.index().contains(name) {
            return self.shared.committer.unfit().map_or(Ok(()), Err);
        }
        self.shared
            .committer
            .commit(|batch| batch.push(Operation::Remove, CodecId::RAW, name, &[]))
    }

    fn read(&self, prefix: &str) -> Result<Vec<Entry>> {
        self.shared.closed()?;
        let mut entries = self.shared.read_at(|index| index.locations(prefix))?;
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn names(&self, prefix: &str) -> Result<Vec<String>> {
        self.shared.closed()?;
        Ok(self.shared.index().names(prefix))
    }

    fn get(&self, name: &str) -> Result<Option<Entry>> {
        self.shared.closed()?;
        Ok(self
            .shared
            .read_at(|index| index.location(name).into_iter().collect())?
            .pop())
    }

    fn contains(&self, name: &str) -> Result<bool> {
        self.shared.closed()?;
        Ok(self.shared.index().contains(name))
    }

    fn sync(&self) -> Result<()> {
        self.shared.sync()
    }

    fn opening_report(&self) -> Report {
        locked(&self.shared.report).clone()
    }

    fn verify(&self) -> Result<Report> {
        self.shared.verify()
    }

    fn compact(&self) -> Result<CompactReport> {
        self.shared.compact()
    }

    fn stats(&self) -> Result<Stats> {
        self.shared.closed()?;
        let place = &self.shared.committer.place;
        let poisoned = matches!(self.shared.committer.writer().health, Health::Poisoned(_));
        let index = self.shared.index();
        Ok(Stats {
            engine: "log".into(),
            location: place.directory.display().to_string(),
            sync: self.shared.options.durability.to_string(),
            store_id: entry::hex(&place.store_id),
            format_version: u32::from(FORMAT_VERSION),
            entries: index.len() as u64,
            live_bytes: index.live_bytes(),
            total_bytes: index.total_bytes(),
            files: index.segments.len() as u64,
            poisoned,
        })
    }

    fn revive(&self) -> Result<()> {
        self.shared.revive()
    }

    fn disown(&self) {
        // A lock that cannot be had now belonged to a thread that is not in this process, and will never be had.
        if let Some(mut writer) = self.shared.committer.try_writer() {
            writer.active = None;
            writer.health = Health::Closed;
        }
        if let Ok(mut index) = self.shared.committer.index.try_write() {
            index.segments.clear();
        }
        if let Ok(mut lock) = self.shared.lock.try_lock() {
            *lock = None;
        }
    }

    fn close(&self) -> Result<()> {
        self.shared.committer.written.stop();
        self.shared.committer.rotated.stop();
        for thread in std::mem::take(&mut *locked(&self.background)) {
            // A panic in it has been reported by the panic hook already, and changes nothing here.
            let _ = thread.join();
        }
        self.shared.close()
    }
}
