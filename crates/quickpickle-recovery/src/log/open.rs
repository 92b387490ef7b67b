//! Opening a directory: replay, then whatever repair the findings ask for.
//!
//! Nothing is changed before replay has decided what is there, nothing at all in strict mode if the store is not sound, and damaged
//! bytes are copied to `quarantine/` before the segment that holds them goes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::compact::{self, TEMPORARY};
use super::format::{FORMAT_VERSION, SegmentHeader, segment_name, segment_number};
use super::index::{Index, Segment};
use super::replay::{Replayed, replay};
use super::segment::Active;
use super::{LogOptions, POISONED, QUARANTINE};
use crate::engine::{Durability, Report};
use crate::entry;
use crate::error::{Error, ErrorKind, Result};
use crate::file_system::MARKER;
use crate::storage::{Access, Storage, read_full};

/// A directory made ready.
pub(crate) struct Opened {
    pub(crate) index: Index,
    pub(crate) report: Report,
    pub(crate) store_id: [u8; 16],
    pub(crate) next_sequence: u64,
    /// `None` when opened for reading.
    pub(crate) active: Option<Active>,
}

/// Replays and repairs.
pub(crate) fn open(
    storage: &dyn Storage,
    directory: &Path,
    options: &LogOptions,
) -> Result<Opened> {
    let names = storage
        .list(directory)
        .map_err(|error| Error::io("list the directory", directory, error))?;
    if names.iter().any(|name| name == MARKER) {
        return Err(Error::new(
            ErrorKind::Version,
            directory.display(),
            "holds a store of the file_system engine; open it with that, or copy it into another directory",
        ));
    }
    let access = if options.read_only {
        Access::Read
    } else {
        Access::Write
    };
    let segments = open_segments(storage, directory, &names, access)?;
    let mut replayed = replay(segments)?;
    let poisoned = names.iter().any(|name| name == POISONED);
    if poisoned {
        replayed
            .report
            .notes
            .push("a sync failed before; everything alive is written anew".into());
    }
    if options.strict && !replayed.report.is_sound() {
        return Err(refuse(directory, &replayed.report));
    }
    let store_id = match replayed.store_id {
        Some(id) => id,
        None => entry::new_store_id()?,
    };
    if options.read_only {
        let Replayed {
            index,
            report,
            next_sequence,
            ..
        } = replayed;
        return Ok(Opened {
            index,
            report,
            store_id,
            next_sequence,
            active: None,
        });
    }
    remove_leftovers(storage, directory, &names, &mut replayed)?;
    let step = if options.durability == Durability::Always {
        options.preallocate_bytes
    } else {
        0
    };
    let newest = replayed
        .index
        .segments
        .last_key_value()
        .map(|(&number, segment)| (number, segment.clone()));
    let rewrite = poisoned || replayed.needs_rewrite;
    let active = match newest {
        Some((number, segment)) if replayed.can_append && !rewrite => resume(
            storage,
            directory,
            number,
            &segment,
            replayed.has_tail,
            step,
        )?,
        _ => {
            quarantine(storage, directory, &mut replayed)?;
            start_anew(storage, directory, &mut replayed, store_id, step)?
        }
    };
    let place = Segment {
        file: Arc::clone(&active.file),
        end: active.end,
    };
    replayed.index.segments.insert(active.number, place);
    if poisoned {
        remove(storage, &directory.join(POISONED))?;
    }
    let Replayed {
        index,
        report,
        next_sequence,
        ..
    } = replayed;
    Ok(Opened {
        index,
        report,
        store_id,
        next_sequence,
        active: Some(active),
    })
}

fn open_segments(
    storage: &dyn Storage,
    directory: &Path,
    names: &[String],
    access: Access,
) -> Result<BTreeMap<u64, Segment>> {
    let mut segments = BTreeMap::new();
    for name in names {
        let Some(number) = segment_number(name) else {
            continue;
        };
        let path = directory.join(name);
        let file = storage
            .open(&path, access)
            .map_err(|error| Error::io("open a segment", &path, error))?;
        let end = file
            .len()
            .map_err(|error| Error::io("read the length of a segment", &path, error))?;
        segments.insert(number, Segment { file, end });
    }
    Ok(segments)
}

fn refuse(directory: &Path, report: &Report) -> Error {
    let first = report.damage.first().map_or_else(String::new, |damage| {
        format!(
            "; first: {} at byte {}: {}",
            damage.place, damage.offset, damage.reason
        )
    });
    Error::new(
        ErrorKind::Corrupt,
        directory.display(),
        format!(
            "strict mode refuses a damaged store: {} damaged stretches, {} records missing{first}; \
             repair it, or open it without strict to go on with what is left",
            report.damage.len(),
            report.missing_records
        ),
    )
}

/// Goes on in the newest segment, without the torn tail if there is one.
fn resume(
    storage: &dyn Storage,
    directory: &Path,
    number: u64,
    segment: &Segment,
    has_tail: bool,
    step: u64,
) -> Result<Active> {
    let path = directory.join(segment_name(number));
    let locked = segment
        .file
        .try_lock()
        .map_err(|error| Error::io("lock a segment", &path, error))?;
    if !locked {
        return Err(Error::new(
            ErrorKind::Locked,
            path.display(),
            "another process writes to this segment",
        ));
    }
    if has_tail {
        let cut = segment.file.set_len(segment.end);
        cut.map_err(|error| Error::io("cut off a torn tail", &path, error))?;
    }
    // What replay has shown may be in the page cache only: its writer can have died between a write and its sync. Nobody may build on
    // it before it is on the device.
    if let Err(error) = segment.file.sync_data() {
        leave_word(storage, directory);
        return Err(Error::io("sync a segment", &path, error));
    }
    storage
        .sync_dir(directory)
        .map_err(|error| Error::io("sync the directory", directory, error))?;
    let allocated = segment
        .file
        .len()
        .map_err(|error| Error::io("read the length of a segment", &path, error))?;
    Ok(Active::resume(
        number,
        Arc::clone(&segment.file),
        segment.end,
        allocated,
        step,
    ))
}

/// Writes everything alive into a snapshot, drops what it replaces and begins a new segment after it.
///
/// In this order: until the snapshot is complete, nothing newer than the old segments exists, and a torn tail stays recognisable as one
/// however often this fails.
fn start_anew(
    storage: &dyn Storage,
    directory: &Path,
    replayed: &mut Replayed,
    store_id: [u8; 16],
    step: u64,
) -> Result<Active> {
    let newest = replayed
        .index
        .segments
        .last_key_value()
        .map_or(0, |(&number, _)| number);
    let mut newest = replayed
        .obsolete
        .iter()
        .copied()
        .max()
        .unwrap_or(0)
        .max(newest);
    let base_sequence = replayed.next_sequence;
    let header = |number, snapshot| SegmentHeader {
        version: FORMAT_VERSION,
        snapshot,
        store_id,
        number,
        base_sequence,
    };
    if !replayed.index.segments.is_empty() {
        newest += 1;
        let live = replayed.index.live();
        let snapshot = compact::write_snapshot(
            storage,
            directory,
            header(newest, true),
            &replayed.index.segments,
            &live.locations,
        )?;
        replayed.index.relocate(&live, &snapshot.moved);
        let old = std::mem::take(&mut replayed.index.segments);
        replayed.index.segments.insert(newest, snapshot.segment);
        for number in old.into_keys() {
            remove(storage, &directory.join(segment_name(number)))?;
        }
    }
    Active::create(storage, directory, header(newest + 1, false), step)
}

/// Removes what interrupted work left: temporary files, segments a snapshot replaced, segments that never came to be.
fn remove_leftovers(
    storage: &dyn Storage,
    directory: &Path,
    names: &[String],
    replayed: &mut Replayed,
) -> Result<()> {
    let temporary = names
        .iter()
        .filter(|name| {
            name.strip_suffix(TEMPORARY)
                .and_then(segment_number)
                .is_some()
        })
        .cloned();
    let obsolete = replayed.obsolete.iter().map(|&number| segment_name(number));
    for name in temporary.chain(obsolete).collect::<Vec<_>>() {
        remove(storage, &directory.join(&name))?;
        replayed
            .report
            .notes
            .push(format!("{name}: leftover of interrupted work, removed"));
    }
    Ok(())
}

/// Copies every damaged stretch into a file of its own.
fn quarantine(storage: &dyn Storage, directory: &Path, replayed: &mut Replayed) -> Result<()> {
    let folder: PathBuf = directory.join(QUARANTINE);
    let mut made = false;
    for (damage, &(number, offset, length)) in
        replayed.report.damage.iter_mut().zip(&replayed.damaged)
    {
        let Some(segment) = replayed.index.segments.get(&number) else {
            continue;
        };
        if length == 0 {
            continue;
        }
        if !made {
            storage
                .create_dir(&folder)
                .map_err(|error| Error::io("create the quarantine directory", &folder, error))?;
            made = true;
        }
        let path = folder.join(format!("{number:020}-{offset:012}.bytes"));
        copy_out(storage, segment, offset, length, &path)
            .map_err(|error| Error::io("put damaged bytes aside", &path, error))?;
        damage.quarantined_to = Some(path.display().to_string());
    }
    if made {
        storage
            .sync_dir(&folder)
            .map_err(|error| Error::io("sync the quarantine directory", &folder, error))?;
    }
    Ok(())
}

fn copy_out(
    storage: &dyn Storage,
    segment: &Segment,
    offset: u64,
    length: u64,
    path: &Path,
) -> io::Result<()> {
    match storage.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = storage.open(path, Access::Create)?;
    let mut buffer = vec![0; length.min(1 << 20) as usize];
    let mut done = 0;
    while done < length {
        let size = (length - done).min(buffer.len() as u64) as usize;
        let got = read_full(&*segment.file, offset + done, &mut buffer[..size])?;
        if got == 0 {
            break;
        }
        file.write_at(done, &buffer[..got])?;
        done += got as u64;
    }
    file.sync_data()
}

fn remove(storage: &dyn Storage, path: &Path) -> Result<()> {
    match storage.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove a file", path, error))
        }
        _ => Ok(()),
    }
}

/// Marks the directory as one where a sync failed: from then on the page cache may show what the device does not have, and no later sync
/// tells. Whoever opens the store next writes everything anew. Best effort: the device that failed may refuse this too.
pub(crate) fn leave_word(storage: &dyn Storage, directory: &Path) {
    if let Ok(file) = storage.open(&directory.join(POISONED), Access::Create) {
        let _ = file.sync_data();
        let _ = storage.sync_dir(directory);
    }
}
