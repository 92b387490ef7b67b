//! A pickle machine that keeps only the kinds of objects: enough to say whether operations fit together.
//!
//! It follows the stack effects of the opcode table and knows marks and the memo. It calls nothing, builds nothing, and
//! grows by at most a few bytes for each operation.

use crate::error::ErrorKind;
use crate::memo::Memo;
use crate::opcode::{Opcode, StackItem};

/// The stack, the open marks and the memo between two operations.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    stack: Vec<StackItem>,
    marks: Vec<u64>,
    memo: Memo<StackItem>,
}

/// What an operation did that cannot be seen from its opcode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Plain,
    /// It used up the mark that the MARK at this offset had put down.
    ClosedMark(u64),
    /// It filled this memo entry without naming it.
    Memoized(u64),
}

impl Machine {
    /// A machine at the start of a pickle.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Objects and marks on the stack, deepest first.
    #[must_use]
    pub fn stack(&self) -> &[StackItem] {
        &self.stack
    }

    /// Where the MARKs are that are still open, outermost first.
    #[must_use]
    pub fn marks(&self) -> &[u64] {
        &self.marks
    }

    /// The kinds of what is in the memo.
    #[must_use]
    pub fn memo(&self) -> &Memo<StackItem> {
        &self.memo
    }

    /// Does one operation and says what that did, as far as it got. `index` is the memo entry that a PUT or GET names, `at`
    /// the offset of the opcode.
    ///
    /// The error is [`ErrorKind::NoMark`], [`ErrorKind::StackUnderflow`], or one of the memo's. The machine is then of no
    /// more use.
    ///
    /// ```
    /// use quickpickle_format::{ErrorKind, Opcode, machine::{Effect, Machine}};
    ///
    /// let mut machine = Machine::new();
    /// assert_eq!(machine.apply(Opcode::Mark, None, 0), (Effect::Plain, Ok(())));
    /// assert_eq!(machine.apply(Opcode::Tuple, None, 1), (Effect::ClosedMark(0), Ok(())));
    /// assert_eq!(machine.apply(Opcode::Memoize, None, 2), (Effect::Memoized(0), Ok(())));
    /// assert_eq!(machine.apply(Opcode::List, None, 3).1, Err(ErrorKind::NoMark));
    /// ```
    pub fn apply(
        &mut self,
        opcode: Opcode,
        index: Option<u64>,
        at: u64,
    ) -> (Effect, Result<(), ErrorKind>) {
        let mut effect = Effect::Plain;
        let result = self.try_apply(opcode, index, at, &mut effect);
        (effect, result)
    }

    fn try_apply(
        &mut self,
        opcode: Opcode,
        index: Option<u64>,
        at: u64,
        effect: &mut Effect,
    ) -> Result<(), ErrorKind> {
        let (before, mut after) = (opcode.before(), opcode.after());
        let mark = before.iter().position(|&item| item == StackItem::Mark);
        let takes = if let Some(below) = mark {
            *effect = Effect::ClosedMark(self.close_mark()?);
            below
        } else if opcode == Opcode::Pop && self.stack.last() == Some(&StackItem::Mark) {
            *effect = Effect::ClosedMark(self.close_mark()?);
            0
        } else {
            before.len()
        };

        let found;
        match opcode {
            Opcode::Put | Opcode::BinPut | Opcode::LongBinPut => {
                self.store(index.unwrap_or_default())?
            }
            Opcode::Memoize => {
                let index = self.memo.len();
                *effect = Effect::Memoized(index);
                // What is on top stays what it is.
                return self.store(index);
            }
            Opcode::Get | Opcode::BinGet | Opcode::LongBinGet => {
                let index = index.unwrap_or_default();
                found = [self.memo.get(index).ok_or(ErrorKind::MemoMissing(index))?];
                after = &found;
            }
            _ => {}
        }

        let left = self
            .stack
            .len()
            .checked_sub(takes)
            .ok_or(ErrorKind::StackUnderflow {
                wanted: takes,
                found: self.stack.len(),
            })?;
        self.stack.truncate(left);
        self.stack.extend(after);
        if opcode == Opcode::Mark {
            self.marks.push(at);
        }
        Ok(())
    }

    /// Takes the topmost mark and all above it from the stack, and says where it was put down.
    fn close_mark(&mut self) -> Result<u64, ErrorKind> {
        // Operations that take single objects can take a mark for one, so that an open mark need not be on the stack.
        let topmost = self.stack.iter().rposition(|&item| item == StackItem::Mark);
        match (self.marks.pop(), topmost) {
            (Some(at), Some(topmost)) => {
                self.stack.truncate(topmost);
                Ok(at)
            }
            _ => Err(ErrorKind::NoMark),
        }
    }

    fn store(&mut self, index: u64) -> Result<(), ErrorKind> {
        let top = match self.stack.last() {
            _ if self.memo.get(index).is_some() => return Err(ErrorKind::MemoTaken(index)),
            None => return Err(ErrorKind::MemoNothing),
            Some(StackItem::Mark) => return Err(ErrorKind::MemoMark),
            Some(&top) => top,
        };
        self.memo.insert(index, top);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(opcodes: &[Opcode]) -> Result<Machine, ErrorKind> {
        let mut machine = Machine::new();
        for (at, &opcode) in opcodes.iter().enumerate() {
            machine.apply(opcode, Some(0), at as u64).1?;
        }
        Ok(machine)
    }

    #[test]
    fn pop_takes_an_object_or_a_mark() {
        let machine =
            run(&[Opcode::None, Opcode::Mark, Opcode::Pop]).expect("a mark may be popped");
        assert_eq!(
            (machine.stack(), machine.marks()),
            (&[StackItem::None][..], &[][..])
        );
        assert_eq!(
            run(&[Opcode::Pop]).err(),
            Some(ErrorKind::StackUnderflow {
                wanted: 1,
                found: 0
            })
        );
    }

    #[test]
    fn a_mark_taken_for_an_object_is_gone() {
        // TUPLE1 takes the mark as its item; what comes later must not look for it without end.
        assert_eq!(
            run(&[Opcode::Mark, Opcode::Tuple1, Opcode::Tuple]).err(),
            Some(ErrorKind::NoMark)
        );
        assert_eq!(
            run(&[Opcode::Mark, Opcode::Dup, Opcode::PopMark]).err(),
            Some(ErrorKind::NoMark)
        );
    }

    #[test]
    fn the_memo_gives_back_what_it_got() {
        let machine =
            run(&[Opcode::EmptyDict, Opcode::BinPut, Opcode::BinGet]).expect("well formed");
        assert_eq!(machine.stack(), [StackItem::Dict, StackItem::Dict]);
        assert_eq!(
            run(&[Opcode::BinGet]).err(),
            Some(ErrorKind::MemoMissing(0))
        );
        assert_eq!(run(&[Opcode::BinPut]).err(), Some(ErrorKind::MemoNothing));
        assert_eq!(
            run(&[Opcode::Mark, Opcode::Put]).err(),
            Some(ErrorKind::MemoMark)
        );
        assert_eq!(
            run(&[Opcode::None, Opcode::Put, Opcode::Put]).err(),
            Some(ErrorKind::MemoTaken(0))
        );
    }

    #[test]
    fn below_the_mark_there_must_be_something() {
        let error = run(&[Opcode::Mark, Opcode::Appends]).err();
        assert_eq!(
            error,
            Some(ErrorKind::StackUnderflow {
                wanted: 1,
                found: 0
            })
        );
    }
}
