//! Where the reader's bytes come from.
//!
//! A source hands out exactly what is asked for or an error, and moves on by exactly that much. It is where lengths
//! found in a pickle meet the input, so no implementation may allocate on the word of a length: [`SliceSource`] never
//! allocates, one over a file grows as data arrives.

use std::slice;

use crate::error::{Error, ErrorKind};

/// Bytes in order, taken from the front.
///
/// The methods are the five ways an operation reads its argument. After an error the position is unspecified and the
/// source should be dropped.
pub trait Source {
    /// What goes wrong: this crate's error, or something that can hold it beside, say, an I/O error.
    type Error: From<Error>;

    /// The byte of the next opcode. The end of the input is [`ErrorKind::UnexpectedEnd`] here.
    fn opcode(&mut self) -> Result<u8, Self::Error>;

    /// One byte of an argument. The end of the input is [`ErrorKind::Truncated`], here and in the methods below.
    fn byte(&mut self) -> Result<u8, Self::Error>;

    /// `N` bytes of an argument.
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Self::Error>;

    /// Exactly `n` bytes.
    fn bytes(&mut self, n: usize) -> Result<&[u8], Self::Error>;

    /// A line without its newline, which is consumed. A line without a newline is [`ErrorKind::Truncated`].
    fn line(&mut self) -> Result<&[u8], Self::Error>;

    /// Fills `into`, for payloads that go straight to their final place. Ask [`Self::remaining`] before making room.
    fn fill(&mut self, into: &mut [u8]) -> Result<(), Self::Error>;

    /// Bytes consumed so far.
    fn offset(&self) -> u64;

    /// Bytes certainly left, or `None` if only reading on can tell.
    fn remaining(&self) -> Option<u64>;

    /// The next bytes as far as they are in memory already, possibly none. For looking ahead, never for parsing.
    fn peek(&self) -> &[u8];
}

/// A source over bytes in memory.
///
/// ```
/// use quickpickle_format::{SliceSource, Source};
///
/// let mut source = SliceSource::new(b"I42\n.");
/// assert_eq!(source.opcode()?, b'I');
/// assert_eq!(source.line()?, b"42");
/// assert_eq!(source.peek(), b".");
/// assert!(source.bytes(2).is_err());
/// # Ok::<(), quickpickle_format::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SliceSource<'a> {
    // An iterator is two pointers of which only one moves: one store for each step where a slice needs two.
    rest: slice::Iter<'a, u8>,
    len: usize,
}

impl<'a> SliceSource<'a> {
    /// A source that starts at the first byte of `data`.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Self {
            rest: data.iter(),
            len: data.len(),
        }
    }

    /// What has not been consumed yet.
    #[must_use]
    #[inline(always)]
    pub fn rest(&self) -> &'a [u8] {
        self.rest.as_slice()
    }

    /// [`Source::bytes`], but the answer lives as long as the input.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Truncated`] if fewer than `n` bytes are left.
    #[inline(always)]
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Error> {
        match self.rest().split_at_checked(n) {
            Some((head, tail)) => {
                self.rest = tail.iter();
                Ok(head)
            }
            None => Err(self.end(ErrorKind::Truncated)),
        }
    }

    /// [`Source::line`], but the answer lives as long as the input.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Truncated`] if no newline is left.
    #[inline]
    pub fn take_line(&mut self) -> Result<&'a [u8], Error> {
        let rest = self.rest();
        match rest.iter().position(|&byte| byte == b'\n') {
            Some(end) => {
                self.rest = rest[end + 1..].iter();
                Ok(&rest[..end])
            }
            None => Err(self.end(ErrorKind::Truncated)),
        }
    }

    #[cold]
    #[inline(never)]
    fn end(&self, kind: ErrorKind) -> Error {
        // The fault is that the input ends, so that is where it is.
        Error::new(kind, self.len as u64)
    }
}

impl Source for SliceSource<'_> {
    type Error = Error;

    #[inline(always)]
    fn opcode(&mut self) -> Result<u8, Error> {
        match self.rest.next() {
            Some(&byte) => Ok(byte),
            None => Err(self.end(ErrorKind::UnexpectedEnd)),
        }
    }

    #[inline(always)]
    fn byte(&mut self) -> Result<u8, Error> {
        match self.rest.next() {
            Some(&byte) => Ok(byte),
            None => Err(self.end(ErrorKind::Truncated)),
        }
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        match self.rest().split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.rest = tail.iter();
                Ok(*head)
            }
            None => Err(self.end(ErrorKind::Truncated)),
        }
    }

    #[inline(always)]
    fn bytes(&mut self, n: usize) -> Result<&[u8], Error> {
        self.take(n)
    }

    #[inline]
    fn line(&mut self) -> Result<&[u8], Error> {
        self.take_line()
    }

    #[inline]
    fn fill(&mut self, into: &mut [u8]) -> Result<(), Error> {
        into.copy_from_slice(self.take(into.len())?);
        Ok(())
    }

    #[inline(always)]
    fn offset(&self) -> u64 {
        (self.len - self.rest.len()) as u64
    }

    #[inline(always)]
    fn remaining(&self) -> Option<u64> {
        Some(self.rest.len() as u64)
    }

    #[inline(always)]
    fn peek(&self) -> &[u8] {
        self.rest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_counts_what_was_taken() {
        let mut source = SliceSource::new(b"Kabcd\nxy");
        assert_eq!(source.opcode(), Ok(b'K'));
        assert_eq!(source.byte(), Ok(b'a'));
        assert_eq!(source.array(), Ok(*b"bc"));
        assert_eq!(source.line(), Ok(&b"d"[..]));
        assert_eq!((source.offset(), source.remaining()), (6, Some(2)));
        let mut two = [0; 2];
        assert_eq!(source.fill(&mut two), Ok(()));
        assert_eq!((&two, source.offset(), source.peek()), (b"xy", 8, &b""[..]));
    }

    #[test]
    fn the_end_is_told_apart_by_where_it_comes() {
        let mut source = SliceSource::new(b"");
        assert_eq!(
            source.opcode(),
            Err(Error::new(ErrorKind::UnexpectedEnd, 0))
        );
        assert_eq!(source.byte(), Err(Error::new(ErrorKind::Truncated, 0)));
        assert_eq!(
            source.array::<8>(),
            Err(Error::new(ErrorKind::Truncated, 0))
        );
        assert_eq!(
            source.bytes(usize::MAX),
            Err(Error::new(ErrorKind::Truncated, 0))
        );
        assert_eq!(
            SliceSource::new(b"12").line(),
            Err(Error::new(ErrorKind::Truncated, 2))
        );
    }
}
