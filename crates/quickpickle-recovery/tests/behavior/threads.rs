//! Several threads on one engine.

use std::collections::BTreeMap;

use crate::fixtures::all;

#[test]
fn every_thread_finds_its_last_write() {
    for fixture in all() {
        let engine = fixture.open();
        let rounds = if fixture.name.starts_with("log") {
            100
        } else {
            20_u32
        };
        std::thread::scope(|scope| {
            for thread in 0..8_u32 {
                let engine = &engine;
                scope.spawn(move || {
                    for round in 0..rounds {
                        engine
                            .persist(&format!("t{thread}_{}", round % 7), &round.to_le_bytes())
                            .unwrap();
                        let own = engine
                            .get(&format!("t{thread}_{}", round % 7))
                            .unwrap()
                            .unwrap();
                        assert_eq!(own.value, round.to_le_bytes());
                        if round % 5 == 4 {
                            engine
                                .unpersist(&format!("t{thread}_{}", round % 7))
                                .unwrap();
                        }
                    }
                });
            }
            let engine = &engine;
            scope.spawn(move || {
                for _ in 0..20 {
                    engine.read("t").unwrap();
                    assert!(engine.verify().unwrap().is_sound());
                    engine.compact().unwrap();
                }
            });
        });
        let mut expected = BTreeMap::new();
        for thread in 0..8_u32 {
            for round in 0..rounds {
                let name = format!("t{thread}_{}", round % 7);
                if round % 5 == 4 {
                    expected.remove(&name)
                } else {
                    expected.insert(name, round.to_le_bytes().to_vec())
                };
            }
        }
        let check = |found: Vec<quickpickle_recovery::Entry>| {
            let found: BTreeMap<String, Vec<u8>> = found
                .into_iter()
                .map(|entry| (entry.name, entry.value))
                .collect();
            assert_eq!(found, expected, "{}", fixture.name);
        };
        check(engine.read("").unwrap());
        engine.close().unwrap();
        drop(engine);
        check(fixture.open().read("").unwrap());
    }
}
