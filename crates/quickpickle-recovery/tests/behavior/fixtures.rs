//! The engines under test, each in a place of its own that can be opened again and again.

use quickpickle_recovery::{Compression, Config, Durability, PersistenceEngine};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) struct Fixture {
    pub(crate) name: &'static str,
    pub(crate) config: Config,
    /// Where the store is, for those that are in a directory.
    pub(crate) directory: TempDir,
}

impl Fixture {
    pub(crate) fn open(&self) -> Box<dyn PersistenceEngine> {
        match self.config.open() {
            Ok(engine) => engine,
            Err(error) => panic!("{}: cannot open: {error}", self.name),
        }
    }
}

fn fixture(name: &'static str, make: impl FnOnce(&TempDir) -> Config) -> Fixture {
    let directory = tempfile::tempdir().expect("a temporary directory");
    Fixture {
        name,
        config: make(&directory),
        directory,
    }
}

/// Engines in a directory.
pub(crate) fn local() -> Vec<Fixture> {
    let group = Durability::Group(Duration::from_millis(5));
    vec![
        fixture("log, always", |dir| Config::log(dir.path())),
        fixture("log, group", |dir| Config {
            durability: group,
            ..Config::log(dir.path())
        }),
        fixture("log, none", |dir| Config {
            durability: Durability::None,
            ..Config::log(dir.path())
        }),
        fixture("log, tiny segments", |dir| Config {
            durability: Durability::None,
            segment_bytes: Some(4096),
            ..Config::log(dir.path())
        }),
        fixture("log, lz4", |dir| Config {
            compression: Compression::Lz4,
            ..Config::log(dir.path())
        }),
        fixture("log, zstd", |dir| Config {
            compression: Compression::Zstd,
            ..Config::log(dir.path())
        }),
        fixture("file_system, always", |dir| Config::file_system(dir.path())),
        fixture("file_system, none", |dir| Config {
            durability: Durability::None,
            ..Config::file_system(dir.path())
        }),
    ]
}

/// Every engine there is.
pub(crate) fn all() -> Vec<Fixture> {
    let mut fixtures = local();
    fixtures.extend(zookeeper());
    fixtures
}

/// A store of its own on the one server all tests share; none where no server can be started.
#[cfg(feature = "zookeeper")]
fn zookeeper() -> Option<Fixture> {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    use crate::support::zookeeper::Server;

    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    static STORES: AtomicU32 = AtomicU32::new(0);
    let server = SERVER.get_or_init(Server::start).as_ref()?;
    let dir = format!("/behavior/{}", STORES.fetch_add(1, Ordering::Relaxed));
    Some(fixture("zookeeper", |_| {
        Config::zookeeper(server.address(), dir)
    }))
}

#[cfg(not(feature = "zookeeper"))]
fn zookeeper() -> Option<Fixture> {
    None
}
