//! What is done about damage can itself be cut short, and a write that fails can be that of many threads.
//!
//! A repair that fails, tears or loses power at any of its operations loses nothing that was not lost before, and keeps what was damaged.
//! A sync that fails is told to every thread whose record it was for.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quickpickle_recovery::{
    ErrorKind, FileSystemEngine, FileSystemOptions, LogEngine, LogOptions, PersistenceEngine,
    Result,
};
use support::simulated::{Fault, Simulated, Survives};

type Open = dyn Fn(&Simulated, bool) -> Result<Box<dyn PersistenceEngine>>;

fn open_log(storage: &Simulated, strict: bool) -> Result<Box<dyn PersistenceEngine>> {
    let options = LogOptions {
        strict,
        segment_bytes: 4096,
        preallocate_bytes: 0,
        auto_compact: false,
        ..LogOptions::default()
    };
    let engine = LogEngine::open_on(Arc::new(storage.clone()), Path::new("/store"), options)?;
    Ok(Box::new(engine))
}

fn open_files(storage: &Simulated, strict: bool) -> Result<Box<dyn PersistenceEngine>> {
    let options = FileSystemOptions {
        strict,
        ..FileSystemOptions::default()
    };
    let engine =
        FileSystemEngine::open_on(Arc::new(storage.clone()), Path::new("/store"), options)?;
    Ok(Box::new(engine))
}

/// Forty entries, closed in good order.
fn store(open: &Open) -> Simulated {
    let storage = Simulated::new();
    let engine = open(&storage, true).unwrap();
    for i in 0..40_u8 {
        engine.persist(&format!("w_{i:02}"), &[i; 200]).unwrap();
    }
    engine.close().unwrap();
    storage.crash(Survives::Everything)
}

/// Flips a bit in the middle of each of these files.
fn damage(storage: &Simulated, paths: &[PathBuf]) {
    for path in paths {
        let mut bytes = storage.files()[path].clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        storage.put(path, bytes);
    }
}

fn names(engine: &dyn PersistenceEngine) -> BTreeSet<String> {
    let check = |entry: quickpickle_recovery::Entry| {
        let number: u8 = entry.name[2..].parse().unwrap();
        assert_eq!(entry.value, [number; 200], "{}", entry.name);
        entry.name
    };
    engine.read("").unwrap().into_iter().map(check).collect()
}

/// Contents of what was put aside, whatever the files are called.
fn aside(storage: &Simulated) -> BTreeSet<Vec<u8>> {
    let files = storage.files().into_iter();
    files
        .filter(|(path, _)| path.starts_with("/store/quarantine"))
        .map(|(_, bytes)| bytes)
        .collect()
}

fn interrupt_everywhere(what: &str, open: &Open, damaged: &Simulated, lost: usize) {
    let whole = damaged.crash(Survives::Everything);
    let engine = open(&whole, false).unwrap();
    let kept = names(&*engine);
    assert_eq!(kept.len(), 40 - lost, "{what}");
    std::mem::forget(engine);
    let put_aside = aside(&whole);
    assert!(!put_aside.is_empty(), "{what}");
    let operations = whole.operations();
    assert!(
        operations > 5,
        "{what}: {operations} operations prove little"
    );
    for at in 0..operations {
        for fault in [Fault::Fail, Fault::Tear, Fault::PowerOff, Fault::Full] {
            for survives in [
                Survives::Everything,
                Survives::Synced,
                Survives::Random(at),
                Survives::Random(at + 1000),
            ] {
                let context = format!("{what}: {fault:?} at operation {at}, then {survives:?}");
                let storage = damaged.crash(Survives::Everything);
                storage.fail_at(at, fault);
                // It may succeed: not every operation is one that must.
                let first = open(&storage, false);
                if let Ok(engine) = &first {
                    assert_eq!(names(&**engine), kept, "{context}");
                }
                std::mem::forget(first);
                let crashed = storage.crash(survives);
                let engine =
                    open(&crashed, false).unwrap_or_else(|error| panic!("{context}: {error}"));
                assert_eq!(names(&*engine), kept, "{context}");
                engine.unpersist("w_00").unwrap();
                std::mem::forget(engine);
                let after = crashed.crash(Survives::Synced);
                let engine =
                    open(&after, true).unwrap_or_else(|error| panic!("{context}: {error}"));
                assert!(engine.opening_report().is_sound(), "{context}");
                let mut expected = kept.clone();
                expected.remove("w_00");
                assert_eq!(names(&*engine), expected, "{context}");
                assert!(
                    aside(&after).is_superset(&put_aside),
                    "{context}: damaged bytes are gone"
                );
            }
        }
    }
}

#[test]
fn a_repair_of_a_log_can_be_cut_short_anywhere() {
    let storage = store(&open_log);
    let mut segments: Vec<PathBuf> = storage.files().into_keys().collect();
    segments.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "qlog")
    });
    assert!(segments.len() > 2);
    damage(&storage, &segments[..2]);
    interrupt_everywhere("log", &open_log, &storage, 2);
}

#[test]
fn a_repair_of_files_can_be_cut_short_anywhere() {
    let storage = store(&open_files);
    let paths = ["STORE", "entries/w_07.entry", "entries/w_33.entry"];
    damage(&storage, &paths.map(|path| Path::new("/store").join(path)));
    interrupt_everywhere("file_system", &open_files, &storage, 2);
}

#[test]
fn a_failed_sync_is_told_to_every_thread_that_waited_for_it() {
    const THREADS: usize = 8;
    for at in (20..120).step_by(3) {
        for fault in [Fault::Fail, Fault::Tear, Fault::Full, Fault::PowerOff] {
            let storage = Simulated::new();
            let engine = open_log(&storage, true).unwrap();
            storage.fail_at(storage.operations() + at, fault);
            let told = AtomicUsize::new(0);
            let acknowledged: Vec<usize> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..THREADS)
                    .map(|thread| {
                        let (engine, told) = (&*engine, &told);
                        scope.spawn(move || {
                            for number in 0.. {
                                let name = format!("{thread} {number}");
                                if let Err(error) = engine.persist(&name, name.as_bytes()) {
                                    let kinds =
                                        [ErrorKind::Io, ErrorKind::Full, ErrorKind::Poisoned];
                                    assert!(kinds.contains(&error.kind()), "{error}");
                                    told.fetch_add(1, Ordering::Relaxed);
                                    return number;
                                }
                            }
                            unreachable!()
                        })
                    })
                    .collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap())
                    .collect()
            });
            assert_eq!(told.load(Ordering::Relaxed), THREADS);
            assert!(engine.stats().unwrap().poisoned);
            std::mem::forget(engine);
            for survives in [Survives::Synced, Survives::Random(at)] {
                let crashed = storage.crash(survives);
                let engine = open_log(&crashed, true).unwrap();
                for (thread, count) in acknowledged.iter().enumerate() {
                    for number in 0..*count {
                        let name = format!("{thread} {number}");
                        let found = engine.get(&name).unwrap();
                        assert!(
                            found.is_some_and(|entry| entry.value == name.as_bytes()),
                            "{fault:?} at {at}, {survives:?}: {name} was acknowledged and is gone"
                        );
                    }
                }
            }
        }
    }
}
