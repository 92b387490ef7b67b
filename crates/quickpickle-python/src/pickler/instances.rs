//! Instances that are written as their class and what `object.__getstate__` would return.

use quickpickle_format::opcode::byte;

use crate::ffi::instance::{Attributes, Place, Values};
use crate::ffi::object::{Obj, Quiet};
use crate::ffi::types::{Kind, classify};

use super::engine::Engine;
use super::frame::{DictFrame, Frame, ValuesFrame};
use super::leaves::Fresh;
use super::verdict::Verdict;
use super::walk::{Ask, Fault, Progress};

impl Engine {
    /// Begins an object of any other type.
    pub(super) fn open_instance<'q>(&mut self, q: Quiet<'q>, obj: Obj<'q>) -> Progress<'q> {
        let Some(fresh) = self.fresh(obj) else {
            return Progress::Done;
        };
        let ty = obj.type_ptr();
        if self.out.protocol() < 2 || self.cloud.is_some() && ty.is_code_or_cell() {
            return Progress::Ask(Ask::Reduce(obj.anchor()));
        }
        let class = ty.as_obj(q);
        let place = match self.verdicts.on(class.address(), ty, self.epoch) {
            Verdict::Walk
                if ty.place() != Place::Unknown && !self.has_special_name(q, obj, ty.place()) =>
            {
                ty.place()
            }
            Verdict::Time(time) => return self.open_time(q, obj, time, fresh),
            Verdict::Unknown => return Progress::Ask(Ask::Judge(obj.anchor())),
            _ => return Progress::Ask(Ask::Reduce(obj.anchor())),
        };
        match self.memo.get(class) {
            Some(number) => self.out.get(number),
            None => return Progress::Ask(Ask::Instance(obj.anchor())),
        }
        self.instance_body(q, obj, place, fresh)
    }

    /// Whether the instance has an attribute that could change how it is reduced.
    #[inline(always)]
    pub(super) fn has_special_name<'q>(
        &mut self,
        q: Quiet<'q>,
        obj: Obj<'q>,
        place: Place,
    ) -> bool {
        fn is_special<'q>(q: Quiet<'q>, key: Obj<'q>) -> bool {
            matches!(classify(key), Kind::Str(name) if name.utf8(q).is_some_and(|name| name.starts_with(b"__")))
        }
        match obj.attributes(q, place) {
            Attributes::Empty => false,
            Attributes::Foreign => true,
            Attributes::Dict(dict) => dict.items(0).any(|(key, _)| is_special(q, key)),
            Attributes::Values(values) => {
                let class = obj.type_ptr().as_obj(q).address();
                let keys = values.keys_id();
                if self.verdicts.is_harmless(class, keys) {
                    return false;
                }
                let special = values.keys(q).any(|key| is_special(q, key));
                if !special {
                    self.verdicts.harmless(class, keys);
                }
                special
            }
        }
    }

    /// Writes an instance whose class is on the stack.
    pub(super) fn instance_body<'q>(
        &mut self,
        q: Quiet<'q>,
        obj: Obj<'q>,
        place: Place,
        fresh: Fresh,
    ) -> Progress<'q> {
        self.boundary();
        self.out.opcodes([byte::EMPTY_TUPLE, byte::NEWOBJ]);
        self.remember(obj, fresh);
        match obj.attributes(q, place) {
            Attributes::Foreign => Progress::Ask(Ask::Fail(Fault::DictChanged)),
            Attributes::Empty => Progress::Done,
            Attributes::Dict(dict) => {
                if dict.len() == 0 {
                    return Progress::Done;
                }
                self.boundary();
                match self.fresh(dict.obj()) {
                    None => {
                        self.out.opcode(byte::BUILD);
                        Progress::Done
                    }
                    Some(fresh) => self.open_dict(q, dict, fresh, true),
                }
            }
            Attributes::Values(values) => {
                let size = values.len();
                if size == 0 {
                    return Progress::Done;
                }
                self.boundary();
                if !self.enter(obj) {
                    return Progress::Ask(Ask::Fail(Fault::Cyclic(obj.anchor())));
                }
                self.empty_dict();
                // No one else can have a dict that does not exist.
                self.skip();
                if size > 1 {
                    self.out.opcode(byte::MARK);
                }
                self.fill_values::<false>(
                    q,
                    ValuesFrame {
                        instance: obj.anchor(),
                        index: 0,
                        value: None,
                        size,
                    },
                )
            }
        }
    }

    #[inline(always)]
    pub(super) fn fill_values<'q, const DEEP: bool>(
        &mut self,
        q: Quiet<'q>,
        mut frame: ValuesFrame,
    ) -> Progress<'q> {
        let values: Values<'q> = match frame.instance.obj(q).attributes(q, Place::Managed) {
            Attributes::Values(values) => values,
            Attributes::Empty | Attributes::Foreign => {
                return Progress::Ask(Ask::Fail(Fault::DictChanged));
            }
            // Other code has asked for `__dict__`: go on with that.
            Attributes::Dict(dict) => {
                self.leave(frame.instance.obj(q));
                if !self.enter(dict.obj()) {
                    return Progress::Ask(Ask::Fail(Fault::Cyclic(dict.obj().anchor())));
                }
                let (pos, size) = (frame.index, frame.size);
                let in_batch = (pos as u32).saturating_sub(1);
                return self.fill_dict::<DEEP>(
                    q,
                    DictFrame {
                        dict: dict.obj().anchor(),
                        pos,
                        value: frame.value,
                        in_batch,
                        single: size == 1,
                        build: true,
                        size,
                    },
                );
            }
        };
        let mut value = if DEEP {
            frame.value.take().map(|value| value.obj(q))
        } else {
            None
        };
        loop {
            let item = match value.take() {
                Some(item) => item,
                None => {
                    let Some((key, item)) = values.get(frame.index) else {
                        break;
                    };
                    frame.index += 1;
                    if let Err(below) = self.save_shared::<DEEP>(q, key) {
                        frame.value = Some(item.anchor());
                        return self.descend(Frame::Values(frame), key, below);
                    }
                    item
                }
            };
            if let Err(below) = self.save::<DEEP>(q, item) {
                return self.descend(Frame::Values(frame), item, below);
            }
        }
        if frame.index != frame.size {
            return Progress::Ask(Ask::Fail(Fault::DictChanged));
        }
        self.out.opcodes([
            if frame.size == 1 {
                byte::SETITEM
            } else {
                byte::SETITEMS
            },
            byte::BUILD,
        ]);
        self.leave(frame.instance.obj(q));
        Progress::Done
    }
}
