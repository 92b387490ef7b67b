//! What a store holds when it is opened again, after a good end and after none, and who may open it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quickpickle_recovery::{Config, ErrorKind, Wait};

use crate::fixtures::{all, local};

#[test]
fn everything_is_there_again_after_close_and_after_drop() {
    for fixture in all() {
        let mut expected = 0;
        for round in 0..6_u8 {
            let engine = fixture.open();
            let report = engine.opening_report();
            assert!(
                report.is_sound() && report.torn_tail_bytes == 0,
                "{}: {report:?}",
                fixture.name
            );
            assert_eq!(report.entries, expected, "{}: round {round}", fixture.name);
            for i in 0..20 {
                engine
                    .persist(&format!("r{round}_{i}"), &[round; 300])
                    .unwrap();
            }
            engine.unpersist(&format!("r{round}_7")).unwrap();
            expected += 19;
            if round % 2 == 0 {
                engine.close().unwrap();
            }
        }
        let engine = fixture.open();
        for entry in engine.read("").unwrap() {
            let round = entry.name.as_bytes()[1] - b'0';
            assert_eq!(
                entry.value, [round; 300],
                "{}: {}",
                fixture.name, entry.name
            );
        }
    }
}

#[test]
fn opening_and_closing_alone_does_not_grow_a_store() {
    for fixture in local() {
        let engine = fixture.open();
        engine.persist("a", b"1").unwrap();
        engine.close().unwrap();
        let size = tree_size(fixture.directory.path());
        for _ in 0..10 {
            fixture.open().close().unwrap();
        }
        assert_eq!(
            tree_size(fixture.directory.path()),
            size,
            "{}",
            fixture.name
        );
    }
}

#[test]
fn a_second_master_is_locked_out_and_a_standby_takes_over() {
    for fixture in all() {
        let first = fixture.open();
        first.persist("a", b"1").unwrap();
        let error = fixture.config.open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked, "{}: {error}", fixture.name);
        let impatient = Config {
            wait: Wait::For(Duration::from_millis(80)),
            ..fixture.config.clone()
        };
        let started = Instant::now();
        assert_eq!(
            impatient.open().unwrap_err().kind(),
            ErrorKind::Locked,
            "{}",
            fixture.name
        );
        assert!(
            started.elapsed() >= Duration::from_millis(80),
            "{}",
            fixture.name
        );

        let standby = Config {
            wait: Wait::Forever,
            ..fixture.config.clone()
        };
        let waiting = std::thread::spawn(move || {
            standby
                .open()
                .map(|engine| (engine.read("").unwrap().len(), engine))
        });
        std::thread::sleep(Duration::from_millis(100));
        assert!(
            !waiting.is_finished(),
            "{}: the standby did not wait",
            fixture.name
        );
        first.persist("b", b"2").unwrap();
        first.close().unwrap();
        let (entries, second) = waiting.join().unwrap().unwrap();
        assert_eq!(
            entries, 2,
            "{}: the standby sees what was written while it waited",
            fixture.name
        );
        second.persist("c", b"3").unwrap();
    }
}

#[test]
fn standing_by_can_be_cancelled() {
    for fixture in all() {
        let first = fixture.open();
        let cancel = Arc::new(AtomicBool::new(false));
        let standby = Config {
            wait: Wait::Forever,
            cancel: Some(Arc::clone(&cancel)),
            ..fixture.config.clone()
        };
        let waiting = std::thread::spawn(move || standby.open().map(drop));
        std::thread::sleep(Duration::from_millis(50));
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(
            waiting.join().unwrap().unwrap_err().kind(),
            ErrorKind::Locked,
            "{}",
            fixture.name
        );
        first.persist("a", b"1").unwrap();
    }
}

#[test]
fn a_reader_takes_no_lock_and_writes_nothing() {
    for fixture in all() {
        let first = fixture.open();
        first.persist("a", b"1").unwrap();
        let reader = Config {
            read_only: true,
            ..fixture.config.clone()
        }
        .open()
        .unwrap();
        assert_eq!(
            reader.get("a").unwrap().unwrap().value,
            b"1",
            "{}",
            fixture.name
        );
        assert_eq!(
            reader.persist("b", b"2").unwrap_err().kind(),
            ErrorKind::ReadOnly,
            "{}",
            fixture.name
        );
        assert_eq!(
            reader.unpersist("a").unwrap_err().kind(),
            ErrorKind::ReadOnly,
            "{}",
            fixture.name
        );
        assert_eq!(
            reader.unpersist("missing").unwrap_err().kind(),
            ErrorKind::ReadOnly,
            "{}",
            fixture.name
        );
        assert!(reader.verify().unwrap().is_sound(), "{}", fixture.name);
        reader.close().unwrap();
        first.persist("b", b"2").unwrap();
        first.close().unwrap();
        assert_eq!(
            fixture.open().read("").unwrap().len(),
            2,
            "{}",
            fixture.name
        );
    }
}

#[test]
fn files_are_for_their_owner_only() {
    for fixture in local() {
        let engine = fixture.open();
        engine.persist("secret", b"1").unwrap();
        engine.compact().unwrap();
        each_file(fixture.directory.path(), &mut |path| {
            let mode = path.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}: {}", fixture.name, path.display());
        });
    }
}

#[test]
fn modification_times_mean_nothing() {
    for fixture in local() {
        let engine = fixture.open();
        for round in 0..10_u8 {
            for i in 0..30 {
                engine.persist(&format!("w_{i}"), &[round; 200]).unwrap();
            }
        }
        engine.close().unwrap();
        // A clock that was set back, and one that ran far ahead: newer files get older times, in no order.
        let mut files = Vec::new();
        each_file(fixture.directory.path(), &mut |path| {
            files.push(path.to_owned())
        });
        files.sort();
        for (at, path) in files.iter().enumerate() {
            let seconds = if at % 2 == 0 {
                1_000_000 - at as u64
            } else {
                7_000_000_000 + at as u64
            };
            let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            std::fs::File::options()
                .write(true)
                .open(path)
                .unwrap()
                .set_modified(time)
                .unwrap();
        }
        let engine = fixture.open();
        assert!(engine.opening_report().is_sound(), "{}", fixture.name);
        assert!(
            engine
                .read("")
                .unwrap()
                .iter()
                .all(|entry| entry.value == [9; 200]),
            "{}",
            fixture.name
        );
    }
}

/// Waits and intervals go by the monotonic clock, so that one that is set back or forth neither ends nor prolongs them. No test can set the
/// clock of the machine it runs on; that nothing asks for it can be seen.
#[test]
fn nothing_asks_what_time_it_is() {
    let mut looked_at = 0;
    for source in walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        if source
            .extension()
            .is_some_and(|extension| extension == "rs")
        {
            let text = std::fs::read_to_string(&source).unwrap();
            for clock in ["SystemTime", "UNIX_EPOCH", "CLOCK_REALTIME", "chrono"] {
                assert!(!text.contains(clock), "{}: {clock}", source.display());
            }
            looked_at += 1;
        }
    }
    assert!(looked_at > 20, "{looked_at}");
}

#[test]
fn a_directory_of_one_engine_is_refused_by_the_other() {
    let log = tempfile::tempdir().unwrap();
    Config::log(log.path())
        .open()
        .unwrap()
        .persist("a", b"1")
        .unwrap();
    assert_eq!(
        Config::file_system(log.path()).open().unwrap_err().kind(),
        ErrorKind::Version
    );
    let files = tempfile::tempdir().unwrap();
    Config::file_system(files.path())
        .open()
        .unwrap()
        .persist("a", b"1")
        .unwrap();
    assert_eq!(
        Config::log(files.path()).open().unwrap_err().kind(),
        ErrorKind::Version
    );
    let detected = Config::from_url(files.path().to_str().unwrap())
        .unwrap()
        .open()
        .unwrap();
    assert_eq!(detected.stats().unwrap().engine, "file_system");
}

fn each_file(directory: &Path, visit: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            each_file(&path, visit)
        } else {
            visit(&path)
        }
    }
}

fn tree_size(directory: &Path) -> u64 {
    let mut size = 0;
    each_file(directory, &mut |path| {
        if path.file_name().unwrap() != "LOCK" {
            size += path.metadata().unwrap().len();
        }
    });
    size
}

#[test]
fn what_a_fork_left_to_a_child_is_let_go_untouched() {
    for fixture in local() {
        let engine = fixture.open();
        engine.persist("a", b"1").unwrap();
        let files = || {
            let mut found: Vec<_> = walk(fixture.directory.path())
                .into_iter()
                .filter(|path| !path.ends_with("LOCK"))
                .map(|path| (path.clone(), std::fs::read(path).unwrap()))
                .collect();
            found.sort();
            found
        };
        let before = files();
        engine.disown();
        assert_eq!(files(), before, "{}", fixture.name);
        for refused in [engine.persist("b", b"2"), engine.unpersist("a")] {
            let error = refused.expect_err("it is not ours any more");
            assert_eq!(error.kind(), ErrorKind::Closed, "{}", fixture.name);
        }
        assert_eq!(engine.read("").unwrap_err().kind(), ErrorKind::Closed);
        // As in a child, whose copy of the parent's threads is not there to be joined.
        std::mem::forget(engine);
        let next = fixture.open();
        assert_eq!(next.read("").unwrap().len(), 1, "{}", fixture.name);
        assert!(next.opening_report().is_sound());
    }
}

/// A forked child lets go of the store's lock and of the newest segment's one after the other; whoever stands by comes in between.
#[test]
fn a_segment_that_is_still_held_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config::log(directory.path());
    let engine = config.open().unwrap();
    engine.persist("a", b"1").unwrap();
    engine.close().unwrap();
    let segment = walk(directory.path())
        .into_iter()
        .find(|path| path.extension().is_some_and(|it| it == "qlog"))
        .unwrap();
    let held = std::fs::File::open(segment).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert_eq!(config.open().unwrap_err().kind(), ErrorKind::Locked);
    let short = Config {
        wait: Wait::For(Duration::from_millis(60)),
        ..config.clone()
    };
    assert_eq!(short.open().unwrap_err().kind(), ErrorKind::Locked);
    let release = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        drop(held);
    });
    let patient = Config {
        wait: Wait::For(Duration::from_secs(60)),
        ..config
    };
    let engine = patient.open().unwrap();
    release.join().unwrap();
    assert_eq!(engine.read("").unwrap().len(), 1);
}

/// Every file below a directory.
fn walk(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else {
            files.push(path);
        }
    }
    files
}
