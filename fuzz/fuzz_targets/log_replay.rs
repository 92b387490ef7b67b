//! Replaying damaged logs: whatever the bytes, opening ends, without a panic, with entries that were once written, and leaves a store
//! that opens soundly the next time with the same entries.
//!
//! Checksums keep a fuzzer out, so most inputs are a list of edits to logs that were written properly: bytes changed, stretches moved,
//! zeroed and cut, whole segments removed or exchanged. The rest is taken as segments as it is.

#![no_main]

#[path = "../../crates/quickpickle-recovery/tests/support/simulated.rs"]
#[allow(dead_code, reason = "written for the crash tests, which use all of it")]
mod simulated;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use quickpickle_recovery::{Entry, ErrorKind, LogEngine, LogOptions, PersistenceEngine, Result};
use simulated::{Simulated, Survives};

const STORE: &str = "/store";

fn open(storage: &Simulated, strict: bool) -> Result<LogEngine> {
    let options = LogOptions {
        strict,
        segment_bytes: 4096,
        preallocate_bytes: 512,
        auto_compact: false,
        ..LogOptions::default()
    };
    LogEngine::open_on(Arc::new(storage.clone()), Path::new(STORE), options)
}

fn value(name: u8, round: u8) -> Vec<u8> {
    vec![round; 20 + 3 * usize::from(name)]
}

/// Logs to damage: closed well and not, compacted and not, of one segment and of several.
fn logs() -> &'static [Simulated] {
    static LOGS: OnceLock<Vec<Simulated>> = OnceLock::new();
    LOGS.get_or_init(|| {
        let make = |rounds: u8, compact: bool, close: bool| {
            let storage = Simulated::new();
            let engine = open(&storage, true).expect("a new log");
            for round in 0..rounds {
                for name in 0..20 {
                    engine
                        .persist(&format!("n{name}"), &value(name, round))
                        .expect("memory");
                }
                let batch = (20..25).map(|name| Entry {
                    name: format!("n{name}"),
                    codec: Default::default(),
                    value: value(name, round),
                });
                engine
                    .persist_batch(&batch.collect::<Vec<_>>())
                    .expect("memory");
                engine.unpersist(&format!("n{round}")).expect("memory");
                if compact && round == rounds / 2 {
                    engine.compact().expect("memory");
                }
            }
            if close {
                engine.close().expect("memory");
            }
            // As it is at this moment: for those that were not closed, before the engine's end closes them.
            let storage = storage.crash(Survives::Everything);
            drop(engine);
            storage
        };
        vec![
            make(1, false, false),
            make(1, false, true),
            make(6, false, false),
            make(6, true, true),
            make(8, true, false),
        ]
    })
}

/// Every entry is one of the logs' own.
fn check(entries: &[Entry]) {
    for entry in entries {
        let name: u8 = entry
            .name
            .strip_prefix('n')
            .and_then(|name| name.parse().ok())
            .expect("a name that was never written");
        let round = entry.value[0];
        assert!(
            name < 25 && round < 8 && entry.value == value(name, round),
            "{} was never written like this",
            entry.name
        );
    }
}

/// Opens what is there, checks what must hold, and opens again.
fn replay(storage: &Simulated, written_by_us: bool) {
    let strict = open(&storage.crash(Survives::Everything), true).map(drop);
    let engine = match open(storage, false) {
        Ok(engine) => engine,
        Err(error) => {
            // Only what is not ours to touch is refused without strict.
            assert_eq!(error.kind(), ErrorKind::Version, "{error}");
            return;
        }
    };
    let report = engine.opening_report();
    assert_eq!(
        strict.is_ok(),
        report.is_sound(),
        "strict opens sound stores and no others: {report:?}"
    );
    let entries = engine.read("").expect("a store that was repaired");
    assert_eq!(entries.len() as u64, report.entries);
    if written_by_us {
        check(&entries);
    }
    assert!(engine.verify().expect("readable").is_sound());
    engine.persist("n1", &value(1, 0)).expect("memory");
    drop(engine);
    let again = open(&storage.crash(Survives::Synced), true).expect("sound after its repair");
    let report = again.opening_report();
    assert!(
        report.is_sound() && report.torn_tail_bytes == 0,
        "{report:?}"
    );
    let mut expected: Vec<Entry> = entries
        .into_iter()
        .filter(|entry| entry.name != "n1")
        .collect();
    expected.push(Entry {
        name: "n1".into(),
        codec: Default::default(),
        value: value(1, 0),
    });
    expected.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(
        again.read("").expect("sound") == expected,
        "entries changed between two openings"
    );
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, rest)) = data.split_first() else {
        return;
    };
    let path = |number: usize| PathBuf::from(format!("{STORE}/{number:020}.qlog"));
    if kind >= 0xf0 {
        let storage = Simulated::new();
        for (number, segment) in rest
            .chunks(rest.len() / (1 + usize::from(kind & 3)) + 1)
            .enumerate()
        {
            storage.put(&path(number + 1), segment.to_vec());
        }
        return replay(&storage, false);
    }
    let logs = logs();
    let storage = logs[usize::from(kind) % logs.len()].crash(Survives::Everything);
    let segments: Vec<(PathBuf, Vec<u8>)> = storage
        .files()
        .into_iter()
        .filter(|(path, _)| {
            path.extension()
                .is_some_and(|extension| extension == "qlog")
        })
        .collect();
    // Each edit is five bytes: what, which segment, where (two), with what.
    for edit in rest.chunks_exact(5).take(16) {
        let (path, _) = &segments[usize::from(edit[1]) % segments.len()];
        let Some(mut bytes) = storage.files().get(path).cloned() else {
            continue;
        };
        let at = usize::from(u16::from_le_bytes([edit[2], edit[3]])) % bytes.len().max(1);
        let length = usize::from(edit[4]);
        match edit[0] % 8 {
            _ if bytes.is_empty() => continue,
            0 => bytes[at] ^= edit[4],
            1 => bytes.truncate(at),
            2 => {
                let end = bytes.len().min(at + length);
                bytes[at..end].fill(0);
            }
            3 => bytes.extend(std::iter::repeat_n(edit[4], length)),
            4 => {
                let end = bytes.len().min(at + 8 * length);
                let copy = bytes[at..end].to_vec();
                bytes.extend_from_slice(&copy);
            }
            5 => {
                let end = bytes.len().min(at + 8 * length);
                bytes.drain(at..end);
            }
            6 => {
                storage.delete(path);
                continue;
            }
            _ => bytes = segments[length % segments.len()].1.clone(),
        }
        storage.put(path, bytes);
    }
    replay(&storage, true);
});
