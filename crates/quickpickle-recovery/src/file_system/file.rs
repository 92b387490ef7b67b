//! The bytes of an entry's file and of the store's marker, as docs/recovery-format.md says. On disk for ever.

use crate::entry::{CodecId, Entry};

/// The format version this release writes, and the highest it reads.
pub(super) const FORMAT_VERSION: u16 = 1;
const ENTRY_MAGIC: [u8; 4] = *b"QPFE";
const ENTRY_HEADER: usize = 24;
const MARKER_MAGIC: [u8; 8] = *b"QPRFILES";
const MARKER_LEN: usize = 32;

/// Reason for refusing an intact file of a newer release; the caller tells it from damage.
pub(super) const NEWER: &str = "written in a newer format than this release reads";

/// What the store's marker says.
pub(super) struct Marker {
    pub(super) store_id: [u8; 16],
}

impl Marker {
    pub(super) fn encode(&self) -> [u8; MARKER_LEN] {
        let mut bytes = [0; MARKER_LEN];
        bytes[..8].copy_from_slice(&MARKER_MAGIC);
        bytes[8..10].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..28].copy_from_slice(&self.store_id);
        let crc = crc32c::crc32c(&bytes[..28]);
        bytes[28..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let bytes: &[u8; MARKER_LEN] = bytes
            .try_into()
            .map_err(|_| "the store's marker has a wrong length")?;
        let crc = u32::from_le_bytes([bytes[28], bytes[29], bytes[30], bytes[31]]);
        if bytes[..8] != MARKER_MAGIC || crc32c::crc32c(&bytes[..28]) != crc {
            return Err("the store's marker is damaged");
        }
        if u16::from_le_bytes([bytes[8], bytes[9]]) > FORMAT_VERSION {
            return Err(NEWER);
        }
        let mut store_id = [0; 16];
        store_id.copy_from_slice(&bytes[12..28]);
        Ok(Self { store_id })
    }
}

/// The file of an entry.
pub(super) fn encode(name: &str, codec: CodecId, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ENTRY_HEADER + name.len() + value.len());
    bytes.extend_from_slice(&ENTRY_MAGIC);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&codec.to_u16().to_le_bytes());
    bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(value);
    let crc = crc32c::crc32c(&bytes[8..]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The entry of a file, or what is wrong with the file.
pub(super) fn decode(bytes: &[u8]) -> Result<Entry, &'static str> {
    let (header, body) = bytes
        .split_first_chunk::<ENTRY_HEADER>()
        .ok_or("the file is shorter than its header")?;
    if header[..4] != ENTRY_MAGIC {
        return Err("the file does not begin as an entry");
    }
    if crc32c::crc32c(&bytes[8..])
        != u32::from_le_bytes([header[4], header[5], header[6], header[7]])
    {
        return Err("the checksum does not match");
    }
    if u16::from_le_bytes([header[8], header[9]]) > FORMAT_VERSION {
        return Err(NEWER);
    }
    let codec = CodecId::from_u16(u16::from_le_bytes([header[10], header[11]]));
    let name_len = u32::from_le_bytes([header[12], header[13], header[14], header[15]]) as usize;
    let value_len = header[16..]
        .iter()
        .rev()
        .fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
    if name_len > body.len() || value_len != (body.len() - name_len) as u64 {
        return Err("the lengths do not add up");
    }
    let (name, value) = body.split_at(name_len);
    let name = std::str::from_utf8(name).map_err(|_| "the name is not UTF-8")?;
    Ok(Entry {
        name: name.to_owned(),
        codec,
        value: value.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_and_every_truncation_of_a_file_is_found() {
        let good = encode("worker_1", CodecId::JAVA, b"some value");
        let entry = decode(&good).expect("as written");
        assert_eq!(
            (entry.name.as_str(), entry.codec, entry.value.as_slice()),
            ("worker_1", CodecId::JAVA, &b"some value"[..])
        );
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&bytes).is_err(), "bit {bit}");
        }
        for len in 0..good.len() {
            assert!(decode(&good[..len]).is_err(), "length {len}");
        }
    }

    #[test]
    fn a_marker_reads_back_and_every_flipped_bit_is_found() {
        let good = Marker { store_id: [7; 16] }.encode();
        assert_eq!(
            Marker::decode(&good).map(|marker| marker.store_id),
            Ok([7; 16])
        );
        for bit in 0..good.len() * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Marker::decode(&bytes).is_err(), "bit {bit}");
        }
    }
}
