//! A snapshot: the live records of older segments in a new one that replaces them.
//!
//! Written under a temporary name, synced, renamed, and the directory synced, before anything old is removed. A crash at any point
//! leaves either the old segments or the complete snapshot; with both present the snapshot counts.

use std::path::{Path, PathBuf};

use super::format::{
    NewRecord, Operation, RECORD_HEADER, SEGMENT_HEADER, Salt, SegmentHeader, push_record,
    seal_record, segment_name,
};
use super::index::{Location, Segment, read_records};
use crate::entry::CodecId;
use crate::error::{Error, Result};
use crate::storage::{Access, Storage, StoredFile};

/// How much is written at a time.
const CHUNK: usize = 1 << 20;

/// A finished snapshot.
pub(crate) struct Snapshot {
    pub(crate) segment: Segment,
    /// The new place of every record, in the order they were given.
    pub(crate) moved: Vec<Location>,
}

/// Copies the records at `live` (sorted) from `segments` into the snapshot `header` describes.
pub(crate) fn write_snapshot(
    storage: &dyn Storage,
    directory: &Path,
    header: SegmentHeader,
    segments: &std::collections::BTreeMap<u64, Segment>,
    live: &[Location],
) -> Result<Snapshot> {
    let path = directory.join(segment_name(header.number));
    let temporary = temporary_path(directory, header.number);
    match storage.remove(&temporary) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io("remove an old temporary file", &temporary, error));
        }
        _ => {}
    }
    let file = storage
        .open(&temporary, Access::Create)
        .map_err(|error| Error::io("create a snapshot", &temporary, error))?;
    let finished = copy(&*file, header, segments, live, &temporary).and_then(|copied| {
        file.sync_data()
            .map_err(|error| Error::io("sync a snapshot", &temporary, error))?;
        storage
            .rename(&temporary, &path)
            .map_err(|error| Error::io("rename a snapshot", &path, error))?;
        storage
            .sync_dir(directory)
            .map_err(|error| Error::io("sync the directory", directory, error))?;
        Ok(copied)
    });
    match finished {
        Ok((end, moved)) => Ok(Snapshot {
            segment: Segment { file, end },
            moved,
        }),
        Err(error) => {
            let _ = storage.remove(&temporary);
            Err(error)
        }
    }
}

fn copy(
    file: &dyn StoredFile,
    header: SegmentHeader,
    segments: &std::collections::BTreeMap<u64, Segment>,
    live: &[Location],
    path: &Path,
) -> Result<(u64, Vec<Location>)> {
    let salt = Salt::new(header.number);
    let mut moved = Vec::with_capacity(live.len());
    let mut buffer = header.encode().to_vec();
    let mut written = 0;
    let mut end = SEGMENT_HEADER as u64;
    let flush = |buffer: &mut Vec<u8>, written: &mut u64| {
        file.write_at(*written, buffer)
            .map_err(|error| Error::io("write a snapshot", path, error))?;
        *written += buffer.len() as u64;
        buffer.clear();
        Ok(())
    };
    read_records(segments, live, |_, record_header, record| {
        let name_end = RECORD_HEADER + record_header.name_len as usize;
        let kept = NewRecord {
            operation: Operation::Kept,
            codec: record_header.codec,
            name: &record[RECORD_HEADER..name_end],
            value: &record[name_end..name_end + record_header.value_len as usize],
        };
        let start = buffer.len();
        let len = push_record(&mut buffer, &kept);
        seal_record(
            &mut buffer[start..],
            salt,
            end,
            record_header.sequence,
            0,
            1,
        );
        moved.push(Location {
            segment: header.number,
            offset: end,
            len: len as u32,
        });
        end += len;
        if buffer.len() >= CHUNK {
            flush(&mut buffer, &mut written)
        } else {
            Ok(())
        }
    })?;
    let count = (live.len() as u64).to_le_bytes();
    let last = NewRecord {
        operation: Operation::SnapshotEnd,
        codec: CodecId::RAW,
        name: &[],
        value: &count,
    };
    let start = buffer.len();
    let len = push_record(&mut buffer, &last);
    seal_record(&mut buffer[start..], salt, end, header.base_sequence, 0, 1);
    end += len;
    flush(&mut buffer, &mut written)?;
    Ok((end, moved))
}

fn temporary_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{}{TEMPORARY}", segment_name(number)))
}

/// End of the name of a file that is not yet what it will be; such files are removed when the store is opened.
pub(crate) const TEMPORARY: &str = ".tmp";
