//! How the log behaves as things grow: threads that persist at once, and records to be read when a store is opened.
//!
//! Opening is compared with what bounds it: reading the same files into a small buffer, reading plus checksumming them, and, per record,
//! the least that any opening must do: checksum header and body and put the name into a hash table made large enough at once. Files
//! are in the page cache, as they are when a master restarts; every opening counts its entries.

mod harness;

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use harness::{Arguments, Samples, file_system, ms, scratch, time};
use quickpickle_recovery::spark::WorkerInfo;
use quickpickle_recovery::{CodecId, Compact, Config, Durability, Entry, Serializer};
use serde_json::{Value, json};

const THREADS: usize = 8;
const PERSISTS: usize = 1000;

fn worker(number: u32) -> Entry {
    let worker = WorkerInfo::example(number);
    let mut value = Vec::new();
    Compact.serialize(&worker, &mut value).unwrap();
    Entry {
        name: format!("worker_{}-{number}", worker.id),
        codec: Compact.codec(),
        value,
    }
}

/// A worker's name with as many bytes as Spark's Java serialiser takes for it.
fn java_worker(number: u32) -> Entry {
    Entry {
        codec: CodecId::JAVA,
        value: number
            .to_le_bytes()
            .into_iter()
            .cycle()
            .take(1345)
            .collect(),
        ..worker(number)
    }
}

/// What this process has used of the processors, its threads included; in ticks of 10 ms, so an average over several rounds says more.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
    let ticks = |at: usize| -> u64 { fields[at].parse().unwrap() };
    Duration::from_millis(10 * (ticks(12) + ticks(13)))
}

/// 1,000 persists: one after the other, and from eight threads at once.
fn concurrent(directory: &Path, rounds: usize) -> Vec<Value> {
    let entries: Vec<Entry> = (0..PERSISTS as u32).map(worker).collect();
    let group = Durability::Group(Duration::from_millis(10));
    let cases = [
        ("always, 1 thread: a sync each", Durability::Always, 1),
        (
            "always, 8 threads: a sync for those waiting",
            Durability::Always,
            THREADS,
        ),
        ("group(10), 8 threads", group, THREADS),
        ("group(10), 8 threads, then sync()", group, THREADS),
        ("none, 8 threads", Durability::None, THREADS),
    ];
    println!(
        "\n{PERSISTS} persists on {}, ms\n\n| | best | avg | stdev | faster than a sync each |\n|---|---:|---:|---:|---:|",
        file_system(directory)
    );
    let mut samples = vec![Samples::default(); cases.len()];
    for _ in 0..rounds {
        for ((name, durability, threads), samples) in cases.iter().zip(&mut samples) {
            let place = scratch(directory);
            let engine = Config {
                durability: *durability,
                ..Config::log(place.path())
            }
            .open()
            .unwrap();
            let engine = &engine;
            let (taken, ()) = time(|| {
                std::thread::scope(|scope| {
                    for part in entries.chunks(PERSISTS / threads) {
                        scope.spawn(move || {
                            part.iter().for_each(|e| {
                                engine.persist_tagged(&e.name, e.codec, &e.value).unwrap()
                            })
                        });
                    }
                });
                if name.ends_with("sync()") {
                    engine.sync().unwrap();
                }
            });
            samples.push(taken);
            assert_eq!(engine.names("worker_").unwrap().len(), PERSISTS);
        }
    }
    let alone = samples[0].best();
    let rows = cases.iter().zip(&samples).map(|((name, _, threads), samples)| {
        let faster = alone / samples.best();
        println!(
            "| {name} | {} | {} | {} | {faster:.1}x |",
            ms(samples.best()),
            ms(samples.average()),
            ms(samples.deviation())
        );
        json!({ "case": name, "threads": threads, "file_system": file_system(directory), "times": samples.json(), "faster": faster })
    });
    rows.collect()
}

/// Opening stores of more and more records.
fn reopen(directory: &Path, what: &str, make: fn(u32) -> Entry, quick: bool) -> Vec<Value> {
    println!(
        "\nOpening a log of {what} on {}\n\n| records | MB | ms | cpu ms | ns/record | log GB/s | read GB/s | read + crc32c GB/s | least per record ns | compact ms |\n\
         |---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        file_system(directory)
    );
    let mut rows = Vec::new();
    let counts: &[u32] = if quick {
        &[1000, 10_000]
    } else {
        &[1000, 10_000, 100_000, 1_000_000]
    };
    for &records in counts {
        let place = scratch(directory);
        let config = Config {
            durability: Durability::None,
            auto_compact: Some(false),
            ..Config::log(place.path())
        };
        let engine = config.open().unwrap();
        let mut batch = Vec::new();
        for number in 0..records {
            batch.push(make(number));
            if batch.len() == 500 || number + 1 == records {
                engine.persist_batch(&batch).unwrap();
                batch.clear();
            }
        }
        engine.close().unwrap();
        drop(engine);
        let bytes = segments(place.path())
            .iter()
            .map(|path| path.metadata().unwrap().len())
            .sum::<u64>();
        let rounds = (2_000_000 / records).clamp(7, 200);
        let mut cpu = Duration::ZERO;
        let [mut open, mut read, mut checksum, mut least] = [const { Samples(Vec::new()) }; 4];
        for _ in 0..rounds {
            let before = cpu_time();
            let (taken, engine) = time(|| config.open().unwrap());
            open.push(taken);
            cpu += cpu_time() - before;
            assert_eq!(engine.opening_report().entries, u64::from(records));
            drop(engine);
            read.push(time(|| assert_eq!(pass(place.path(), |_| 0).0, bytes)).0);
            checksum.push(time(|| assert_ne!(pass(place.path(), crc32c::crc32c).1, 0)).0);
            least.push(time(|| assert_eq!(names(place.path(), records), records as usize)).0);
        }
        let engine = config.open().unwrap();
        let (compact, report) = time(|| engine.compact().unwrap());
        assert_eq!(report.entries, u64::from(records));
        let rate = |samples: &Samples| bytes as f64 / samples.best();
        println!(
            "| {records} | {:.1} | {} | {} | {:.0} | {:.2} | {:.2} | {:.2} | {:.0} | {} |",
            bytes as f64 / 1e6,
            ms(open.best()),
            ms(cpu.as_nanos() as f64 / f64::from(rounds)),
            open.best() / f64::from(records),
            rate(&open),
            rate(&read),
            rate(&checksum),
            least.best() / f64::from(records),
            ms(compact.as_nanos() as f64)
        );
        rows.push(json!({
            "what": what, "records": records, "bytes": bytes, "cpu_nanoseconds_average": cpu.as_nanos() as u64 / u64::from(rounds), "file_system": file_system(directory), "open": open.json(), "read_only": read.json(),
            "read_and_checksum": checksum.json(), "least": least.json(), "gigabytes_per_second": rate(&open), "compact_nanoseconds": compact.as_nanos() as u64,
        }));
    }
    rows
}

fn segments(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "qlog")
    });
    paths.sort();
    paths
}

/// Reads every segment through a buffer of the size the log uses.
fn pass(directory: &Path, look: impl Fn(&[u8]) -> u32) -> (u64, u32) {
    let mut buffer = vec![0; 1 << 20];
    let (mut bytes, mut seen) = (0, 0);
    for path in segments(directory) {
        let mut file = File::open(path).unwrap();
        loop {
            let got = file.read(&mut buffer).unwrap();
            if got == 0 {
                break;
            }
            seen ^= look(&buffer[..got]);
            bytes += got as u64;
        }
    }
    (bytes, seen)
}

/// The least per record, on one thread: read, follow the lengths, checksum header and body, and keep the name with its place.
/// Looks at nothing twice, believes every length and forgives nothing, so no opening that finds damage can do less.
fn names(directory: &Path, records: u32) -> usize {
    const HEADER: usize = 40;
    let mut names: HashMap<Box<[u8]>, u64, foldhash::fast::RandomState> =
        HashMap::with_capacity_and_hasher(records as usize, foldhash::fast::RandomState::default());
    let mut buffer = vec![0; 1 << 20];
    let mut checksum = 0;
    for path in segments(directory) {
        let mut file = File::open(path).unwrap();
        let (mut filled, mut at, mut base) = (0, 64, 0);
        loop {
            let word =
                |at: usize| u32::from_le_bytes(buffer[at..at + 4].try_into().unwrap()) as usize;
            let whole = at + HEADER <= filled
                && at + (HEADER + word(at + 12) + word(at + 16)).next_multiple_of(8) <= filled;
            if !whole {
                let kept = filled.saturating_sub(at);
                buffer.copy_within(filled - kept..filled, 0);
                base += (filled - kept) as u64;
                at -= filled - kept;
                let got = file.read(&mut buffer[kept..]).unwrap();
                filled = kept + got;
                if got == 0 {
                    break;
                }
                continue;
            }
            let (name, value) = (word(at + 12), word(at + 16));
            let end = at + (HEADER + name + value).next_multiple_of(8);
            checksum ^= crc32c::crc32c(&buffer[at + 8..at + HEADER]);
            checksum ^= crc32c::crc32c(&buffer[at + HEADER..end]);
            if buffer[at + 22] == 1 {
                names.insert(buffer[at + HEADER..][..name].into(), base + at as u64);
            }
            at = end;
        }
    }
    std::hint::black_box(checksum);
    names.len()
}

fn main() {
    let arguments = Arguments::parse();
    let mut results = Vec::new();
    for directory in &arguments.directories {
        results.extend(concurrent(
            directory,
            arguments
                .rounds
                .unwrap_or(if arguments.quick { 2 } else { 10 }),
        ));
        results.extend(reopen(
            directory,
            "WorkerInfo in the compact codec",
            worker,
            arguments.quick,
        ));
        results.extend(reopen(
            directory,
            "values of 1,345 bytes, a WorkerInfo as Java writes it",
            java_worker,
            arguments.quick,
        ));
    }
    arguments.record("scale", json!(results));
}
