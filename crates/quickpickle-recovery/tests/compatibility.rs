//! Stores written by earlier releases keep loading: `tests/data/` has one directory for each format version there has been.
//!
//! Never written anew: a change that breaks this test needs a new format version and a directory of its own. `generate` is how
//! the next one is made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quickpickle_recovery::{CodecId, Compression, Config, Durability, Entry, PersistenceEngine};

fn data(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(version)
}

/// What the stores hold, in the end.
fn expected() -> BTreeMap<String, (CodecId, Vec<u8>)> {
    let mut entries = BTreeMap::new();
    for i in 0..60_u8 {
        if i % 7 != 3 {
            let codec = [
                CodecId::RAW,
                CodecId::PICKLE,
                CodecId::COMPACT,
                CodecId::JAVA,
                CodecId::KRYO,
            ][usize::from(i) % 5];
            entries.insert(
                format!("worker_{i:03}"),
                (codec, vec![i; 20 + usize::from(i)]),
            );
        }
    }
    for name in ["", "..", "a/b\0c", "Ünïcode 🦀"] {
        entries.insert(name.into(), (CodecId::RAW, name.as_bytes().to_vec()));
    }
    entries.insert("long ".repeat(400), (CodecId::RAW, b"long name".to_vec()));
    entries.insert(
        "text".into(),
        (CodecId::JAVA, b"a text that shrinks ".repeat(50)),
    );
    entries
}

/// The same entries by way of overwriting, removing, batches and a compaction.
fn write(engine: &dyn PersistenceEngine) {
    for i in 0..60 {
        engine
            .persist(&format!("worker_{i:03}"), b"to be replaced")
            .unwrap();
    }
    let entries: Vec<Entry> = expected()
        .into_iter()
        .map(|(name, (codec, value))| Entry { name, codec, value })
        .collect();
    let (first, second) = entries.split_at(entries.len() / 2);
    engine.persist_batch(first).unwrap();
    engine.compact().unwrap();
    for entry in second {
        engine
            .persist_tagged(&entry.name, entry.codec, &entry.value)
            .unwrap();
    }
    for i in (3..60).step_by(7) {
        engine.unpersist(&format!("worker_{i:03}")).unwrap();
    }
}

fn check(engine: &dyn PersistenceEngine, what: &str) {
    let report = engine.opening_report();
    assert!(
        report.is_sound() && report.closed_cleanly && report.torn_tail_bytes == 0,
        "{what}: {report:?}"
    );
    let found: BTreeMap<String, (CodecId, Vec<u8>)> = engine
        .read("")
        .unwrap()
        .into_iter()
        .map(|entry| (entry.name, (entry.codec, entry.value)))
        .collect();
    assert!(
        found == expected(),
        "{what}: other entries than were written"
    );
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn stores(root: &Path) -> Vec<(&'static str, Config)> {
    let log = Config {
        durability: Durability::None,
        segment_bytes: Some(4096),
        ..Config::log(root.join("log"))
    };
    let log_zstd = Config {
        compression: Compression::Zstd,
        ..Config::log(root.join("log_zstd"))
    };
    let log_lz4 = Config {
        compression: Compression::Lz4,
        ..Config::log(root.join("log_lz4"))
    };
    vec![
        ("log", log),
        ("log_zstd", log_zstd),
        ("log_lz4", log_lz4),
        ("file_system", Config::file_system(root.join("file_system"))),
    ]
}

#[test]
fn stores_of_format_1_keep_loading_and_can_be_written() {
    let here = tempfile::tempdir().unwrap();
    copy(&data("v1"), here.path());
    for (what, config) in stores(here.path()) {
        // Today's settings do not matter to what is there.
        let config = Config {
            compression: Compression::None,
            strict: true,
            ..config
        };
        check(
            &*Config {
                read_only: true,
                ..config.clone()
            }
            .open()
            .unwrap(),
            what,
        );
        let engine = config.open().unwrap();
        check(&*engine, what);
        engine.persist("new", b"entry").unwrap();
        engine.unpersist("").unwrap();
        engine.compact().unwrap();
        engine.close().unwrap();
        drop(engine);
        let engine = config.open().unwrap();
        assert_eq!(engine.names("").unwrap().len(), expected().len(), "{what}");
        assert_eq!(
            engine.get("new").unwrap().unwrap().value,
            b"entry",
            "{what}"
        );
    }
}

#[test]
#[ignore = "writes the directory of a new format version; set QUICKPICKLE_DATA to an empty directory"]
fn generate() {
    let root = PathBuf::from(std::env::var("QUICKPICKLE_DATA").expect("QUICKPICKLE_DATA"));
    for (_, config) in stores(&root) {
        let engine = config.open().unwrap();
        write(&*engine);
        engine.close().unwrap();
        let _ = std::fs::remove_file(config.directory.unwrap().join("LOCK"));
    }
}
