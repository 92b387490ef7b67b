//! The compact binary codec: the type's number, then postcard's encoding of its fields.
//!
//! Small and fast because it has no field names; the price is that a type's fields cannot change without a new number.

use serde::Serialize;

use super::{Record, Serializer};
use crate::entry::CodecId;
use crate::error::{Error, ErrorKind, Result};

/// The compact binary codec.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compact;

impl Serializer for Compact {
    fn codec(&self) -> CodecId {
        CodecId::COMPACT
    }

    fn serialize<T: Record>(&self, value: &T, buffer: &mut Vec<u8>) -> Result<()> {
        // One pass over number and fields; `to_extend` writes straight into the caller's buffer.
        #[derive(Serialize)]
        struct Tagged<'a, T>(u32, &'a T);
        let start = buffer.len();
        let taken = std::mem::take(buffer);
        match postcard::to_extend(&Tagged(T::TYPE_ID, value), taken) {
            Ok(written) => {
                *buffer = written;
                debug_assert!(buffer.len() > start);
                Ok(())
            }
            Err(error) => Err(Error::new(
                ErrorKind::Codec,
                "",
                format!("cannot write a value of type {}: {error}", T::TYPE_ID),
            )),
        }
    }

    fn deserialize<T: Record>(&self, bytes: &[u8]) -> Result<T> {
        let failed = |what: String| Error::new(ErrorKind::Codec, "", what);
        let (found, rest) = postcard::take_from_bytes::<u32>(bytes)
            .map_err(|error| failed(format!("no type number: {error}")))?;
        if found != T::TYPE_ID {
            return Err(failed(format!(
                "the value is of type {found}; type {} was wanted",
                T::TYPE_ID
            )));
        }
        let (value, rest) = postcard::take_from_bytes(rest)
            .map_err(|error| failed(format!("cannot read a value of type {found}: {error}")))?;
        if !rest.is_empty() {
            return Err(failed(format!(
                "{} bytes follow a value of type {found}",
                rest.len()
            )));
        }
        Ok(value)
    }
}
