//! Stretches of a segment by the hundred, so that reading can go on while they are applied.
//!
//! Replay spends its time in two places that have nothing to do with each other: reading and checksumming, and the index with its page
//! faults and misses of the cache. Handing over batches lets another thread read the next batch while this one is applied. Order is
//! kept; what the stretches mean is left to `replay`.

use std::io;
use std::ops::Range;
use std::sync::mpsc::sync_channel;

use super::format::{Operation, RecordHeader};
use super::scan::{Item, Scanner};

/// Stretches in a batch.
const STRETCHES: usize = 256;
/// Batches that may wait.
const WAITING: usize = 8;
/// Below this many bytes a thread costs more than it brings.
const WORTH_A_THREAD: u64 = 1 << 20;

/// A stretch, without its value.
pub(crate) enum Stretch {
    Record {
        offset: u64,
        header: RecordHeader,
        /// Where its name is in the batch's text.
        name: Range<usize>,
        /// The number in the value of a snapshot's last record.
        promised: u64,
    },
    Damage {
        offset: u64,
        length: u64,
        reason: &'static str,
        header: Option<RecordHeader>,
    },
}

#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) stretches: Vec<Stretch>,
    pub(crate) text: String,
}

impl Batch {
    /// The next stretches; fewer than a full batch, or none, at the end.
    fn fill(&mut self, scanner: &mut Scanner<'_>) -> io::Result<()> {
        self.stretches.clear();
        self.text.clear();
        while self.stretches.len() < STRETCHES {
            let stretch = match scanner.next()? {
                None => break,
                Some(Item::Damage {
                    offset,
                    length,
                    reason,
                    header,
                }) => Stretch::Damage {
                    offset,
                    length,
                    reason,
                    header,
                },
                Some(Item::Record {
                    offset,
                    header,
                    name,
                    value,
                }) => {
                    let start = self.text.len();
                    self.text.push_str(name);
                    let promised = match header.operation {
                        Some(Operation::SnapshotEnd) => {
                            value.try_into().map_or(0, u64::from_le_bytes)
                        }
                        _ => 0,
                    };
                    Stretch::Record {
                        offset,
                        header,
                        name: start..self.text.len(),
                        promised,
                    }
                }
            };
            self.stretches.push(stretch);
        }
        Ok(())
    }
}

/// Hands every batch of a segment to `apply`, in order. With more than a little to read, another thread reads ahead.
pub(crate) fn batches<E: From<io::Error>>(
    mut scanner: Scanner<'_>,
    bytes: u64,
    mut apply: impl FnMut(&Batch) -> Result<(), E>,
) -> Result<(), E> {
    if bytes < WORTH_A_THREAD {
        let mut batch = Batch::default();
        loop {
            batch.fill(&mut scanner)?;
            if batch.stretches.is_empty() {
                return Ok(());
            }
            apply(&batch)?;
        }
    }
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(WAITING);
        let (give_back, used) = sync_channel::<Batch>(WAITING + 2);
        scope.spawn(move || {
            loop {
                let mut batch = used.try_recv().unwrap_or_default();
                let result = batch.fill(&mut scanner).map(|()| batch);
                let last = !matches!(&result, Ok(batch) if !batch.stretches.is_empty());
                // Nobody listens any more once `apply` has failed.
                if sender.send(result).is_err() || last {
                    return;
                }
            }
        });
        while let Ok(batch) = receiver.recv() {
            let batch = batch?;
            apply(&batch)?;
            // Only to save allocations.
            let _ = give_back.try_send(batch);
        }
        Ok(())
    })
}
