//! Sets and frozensets, in protocols that have opcodes for them.

use quickpickle_format::opcode::byte;

use crate::ffi::object::Quiet;
use crate::ffi::types::{Kind, Set, classify};

use super::engine::Engine;
use super::frame::{BATCH, Frame, FrozenSetFrame, SetFrame};
use super::leaves::Fresh;
use super::walk::{Ask, Fault, Progress};

impl Engine {
    pub(super) fn open_set<'q>(&mut self, q: Quiet<'q>, set: Set<'q>) -> Progress<'q> {
        let obj = set.obj();
        let Some(fresh) = self.fresh(obj) else {
            return Progress::Done;
        };
        if self.sorts_sets() {
            return Progress::Ask(Ask::Reduce(obj.anchor()));
        }
        self.out.opcode(byte::EMPTY_SET);
        self.remember(obj, fresh);
        let size = set.len();
        if size == 0 {
            return Progress::Done;
        }
        self.out.opcode(byte::MARK);
        self.fill_set::<false>(
            q,
            SetFrame {
                set: obj.anchor(),
                pos: 0,
                in_batch: 0,
                size,
            },
        )
    }

    #[inline(always)]
    pub(super) fn fill_set<'q, const DEEP: bool>(
        &mut self,
        q: Quiet<'q>,
        mut frame: SetFrame,
    ) -> Progress<'q> {
        let Kind::Set(set) = classify(frame.set.obj(q)) else {
            return Progress::Done;
        };
        let mut begun = DEEP;
        loop {
            if begun {
                frame.in_batch += 1;
                if frame.in_batch == BATCH {
                    self.out.opcode(byte::ADDITEMS);
                    if set.len() != frame.size {
                        return Progress::Ask(Ask::Fail(Fault::SetChanged));
                    }
                    // Also where nothing follows: so does CPython.
                    self.out.opcode(byte::MARK);
                    frame.in_batch = 0;
                }
            }
            let Some(item) = set.next(&mut frame.pos) else {
                break;
            };
            if let Err(below) = self.save::<DEEP>(q, item) {
                return self.descend(Frame::Set(frame), item, below);
            }
            begun = true;
        }
        self.out.opcode(byte::ADDITEMS);
        if set.len() != frame.size {
            return Progress::Ask(Ask::Fail(Fault::SetChanged));
        }
        Progress::Done
    }

    pub(super) fn open_frozenset<'q>(&mut self, q: Quiet<'q>, set: Set<'q>) -> Progress<'q> {
        let obj = set.obj();
        let Some(fresh) = self.fresh(obj) else {
            return Progress::Done;
        };
        let sole = fresh.is_sole();
        if self.sorts_sets() || !self.sorted.is_empty() && self.is_sorted_set(obj) {
            return Progress::Ask(Ask::Reduce(obj.anchor()));
        }
        self.open += usize::from(!sole);
        self.out.opcode(byte::MARK);
        self.fill_frozenset::<false>(
            q,
            FrozenSetFrame {
                set: obj.anchor(),
                pos: 0,
                sole,
            },
        )
    }

    #[inline(always)]
    pub(super) fn fill_frozenset<'q, const DEEP: bool>(
        &mut self,
        q: Quiet<'q>,
        mut frame: FrozenSetFrame,
    ) -> Progress<'q> {
        let obj = frame.set.obj(q);
        let Kind::FrozenSet(set) = classify(obj) else {
            return Progress::Done;
        };
        while let Some(item) = set.next(&mut frame.pos) {
            if let Err(below) = self.save::<DEEP>(q, item) {
                return self.descend(Frame::FrozenSet(frame), item, below);
            }
        }
        self.open -= usize::from(!frame.sole);
        // It may have been met, and written, below itself.
        if !frame.sole
            && let Some(number) = self.memo.get(obj)
        {
            self.out.opcode(byte::POP_MARK);
            self.out.get(number);
        } else {
            self.out.opcode(byte::FROZENSET);
            self.remember(obj, Fresh::of(frame.sole));
        }
        Progress::Done
    }
}
