//! Typed entries over an engine: objects in, objects out.
//!
//! Each record carries the tag of the serialiser that wrote it. Reading goes by the tag, not by today's setting, so a store may hold
//! records of several serialisers; a tag this crate has no reader for is an error that names it, never a misreading.

use crate::compression;
use crate::engine::PersistenceEngine;
use crate::entry::{CodecId, Entry, shorten};
use crate::error::{Error, ErrorKind, Result};
use crate::serializer::{Compact, Pickle, Record, Serializer};

/// Stores values of Rust types.
///
/// ```
/// use quickpickle_recovery::spark::WorkerInfo;
/// use quickpickle_recovery::{BlackHoleEngine, Compact, Recovery};
///
/// # fn main() -> quickpickle_recovery::Result<()> {
/// let recovery = Recovery::new(BlackHoleEngine::new(), Compact);
/// recovery.persist("worker_1", &WorkerInfo::example(1))?;
/// assert!(recovery.read::<WorkerInfo>("worker_")?.is_empty(), "it is a black hole");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Recovery<S, E = Box<dyn PersistenceEngine>> {
    engine: E,
    serializer: S,
}

impl<S: Serializer, E: AsEngine> Recovery<S, E> {
    /// Values go through `serializer` into `engine`.
    pub fn new(engine: E, serializer: S) -> Self {
        Self { engine, serializer }
    }

    /// The engine below.
    pub fn engine(&self) -> &dyn PersistenceEngine {
        self.engine.as_engine()
    }

    /// Stores `value` under `name`.
    pub fn persist<T: Record>(&self, name: &str, value: &T) -> Result<()> {
        let mut buffer = Vec::new();
        self.serializer.serialize(value, &mut buffer)?;
        self.engine()
            .persist_tagged(name, self.serializer.codec(), &buffer)
    }

    /// Removes `name`; succeeds if it is not there.
    pub fn unpersist(&self, name: &str) -> Result<()> {
        self.engine().unpersist(name)
    }

    /// All values whose name starts with `prefix`, ordered by name. Fails if one of them cannot be read as a `T`.
    pub fn read<T: Record>(&self, prefix: &str) -> Result<Vec<(String, T)>> {
        self.engine()
            .read(prefix)?
            .into_iter()
            .map(|entry| self.decode(entry))
            .collect()
    }

    /// The value called exactly `name`, or `None`.
    pub fn get<T: Record>(&self, name: &str) -> Result<Option<T>> {
        self.engine()
            .get(name)?
            .map(|entry| Ok(self.decode(entry)?.1))
            .transpose()
    }

    /// Makes everything durable and releases the store.
    pub fn close(&self) -> Result<()> {
        self.engine().close()
    }

    fn decode<T: Record>(&self, entry: Entry) -> Result<(String, T)> {
        let entry = compression::decompress(entry)?;
        let value = if entry.codec == self.serializer.codec() {
            self.serializer.deserialize(&entry.value)
        } else {
            deserialize_tagged(entry.codec, &entry.value)
        };
        match value {
            Ok(value) => Ok((entry.name, value)),
            Err(error) => Err(Error::new(
                ErrorKind::Codec,
                shorten(&entry.name),
                error.to_string(),
            )),
        }
    }
}

/// Reads a value by its tag.
fn deserialize_tagged<T: Record>(codec: CodecId, bytes: &[u8]) -> Result<T> {
    match codec {
        CodecId::COMPACT => Compact.deserialize(bytes),
        CodecId::PICKLE => Pickle.deserialize(bytes),
        other => Err(Error::new(
            ErrorKind::Codec,
            "",
            format!("was written as {other}, which cannot be read here"),
        )),
    }
}

/// Anything that is an engine or holds one.
pub trait AsEngine {
    /// The engine.
    fn as_engine(&self) -> &dyn PersistenceEngine;
}

impl<E: PersistenceEngine> AsEngine for E {
    fn as_engine(&self) -> &dyn PersistenceEngine {
        self
    }
}

impl AsEngine for Box<dyn PersistenceEngine> {
    fn as_engine(&self) -> &dyn PersistenceEngine {
        &**self
    }
}

impl AsEngine for std::sync::Arc<dyn PersistenceEngine> {
    fn as_engine(&self) -> &dyn PersistenceEngine {
        &**self
    }
}
