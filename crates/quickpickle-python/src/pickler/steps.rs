//! What plans say, step by step, and calls simple enough to need no plan.

use quickpickle_format::opcode::byte;

use crate::ffi::object::{Anchor, Obj, Quiet};
use crate::ffi::types::{Kind, classify};

use super::engine::Engine;
use super::frame::Frame;
use super::items::ItemStep;
use super::leaves::Fresh;
use super::plan::{Plan, Step};
use super::walk::{Ask, Below, Progress};

impl Engine {
    /// Writes a class or function as STACK_GLOBAL of its module's name and its own; false, and nothing is written, where
    /// these are not short strs, or a frame is about to end.
    pub(super) fn write_stack_global<'q>(
        &mut self,
        q: Quiet<'q>,
        [module, name, obj]: [Obj<'q>; 3],
    ) -> bool {
        let is_short = |text: Obj<'q>| matches!(classify(text), Kind::Str(text) if text.utf8(q).is_some_and(|utf8| utf8.len() < 256));
        if !is_short(module) || !is_short(name) || !self.out.has_frame_room(1024) {
            return false;
        }
        // Held by others too, whatever their counts say.
        self.open += 1;
        for text in [module, name] {
            self.leaf(q, text, &classify(text));
        }
        self.open -= 1;
        self.out.opcode(byte::STACK_GLOBAL);
        self.remember(obj, Fresh::Shared);
        true
    }

    /// Writes `obj` as the call that `value`, a pair of class and arguments, says; false, and nothing is written, where
    /// that takes more than leaves and a class that has been written.
    ///
    /// The pair and the tuple of arguments have been made for the purpose and are dropped after: what only they hold can
    /// never be met again, and only uses up its number.
    pub(super) fn write_simple<'q>(&mut self, q: Quiet<'q>, value: Obj<'q>, obj: Obj<'q>) -> bool {
        let Kind::Tuple(pair) = classify(value) else {
            return false;
        };
        let (Some(class), Some(args)) = (pair.get(0), pair.get(1)) else {
            return false;
        };
        let (Kind::Type, Kind::Tuple(items)) = (classify(class), classify(args)) else {
            return false;
        };
        let len = items.len();
        let Some(number) = self.memo.get(class) else {
            return false;
        };
        if !(1..=3).contains(&len) || self.out.protocol() < 3 || !self.out.has_frame_room(1024) {
            return false;
        }
        let is_leaf = |item: Obj<'q>| match classify(item) {
            Kind::Str(text) => text.utf8(q).is_some_and(|utf8| utf8.len() < 256),
            Kind::Bytes(bytes) => bytes.as_slice(q).len() < 256,
            Kind::Int(int) => int.small().is_some(),
            Kind::Float(_) | Kind::None | Kind::Bool(_) => true,
            _ => false,
        };
        if !value.is_sole()
            || !args.is_sole()
            || !(0..len).all(|at| items.get(at).is_some_and(is_leaf))
            || self.names_a_constructor(q, class)
        {
            return false;
        }
        self.out.get(number);
        for at in 0..len {
            let Some(item) = items.get(at) else { break };
            let open = std::mem::take(&mut self.open);
            if item.is_sole() {
                self.leaf_once(q, item);
            } else {
                self.open = open + 1;
                self.leaf(q, item, &classify(item));
            }
            self.open = open;
        }
        self.out
            .opcode([byte::TUPLE1, byte::TUPLE2, byte::TUPLE3][len - 1]);
        self.skip();
        self.out.opcode(byte::REDUCE);
        self.remember(obj, Fresh::Shared);
        true
    }

    /// Writes a leaf that is dropped right after.
    pub(super) fn leaf_once<'q>(&mut self, q: Quiet<'q>, item: Obj<'q>) {
        match classify(item) {
            Kind::Str(text) => {
                if let Some(utf8) = text.utf8(q) {
                    if self.out.protocol() >= 4 {
                        self.out.short_unicode(utf8);
                    } else {
                        let _ = self.out.unicode_header(utf8.len());
                        self.out.raw(utf8);
                    }
                    self.skip();
                }
            }
            Kind::Bytes(bytes) => {
                let bytes = bytes.as_slice(q);
                let _ = self.out.bytes_header(bytes.len());
                self.out.raw(bytes);
                self.skip();
            }
            kind => {
                self.leaf(q, item, &kind);
            }
        }
    }

    /// Whether the class is called like one of copyreg's constructors, which mean something else.
    pub(super) fn names_a_constructor<'q>(&mut self, q: Quiet<'q>, class: Obj<'q>) -> bool {
        class.type_name(q).starts_with(b"__newobj")
    }

    /// Goes on with a plan.
    pub(super) fn follow<'q>(&mut self, q: Quiet<'q>, mut plan: Box<Plan>) -> Progress<'q> {
        while let Some(step) = plan.steps.get_mut(plan.at) {
            match step {
                Step::Save(object) => {
                    let object = Anchor::of_owned(object).obj(q);
                    plan.at += 1;
                    return Progress::Enter(Frame::Plan(plan), object);
                }
                Step::SaveAsIs(object) => {
                    self.has_no_persistent_id = true;
                    let object = Anchor::of_owned(object).obj(q);
                    plan.at += 1;
                    return Progress::Enter(Frame::Plan(plan), object);
                }
                Step::Write(bytes) => self.out.raw(bytes),
                step @ (Step::None
                | Step::Int(_)
                | Step::Opcode(_)
                | Step::Number
                | Step::Boundary
                | Step::Helper(..)) => self.simple_step(q, step),
                Step::Remember(object) => {
                    self.open -= usize::from(super::plan::remembers(&mut plan.unremembered));
                    let object = Anchor::of_owned(object).obj(q);
                    if self.remember_built(object) {
                        break;
                    }
                }
                Step::RememberPart(object) => {
                    self.open -= usize::from(super::plan::remembers(&mut plan.unremembered));
                    let object = Anchor::of_owned(object).obj(q);
                    self.remember_built(object);
                }
                Step::BeginObject => {
                    self.open += 1;
                    plan.unremembered += 1;
                }
                Step::Text(object) => {
                    let object = Anchor::of_owned(object).obj(q);
                    if !self.write_text(q, object) {
                        plan.at += 1;
                        return Progress::Enter(Frame::Plan(plan), object);
                    }
                }
                Step::Globals(globals) => {
                    self.boundary();
                    if !self.known_globals(globals.of.as_ref()) {
                        let steps = self.globals_steps(globals);
                        let next = plan.at + 1;
                        plan.steps.splice(next..next, steps);
                    }
                }
                Step::RememberName(object) => {
                    let object = Anchor::of_owned(object).obj(q);
                    self.remember(object, Fresh::Shared);
                }
                Step::Instance(object) => {
                    self.open -= usize::from(super::plan::remembers(&mut plan.unremembered));
                    let object = Anchor::of_owned(object).obj(q);
                    plan.at += 1;
                    if self.time_body(q, object, Fresh::Shared) {
                        continue;
                    }
                    let place = object.type_ptr().place();
                    match self.instance_body(q, object, place, Fresh::Shared) {
                        Progress::Done => continue,
                        begun => {
                            return self.descend(Frame::Plan(plan), object, Below::Begun(begun));
                        }
                    }
                }
                Step::ListItems(_) | Step::DictItems(_) => match self.items(q, step) {
                    ItemStep::Save(object) => return Progress::Enter(Frame::Plan(plan), object),
                    ItemStep::Fetch => return Progress::Pause(Frame::Plan(plan), Ask::NextItem),
                    ItemStep::End => {}
                },
            }
            plan.at += 1;
        }
        self.spent.push(plan);
        Progress::Done
    }
}
