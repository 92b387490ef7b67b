//! Dicts, and the dicts that are states of instances.

use quickpickle_format::opcode::byte;

use crate::ffi::dict::Dict;
use crate::ffi::object::{Obj, Quiet};
use crate::ffi::types::{Kind, classify};

use super::engine::Engine;
use super::frame::{BATCH, DictFrame, Frame};
use super::leaves::Fresh;
use super::walk::{Ask, Below, Fault, Progress};

impl Engine {
    /// Begins a dict that has not been written, or (`build`) an instance's state that is one.
    pub(super) fn open_dict<'q>(
        &mut self,
        q: Quiet<'q>,
        dict: Dict<'q>,
        fresh: Fresh,
        build: bool,
    ) -> Progress<'q> {
        let obj = dict.obj();
        if !self.enter(obj) {
            return Progress::Ask(Ask::Fail(Fault::Cyclic(obj.anchor())));
        }
        self.empty_dict();
        self.remember(obj, fresh);
        let size = dict.len();
        if size == 0 {
            self.leave(obj);
            if build {
                self.out.opcode(byte::BUILD);
            }
            return Progress::Done;
        }
        let single = size == 1 || self.out.protocol() == 0;
        if !single {
            self.out.opcode(byte::MARK);
        }
        let frame = DictFrame {
            dict: obj.anchor(),
            pos: 0,
            value: None,
            in_batch: 0,
            single,
            build,
            size,
        };
        self.fill_dict::<false>(q, frame)
    }

    pub(super) fn empty_dict(&mut self) {
        if self.out.protocol() >= 1 {
            self.out.opcode(byte::EMPTY_DICT);
        } else {
            self.out.opcodes([byte::MARK, byte::DICT]);
        }
    }

    #[inline(always)]
    pub(super) fn fill_dict<'q, const DEEP: bool>(
        &mut self,
        q: Quiet<'q>,
        mut frame: DictFrame,
    ) -> Progress<'q> {
        let obj = frame.dict.obj(q);
        let Kind::Dict(dict) = classify(obj) else {
            return Progress::Ask(Ask::Fail(Fault::DictChanged));
        };
        let mut value = if DEEP {
            frame.value.take().map(|value| value.obj(q))
        } else {
            None
        };
        // Whether a pair is complete.
        let mut begun = DEEP && value.is_none();
        let shares_keys = dict.shares_keys();
        let mut items = dict.items(frame.pos);
        loop {
            let item = match value.take() {
                Some(item) => item,
                None => {
                    if begun && self.end_pair(dict, &mut frame) {
                        break;
                    }
                    let Some((key, item)) = items.next() else {
                        if !frame.single {
                            self.out.opcode(byte::SETITEMS);
                        }
                        if dict.len() != frame.size {
                            return Progress::Ask(Ask::Fail(Fault::DictChanged));
                        }
                        break;
                    };
                    // Keys that other dicts share may be met again, however few references they have.
                    let saved = if shares_keys {
                        self.save_shared::<DEEP>(q, key)
                    } else {
                        self.save::<DEEP>(q, key)
                    };
                    if let Err(below) = saved {
                        frame.pos = items.at;
                        frame.value = Some(item.anchor());
                        return self.descend(Frame::Dict(frame), key, below);
                    }
                    item
                }
            };
            if let Err(below) = self.save::<DEEP>(q, item) {
                frame.pos = items.at;
                return self.descend(Frame::Dict(frame), item, below);
            }
            begun = true;
        }
        if dict.len() != frame.size && (!frame.single || self.out.protocol() == 0) {
            return Progress::Ask(Ask::Fail(Fault::DictChanged));
        }
        self.leave(obj);
        if frame.build {
            self.out.opcode(byte::BUILD);
        }
        Progress::Done
    }

    /// Ends a pair of a dict, and its batch if that is full; true where the dict is complete.
    #[inline(always)]
    pub(super) fn end_pair(&mut self, dict: Dict<'_>, frame: &mut DictFrame) -> bool {
        if frame.single {
            self.out.opcode(byte::SETITEM);
            return self.out.protocol() > 0 || dict.len() != frame.size;
        }
        frame.in_batch += 1;
        if frame.in_batch == BATCH {
            self.out.opcode(byte::SETITEMS);
            if dict.len() != frame.size {
                return true;
            }
            // Also where nothing follows: so does CPython.
            self.out.opcode(byte::MARK);
            frame.in_batch = 0;
        }
        false
    }

    /// Writes an object whose count of references says nothing.
    #[inline(always)]
    pub(super) fn save_shared<'q, const DEEP: bool>(
        &mut self,
        q: Quiet<'q>,
        key: Obj<'q>,
    ) -> Result<(), Below<'q>> {
        self.open += 1;
        let saved = self.save::<DEEP>(q, key);
        self.open -= 1;
        self.next_is_shared = matches!(saved, Err(Below::Enter));
        saved
    }
}
