//! Rust values to bytes and back, each kind with the tag that goes on the record.
//!
//! Which bytes a serialiser writes is its own affair; that records of one serialiser are never read by another is the tag's, and
//! [`crate::Recovery`] looks at it before anything else.

mod compact;
mod pickle;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::entry::CodecId;
use crate::error::Result;

pub use compact::Compact;
pub use pickle::Pickle;

/// A type that can be stored: serde's traits and a number of its own.
///
/// Formats without field names cannot tell one type from another by the bytes. The number goes in front of such values, so that reading
/// an application where a worker was written is an error and not a worker-shaped accident. Choose it once; change it when the fields
/// change in a way old records cannot be read with.
pub trait Record: Serialize + DeserializeOwned {
    /// The number; below 128 it takes one byte.
    const TYPE_ID: u32;
}

/// Writes and reads values.
pub trait Serializer: Send + Sync {
    /// The tag of what it writes.
    fn codec(&self) -> CodecId;

    /// Appends `value` to `buffer`.
    fn serialize<T: Record>(&self, value: &T, buffer: &mut Vec<u8>) -> Result<()>;

    /// The value in `bytes`, all of them.
    fn deserialize<T: Record>(&self, bytes: &[u8]) -> Result<T>;
}
