//! Reading by prefix, in order, and what an engine says about itself.

use crate::fixtures::all;

#[test]
fn a_prefix_selects_and_the_order_is_that_of_the_names() {
    for fixture in all() {
        let engine = fixture.open();
        for name in [
            "worker_2",
            "app_1",
            "worker_10",
            "worker_1",
            "workers",
            "app",
            "driver_1",
        ] {
            engine.persist(name, name.as_bytes()).unwrap();
        }
        let names = |prefix: &str| -> Vec<String> {
            engine
                .read(prefix)
                .unwrap()
                .into_iter()
                .map(|entry| entry.name)
                .collect()
        };
        assert_eq!(
            names("worker_"),
            ["worker_1", "worker_10", "worker_2"],
            "{}",
            fixture.name
        );
        assert_eq!(names("app"), ["app", "app_1"], "{}", fixture.name);
        assert_eq!(names("nothing"), [""; 0], "{}", fixture.name);
        assert_eq!(names("").len(), 7, "{}", fixture.name);
        for prefix in ["", "worker_", "app", "z"] {
            assert_eq!(
                engine.names(prefix).unwrap(),
                names(prefix),
                "{}: {prefix}",
                fixture.name
            );
        }
        for entry in engine.read("").unwrap() {
            assert_eq!(entry.name.as_bytes(), entry.value, "{}", fixture.name);
        }
    }
}

#[test]
fn a_name_is_there_or_it_is_not() {
    for fixture in all() {
        let engine = fixture.open();
        for name in ["", "a", "a/b"] {
            assert!(!engine.contains(name).unwrap(), "{}", fixture.name);
            engine.persist(name, b"1").unwrap();
            assert!(engine.contains(name).unwrap(), "{}", fixture.name);
        }
        engine.unpersist("a").unwrap();
        assert!(!engine.contains("a").unwrap(), "{}", fixture.name);
        assert!(!engine.contains("a/").unwrap(), "{}", fixture.name);
        engine.close().unwrap();
        assert_eq!(
            engine.contains("").unwrap_err().kind(),
            quickpickle_recovery::ErrorKind::Closed,
            "{}",
            fixture.name
        );
    }
}

#[test]
fn verify_finds_a_sound_store_sound() {
    for fixture in all() {
        let engine = fixture.open();
        for i in 0..100 {
            engine.persist(&format!("w_{}", i % 30), &[i; 50]).unwrap();
        }
        engine.unpersist("w_3").unwrap();
        let report = engine.verify().unwrap();
        assert!(report.is_sound(), "{}: {report:?}", fixture.name);
        assert_eq!(
            (report.entries, report.torn_tail_bytes),
            (29, 0),
            "{}",
            fixture.name
        );
        let stats = engine.stats().unwrap();
        assert_eq!(
            (stats.entries, stats.poisoned),
            (29, false),
            "{}",
            fixture.name
        );
        assert!(
            stats.live_bytes >= 29 * 50
                || fixture.name.contains("lz4")
                || fixture.name.contains("zstd"),
            "{}",
            fixture.name
        );
    }
}

#[test]
fn compaction_keeps_every_entry_and_gives_space_back() {
    for fixture in all() {
        let engine = fixture.open();
        for round in 0..20_u8 {
            for i in 0..50 {
                engine.persist(&format!("w_{i}"), &[round; 100]).unwrap();
            }
        }
        for i in 25..50 {
            engine.unpersist(&format!("w_{i}")).unwrap();
        }
        let before = engine.read("").unwrap();
        let report = engine.compact().unwrap();
        assert_eq!(report.entries, 25, "{}", fixture.name);
        assert!(
            report.bytes_after <= report.bytes_before,
            "{}: {report:?}",
            fixture.name
        );
        assert!(
            !fixture.name.starts_with("log, always")
                || report.bytes_after < report.bytes_before / 20,
            "{}: {report:?}",
            fixture.name
        );
        assert_eq!(engine.read("").unwrap(), before, "{}", fixture.name);
        engine.persist("w_0", b"after").unwrap();
        engine.unpersist("w_1").unwrap();
        engine.compact().unwrap();
        engine.close().unwrap();
        drop(engine);
        let engine = fixture.open();
        assert!(
            engine.opening_report().is_sound(),
            "{}: {:?}",
            fixture.name,
            engine.opening_report()
        );
        assert_eq!(engine.names("").unwrap().len(), 24, "{}", fixture.name);
        assert_eq!(
            engine.get("w_0").unwrap().unwrap().value,
            b"after",
            "{}",
            fixture.name
        );
        assert_eq!(
            engine.get("w_2").unwrap().unwrap().value,
            [19; 100],
            "{}",
            fixture.name
        );
    }
}
