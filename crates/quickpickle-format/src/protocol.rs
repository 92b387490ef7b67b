//! Pickle protocols: which exist and what each brought.
//!
//! The opcodes of each protocol are in the table of [`crate::opcode`]; this file knows only the protocols themselves.

use std::fmt;

use crate::error::{Error, ErrorKind};

/// A pickle protocol that exists, 0 to 5.
///
/// ```
/// use quickpickle_format::Protocol;
///
/// assert_eq!(Protocol::try_from(4).unwrap(), Protocol::V4);
/// assert!(Protocol::try_from(6).is_err());
/// assert!(Protocol::V4.frames() && !Protocol::V3.frames());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Protocol {
    /// Printable text lines; the only one with no binary operations.
    V0 = 0,
    /// Binary arguments, BINPUT and friends, batches (APPENDS, SETITEMS).
    V1 = 1,
    /// PROTO, short tuples, NEWOBJ, extension codes, binary big integers.
    V2 = 2,
    /// `bytes` as a type of its own.
    V3 = 3,
    /// Frames, MEMOIZE, sets, 8-byte lengths, STACK_GLOBAL.
    V4 = 4,
    /// `bytearray` and out-of-band buffers (PEP 574).
    V5 = 5,
}

impl Protocol {
    /// The newest protocol.
    pub const HIGHEST: Self = Self::V5;

    /// The protocol's number, as PROTO carries it.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// True if a pickle of this protocol begins with PROTO.
    #[must_use]
    pub const fn has_header(self) -> bool {
        self.number() >= 2
    }

    /// True if writers of this protocol cut their output into frames.
    #[must_use]
    pub const fn frames(self) -> bool {
        self.number() >= 4
    }

    /// True if binary arguments are allowed.
    #[must_use]
    pub const fn binary(self) -> bool {
        self.number() >= 1
    }
}

impl TryFrom<u8> for Protocol {
    type Error = Error;

    /// # Errors
    ///
    /// [`ErrorKind::UnsupportedProtocol`] (at byte 0, where a caller may put a better place) above [`Self::HIGHEST`].
    fn try_from(number: u8) -> Result<Self, Error> {
        Ok(match number {
            0 => Self::V0,
            1 => Self::V1,
            2 => Self::V2,
            3 => Self::V3,
            4 => Self::V4,
            5 => Self::V5,
            _ => return Err(Error::new(ErrorKind::UnsupportedProtocol(number), 0)),
        })
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}
