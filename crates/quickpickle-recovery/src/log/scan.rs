//! Walks the records of one segment, good and bad.
//!
//! The scanner yields every stretch of the file exactly once: as a record, as damage, or as the zeros after the last record. It never
//! takes damage for the end: where a header cannot be trusted it looks for the next one that can. What damage *means* (a torn tail or a
//! loss) is decided in `replay`. Lengths are believed only from a header whose checksum is right, and only up to the end of the file.

use std::io;

use super::format::{ALIGNMENT, RECORD_HEADER, RECORD_MAGIC, RecordHeader, Salt};
use crate::storage::{StoredFile, read_full};

/// How much is read at a time: fits the second-level cache, so that checksumming reads what is still warm.
const CHUNK: usize = 1 << 20;

/// A stretch of a segment.
pub(crate) enum Item<'b> {
    Record {
        offset: u64,
        header: RecordHeader,
        name: &'b str,
        value: &'b [u8],
    },
    Damage {
        offset: u64,
        length: u64,
        reason: &'static str,
        header: Option<RecordHeader>,
    },
}

/// Walks one segment.
pub(crate) struct Scanner<'f> {
    file: &'f dyn StoredFile,
    salt: Salt,
    /// Where the file ends, or where the caller said to stop.
    length: u64,
    at: u64,
    buffer: Vec<u8>,
    /// File offset of `buffer[0]`.
    base: u64,
    filled: usize,
}

impl<'f> Scanner<'f> {
    /// Scans from `start` to `length`.
    pub(crate) fn new(file: &'f dyn StoredFile, segment: u64, start: u64, length: u64) -> Self {
        Self {
            file,
            salt: Salt::new(segment),
            length,
            at: start,
            buffer: Vec::new(),
            base: start,
            filled: 0,
        }
    }

    /// The next stretch, or `None` once only zeros follow.
    #[inline]
    pub(crate) fn next(&mut self) -> io::Result<Option<Item<'_>>> {
        let offset = self.at;
        if offset >= self.length {
            return Ok(None);
        }
        let salt = self.salt;
        let Some(header) = RecordHeader::decode(self.window(RECORD_HEADER as u64)?, salt, offset)
        else {
            return self.lost();
        };
        let record_len = header.record_len();
        if record_len > self.length - offset {
            self.at = self.length;
            let length = self.length - offset;
            return Ok(Some(Item::Damage {
                offset,
                length,
                reason: "a record reaches beyond the end of the file",
                header: Some(header),
            }));
        }
        self.at = offset + record_len;
        if (self.base + self.filled as u64).saturating_sub(offset) < record_len {
            self.fill(offset, record_len)?;
        }
        let from = (offset - self.base) as usize;
        let record = &self.buffer[from..from + record_len as usize];
        if !header.body_is_right(record, salt, offset) {
            let reason = "the checksum of a name or value does not match";
            return Ok(Some(Item::Damage {
                offset,
                length: record_len,
                reason,
                header: Some(header),
            }));
        }
        let name_end = RECORD_HEADER + header.name_len as usize;
        match std::str::from_utf8(&record[RECORD_HEADER..name_end]) {
            Ok(name) => {
                let value = &record[name_end..name_end + header.value_len as usize];
                Ok(Some(Item::Record {
                    offset,
                    header,
                    name,
                    value,
                }))
            }
            Err(_) => Ok(Some(Item::Damage {
                offset,
                length: record_len,
                reason: "a name is not UTF-8",
                header: Some(header),
            })),
        }
    }

    /// The bytes from the current position on: `wanted` of them, or fewer at the end.
    #[inline]
    fn window(&mut self, wanted: u64) -> io::Result<&[u8]> {
        let have = (self.base + self.filled as u64).saturating_sub(self.at);
        if have < wanted {
            self.fill(self.at, wanted)?;
        }
        let from = (self.at - self.base) as usize;
        Ok(&self.buffer[from..self.filled])
    }

    /// Makes the buffer hold at least `wanted` bytes from `offset`, as far as the file goes.
    fn fill(&mut self, offset: u64, wanted: u64) -> io::Result<()> {
        let left = self.length - offset;
        // `wanted` comes from a checked header and was compared with what is left, so this allocates no more than the file holds.
        let size = wanted.max(CHUNK as u64).min(left) as usize;
        let end = self.base + self.filled as u64;
        let kept = if offset >= self.base && offset < end {
            let from = (offset - self.base) as usize;
            self.buffer.copy_within(from..self.filled, 0);
            self.filled - from
        } else {
            0
        };
        if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
        self.base = offset;
        let got = read_full(
            self.file,
            offset + kept as u64,
            &mut self.buffer[kept..size.max(kept)],
        )?;
        self.filled = kept + got;
        if self.filled < size {
            // The file is shorter than it said; what is missing counts as cut off.
            self.length = offset + self.filled as u64;
        }
        if (self.filled as u64) < wanted.min(left) {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file became shorter while it was read",
            ));
        }
        Ok(())
    }

    /// No record begins here: the end if only zeros follow, damage up to the next record otherwise.
    fn lost(&mut self) -> io::Result<Option<Item<'_>>> {
        let offset = self.at;
        let found = find_record(self.file, self.salt, offset, self.length)?;
        let (end, reason) = match found {
            Found::Record(next) => (next, "no record begins here, but one follows"),
            Found::Bytes(end) => (end, "no record begins here and none follows"),
            Found::Zeros => return Ok(None),
        };
        self.at = if matches!(found, Found::Record(_)) {
            end
        } else {
            self.length
        };
        Ok(Some(Item::Damage {
            offset,
            length: end - offset,
            reason,
            header: None,
        }))
    }
}

enum Found {
    /// A record begins here.
    Record(u64),
    /// No record; the last byte that is not zero ends here.
    Bytes(u64),
    Zeros,
}

/// Looks for the next offset after `start` where a record header checks out. Linear: a header is only checked where its magic stands.
fn find_record(file: &dyn StoredFile, salt: Salt, start: u64, length: u64) -> io::Result<Found> {
    let mut buffer = vec![0; (length - start).min((CHUNK + RECORD_HEADER) as u64) as usize];
    let mut last_byte = None;
    let mut base = start;
    while base < length {
        let size = (length - base).min(buffer.len() as u64) as usize;
        let got = read_full(file, base, &mut buffer[..size])?;
        // The header's worth of bytes after a whole chunk belongs to the next round, which sees it again from its own start.
        let own = got.min(CHUNK);
        for (index, word) in buffer[..own].chunks(ALIGNMENT).enumerate() {
            if word.iter().all(|&byte| byte == 0) {
                continue;
            }
            let at = base + (index * ALIGNMENT) as u64;
            let used = word
                .iter()
                .rposition(|&byte| byte != 0)
                .map_or(0, |last| last + 1);
            last_byte = Some(at + used as u64);
            if at > start && word.starts_with(&RECORD_MAGIC.to_le_bytes()) {
                let bytes = &buffer[index * ALIGNMENT..got];
                if RecordHeader::decode(bytes, salt, at)
                    .is_some_and(|header| header.record_len() <= length - at)
                {
                    return Ok(Found::Record(at));
                }
            }
        }
        if got < size || own == 0 {
            break;
        }
        base += own as u64;
    }
    Ok(last_byte.map_or(Found::Zeros, Found::Bytes))
}
