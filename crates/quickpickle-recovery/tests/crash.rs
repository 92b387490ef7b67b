//! A fault at every single operation of a scripted history: failed, torn, out of power, out of space.
//!
//! The checker knows what was acknowledged. After the fault no write may be acknowledged by an engine that said it is poisoned; after a
//! crash with anything from nothing to everything of the unsynced data, a **strict** open must succeed, and every name must hold its last
//! acknowledged value or that of a call which failed. Then a second session on the same machine writes more, loses power, and must have
//! lost nothing it had shown.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use quickpickle_recovery::{
    CodecId, Durability, Entry, ErrorKind, FileSystemEngine, FileSystemOptions, LogEngine,
    LogOptions, PersistenceEngine, Result,
};
use support::simulated::{Fault, Random, Simulated, Survives};

type Value = Option<Vec<u8>>;

/// One call of the history.
#[derive(Clone, Debug)]
enum Call {
    Persist(String, Vec<u8>),
    Unpersist(String),
    Batch(Vec<(String, Vec<u8>)>),
    Compact,
    Sync,
    Reopen,
}

/// What each name may hold.
#[derive(Clone, Debug, Default)]
struct Model {
    /// The last acknowledged value, and those of calls after it that failed.
    names: BTreeMap<String, BTreeSet<Value>>,
}

impl Model {
    fn acknowledged(&mut self, name: &str, value: Value) {
        self.names.insert(name.into(), BTreeSet::from([value]));
    }

    fn failed(&mut self, name: &str, value: Value) {
        self.names
            .entry(name.into())
            .or_insert_with(|| BTreeSet::from([None]))
            .insert(value);
    }

    /// Everything `engine` holds is allowed and everything required is there.
    fn check(
        &self,
        engine: &dyn PersistenceEngine,
        context: &dyn Fn() -> String,
    ) -> BTreeMap<String, Vec<u8>> {
        let found: BTreeMap<String, Vec<u8>> = engine
            .read("")
            .unwrap_or_else(|error| panic!("{}: read: {error}", context()))
            .into_iter()
            .map(|e| (e.name, e.value))
            .collect();
        for name in self.names.keys().chain(found.keys()) {
            let value = found.get(name).cloned();
            let allowed = self.names.get(name);
            assert!(
                allowed.is_some_and(|allowed| allowed.contains(&value)),
                "{}: {name} holds {:?}, allowed are {:?}",
                context(),
                value.map(|v| v.len()),
                allowed.map(|allowed| allowed
                    .iter()
                    .map(|v| v.as_ref().map(Vec::len))
                    .collect::<Vec<_>>())
            );
        }
        found
    }
}

/// Makes sure that values differ in length, so that messages say which one was found.
fn history() -> Vec<Call> {
    let mut calls = Vec::new();
    let mut random = Random(7);
    for i in 0..46_usize {
        let name = format!("w_{}", random.below(9));
        let value = vec![i as u8; 40 + 17 * i];
        calls.push(match i {
            5 | 33 => Call::Batch(
                (0..4)
                    .map(|k| (format!("b_{k}"), vec![k as u8; 200 + i + k]))
                    .collect(),
            ),
            11 | 25 | 40 => Call::Reopen,
            16 | 36 => Call::Compact,
            20 => Call::Sync,
            _ if i % 6 == 4 => Call::Unpersist(name),
            _ => Call::Persist(name, value),
        });
    }
    calls
}

type Open = dyn Fn(Simulated, bool) -> Result<Box<dyn PersistenceEngine>>;

fn open_log(
    durability: Durability,
) -> impl Fn(Simulated, bool) -> Result<Box<dyn PersistenceEngine>> {
    move |storage, strict| {
        let options = LogOptions {
            durability,
            strict,
            segment_bytes: 4096,
            preallocate_bytes: 1024,
            auto_compact: false,
            ..LogOptions::default()
        };
        Ok(Box::new(LogEngine::open_on(
            Arc::new(storage),
            Path::new("/store"),
            options,
        )?))
    }
}

fn open_files(storage: Simulated, strict: bool) -> Result<Box<dyn PersistenceEngine>> {
    let options = FileSystemOptions {
        strict,
        ..FileSystemOptions::default()
    };
    Ok(Box::new(FileSystemEngine::open_on(
        Arc::new(storage),
        Path::new("/store"),
        options,
    )?))
}

/// Runs the history; what is allowed afterwards. Ends early if a reopening fails.
fn run(storage: &Simulated, open: &Open, calls: &[Call]) -> Model {
    let mut model = Model::default();
    let Ok(mut engine) = open(storage.clone(), false) else {
        return model;
    };
    let mut poisoned = false;
    for call in calls {
        let result = match call {
            Call::Persist(name, value) => {
                let result = engine.persist(name, value);
                match &result {
                    Ok(()) => model.acknowledged(name, Some(value.clone())),
                    Err(_) => model.failed(name, Some(value.clone())),
                }
                result
            }
            Call::Unpersist(name) => {
                let result = engine.unpersist(name);
                match &result {
                    Ok(()) => model.acknowledged(name, None),
                    Err(_) => model.failed(name, None),
                }
                result
            }
            Call::Batch(entries) => {
                let batch: Vec<Entry> = entries
                    .iter()
                    .map(|(name, value)| Entry {
                        name: name.clone(),
                        codec: CodecId::RAW,
                        value: value.clone(),
                    })
                    .collect();
                let result = engine.persist_batch(&batch);
                for (name, value) in entries {
                    match &result {
                        Ok(()) => model.acknowledged(name, Some(value.clone())),
                        Err(_) => model.failed(name, Some(value.clone())),
                    }
                }
                result
            }
            Call::Compact => {
                // May fail without poisoning: what it replaces is untouched.
                let _ = engine.compact();
                Ok(())
            }
            Call::Sync => engine.sync(),
            Call::Reopen => {
                let closed = engine.close();
                assert!(
                    closed.is_err() || !poisoned,
                    "a poisoned engine said it closed well"
                );
                drop(engine);
                match open(storage.clone(), false) {
                    Ok(again) => engine = again,
                    Err(_) => return model,
                }
                poisoned = false;
                Ok(())
            }
        };
        if poisoned && !matches!(call, Call::Compact) {
            let error = result.expect_err("a poisoned engine acknowledged a call");
            assert_eq!(error.kind(), ErrorKind::Poisoned);
        } else if !matches!(call, Call::Compact) {
            poisoned = result.is_err();
        }
        if !poisoned {
            poisoned = engine.stats().is_ok_and(|stats| stats.poisoned);
        }
    }
    // Dropped, not closed: what follows is a crash. But a drop closes as well as it can, so the power goes first.
    std::mem::forget(engine);
    model
}

/// Every fault at every operation, with every kind of survival.
fn at_every_operation(what: &str, open: &Open, survivals: &[Survives]) {
    let calls = history();
    let clean = Simulated::new();
    let model = run(&clean, open, &calls);
    let operations = clean.operations();
    assert!(
        operations > 60,
        "{what}: a history of {operations} operations proves little"
    );
    for survives in survivals {
        let crashed = clean.crash(*survives);
        model.check(&*open(crashed, true).unwrap(), &|| {
            format!("{what}: no fault, {survives:?}")
        });
    }
    for at in 0..operations {
        for fault in [Fault::Fail, Fault::Tear, Fault::PowerOff, Fault::Full] {
            let storage = Simulated::new();
            storage.fail_at(at, fault);
            let model = run(&storage, open, &calls);
            for survives in survivals {
                let context = || format!("{what}: {fault:?} at operation {at}, then {survives:?}");
                let crashed = storage.crash(*survives);
                let engine = open(crashed.clone(), true)
                    .unwrap_or_else(|error| panic!("{}: strict open: {error}", context()));
                let shown = model.check(&*engine, &context);
                assert!(engine.verify().unwrap().is_sound(), "{}", context());
                engine
                    .persist("second", b"session")
                    .unwrap_or_else(|error| panic!("{}: second session: {error}", context()));
                std::mem::forget(engine);
                let again = open(crashed.crash(Survives::Synced), true)
                    .unwrap_or_else(|error| panic!("{}: third: {error}", context()));
                let mut expected = shown;
                expected.insert("second".into(), b"session".to_vec());
                let found: BTreeMap<_, _> = again
                    .read("")
                    .unwrap()
                    .into_iter()
                    .map(|e| (e.name, e.value))
                    .collect();
                assert_eq!(
                    found.iter().map(|(n, v)| (n, v.len())).collect::<Vec<_>>(),
                    expected
                        .iter()
                        .map(|(n, v)| (n, v.len()))
                        .collect::<Vec<_>>(),
                    "{}: a second session lost what it had shown",
                    context()
                );
                assert!(found == expected, "{}", context());
            }
        }
    }
}

#[test]
fn a_log_survives_a_fault_at_every_operation() {
    let survivals = [
        Survives::Everything,
        Survives::Synced,
        Survives::Random(1),
        Survives::Random(2),
        Survives::Random(3),
    ];
    at_every_operation("log", &open_log(Durability::Always), &survivals);
}

#[test]
fn files_survive_a_fault_at_every_operation() {
    let survivals = [
        Survives::Everything,
        Survives::Synced,
        Survives::Random(1),
        Survives::Random(2),
    ];
    at_every_operation("file_system", &open_files, &survivals);
}

/// Weaker levels promise less against power loss, but nothing less against the death of the process.
#[test]
fn a_log_without_syncs_loses_nothing_when_only_the_process_dies() {
    for durability in [
        Durability::None,
        Durability::Group(std::time::Duration::from_secs(60)),
    ] {
        let open = open_log(durability);
        let calls = history();
        let clean = Simulated::new();
        run(&clean, &open, &calls);
        for at in 0..clean.operations() {
            for fault in [Fault::Fail, Fault::Tear, Fault::Full] {
                let storage = Simulated::new();
                storage.fail_at(at, fault);
                let model = run(&storage, &open, &calls);
                let context = || format!("{durability}: {fault:?} at operation {at}");
                let engine = open(storage.crash(Survives::Everything), true)
                    .unwrap_or_else(|error| panic!("{}: strict open: {error}", context()));
                model.check(&*engine, &context);
                std::mem::forget(engine);
            }
        }
    }
}

/// After a power loss a log without syncs may have lost anything, but it opens, and shows nothing that was never written.
#[test]
fn a_log_without_syncs_shows_only_what_was_written_after_a_power_loss() {
    let open = open_log(Durability::None);
    let calls = history();
    let mut written: BTreeMap<String, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for call in &calls {
        let entries = match call {
            Call::Persist(name, value) => vec![(name.clone(), value.clone())],
            Call::Batch(entries) => entries.clone(),
            _ => Vec::new(),
        };
        for (name, value) in entries {
            written.entry(name).or_default().insert(value);
        }
    }
    let clean = Simulated::new();
    run(&clean, &open, &calls);
    for at in 0..clean.operations() {
        let storage = Simulated::new();
        storage.fail_at(at, Fault::PowerOff);
        run(&storage, &open, &calls);
        for seed in 0..6 {
            let crashed = storage.crash(Survives::Random(seed));
            let engine = open(crashed.clone(), false)
                .unwrap_or_else(|error| panic!("operation {at}, seed {seed}: open: {error}"));
            for entry in engine.read("").unwrap() {
                let known = written
                    .get(&entry.name)
                    .is_some_and(|values| values.contains(&entry.value));
                assert!(
                    known,
                    "operation {at}, seed {seed}: {} was never written",
                    entry.name
                );
            }
            assert!(
                engine.verify().unwrap().is_sound(),
                "operation {at}, seed {seed}: opening did not repair"
            );
            std::mem::forget(engine);
        }
    }
}

/// Poisoned by any single fault, an engine whose device works again can be revived in place, loses nothing and writes again.
#[test]
fn a_poisoned_engine_can_be_revived_without_loss() {
    let opens: [(&str, Box<Open>); 2] = [
        ("log", Box::new(open_log(Durability::Always))),
        ("file_system", Box::new(open_files)),
    ];
    for (what, open) in &opens {
        let mut revived = 0;
        for at in 0..200 {
            for fault in [Fault::Fail, Fault::Tear, Fault::Full] {
                let storage = Simulated::new();
                storage.fail_at(at, fault);
                let Ok(engine) = open(storage.clone(), false) else {
                    continue;
                };
                let mut model = Model::default();
                for round in 0..20_usize {
                    let (name, value) =
                        (format!("w_{}", round % 5), vec![round as u8; 100 + round]);
                    match engine.persist(&name, &value) {
                        Ok(()) => model.acknowledged(&name, Some(value)),
                        Err(_) => model.failed(&name, Some(value)),
                    }
                }
                let context = || format!("{what}: {fault:?} at operation {at}, revived");
                if !engine.stats().unwrap().poisoned {
                    continue;
                }
                assert_eq!(
                    engine.persist("w_0", b"no").unwrap_err().kind(),
                    ErrorKind::Poisoned,
                    "{}",
                    context()
                );
                if fault == Fault::Full {
                    // While the disk is full reviving may fail, and then changes nothing.
                    if engine.revive().is_err() {
                        assert_eq!(
                            engine.persist("w_0", b"no").unwrap_err().kind(),
                            ErrorKind::Poisoned
                        );
                    }
                }
                storage.heal();
                engine
                    .revive()
                    .unwrap_or_else(|error| panic!("{}: {error}", context()));
                revived += 1;
                model.check(&*engine, &context);
                engine.persist("after", b"revival").unwrap();
                model.acknowledged("after", Some(b"revival".to_vec()));
                std::mem::forget(engine);
                let again = open(storage.crash(Survives::Synced), true)
                    .unwrap_or_else(|error| panic!("{}: {error}", context()));
                model.check(&*again, &context);
            }
        }
        assert!(
            revived > 30,
            "{what}: only {revived} engines were poisoned; the test proves little"
        );
    }
}

/// A read that fails while opening is an error, never an entry less.
#[test]
fn a_read_error_while_opening_is_not_taken_for_the_end() {
    let opens: [(&str, Box<Open>); 2] = [
        ("log", Box::new(open_log(Durability::Always))),
        ("file_system", Box::new(open_files)),
    ];
    for (what, open) in &opens {
        let storage = Simulated::new();
        let model = run(&storage, open, &history());
        let whole = storage.crash(Survives::Everything);
        whole.fail_read(u64::MAX);
        model.check(&*open(whole.clone(), true).unwrap(), &|| {
            format!("{what}: no fault")
        });
        let reads = whole.reads();
        assert!(reads >= 5, "{what}: {reads} reads");
        for at in 0..reads {
            let crashed = storage.crash(Survives::Everything);
            crashed.fail_read(at);
            match open(crashed.clone(), false) {
                Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "{what}: read {at}: {error}"),
                Ok(engine) => {
                    crashed.heal();
                    model.check(&*engine, &|| format!("{what}: read {at} failed"));
                }
            }
            crashed.heal();
            model.check(
                &*open(crashed.crash(Survives::Everything), true).unwrap(),
                &|| format!("{what}: after read {at} failed"),
            );
        }
    }
}
