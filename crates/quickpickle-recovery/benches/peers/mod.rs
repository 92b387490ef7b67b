//! Other embedded stores, each with a transaction or sync for each call where it says so, as `persist` promises.

use std::collections::BTreeMap;
use std::path::Path;

use lmdb::{Cursor, Transaction};
use redb::ReadableDatabase;

use crate::{Open, Store};

const TABLE: redb::TableDefinition<'static, &str, &[u8]> = redb::TableDefinition::new("entries");
const PREFIX: &str = "worker_";

struct Redb {
    database: redb::Database,
    durability: redb::Durability,
}

impl Redb {
    fn new(directory: &Path, durability: redb::Durability) -> Self {
        let database = redb::Database::create(directory.join("store.redb")).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(TABLE).unwrap();
        transaction.commit().unwrap();
        Self {
            database,
            durability,
        }
    }

    fn write(&self, work: impl FnOnce(&mut redb::Table<'_, &str, &[u8]>)) {
        let mut transaction = self.database.begin_write().unwrap();
        transaction.set_durability(self.durability).unwrap();
        work(&mut transaction.open_table(TABLE).unwrap());
        transaction.commit().unwrap();
    }
}

impl Store for Redb {
    fn persist(&self, name: &str, value: &[u8]) {
        self.write(|table| {
            table.insert(name, value).unwrap();
        });
    }

    fn read(&self, values: &BTreeMap<String, Vec<u8>>) -> usize {
        let table = self
            .database
            .begin_read()
            .unwrap()
            .open_table(TABLE)
            .unwrap();
        let mut count = 0;
        for entry in table.range(PREFIX..).unwrap() {
            let (name, value) = entry.unwrap();
            assert!(
                values
                    .get(name.value())
                    .is_some_and(|expected| expected == value.value())
            );
            count += 1;
        }
        count
    }

    fn remove(&self, name: &str) {
        self.write(|table| {
            table.remove(name).unwrap();
        });
    }
}

struct Fjall {
    database: fjall::Database,
    entries: fjall::Keyspace,
    sync: bool,
}

impl Fjall {
    fn new(directory: &Path, sync: bool) -> Self {
        let database = fjall::Database::builder(directory.join("fjall"))
            .open()
            .unwrap();
        let entries = database
            .keyspace("entries", fjall::KeyspaceCreateOptions::default)
            .unwrap();
        Self {
            database,
            entries,
            sync,
        }
    }

    fn persist_journal(&self) {
        let mode = if self.sync {
            fjall::PersistMode::SyncData
        } else {
            fjall::PersistMode::Buffer
        };
        self.database.persist(mode).unwrap();
    }
}

impl Store for Fjall {
    fn persist(&self, name: &str, value: &[u8]) {
        self.entries.insert(name, value).unwrap();
        self.persist_journal();
    }

    fn read(&self, values: &BTreeMap<String, Vec<u8>>) -> usize {
        let mut count = 0;
        for entry in self.entries.prefix(PREFIX) {
            let (name, value) = entry.into_inner().unwrap();
            let name = std::str::from_utf8(&name).unwrap();
            assert!(values.get(name).is_some_and(|expected| expected == &*value));
            count += 1;
        }
        count
    }

    fn remove(&self, name: &str) {
        self.entries.remove(name).unwrap();
        self.persist_journal();
    }
}

/// LMDB by way of `lmdb-rkv`, whose opening of a store is a safe call.
struct Lmdb {
    environment: lmdb::Environment,
    entries: lmdb::Database,
}

impl Lmdb {
    fn new(directory: &Path, flags: lmdb::EnvironmentFlags) -> Self {
        let environment = lmdb::Environment::new()
            .set_map_size(1 << 30)
            .set_flags(flags)
            .open(directory)
            .unwrap();
        let entries = environment.open_db(None).unwrap();
        Self {
            environment,
            entries,
        }
    }
}

impl Store for Lmdb {
    fn persist(&self, name: &str, value: &[u8]) {
        let mut transaction = self.environment.begin_rw_txn().unwrap();
        transaction
            .put(self.entries, &name, &value, lmdb::WriteFlags::empty())
            .unwrap();
        transaction.commit().unwrap();
    }

    fn read(&self, values: &BTreeMap<String, Vec<u8>>) -> usize {
        let transaction = self.environment.begin_ro_txn().unwrap();
        let mut cursor = transaction.open_ro_cursor(self.entries).unwrap();
        let mut count = 0;
        for entry in cursor.iter() {
            let (name, value) = entry.unwrap();
            let name = std::str::from_utf8(name).unwrap();
            assert!(values.get(name).is_some_and(|expected| expected == value));
            count += 1;
        }
        count
    }

    fn remove(&self, name: &str) {
        let mut transaction = self.environment.begin_rw_txn().unwrap();
        transaction.del(self.entries, &name, None).unwrap();
        transaction.commit().unwrap();
    }
}

pub(crate) fn contenders() -> Vec<(&'static str, Open)> {
    vec![
        (
            "redb immediate",
            Box::new(|d| Box::new(Redb::new(d, redb::Durability::Immediate))),
        ),
        (
            "redb none",
            Box::new(|d| Box::new(Redb::new(d, redb::Durability::None))),
        ),
        (
            "fjall fdatasync",
            Box::new(|d| Box::new(Fjall::new(d, true))),
        ),
        ("fjall buffer", Box::new(|d| Box::new(Fjall::new(d, false)))),
        (
            "LMDB sync",
            Box::new(|d| Box::new(Lmdb::new(d, lmdb::EnvironmentFlags::empty()))),
        ),
        (
            "LMDB no sync",
            Box::new(|d| Box::new(Lmdb::new(d, lmdb::EnvironmentFlags::NO_SYNC))),
        ),
    ]
}
