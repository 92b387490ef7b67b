//! Persist 1,000 `WorkerInfo`, read them all back by prefix, remove them all: every engine, peers, and the bare system calls as a floor.
//!
//! Values are encoded beforehand with the compact codec, so that only the stores are compared. All contenders take turns within a
//! round. Each answer is checked: 1,000 values as written, and none after the removal.

mod harness;
mod peers;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use harness::{Arguments, Samples, file_system, ms, scratch, time};
use quickpickle_recovery::spark::WorkerInfo;
use quickpickle_recovery::{Compact, Config, Durability, PersistenceEngine, Serializer};
use serde_json::json;

const COUNT: usize = 1000;

/// A store under test.
pub(crate) trait Store {
    fn persist(&self, name: &str, value: &[u8]);
    /// How many values there are, after comparing each with what `values` says.
    fn read(&self, values: &BTreeMap<String, Vec<u8>>) -> usize;
    fn remove(&self, name: &str);
}

impl Store for Box<dyn PersistenceEngine> {
    fn persist(&self, name: &str, value: &[u8]) {
        (**self).persist(name, value).unwrap();
    }

    fn read(&self, values: &BTreeMap<String, Vec<u8>>) -> usize {
        let entries = (**self).read("worker_").unwrap();
        assert!(
            entries
                .iter()
                .all(|entry| values.get(&entry.name) == Some(&entry.value))
        );
        entries.len()
    }

    fn remove(&self, name: &str) {
        self.unpersist(name).unwrap();
    }
}

/// The system calls a log cannot do without, and nothing else: the floor.
struct Bare {
    file: File,
    at: std::cell::Cell<u64>,
    sync: bool,
}

impl Bare {
    /// `ahead`: with the space written and synced beforehand, so that a sync has no file size to write.
    fn new(directory: &Path, sync: bool, ahead: bool) -> Self {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(directory.join("bare"))
            .unwrap();
        if ahead {
            file.write_all_at(&vec![0; 1 << 20], 0).unwrap();
            file.sync_all().unwrap();
        }
        Self {
            file,
            at: 0.into(),
            sync,
        }
    }

    fn write(&self, bytes: &[u8]) {
        self.file.write_all_at(bytes, self.at.get()).unwrap();
        if self.sync {
            self.file.sync_data().unwrap();
        }
        self.at.set(self.at.get() + bytes.len() as u64);
    }
}

impl Store for Bare {
    fn persist(&self, name: &str, value: &[u8]) {
        // As many bytes as the log writes for the record.
        let len = (40 + name.len() + value.len()).next_multiple_of(8);
        let mut bytes = [0; 1024];
        bytes[40..40 + value.len()].copy_from_slice(value);
        self.write(&bytes[..len]);
    }

    fn read(&self, values: &BTreeMap<String, Vec<u8>>) -> usize {
        let mut bytes = vec![0; self.at.get() as usize];
        self.file.read_exact_at(&mut bytes, 0).unwrap();
        values.len()
    }

    fn remove(&self, name: &str) {
        self.write(&[0; 1024][..(40 + name.len()).next_multiple_of(8)]);
    }
}

type Open = Box<dyn Fn(&Path) -> Box<dyn Store>>;

fn contenders() -> Vec<(&'static str, Open)> {
    fn ours(make: impl Fn(&Path) -> Config + 'static) -> Open {
        Box::new(move |directory| Box::new(make(directory).open().unwrap()) as Box<dyn Store>)
    }
    let log = |durability| {
        move |directory: &Path| Config {
            durability,
            ..Config::log(directory)
        }
    };
    let files = |durability| {
        move |directory: &Path| Config {
            durability,
            ..Config::file_system(directory)
        }
    };
    let mut all: Vec<(&'static str, Open)> = vec![
        (
            "bare write + fdatasync, space ahead",
            Box::new(|d| Box::new(Bare::new(d, true, true))),
        ),
        ("log always", ours(log(Durability::Always))),
        (
            "bare write + fdatasync, appending",
            Box::new(|d| Box::new(Bare::new(d, true, false))),
        ),
        (
            "bare write",
            Box::new(|d| Box::new(Bare::new(d, false, false))),
        ),
        ("log none", ours(log(Durability::None))),
        (
            "log group(10)",
            ours(log(Durability::Group(Duration::from_millis(10)))),
        ),
        ("file_system always", ours(files(Durability::Always))),
        ("file_system none", ours(files(Durability::None))),
        ("black_hole", ours(|_| Config::black_hole())),
    ];
    all.extend(peers::contenders());
    all
}

/// The log with a sync for each record against the same bytes written and synced by hand, taking turns record by record: whatever else
/// the device is doing hits all three alike.
fn floor(directory: &Path, values: &BTreeMap<String, Vec<u8>>) -> serde_json::Value {
    let place = scratch(directory);
    let log = Config::log(place.path()).open().unwrap();
    let [ahead_place, appending_place] = [(); 2].map(|()| scratch(directory));
    let ahead = Bare::new(ahead_place.path(), true, true);
    let appending = Bare::new(appending_place.path(), true, false);
    let mut samples = [const { Samples(Vec::new()) }; 3];
    for (at, (name, value)) in values.iter().enumerate() {
        for turn in 0..3 {
            let who = (turn + at) % 3;
            let (taken, ()) = time(|| match who {
                0 => PersistenceEngine::persist(&*log, name, value).unwrap(),
                1 => ahead.persist(name, value),
                _ => appending.persist(name, value),
            });
            samples[who].push(taken);
        }
    }
    let [log, ahead, appending] = &samples;
    let rows = [
        ("log always", log),
        ("bare, space ahead", ahead),
        ("bare, appending", appending),
    ];
    println!(
        "\n| a record written and synced, in turns | best µs | median µs | mean µs |\n|---|---:|---:|---:|"
    );
    for (name, samples) in rows {
        println!(
            "| {name} | {:.1} | {:.1} | {:.1} |",
            samples.best() / 1e3,
            samples.median() / 1e3,
            samples.average() / 1e3
        );
    }
    let ratio = |floor: &Samples| log.median() / floor.median();
    println!(
        "\nlog always / bare with space ahead, medians: {:.3}; / bare appending: {:.3}",
        ratio(ahead),
        ratio(appending)
    );
    json!({
        "file_system": file_system(directory), "log_always": log.json(), "bare_space_ahead": ahead.json(), "bare_appending": appending.json(),
        "ratio_of_medians_to_space_ahead": ratio(ahead), "ratio_of_medians_to_appending": ratio(appending),
    })
}

fn main() {
    let arguments = Arguments::parse();
    let rounds = arguments
        .rounds
        .unwrap_or(if arguments.quick { 2 } else { 12 });
    let mut values = BTreeMap::new();
    for i in 0..COUNT as u32 {
        let worker = WorkerInfo::example(i);
        let mut bytes = Vec::new();
        Compact.serialize(&worker, &mut bytes).unwrap();
        values.insert(format!("worker_{}", worker.id), bytes);
    }
    let size: usize = values.values().map(Vec::len).sum::<usize>() / COUNT;
    let mut results = Vec::new();
    for directory in &arguments.directories {
        let kind = file_system(directory);
        println!("\n{COUNT} WorkerInfo of {size} bytes on {kind}, {rounds} rounds, ms\n");
        println!(
            "| store | best | avg | stdev | persist | read | remove |\n|---|---:|---:|---:|---:|---:|---:|"
        );
        let contenders = contenders();
        let mut samples = vec![[const { Samples(Vec::new()) }; 4]; contenders.len()];
        for _ in 0..rounds {
            for ((name, open), samples) in contenders.iter().zip(&mut samples) {
                let place = scratch(directory);
                let store = open(place.path());
                let (persist, ()) = time(|| {
                    values
                        .iter()
                        .for_each(|(name, value)| store.persist(name, value))
                });
                let (read, found) = time(|| store.read(&values));
                let (remove, ()) = time(|| values.keys().for_each(|name| store.remove(name)));
                let kept = if *name == "black_hole" { 0 } else { COUNT };
                assert_eq!(found, kept, "{name}");
                if !name.starts_with("bare") {
                    assert_eq!(store.read(&values), 0, "{name}");
                }
                for (samples, time) in
                    samples
                        .iter_mut()
                        .zip([persist + read + remove, persist, read, remove])
                {
                    samples.push(time);
                }
            }
        }
        for ((name, _), [total, persist, read, remove]) in contenders.iter().zip(&samples) {
            println!(
                "| {name} | {} | {} | {} | {} | {} | {} |",
                ms(total.best()),
                ms(total.average()),
                ms(total.deviation()),
                ms(persist.best()),
                ms(read.best()),
                ms(remove.best())
            );
            results.push(json!({
                "store": name, "file_system": kind, "records": COUNT, "value_bytes": size,
                "cycle": total.json(), "persist": persist.json(), "read": read.json(), "remove": remove.json(),
            }));
        }
        results.push(floor(directory, &values));
    }
    arguments.record("cycle", json!(results));
}
