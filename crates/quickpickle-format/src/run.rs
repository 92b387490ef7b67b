//! Numbers in a row, written to a small array first: one check of the sink's room for many of them.

use crate::opcode::byte;
use crate::writer::binary_int;

/// Bytes that a run holds at most.
pub const RUN: usize = 256;
/// Bytes of the longest number.
const LONGEST: usize = 9;

/// Operations for consecutive numbers, protocol 1 and later.
///
/// ```
/// use quickpickle_format::run::Run;
///
/// let mut run = Run::new();
/// run.int(1);
/// run.int(256);
/// run.float(1.5);
/// assert_eq!(run.bytes(), b"K\x01M\x00\x01G\x3f\xf8\x00\x00\x00\x00\x00\x00");
/// ```
#[derive(Debug)]
pub struct Run {
    bytes: [u8; RUN],
    len: usize,
}

impl Default for Run {
    fn default() -> Self {
        Self::new()
    }
}

impl Run {
    /// An empty run.
    #[must_use]
    #[inline(always)]
    pub fn new() -> Self {
        Run {
            bytes: [0; RUN],
            len: 0,
        }
    }

    /// Whether any number still fits.
    #[must_use]
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.len <= RUN - LONGEST
    }

    /// Adds an int, in the shortest form; nothing where there is no room.
    #[inline(always)]
    pub fn int(&mut self, value: i32) {
        // All bytes are written each time; those beyond `size` are overwritten by the next number.
        let (bytes, size) = binary_int(value);
        self.put(bytes, size);
    }

    /// Adds a float; nothing where there is no room.
    #[inline(always)]
    pub fn float(&mut self, value: f64) {
        let [a, b, c, d, e, f, g, h] = value.to_be_bytes();
        self.put([byte::BINFLOAT, a, b, c, d, e, f, g, h], 9);
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N], size: usize) {
        if let Some(place) = self.bytes.get_mut(self.len..self.len + N) {
            place.copy_from_slice(&bytes);
            self.len += size;
        }
    }

    /// What has been added.
    #[must_use]
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len.min(RUN)]
    }
}
