//! Pickles without the memo writes that nothing reads: what Python's `pickletools.optimize` makes of them, byte for byte.
//!
//! Entries that are fetched are numbered anew in order, frames are cut anew, everything else is copied. The value stays the same
//! as long as every memo number is filled before it is fetched, which is checked.

use crate::error::{Error, ErrorKind, Result};
use crate::frame::{FRAME_SIZE_TARGET, Frame};
use crate::memo::Memo;
use crate::op::{Argument, Op, Ops};
use crate::opcode::Opcode;
use crate::protocol::Protocol;
use crate::writer::Writer;

/// The pickle at the start of `data` without its unused memo writes.
///
/// ```
/// use quickpickle_format::optimize;
///
/// let pickle = b"\x80\x04\x95\x0b\0\0\0\0\0\0\0]\x94(]\x94h\x01h\x01e.";
/// assert_eq!(optimize(pickle)?, b"\x80\x04\x95\n\0\0\0\0\0\0\0](]\x94h\0h\0e.");
/// # Ok::<(), quickpickle_format::Error>(())
/// ```
///
/// # Errors
///
/// What the reader says, a memo number that is none, [`ErrorKind::MemoMissing`] and [`ErrorKind::UnsupportedProtocol`].
pub fn optimize(data: &[u8]) -> Result<Vec<u8>> {
    let plan = Plan::of(data)?;
    let mut writer = Writer::new(Vec::with_capacity(data.len()), plan.protocol);
    let mut frame = Frame::closed();
    // The next number, by old number.
    let mut numbers = Memo::new();
    let mut filled = Memo::new();
    let mut next = 0;
    let mut ops = Ops::new(data);
    while let Some(op) = ops.next() {
        let op = op?;
        let whole = &data[op.offset as usize..ops.offset() as usize];
        if op.opcode == Opcode::Proto && op.offset == 0 {
            writer.raw(whole);
            if plan.protocol >= 4 {
                frame.open(writer.sink_mut());
            }
            continue;
        }
        if op.offset == 0 && plan.protocol >= 4 {
            frame.open(writer.sink_mut());
        }
        let stored = stored_index(&op, &filled)?;
        if let Some(index) = stored {
            filled.insert(index, ());
            if plan.fetched.get(index).is_none() {
                continue;
            }
        }
        if op.opcode == Opcode::Frame {
            continue;
        }
        let frameless = whole.len() > FRAME_SIZE_TARGET;
        if frame.is_full(writer.sink().len()) || (frameless && frame.is_open()) {
            frame.close(writer.sink_mut());
            if !frameless {
                frame.open(writer.sink_mut());
            }
        }
        if let Some(index) = stored {
            numbers.insert(index, next);
            writer.put(next);
            next += 1;
        } else if let Some(index) = fetched_index(&op)? {
            let number = numbers.get(index);
            writer.get(number.ok_or_else(|| Error::new(ErrorKind::MemoMissing(index), op.offset))?);
        } else {
            writer.raw(whole);
        }
        if frameless && plan.protocol >= 4 {
            frame.open(writer.sink_mut());
        }
    }
    frame.close(writer.sink_mut());
    Ok(std::mem::take(writer.sink_mut()))
}

/// What has to be known before the first byte is written.
struct Plan {
    fetched: Memo<()>,
    protocol: u8,
}

impl Plan {
    fn of(data: &[u8]) -> Result<Self> {
        let mut plan = Self {
            fetched: Memo::new(),
            protocol: 0,
        };
        for op in Ops::new(data) {
            let op = op?;
            let wanted = match op.argument {
                Argument::Version(version) if version > Protocol::HIGHEST.number() => {
                    return Err(Error::new(
                        ErrorKind::UnsupportedProtocol(version),
                        op.offset,
                    ));
                }
                Argument::Version(version) => version,
                _ => 0,
            };
            plan.protocol = plan.protocol.max(wanted);
            if let Some(index) = fetched_index(&op)? {
                plan.fetched.insert(index, ());
                plan.protocol = plan.protocol.max(op.opcode.protocol().number());
            }
        }
        Ok(plan)
    }
}

fn fetched_index(op: &Op<'_>) -> Result<Option<u64>> {
    match op.opcode {
        Opcode::Get | Opcode::BinGet | Opcode::LongBinGet => op.memo_index(),
        _ => Ok(None),
    }
}

fn stored_index(op: &Op<'_>, filled: &Memo<()>) -> Result<Option<u64>> {
    match op.opcode {
        Opcode::Put | Opcode::BinPut | Opcode::LongBinPut => op.memo_index(),
        Opcode::Memoize => Ok(Some(filled.len())),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fetched_is_numbered_anew() {
        assert_eq!(
            optimize(b"\x80\x02]q\x00(K\x01q\x05K\x02q\x07h\x07h\x05e.rest").as_deref(),
            Ok(&b"\x80\x02](K\x01q\x00K\x02q\x01h\x01h\x00e."[..])
        );
        assert_eq!(
            optimize(b"(lp9\nVa\np12\na.").as_deref(),
            Ok(&b"(lVa\na."[..])
        );
    }

    #[test]
    fn what_was_never_stored_cannot_be_fetched() {
        assert_eq!(
            optimize(b"h\x00.").map_err(|error| error.kind),
            Err(ErrorKind::MemoMissing(0))
        );
        assert_eq!(
            optimize(b"\x80\x09N.").map_err(|error| error.kind),
            Err(ErrorKind::UnsupportedProtocol(9))
        );
    }
}
