//! Values to the shortest bytes that a protocol allows, in the choices that CPython makes.
//!
//! The writer knows opcodes and frames. What to write, in which order and what to remember is left to its caller: the
//! pickler of the extension module, or the encoder. Each method writes one whole operation, so a frame boundary may
//! fall between any two calls.
//!
//! ```
//! use quickpickle_format::Writer;
//!
//! let mut writer = Writer::new(Vec::new(), 4);
//! writer.begin();
//! writer.int(7);
//! writer.end();
//! assert_eq!(writer.sink(), b"\x80\x04K\x07.");
//! ```

use std::io::Write as _;

use crate::frame::{FRAME_SIZE_TARGET, Frame};
use crate::opcode::byte;
use crate::sink::Sink;

/// Writes pickle operations to a [`Sink`].
#[derive(Debug)]
pub struct Writer<S> {
    sink: S,
    frame: Frame,
    protocol: u8,
}

impl<S: Sink> Writer<S> {
    /// A writer of `protocol` (0-5) at the end of `sink`.
    pub fn new(sink: S, protocol: u8) -> Self {
        Writer {
            sink,
            frame: Frame::closed(),
            protocol,
        }
    }

    /// The protocol written.
    #[inline(always)]
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// What has been written so far.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// The sink, for its owner: to take the bytes out between frames, or to clear it.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Starts a pickle of `protocol`: forgets a frame left open by an error, writes the header, opens the first frame.
    #[inline(always)]
    pub fn restart(&mut self, protocol: u8) {
        self.protocol = protocol;
        self.frame = Frame::closed();
        self.sink.clear();
        self.begin();
    }

    /// Writes the header of a pickle.
    #[inline(always)]
    pub fn begin(&mut self) {
        if self.protocol >= 4 {
            self.sink.put([byte::PROTO, self.protocol]);
            self.frame.open(&mut self.sink);
        } else if self.protocol >= 2 {
            self.sink.put([byte::PROTO, self.protocol]);
        }
    }

    /// Writes STOP and closes the last frame.
    #[inline(always)]
    pub fn end(&mut self) {
        self.sink.put([byte::STOP]);
        self.close_frame();
    }

    /// Opens a frame where the protocol has frames.
    pub fn open_frame(&mut self) {
        if self.protocol >= 4 {
            self.frame.open(&mut self.sink);
        }
    }

    /// Closes the frame that is open, if one is.
    pub fn close_frame(&mut self) {
        self.frame.close(&mut self.sink);
    }

    /// Drops the first `count` bytes of the sink, which its owner has taken: complete frames.
    pub fn drop_front(&mut self, count: usize) {
        self.sink.remove(0, count);
        self.frame.moved_up(count);
    }

    /// Whether the open frame should be closed at this opcode boundary.
    #[inline(always)]
    pub fn frame_is_full(&self) -> bool {
        self.frame.is_full(self.sink.len())
    }

    /// Whether `count` more bytes leave the open frame, if any, below its target size.
    #[inline(always)]
    pub fn has_frame_room(&self, count: usize) -> bool {
        !self.frame.is_full(self.sink.len() + count)
    }

    /// Whether a payload of `len` bytes is written outside of frames.
    #[inline(always)]
    pub fn bypasses_frame(len: usize) -> bool {
        len >= FRAME_SIZE_TARGET
    }

    /// Writes one opcode without argument.
    #[inline(always)]
    pub fn opcode(&mut self, code: u8) {
        self.sink.put([code]);
    }

    /// Writes several opcodes without arguments.
    #[inline(always)]
    pub fn opcodes<const N: usize>(&mut self, codes: [u8; N]) {
        self.sink.put(codes);
    }

    /// Writes bytes as they are: whole operations that were put together elsewhere.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.sink.put_slice(bytes);
    }

    /// None.
    #[inline(always)]
    pub fn none(&mut self) {
        self.sink.put([byte::NONE]);
    }

    /// True or False.
    #[inline(always)]
    pub fn boolean(&mut self, value: bool) {
        if self.protocol >= 2 {
            self.sink
                .put([if value { byte::NEWTRUE } else { byte::NEWFALSE }]);
        } else {
            self.sink.put(if value { *b"I01\n" } else { *b"I00\n" });
        }
    }

    /// An integer that fits 32 bits.
    #[inline(always)]
    pub fn int(&mut self, value: i32) {
        if self.protocol == 0 {
            return self.int_text(value);
        }
        let (bytes, size) = binary_int(value);
        self.sink.put_start(bytes, size);
    }

    #[cold]
    fn int_text(&mut self, value: i32) {
        self.line(byte::INT, value.to_string().as_bytes());
    }

    /// An integer of any size, as the shortest little-endian two's complement; protocol 2 and later.
    pub fn long(&mut self, digits: &[u8]) {
        match u8::try_from(digits.len()) {
            Ok(short) => self.sink.put([byte::LONG1, short]),
            Err(_) => {
                let [a, b, c, d] = (digits.len() as u32).to_le_bytes();
                self.sink.put([byte::LONG4, a, b, c, d]);
            }
        }
        self.sink.put_slice(digits);
    }

    /// An integer as decimal text; protocols 0 and 1.
    pub fn long_text(&mut self, decimal: &[u8]) {
        self.sink.put([byte::LONG]);
        self.sink.put_slice(decimal);
        self.sink.put(*b"L\n");
    }

    /// A float in binary; protocol 1 and later.
    #[inline(always)]
    pub fn float(&mut self, value: f64) {
        let [a, b, c, d, e, f, g, h] = value.to_be_bytes();
        self.sink.put([byte::BINFLOAT, a, b, c, d, e, f, g, h]);
    }

    /// An opcode, text, and a newline.
    pub fn line(&mut self, code: u8, text: &[u8]) {
        self.sink.put([code]);
        self.sink.put_slice(text);
        self.sink.put(*b"\n");
    }

    /// A string of at most 255 UTF-8 bytes; protocol 4 and later.
    #[inline(always)]
    pub fn short_unicode(&mut self, utf8: &[u8]) {
        self.sink
            .put_both([byte::SHORT_BINUNICODE, utf8.len() as u8], utf8);
    }

    /// As [`Writer::short_unicode`], and remembers it as the next number.
    #[inline(always)]
    pub fn short_unicode_memoized(&mut self, utf8: &[u8]) {
        self.sink.put_between(
            [byte::SHORT_BINUNICODE, utf8.len() as u8],
            utf8,
            byte::MEMOIZE,
        );
    }

    /// The header of a string of `len` UTF-8 bytes; protocol 1 and later. False where the protocol has no opcode for it.
    #[must_use]
    pub fn unicode_header(&mut self, len: usize) -> bool {
        self.sized_header(
            len,
            self.protocol >= 4,
            byte::SHORT_BINUNICODE,
            byte::BINUNICODE,
            byte::BINUNICODE8,
        )
    }

    /// A bytes object of at most 255 bytes; protocol 3 and later.
    #[inline(always)]
    pub fn short_bytes(&mut self, bytes: &[u8]) {
        self.sink
            .put_both([byte::SHORT_BINBYTES, bytes.len() as u8], bytes);
    }

    /// The header of a bytes object; protocol 3 and later. False where the protocol has no opcode for that length.
    #[must_use]
    pub fn bytes_header(&mut self, len: usize) -> bool {
        self.sized_header(
            len,
            true,
            byte::SHORT_BINBYTES,
            byte::BINBYTES,
            byte::BINBYTES8,
        )
    }

    /// The header of a bytearray; protocol 5.
    pub fn bytearray_header(&mut self, len: usize) {
        let [a, b, c, d, e, f, g, h] = (len as u64).to_le_bytes();
        self.sink.put([byte::BYTEARRAY8, a, b, c, d, e, f, g, h]);
    }

    fn sized_header(
        &mut self,
        len: usize,
        has_short: bool,
        short: u8,
        medium: u8,
        long: u8,
    ) -> bool {
        match (u8::try_from(len), u32::try_from(len)) {
            (Ok(len), _) if has_short => self.sink.put([short, len]),
            (_, Ok(len)) => {
                let [a, b, c, d] = len.to_le_bytes();
                self.sink.put([medium, a, b, c, d]);
            }
            _ if self.protocol >= 4 => {
                let [a, b, c, d, e, f, g, h] = (len as u64).to_le_bytes();
                self.sink.put([long, a, b, c, d, e, f, g, h]);
            }
            _ => return false,
        }
        true
    }

    /// Remembers the value on top of the stack as number `index`.
    #[inline(always)]
    pub fn put(&mut self, index: usize) {
        if self.protocol >= 4 {
            self.sink.put([byte::MEMOIZE]);
        } else {
            self.indexed(index, byte::PUT, byte::BINPUT, byte::LONG_BINPUT);
        }
    }

    /// Fetches what was remembered as number `index`.
    #[inline(always)]
    pub fn get(&mut self, index: usize) {
        self.indexed(index, byte::GET, byte::BINGET, byte::LONG_BINGET);
    }

    #[inline(always)]
    fn indexed(&mut self, index: usize, text: u8, short: u8, long: u8) {
        if self.protocol == 0 {
            let mut line = [0u8; 24];
            let mut rest = &mut line[..];
            // 24 bytes hold any 64-bit number and the newline.
            let _ = writeln!(rest, "{index}");
            let used = 24 - rest.len();
            self.sink.put([text]);
            self.sink.put_slice(&line[..used]);
        } else if let Ok(index) = u8::try_from(index) {
            self.sink.put([short, index]);
        } else {
            let [a, b, c, d] = (index as u32).to_le_bytes();
            self.sink.put([long, a, b, c, d]);
        }
    }

    /// An extension code, 1 to 2**31 - 1; protocol 2 and later.
    pub fn extension(&mut self, code: u32) {
        let [a, b, c, d] = code.to_le_bytes();
        if code <= 0xff {
            self.sink.put([byte::EXT1, a]);
        } else if code <= 0xffff {
            self.sink.put([byte::EXT2, a, b]);
        } else {
            self.sink.put([byte::EXT4, a, b, c, d]);
        }
    }
}

/// The shortest binary operation for an integer, and how many of the bytes it has.
#[inline(always)]
pub(crate) fn binary_int(value: i32) -> ([u8; 5], usize) {
    let [a, b, c, d] = value.to_le_bytes();
    let (code, size) = match value {
        0..=0xff => (byte::BININT1, 2),
        0x100..=0xffff => (byte::BININT2, 3),
        _ => (byte::BININT, 5),
    };
    ([code, a, b, c, d], size)
}
