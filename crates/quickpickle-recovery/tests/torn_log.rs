//! Every truncation and every flipped bit and byte of a small log, and the larger accidents: zeroed pages, lost and foreign segments.
//!
//! What is found must be reported, what is good must be kept, and a hole must never pass for the end.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quickpickle_recovery::{
    CodecId, Entry, ErrorKind, LogEngine, LogOptions, PersistenceEngine, Report, Result,
};
use support::simulated::{Simulated, Survives};

const STORE: &str = "/store";

fn options(strict: bool, read_only: bool) -> LogOptions {
    LogOptions {
        strict,
        read_only,
        segment_bytes: 4096,
        preallocate_bytes: 0,
        auto_compact: false,
        ..LogOptions::default()
    }
}

fn open(storage: &Simulated, strict: bool) -> Result<LogEngine> {
    LogEngine::open_on(
        Arc::new(storage.clone()),
        Path::new(STORE),
        options(strict, false),
    )
}

/// A log of records with one sync each, closed in good order or not.
fn small_log(records: usize, closed: bool) -> Simulated {
    let storage = Simulated::new();
    let engine = open(&storage, true).unwrap();
    for i in 0..records {
        engine
            .persist_tagged(
                &format!("w_{i}"),
                CodecId::COMPACT,
                &vec![i as u8 + 1; 20 + i],
            )
            .unwrap();
    }
    if closed {
        engine.close().unwrap();
    } else {
        std::mem::forget(engine);
    }
    storage.crash(Survives::Everything)
}

fn segment_files(storage: &Simulated) -> Vec<(PathBuf, Vec<u8>)> {
    storage
        .files()
        .into_iter()
        .filter(|(path, _)| path.extension().is_some_and(|e| e == "qlog"))
        .collect()
}

/// The store with the content of one file replaced.
fn with(storage: &Simulated, path: &Path, bytes: Vec<u8>) -> Simulated {
    let changed = storage.crash(Survives::Everything);
    changed.put(path, bytes);
    changed
}

/// Entries found must be ones that were written; returns their names.
fn check_values(entries: &[Entry]) -> Vec<String> {
    for entry in entries {
        let i: usize = entry.name[2..].parse().unwrap();
        assert_eq!(
            (entry.codec, &entry.value),
            (CodecId::COMPACT, &vec![i as u8 + 1; 20 + i]),
            "{}",
            entry.name
        );
    }
    entries.iter().map(|entry| entry.name.clone()).collect()
}

fn found_something(report: &Report) -> bool {
    !report.damage.is_empty() || report.torn_tail_bytes > 0 || report.missing_records > 0
}

#[test]
fn every_truncation_loses_the_tail_only_and_is_reported() {
    let records = 9;
    let storage = small_log(records, false);
    let (path, whole) = segment_files(&storage).pop().unwrap();
    let mut ends = vec![64];
    for i in 0..records {
        ends.push(ends[i] + (40 + 3 + 20 + i).next_multiple_of(8));
    }
    assert_eq!(*ends.last().unwrap(), whole.len());
    for length in 0..whole.len() {
        let cut = with(&storage, &path, whole[..length].to_vec());
        // Strict: a torn tail is what any crash leaves.
        let engine = open(&cut, true).unwrap_or_else(|error| panic!("length {length}: {error}"));
        let complete = ends
            .iter()
            .filter(|&&end| end <= length)
            .count()
            .saturating_sub(1);
        let names = check_values(&engine.read("").unwrap());
        assert_eq!(
            names,
            (0..complete).map(|i| format!("w_{i}")).collect::<Vec<_>>(),
            "length {length}"
        );
        let report = engine.opening_report();
        let torn = if length < 64 {
            length
        } else {
            length - ends[complete]
        };
        // Trailing zeros of a cut header cannot be told from bytes never written.
        let zeros = whole[..length]
            .iter()
            .rev()
            .take_while(|&&byte| byte == 0)
            .count()
            .min(torn);
        assert!(
            (torn - zeros..=torn).contains(&(report.torn_tail_bytes as usize)),
            "length {length}: {report:?}"
        );
        // And writing goes on.
        engine
            .persist_tagged("w_99", CodecId::COMPACT, &[100; 119])
            .unwrap();
        drop(engine);
        let again = open(&cut, true).unwrap();
        assert_eq!(
            check_values(&again.read("").unwrap()).len(),
            complete + 1,
            "length {length}"
        );
        assert!(!found_something(&again.opening_report()), "length {length}");
    }
}

#[test]
fn every_flipped_bit_is_found_and_costs_one_record_at_most() {
    let records = 7;
    let storage = small_log(records, true);
    let (path, whole) = segment_files(&storage).pop().unwrap();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let damaged = with(&storage, &path, bytes);
        let reader = LogEngine::open_on(
            Arc::new(damaged.clone()),
            Path::new(STORE),
            options(false, true),
        )
        .unwrap();
        let report = reader.opening_report();
        assert!(
            found_something(&report),
            "bit {bit} of byte {} was not found",
            bit / 8
        );
        let names = check_values(&reader.read("").unwrap());
        assert!(names.len() + 1 >= records, "bit {bit}: {names:?}");
        drop(reader);
        // Before the last record nothing passes for a torn tail: strict refuses, and leaves everything as it is.
        let last_record = whole.len() - 40;
        if bit / 8 < last_record {
            assert!(!report.is_sound(), "bit {bit}: {report:?}");
            let files = damaged.files();
            assert_eq!(
                open(&damaged, true).unwrap_err().kind(),
                ErrorKind::Corrupt,
                "bit {bit}"
            );
            assert!(
                damaged.files() == files,
                "bit {bit}: a strict open changed something"
            );
        } else {
            assert!(
                report.torn_tail_bytes > 0 && report.is_sound(),
                "bit {bit}: {report:?}"
            );
        }
        // Without strict the rest is kept, the damaged bytes are put aside, and the store is sound afterwards.
        let engine = open(&damaged, false).unwrap();
        assert_eq!(check_values(&engine.read("").unwrap()), names, "bit {bit}");
        for damage in engine.opening_report().damage {
            let aside = damage
                .quarantined_to
                .unwrap_or_else(|| panic!("bit {bit}: not put aside: {:?}", damage.reason));
            let kept = damaged.files()[Path::new(&aside)].clone();
            let from = damage.offset as usize;
            let mut original = whole[from..from + damage.length as usize].to_vec();
            if (from..from + original.len()).contains(&(bit / 8)) {
                original[bit / 8 - from] ^= 1 << (bit % 8);
            }
            assert!(
                kept == original,
                "bit {bit}: the bytes put aside are not those of the segment"
            );
        }
        drop(engine);
        let again =
            open(&damaged, true).unwrap_or_else(|error| panic!("bit {bit}: after repair: {error}"));
        assert!(!found_something(&again.opening_report()), "bit {bit}");
        assert_eq!(check_values(&again.read("").unwrap()), names, "bit {bit}");
    }
}

#[test]
fn every_byte_replaced_is_found() {
    let storage = small_log(6, true);
    let (path, whole) = segment_files(&storage).pop().unwrap();
    for at in 0..whole.len() {
        for byte in [0, 0xff, whole[at].wrapping_add(1)] {
            if whole[at] == byte {
                continue;
            }
            let mut bytes = whole.clone();
            bytes[at] = byte;
            let damaged = with(&storage, &path, bytes);
            let engine = open(&damaged, false).unwrap();
            assert!(
                found_something(&engine.opening_report()),
                "byte {at} set to {byte}"
            );
            assert!(
                check_values(&engine.read("").unwrap()).len() >= 5,
                "byte {at} set to {byte}"
            );
        }
    }
}

#[test]
fn a_zeroed_stretch_in_the_middle_is_not_the_end() {
    let storage = small_log(20, true);
    let (path, whole) = segment_files(&storage).pop().unwrap();
    for start in (0..whole.len() - 340).step_by(8) {
        let mut bytes = whole.clone();
        bytes[start..start + 200].fill(0);
        let damaged = with(&storage, &path, bytes);
        let engine = open(&damaged, false).unwrap();
        let report = engine.opening_report();
        let names = check_values(&engine.read("").unwrap());
        assert!(
            names.contains(&"w_19".into()),
            "zeros at {start}: the last record is lost"
        );
        assert!(names.len() >= 16, "zeros at {start}: {names:?}");
        assert!(!report.is_sound(), "zeros at {start}: {report:?}");
        assert_eq!(
            report.missing_records as usize,
            20 - names.len(),
            "zeros at {start}: {report:?}"
        );
    }
}

#[test]
fn verify_finds_damage_under_a_running_engine_and_reads_refuse_it() {
    let storage = small_log(10, true);
    let engine = open(&storage, true).unwrap();
    let (path, mut bytes) = segment_files(&storage).pop().unwrap();
    assert!(engine.verify().unwrap().is_sound());
    bytes[64 + 40 + 5] ^= 1;
    storage.overwrite(&path, bytes);
    let report = engine.verify().unwrap();
    assert_eq!(
        (
            report.damage.len(),
            report.damage[0].offset,
            report.missing_records
        ),
        (1, 64, 1),
        "{report:?}"
    );
    let error = engine.read("").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("byte 64"), "{error}");
    assert_eq!(engine.get("w_0").unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(
        engine.get("w_1").unwrap().unwrap().value,
        [2; 21],
        "others are not affected"
    );
    assert_eq!(
        engine.compact().unwrap_err().kind(),
        ErrorKind::Corrupt,
        "damage is not copied"
    );
    assert_eq!(
        engine.get("w_1").unwrap().unwrap().value,
        [2; 21],
        "a failed compaction changes nothing"
    );
}

/// A log of several segments, newest last.
fn segmented() -> Simulated {
    let storage = Simulated::new();
    let engine = open(&storage, true).unwrap();
    for i in 0..200 {
        engine
            .persist_tagged(
                &format!("w_{i}"),
                CodecId::COMPACT,
                &vec![i as u8 + 1; 20 + i],
            )
            .unwrap();
    }
    engine.close().unwrap();
    storage.crash(Survives::Everything)
}

#[test]
fn a_lost_segment_is_missed() {
    let storage = segmented();
    let files = segment_files(&storage);
    assert!(files.len() > 5);
    for (path, _) in &files[..files.len() - 1] {
        let without = storage.crash(Survives::Everything);
        without.delete(path);
        assert_eq!(
            open(&without, true).unwrap_err().kind(),
            ErrorKind::Corrupt,
            "{}",
            path.display()
        );
        let engine = open(&without, false).unwrap();
        let report = engine.opening_report();
        let names = check_values(&engine.read("").unwrap());
        assert_eq!(
            report.missing_records as usize,
            200 - names.len(),
            "{}: {report:?}",
            path.display()
        );
        drop(engine);
        assert!(
            !found_something(&open(&without, true).unwrap().opening_report()),
            "{}",
            path.display()
        );
    }
}

#[test]
fn every_truncation_of_an_older_segment_is_damage() {
    let storage = segmented();
    let files = segment_files(&storage);
    let (path, whole) = &files[2];
    for length in (0..whole.len()).step_by(13) {
        let cut = with(&storage, path, whole[..length].to_vec());
        let error = open(&cut, true).expect_err("strict");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "length {length}");
        let engine = open(&cut, false).unwrap();
        let names = check_values(&engine.read("").unwrap());
        assert_eq!(
            engine.opening_report().missing_records as usize,
            200 - names.len(),
            "length {length}"
        );
    }
}

#[test]
fn a_segment_of_another_store_is_refused() {
    let storage = segmented();
    let files = segment_files(&storage);
    let stranger = segment_files(&segmented());
    let mixed = with(&storage, &files[1].0, stranger[1].1.clone());
    for strict in [true, false] {
        let error = open(&mixed, strict).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Version);
        assert!(error.to_string().contains("another store"), "{error}");
    }
}

#[test]
fn a_segment_under_the_name_of_another_is_damage() {
    let storage = segmented();
    let files = segment_files(&storage);
    let swapped = with(&storage, &files[1].0, files[2].1.clone());
    assert_eq!(open(&swapped, true).unwrap_err().kind(), ErrorKind::Corrupt);
    let engine = open(&swapped, false).unwrap();
    let names = check_values(&engine.read("").unwrap());
    assert!(names.len() < 200 && names.len() > 100);
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let storage = small_log(3, true);
    let (path, mut bytes) = segment_files(&storage).pop().unwrap();
    bytes[8] = 2;
    let crc = crc32c::crc32c(&bytes[..60]).to_le_bytes();
    bytes[60..64].copy_from_slice(&crc);
    let newer = with(&storage, &path, bytes);
    let files = newer.files();
    let error = open(&newer, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Version);
    assert!(error.to_string().contains("newer release"), "{error}");
    assert!(newer.files() == files);
}

#[test]
fn a_copy_of_a_segment_inside_a_value_brings_nothing_back() {
    let storage = small_log(5, false);
    let (_, old) = segment_files(&storage).pop().unwrap();
    let engine = open(&storage, true).unwrap();
    for i in 0..5 {
        engine.unpersist(&format!("w_{i}")).unwrap();
    }
    // Aligned to every phase, so that one of the copies has its records where records may begin.
    for phase in 0..8 {
        let mut value = vec![0xee; phase];
        value.extend_from_slice(&old);
        engine.persist(&format!("copy_{phase}"), &value).unwrap();
    }
    std::mem::forget(engine);
    let storage = storage.crash(Survives::Everything);
    let (path, whole) = segment_files(&storage).pop().unwrap();
    // Damage each header in turn, so that the search for the next record runs through the value.
    for at in (64..whole.len()).step_by(8) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        let damaged = with(&storage, &path, bytes);
        let engine = open(&damaged, false).unwrap();
        let back: Vec<String> = engine.names("w_").unwrap();
        // A damaged removal may leave its own name behind, never two.
        assert!(back.len() <= 1, "byte {at}: {back:?} came back");
    }
}

#[test]
fn a_damaged_snapshot_falls_back_on_what_it_replaced_if_that_is_still_there() {
    let storage = segmented();
    let before = segment_files(&storage);
    let engine = open(&storage, true).unwrap();
    engine.compact().unwrap();
    std::mem::forget(engine);
    let after = storage.crash(Survives::Everything);
    let (snapshot, bytes) = segment_files(&after).remove(0);
    let mut damaged_bytes = bytes.clone();
    damaged_bytes[500] ^= 1;
    // As if the old segments had not been removed yet: everything is still there, and a strict reader may not call it sound.
    let with_old = with(&after, &snapshot, damaged_bytes.clone());
    for (path, bytes) in before {
        with_old.put(&path, bytes);
    }
    let engine = open(&with_old, false).unwrap();
    assert_eq!(check_values(&engine.read("").unwrap()).len(), 200);
    drop(engine);
    // Without them one record is lost, and counted.
    let alone = with(&after, &snapshot, damaged_bytes);
    assert_eq!(open(&alone, true).unwrap_err().kind(), ErrorKind::Corrupt);
    let engine = open(&alone, false).unwrap();
    assert_eq!(check_values(&engine.read("").unwrap()).len(), 199);
    assert_eq!(engine.opening_report().missing_records, 1);
    // A snapshot cut short is not a torn tail either.
    for length in [64, 72, 500, bytes.len() - 48, bytes.len() - 1] {
        let cut = with(&after, &snapshot, bytes[..length].to_vec());
        assert_eq!(
            open(&cut, true).unwrap_err().kind(),
            ErrorKind::Corrupt,
            "length {length}"
        );
        open(&cut, false).unwrap();
    }
}

#[test]
fn a_torn_batch_is_a_torn_tail_whichever_sectors_arrived() {
    let storage = small_log(3, false);
    let (path, before) = segment_files(&storage).pop().unwrap();
    let engine = open(&storage, true).unwrap();
    let batch: Vec<Entry> = (10..30)
        .map(|i| Entry {
            name: format!("w_{i}"),
            codec: CodecId::COMPACT,
            value: vec![i as u8 + 1; 20 + i],
        })
        .collect();
    engine.persist_batch(&batch).unwrap();
    std::mem::forget(engine);
    let after = segment_files(&storage.crash(Survives::Everything))
        .pop()
        .unwrap()
        .1;
    let sectors = after.len().div_ceil(512);
    let first = before.len() / 512;
    let mut outcomes = BTreeMap::new();
    for arrived in 0..1_u32 << (sectors - first) {
        let mut bytes = before.clone();
        for sector in first..sectors {
            if arrived & (1 << (sector - first)) != 0 {
                let range = sector * 512..after.len().min((sector + 1) * 512);
                bytes.resize(bytes.len().max(range.end), 0);
                bytes[range.clone()].copy_from_slice(&after[range]);
            }
        }
        let crashed = with(&storage, &path, bytes);
        let engine =
            open(&crashed, true).unwrap_or_else(|error| panic!("sectors {arrived:b}: {error}"));
        let names = check_values(&engine.read("").unwrap());
        assert!(
            ["w_0", "w_1", "w_2"]
                .iter()
                .all(|name| names.contains(&(*name).to_owned())),
            "sectors {arrived:b}"
        );
        *outcomes.entry(names.len()).or_insert(0) += 1;
        drop(engine);
        assert!(
            !found_something(&open(&crashed, true).unwrap().opening_report()),
            "sectors {arrived:b}"
        );
    }
    assert!(
        outcomes.len() > 5,
        "the sectors made little difference: {outcomes:?}"
    );
}

/// Segments of more than a little are read ahead by another thread; what is found must not depend on that.
#[test]
fn damage_and_read_errors_in_a_large_segment_are_found_as_in_a_small_one() {
    let storage = Simulated::new();
    let large = |strict| LogOptions {
        strict,
        segment_bytes: 64 << 20,
        preallocate_bytes: 0,
        auto_compact: false,
        durability: quickpickle_recovery::Durability::None,
        ..LogOptions::default()
    };
    let open = |storage: &Simulated, strict| {
        LogEngine::open_on(Arc::new(storage.clone()), Path::new(STORE), large(strict))
    };
    let engine = open(&storage, true).unwrap();
    let records = 20_000;
    for i in 0..records {
        engine.persist(&format!("w_{i}"), &[i as u8; 60]).unwrap();
    }
    engine.unpersist("w_7").unwrap();
    engine.close().unwrap();
    let storage = storage.crash(Survives::Everything);
    let (path, whole) = segment_files(&storage).pop().unwrap();
    assert!(whole.len() > 2 << 20);
    assert_eq!(
        open(&storage, true).unwrap().read("").unwrap().len(),
        records - 1
    );
    for at in (64..whole.len() - 200).step_by(whole.len() / 40) {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        let damaged = with(&storage, &path, bytes);
        assert_eq!(
            open(&damaged, true).unwrap_err().kind(),
            ErrorKind::Corrupt,
            "byte {at}"
        );
        let engine = open(&damaged, false).unwrap();
        let report = engine.opening_report();
        assert_eq!(
            (report.damage.len(), report.missing_records),
            (1, 1),
            "byte {at}"
        );
        assert!(engine.names("").unwrap().len() + 2 >= records, "byte {at}");
    }
    for at in 0..4 {
        let failing = storage.crash(Survives::Everything);
        failing.fail_read(at);
        assert_eq!(
            open(&failing, false).unwrap_err().kind(),
            ErrorKind::Io,
            "read {at}"
        );
    }
}
