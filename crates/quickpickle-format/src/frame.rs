//! Protocol 4 frames: when one is opened, when it is closed, and what becomes of one too short to be worth its header.
//!
//! A frame is opened eagerly, by leaving room for its header, and closed at an opcode boundary once it holds
//! [`FRAME_SIZE_TARGET`] bytes, before a payload of at least that size, and at the end. CPython opens a frame with the
//! first write after the last one was closed; the bytes come out the same, because a frame without content vanishes.

use crate::opcode::byte;
use crate::sink::Sink;

/// Bytes a frame header takes: the opcode and an eight-byte length.
pub const FRAME_HEADER_SIZE: usize = 9;
/// A frame with fewer bytes than this is written without its header.
pub const FRAME_SIZE_MIN: usize = 4;
/// A frame that holds this many bytes is closed at the next opcode boundary.
pub const FRAME_SIZE_TARGET: usize = 64 * 1024;

/// The frame being filled, if any.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    start: usize,
    /// Length of the sink from which the frame counts as full; `usize::MAX` while none is open, so that the check made
    /// for every value is a single comparison.
    full_at: usize,
}

impl Frame {
    /// No frame is open.
    pub const fn closed() -> Self {
        Frame {
            start: 0,
            full_at: usize::MAX,
        }
    }

    /// Whether a frame is open.
    pub fn is_open(&self) -> bool {
        self.full_at != usize::MAX
    }

    /// Whether the open frame has reached its target size.
    #[inline(always)]
    pub fn is_full(&self, len: usize) -> bool {
        len >= self.full_at
    }

    /// Opens a frame at the end of `sink`.
    #[inline(always)]
    pub fn open(&mut self, sink: &mut impl Sink) {
        self.start = sink.len();
        self.full_at = self.start + FRAME_HEADER_SIZE + FRAME_SIZE_TARGET;
        sink.put([byte::FRAME, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    /// The sink's bytes before the frame have lost `count` bytes.
    pub fn moved_up(&mut self, count: usize) {
        if self.is_open() {
            self.start -= count;
            self.full_at -= count;
        }
    }

    /// Closes the open frame: writes its length, or takes its header away where it is shorter than [`FRAME_SIZE_MIN`].
    #[inline(always)]
    pub fn close(&mut self, sink: &mut impl Sink) {
        if !self.is_open() {
            return;
        }
        let size = sink.len().saturating_sub(self.start + FRAME_HEADER_SIZE);
        if size >= FRAME_SIZE_MIN {
            sink.patch(self.start + 1, (size as u64).to_le_bytes());
        } else if sink.len() >= self.start + FRAME_HEADER_SIZE {
            sink.remove(self.start, FRAME_HEADER_SIZE);
        }
        *self = Self::closed();
    }
}
