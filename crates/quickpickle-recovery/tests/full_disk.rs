//! A real full disk, and a real read-only one: small RAM disks, mounted for the purpose.
//!
//! Needs the right to mount; where that is refused the tests say so and pass.

mod support;

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quickpickle_recovery::{Config, Durability, ErrorKind, PersistenceEngine};
use tempfile::TempDir;

/// One test at a time: a `mount` being started by another test holds copies of our open files for a moment, and with them the space of
/// files that were removed.
static ALONE: Mutex<()> = Mutex::new(());

/// A mounted RAM disk, unmounted when dropped.
struct RamDisk(
    TempDir,
    #[allow(dead_code, reason = "held")] MutexGuard<'static, ()>,
);

impl RamDisk {
    fn new(size: &str) -> Option<Self> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir().unwrap();
        let options = format!("size={size},mode=700");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(directory.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(directory, alone)),
            Ok(output) => {
                support::skipped(&format!(
                    "cannot mount a RAM disk: {}",
                    String::from_utf8_lossy(&output.stderr).trim()
                ));
                None
            }
            Err(error) => {
                support::skipped(&format!("cannot run mount: {error}"));
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn remount(&self, option: &str) {
        let status = Command::new("mount")
            .args(["-o", &format!("remount,{option}")])
            .arg(self.path())
            .status()
            .unwrap();
        assert!(status.success(), "remount,{option}");
    }
}

impl Drop for RamDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn engines(disk: &RamDisk) -> Vec<(&'static str, Config)> {
    vec![
        ("log", Config::log(disk.path().join("always"))),
        (
            "log, none",
            Config {
                durability: Durability::None,
                ..Config::log(disk.path().join("none"))
            },
        ),
        (
            "file_system",
            Config::file_system(disk.path().join("files")),
        ),
    ]
}

/// Persists until an error comes; how many went well, and the error's kind.
fn fill(engine: &dyn PersistenceEngine) -> (usize, ErrorKind) {
    for i in 0.. {
        if let Err(error) = engine.persist(&format!("w_{i:05}"), &[7; 900]) {
            return (i, error.kind());
        }
    }
    unreachable!("a RAM disk of bounded size took everything")
}

#[test]
fn a_full_disk_poisons_and_loses_nothing_acknowledged() {
    let Some(disk) = RamDisk::new("1m") else {
        return;
    };
    for (what, config) in engines(&disk) {
        let engine = config.open().unwrap();
        let (stored, kind) = fill(&*engine);
        assert_eq!(kind, ErrorKind::Full, "{what}");
        assert!(stored > 100, "{what}: full after {stored}");
        for name in ["w_00000", "another"] {
            let error = engine.persist(name, b"small").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Poisoned, "{what}: {error}");
        }
        assert_eq!(
            engine.unpersist("w_00001").unwrap_err().kind(),
            ErrorKind::Poisoned,
            "{what}"
        );
        assert_eq!(
            engine.sync().unwrap_err().kind(),
            ErrorKind::Poisoned,
            "{what}"
        );
        assert!(engine.stats().unwrap().poisoned, "{what}");
        assert_eq!(
            engine.read("w_").unwrap().len(),
            stored,
            "{what}: what is stored can still be read"
        );
        assert_eq!(
            engine.close().unwrap_err().kind(),
            ErrorKind::Poisoned,
            "{what}: a poisoned engine does not close well"
        );
        drop(engine);
        // Still full: the store opens, holds everything acknowledged, and says again that it is full.
        let engine = Config {
            strict: true,
            ..config.clone()
        }
        .open()
        .unwrap_or_else(|error| panic!("{what}: reopen: {error}"));
        let entries = engine.read("w_").unwrap();
        assert!(
            (stored..=stored + 1).contains(&entries.len()),
            "{what}: {} of {stored}",
            entries.len()
        );
        let (_, kind) = fill(&*engine);
        assert_eq!(kind, ErrorKind::Full, "{what}");
        drop(engine);
        std::fs::remove_dir_all(config.directory.unwrap()).unwrap();
    }
}

#[test]
fn a_poisoned_engine_goes_on_once_there_is_space_again() {
    let Some(disk) = RamDisk::new("1m") else {
        return;
    };
    for (what, config) in engines(&disk) {
        std::fs::write(disk.path().join("ballast"), vec![1; 300 << 10]).unwrap();
        let engine = config.open().unwrap();
        let (stored, kind) = fill(&*engine);
        assert_eq!(kind, ErrorKind::Full, "{what}");
        std::fs::remove_file(disk.path().join("ballast")).unwrap();
        assert_eq!(
            engine.persist("x", b"y").unwrap_err().kind(),
            ErrorKind::Poisoned,
            "{what}: not by itself"
        );
        engine
            .revive()
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        engine.persist("x", b"y").unwrap();
        assert!(engine.read("w_").unwrap().len() >= stored, "{what}");
        assert!(engine.verify().unwrap().is_sound(), "{what}");
        engine.close().unwrap();
        drop(engine);
        assert_eq!(
            config.open().unwrap().get("x").unwrap().unwrap().value,
            b"y",
            "{what}"
        );
        std::fs::remove_dir_all(config.directory.unwrap()).unwrap();
    }
}

#[test]
fn a_compaction_without_space_fails_and_changes_nothing() {
    let Some(disk) = RamDisk::new("1m") else {
        return;
    };
    let config = Config {
        durability: Durability::None,
        ..Config::log(disk.path().join("store"))
    };
    let engine = config.open().unwrap();
    for i in 0..700 {
        engine.persist(&format!("w_{i}"), &[3; 900]).unwrap();
    }
    assert_eq!(engine.compact().unwrap_err().kind(), ErrorKind::Full);
    assert!(
        !engine.stats().unwrap().poisoned,
        "what a failed compaction would have replaced is untouched"
    );
    assert_eq!(engine.read("").unwrap().len(), 700);
    engine.persist("w_0", b"still writing").unwrap();
    engine.close().unwrap();
    drop(engine);
    let engine = Config {
        strict: true,
        ..config
    }
    .open()
    .unwrap();
    assert_eq!(engine.read("").unwrap().len(), 700);
}

#[test]
fn a_read_only_disk_is_named_and_can_be_read() {
    let Some(disk) = RamDisk::new("1m") else {
        return;
    };
    for (what, config) in engines(&disk).into_iter().skip(1) {
        let engine = config.open().unwrap();
        engine.persist("a", b"1").unwrap();
        engine.close().unwrap();
        drop(engine);
        disk.remount("ro");
        let error = config.open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "{what}: {error}");
        let reader = Config {
            read_only: true,
            ..config
        }
        .open()
        .unwrap();
        assert_eq!(reader.get("a").unwrap().unwrap().value, b"1", "{what}");
        assert!(reader.verify().unwrap().is_sound(), "{what}");
        drop(reader);
        disk.remount("rw");
    }
    let open = Config::log(disk.path().join("live")).open().unwrap();
    open.persist("a", b"1").unwrap();
    drop(open);
}
