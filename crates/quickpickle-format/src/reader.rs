//! The pickle grammar: from bytes to operations. Nothing else in the workspace reads opcodes.
//!
//! [`step`] reads one opcode with its fixed-size argument and calls the one method of a [`Visitor`] that stands for it;
//! [`read`] does so up to STOP. Payloads whose size comes from the pickle, text lines included, are pulled from the source by the
//! visitor, which alone knows where they should end up. Everything is resolved at compile time: for a visitor whose
//! methods inline, the loop is one jump table with the visitor's code in its arms.
//!
//! The reader checks what the grammar says (known opcode, argument complete, signed lengths not negative). Stack, memo
//! and frames are the visitor's business.

use crate::error::{Error, ErrorKind};
use crate::opcode::{Opcode, byte};
use crate::source::Source;

/// Whether a pickle goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// There is another operation.
    Continue,
    /// That was STOP.
    Stop,
}

/// What happens at each operation of the pickle machine.
///
/// There is one method for each operation, not for each opcode: `K`, `M` and `J` all arrive as [`Visitor::int`]. Every
/// method is given the source, and must leave it right behind the operation:
///
/// - methods with a `len` take exactly that many bytes, [`Visitor::frame`] excepted, whose bytes are operations;
/// - methods ending in `_text` take exactly one line; [`Visitor::global`] and [`Visitor::inst`] take two;
/// - all others take nothing.
///
/// A visitor may look ahead with [`Source::peek`] and may take whole further operations by itself. Lengths are as the pickle
/// states them and may be absurd: [`Source::bytes`] checks them, and so must a visitor that makes room before reading.
///
/// Nothing but the hook has a default, so that no consumer overlooks an operation.
pub trait Visitor<S: Source> {
    /// What goes wrong: faults of the source, of the format, and the visitor's own.
    type Error: From<S::Error>;

    /// Called before each operation with the place of its opcode.
    #[inline(always)]
    fn opcode(&mut self, opcode: Opcode, at: u64) {
        let _ = (opcode, at);
    }

    /// PROTO. The version is not checked.
    fn proto(&mut self, source: &mut S, version: u8) -> Result<(), Self::Error>;
    /// FRAME. The frame's `len` bytes are the operations that follow; take none of them.
    fn frame(&mut self, source: &mut S, len: u64) -> Result<(), Self::Error>;
    /// STOP.
    fn stop(&mut self, source: &mut S) -> Result<(), Self::Error>;

    /// NONE.
    fn none(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// NEWTRUE, NEWFALSE.
    fn boolean(&mut self, source: &mut S, value: bool) -> Result<(), Self::Error>;
    /// BININT1, BININT2, BININT.
    fn int(&mut self, source: &mut S, value: i32) -> Result<(), Self::Error>;
    /// INT: a line with an int, or with `00` or `01` for a bool.
    fn int_text(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// LONG: a line with an int and perhaps an `L`.
    fn long_text(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// LONG1, LONG4: `len` bytes in two's complement, little-endian; none stand for zero.
    fn long(&mut self, source: &mut S, len: usize) -> Result<(), Self::Error>;
    /// BINFLOAT.
    fn float(&mut self, source: &mut S, value: f64) -> Result<(), Self::Error>;
    /// FLOAT: a line with a float.
    fn float_text(&mut self, source: &mut S) -> Result<(), Self::Error>;

    /// STRING: a line with a quoted and escaped Python 2 string.
    fn string_text(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// SHORT_BINSTRING, BINSTRING: `len` bytes of a Python 2 string.
    fn string(&mut self, source: &mut S, len: usize) -> Result<(), Self::Error>;
    /// UNICODE: a line in raw-unicode-escape.
    fn unicode_text(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// SHORT_BINUNICODE, BINUNICODE, BINUNICODE8: `len` bytes of UTF-8 in which lone surrogates are allowed.
    fn unicode(&mut self, source: &mut S, len: u64) -> Result<(), Self::Error>;
    /// SHORT_BINBYTES, BINBYTES, BINBYTES8: `len` bytes.
    fn bytes(&mut self, source: &mut S, len: u64) -> Result<(), Self::Error>;
    /// BYTEARRAY8: `len` bytes.
    fn bytearray(&mut self, source: &mut S, len: u64) -> Result<(), Self::Error>;
    /// NEXT_BUFFER.
    fn next_buffer(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// READONLY_BUFFER.
    fn readonly_buffer(&mut self, source: &mut S) -> Result<(), Self::Error>;

    /// MARK.
    fn mark(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// POP.
    fn pop(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// POP_MARK.
    fn pop_mark(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// DUP.
    fn dup(&mut self, source: &mut S) -> Result<(), Self::Error>;

    /// EMPTY_TUPLE.
    fn empty_tuple(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// TUPLE1.
    fn tuple1(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// TUPLE2.
    fn tuple2(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// TUPLE3.
    fn tuple3(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// TUPLE.
    fn tuple(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// EMPTY_LIST.
    fn empty_list(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// LIST.
    fn list(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// APPEND.
    fn append(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// APPENDS.
    fn appends(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// EMPTY_DICT.
    fn empty_dict(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// DICT.
    fn dict(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// SETITEM.
    fn setitem(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// SETITEMS.
    fn setitems(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// EMPTY_SET.
    fn empty_set(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// ADDITEMS.
    fn additems(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// FROZENSET.
    fn frozenset(&mut self, source: &mut S) -> Result<(), Self::Error>;

    /// BINPUT, LONG_BINPUT.
    fn put(&mut self, source: &mut S, index: u32) -> Result<(), Self::Error>;
    /// PUT: a line with the index.
    fn put_text(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// MEMOIZE.
    fn memoize(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// BINGET, LONG_BINGET.
    fn get(&mut self, source: &mut S, index: u32) -> Result<(), Self::Error>;
    /// GET: a line with the index.
    fn get_text(&mut self, source: &mut S) -> Result<(), Self::Error>;

    /// GLOBAL: a line with the module, a line with the name.
    fn global(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// STACK_GLOBAL.
    fn stack_global(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// EXT1, EXT2, EXT4. Codes of zero or less are not valid, and are passed on for the visitor to refuse.
    fn ext(&mut self, source: &mut S, code: i32) -> Result<(), Self::Error>;
    /// PERSID: a line with the id.
    fn persid_text(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// BINPERSID.
    fn binpersid(&mut self, source: &mut S) -> Result<(), Self::Error>;

    /// REDUCE.
    fn reduce(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// BUILD.
    fn build(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// INST: a line with the module, a line with the name.
    fn inst(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// OBJ.
    fn obj(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// NEWOBJ.
    fn newobj(&mut self, source: &mut S) -> Result<(), Self::Error>;
    /// NEWOBJ_EX.
    fn newobj_ex(&mut self, source: &mut S) -> Result<(), Self::Error>;
}

/// Reads one operation and gives it to the visitor.
///
/// # Errors
///
/// What the source or the visitor says, [`ErrorKind::UnknownOpcode`] or [`ErrorKind::NegativeLength`]. The source is then
/// somewhere inside the operation.
#[inline(always)]
pub fn step<S: Source, V: Visitor<S>>(source: &mut S, visitor: &mut V) -> Result<Flow, V::Error> {
    let at = source.offset();
    // Announces the opcode, reads its argument, then calls the visitor's method.
    macro_rules! visit {
        ($opcode:ident, $method:ident) => {{
            visitor.opcode(Opcode::$opcode, at);
            visitor.$method(source)?
        }};
        ($opcode:ident, $method:ident, $argument:expr) => {{
            visitor.opcode(Opcode::$opcode, at);
            let argument = $argument;
            visitor.$method(source, argument)?
        }};
    }
    match source.opcode()? {
        byte::PROTO => visit!(Proto, proto, source.byte()?),
        byte::FRAME => visit!(Frame, frame, u64::from_le_bytes(source.array()?)),
        byte::STOP => {
            visit!(Stop, stop);
            return Ok(Flow::Stop);
        }

        byte::NONE => visit!(None, none),
        byte::NEWTRUE => visit!(NewTrue, boolean, true),
        byte::NEWFALSE => visit!(NewFalse, boolean, false),
        byte::BININT1 => visit!(BinInt1, int, i32::from(source.byte()?)),
        byte::BININT2 => visit!(BinInt2, int, i32::from(u16::from_le_bytes(source.array()?))),
        byte::BININT => visit!(BinInt, int, i32::from_le_bytes(source.array()?)),
        byte::INT => visit!(Int, int_text),
        byte::LONG => visit!(Long, long_text),
        byte::LONG1 => visit!(Long1, long, usize::from(source.byte()?)),
        byte::LONG4 => visit!(Long4, long, signed_length(source, Opcode::Long4)?),
        byte::BINFLOAT => visit!(BinFloat, float, f64::from_be_bytes(source.array()?)),
        byte::FLOAT => visit!(Float, float_text),

        byte::STRING => visit!(String, string_text),
        byte::SHORT_BINSTRING => visit!(ShortBinString, string, usize::from(source.byte()?)),
        byte::BINSTRING => visit!(BinString, string, signed_length(source, Opcode::BinString)?),
        byte::UNICODE => visit!(Unicode, unicode_text),
        byte::SHORT_BINUNICODE => visit!(ShortBinUnicode, unicode, u64::from(source.byte()?)),
        byte::BINUNICODE => visit!(
            BinUnicode,
            unicode,
            u64::from(u32::from_le_bytes(source.array()?))
        ),
        byte::BINUNICODE8 => visit!(BinUnicode8, unicode, u64::from_le_bytes(source.array()?)),
        byte::SHORT_BINBYTES => visit!(ShortBinBytes, bytes, u64::from(source.byte()?)),
        byte::BINBYTES => visit!(
            BinBytes,
            bytes,
            u64::from(u32::from_le_bytes(source.array()?))
        ),
        byte::BINBYTES8 => visit!(BinBytes8, bytes, u64::from_le_bytes(source.array()?)),
        byte::BYTEARRAY8 => visit!(ByteArray8, bytearray, u64::from_le_bytes(source.array()?)),
        byte::NEXT_BUFFER => visit!(NextBuffer, next_buffer),
        byte::READONLY_BUFFER => visit!(ReadonlyBuffer, readonly_buffer),

        byte::MARK => visit!(Mark, mark),
        byte::POP => visit!(Pop, pop),
        byte::POP_MARK => visit!(PopMark, pop_mark),
        byte::DUP => visit!(Dup, dup),

        byte::EMPTY_TUPLE => visit!(EmptyTuple, empty_tuple),
        byte::TUPLE1 => visit!(Tuple1, tuple1),
        byte::TUPLE2 => visit!(Tuple2, tuple2),
        byte::TUPLE3 => visit!(Tuple3, tuple3),
        byte::TUPLE => visit!(Tuple, tuple),
        byte::EMPTY_LIST => visit!(EmptyList, empty_list),
        byte::LIST => visit!(List, list),
        byte::APPEND => visit!(Append, append),
        byte::APPENDS => visit!(Appends, appends),
        byte::EMPTY_DICT => visit!(EmptyDict, empty_dict),
        byte::DICT => visit!(Dict, dict),
        byte::SETITEM => visit!(SetItem, setitem),
        byte::SETITEMS => visit!(SetItems, setitems),
        byte::EMPTY_SET => visit!(EmptySet, empty_set),
        byte::ADDITEMS => visit!(AddItems, additems),
        byte::FROZENSET => visit!(FrozenSet, frozenset),

        byte::BINPUT => visit!(BinPut, put, u32::from(source.byte()?)),
        byte::LONG_BINPUT => visit!(LongBinPut, put, u32::from_le_bytes(source.array()?)),
        byte::PUT => visit!(Put, put_text),
        byte::MEMOIZE => visit!(Memoize, memoize),
        byte::BINGET => visit!(BinGet, get, u32::from(source.byte()?)),
        byte::LONG_BINGET => visit!(LongBinGet, get, u32::from_le_bytes(source.array()?)),
        byte::GET => visit!(Get, get_text),

        byte::GLOBAL => visit!(Global, global),
        byte::STACK_GLOBAL => visit!(StackGlobal, stack_global),
        byte::EXT1 => visit!(Ext1, ext, i32::from(source.byte()?)),
        byte::EXT2 => visit!(Ext2, ext, i32::from(u16::from_le_bytes(source.array()?))),
        byte::EXT4 => visit!(Ext4, ext, i32::from_le_bytes(source.array()?)),
        byte::PERSID => visit!(PersId, persid_text),
        byte::BINPERSID => visit!(BinPersId, binpersid),

        byte::REDUCE => visit!(Reduce, reduce),
        byte::BUILD => visit!(Build, build),
        byte::INST => visit!(Inst, inst),
        byte::OBJ => visit!(Obj, obj),
        byte::NEWOBJ => visit!(NewObj, newobj),
        byte::NEWOBJ_EX => visit!(NewObjEx, newobj_ex),

        unknown => return Err(fault::<S>(ErrorKind::UnknownOpcode(unknown), at).into()),
    }
    Ok(Flow::Continue)
}

/// Reads operations up to and including STOP.
///
/// Several pickles in a row are read by calling this again.
///
/// # Errors
///
/// As [`step`].
#[inline]
pub fn read<S: Source, V: Visitor<S>>(source: &mut S, visitor: &mut V) -> Result<(), V::Error> {
    while step(source, visitor)? == Flow::Continue {}
    Ok(())
}

/// The length of BINSTRING and LONG4, which alone are signed.
#[inline(always)]
fn signed_length<S: Source>(source: &mut S, opcode: Opcode) -> Result<usize, S::Error> {
    let len = i32::from_le_bytes(source.array()?);
    usize::try_from(len)
        .map_err(|_| fault::<S>(ErrorKind::NegativeLength(opcode), source.offset() - 4))
}

#[cold]
#[inline(never)]
fn fault<S: Source>(kind: ErrorKind, offset: u64) -> S::Error {
    Error::new(kind, offset).into()
}
