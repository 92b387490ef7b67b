//! Operations as data: an opcode with its argument, borrowed from the input, and an iterator over them.
//!
//! For consumers that want to look at a pickle rather than act on it at full speed. Arguments are as the pickle has
//! them, checked for length only: text is neither unescaped nor decoded.

use std::iter::FusedIterator;

use crate::error::{Error, ErrorKind};
use crate::int;
use crate::opcode::Opcode;
use crate::reader::{Flow, Visitor, step};
use crate::source::{SliceSource, Source};

/// One operation of a pickle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Op<'a> {
    /// What to do.
    pub opcode: Opcode,
    /// With what.
    pub argument: Argument<'a>,
    /// Where the opcode's byte is.
    pub offset: u64,
}

impl Op<'_> {
    /// The memo number that a PUT or GET of any form names; `None` for all other operations, MEMOIZE included.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInt`] where a line is no number, or one that is negative or beyond 64 bits.
    #[inline]
    pub fn memo_index(&self) -> Result<Option<u64>, Error> {
        match self.argument {
            Argument::Index(index) => Ok(Some(index.into())),
            Argument::Line(line) if matches!(self.opcode, Opcode::Put | Opcode::Get) => {
                let number = int::canonical(line).and_then(|text| text.parse().ok());
                match number {
                    Some(number) => Ok(Some(number)),
                    None => Err(Error::new(ErrorKind::InvalidInt(self.opcode), self.offset)),
                }
            }
            _ => Ok(None),
        }
    }
}

/// The argument of an operation, one variant for each way arguments are used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Argument<'a> {
    /// No argument.
    Nothing,
    /// The version of PROTO.
    Version(u8),
    /// The length of FRAME.
    Length(u64),
    /// The value of BININT, BININT1 or BININT2, or the code of EXT1, EXT2 or EXT4.
    Int(i32),
    /// The value of BINFLOAT.
    Float(f64),
    /// The memo number of BINPUT, LONG_BINPUT, BINGET or LONG_BINGET.
    Index(u32),
    /// What a length stood before: bytes, UTF-8, or an integer in little-endian two's complement.
    Bytes(&'a [u8]),
    /// The text line of a protocol 0 operation, without its newline.
    Line(&'a [u8]),
    /// The module line and the name line of GLOBAL or INST.
    Lines(&'a [u8], &'a [u8]),
}

/// The operations of one pickle in memory, up to and including STOP.
///
/// An error is the last item. What follows STOP is left in [`Ops::rest`].
///
/// ```
/// use quickpickle_format::{Argument, Opcode, Ops};
///
/// let ops = Ops::new(b"\x80\x02K\x2a.").collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(ops[1].opcode, Opcode::BinInt1);
/// assert_eq!(ops[1].argument, Argument::Int(42));
/// assert_eq!(ops[1].offset, 2);
/// assert_eq!(ops[2].opcode, Opcode::Stop);
/// # Ok::<(), quickpickle_format::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ops<'a> {
    source: SliceSource<'a>,
    done: bool,
}

impl<'a> Ops<'a> {
    /// The operations of the pickle at the start of `data`.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Self {
            source: SliceSource::new(data),
            done: false,
        }
    }

    /// What has not been read yet: after STOP, what follows the pickle.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.source.rest()
    }

    /// Bytes read so far.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = Result<Op<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        // Overwritten by the hook before any method sees it.
        let mut op = Op {
            opcode: Opcode::Stop,
            argument: Argument::Nothing,
            offset: 0,
        };
        let flow = step(&mut self.source, &mut op);
        self.done = !matches!(flow, Ok(Flow::Continue));
        Some(flow.map(|_| op))
    }
}

impl FusedIterator for Ops<'_> {}

macro_rules! without_argument {
    ($($method:ident)*) => {
        $(#[inline(always)]
        fn $method(&mut self, _: &mut SliceSource<'a>) -> Result<(), Error> {
            Ok(())
        })*
    };
}

macro_rules! with_value {
    ($($method:ident($value:ident: $type:ty) => $argument:expr;)*) => {
        $(#[inline(always)]
        fn $method(&mut self, _: &mut SliceSource<'a>, $value: $type) -> Result<(), Error> {
            self.argument = $argument;
            Ok(())
        })*
    };
}

macro_rules! with_payload {
    ($($method:ident: $length:ty),*) => {
        $(#[inline(always)]
        fn $method(&mut self, source: &mut SliceSource<'a>, len: $length) -> Result<(), Error> {
            // A length beyond usize is beyond any slice too.
            self.argument = Argument::Bytes(source.take(usize::try_from(len).unwrap_or(usize::MAX))?);
            Ok(())
        })*
    };
}

macro_rules! with_line {
    ($($method:ident)*) => {
        $(#[inline(always)]
        fn $method(&mut self, source: &mut SliceSource<'a>) -> Result<(), Error> {
            self.argument = Argument::Line(source.take_line()?);
            Ok(())
        })*
    };
}

macro_rules! with_lines {
    ($($method:ident)*) => {
        $(#[inline(always)]
        fn $method(&mut self, source: &mut SliceSource<'a>) -> Result<(), Error> {
            self.argument = Argument::Lines(source.take_line()?, source.take_line()?);
            Ok(())
        })*
    };
}

/// An operation is its own visitor: it becomes what it visits.
impl<'a> Visitor<SliceSource<'a>> for Op<'a> {
    type Error = Error;

    #[inline(always)]
    fn opcode(&mut self, opcode: Opcode, at: u64) {
        self.opcode = opcode;
        self.offset = at;
        self.argument = Argument::Nothing;
    }

    without_argument! {
        stop none next_buffer readonly_buffer mark pop pop_mark dup
        empty_tuple tuple1 tuple2 tuple3 tuple empty_list list append appends
        empty_dict dict setitem setitems empty_set additems frozenset
        memoize stack_global binpersid reduce build obj newobj newobj_ex
    }
    with_value! {
        proto(version: u8) => Argument::Version(version);
        frame(len: u64) => Argument::Length(len);
        // The opcode says it all.
        boolean(_value: bool) => Argument::Nothing;
        int(value: i32) => Argument::Int(value);
        float(value: f64) => Argument::Float(value);
        put(index: u32) => Argument::Index(index);
        get(index: u32) => Argument::Index(index);
        ext(code: i32) => Argument::Int(code);
    }
    with_payload!(long: usize, string: usize, unicode: u64, bytes: u64, bytearray: u64);
    with_line! {
        int_text long_text float_text string_text unicode_text put_text get_text persid_text
    }
    with_lines!(global inst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// The shortest input that holds this opcode and a STOP.
    fn smallest(opcode: Opcode) -> Vec<u8> {
        use crate::opcode::ArgumentKind as Kind;
        let zeros = match opcode.argument() {
            Kind::Nothing => 0,
            Kind::Uint1 | Kind::String1 | Kind::Bytes1 | Kind::Unicode1 | Kind::Long1 => 1,
            Kind::Uint2 => 2,
            Kind::Int4
            | Kind::Uint4
            | Kind::String4
            | Kind::Bytes4
            | Kind::Unicode4
            | Kind::Long4 => 4,
            Kind::Uint8 | Kind::Float8 | Kind::Bytes8 | Kind::ByteArray8 | Kind::Unicode8 => 8,
            Kind::DecimalLine | Kind::LongLine | Kind::FloatLine => 0,
            Kind::StringLine | Kind::TextLine | Kind::UnicodeLine | Kind::TextLinePair => 0,
        };
        let lines = match opcode.argument() {
            Kind::DecimalLine | Kind::LongLine | Kind::FloatLine => 1,
            Kind::StringLine | Kind::TextLine | Kind::UnicodeLine => 1,
            Kind::TextLinePair => 2,
            _ => 0,
        };
        let mut pickle = vec![opcode.byte()];
        pickle.resize(1 + zeros, 0);
        pickle.resize(1 + zeros + lines, b'\n');
        pickle.push(b'.');
        pickle
    }

    /// The reader and the table were written apart; this is what keeps them together.
    #[test]
    fn the_reader_agrees_with_the_table_on_every_argument() {
        for &opcode in Opcode::ALL {
            let pickle = smallest(opcode);
            let ops: Result<Vec<_>, _> = Ops::new(&pickle).collect();
            let ops = ops.unwrap_or_else(|error| panic!("{opcode}: {error}"));
            assert_eq!(ops[0].opcode, opcode);
            assert_eq!(
                ops.last().map(|op| op.offset),
                Some(pickle.len() as u64 - if opcode == Opcode::Stop { 2 } else { 1 })
            );
            assert_eq!(ops.len(), if opcode == Opcode::Stop { 1 } else { 2 });
        }
    }

    #[test]
    fn an_error_is_the_last_item() {
        let mut ops = Ops::new(b"N\xff.");
        assert_eq!(
            ops.next().and_then(Result::ok).map(|op| op.opcode),
            Some(Opcode::None)
        );
        assert_eq!(
            ops.next(),
            Some(Err(Error::new(ErrorKind::UnknownOpcode(0xff), 1)))
        );
        assert_eq!(ops.next(), None);
    }

    #[test]
    fn stop_leaves_the_rest() {
        let mut ops = Ops::new(b"N.N.");
        assert_eq!(ops.by_ref().count(), 2);
        assert_eq!((ops.rest(), ops.offset()), (&b"N."[..], 2));
    }

    #[test]
    fn values_and_signs() {
        let argument =
            |pickle: &'static [u8]| Ops::new(pickle).next().map(|op| op.map(|op| op.argument));
        assert_eq!(argument(b"J\xff\xff\xff\xff"), Some(Ok(Argument::Int(-1))));
        assert_eq!(argument(b"K\xff"), Some(Ok(Argument::Int(255))));
        assert_eq!(argument(b"M\xff\xff"), Some(Ok(Argument::Int(65535))));
        assert_eq!(
            argument(b"\x84\xff\xff\xff\xff"),
            Some(Ok(Argument::Int(-1)))
        );
        assert_eq!(
            argument(b"r\xff\xff\xff\xff"),
            Some(Ok(Argument::Index(u32::MAX)))
        );
        assert_eq!(
            argument(b"G\x3f\xf8\0\0\0\0\0\0"),
            Some(Ok(Argument::Float(1.5)))
        );
        assert_eq!(
            argument(b"cos\npath\n"),
            Some(Ok(Argument::Lines(b"os", b"path")))
        );
        for (pickle, opcode) in [
            (b"T\xff\xff\xff\xff", Opcode::BinString),
            (b"\x8b\xff\xff\xff\xff", Opcode::Long4),
        ] {
            assert_eq!(
                argument(pickle),
                Some(Err(Error::new(ErrorKind::NegativeLength(opcode), 1)))
            );
        }
    }
}
