//! Writing and removing: the last write wins, and removing what is not there succeeds.

use quickpickle_recovery::{BlackHoleEngine, CodecId, Entry, ErrorKind, PersistenceEngine};

use crate::fixtures::all;

#[test]
fn what_is_persisted_is_read_back_with_its_tag() {
    for fixture in all() {
        let engine = fixture.open();
        engine.persist("worker_1", b"one").unwrap();
        engine
            .persist_tagged("worker_2", CodecId::KRYO, b"two")
            .unwrap();
        let one = Entry {
            name: "worker_1".into(),
            codec: CodecId::RAW,
            value: b"one".to_vec(),
        };
        let two = Entry {
            name: "worker_2".into(),
            codec: CodecId::KRYO,
            value: b"two".to_vec(),
        };
        assert_eq!(
            engine.read("").unwrap(),
            [one.clone(), two],
            "{}",
            fixture.name
        );
        assert_eq!(
            engine.get("worker_1").unwrap(),
            Some(one),
            "{}",
            fixture.name
        );
        assert_eq!(engine.get("worker_3").unwrap(), None, "{}", fixture.name);
    }
}

#[test]
fn the_last_write_wins() {
    for fixture in all() {
        let engine = fixture.open();
        for round in 0..50_u8 {
            engine
                .persist("app_1", &vec![round; usize::from(round)])
                .unwrap();
        }
        assert_eq!(engine.read("app_").unwrap().len(), 1, "{}", fixture.name);
        assert_eq!(
            engine.get("app_1").unwrap().unwrap().value,
            vec![49; 49],
            "{}",
            fixture.name
        );
        assert_eq!(engine.stats().unwrap().entries, 1, "{}", fixture.name);
    }
}

#[test]
fn removing_removes_and_removing_what_is_missing_succeeds() {
    for fixture in all() {
        let engine = fixture.open();
        engine.unpersist("never_there").unwrap();
        engine.persist("driver_1", b"x").unwrap();
        engine.unpersist("driver_1").unwrap();
        engine.unpersist("driver_1").unwrap();
        assert_eq!(engine.read("").unwrap(), [], "{}", fixture.name);
        engine.persist("driver_1", b"y").unwrap();
        assert_eq!(
            engine.get("driver_1").unwrap().unwrap().value,
            b"y",
            "{}",
            fixture.name
        );
    }
}

#[test]
fn empty_and_large_values_come_back_whole() {
    for fixture in all() {
        let engine = fixture.open();
        let noise: Vec<u8> = (0..3_000_000_u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8)
            .collect();
        engine.persist("empty", b"").unwrap();
        engine.persist("large", &noise).unwrap();
        engine.persist("zeros", &vec![0; 1 << 20]).unwrap();
        assert_eq!(
            engine.get("empty").unwrap().unwrap().value,
            b"",
            "{}",
            fixture.name
        );
        assert!(
            engine.get("large").unwrap().unwrap().value == noise,
            "{}",
            fixture.name
        );
        assert!(
            engine.get("zeros").unwrap().unwrap().value == vec![0; 1 << 20],
            "{}",
            fixture.name
        );
    }
}

#[test]
fn a_batch_stores_every_entry() {
    for fixture in all() {
        let engine = fixture.open();
        let entries: Vec<Entry> = (0..300_u32)
            .map(|i| Entry {
                name: format!("w_{i:04}"),
                codec: CodecId::COMPACT,
                value: i.to_le_bytes().repeat(20),
            })
            .collect();
        engine.persist_batch(&entries).unwrap();
        engine.persist_batch(&[]).unwrap();
        assert_eq!(engine.read("w_").unwrap(), entries, "{}", fixture.name);
    }
}

#[test]
fn a_closed_engine_answers_nothing_but_close() {
    for fixture in all() {
        let engine = fixture.open();
        engine.persist("a", b"1").unwrap();
        engine.close().unwrap();
        engine.close().unwrap();
        let kinds = [
            engine.persist("a", b"2").unwrap_err().kind(),
            engine.unpersist("a").unwrap_err().kind(),
            engine.unpersist("b").unwrap_err().kind(),
            engine.read("").unwrap_err().kind(),
            engine.names("").unwrap_err().kind(),
            engine.get("a").unwrap_err().kind(),
            engine.sync().unwrap_err().kind(),
            engine.verify().unwrap_err().kind(),
            engine.compact().unwrap_err().kind(),
            engine.stats().unwrap_err().kind(),
        ];
        assert_eq!(kinds, [ErrorKind::Closed; 10], "{}", fixture.name);
    }
}

#[test]
fn a_black_hole_accepts_everything_and_returns_nothing() {
    let engine = BlackHoleEngine::new();
    engine.persist("a", b"1").unwrap();
    engine.unpersist("a").unwrap();
    assert_eq!(engine.read("").unwrap(), []);
    engine.close().unwrap();
    assert_eq!(
        engine.persist("a", b"1").unwrap_err().kind(),
        ErrorKind::Closed
    );
}
