//! Who writes, in which order, and when a write counts.
//!
//! With `always`, threads that arrive while a sync is under way put their records into one batch; the first of them writes it with one
//! write and one sync, so no byte is ever written while an earlier batch is not yet on the device. That is why a crash leaves at most one
//! torn batch at the end. With `group` and `none` each thread writes its own records under the writer's lock.
//!
//! After any error between the first byte and the last sync of a batch the writer is poisoned: what is on the device is unknown, and a
//! second sync that succeeds would prove nothing about the first.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use super::format::{
    FORMAT_VERSION, NewRecord, Operation, SEGMENT_HEADER, SegmentHeader, push_record, seal_record,
};
use super::index::{Index, Location, Segment};
use super::segment::Active;
use crate::engine::Durability;
use crate::entry::{self, CodecId};
use crate::error::{Error, ErrorKind, Result};

/// Records waiting to be written together.
#[derive(Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    records: Vec<Pending>,
}

struct Pending {
    len: u64,
    operation: Operation,
    name: Box<str>,
}

impl Batch {
    pub(crate) fn push(
        &mut self,
        operation: Operation,
        codec: CodecId,
        name: &str,
        value: &[u8],
    ) -> Result<()> {
        entry::check_sizes(name, value)?;
        let record = NewRecord {
            operation,
            codec,
            name: name.as_bytes(),
            value,
        };
        let len = push_record(&mut self.bytes, &record);
        self.records.push(Pending {
            len,
            operation,
            name: name.into(),
        });
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    fn append(&mut self, other: &mut Self) {
        self.bytes.append(&mut other.bytes);
        self.records.append(&mut other.records);
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
    }
}

/// Whether writes are let through.
#[derive(Clone, Debug)]
pub(crate) enum Health {
    Good,
    Poisoned(String),
    Closed,
}

/// What belongs to the one who writes.
pub(crate) struct Writer {
    /// `None` when opened for reading, and after close.
    pub(crate) active: Option<Active>,
    pub(crate) next_sequence: u64,
    pub(crate) health: Health,
    /// Written since the last sync.
    pub(crate) dirty_since: Option<Instant>,
    /// Written since the last close mark.
    pub(crate) unmarked: bool,
    scratch: Batch,
}

/// Threads that wait for their batch, with `always`.
#[derive(Default)]
struct Queue {
    batch: Batch,
    /// Told to everybody in `batch` once it is written.
    outcome: Arc<Outcome>,
    /// Somebody is writing.
    busy: bool,
}

/// What became of a batch. Each batch has its own, so that nobody takes the success of a later one for that of his own.
#[derive(Default)]
struct Outcome(AtomicU8);

impl Outcome {
    const STORED: u8 = 1;
    const FAILED: u8 = 2;
}

/// The writing side of a log.
pub(crate) struct Committer {
    writer: Mutex<Writer>,
    pub(crate) index: RwLock<Index>,
    queue: Mutex<Queue>,
    turn: Condvar,
    pub(crate) durability: Durability,
    segment_bytes: u64,
    /// What a new segment needs.
    pub(crate) place: super::engine::Place,
    /// Raised when the first unsynced byte is written.
    pub(crate) written: super::engine::Signal,
    /// Raised when a new segment has begun.
    pub(crate) rotated: super::engine::Signal,
}

impl Committer {
    pub(crate) fn new(
        index: Index,
        active: Option<Active>,
        next_sequence: u64,
        unmarked: bool,
        options: &super::LogOptions,
        place: super::engine::Place,
    ) -> Self {
        let scratch = Batch::default();
        let writer = Writer {
            active,
            next_sequence,
            health: Health::Good,
            dirty_since: None,
            unmarked,
            scratch,
        };
        Self {
            writer: Mutex::new(writer),
            index: RwLock::new(index),
            queue: Mutex::new(Queue::default()),
            turn: Condvar::new(),
            durability: options.durability,
            segment_bytes: options.segment_bytes.max(4096),
            place,
            written: super::engine::Signal::default(),
            rotated: super::engine::Signal::default(),
        }
    }

    /// Writes what `fill` puts into a batch; returns once it counts as stored.
    pub(crate) fn commit(&self, fill: impl FnOnce(&mut Batch) -> Result<()>) -> Result<()> {
        if self.durability == Durability::Always {
            return self.commit_together(fill);
        }
        let mut writer = self.writer();
        let mut batch = std::mem::take(&mut writer.scratch);
        let result = fill(&mut batch).and_then(|()| self.write(&mut writer, &mut batch));
        batch.clear();
        writer.scratch = batch;
        result
    }

    /// One write and one sync for everybody who is waiting.
    fn commit_together(&self, fill: impl FnOnce(&mut Batch) -> Result<()>) -> Result<()> {
        let mut own = Batch::default();
        fill(&mut own)?;
        let mut queue = locked(&self.queue);
        queue.batch.append(&mut own);
        let outcome = Arc::clone(&queue.outcome);
        loop {
            match outcome.0.load(Ordering::Acquire) {
                Outcome::STORED => return Ok(()),
                Outcome::FAILED => {
                    drop(queue);
                    return Err(self.unfit().unwrap_or_else(|| self.failed_together()));
                }
                _ if !queue.busy => break,
                _ => {
                    queue = self
                        .turn
                        .wait(queue)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        }
        queue.busy = true;
        queue.outcome = Arc::default();
        let mut batch = std::mem::take(&mut queue.batch);
        drop(queue);
        // Tells the others even if the write panics.
        let mut turn = Turn {
            committer: self,
            outcome: &outcome,
            stored: false,
        };
        let result = self.write(&mut self.writer(), &mut batch);
        turn.stored = result.is_ok();
        drop(turn);
        result
    }

    fn failed_together(&self) -> Error {
        Error::new(
            ErrorKind::Io,
            self.place.directory.display(),
            "the write this one was part of failed",
        )
    }

    /// The writer, unless somebody has it.
    pub(crate) fn try_writer(&self) -> Option<MutexGuard<'_, Writer>> {
        self.writer.try_lock().ok()
    }

    /// The writer, poisoned if a panic interrupted somebody who had it.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(|interrupted| {
            self.writer.clear_poison();
            let mut writer = interrupted.into_inner();
            if matches!(writer.health, Health::Good) {
                writer.health = Health::Poisoned("a panic interrupted a write".into());
            }
            writer
        })
    }

    /// Why writing is impossible, if it is.
    pub(crate) fn unfit(&self) -> Option<Error> {
        self.check(&self.writer()).err()
    }

    pub(crate) fn check(&self, writer: &Writer) -> Result<()> {
        let error =
            |kind, message: &str| Err(Error::new(kind, self.place.directory.display(), message));
        match &writer.health {
            Health::Closed => error(ErrorKind::Closed, "the engine is closed"),
            Health::Poisoned(reason) => {
                let message = format!(
                    "an earlier write failed, so nothing is written any more: {reason}; open the store again"
                );
                error(ErrorKind::Poisoned, &message)
            }
            Health::Good if writer.active.is_none() => {
                error(ErrorKind::ReadOnly, "the store was opened for reading")
            }
            Health::Good => Ok(()),
        }
    }

    /// Writes a batch, syncs if the level says so, and makes its records visible.
    pub(crate) fn write(&self, writer: &mut Writer, batch: &mut Batch) -> Result<()> {
        self.check(writer)?;
        if batch.is_empty() {
            return Ok(());
        }
        let written = self.write_records(writer, batch);
        self.poison_on_error(writer, written)
    }

    fn write_records(&self, writer: &mut Writer, batch: &mut Batch) -> Result<()> {
        let used = writer.active.as_ref().map_or(0, |active| active.end);
        if used > SEGMENT_HEADER as u64 && used + batch.bytes.len() as u64 > self.segment_bytes {
            self.rotate(writer, 1)?;
        }
        let always = self.durability == Durability::Always;
        let Writer {
            active: Some(active),
            next_sequence,
            dirty_since,
            unmarked,
            ..
        } = writer
        else {
            return Err(Error::new(ErrorKind::Closed, "", "no segment to write to"));
        };
        let first = active.end;
        let mut offset = first;
        let mut start = 0;
        let count = batch.records.len() as u32;
        for (at, record) in batch.records.iter().enumerate() {
            let end = start + record.len as usize;
            seal_record(
                &mut batch.bytes[start..end],
                active.salt,
                offset,
                *next_sequence + at as u64,
                at as u32,
                count,
            );
            start = end;
            offset += record.len;
        }
        let number = active.number;
        let failed = |action, error| Error::io(action, &self.place.segment(number), error);
        active
            .append(&batch.bytes)
            .map_err(|error| failed("write to the log", error))?;
        if always {
            active.file.sync_data().map_err(|error| {
                self.place.leave_word();
                failed("sync the log", error)
            })?;
        } else if dirty_since.is_none() {
            *dirty_since = Some(Instant::now());
            self.written.raise();
        }
        *next_sequence += u64::from(count);
        *unmarked = true;
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(segment) = index.segments.get_mut(&active.number) {
            segment.end = active.end;
        }
        let mut offset = first;
        for record in &batch.records {
            let location = Location {
                segment: active.number,
                offset,
                len: record.len as u32,
            };
            match record.operation {
                Operation::Put => index.put(&record.name, location),
                Operation::Remove => index.remove(&record.name),
                _ => {}
            }
            offset += record.len;
        }
        Ok(())
    }

    /// Finishes the active segment and begins the one `ahead` numbers further.
    pub(crate) fn rotate(&self, writer: &mut Writer, ahead: u64) -> Result<u64> {
        self.sync_active(writer)?;
        let Some(old) = &writer.active else {
            return Err(Error::new(ErrorKind::Closed, "", "no segment to write to"));
        };
        let number = old.number + ahead;
        let header = SegmentHeader {
            version: FORMAT_VERSION,
            snapshot: false,
            store_id: self.place.store_id,
            number,
            base_sequence: writer.next_sequence,
        };
        let active = Active::create(
            &*self.place.storage,
            &self.place.directory,
            header,
            self.place.step,
        )?;
        let segment = Segment {
            file: Arc::clone(&active.file),
            end: active.end,
        };
        self.index
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .segments
            .insert(number, segment);
        writer.active = Some(active);
        self.rotated.raise();
        Ok(number)
    }

    /// Puts everything written on the device.
    pub(crate) fn sync_active(&self, writer: &mut Writer) -> Result<()> {
        if writer.dirty_since.is_none() {
            return Ok(());
        }
        if let Some(active) = &writer.active {
            active.file.sync_data().map_err(|error| {
                self.place.leave_word();
                Error::io("sync the log", &self.place.segment(active.number), error)
            })?;
        }
        writer.dirty_since = None;
        Ok(())
    }

    /// Lets no write through any more if `result` is an error.
    pub(crate) fn poison_on_error<T>(&self, writer: &mut Writer, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && matches!(writer.health, Health::Good)
        {
            tracing::error!(directory = %self.place.directory.display(), %error, "the log is poisoned");
            writer.health = Health::Poisoned(error.to_string());
        }
        result
    }
}

/// The turn of one thread to write for all; ends when dropped.
struct Turn<'a> {
    committer: &'a Committer,
    outcome: &'a Outcome,
    stored: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let outcome = if self.stored {
            Outcome::STORED
        } else {
            Outcome::FAILED
        };
        let mut queue = locked(&self.committer.queue);
        self.outcome.0.store(outcome, Ordering::Release);
        queue.busy = false;
        drop(queue);
        self.committer.turn.notify_all();
    }
}

/// For locks whose data is whole at every moment, so that a panic elsewhere carries no news.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
