//! What a log does on its own: syncing groups in time, and compacting once dead records outweigh live ones.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quickpickle_recovery::{Durability, ErrorKind, LogEngine, LogOptions, PersistenceEngine};
use support::simulated::{Fault, Simulated, Survives};

fn open(storage: &Simulated, options: LogOptions) -> LogEngine {
    LogEngine::open_on(Arc::new(storage.clone()), Path::new("/store"), options).unwrap()
}

fn survivors(storage: &Simulated) -> Vec<String> {
    open(&storage.crash(Survives::Synced), LogOptions::default())
        .names("")
        .unwrap()
}

/// Waits for something another thread does; a minute is for machines that are very busy.
fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let started = Instant::now();
    while !happened() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{what} did not happen"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn each_level_keeps_what_it_says_when_the_power_goes() {
    let storage = Simulated::new();
    let engine = open(&storage, LogOptions::default());
    engine.persist("always", b"1").unwrap();
    assert_eq!(
        survivors(&storage),
        ["always"],
        "on the device when the call returns"
    );
    drop(engine);

    let storage = Simulated::new();
    let engine = open(
        &storage,
        LogOptions {
            durability: Durability::None,
            ..LogOptions::default()
        },
    );
    engine.persist("none", b"1").unwrap();
    assert_eq!(survivors(&storage), [""; 0], "handed over is not written");
    engine.sync().unwrap();
    assert_eq!(survivors(&storage), ["none"], "sync waits for it");
    drop(engine);

    let storage = Simulated::new();
    let group = Durability::Group(Duration::from_millis(20));
    let engine = open(
        &storage,
        LogOptions {
            durability: group,
            ..LogOptions::default()
        },
    );
    for round in 0..5 {
        engine.persist(&format!("group_{round}"), b"1").unwrap();
        // Nobody calls again: the sync comes by itself.
        eventually("the group's sync", || {
            survivors(&storage).len() == round + 1
        });
    }
}

#[test]
fn a_group_sync_that_fails_poisons_the_engine() {
    let storage = Simulated::new();
    let group = Durability::Group(Duration::from_millis(5));
    let engine = open(
        &storage,
        LogOptions {
            durability: group,
            ..LogOptions::default()
        },
    );
    // The write goes well, its sync does not.
    storage.fail_at(storage.operations() + 1, Fault::Fail);
    engine.persist("a", b"1").unwrap();
    eventually("the failure", || engine.stats().unwrap().poisoned);
    assert_eq!(
        engine.persist("b", b"2").unwrap_err().kind(),
        ErrorKind::Poisoned
    );
    assert_eq!(engine.close().unwrap_err().kind(), ErrorKind::Poisoned);
}

/// Owners that each write a little and end at once: none of them comes to compact, so the next one does, when it opens.
#[test]
fn a_log_whose_owners_never_came_to_compact_is_compacted_when_opened() {
    let directory = tempfile::tempdir().unwrap();
    let options = LogOptions {
        durability: Durability::None,
        segment_bytes: 16 << 10,
        auto_compact: false,
        ..LogOptions::default()
    };
    for owner in 0..40_u8 {
        let engine = LogEngine::open(directory.path(), options.clone()).unwrap();
        for _ in 0..20 {
            engine.persist("always the same", &[owner; 500]).unwrap();
        }
    }
    let options = LogOptions {
        auto_compact: true,
        strict: true,
        ..options
    };
    let engine = LogEngine::open(directory.path(), options).unwrap();
    eventually("a compaction", || {
        engine.stats().unwrap().total_bytes < 4 << 10
    });
    assert_eq!(
        engine.get("always the same").unwrap().unwrap().value,
        [39; 500]
    );
    assert!(engine.verify().unwrap().is_sound());
}

#[test]
fn a_log_compacts_itself_once_dead_records_outweigh_live_ones() {
    let directory = tempfile::tempdir().unwrap();
    let options = LogOptions {
        durability: Durability::None,
        segment_bytes: 16 << 10,
        ..LogOptions::default()
    };
    let engine = LogEngine::open(directory.path(), options.clone()).unwrap();
    let mut written = 0;
    for round in 0..200_u8 {
        for name in 0..20 {
            engine.persist(&format!("w_{name}"), &[round; 500]).unwrap();
            written += 500;
        }
    }
    eventually("a compaction", || {
        engine.stats().unwrap().total_bytes < written / 10
    });
    assert!(
        engine
            .read("")
            .unwrap()
            .iter()
            .all(|entry| entry.value == [199; 500])
    );
    assert!(engine.verify().unwrap().is_sound());
    drop(engine);
    let engine = LogEngine::open(
        directory.path(),
        LogOptions {
            strict: true,
            ..options
        },
    )
    .unwrap();
    assert_eq!(engine.names("").unwrap().len(), 20);
}
