//! Python's pickle format, through serde: readable by Python as plain dicts, and by anyone who meets the bytes.
//!
//! Larger and slower than the compact codec because each record names its fields; for that it can be read without this crate, and
//! fields may be added (with a default) or left out later.

use super::{Record, Serializer};
use crate::entry::CodecId;
use crate::error::{Error, ErrorKind, Result};

/// Python's pickle format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pickle;

impl Serializer for Pickle {
    fn codec(&self) -> CodecId {
        CodecId::PICKLE
    }

    fn serialize<T: Record>(&self, value: &T, buffer: &mut Vec<u8>) -> Result<()> {
        quickpickle_format::serde::append(value, buffer).map_err(|error| {
            Error::new(
                ErrorKind::Codec,
                "",
                format!("cannot write a value of type {}: {error}", T::TYPE_ID),
            )
        })
    }

    fn deserialize<T: Record>(&self, bytes: &[u8]) -> Result<T> {
        quickpickle_format::serde::from_slice(bytes).map_err(|error| {
            Error::new(
                ErrorKind::Codec,
                "",
                format!("cannot read a value of type {}: {error}", T::TYPE_ID),
            )
        })
    }
}
