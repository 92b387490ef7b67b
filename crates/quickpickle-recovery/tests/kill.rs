//! A writer killed with SIGKILL at random moments, round after round on one store, against a checker of what it had acknowledged.
//!
//! The writer is this test program itself, started again. It notes each acknowledged call in a file; the notes survive it as its writes do.
//! After the kill the store must open in strict mode and hold what was acknowledged, plus at most the one call under way.
//! `QUICKPICKLE_KILL_ROUNDS=1000` runs the long version.

mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use quickpickle_recovery::{CodecId, Config, Durability, Entry, ErrorKind, Wait};
use support::simulated::Random;

const STORE: &str = "QUICKPICKLE_KILL_STORE";
const NOTES: &str = "QUICKPICKLE_KILL_NOTES";
const SEED: &str = "QUICKPICKLE_KILL_SEED";
const ENGINE: &str = "QUICKPICKLE_KILL_ENGINE";

enum Call {
    Persist(Vec<Entry>),
    Unpersist(String),
    Compact,
}

/// The calls of a round, the same for writer and checker.
fn call(seed: u64, number: u64) -> Call {
    let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(number));
    let entry = |random: &mut Random| Entry {
        name: format!("w_{}", random.below(40)),
        codec: CodecId::RAW,
        value: random
            .next()
            .to_le_bytes()
            .repeat(1 + random.below(60) as usize),
    };
    match random.below(20) {
        0..=3 => Call::Unpersist(format!("w_{}", random.below(40))),
        4 => Call::Compact,
        5 => {
            let mut entries: Vec<Entry> = (0..5).map(|_| entry(&mut random)).collect();
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            entries.dedup_by(|a, b| a.name == b.name);
            Call::Persist(entries)
        }
        _ => Call::Persist(vec![entry(&mut random)]),
    }
}

fn config(engine: &str, store: &Path) -> Config {
    let log = Config {
        segment_bytes: Some(8192),
        strict: true,
        wait: Wait::For(Duration::from_secs(10)),
        ..Config::log(store)
    };
    match engine {
        "always" => log,
        "group" => Config {
            durability: Durability::Group(Duration::from_millis(2)),
            ..log
        },
        "none" => Config {
            durability: Durability::None,
            ..log
        },
        _ => Config {
            strict: true,
            wait: Wait::For(Duration::from_secs(10)),
            ..Config::file_system(store)
        },
    }
}

#[test]
#[ignore = "the writer of the tests below; they start it"]
fn writer() {
    let variable = |name| std::env::var(name).expect("set by the test that starts the writer");
    let seed: u64 = variable(SEED).parse().unwrap();
    let mut notes = File::options().append(true).open(variable(NOTES)).unwrap();
    let engine = config(&variable(ENGINE), Path::new(&variable(STORE)))
        .open()
        .unwrap();
    notes.write_all(b"r").unwrap();
    for number in 0.. {
        match call(seed, number) {
            Call::Persist(entries) if entries.len() == 1 => {
                engine.persist(&entries[0].name, &entries[0].value).unwrap()
            }
            Call::Persist(entries) => engine.persist_batch(&entries).unwrap(),
            Call::Unpersist(name) => engine.unpersist(&name).unwrap(),
            Call::Compact => {
                engine.compact().unwrap();
            }
        }
        notes.write_all(b"a").unwrap();
    }
}

fn start(engine: &str, store: &Path, notes: &Path, seed: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--ignored", "--quiet"])
        .env(STORE, store)
        .env(NOTES, notes)
        .env(SEED, seed.to_string())
        .env(ENGINE, engine)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

fn kill_in_a_loop(engine: &str, rounds: u64) {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store");
    let notes: PathBuf = directory.path().join("notes");
    let mut model: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut random = Random(rounds);
    let (mut acknowledged, mut torn, mut under_way) = (0, 0, 0);
    for round in 0..rounds {
        File::create(&notes).unwrap();
        let mut child = start(engine, &store, &notes, round);
        // The moment is counted from when the writer is ready, but now and then falls into its opening of the store.
        if round % 10 != 9 {
            while notes.metadata().unwrap().len() == 0 {
                assert!(
                    child.try_wait().unwrap().is_none(),
                    "round {round}: the writer gave up"
                );
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        std::thread::sleep(Duration::from_micros(random.below(12_000)));
        child.kill().unwrap();
        assert_eq!(
            child.wait().unwrap().signal(),
            Some(9),
            "round {round}: the writer ended by itself"
        );
        let done = notes.metadata().unwrap().len().saturating_sub(1);
        acknowledged += done;
        for number in 0..done {
            apply(&mut model, &call(round, number));
        }
        // A reader changes nothing, so the next writer has the repair to itself.
        let reader = Config {
            read_only: true,
            ..config(engine, &store)
        };
        let opened = reader
            .open()
            .unwrap_or_else(|error| panic!("{engine}, round {round}: {error}"));
        torn += u64::from(opened.opening_report().torn_tail_bytes > 0);
        let found: BTreeMap<String, Vec<u8>> = opened
            .read("")
            .unwrap()
            .into_iter()
            .map(|e| (e.name, e.value))
            .collect();
        if found != model {
            // At most the call under way, of a batch any part.
            let next = call(round, done);
            let names: Vec<String> = match &next {
                Call::Persist(entries) => entries.iter().map(|entry| entry.name.clone()).collect(),
                Call::Unpersist(name) => vec![name.clone()],
                Call::Compact => Vec::new(),
            };
            let mut after = model.clone();
            apply(&mut after, &next);
            for name in found.keys().chain(model.keys()) {
                let value = found.get(name);
                let allowed =
                    value == model.get(name) || (names.contains(name) && value == after.get(name));
                assert!(
                    allowed,
                    "{engine}, round {round}, after {done} calls: {name} is not what was acknowledged"
                );
            }
            under_way += 1;
            model = found;
        }
    }
    println!(
        "{engine}: {rounds} kills, {acknowledged} acknowledged calls, {torn} torn tails, {under_way} calls under way took effect"
    );
    // Far below what even a machine that is busy with other things manages.
    assert!(acknowledged > rounds / 4, "the writers hardly wrote");
}

/// Two masters on one directory, in two processes: the second is told, stands by, and takes over the moment the first is gone.
#[test]
fn a_second_master_waits_for_the_first_to_die() {
    for engine in ["always", "none", "file_system"] {
        let directory = tempfile::tempdir().unwrap();
        let (store, notes) = (
            directory.path().join("store"),
            directory.path().join("notes"),
        );
        File::create(&notes).unwrap();
        let mut first = start(engine, &store, &notes, 1);
        while notes.metadata().unwrap().len() < 5 {
            assert!(
                first.try_wait().unwrap().is_none(),
                "{engine}: the first master gave up"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        let impatient = Config {
            wait: Wait::No,
            ..config(engine, &store)
        };
        assert_eq!(
            impatient.open().unwrap_err().kind(),
            ErrorKind::Locked,
            "{engine}"
        );
        let standby = Config {
            wait: Wait::Forever,
            ..config(engine, &store)
        };
        let waiting = std::thread::spawn(move || standby.open().unwrap());
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished(), "{engine}: the standby did not wait");
        first.kill().unwrap();
        first.wait().unwrap();
        let second = waiting.join().unwrap();
        second.persist("second", b"master").unwrap();
        assert!(second.verify().unwrap().is_sound(), "{engine}");
    }
}

fn apply(model: &mut BTreeMap<String, Vec<u8>>, call: &Call) {
    match call {
        Call::Persist(entries) => model.extend(
            entries
                .iter()
                .map(|entry| (entry.name.clone(), entry.value.clone())),
        ),
        Call::Unpersist(name) => {
            model.remove(name);
        }
        Call::Compact => {}
    }
}

fn rounds() -> u64 {
    std::env::var("QUICKPICKLE_KILL_ROUNDS")
        .ok()
        .map_or(40, |rounds| rounds.parse().expect("a number"))
}

#[test]
fn a_killed_writer_of_a_log_loses_nothing_it_acknowledged() {
    kill_in_a_loop("always", rounds());
}

#[test]
fn a_killed_writer_of_a_log_in_groups_loses_nothing_it_acknowledged() {
    kill_in_a_loop("group", rounds().div_ceil(2));
}

#[test]
fn a_killed_writer_of_a_log_without_syncs_loses_nothing_it_acknowledged() {
    kill_in_a_loop("none", rounds().div_ceil(2));
}

#[test]
fn a_killed_writer_of_files_loses_nothing_it_acknowledged() {
    kill_in_a_loop("file_system", rounds().div_ceil(2));
}
