//! The bytes of nodes, and where the nodes are, as docs/recovery-format.md says. On servers for ever.

use crate::entry::{CodecId, Entry};

/// The format version this release writes, and the highest it reads.
pub(super) const FORMAT_VERSION: u16 = 1;
const ENTRY_MAGIC: [u8; 4] = *b"QPZE";
const ENTRY_HEADER: usize = 48;
const ROOT_MAGIC: [u8; 8] = *b"QPRNODES";
const ROOT_LEN: usize = 32;

/// A server refuses requests of more than 1,048,575 bytes unless it was set up otherwise; half of that leaves room for paths and
/// framing, and for a server that was set up a little tighter.
pub(super) const CHUNK: usize = 512 << 10;
/// Longest value: chunks are written one by one and read at once.
pub(super) const MAX_VALUE: usize = 64 << 20;
/// Longest name: it travels with the first bytes of the value.
pub(super) const MAX_NAME: usize = 64 << 10;

/// Reason for refusing an intact node of a newer release; the caller tells it from damage.
pub(super) const NEWER: &str = "written in a newer format than this release reads";

/// Paths below the directory in the settings.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    pub(super) root: String,
    pub(super) entries: String,
    pub(super) chunks: String,
    pub(super) epoch: String,
    pub(super) lock: String,
    pub(super) quarantine: String,
}

impl Paths {
    pub(super) fn new(dir: &str) -> Self {
        let dir = dir.trim_matches('/');
        let root = if dir.is_empty() {
            "/quickpickle".into()
        } else {
            format!("/{dir}/quickpickle")
        };
        let below = |name: &str| format!("{root}/{name}");
        Self {
            entries: below("entries"),
            chunks: below("chunks"),
            epoch: below("epoch"),
            lock: below("lock"),
            quarantine: below("quarantine"),
            root,
        }
    }

    pub(super) fn entry(&self, node: &str) -> String {
        format!("{}/{node}", self.entries)
    }

    pub(super) fn chunk(&self, generation: u64, number: u32) -> String {
        format!("{}/{}", self.chunks, chunk_name(generation, number))
    }
}

fn chunk_name(generation: u64, number: u32) -> String {
    format!("{generation:016x}-{number:04}")
}

/// Generation in a chunk's name.
pub(super) fn generation_of(chunk: &str) -> Option<u64> {
    u64::from_str_radix(chunk.split_once('-')?.0, 16).ok()
}

pub(super) fn encode_root(store_id: [u8; 16]) -> [u8; ROOT_LEN] {
    let mut bytes = [0; ROOT_LEN];
    bytes[..8].copy_from_slice(&ROOT_MAGIC);
    bytes[8..10].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes[12..28].copy_from_slice(&store_id);
    let crc = crc32c::crc32c(&bytes[..28]);
    bytes[28..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

pub(super) fn decode_root(bytes: &[u8]) -> Result<[u8; 16], &'static str> {
    let bytes: &[u8; ROOT_LEN] = bytes
        .try_into()
        .map_err(|_| "the root node is not one of a store")?;
    if bytes[..8] != ROOT_MAGIC || crc32c::crc32c(&bytes[..28]).to_le_bytes() != bytes[28..] {
        return Err("the root node is damaged");
    }
    if u16::from_le_bytes([bytes[8], bytes[9]]) > FORMAT_VERSION {
        return Err(NEWER);
    }
    let mut store_id = [0; 16];
    store_id.copy_from_slice(&bytes[12..28]);
    Ok(store_id)
}

/// What an entry's node says; the value is in it, or in chunks.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) name: String,
    pub(super) codec: CodecId,
    value_crc: u32,
    value_len: u64,
    pub(super) generation: u64,
    /// 0 if the value is in the node.
    pub(super) chunks: u32,
    inline: Vec<u8>,
}

/// The node of an entry; with `chunks` the value is left out.
pub(super) fn encode(
    name: &str,
    codec: CodecId,
    value: &[u8],
    generation: u64,
    chunks: u32,
) -> Vec<u8> {
    let inline = if chunks == 0 { value } else { &[] };
    let mut bytes = Vec::with_capacity(ENTRY_HEADER + name.len() + inline.len());
    bytes.extend_from_slice(&ENTRY_MAGIC);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&codec.to_u16().to_le_bytes());
    bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&generation.to_le_bytes());
    bytes.extend_from_slice(&chunks.to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(value).to_le_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(inline);
    let crc = crc32c::crc32c(&bytes[8..]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    bytes
}

impl Head {
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let (header, body) = bytes
            .split_first_chunk::<ENTRY_HEADER>()
            .ok_or("the node is shorter than its header")?;
        let u32_at = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if header[..4] != ENTRY_MAGIC {
            return Err("the node does not begin as an entry");
        }
        if crc32c::crc32c(&bytes[8..]) != u32_at(4) {
            return Err("the checksum does not match");
        }
        if u16::from_le_bytes([header[8], header[9]]) > FORMAT_VERSION {
            return Err(NEWER);
        }
        let name_len = u32_at(12) as usize;
        if name_len > body.len() {
            return Err("the lengths do not add up");
        }
        let (name, inline) = body.split_at(name_len);
        let name = std::str::from_utf8(name).map_err(|_| "the name is not UTF-8")?;
        let head = Self {
            name: name.to_owned(),
            codec: CodecId::from_u16(u16::from_le_bytes([header[10], header[11]])),
            value_len: u64_at(16),
            generation: u64_at(24),
            chunks: u32_at(32),
            value_crc: u32_at(36),
            inline: inline.to_vec(),
        };
        let whole_chunks = head.value_len.div_ceil(CHUNK as u64);
        if head.chunks > 0
            && (u64::from(head.chunks) > (MAX_VALUE / CHUNK) as u64
                || whole_chunks != u64::from(head.chunks))
        {
            return Err("the lengths do not add up");
        }
        Ok(head)
    }

    /// The entry, from the node and its chunks.
    pub(super) fn join(self, chunks: Vec<Vec<u8>>) -> Result<Entry, &'static str> {
        let value = if self.chunks == 0 {
            self.inline
        } else {
            chunks.concat()
        };
        if value.len() as u64 != self.value_len {
            return Err("the lengths do not add up");
        }
        if crc32c::crc32c(&value) != self.value_crc {
            return Err("the checksum of the value does not match");
        }
        Ok(Entry {
            name: self.name,
            codec: self.codec,
            value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_and_every_truncation_of_a_node_is_found() {
        let good = encode("app_1", CodecId::KRYO, b"value", 5, 0);
        let entry = Head::decode(&good)
            .and_then(|head| head.join(Vec::new()))
            .expect("as written");
        assert_eq!(
            (entry.name.as_str(), entry.codec, entry.value.as_slice()),
            ("app_1", CodecId::KRYO, &b"value"[..])
        );
        let read = |bytes: &[u8]| Head::decode(bytes).and_then(|head| head.join(Vec::new()));
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&bytes).is_err(), "bit {bit}");
        }
        for len in 0..good.len() {
            assert!(read(&good[..len]).is_err(), "length {len}");
        }
    }

    /// What format 1 has written stays readable: these bytes are on servers.
    #[test]
    fn nodes_of_format_1_keep_their_bytes() {
        let entry = b"QPZEh\xbb\x88>\x01\x00\x04\x00\x05\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00c\x03\xe0\xe1\x00\x00\x00\x00\x00\x00\x00\x00app_1value";
        assert_eq!(encode("app_1", CodecId::KRYO, b"value", 5, 0), entry);
        let root = b"QPRNODES\x01\x00\x00\x00\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07;Y\x85s";
        assert_eq!(encode_root([7; 16]), *root);
        assert_eq!(decode_root(root), Ok([7; 16]));
    }

    #[test]
    fn chunks_must_be_all_there_and_unchanged() {
        let value = vec![7; CHUNK + 10];
        let node = encode("large", CodecId::RAW, &value, 9, 2);
        let chunks: Vec<Vec<u8>> = value.chunks(CHUNK).map(<[u8]>::to_vec).collect();
        let join = |chunks: Vec<Vec<u8>>| Head::decode(&node).and_then(|head| head.join(chunks));
        assert_eq!(join(chunks.clone()).map(|entry| entry.value), Ok(value));
        assert!(join(chunks[..1].to_vec()).is_err());
        let mut changed = chunks;
        changed[1][3] ^= 1;
        assert!(join(changed).is_err());
    }

    #[test]
    fn paths_are_below_the_directory() {
        for dir in ["/spark", "spark", "/spark/"] {
            assert_eq!(Paths::new(dir).entry("x"), "/spark/quickpickle/entries/x");
        }
        assert_eq!(Paths::new("/").lock, "/quickpickle/lock");
        assert_eq!(generation_of(&chunk_name(0xabc, 3)), Some(0xabc));
    }
}
