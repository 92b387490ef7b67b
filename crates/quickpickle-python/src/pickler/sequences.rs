//! Tuples and lists.

use quickpickle_format::opcode::byte;
use quickpickle_format::run::{RUN, Run};

use crate::ffi::object::{Obj, Quiet};
use crate::ffi::types::{Kind, List, Tuple, classify, classify_float, classify_int};

use super::engine::Engine;
use super::frame::{BATCH, Frame, ListFrame, TupleFrame};
use super::leaves::Fresh;
use super::walk::{Ask, Fault, Progress};

/// Numbers that must be left in a list for a run to be worth its array.
const RUN_MIN: usize = 8;

/// A number of a run.
enum Number {
    Int(i32),
    Float(f64),
}

impl Engine {
    pub(super) fn open_tuple<'q>(&mut self, q: Quiet<'q>, tuple: Tuple<'q>) -> Progress<'q> {
        let len = tuple.len();
        if len == 0 {
            // Never remembered, so the memo is not asked either.
            if self.out.protocol() >= 1 {
                self.out.opcode(byte::EMPTY_TUPLE);
            } else {
                self.out.opcodes([byte::MARK, byte::TUPLE]);
            }
            return Progress::Done;
        }
        let Some(fresh) = self.fresh(tuple.obj()) else {
            return Progress::Done;
        };
        let sole = fresh.is_sole();
        self.open += usize::from(!sole);
        if !self.is_short(len) {
            self.out.opcode(byte::MARK);
        }
        self.fill_tuple::<false>(
            q,
            TupleFrame {
                tuple: tuple.obj().anchor(),
                index: 0,
                sole,
            },
        )
    }

    /// Whether a tuple of this length needs no MARK.
    #[inline(always)]
    pub(super) fn is_short(&self, len: usize) -> bool {
        len <= 3 && self.out.protocol() >= 2
    }

    #[inline(always)]
    pub(super) fn fill_tuple<'q, const DEEP: bool>(
        &mut self,
        q: Quiet<'q>,
        mut frame: TupleFrame,
    ) -> Progress<'q> {
        let obj = frame.tuple.obj(q);
        let Kind::Tuple(tuple) = classify(obj) else {
            return Progress::Done;
        };
        while let Some(item) = tuple.get(frame.index) {
            frame.index += 1;
            if let Err(below) = self.save::<DEEP>(q, item) {
                return self.descend(Frame::Tuple(frame), item, below);
            }
        }
        self.close_tuple(tuple, frame.sole);
        Progress::Done
    }

    pub(super) fn close_tuple(&mut self, tuple: Tuple<'_>, sole: bool) {
        self.open -= usize::from(!sole);
        let len = tuple.len();
        let short = self.is_short(len);
        // The tuple may have been met, and written, below itself.
        let fresh = if sole {
            Ok(Fresh::Sole)
        } else {
            self.memo
                .look(tuple.obj())
                .map_or_else(|vacant| Ok(Fresh::At(vacant)), Err)
        };
        if let Err(number) = fresh {
            if short || self.out.protocol() == 0 {
                for _ in 0..len + usize::from(!short) {
                    self.out.opcode(byte::POP);
                }
            } else {
                self.out.opcode(byte::POP_MARK);
            }
            self.out.get(number);
            return;
        }
        self.out.opcode(match len {
            _ if !short => byte::TUPLE,
            1 => byte::TUPLE1,
            2 => byte::TUPLE2,
            _ => byte::TUPLE3,
        });
        if let Ok(fresh) = fresh {
            self.remember(tuple.obj(), fresh);
        }
    }

    pub(super) fn open_list<'q>(&mut self, q: Quiet<'q>, list: List<'q>) -> Progress<'q> {
        let obj = list.obj();
        let Some(fresh) = self.fresh(obj) else {
            return Progress::Done;
        };
        if !self.enter(obj) {
            return Progress::Ask(Ask::Fail(Fault::Cyclic(obj.anchor())));
        }
        if self.out.protocol() >= 1 {
            self.out.opcode(byte::EMPTY_LIST);
        } else {
            self.out.opcodes([byte::MARK, byte::LIST]);
        }
        self.remember(obj, fresh);
        let size = list.len();
        let single = size == 1 || self.out.protocol() == 0;
        self.fill_list::<false>(
            q,
            ListFrame {
                list: obj.anchor(),
                index: 0,
                in_batch: 0,
                single,
                size,
            },
        )
    }

    #[inline(always)]
    pub(super) fn fill_list<'q, const DEEP: bool>(
        &mut self,
        q: Quiet<'q>,
        mut frame: ListFrame,
    ) -> Progress<'q> {
        let obj = frame.list.obj(q);
        let Kind::List(list) = classify(obj) else {
            return Progress::Done;
        };
        let mut begun = DEEP;
        loop {
            // The item begun last is complete.
            if begun {
                if frame.single {
                    self.out.opcode(byte::APPEND);
                    if self.out.protocol() > 0 {
                        break;
                    }
                } else if frame.in_batch == BATCH {
                    self.out.opcode(byte::APPENDS);
                    frame.in_batch = 0;
                    if cfg!(Py_3_14) && list.len() != frame.size {
                        return Progress::Ask(Ask::Fail(Fault::ListChanged));
                    }
                }
            }
            let Some(item) = list.get(frame.index) else {
                if frame.in_batch > 0 {
                    self.out.opcode(byte::APPENDS);
                    if cfg!(Py_3_14) && list.len() != frame.size {
                        return Progress::Ask(Ask::Fail(Fault::ListChanged));
                    }
                }
                break;
            };
            frame.index += 1;
            if !frame.single {
                if frame.in_batch == 0 {
                    self.out.opcode(byte::MARK);
                }
                frame.in_batch += 1;
            }
            if let Err(below) = self.save::<DEEP>(q, item) {
                return self.descend(Frame::List(frame), item, below);
            }
            begun = true;
            if !frame.single {
                let done = self.number_run(
                    q,
                    list,
                    item,
                    frame.index,
                    (BATCH - frame.in_batch) as usize,
                );
                frame.index += done;
                frame.in_batch += done as u32;
            }
        }
        self.leave(obj);
        Progress::Done
    }

    /// After a number: writes numbers of the same type that follow it in the list, at most `limit`; returns how many.
    ///
    /// Runs of numbers are common, and most of what one costs is finding out that nothing else has to be done for it: here
    /// that is asked once for many.
    #[inline(always)]
    fn number_run<'q>(
        &mut self,
        q: Quiet<'q>,
        list: List<'q>,
        last: Obj<'q>,
        from: usize,
        limit: usize,
    ) -> usize {
        match classify(last) {
            Kind::Int(_) => self.run_of(q, list, from, limit, |obj| {
                classify_int(obj)?.small().map(Number::Int)
            }),
            Kind::Float(_) => self.run_of(q, list, from, limit, |obj| {
                Some(Number::Float(classify_float(obj)?))
            }),
            _ => 0,
        }
    }

    #[inline(always)]
    fn run_of<'q>(
        &mut self,
        _q: Quiet<'q>,
        list: List<'q>,
        from: usize,
        limit: usize,
        number: impl Fn(Obj<'q>) -> Option<Number>,
    ) -> usize {
        if self.asks_persistent_id || self.out.protocol() == 0 || list.len() < from + RUN_MIN {
            return 0;
        }
        let mut at = from;
        while at < from + limit && self.out.has_frame_room(RUN) {
            let mut run = Run::new();
            while at < from + limit && run.has_room() {
                match list.get(at).and_then(&number) {
                    Some(Number::Int(value)) => run.int(value),
                    Some(Number::Float(value)) => run.float(value),
                    None => {
                        self.out.raw(run.bytes());
                        return at - from;
                    }
                }
                at += 1;
            }
            self.out.raw(run.bytes());
        }
        at - from
    }
}
