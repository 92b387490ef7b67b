//! What a pickle is made of: operations, bytes, memo use, frames, nesting. Counted without building anything.
//!
//! Counting goes on where the stack or the memo do not fit; that is for [`crate::Listing`] to say.

use crate::error::Result;
use crate::memo::Memo;
use crate::op::{Argument, Op, Ops};
use crate::opcode::{Opcode, StackItem};
use crate::protocol::Protocol;

/// How often an opcode occurs and how many bytes it takes with its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpcodeCount {
    /// Which one.
    pub opcode: Opcode,
    /// Operations.
    pub count: u64,
    /// Bytes of all of them, opcodes included.
    pub bytes: u64,
}

/// The counts of one pickle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes up to and including STOP.
    pub bytes: u64,
    /// Operations.
    pub operations: u64,
    /// The version that the first PROTO names, if there is one.
    pub protocol: Option<u8>,
    /// The newest protocol among the opcodes.
    pub highest: Protocol,
    /// Opcodes that occur, most bytes first.
    pub opcodes: Vec<OpcodeCount>,
    /// Memo writes.
    pub memo_writes: u64,
    /// Memo entries that are fetched at least once.
    pub memo_used: u64,
    /// Fetches from the memo.
    pub memo_reads: u64,
    /// Bytes of memo writes that nothing reads.
    pub unused_memo_bytes: u64,
    /// Bytes of text, bytes and large integers themselves, without opcodes and lengths.
    pub payload_bytes: u64,
    /// The largest of these, and where its operation is.
    pub largest_payload: Option<(u64, u64)>,
    /// Frames.
    pub frames: u64,
    /// Most marks that are open at a time.
    pub deepest_marks: u64,
}

impl Statistics {
    /// Counts the pickle at the start of `data`.
    ///
    /// # Errors
    ///
    /// What the reader says, and a memo number that is none.
    pub fn of(data: &[u8]) -> Result<Self> {
        let mut counter = Counter::default();
        let mut ops = Ops::new(data);
        while let Some(op) = ops.next() {
            let op = op?;
            counter.take(&op, ops.offset() - op.offset)?;
        }
        Ok(counter.finish(ops.offset()))
    }
}

struct Counter {
    counts: [(u64, u64); 256],
    protocol: Option<u8>,
    /// Bytes of the last write to an entry, 0 once it has been fetched.
    memo: Memo<u8>,
    memo_used: u64,
    memo_reads: u64,
    unused_memo_bytes: u64,
    payload_bytes: u64,
    largest_payload: Option<(u64, u64)>,
    open_marks: u64,
    deepest_marks: u64,
}

impl Default for Counter {
    fn default() -> Self {
        Self {
            counts: [(0, 0); 256],
            protocol: None,
            memo: Memo::new(),
            memo_used: 0,
            memo_reads: 0,
            unused_memo_bytes: 0,
            payload_bytes: 0,
            largest_payload: None,
            open_marks: 0,
            deepest_marks: 0,
        }
    }
}

impl Counter {
    #[inline]
    fn take(&mut self, op: &Op<'_>, size: u64) -> Result<()> {
        let (count, bytes) = &mut self.counts[usize::from(op.opcode.byte())];
        *count += 1;
        *bytes += size;
        match op.opcode {
            Opcode::Mark => {
                self.open_marks += 1;
                self.deepest_marks = self.deepest_marks.max(self.open_marks);
            }
            Opcode::Memoize => self.store(self.memo.len(), size),
            Opcode::Put | Opcode::BinPut | Opcode::LongBinPut => {
                self.store(op.memo_index()?.unwrap_or_default(), size);
            }
            Opcode::Get | Opcode::BinGet | Opcode::LongBinGet => {
                self.fetch(op.memo_index()?.unwrap_or_default());
            }
            Opcode::Tuple | Opcode::List | Opcode::Dict | Opcode::Appends | Opcode::SetItems => {
                self.open_marks = self.open_marks.saturating_sub(1);
            }
            opcode if opcode.before().contains(&StackItem::Mark) => {
                self.open_marks = self.open_marks.saturating_sub(1);
            }
            _ => {}
        }
        match op.argument {
            Argument::Version(version) => {
                self.protocol.get_or_insert(version);
            }
            Argument::Bytes(payload) => self.payload(payload, op.offset),
            Argument::Line(line) if !matches!(op.opcode, Opcode::Put | Opcode::Get) => {
                self.payload(line, op.offset);
            }
            _ => {}
        }
        Ok(())
    }

    fn store(&mut self, index: u64, size: u64) {
        let size = u8::try_from(size).unwrap_or(u8::MAX);
        self.unused_memo_bytes += u64::from(size);
        self.memo.insert(index, size);
    }

    fn fetch(&mut self, index: u64) {
        self.memo_reads += 1;
        if let Some(size) = self.memo.get(index)
            && size > 0
        {
            self.memo.insert(index, 0);
            self.memo_used += 1;
            self.unused_memo_bytes -= u64::from(size);
        }
    }

    fn payload(&mut self, payload: &[u8], offset: u64) {
        let size = payload.len() as u64;
        self.payload_bytes += size;
        if size > self.largest_payload.map_or(0, |(largest, _)| largest) {
            self.largest_payload = Some((size, offset));
        }
    }

    fn finish(self, bytes: u64) -> Statistics {
        let mut opcodes: Vec<_> = Opcode::ALL
            .iter()
            .map(|&opcode| {
                let (count, bytes) = self.counts[usize::from(opcode.byte())];
                OpcodeCount {
                    opcode,
                    count,
                    bytes,
                }
            })
            .filter(|row| row.count > 0)
            .collect();
        opcodes.sort_by_key(|row| std::cmp::Reverse((row.bytes, row.count)));
        let count = |opcode: Opcode| self.counts[usize::from(opcode.byte())].0;
        Statistics {
            bytes,
            operations: opcodes.iter().map(|row| row.count).sum(),
            protocol: self.protocol,
            highest: opcodes
                .iter()
                .map(|row| row.opcode.protocol())
                .max()
                .unwrap_or(Protocol::V0),
            memo_writes: [
                Opcode::Memoize,
                Opcode::Put,
                Opcode::BinPut,
                Opcode::LongBinPut,
            ]
            .into_iter()
            .map(count)
            .sum(),
            frames: count(Opcode::Frame),
            opcodes,
            memo_used: self.memo_used,
            memo_reads: self.memo_reads,
            unused_memo_bytes: self.unused_memo_bytes,
            payload_bytes: self.payload_bytes,
            largest_payload: self.largest_payload,
            deepest_marks: self.deepest_marks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_counted_once() {
        let pickle = b"\x80\x04\x95\x16\0\0\0\0\0\0\0]\x94(X\x05\0\0\0hello\x94h\x01K\x01Ne.rest";
        let found = Statistics::of(pickle).expect("well formed");
        assert_eq!(found.bytes, pickle.len() as u64 - 4);
        assert_eq!(found.operations, 12);
        assert_eq!(
            found.opcodes.iter().map(|row| row.bytes).sum::<u64>(),
            found.bytes
        );
        assert_eq!(
            (found.memo_writes, found.memo_used, found.memo_reads),
            (2, 1, 1)
        );
        assert_eq!(found.unused_memo_bytes, 1);
        assert_eq!(
            (found.payload_bytes, found.largest_payload),
            (5, Some((5, 14)))
        );
        assert_eq!((found.protocol, found.highest), (Some(4), Protocol::V4));
        assert_eq!((found.frames, found.deepest_marks), (1, 1));
    }
}
