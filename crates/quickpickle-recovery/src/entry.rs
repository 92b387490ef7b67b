//! Names, values and the codec tag that travels with each value.
//!
//! Engines never interpret a value; they keep the tag beside it so that whoever reads it back knows what wrote it. The numbers here are
//! on disk for ever: add, never renumber.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};

/// Longest name an engine accepts, in bytes of UTF-8. Far above any real name, far below what an allocation would hurt.
pub const MAX_NAME_BYTES: usize = 1 << 20;

/// Longest value an engine accepts, in bytes.
pub const MAX_VALUE_BYTES: usize = 1 << 30;

/// Says what encoded a value: a serialiser in the low byte, a compression in the high byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CodecId(u16);

impl CodecId {
    /// Bytes as the caller gave them.
    pub const RAW: Self = Self(0);
    /// Python's pickle format.
    pub const PICKLE: Self = Self(1);
    /// This crate's compact binary codec.
    pub const COMPACT: Self = Self(2);
    /// Java object serialisation.
    pub const JAVA: Self = Self(3);
    /// Kryo, as Spark configures it.
    pub const KRYO: Self = Self(4);
    /// JSON text in UTF-8.
    pub const JSON: Self = Self(5);
    /// A serialiser that says its own name: one byte for the length of the name, the name in UTF-8, then what it wrote.
    pub const NAMED: Self = Self(6);

    /// The tag as it is stored.
    #[must_use]
    pub const fn to_u16(self) -> u16 {
        self.0
    }

    /// The tag from its stored form. Every number is a valid tag; unknown ones are simply not known to this release.
    #[must_use]
    pub const fn from_u16(raw: u16) -> Self {
        Self(raw)
    }

    /// The serialiser alone, without compression.
    #[must_use]
    pub const fn serializer(self) -> Self {
        Self(self.0 & 0xff)
    }

    /// The compression number: 0 none, 1 lz4, 2 zstd.
    #[must_use]
    pub const fn compression(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// The same serialiser with this compression number.
    #[must_use]
    pub const fn with_compression(self, compression: u8) -> Self {
        Self((self.0 & 0xff) | ((compression as u16) << 8))
    }

    /// The serialiser with this name (`raw`, `pickle`, `compact`, `java`, `kryo`) that a setting can choose, if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "raw" => Some(Self::RAW),
            "pickle" => Some(Self::PICKLE),
            "compact" => Some(Self::COMPACT),
            "java" => Some(Self::JAVA),
            "kryo" => Some(Self::KRYO),
            _ => None,
        }
    }
}

impl fmt::Display for CodecId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 & 0xff {
            0 => f.write_str("raw")?,
            1 => f.write_str("pickle")?,
            2 => f.write_str("compact")?,
            3 => f.write_str("java")?,
            4 => f.write_str("kryo")?,
            5 => f.write_str("json")?,
            6 => f.write_str("named")?,
            other => write!(f, "codec-{other}")?,
        }
        match self.compression() {
            0 => Ok(()),
            1 => f.write_str("+lz4"),
            2 => f.write_str("+zstd"),
            other => write!(f, "+compression-{other}"),
        }
    }
}

impl fmt::Debug for CodecId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CodecId({self})")
    }
}

/// One stored value with its name and tag. `read` returns entries ordered by the bytes of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name it was persisted under; any text.
    pub name: String,
    /// What encoded `value`.
    pub codec: CodecId,
    /// The bytes, exactly as persisted.
    pub value: Vec<u8>,
}

/// Refuses names and values no engine keeps. Any text is a name, the empty one included; only sizes are bounded.
pub(crate) fn check_sizes(name: &str, value: &[u8]) -> Result<()> {
    if name.len() > MAX_NAME_BYTES {
        return Err(Error::new(
            ErrorKind::TooLarge,
            "",
            format!(
                "name of {} bytes; the limit is {MAX_NAME_BYTES}",
                name.len()
            ),
        ));
    }
    if value.len() > MAX_VALUE_BYTES {
        return Err(Error::new(
            ErrorKind::TooLarge,
            shorten(name),
            format!(
                "value of {} bytes; the limit is {MAX_VALUE_BYTES}",
                value.len()
            ),
        ));
    }
    Ok(())
}

/// A name fit for a message: escaped, and cut where it is very long.
pub(crate) fn shorten(name: &str) -> String {
    const SHOWN: usize = 80;
    if name.chars().nth(SHOWN).is_none() {
        return name.escape_debug().to_string();
    }
    let head: String = name.chars().take(SHOWN).collect();
    format!("{}... ({} bytes)", head.escape_debug(), name.len())
}

/// A new store id.
pub(crate) fn new_store_id() -> Result<[u8; 16]> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| {
        Error::new(
            ErrorKind::Io,
            "",
            format!("cannot draw a store id: {error}"),
        )
    })?;
    Ok(id)
}

/// Bytes as hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}
