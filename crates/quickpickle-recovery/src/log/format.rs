//! The bytes of a segment: its header and its records, exactly as docs/recovery-format.md says.
//!
//! Everything here is on disk for ever; tests/compatibility.rs reads directories written by earlier releases. Both checksums of a
//! record are seeded with its segment number and offset, so a copy of a record somewhere else, say inside a value, never passes for one.

use crate::entry::CodecId;

/// First bytes of every segment.
pub(crate) const SEGMENT_MAGIC: [u8; 8] = *b"QPRECLOG";
/// The format version this release writes, and the highest it reads.
pub(crate) const FORMAT_VERSION: u16 = 1;
/// Bytes of a segment header.
pub(crate) const SEGMENT_HEADER: usize = 64;
/// First bytes of every record: no UTF-8 text and no run of zeros.
pub(crate) const RECORD_MAGIC: u32 = 0xA7_9C_50_51;
/// Bytes of a record header.
pub(crate) const RECORD_HEADER: usize = 40;
/// Records begin at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;

const FLAG_SNAPSHOT: u32 = 1;

/// What a segment says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) version: u16,
    /// Replaces every segment with a lower number.
    pub(crate) snapshot: bool,
    pub(crate) store_id: [u8; 16],
    pub(crate) number: u64,
    /// Sequence number of the first record to come; for a snapshot, of the first record it does not cover.
    pub(crate) base_sequence: u64,
}

/// Why 64 bytes are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    Magic,
    Checksum,
    /// Intact, from a newer release.
    Newer(u16),
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER] {
        let mut bytes = [0; SEGMENT_HEADER];
        bytes[..8].copy_from_slice(&SEGMENT_MAGIC);
        bytes[8..10].copy_from_slice(&self.version.to_le_bytes());
        bytes[10..12].copy_from_slice(&(SEGMENT_HEADER as u16).to_le_bytes());
        bytes[12..16]
            .copy_from_slice(&(if self.snapshot { FLAG_SNAPSHOT } else { 0 }).to_le_bytes());
        bytes[16..32].copy_from_slice(&self.store_id);
        bytes[32..40].copy_from_slice(&self.number.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.base_sequence.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; SEGMENT_HEADER]) -> Result<Self, HeaderFault> {
        if bytes[..8] != SEGMENT_MAGIC {
            return Err(HeaderFault::Magic);
        }
        if crc32c::crc32c(&bytes[..60]) != u32_at(bytes, 60) {
            return Err(HeaderFault::Checksum);
        }
        let version = u16_at(bytes, 8);
        if version > FORMAT_VERSION || usize::from(u16_at(bytes, 10)) != SEGMENT_HEADER {
            return Err(HeaderFault::Newer(version));
        }
        let mut store_id = [0; 16];
        store_id.copy_from_slice(&bytes[16..32]);
        Ok(Self {
            version,
            snapshot: u32_at(bytes, 12) & FLAG_SNAPSHOT != 0,
            store_id,
            number: u64_at(bytes, 32),
            base_sequence: u64_at(bytes, 40),
        })
    }
}

/// What a record does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Put,
    Remove,
    /// Written when the engine closes in good order.
    Close,
    /// Last record of a snapshot; its value is the number of entries before it.
    SnapshotEnd,
    /// A put that a compaction carried over: its sequence number is old, and numbers between may be absent.
    Kept,
}

impl Operation {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Put,
            2 => Self::Remove,
            3 => Self::Close,
            4 => Self::SnapshotEnd,
            5 => Self::Kept,
            _ => return None,
        })
    }

    fn to_byte(self) -> u8 {
        match self {
            Self::Put => 1,
            Self::Remove => 2,
            Self::Close => 3,
            Self::SnapshotEnd => 4,
            Self::Kept => 5,
        }
    }
}

/// A record's header, once its checksum has been found right: lengths can be relied on, though not the bytes they span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordHeader {
    pub(crate) body_crc: u32,
    pub(crate) name_len: u32,
    pub(crate) value_len: u32,
    pub(crate) codec: CodecId,
    /// `None` for an operation of a newer release.
    pub(crate) operation: Option<Operation>,
    pub(crate) sequence: u64,
    /// Which of the records written at once this is.
    pub(crate) batch_index: u32,
    /// How many records were written at once.
    pub(crate) batch_len: u32,
}

impl RecordHeader {
    /// The header in the first bytes of `bytes`, if there is one that was written for this segment and offset.
    #[inline]
    pub(crate) fn decode(bytes: &[u8], salt: Salt, offset: u64) -> Option<Self> {
        let bytes: &[u8; RECORD_HEADER] = bytes.first_chunk()?;
        if u32_at(bytes, 0) != RECORD_MAGIC || salt.crc(offset, &bytes[8..]) != u32_at(bytes, 4) {
            return None;
        }
        Some(Self {
            body_crc: u32_at(bytes, 8),
            name_len: u32_at(bytes, 12),
            value_len: u32_at(bytes, 16),
            codec: CodecId::from_u16(u16_at(bytes, 20)),
            operation: Operation::from_byte(bytes[22]),
            sequence: u64_at(bytes, 24),
            batch_index: u32_at(bytes, 32),
            batch_len: u32_at(bytes, 36),
        })
    }

    /// Bytes of the whole record, padding included.
    #[inline]
    pub(crate) fn record_len(&self) -> u64 {
        record_len(self.name_len as usize, self.value_len as usize)
    }

    /// Whether the bytes after the header are the ones that were written.
    #[inline]
    pub(crate) fn body_is_right(&self, record: &[u8], salt: Salt, offset: u64) -> bool {
        salt.crc(offset, &record[RECORD_HEADER..]) == self.body_crc
    }
}

/// Bytes a record of these lengths takes.
#[inline]
pub(crate) fn record_len(name_len: usize, value_len: usize) -> u64 {
    (RECORD_HEADER + name_len + value_len).next_multiple_of(ALIGNMENT) as u64
}

/// The part of a record's checksums that depends on its segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Salt(u32);

impl Salt {
    pub(crate) fn new(segment: u64) -> Self {
        Self(crc32c::crc32c(&segment.to_le_bytes()))
    }

    #[inline]
    fn crc(self, offset: u64, bytes: &[u8]) -> u32 {
        // Mixing the offset into the seed costs nothing; running it through the checksum would cost a call for each record.
        crc32c::crc32c_append(self.0 ^ (offset as u32) ^ ((offset >> 32) as u32), bytes)
    }
}

/// A record about to be written. Checksums are missing until [`seal_record`] knows where it goes.
pub(crate) struct NewRecord<'a> {
    pub(crate) operation: Operation,
    pub(crate) codec: CodecId,
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// Appends the record to `buffer`, without sequence, batch and checksums; returns its length.
pub(crate) fn push_record(buffer: &mut Vec<u8>, record: &NewRecord<'_>) -> u64 {
    let start = buffer.len();
    let mut header = [0; RECORD_HEADER];
    header[..4].copy_from_slice(&RECORD_MAGIC.to_le_bytes());
    header[12..16].copy_from_slice(&(record.name.len() as u32).to_le_bytes());
    header[16..20].copy_from_slice(&(record.value.len() as u32).to_le_bytes());
    header[20..22].copy_from_slice(&record.codec.to_u16().to_le_bytes());
    header[22] = record.operation.to_byte();
    buffer.reserve(RECORD_HEADER + record.name.len() + record.value.len() + ALIGNMENT);
    buffer.extend_from_slice(&header);
    buffer.extend_from_slice(record.name);
    buffer.extend_from_slice(record.value);
    buffer.resize(
        start + (buffer.len() - start).next_multiple_of(ALIGNMENT),
        0,
    );
    (buffer.len() - start) as u64
}

/// Completes a record pushed by [`push_record`]: gives it its sequence, its place in its batch and its checksums.
pub(crate) fn seal_record(
    record: &mut [u8],
    salt: Salt,
    offset: u64,
    sequence: u64,
    batch_index: u32,
    batch_len: u32,
) {
    record[24..32].copy_from_slice(&sequence.to_le_bytes());
    record[32..36].copy_from_slice(&batch_index.to_le_bytes());
    record[36..40].copy_from_slice(&batch_len.to_le_bytes());
    let body = salt.crc(offset, &record[RECORD_HEADER..]);
    record[8..12].copy_from_slice(&body.to_le_bytes());
    let header = salt.crc(offset, &record[8..RECORD_HEADER]);
    record[4..8].copy_from_slice(&header.to_le_bytes());
}

/// File name of a segment.
pub(crate) fn segment_name(number: u64) -> String {
    format!("{number:020}.qlog")
}

/// Number of the segment with this file name.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".qlog")?;
    (digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(offset: u64, segment: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_record(
            &mut bytes,
            &NewRecord {
                operation: Operation::Put,
                codec: CodecId::COMPACT,
                name: b"worker_1",
                value: b"abc",
            },
        );
        seal_record(&mut bytes, Salt::new(segment), offset, 7, 0, 1);
        bytes
    }

    #[test]
    fn a_record_reads_back_where_it_was_written_and_nowhere_else() {
        let bytes = record(64, 1);
        let header = RecordHeader::decode(&bytes, Salt::new(1), 64).expect("its own place");
        assert_eq!(
            (header.sequence, header.name_len, header.value_len),
            (7, 8, 3)
        );
        assert_eq!(
            (header.operation, header.record_len()),
            (Some(Operation::Put), bytes.len() as u64)
        );
        assert!(header.body_is_right(&bytes, Salt::new(1), 64));
        assert!(RecordHeader::decode(&bytes, Salt::new(1), 72).is_none());
        assert!(RecordHeader::decode(&bytes, Salt::new(2), 64).is_none());
    }

    #[test]
    fn every_flipped_bit_of_a_record_is_found() {
        let good = record(64, 1);
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let accepted = RecordHeader::decode(&bytes, Salt::new(1), 64).is_some_and(|header| {
                header.record_len() <= bytes.len() as u64
                    && header.body_is_right(&bytes, Salt::new(1), 64)
            });
            assert!(!accepted, "bit {bit}");
        }
    }

    #[test]
    fn every_flipped_bit_of_a_segment_header_is_found() {
        let header = SegmentHeader {
            version: 1,
            snapshot: true,
            store_id: [9; 16],
            number: 3,
            base_sequence: 40,
        };
        let good = header.encode();
        assert_eq!(SegmentHeader::decode(&good), Ok(header));
        for bit in 0..good.len() * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn segment_names_are_twenty_digits() {
        assert_eq!(segment_number(&segment_name(42)), Some(42));
        for other in [
            "42.qlog",
            "00000000000000000042.qlog.tmp",
            "0000000000000000004x.qlog",
            "+0000000000000000042.qlog",
        ] {
            assert_eq!(segment_number(other), None, "{other}");
        }
    }
}
