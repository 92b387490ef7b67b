//! What the benchmarks share: arguments, samples, tables and raw records.
//!
//! Run one with `cargo bench -p quickpickle-recovery --features bench-peers --bench cycle -- --dir DIR --record FILE`. `--dir` may be
//! given several times, for instance for a disk and a RAM disk; `--quick` takes few samples, to see that everything runs.
#![allow(dead_code, reason = "each benchmark uses a part of it")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub(crate) struct Arguments {
    pub(crate) directories: Vec<PathBuf>,
    record: Option<PathBuf>,
    pub(crate) quick: bool,
    pub(crate) rounds: Option<usize>,
}

impl Arguments {
    pub(crate) fn parse() -> Self {
        let mut arguments = Self {
            directories: Vec::new(),
            record: None,
            quick: false,
            rounds: None,
        };
        let mut rest = std::env::args().skip(1);
        while let Some(argument) = rest.next() {
            let mut value = || {
                PathBuf::from(
                    rest.next()
                        .unwrap_or_else(|| panic!("{argument} needs a value")),
                )
            };
            match argument.as_str() {
                "--dir" => arguments.directories.push(value()),
                "--record" => arguments.record = Some(value()),
                "--rounds" => {
                    let rounds = value().to_str().and_then(|rounds| rounds.parse().ok());
                    arguments.rounds = Some(rounds.expect("--rounds needs a number"));
                }
                "--quick" => arguments.quick = true,
                // Given by cargo.
                "--bench" => {}
                other => {
                    panic!(
                        "{other} is not an argument; there are --dir, --record, --rounds and --quick"
                    )
                }
            }
        }
        if arguments.directories.is_empty() {
            arguments.directories.push(std::env::temp_dir());
        }
        arguments
    }

    /// Writes the raw record, if one was asked for.
    pub(crate) fn record(&self, benchmark: &str, results: Value) {
        let Some(path) = &self.record else { return };
        let record = json!({ "benchmark": benchmark, "machine": machine(&self.directories), "results": results });
        let text = serde_json::to_string_pretty(&record).expect("plain data");
        std::fs::write(path, text + "\n")
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// What one must know about a machine to read its figures.
fn machine(directories: &[PathBuf]) -> Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map(|m| m.trim_start_matches([' ', '\t', ':']));
    let seconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |time| time.as_secs());
    json!({
        "seconds_since_1970": seconds,
        "cpu": model,
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "load_before": read("/proc/loadavg").trim(),
        "file_systems": directories.iter().map(|directory| file_system(directory)).collect::<Vec<_>>(),
        "crate_version": env!("CARGO_PKG_VERSION"),
    })
}

/// Type of the file system a directory is on.
pub(crate) fn file_system(directory: &Path) -> String {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let absolute = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned());
    let mut best = ("", "unknown");
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(1);
        if let (Some(point), Some(kind)) = (fields.next(), fields.next())
            && absolute.starts_with(point)
            && point.len() >= best.0.len()
        {
            best = (point, kind);
        }
    }
    best.1.to_owned()
}

/// Times of one thing, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(pub(crate) Vec<u64>);

impl Samples {
    pub(crate) fn push(&mut self, time: Duration) {
        self.0
            .push(u64::try_from(time.as_nanos()).expect("less than 500 years"));
    }

    pub(crate) fn best(&self) -> f64 {
        self.0.iter().copied().min().unwrap_or(0) as f64
    }

    pub(crate) fn average(&self) -> f64 {
        self.0.iter().sum::<u64>() as f64 / self.0.len().max(1) as f64
    }

    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(0) as f64
    }

    pub(crate) fn deviation(&self) -> f64 {
        let average = self.average();
        let squares: f64 = self
            .0
            .iter()
            .map(|&sample| (sample as f64 - average).powi(2))
            .sum();
        (squares / self.0.len().max(1) as f64).sqrt()
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "nanoseconds": self.0, "best": self.best(), "average": self.average(), "median": self.median(), "stdev": self.deviation() })
    }
}

/// Nanoseconds as milliseconds, for tables.
pub(crate) fn ms(nanoseconds: f64) -> String {
    let value = nanoseconds / 1e6;
    if value < 10.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.1}")
    }
}

pub(crate) fn time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let started = Instant::now();
    let result = work();
    (started.elapsed(), result)
}

/// A directory of its own below `parent`, removed at the end.
pub(crate) fn scratch(parent: &Path) -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("recovery-bench-")
        .tempdir_in(parent)
        .unwrap_or_else(|error| panic!("{}: {error}", parent.display()))
}
