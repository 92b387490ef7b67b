//! Where the newest record of each name is: names in memory, values on disk.
//!
//! Values stay on disk because a master reads them once, at its start, and because replay then copies nothing but names. The index also
//! keeps the open segments, so that a reader who has a location also has the file, even if a compaction removes its name meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::format::{RECORD_HEADER, RecordHeader, Salt};
use super::table::{Changes, NameTable};
use crate::entry::Entry;
use crate::error::{Error, ErrorKind, Result};
use crate::storage::{StoredFile, read_full};

/// Longest stretch fetched with one read when many records are wanted.
const READ_STEP: u64 = 1 << 20;
/// Reading this much for nothing is cheaper than another call.
const READ_GAP: u64 = 4 << 10;
/// Room for more names than this is not taken on the word of a guess.
const MOST_EXPECTED: u64 = 4 << 20;

/// Where a record is. Ordered by place on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Location {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

/// An open segment.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) file: Arc<dyn StoredFile>,
    /// Bytes in use: where the last record ends.
    pub(crate) end: u64,
}

/// Names to locations, and the segments they point into.
#[derive(Debug, Default)]
pub(crate) struct Index {
    names: NameTable,
    /// Changes replay has found and not made yet; none at any other time.
    changes: Changes,
    pub(crate) segments: BTreeMap<u64, Segment>,
    live_bytes: u64,
}

impl Index {
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.segments.values().map(|segment| segment.end).sum()
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.get(name).is_some()
    }

    /// Guesses from the names so far how much room `times` as many will need, where all records take `bytes` together.
    pub(crate) fn expect(&mut self, times: u64, bytes: u64) {
        let names = (times * self.names.len() as u64).min(MOST_EXPECTED);
        // Names lie in the records, so they are no longer than these.
        let text = (times * self.names.text_bytes() as u64).min(bytes);
        self.names.reserve(names as usize, text as usize);
    }

    /// Like [`Index::put`], once [`Index::settle`] is called; much faster for many.
    #[inline]
    pub(crate) fn put_later(&mut self, name: &str, location: Location) {
        self.changes.insert(&mut self.names, name, location);
        if self.changes.are_many(&self.names) {
            self.settle();
        }
    }

    /// Like [`Index::remove`], once [`Index::settle`] is called.
    pub(crate) fn remove_later(&mut self, name: &str) {
        self.changes.remove(&mut self.names, name);
        if self.changes.are_many(&self.names) {
            self.settle();
        }
    }

    /// Makes what was put off.
    pub(crate) fn settle(&mut self) {
        let grown = self.changes.make(&mut self.names);
        self.live_bytes = self.live_bytes.wrapping_add_signed(grown);
    }

    #[inline]
    pub(crate) fn put(&mut self, name: &str, location: Location) {
        self.live_bytes += u64::from(location.len);
        if let Some(old) = self.names.insert(name, location) {
            self.live_bytes -= u64::from(old.len);
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(location) = self.names.remove(name) {
            self.live_bytes -= u64::from(location.len);
        }
    }

    pub(crate) fn clear_names(&mut self) {
        self.names = NameTable::default();
        self.live_bytes = 0;
    }

    /// Names that start with `prefix`, ordered.
    pub(crate) fn names(&self, prefix: &str) -> Vec<String> {
        let matching = self
            .names
            .iter()
            .filter(|(name, _)| name.starts_with(prefix));
        let mut names: Vec<String> = matching.map(|(name, _)| name.to_owned()).collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn location(&self, name: &str) -> Option<Location> {
        self.names.get(name)
    }

    /// Locations of the names that start with `prefix`, in the order they lie on disk.
    pub(crate) fn locations(&self, prefix: &str) -> Vec<Location> {
        let matching = self
            .names
            .iter()
            .filter(|(name, _)| name.starts_with(prefix));
        let mut found: Vec<Location> = matching.map(|(_, location)| location).collect();
        found.sort_unstable();
        found
    }

    /// Everything alive, in the order it lies on disk.
    pub(crate) fn live(&self) -> Live {
        let mut all: Vec<(Location, u32)> = self
            .names
            .slots()
            .map(|(slot, location)| (location, slot))
            .collect();
        // Mostly in order already, which the sort notices.
        all.sort_unstable();
        let (locations, slots) = all.into_iter().unzip();
        Live { locations, slots }
    }

    /// Points names to where their records were moved. Names that have got a newer record meanwhile are left alone.
    pub(crate) fn relocate(&mut self, live: &Live, moved: &[Location]) {
        // A record keeps its length when it moves, so the count of live bytes stays right.
        for ((&old, &slot), &new) in live.locations.iter().zip(&live.slots).zip(moved) {
            self.names.relocate(slot, old, new);
        }
    }
}

/// What was alive at some moment.
pub(crate) struct Live {
    pub(crate) locations: Vec<Location>,
    slots: Vec<u32>,
}

impl Live {
    /// Leaves out what lies in segment `number` or a later one.
    pub(crate) fn before(mut self, number: u64) -> Self {
        let count = self
            .locations
            .partition_point(|location| location.segment < number);
        self.locations.truncate(count);
        self.slots.truncate(count);
        self
    }
}

/// Reads the records at `locations`, which are sorted, and hands each one over whole, checked, in that order.
pub(crate) fn read_records(
    segments: &BTreeMap<u64, Segment>,
    locations: &[Location],
    mut take: impl FnMut(Location, &RecordHeader, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut buffer = Vec::new();
    let mut rest = locations;
    while let Some(&first) = rest.first() {
        let mut end = first.offset + u64::from(first.len);
        let run = 1 + rest[1..]
            .iter()
            .take_while(|next| {
                let next_end = next.offset + u64::from(next.len);
                let fits = next.segment == first.segment
                    && next.offset <= end + READ_GAP
                    && next_end - first.offset <= READ_STEP;
                if fits {
                    end = next_end;
                }
                fits
            })
            .count();
        let damaged = |offset: u64, what: &str| {
            let place = super::format::segment_name(first.segment);
            Error::new(
                ErrorKind::Corrupt,
                place,
                format!("record at byte {offset}: {what}; run verify, then repair"),
            )
        };
        let Some(segment) = segments.get(&first.segment) else {
            return Err(damaged(first.offset, "its segment is gone"));
        };
        buffer.resize((end - first.offset) as usize, 0);
        let got = read_full(&*segment.file, first.offset, &mut buffer).map_err(|error| {
            Error::io(
                "read a record",
                super::format::segment_name(first.segment).as_ref(),
                error,
            )
        })?;
        if got < buffer.len() {
            return Err(damaged(first.offset, "the file is shorter than it was"));
        }
        let salt = Salt::new(first.segment);
        for &location in &rest[..run] {
            let from = (location.offset - first.offset) as usize;
            let record = &buffer[from..from + location.len as usize];
            let header = RecordHeader::decode(record, salt, location.offset)
                .filter(|header| header.record_len() == u64::from(location.len))
                .ok_or_else(|| damaged(location.offset, "its header is damaged"))?;
            if !header.body_is_right(record, salt, location.offset) {
                return Err(damaged(location.offset, "its checksum does not match"));
            }
            take(location, &header, record)?;
        }
        rest = &rest[run..];
    }
    Ok(())
}

/// The entry in a record that was checked.
pub(crate) fn entry_of(header: &RecordHeader, record: &[u8]) -> Result<Entry> {
    let name_end = RECORD_HEADER + header.name_len as usize;
    let name = std::str::from_utf8(&record[RECORD_HEADER..name_end])
        .map_err(|_| Error::new(ErrorKind::Corrupt, "", "a stored name is not UTF-8"))?;
    let value = record[name_end..name_end + header.value_len as usize].to_vec();
    Ok(Entry {
        name: name.to_owned(),
        codec: header.codec,
        value,
    })
}
