//! Every truncation and every flipped bit of each file of a small store of files: found, reported, put aside, refused if strict, and
//! never the loss of anything but the entry in that file.

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quickpickle_recovery::{
    CodecId, ErrorKind, FileSystemEngine, FileSystemOptions, PersistenceEngine, Result,
};
use support::simulated::{Simulated, Survives};

const NAMES: [&str; 3] = ["app_1", "worker/..", ""];

fn open(storage: &Simulated, strict: bool, read_only: bool) -> Result<FileSystemEngine> {
    let options = FileSystemOptions {
        strict,
        read_only,
        ..FileSystemOptions::default()
    };
    FileSystemEngine::open_on(Arc::new(storage.clone()), Path::new("/store"), options)
}

fn small_store() -> Simulated {
    let storage = Simulated::new();
    let engine = open(&storage, true, false).unwrap();
    for name in NAMES {
        engine
            .persist_tagged(name, CodecId::JAVA, name.repeat(3).as_bytes())
            .unwrap();
    }
    engine.close().unwrap();
    storage.crash(Survives::Everything)
}

/// The names found; each with what was stored under it.
fn names(engine: &FileSystemEngine) -> Vec<String> {
    let entries = engine.read("").unwrap();
    for entry in &entries {
        assert_eq!(entry.value, entry.name.repeat(3).as_bytes());
        assert_eq!(entry.codec, CodecId::JAVA);
    }
    entries.into_iter().map(|entry| entry.name).collect()
}

fn check(good: &Simulated, path: &Path, bytes: Vec<u8>, what: &str) {
    let marker = path.ends_with("STORE");
    let kept = NAMES.len() - usize::from(!marker);
    let storage = good.crash(Survives::Everything);
    storage.put(path, bytes.clone());
    let files = storage.files();
    // Those who only look, and those who want all or nothing, change nothing.
    let reader = open(&storage, false, true).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(reader.opening_report().damage.len(), 1, "{what}");
    assert_eq!(reader.verify().unwrap().damage.len(), 1, "{what}");
    assert_eq!(names(&reader).len(), kept, "{what}");
    drop(reader);
    for read_only in [false, true] {
        let refused = open(&storage, true, read_only).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corrupt, "{what}: {refused}");
    }
    let without_lock = |storage: &Simulated| {
        let mut files = storage.files();
        files.remove(Path::new("/store/LOCK"));
        files
    };
    assert!(
        without_lock(&storage)
            == files
                .into_iter()
                .filter(|(path, _)| !path.ends_with("LOCK"))
                .collect(),
        "{what}: something was changed"
    );
    // The others go on with the rest.
    let engine = open(&storage, false, false).unwrap();
    let report = engine.opening_report();
    assert_eq!(
        Path::new("/store").join(&report.damage[0].place),
        path,
        "{what}"
    );
    let aside = PathBuf::from(report.damage[0].quarantined_to.clone().unwrap());
    assert!(storage.files()[&aside] == bytes, "{what}");
    assert_eq!(names(&engine).len(), kept, "{what}");
    engine.close().unwrap();
    let again = open(&storage, true, false).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(again.opening_report().is_sound(), "{what}");
    assert_eq!(names(&again).len(), kept, "{what}");
}

#[test]
fn every_truncation_and_every_flipped_bit_of_every_file_is_found() {
    let good = small_store();
    let mut looked_at = 0;
    for (path, whole) in good.files() {
        if path.ends_with("LOCK") {
            continue;
        }
        looked_at += 1;
        for length in 0..whole.len() {
            let what = format!("{} cut to {length}", path.display());
            check(&good, &path, whole[..length].to_vec(), &what);
        }
        let what = format!("a byte after {}", path.display());
        check(&good, &path, [&whole[..], b"\0"].concat(), &what);
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let what = format!("bit {bit} of {}", path.display());
            check(&good, &path, bytes, &what);
        }
    }
    assert_eq!(looked_at, NAMES.len() + 1);
}

/// A lost file is missed by a running engine, which knows what it stored; after that it cannot be told from one that was removed.
#[test]
fn a_file_that_disappears_is_found_by_verify() {
    let good = small_store();
    let engine = open(&good, false, false).unwrap();
    let (path, _) = good
        .files()
        .into_iter()
        .find(|(path, _)| path.to_string_lossy().ends_with("app_1.entry"))
        .unwrap();
    quickpickle_recovery::storage::Storage::remove(&good, &path).unwrap();
    let report = engine.verify().unwrap();
    assert_eq!(report.missing_records, 1, "{report:?}");
    assert!(engine.get("app_1").is_err(), "not there is not the answer");
}

#[test]
fn what_is_damaged_again_does_not_replace_what_was_put_aside_before() {
    let storage = small_store();
    let path = Path::new("/store/entries/app_1.entry");
    let mut aside = Vec::new();
    for round in 0..4_u8 {
        let mut bytes = storage.files()[path].clone();
        *bytes.last_mut().unwrap() ^= 1 + round;
        storage.put(path, bytes.clone());
        let engine = open(&storage, false, false).unwrap();
        let damage = engine.opening_report().damage;
        aside.push((damage[0].quarantined_to.clone().unwrap(), bytes));
        engine
            .persist_tagged("app_1", CodecId::JAVA, b"app_1app_1app_1")
            .unwrap();
        engine.close().unwrap();
    }
    for (place, bytes) in aside {
        assert!(storage.files()[Path::new(&place)] == bytes, "{place}");
    }
}
