//! Values made smaller on their way in and restored on their way out, around any engine.
//!
//! The compression is part of each record's tag, so that changing the setting never misreads what is there: every reader undoes whatever
//! a record says. A value that does not become smaller is kept as it is.

use std::borrow::Cow;
use std::io::Read;

use crate::engine::{CompactReport, PersistenceEngine, Report, Stats};
use crate::entry::{CodecId, Entry, MAX_VALUE_BYTES, shorten};
use crate::error::{Error, ErrorKind, Result};

/// Below this many bytes nothing is gained.
const SMALLEST: usize = 64;
/// The best ratio lz4 can reach: one byte of input for 255 of output.
const LZ4_RATIO: usize = 255;

/// How new values are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compression {
    /// Kept as they are.
    #[default]
    None,
    /// LZ4 block format: cheapest.
    Lz4,
    /// Zstandard, level 3: smaller.
    Zstd,
}

impl Compression {
    /// Reads `none`, `lz4` or `zstd`.
    pub fn parse(text: &str) -> Result<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "none" | "" => Ok(Self::None),
            "lz4" => Ok(Self::Lz4),
            "zstd" => Ok(Self::Zstd),
            _ => Err(Error::new(
                ErrorKind::Config,
                "compression",
                format!("{text:?} is not known; use none, lz4 or zstd"),
            )),
        }
    }

    /// As it is written in settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The number in a record's tag.
    const fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Lz4 => 1,
            Self::Zstd => 2,
        }
    }
}

/// Compresses `value` if that makes it smaller, and says so in the tag.
pub fn compress(
    compression: Compression,
    codec: CodecId,
    value: &[u8],
) -> Result<(CodecId, Cow<'_, [u8]>)> {
    if value.len() < SMALLEST {
        return Ok((codec, Cow::Borrowed(value)));
    }
    let packed = match compression {
        Compression::None => return Ok((codec, Cow::Borrowed(value))),
        Compression::Lz4 => lz4_flex::block::compress_prepend_size(value),
        Compression::Zstd => zstd::bulk::compress(value, 3).map_err(|error| {
            Error::new(
                ErrorKind::Codec,
                "zstd",
                format!("cannot compress: {error}"),
            )
        })?,
    };
    if packed.len() >= value.len() {
        return Ok((codec, Cow::Borrowed(value)));
    }
    Ok((
        codec.with_compression(compression.number()),
        Cow::Owned(packed),
    ))
}

/// Undoes what the entry's tag says was done, and takes it out of the tag.
pub fn decompress(entry: Entry) -> Result<Entry> {
    let failed = |what: String| Error::new(ErrorKind::Codec, shorten(&entry.name), what);
    let value = match entry.codec.compression() {
        0 => return Ok(entry),
        1 => unpack_lz4(&entry.value).map_err(failed)?,
        2 => unpack_zstd(&entry.value).map_err(failed)?,
        other => {
            return Err(failed(format!(
                "compression number {other} is not known to this release"
            )));
        }
    };
    Ok(Entry {
        codec: entry.codec.serializer(),
        value,
        name: entry.name,
    })
}

fn unpack_lz4(packed: &[u8]) -> std::result::Result<Vec<u8>, String> {
    let (size, body) = packed
        .split_first_chunk::<4>()
        .ok_or("an lz4 value has no length")?;
    let size = u32::from_le_bytes(*size) as usize;
    if size > MAX_VALUE_BYTES || size > body.len().saturating_mul(LZ4_RATIO) {
        return Err(format!(
            "an lz4 value of {} bytes cannot hold {size}",
            body.len()
        ));
    }
    lz4_flex::block::decompress(body, size)
        .map_err(|error| format!("an lz4 value is damaged: {error}"))
}

fn unpack_zstd(packed: &[u8]) -> std::result::Result<Vec<u8>, String> {
    let mut value = Vec::new();
    // Read as a stream with a bound, so that memory follows the data and not what its header claims.
    let read = zstd::stream::Decoder::new(packed).and_then(|decoder| {
        decoder
            .take(MAX_VALUE_BYTES as u64 + 1)
            .read_to_end(&mut value)
    });
    match read {
        Err(error) => Err(format!("a zstd value is damaged: {error}")),
        Ok(_) if value.len() > MAX_VALUE_BYTES => Err(format!(
            "a zstd value holds more than {MAX_VALUE_BYTES} bytes"
        )),
        Ok(_) => Ok(value),
    }
}

/// An engine that compresses what it is given and restores what it reads.
#[derive(Debug)]
pub struct Compressed<E> {
    engine: E,
    compression: Compression,
}

impl<E: PersistenceEngine> Compressed<E> {
    /// Wraps `engine`; with [`Compression::None`] it only restores what was compressed earlier.
    pub fn new(engine: E, compression: Compression) -> Self {
        Self {
            engine,
            compression,
        }
    }

    /// The engine inside, which returns values as they are stored.
    pub fn inner(&self) -> &E {
        &self.engine
    }
}

impl<E: PersistenceEngine> PersistenceEngine for Compressed<E> {
    fn persist_tagged(&self, name: &str, codec: CodecId, value: &[u8]) -> Result<()> {
        let (codec, value) = compress(self.compression, codec, value)?;
        self.engine.persist_tagged(name, codec, &value)
    }

    fn persist_batch(&self, entries: &[Entry]) -> Result<()> {
        if self.compression == Compression::None {
            return self.engine.persist_batch(entries);
        }
        let packed: Result<Vec<Entry>> = entries
            .iter()
            .map(|entry| {
                let (codec, value) = compress(self.compression, entry.codec, &entry.value)?;
                Ok(Entry {
                    name: entry.name.clone(),
                    codec,
                    value: value.into_owned(),
                })
            })
            .collect();
        self.engine.persist_batch(&packed?)
    }

    fn unpersist(&self, name: &str) -> Result<()> {
        self.engine.unpersist(name)
    }

    fn read(&self, prefix: &str) -> Result<Vec<Entry>> {
        self.engine
            .read(prefix)?
            .into_iter()
            .map(decompress)
            .collect()
    }

    fn names(&self, prefix: &str) -> Result<Vec<String>> {
        self.engine.names(prefix)
    }

    fn contains(&self, name: &str) -> Result<bool> {
        self.engine.contains(name)
    }

    fn get(&self, name: &str) -> Result<Option<Entry>> {
        self.engine.get(name)?.map(decompress).transpose()
    }

    fn sync(&self) -> Result<()> {
        self.engine.sync()
    }

    fn opening_report(&self) -> Report {
        self.engine.opening_report()
    }

    fn verify(&self) -> Result<Report> {
        self.engine.verify()
    }

    fn compact(&self) -> Result<CompactReport> {
        self.engine.compact()
    }

    fn stats(&self) -> Result<Stats> {
        self.engine.stats()
    }

    fn revive(&self) -> Result<()> {
        self.engine.revive()
    }

    fn disown(&self) {
        self.engine.disown();
    }

    fn close(&self) -> Result<()> {
        self.engine.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(codec: CodecId, value: Vec<u8>) -> Entry {
        Entry {
            name: "n".into(),
            codec,
            value,
        }
    }

    #[test]
    fn what_goes_in_comes_out_and_the_tag_says_how() {
        let text = b"worker ".repeat(100);
        for (compression, name) in [
            (Compression::Lz4, "java+lz4"),
            (Compression::Zstd, "java+zstd"),
        ] {
            let (codec, packed) = compress(compression, CodecId::JAVA, &text).expect("compresses");
            assert!(packed.len() < text.len() / 3, "{name}: {}", packed.len());
            assert_eq!(codec.to_string(), name);
            let restored = decompress(entry(codec, packed.into_owned())).expect("restores");
            assert_eq!(
                (restored.codec, restored.value),
                (CodecId::JAVA, text.clone())
            );
        }
    }

    #[test]
    fn what_does_not_shrink_stays_as_it_is() {
        let noise: Vec<u8> = (0..200_u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        for compression in [Compression::Lz4, Compression::Zstd] {
            let (codec, kept) = compress(compression, CodecId::RAW, &noise).expect("compresses");
            assert_eq!((codec, kept.as_ref()), (CodecId::RAW, noise.as_slice()));
        }
    }

    #[test]
    fn damaged_and_hostile_values_are_errors_and_cost_no_memory() {
        let claims_much = [0xff, 0xff, 0xff, 0x3f, 0, 0, 0];
        for number in [1, 2, 3, 255] {
            let codec = CodecId::RAW.with_compression(number);
            assert_eq!(
                decompress(entry(codec, claims_much.to_vec()))
                    .expect_err("damaged")
                    .kind(),
                ErrorKind::Codec
            );
            assert!(decompress(entry(codec, Vec::new())).is_err());
        }
        let text = b"abc".repeat(100);
        let (codec, packed) = compress(Compression::Zstd, CodecId::RAW, &text).expect("compresses");
        for len in 0..packed.len() {
            assert!(
                decompress(entry(codec, packed[..len].to_vec())).is_err(),
                "{len}"
            );
        }
    }
}
