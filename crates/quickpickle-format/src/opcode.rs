//! The one table of pickle opcodes: byte, name, protocol that brought it, argument kind, stack effect, what it does.
//!
//! Everything else that knows an opcode takes it from here: the reader matches on [`byte`], the disassembler follows
//! the stack effects, writers use `Opcode::X as u8`. Names are those of Python's `pickletools`. A byte once given is
//! never given again, so rows are only ever added.

use std::fmt;

use crate::protocol::Protocol;

/// How the argument of an opcode is laid out after its byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArgumentKind {
    /// No argument.
    Nothing,
    /// One unsigned byte.
    Uint1,
    /// Two bytes, unsigned, little-endian.
    Uint2,
    /// Four bytes, signed, little-endian.
    Int4,
    /// Four bytes, unsigned, little-endian.
    Uint4,
    /// Eight bytes, unsigned, little-endian.
    Uint8,
    /// Eight bytes, IEEE 754 double, **big**-endian.
    Float8,
    /// A line holding a decimal integer, or `00` and `01` for False and True.
    DecimalLine,
    /// A line holding a decimal integer with an `L` behind it.
    LongLine,
    /// A line holding a float as text.
    FloatLine,
    /// A line holding a quoted and escaped Python 2 string.
    StringLine,
    /// A line holding plain text.
    TextLine,
    /// Two lines holding plain text: a module and a name in it.
    TextLinePair,
    /// A line in raw-unicode-escape.
    UnicodeLine,
    /// A one-byte length and that many bytes of a Python 2 string.
    String1,
    /// A four-byte **signed** length and that many bytes of a Python 2 string.
    String4,
    /// A one-byte length and that many bytes.
    Bytes1,
    /// A four-byte length and that many bytes.
    Bytes4,
    /// An eight-byte length and that many bytes.
    Bytes8,
    /// An eight-byte length and that many bytes, for a bytearray.
    ByteArray8,
    /// A one-byte length and that many bytes of UTF-8.
    Unicode1,
    /// A four-byte length and that many bytes of UTF-8.
    Unicode4,
    /// An eight-byte length and that many bytes of UTF-8.
    Unicode8,
    /// A one-byte length and that many bytes of a little-endian two's complement integer.
    Long1,
    /// A four-byte **signed** length and that many bytes of a little-endian two's complement integer.
    Long4,
}

/// What an opcode takes from the stack or leaves there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StackItem {
    /// Any one object.
    Any,
    /// An int.
    Int,
    /// An int or a bool.
    IntOrBool,
    /// A bool.
    Bool,
    /// A float.
    Float,
    /// A Python 2 string: bytes or str, as the reader was told.
    BytesOrStr,
    /// A bytes object.
    Bytes,
    /// A bytearray.
    ByteArray,
    /// A str.
    Str,
    /// None.
    None,
    /// A tuple.
    Tuple,
    /// A list.
    List,
    /// A dict.
    Dict,
    /// A set.
    Set,
    /// A frozenset.
    FrozenSet,
    /// An out-of-band buffer.
    Buffer,
    /// The mark put down by MARK.
    Mark,
    /// Everything above the topmost mark.
    Slice,
}

impl StackItem {
    /// The name `pickletools` prints for this kind of object.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Int => "int",
            Self::IntOrBool => "int_or_bool",
            Self::Bool => "bool",
            Self::Float => "float",
            Self::BytesOrStr => "bytes_or_str",
            Self::Bytes => "bytes",
            Self::ByteArray => "bytearray",
            Self::Str => "str",
            Self::None => "None",
            Self::Tuple => "tuple",
            Self::List => "list",
            Self::Dict => "dict",
            Self::Set => "set",
            Self::FrozenSet => "frozenset",
            Self::Buffer => "buffer",
            Self::Mark => "mark",
            Self::Slice => "stackslice",
        }
    }
}

/// One row of the table.
struct Row {
    name: &'static str,
    protocol: Protocol,
    argument: ArgumentKind,
    before: &'static [StackItem],
    after: &'static [StackItem],
    summary: &'static str,
}

macro_rules! opcodes {
    ($($variant:ident = $byte:literal, $name:ident, $protocol:ident, $argument:ident,
       [$($before:ident)*] => [$($after:ident)*], $summary:literal;)*) => {
        /// An operation of the pickle machine. `opcode as u8` is its byte.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Opcode {
            $(#[doc = concat!("`", stringify!($name), "`: ", $summary, ".")] $variant = $byte,)*
        }

        /// The bytes of the opcodes as constants, for use in patterns.
        pub mod byte {
            $(#[doc = concat!("The byte of [`Opcode::", stringify!($variant), "`](super::Opcode::", stringify!($variant), ").")]
              pub const $name: u8 = super::Opcode::$variant as u8;)*
        }

        impl Opcode {
            /// Every opcode there is, in the order of the table: oldest protocol first.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The opcode with this byte, if there is one.
            #[must_use]
            pub const fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $(byte::$name => Some(Self::$variant),)*
                    _ => None,
                }
            }

            const fn row(self) -> Row {
                match self {
                    $(Self::$variant => Row {
                        name: stringify!($name),
                        protocol: Protocol::$protocol,
                        argument: ArgumentKind::$argument,
                        before: &[$(StackItem::$before,)*],
                        after: &[$(StackItem::$after,)*],
                        summary: $summary,
                    },)*
                }
            }
        }
    };
}

opcodes! {
    // Protocol 0: text.
    Mark = b'(', MARK, V0, Nothing, [] => [Mark], "put a mark on the stack; later operations work on what lies above it";
    Stop = b'.', STOP, V0, Nothing, [Any] => [], "end of the pickle; the top of the stack is its value";
    Pop = b'0', POP, V0, Nothing, [Any] => [], "drop the top of the stack, be it an object or a mark";
    Dup = b'2', DUP, V0, Nothing, [Any] => [Any Any], "push the top of the stack again";
    Float = b'F', FLOAT, V0, FloatLine, [] => [Float], "push a float read from a text line";
    Int = b'I', INT, V0, DecimalLine, [] => [IntOrBool], "push an int or a bool read from a text line";
    Long = b'L', LONG, V0, LongLine, [] => [Int], "push an int read from a text line that may end in L";
    None = b'N', NONE, V0, Nothing, [] => [None], "push None";
    PersId = b'P', PERSID, V0, TextLine, [] => [Any], "push the object a persistent id names; the id is a text line";
    Reduce = b'R', REDUCE, V0, Nothing, [Any Any] => [Any], "call a callable with a tuple of arguments and push the answer";
    String = b'S', STRING, V0, StringLine, [] => [BytesOrStr], "push a Python 2 string read from a quoted text line";
    Unicode = b'V', UNICODE, V0, UnicodeLine, [] => [Str], "push a str read from a raw-unicode-escape line";
    Append = b'a', APPEND, V0, Nothing, [List Any] => [List], "append the top of the stack to the list below it";
    Build = b'b', BUILD, V0, Nothing, [Any Any] => [Any], "give the object below the top its state, which is the top";
    Global = b'c', GLOBAL, V0, TextLinePair, [] => [Any], "push the object found under a module and a name, one line each";
    Dict = b'd', DICT, V0, Nothing, [Mark Slice] => [Dict], "push a dict of the keys and values above the mark";
    Get = b'g', GET, V0, DecimalLine, [] => [Any], "push the memo entry whose number is a text line";
    Inst = b'i', INST, V0, TextLinePair, [Mark Slice] => [Any], "call the class named by two lines with what is above the mark and push the answer";
    List = b'l', LIST, V0, Nothing, [Mark Slice] => [List], "push a list of what is above the mark";
    Put = b'p', PUT, V0, DecimalLine, [] => [], "keep the top of the stack in the memo entry whose number is a text line";
    SetItem = b's', SETITEM, V0, Nothing, [Dict Any Any] => [Dict], "set one key and value in the dict below them";
    Tuple = b't', TUPLE, V0, Nothing, [Mark Slice] => [Tuple], "push a tuple of what is above the mark";
    // Protocol 1: binary arguments, batches.
    EmptyTuple = b')', EMPTY_TUPLE, V1, Nothing, [] => [Tuple], "push the empty tuple";
    PopMark = b'1', POP_MARK, V1, Nothing, [Mark Slice] => [], "drop everything down to and including the mark";
    BinFloat = b'G', BINFLOAT, V1, Float8, [] => [Float], "push a float of eight bytes";
    BinInt = b'J', BININT, V1, Int4, [] => [Int], "push an int of four signed bytes";
    BinInt1 = b'K', BININT1, V1, Uint1, [] => [Int], "push an int of one unsigned byte";
    BinInt2 = b'M', BININT2, V1, Uint2, [] => [Int], "push an int of two unsigned bytes";
    BinPersId = b'Q', BINPERSID, V1, Nothing, [Any] => [Any], "replace the top of the stack, a persistent id, by the object it names";
    BinString = b'T', BINSTRING, V1, String4, [] => [BytesOrStr], "push a Python 2 string with a four-byte length";
    ShortBinString = b'U', SHORT_BINSTRING, V1, String1, [] => [BytesOrStr], "push a Python 2 string with a one-byte length";
    BinUnicode = b'X', BINUNICODE, V1, Unicode4, [] => [Str], "push a str with a four-byte length";
    EmptyList = b']', EMPTY_LIST, V1, Nothing, [] => [List], "push a new list";
    Appends = b'e', APPENDS, V1, Nothing, [List Mark Slice] => [List], "append everything above the mark to the list below it";
    BinGet = b'h', BINGET, V1, Uint1, [] => [Any], "push the memo entry with a one-byte number";
    LongBinGet = b'j', LONG_BINGET, V1, Uint4, [] => [Any], "push the memo entry with a four-byte number";
    Obj = b'o', OBJ, V1, Nothing, [Mark Any Slice] => [Any], "call the class right above the mark with what is above it and push the answer";
    BinPut = b'q', BINPUT, V1, Uint1, [] => [], "keep the top of the stack in the memo entry with a one-byte number";
    LongBinPut = b'r', LONG_BINPUT, V1, Uint4, [] => [], "keep the top of the stack in the memo entry with a four-byte number";
    SetItems = b'u', SETITEMS, V1, Nothing, [Dict Mark Slice] => [Dict], "set all keys and values above the mark in the dict below it";
    EmptyDict = b'}', EMPTY_DICT, V1, Nothing, [] => [Dict], "push a new dict";
    // Protocol 2: new-style objects, short forms.
    Proto = 0x80, PROTO, V2, Uint1, [] => [], "name the protocol of this pickle";
    NewObj = 0x81, NEWOBJ, V2, Nothing, [Any Any] => [Any], "push cls.__new__(cls, *args) for a class and a tuple";
    Ext1 = 0x82, EXT1, V2, Uint1, [] => [Any], "push the object registered under a one-byte extension code";
    Ext2 = 0x83, EXT2, V2, Uint2, [] => [Any], "push the object registered under a two-byte extension code";
    Ext4 = 0x84, EXT4, V2, Int4, [] => [Any], "push the object registered under a four-byte extension code";
    Tuple1 = 0x85, TUPLE1, V2, Nothing, [Any] => [Tuple], "push a tuple of the top object";
    Tuple2 = 0x86, TUPLE2, V2, Nothing, [Any Any] => [Tuple], "push a tuple of the two top objects";
    Tuple3 = 0x87, TUPLE3, V2, Nothing, [Any Any Any] => [Tuple], "push a tuple of the three top objects";
    NewTrue = 0x88, NEWTRUE, V2, Nothing, [] => [Bool], "push True";
    NewFalse = 0x89, NEWFALSE, V2, Nothing, [] => [Bool], "push False";
    Long1 = 0x8a, LONG1, V2, Long1, [] => [Int], "push an int of up to 255 bytes";
    Long4 = 0x8b, LONG4, V2, Long4, [] => [Int], "push an int of very many bytes";
    // Protocol 3: bytes.
    BinBytes = b'B', BINBYTES, V3, Bytes4, [] => [Bytes], "push bytes with a four-byte length";
    ShortBinBytes = b'C', SHORT_BINBYTES, V3, Bytes1, [] => [Bytes], "push bytes with a one-byte length";
    // Protocol 4: frames, sets, 8-byte lengths.
    ShortBinUnicode = 0x8c, SHORT_BINUNICODE, V4, Unicode1, [] => [Str], "push a str with a one-byte length";
    BinUnicode8 = 0x8d, BINUNICODE8, V4, Unicode8, [] => [Str], "push a str with an eight-byte length";
    BinBytes8 = 0x8e, BINBYTES8, V4, Bytes8, [] => [Bytes], "push bytes with an eight-byte length";
    EmptySet = 0x8f, EMPTY_SET, V4, Nothing, [] => [Set], "push a new set";
    AddItems = 0x90, ADDITEMS, V4, Nothing, [Set Mark Slice] => [Set], "add everything above the mark to the set below it";
    FrozenSet = 0x91, FROZENSET, V4, Nothing, [Mark Slice] => [FrozenSet], "push a frozenset of what is above the mark";
    NewObjEx = 0x92, NEWOBJ_EX, V4, Nothing, [Any Any Any] => [Any], "push cls.__new__(cls, *args, **kwargs) for a class, a tuple and a dict";
    StackGlobal = 0x93, STACK_GLOBAL, V4, Nothing, [Str Str] => [Any], "push the object found under the module and the name on the stack";
    Memoize = 0x94, MEMOIZE, V4, Nothing, [Any] => [Any], "keep the top of the stack in the next free memo entry";
    Frame = 0x95, FRAME, V4, Uint8, [] => [], "say how many bytes the frame that starts here has";
    // Protocol 5: bytearray, out-of-band buffers.
    ByteArray8 = 0x96, BYTEARRAY8, V5, ByteArray8, [] => [ByteArray], "push a bytearray with an eight-byte length";
    NextBuffer = 0x97, NEXT_BUFFER, V5, Nothing, [] => [Buffer], "push the next buffer that was handed over beside the pickle";
    ReadonlyBuffer = 0x98, READONLY_BUFFER, V5, Nothing, [Buffer] => [Buffer], "make the buffer on top of the stack read-only";
}

impl Opcode {
    /// The byte that starts this operation in a pickle.
    #[must_use]
    #[inline]
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// Its name in `pickletools`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The first protocol that has it.
    #[must_use]
    pub const fn protocol(self) -> Protocol {
        self.row().protocol
    }

    /// What follows its byte.
    #[must_use]
    pub const fn argument(self) -> ArgumentKind {
        self.row().argument
    }

    /// What it takes from the stack, deepest first.
    #[must_use]
    pub const fn before(self) -> &'static [StackItem] {
        self.row().before
    }

    /// What it leaves on the stack in place of [`Self::before`], deepest first.
    #[must_use]
    pub const fn after(self) -> &'static [StackItem] {
        self.row().after
    }

    /// One phrase saying what it does.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        self.row().summary
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_leads_back_to_its_opcode() {
        let mut known = 0;
        for byte in 0..=u8::MAX {
            if let Some(opcode) = Opcode::from_byte(byte) {
                assert_eq!(opcode.byte(), byte);
                known += 1;
            }
        }
        assert_eq!(known, Opcode::ALL.len());
        // Protocol 5 has 68 opcodes; a new one belongs in a new protocol.
        assert_eq!(known, 68);
    }

    #[test]
    fn table_is_ordered_by_protocol() {
        assert!(Opcode::ALL.is_sorted_by_key(|opcode| opcode.protocol()));
    }
}
