//! The compact codec beside pickle, on what a master stores: bytes for each record, and the time to write and to read it.
//!
//! Both go through the crate's own serialisers, take turns, and must bring back what went in.

mod harness;

use std::hint::black_box;

use harness::{Arguments, Samples, time};
use quickpickle_recovery::spark::{ApplicationInfo, DriverInfo, WorkerInfo};
use quickpickle_recovery::{Compact, Pickle, Record, Serializer};
use serde_json::{Value, json};

const COUNT: u32 = 1000;

/// Mean size and samples of writing and reading `records`.
struct Measured {
    bytes: f64,
    write: Samples,
    read: Samples,
}

fn measure<S: Serializer, T: Record + PartialEq + std::fmt::Debug>(
    serializer: &S,
    records: &[T],
    into: &mut Measured,
) {
    let mut buffers = vec![Vec::with_capacity(1024); records.len()];
    let (write, ()) = time(|| {
        for (record, buffer) in records.iter().zip(&mut buffers) {
            serializer.serialize(black_box(record), buffer).unwrap();
        }
    });
    let (read, back) = time(|| -> Vec<T> {
        buffers
            .iter()
            .map(|buffer| serializer.deserialize(black_box(buffer)).unwrap())
            .collect()
    });
    assert_eq!(back, records);
    into.bytes = buffers.iter().map(Vec::len).sum::<usize>() as f64 / records.len() as f64;
    into.write.push(write);
    into.read.push(read);
}

fn compare<T: Record + PartialEq + std::fmt::Debug>(
    name: &str,
    records: &[T],
    rounds: usize,
) -> Value {
    let [mut compact, mut pickle] = [const {
        Measured {
            bytes: 0.0,
            write: Samples(Vec::new()),
            read: Samples(Vec::new()),
        }
    }; 2];
    for _ in 0..rounds {
        measure(&Compact, records, &mut compact);
        measure(&Pickle, records, &mut pickle);
    }
    let each = |samples: &Samples| samples.best() / records.len() as f64;
    let both = |m: &Measured| each(&m.write) + each(&m.read);
    println!(
        "| {name} | {:.0} | {:.0} | {:.1}x | {:.0} | {:.0} | {:.1}x | {:.0} | {:.0} | {:.1}x | {:.1}x |",
        compact.bytes,
        pickle.bytes,
        pickle.bytes / compact.bytes,
        each(&compact.write),
        each(&pickle.write),
        each(&pickle.write) / each(&compact.write),
        each(&compact.read),
        each(&pickle.read),
        each(&pickle.read) / each(&compact.read),
        both(&pickle) / both(&compact),
    );
    let one =
        |m: &Measured| json!({ "bytes": m.bytes, "write": m.write.json(), "read": m.read.json() });
    json!({ "type": name, "records": records.len(), "compact": one(&compact), "pickle": one(&pickle) })
}

fn main() {
    let arguments = Arguments::parse();
    let rounds = if arguments.quick { 5 } else { 300 };
    println!("\n{COUNT} records, best of {rounds} rounds: bytes and ns for each\n");
    println!(
        "| | bytes compact | pickle | smaller | write compact | pickle | faster | read compact | pickle | faster | both |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let results = vec![
        compare(
            "WorkerInfo",
            &(0..COUNT).map(WorkerInfo::example).collect::<Vec<_>>(),
            rounds,
        ),
        compare(
            "ApplicationInfo",
            &(0..COUNT).map(ApplicationInfo::example).collect::<Vec<_>>(),
            rounds,
        ),
        compare(
            "DriverInfo",
            &(0..COUNT).map(DriverInfo::example).collect::<Vec<_>>(),
            rounds,
        ),
    ];
    arguments.record("codec", json!(results));
}
