//! The crate's one error: what went wrong, and at which byte of the input.
//!
//! Kinds are facts about the format, so that a consumer can answer in its own words: the Python side needs to tell
//! [`ErrorKind::UnexpectedEnd`] (CPython raises `EOFError`) from [`ErrorKind::Truncated`] (`UnpicklingError`). The text
//! here is for people who read pickles without Python.

use std::fmt;

use crate::opcode::Opcode;

/// Short for a result whose error is this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What is wrong with a pickle, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What was found.
    pub kind: ErrorKind,
    /// Bytes between the start of the input and the fault. For a fault inside an operation this is where the reader
    /// stood when it gave up, for an unknown opcode it is the place of that byte.
    pub offset: u64,
}

impl Error {
    /// An error of this kind at this byte.
    #[must_use]
    #[cold]
    pub fn new(kind: ErrorKind, offset: u64) -> Self {
        Self { kind, offset }
    }
}

/// What can be wrong with a pickle.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input ends where an opcode should start: there was no STOP.
    UnexpectedEnd,
    /// The input ends inside an operation, or its text line has no newline.
    Truncated,
    /// No opcode has this byte.
    UnknownOpcode(u8),
    /// A signed length (BINSTRING, LONG4) is below zero.
    NegativeLength(Opcode),
    /// PROTO names a protocol nobody has defined.
    UnsupportedProtocol(u8),
    /// The line of INT, LONG, PUT or GET is not an integer.
    InvalidInt(Opcode),
    /// The line of FLOAT is not a number.
    InvalidFloat,
    /// The line of STRING has no matching quotes around it.
    UnquotedString,
    /// A backslash escape in the line of STRING or UNICODE is malformed.
    InvalidEscape(Opcode),
    /// Bytes that should be UTF-8 (lone surrogates allowed) are not.
    InvalidUtf8(Opcode),
    /// An operation needs a mark and none is on the stack.
    NoMark,
    /// An operation takes more from the stack than there is.
    StackUnderflow {
        /// How many objects it takes.
        wanted: usize,
        /// How many there are.
        found: usize,
    },
    /// After STOP this many objects are left on the stack.
    StackLeft(usize),
    /// A memo entry is filled for the second time.
    MemoTaken(u64),
    /// A memo entry is asked for that was never filled.
    MemoMissing(u64),
    /// The top of the stack should go into the memo, but the stack is empty.
    MemoNothing,
    /// The top of the stack should go into the memo, but it is a mark.
    MemoMark,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnexpectedEnd => {
                f.write_str("input ends where an opcode was expected; no STOP was seen")
            }
            Self::Truncated => f.write_str("input ends inside an operation"),
            Self::UnknownOpcode(byte) => write!(f, "no opcode has the byte 0x{byte:02x}"),
            Self::NegativeLength(op) => write!(f, "{op} has a length below zero"),
            Self::UnsupportedProtocol(version) => write!(
                f,
                "protocol {version} is not known; the highest is {}",
                crate::protocol::Protocol::HIGHEST
            ),
            Self::InvalidInt(op) => write!(f, "the line of {op} is not an integer"),
            Self::InvalidFloat => f.write_str("the line of FLOAT is not a number"),
            Self::UnquotedString => f.write_str("the line of STRING is not in matching quotes"),
            Self::InvalidEscape(op) => {
                write!(f, "the line of {op} has a malformed backslash escape")
            }
            Self::InvalidUtf8(op) => write!(f, "the text of {op} is not utf-8"),
            Self::NoMark => f.write_str("no mark is on the stack where one is needed"),
            Self::StackUnderflow { wanted, found } => {
                write!(f, "{wanted} objects are taken from a stack of {found}")
            }
            Self::StackLeft(left) => write!(f, "{left} objects are left on the stack after STOP"),
            Self::MemoTaken(index) => write!(f, "memo entry {index} is filled twice"),
            Self::MemoMissing(index) => write!(f, "memo entry {index} was never filled"),
            Self::MemoNothing => {
                f.write_str("the stack is empty where its top should go into the memo")
            }
            Self::MemoMark => {
                f.write_str("a mark is on top of the stack where an object should go into the memo")
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (byte {})", self.kind, self.offset)
    }
}

impl std::error::Error for Error {}
