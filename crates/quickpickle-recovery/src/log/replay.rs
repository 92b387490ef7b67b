//! Segments in, index and report out: what is alive, and what every stretch that is not a good record means.
//!
//! A **torn tail** is what a crash leaves of the last write: damage in the newest segment with nothing after it but, at most, records of
//! that same write. It was never acknowledged as durable, so it is dropped and reported. Everything else is **damage**: reported,
//! skipped, and never taken for the end. Sequence numbers have no gaps, so replay also knows how many records damage has cost.
//! Replay only reads; repairing is left to `open`.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;

use super::batch::{Stretch, batches};
use super::format::{
    HeaderFault, Operation, RecordHeader, SEGMENT_HEADER, SegmentHeader, segment_name,
};
use super::index::{Index, Location, Segment};
use super::scan::Scanner;
use crate::engine::{Damage, Report};
use crate::error::{Error, ErrorKind, Result};
use crate::storage::read_full;

/// After this many records the size of the index is guessed.
const SAMPLE: u64 = 1024;

/// What replay found.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) index: Index,
    pub(crate) report: Report,
    pub(crate) store_id: Option<[u8; 16]>,
    pub(crate) next_sequence: u64,
    /// The newest segment is a plain one with a good header: appending can go on there.
    pub(crate) can_append: bool,
    /// Not everything before the end of the newest segment is good; cutting off a tail is not enough.
    pub(crate) needs_rewrite: bool,
    /// The newest segment holds bytes after its last record.
    pub(crate) has_tail: bool,
    /// Segments a complete snapshot has replaced, or whose creation was interrupted.
    pub(crate) obsolete: Vec<u64>,
    /// Segment and finding for each entry of `report.damage`.
    pub(crate) damaged: Vec<(u64, u64, u64)>,
}

/// Replays `segments`, whose `end` says how far to read.
pub(crate) fn replay(segments: BTreeMap<u64, Segment>) -> Result<Replayed> {
    let mut headers = BTreeMap::new();
    for (&number, segment) in &segments {
        headers.insert(number, read_header(number, segment)?);
    }
    let store_id = check_ids(&headers)?;
    let snapshot = headers
        .iter()
        .rev()
        .find(|(_, header)| matches!(header, Header::Good(header) if header.snapshot))
        .map(|(&number, _)| number);
    if let Some(number) = snapshot {
        let mut run = Run::new(&segments, &headers);
        run.segment(number)?;
        if run.findings.is_empty() {
            run.obsolete = segments
                .range(..number)
                .map(|(&number, _)| number)
                .collect();
            return run.finish(number, store_id);
        }
        // The snapshot is damaged. If what it replaced is still there, reading all of it in order leads to the same entries.
    }
    let mut run = Run::new(&segments, &headers);
    let Some((&first, _)) = segments.first_key_value() else {
        return run.finish(0, store_id);
    };
    run.segment(first)?;
    run.finish(first, store_id)
}

/// Why a segment was not read to its end.
enum Stopped {
    Read(io::Error),
    Refused(Error),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

enum Header {
    Good(SegmentHeader),
    /// Cut short or never completely written: no byte of a record follows.
    Unborn {
        bytes: u64,
    },
    Bad(&'static str),
}

fn read_header(number: u64, segment: &Segment) -> Result<Header> {
    let mut bytes = [0; SEGMENT_HEADER];
    let place = segment_name(number);
    let got = read_full(&*segment.file, 0, &mut bytes)
        .map_err(|error| Error::io("read a segment", place.as_ref(), error))?;
    match SegmentHeader::decode(&bytes) {
        Ok(header) if header.number != number => Ok(Header::Bad(
            "the segment header has the number of another segment",
        )),
        Ok(header) => Ok(Header::Good(header)),
        Err(HeaderFault::Newer(version)) => Err(Error::new(
            ErrorKind::Version,
            place,
            format!(
                "written in format {version} by a newer release; this one reads up to {}",
                super::format::FORMAT_VERSION
            ),
        )),
        Err(fault) => {
            let used = bytes[..got]
                .iter()
                .rposition(|&byte| byte != 0)
                .map_or(0, |last| last as u64 + 1);
            let after = Scanner::new(&*segment.file, number, SEGMENT_HEADER as u64, segment.end)
                .next()
                .map_err(|error| Error::io("read a segment", place.as_ref(), error))?
                .is_some();
            Ok(match fault {
                _ if !after => Header::Unborn { bytes: used },
                HeaderFault::Magic => Header::Bad("the segment does not begin as one"),
                _ => Header::Bad("the checksum of the segment header does not match"),
            })
        }
    }
}

/// All segments must be of one store: a file that strayed in from another would bring entries back to life.
fn check_ids(headers: &BTreeMap<u64, Header>) -> Result<Option<[u8; 16]>> {
    let mut found: Option<(u64, [u8; 16])> = None;
    for (&number, header) in headers {
        let Header::Good(header) = header else {
            continue;
        };
        match found {
            Some((first, id)) if id != header.store_id => {
                return Err(Error::new(
                    ErrorKind::Version,
                    segment_name(number),
                    format!(
                        "belongs to another store than {}; move it out of the directory",
                        segment_name(first)
                    ),
                ));
            }
            Some(_) => {}
            None => found = Some((number, header.store_id)),
        }
    }
    Ok(found.map(|(_, id)| id))
}

/// A stretch that is not a good record.
struct Finding {
    segment: u64,
    offset: u64,
    length: u64,
    reason: String,
    header: Option<RecordHeader>,
}

struct Run<'a> {
    segments: &'a BTreeMap<u64, Segment>,
    headers: &'a BTreeMap<u64, Header>,
    index: Index,
    report: Report,
    findings: Vec<Finding>,
    /// Findings from here on came after the last good record.
    trailing: usize,
    /// Findings from here on belong to the write the last good record was part of, or came after it.
    tail: usize,
    /// Records missing because of findings from `tail` on.
    tail_missing: u64,
    /// The sequence number the next record must have.
    expected: u64,
    /// First sequence number of the write the last good record was part of.
    batch_first: u64,
    /// Good records of snapshots so far.
    kept: u64,
    obsolete: Vec<u64>,
    unborn: bool,
    /// Where the last segment's records end.
    end: u64,
}

impl<'a> Run<'a> {
    fn new(segments: &'a BTreeMap<u64, Segment>, headers: &'a BTreeMap<u64, Header>) -> Self {
        Self {
            segments,
            headers,
            index: Index::default(),
            report: Report::default(),
            findings: Vec::new(),
            trailing: 0,
            tail: 0,
            tail_missing: 0,
            expected: 1,
            batch_first: 0,
            kept: 0,
            obsolete: Vec::new(),
            unborn: false,
            end: 0,
        }
    }

    fn find(
        &mut self,
        segment: u64,
        offset: u64,
        length: u64,
        reason: impl Into<String>,
        header: Option<RecordHeader>,
    ) {
        self.findings.push(Finding {
            segment,
            offset,
            length,
            reason: reason.into(),
            header,
        });
    }

    /// Reads one segment into the index.
    fn segment(&mut self, number: u64) -> Result<()> {
        let segment = &self.segments[&number];
        let newest = self.segments.last_key_value().map(|(&last, _)| last) == Some(number);
        self.report.bytes_scanned += segment.end;
        let mut in_snapshot = false;
        match &self.headers[&number] {
            Header::Good(header) => {
                in_snapshot = header.snapshot;
                if !in_snapshot && header.base_sequence > self.expected {
                    self.missing(number, 0, header.base_sequence - self.expected);
                }
                if !in_snapshot {
                    self.expected = self.expected.max(header.base_sequence);
                }
            }
            Header::Unborn { bytes } if newest => {
                self.report.torn_tail_bytes += bytes;
                self.report.notes.push(format!(
                    "{}: its creation was interrupted",
                    segment_name(number)
                ));
                self.obsolete.push(number);
                self.unborn = true;
                return Ok(());
            }
            Header::Unborn { .. } => self.find(
                number,
                0,
                SEGMENT_HEADER as u64,
                "the segment has no header",
                None,
            ),
            Header::Bad(reason) => self.find(number, 0, SEGMENT_HEADER as u64, *reason, None),
        }
        // Only a crash in the newest segment leaves a tail; a hole before it is a hole.
        self.tail = self.findings.len();
        self.tail_missing = 0;
        self.end = SEGMENT_HEADER as u64;
        let ended = self.records(number, segment)?;
        if in_snapshot && !ended {
            self.find(
                number,
                self.end,
                0,
                "the end of the snapshot is missing",
                None,
            );
        }
        Ok(())
    }

    /// Applies the records of a segment; whether the end of a snapshot was among them.
    fn records(&mut self, number: u64, segment: &Segment) -> Result<bool> {
        let scanner = Scanner::new(&*segment.file, number, SEGMENT_HEADER as u64, segment.end);
        let mut ended = false;
        let applied = batches(scanner, segment.end, |batch| {
            for stretch in &batch.stretches {
                self.stretch(number, stretch, &batch.text, &mut ended)?;
            }
            Ok(())
        });
        match applied {
            Ok(()) => Ok(ended),
            Err(Stopped::Read(error)) => Err(Error::io(
                "read a segment",
                segment_name(number).as_ref(),
                error,
            )),
            Err(Stopped::Refused(error)) => Err(error),
        }
    }

    fn stretch(
        &mut self,
        number: u64,
        stretch: &Stretch,
        text: &str,
        ended: &mut bool,
    ) -> Result<()> {
        match stretch {
            Stretch::Damage {
                offset,
                length,
                reason,
                header,
            } => {
                self.report.closed_cleanly = false;
                self.find(number, *offset, *length, *reason, *header);
            }
            Stretch::Record {
                offset,
                header,
                name,
                promised,
            } => {
                let Some(operation) = header.operation else {
                    let message =
                        format!("record at byte {offset} has an operation of a newer release");
                    return Err(Error::new(
                        ErrorKind::Version,
                        segment_name(number),
                        message,
                    ));
                };
                *ended |= operation == Operation::SnapshotEnd;
                let location = Location {
                    segment: number,
                    offset: *offset,
                    len: header.record_len() as u32,
                };
                self.record(operation, location, header, &text[name.clone()], *promised);
                self.end = offset + header.record_len();
                if self.report.records == SAMPLE {
                    self.make_room();
                }
            }
        }
        Ok(())
    }

    /// Guesses from the first records how many names there will be, so that the index need not grow step by step.
    fn make_room(&mut self) {
        let total: u64 = self.segments.values().map(|segment| segment.end).sum();
        self.index.settle();
        self.index.expect(total / self.end.max(1), total);
    }

    #[inline]
    fn record(
        &mut self,
        operation: Operation,
        location: Location,
        header: &RecordHeader,
        name: &str,
        promised: u64,
    ) {
        let clean = match operation {
            Operation::Kept => {
                self.kept += 1;
                self.index.put_later(name, location);
                self.settle();
                false
            }
            Operation::SnapshotEnd => {
                if promised > self.kept {
                    self.missing(location.segment, location.offset, promised - self.kept);
                }
                self.kept = 0;
                self.expected = self.expected.max(header.sequence);
                self.settle();
                false
            }
            Operation::Put | Operation::Remove | Operation::Close => {
                if header.sequence < self.expected {
                    let reason = "a record is out of sequence";
                    self.find(
                        location.segment,
                        location.offset,
                        u64::from(location.len),
                        reason,
                        Some(*header),
                    );
                    return;
                }
                let gap = header.sequence - self.expected;
                let first = header.sequence - u64::from(header.batch_index).min(header.sequence);
                self.settle_batch(first, gap);
                if gap > 0 {
                    self.missing(location.segment, location.offset, gap);
                }
                self.expected = header.sequence + 1;
                self.trailing = self.findings.len();
                match operation {
                    Operation::Put => self.index.put_later(name, location),
                    Operation::Remove => self.index.remove_later(name),
                    _ => {}
                }
                operation == Operation::Close
            }
        };
        self.report.records += 1;
        self.report.closed_cleanly = clean;
    }

    /// A good record of a snapshot: nothing before it can be a tail.
    fn settle(&mut self) {
        self.batch_first = u64::MAX;
        self.tail = self.findings.len();
        self.trailing = self.tail;
        self.tail_missing = 0;
    }

    /// A good record of the write that began with sequence `first`: decides which findings before it can still be a tail.
    fn settle_batch(&mut self, first: u64, gap: u64) {
        if first != self.batch_first {
            self.batch_first = first;
            // Findings since the last good record are of this same write if every record they cost is.
            let same_write = gap > 0 && first <= self.expected;
            self.tail = if same_write {
                self.trailing
            } else {
                self.findings.len()
            };
            self.tail_missing = 0;
        }
        if self.trailing < self.findings.len() && self.tail < self.findings.len() {
            self.tail_missing += gap;
        }
    }

    /// `count` records are missing; the findings since the last good record explain it, or it is a finding of its own.
    fn missing(&mut self, segment: u64, offset: u64, count: u64) {
        self.report.missing_records += count;
        if self.trailing == self.findings.len() {
            self.find(
                segment,
                offset,
                0,
                format!("{count} records are missing before this place"),
                None,
            );
            self.tail = self.findings.len();
            self.tail_missing = 0;
        }
        self.trailing = self.findings.len();
    }

    /// Reads the segments after `first` and sums up.
    fn finish(mut self, first: u64, store_id: Option<[u8; 16]>) -> Result<Replayed> {
        let later: Vec<u64> = self
            .segments
            .range((Bound::Excluded(first), Bound::Unbounded))
            .map(|(&number, _)| number)
            .collect();
        for number in later {
            self.segment(number)?;
        }
        let last = self
            .segments
            .keys()
            .rev()
            .find(|number| !self.obsolete.contains(number))
            .copied();
        let plain = last.is_some_and(
            |number| matches!(&self.headers[&number], Header::Good(header) if !header.snapshot),
        );
        let torn_from = if plain && !self.unborn {
            self.torn_from()
        } else {
            self.findings.len()
        };
        let needs_rewrite = torn_from > 0 || torn_from < self.trailing;
        if torn_from < self.findings.len() {
            self.report.missing_records -= self.tail_missing.min(self.report.missing_records);
        }
        let mut damaged = Vec::new();
        for (at, finding) in self.findings.iter().enumerate() {
            if at >= torn_from {
                self.report.torn_tail_bytes += finding.length;
                continue;
            }
            self.report.damage.push(Damage {
                place: segment_name(finding.segment),
                offset: finding.offset,
                length: finding.length,
                reason: finding.reason.clone(),
                quarantined_to: None,
            });
            damaged.push((finding.segment, finding.offset, finding.length));
        }
        for (&number, segment) in self.segments {
            if self.obsolete.contains(&number) {
                continue;
            }
            let mut segment = segment.clone();
            if Some(number) == last {
                segment.end = self.end.min(segment.end);
            }
            self.index.segments.insert(number, segment);
        }
        self.index.settle();
        self.report.entries = self.index.len() as u64;
        Ok(Replayed {
            can_append: plain,
            has_tail: torn_from < self.findings.len(),
            needs_rewrite,
            index: self.index,
            report: self.report,
            store_id,
            next_sequence: self.expected,
            obsolete: self.obsolete,
            damaged,
        })
    }

    /// The first finding that is part of the torn tail.
    fn torn_from(&self) -> usize {
        let mut from = self.findings.len();
        while from > self.tail {
            let finding = &self.findings[from - 1];
            // Damage followed by damage: one write only if the headers that can be trusted say so.
            if let Some(next) = self.findings.get(from)
                && from > self.trailing
            {
                let one_write = match (&finding.header, &next.header) {
                    (_, Some(next)) => next.batch_index > 0,
                    (Some(header), None) => header.batch_index + 1 < header.batch_len,
                    (None, None) => false,
                };
                if !one_write {
                    break;
                }
            }
            from -= 1;
        }
        from
    }
}
