//! Scripts: reductions that Rust knows by heart, written without building what a reducer would answer.
//!
//! A script is told what to write, operation by operation. Each is written at once, until the first object that takes more
//! than a few bytes; from there on operations are noted as the steps of a plan, which is worked off once that object is
//! written. Numbers in the memo come out as if the reducer's tuples and dicts had existed: each takes a number, though
//! nothing is remembered under it.
//!
//! What must stay true: while a script is being told, no Python code may run and nothing that the cyclic collector tracks
//! may be made, because what has been written is not settled. So everything that has to be found out is found out before.
//! Objects given as anchors are held by what is being reduced, which the script holds until the end of the dump.

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use quickpickle_format::opcode::byte;

use crate::cloud::wire::{Helper, Wire};
use crate::ffi::function_view::cell_contents;
use crate::ffi::object::{Anchor, Obj, Quiet, quiet};
use crate::ffi::types::{Kind, classify};

use super::engine::Engine;
use super::frame::{BATCH, Frame};
use super::leaves::Fresh;
use super::plan::{Plan, Step};
use super::walk::{Ask, Progress};

/// What a function shares with others: its globals, and those of them that tell where it comes from.
pub(crate) struct BaseGlobals {
    /// The dict of globals.
    pub(crate) of: Option<Py<PyAny>>,
    /// Names and values.
    pub(crate) items: Vec<(Py<PyAny>, Py<PyAny>)>,
}

/// How far a dict has been written.
pub(crate) struct DictState {
    len: usize,
    in_batch: u32,
}

/// See the module.
pub(crate) struct Script<'a, 'py> {
    engine: &'a mut Engine,
    py: Python<'py>,
    wire: &'static Wire,
    queued: Vec<Step>,
    /// Whether operations are noted instead of written.
    queues: bool,
    /// What interrupted writing.
    frame: Option<Frame>,
    ask: Option<Ask>,
    /// Objects begun and not remembered.
    unremembered: u32,
    /// Whether the object turned out to have been written below itself: nothing more is written.
    is_over: bool,
}

impl<'a, 'py> Script<'a, 'py> {
    /// A script for `obj`, which is held until the end of the dump.
    pub(crate) fn new(
        engine: &'a mut Engine,
        wire: &'static Wire,
        obj: &Bound<'py, PyAny>,
    ) -> Self {
        engine.keep.push(obj.clone().unbind());
        Script {
            engine,
            py: obj.py(),
            wire,
            queued: Vec::new(),
            queues: false,
            frame: None,
            ask: None,
            unremembered: 0,
            is_over: false,
        }
    }

    /// The protocol that is written.
    pub(crate) fn protocol(&self) -> u8 {
        self.engine.out.protocol()
    }

    /// Ends the script: what was noted becomes a plan, below what interrupted it.
    pub(crate) fn finish(self) -> PyResult<()> {
        let Script {
            engine,
            queued,
            queues,
            frame,
            ask,
            unremembered,
            is_over,
            ..
        } = self;
        if !queues {
            debug_assert!(unremembered == 0 || is_over);
            return Ok(());
        }
        let mut plan = Plan::new(queued, false);
        plan.unremembered = unremembered;
        let mut fits = engine.push(Frame::Plan(Box::new(plan)));
        if let Some(frame) = frame {
            fits &= engine.push(frame);
        }
        engine.asked = ask;
        if fits {
            Ok(())
        } else {
            Err(super::engine::too_deep())
        }
    }

    /// Holds an object until the end of the dump.
    pub(crate) fn hold(&mut self, obj: Bound<'py, PyAny>) -> Anchor {
        let anchor = Anchor::of(&obj);
        self.engine.keep.push(obj.unbind());
        anchor
    }

    /// An object is begun that will be remembered only later.
    pub(crate) fn begin_object(&mut self) {
        // Before anything is noted: only the first objects of a script are begun while writing.
        if self.is_over {
            return;
        }
        if self.queues {
            self.queued.push(Step::BeginObject);
        } else {
            self.engine.open += 1;
            self.unremembered += 1;
        }
    }

    /// Saves an object that is held.
    pub(crate) fn save(&mut self, obj: Anchor) {
        if !self.is_direct() {
            if !self.is_over {
                self.queued.push(Step::Save(obj.pin(self.py).unbind()));
            }
            return;
        }
        let engine = &mut *self.engine;
        // Whatever its count of references: what holds it may be reached by other ways.
        engine.open += 1;
        let (interrupted, frame, ask, next) =
            quiet(self.py, |q| match engine.begin(q, obj.obj(q)) {
                Progress::Done => (false, None, None, None),
                Progress::Enter(frame, inside) => (true, Some(frame), None, Some(inside.anchor())),
                Progress::Pause(frame, ask) => (true, Some(frame), Some(ask), None),
                Progress::Ask(ask) => (true, None, Some(ask), None),
            });
        engine.open -= 1;
        if interrupted {
            self.queues = true;
            // What remains of a function is no more than this, but for its globals.
            self.queued.reserve(40);
            self.frame = frame;
            self.ask = ask;
            if next.is_some() {
                self.engine.next = next;
            }
        }
    }

    /// Saves a str that lives for ever, and is no longer than a name.
    #[inline]
    pub(crate) fn name(&mut self, name: &Bound<'_, PyString>) {
        let anchor = Anchor::of(name.as_any());
        if !self.is_direct() || self.engine.asks_hooks() {
            return self.save(anchor);
        }
        let engine = &mut *self.engine;
        let written = quiet(self.py, |q| {
            let obj = anchor.obj(q);
            engine.boundary();
            match classify(obj) {
                Kind::Str(text) => {
                    engine.open += 1;
                    let written = engine.string(q, obj, text);
                    engine.open -= 1;
                    written
                }
                _ => false,
            }
        });
        if !written {
            self.save(anchor);
        }
    }

    /// Saves an object made for the purpose.
    pub(crate) fn save_made(&mut self, obj: Bound<'py, PyAny>) {
        let anchor = self.hold(obj);
        self.save(anchor);
    }

    /// Saves an object, or None.
    pub(crate) fn save_or_none(&mut self, obj: Option<Anchor>) {
        match obj {
            Some(obj) => self.save(obj),
            None => self.none(),
        }
    }

    /// Writes None.
    #[inline]
    pub(crate) fn none(&mut self) {
        if !self.is_direct() {
            return self.note(Step::None);
        }
        self.engine.boundary();
        self.engine.out.none();
    }

    /// Whether operations are written at once.
    #[inline(always)]
    fn is_direct(&self) -> bool {
        !self.queues && !self.is_over
    }

    #[cold]
    #[inline(never)]
    fn note(&mut self, step: Step) {
        if !self.is_over {
            self.queued.push(step);
        }
    }

    /// Writes an int.
    #[inline]
    pub(crate) fn int(&mut self, value: i32) {
        if !self.is_direct() {
            return self.note(Step::Int(value));
        }
        self.engine.boundary();
        self.engine.out.int(value);
    }

    /// Writes an opcode as it is.
    #[inline(always)]
    pub(crate) fn opcode(&mut self, code: u8) {
        if !self.is_direct() {
            return self.note(Step::Opcode(code));
        }
        self.engine.out.opcode(code);
    }

    /// Writes a str that nothing else can be, with its number.
    pub(crate) fn text(&mut self, text: Anchor) {
        if self.is_over {
            return;
        }
        if self.queues {
            self.queued.push(Step::Text(text.pin(self.py).unbind()));
            return;
        }
        let engine = &mut *self.engine;
        let written = quiet(self.py, |q| engine.write_text(q, text.obj(q)));
        if !written {
            self.save(text);
        }
    }

    /// Writes a copy of a str, as `"".join(text)` makes it: strs of a single character are shared where Python shares them.
    pub(crate) fn copy(&mut self, text: Anchor) {
        let is_own = quiet(self.py, |q| match classify(text.obj(q)) {
            Kind::Str(text) => text.utf8(q).is_some_and(|utf8| match utf8 {
                [] | [_] => false,
                [first, _] => first.is_ascii(),
                _ => utf8.len() <= 255,
            }),
            _ => false,
        });
        if is_own {
            return self.text(text);
        }
        // Of a single character, or too long to be written in passing: an object is needed.
        let text = text.pin(self.py);
        let copied = copied(&text).unwrap_or(text);
        self.save_made(copied);
    }

    /// Writes a helper.
    pub(crate) fn helper(&mut self, helper: Helper) {
        if !self.is_direct() {
            return self.note(Step::Helper(self.wire, helper));
        }
        let (engine, wire) = (&mut *self.engine, self.wire);
        quiet(self.py, |q| engine.write_helper(q, wire, helper));
    }

    /// Begins a tuple that is not an object, of `len` items.
    pub(crate) fn open_tuple(&mut self, len: usize) {
        self.boundary();
        if self.protocol() == 0 || len > 3 || (self.protocol() < 2 && len > 0) {
            self.opcode(byte::MARK);
        }
    }

    /// Ends such a tuple.
    pub(crate) fn close_tuple(&mut self, len: usize) {
        match len {
            0 if self.protocol() >= 1 => return self.opcode(byte::EMPTY_TUPLE),
            0 => return self.opcode(byte::TUPLE),
            1..=3 if self.protocol() >= 2 => {
                self.opcode([byte::TUPLE1, byte::TUPLE2, byte::TUPLE3][len - 1]);
            }
            _ => self.opcode(byte::TUPLE),
        }
        self.number();
    }

    /// Writes an empty tuple.
    pub(crate) fn empty_tuple(&mut self) {
        self.open_tuple(0);
        self.close_tuple(0);
    }

    /// Begins a dict that is not an object, of `len` items. Each item is a key and a value, followed by [`Script::end_item`].
    pub(crate) fn open_dict(&mut self, len: usize) -> DictState {
        self.boundary();
        if self.protocol() >= 1 {
            self.opcode(byte::EMPTY_DICT);
        } else {
            self.opcode(byte::MARK);
            self.opcode(byte::DICT);
        }
        self.number();
        if len > 1 && self.protocol() > 0 {
            self.opcode(byte::MARK);
        }
        DictState { len, in_batch: 0 }
    }

    /// A dict of `len` items, more than one, that has been begun.
    pub(crate) fn opened_dict(&self, len: usize) -> DictState {
        DictState { len, in_batch: 0 }
    }

    /// Ends an item of a dict.
    pub(crate) fn end_item(&mut self, state: &mut DictState) {
        if state.len == 1 || self.protocol() == 0 {
            return self.opcode(byte::SETITEM);
        }
        state.in_batch += 1;
        if state.in_batch == BATCH {
            self.opcode(byte::SETITEMS);
            self.opcode(byte::MARK);
            state.in_batch = 0;
        }
    }

    /// Ends a dict.
    pub(crate) fn close_dict(&mut self, state: DictState) {
        if state.len > 1 && self.protocol() > 0 {
            self.opcode(byte::SETITEMS);
        }
    }

    /// Writes REDUCE.
    pub(crate) fn reduce(&mut self) {
        self.opcode(byte::REDUCE);
    }

    /// Remembers the object that is on top of the stack now. If it has been written below itself meanwhile, nothing more
    /// is written.
    pub(crate) fn remember(&mut self, obj: Anchor) {
        self.remember_as(obj, true);
    }

    /// As [`Script::remember`], for an object that is part of another one's script.
    pub(crate) fn remember_part(&mut self, obj: Anchor) {
        self.remember_as(obj, false);
    }

    fn remember_as(&mut self, obj: Anchor, ends: bool) {
        if self.is_over {
            return;
        }
        if self.queues {
            let obj = obj.pin(self.py).unbind();
            self.queued.push(if ends {
                Step::Remember(obj)
            } else {
                Step::RememberPart(obj)
            });
            return;
        }
        if self.unremembered > 0 {
            self.unremembered -= 1;
            self.engine.open -= 1;
        }
        let engine = &mut *self.engine;
        let met = quiet(self.py, |q| engine.remember_built(obj.obj(q)));
        self.is_over = met && ends;
    }

    /// Whether operations are noted, because something before takes more than a few bytes.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.queues
    }

    /// Whether the object has been written, as far as that is known now.
    pub(crate) fn is_remembered(&self, obj: Anchor) -> bool {
        quiet(self.py, |q| self.engine.memo.get(obj.obj(q)).is_some())
    }

    /// A place where a frame may end: before each object.
    #[inline]
    pub(crate) fn boundary(&mut self) {
        if !self.is_direct() {
            return self.note(Step::Boundary);
        }
        self.engine.boundary();
    }

    /// Writes an empty list that is not an object.
    pub(crate) fn empty_list(&mut self) {
        self.boundary();
        if self.protocol() >= 1 {
            self.opcode(byte::EMPTY_LIST);
        } else {
            self.opcode(byte::MARK);
            self.opcode(byte::LIST);
        }
        self.number();
    }

    /// Writes an empty set that nothing remembers.
    pub(crate) fn empty_set(&mut self) {
        if self.protocol() >= 4 {
            return self.opcode(byte::EMPTY_SET);
        }
        let class = self.py.get_type::<pyo3::types::PySet>().into_any();
        self.save_made(class);
        self.empty_tuple();
        self.reduce();
    }

    /// Begins items to be set in the object on top of the stack, of which there are `len`.
    pub(crate) fn open_items(&mut self, len: usize) -> DictState {
        if len > 1 && self.protocol() > 0 {
            self.opcode(byte::MARK);
        }
        DictState { len, in_batch: 0 }
    }

    /// Ends a tuple that is an object, of at least one item, and remembers it.
    pub(crate) fn end_tuple_object(&mut self, tuple: Anchor, len: usize) {
        match len {
            1..=3 if self.protocol() >= 2 => {
                self.opcode([byte::TUPLE1, byte::TUPLE2, byte::TUPLE3][len - 1]);
            }
            _ => self.opcode(byte::TUPLE),
        }
        self.remember_part(tuple);
    }

    /// Has a frozenset written in the order of `sorted`.
    pub(crate) fn sort_set(&mut self, set: &Py<PyAny>, sorted: &Py<PyTuple>) {
        let pair = (set.clone_ref(self.py), sorted.clone_ref(self.py));
        self.engine.sorted.push(pair);
    }

    /// Uses up a number for an object that nothing can meet again.
    #[inline]
    pub(crate) fn number(&mut self) {
        if !self.is_direct() {
            return self.note(Step::Number);
        }
        self.engine.skip();
    }

    /// Writes what stands for the globals of a function before it has any.
    pub(crate) fn base_globals(&mut self, globals: BaseGlobals) {
        if self.is_over {
            return;
        }
        if self.queues {
            self.queued.push(Step::Globals(Box::new(globals)));
            return;
        }
        self.engine.boundary();
        if self.engine.known_globals(globals.of.as_ref()) {
            return;
        }
        let BaseGlobals { of, items } = globals;
        if let Some(of) = of.filter(|_| !self.engine.fast) {
            let number = self.engine.memo.next();
            self.engine.globals.push((of, number));
        }
        let mut state = self.open_dict(items.len());
        for (key, value) in items {
            let key = key.into_bound(self.py);
            match key.cast::<PyString>() {
                Ok(name) => self.name(name),
                Err(_) => self.save(Anchor::of(&key)),
            }
            self.save_made(value.into_bound(self.py));
            self.end_item(&mut state);
        }
        self.close_dict(state);
    }

    /// Writes a cell: with its content at once where that is short or has been written before.
    pub(crate) fn cell(&mut self, cell: Anchor) {
        if self.is_over || self.queues || self.engine.asks_hooks() {
            return self.save(cell);
        }
        let content = cell_contents(&cell.pin(self.py));
        let is_simple = quiet(self.py, |q| {
            self.engine.memo.get(cell.obj(q)).is_none()
                && content.as_ref().is_none_or(|content| {
                    let content = Anchor::of(content).obj(q);
                    self.engine.memo.get(content).is_some()
                        || match classify(content) {
                            Kind::None | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => true,
                            Kind::Str(text) => text.utf8(q).is_some_and(|utf8| utf8.len() < 256),
                            _ => false,
                        }
                })
        });
        if !is_simple {
            return self.save(cell);
        }
        self.boundary();
        match content {
            None => {
                self.helper(Helper::MakeEmptyCell);
                self.empty_tuple();
            }
            Some(content) => {
                self.helper(Helper::MakeCell);
                self.open_tuple(1);
                self.save(Anchor::of(&content));
                self.close_tuple(1);
            }
        }
        self.reduce();
        self.remember_part(cell);
    }

    /// Writes a class that `types` names, by that name.
    pub(crate) fn builtin_type(&mut self, class: Anchor, name: Anchor) {
        if self.is_over {
            return;
        }
        if self.queues {
            return self.save(class);
        }
        self.engine.boundary();
        let engine = &mut *self.engine;
        let seen = quiet(self.py, |q| match engine.memo.get(class.obj(q)) {
            Some(number) => {
                engine.out.get(number);
                true
            }
            None => false,
        });
        if seen {
            return;
        }
        self.begin_object();
        self.helper(Helper::BuiltinType);
        self.open_tuple(1);
        self.save(name);
        self.close_tuple(1);
        self.reduce();
        self.remember_part(class);
    }
}

/// `"".join(text)`, which for a single character is one that Python shares.
fn copied<'py>(text: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let text = text.cast::<PyString>().ok()?;
    crate::ffi::build::copied_text(text)
}

impl Engine {
    /// The protocol that is written.
    pub(crate) fn protocol(&self) -> u8 {
        self.out.protocol()
    }

    /// Whether the globals of a function are known already.
    pub(crate) fn knows_globals(&self, globals: &Bound<'_, PyAny>) -> bool {
        !self.fast && self.globals.iter().rev().any(|(of, _)| of.is(globals))
    }

    /// The items of a frozenset in the order in which it is to be written.
    pub(crate) fn sorted_items(&self, set: &Bound<'_, PyAny>) -> Option<&Py<PyTuple>> {
        let found = self.sorted.iter().rev().find(|(known, _)| known.is(set));
        found.map(|(_, sorted)| sorted)
    }

    /// Whether sets are written in the order of what their items are written as.
    pub(super) fn sorts_sets(&self) -> bool {
        self.cloud.is_some_and(|cloud| cloud.is_deterministic)
    }

    /// Whether a frozenset is to be written in an order of its own.
    pub(super) fn is_sorted_set(&self, set: Obj<'_>) -> bool {
        self.sorted
            .iter()
            .any(|(known, _)| known.as_ptr() as usize == set.address())
    }

    /// Writes a step that is no more than a few bytes.
    #[inline]
    pub(super) fn simple_step<'q>(&mut self, q: Quiet<'q>, step: &Step) {
        match step {
            Step::None => {
                self.boundary();
                self.out.none();
            }
            Step::Int(value) => {
                self.boundary();
                self.out.int(*value);
            }
            Step::Opcode(code) => self.out.opcode(*code),
            Step::Number => self.skip(),
            Step::Boundary => {
                self.boundary();
            }
            Step::Helper(wire, helper) => self.write_helper(q, wire, *helper),
            Step::BeginObject => self.open += 1,
            _ => debug_assert!(false, "not a simple step"),
        }
    }

    fn write_helper<'q>(&mut self, q: Quiet<'q>, wire: &'static Wire, helper: Helper) {
        self.boundary();
        let key = Anchor::of_owned(wire.key(helper)).obj(q);
        if let Some(number) = self.memo.get(key) {
            return self.out.get(number);
        }
        let (module, name) = (
            Anchor::of_owned(&wire.module).obj(q),
            Anchor::of_owned(wire.name(helper)).obj(q),
        );
        if self.out.protocol() >= 4 {
            // Held by others too, whatever their counts say.
            self.open += 1;
            for text in [module, name] {
                self.boundary();
                self.leaf(q, text, &classify(text));
            }
            self.open -= 1;
            self.out.opcode(byte::STACK_GLOBAL);
        } else {
            self.out.opcode(byte::GLOBAL);
            for text in [module, name] {
                if let Kind::Str(text) = classify(text) {
                    self.out.raw(text.utf8(q).unwrap_or_default());
                }
                self.out.raw(b"\n");
            }
        }
        self.remember(key, Fresh::Shared);
    }

    /// Writes a str without asking the memo; false where it takes more than a few bytes.
    pub(super) fn write_text<'q>(&mut self, q: Quiet<'q>, text: Obj<'q>) -> bool {
        self.boundary();
        let Kind::Str(text) = classify(text) else {
            return false;
        };
        let Some(utf8) = text.utf8(q).filter(|utf8| utf8.len() <= 255) else {
            return false;
        };
        if self.out.protocol() >= 4 {
            self.out.short_unicode(utf8);
        } else if self.out.protocol() >= 1 {
            let _ = self.out.unicode_header(utf8.len());
            self.out.raw(utf8);
        } else {
            return false;
        }
        self.skip();
        true
    }

    /// Remembers an object just built; true if it had been written below itself, and is replaced by that one.
    pub(super) fn remember_built(&mut self, obj: Obj<'_>) -> bool {
        if let Some(number) = self.memo.get(obj) {
            self.out.opcode(byte::POP);
            self.out.get(number);
            return true;
        }
        self.remember(obj, Fresh::Shared);
        false
    }

    /// The steps that write what stands for the globals of a function, which then are known.
    pub(super) fn globals_steps(&mut self, globals: &mut BaseGlobals) -> Vec<Step> {
        let items = std::mem::take(&mut globals.items);
        if !self.fast
            && let Some(of) = globals.of.take()
        {
            self.globals.push((of, self.memo.next()));
        }
        let len = items.len();
        let binary = self.out.protocol() > 0;
        let mut steps = Vec::with_capacity(3 * len + 4);
        if binary {
            steps.push(Step::Opcode(byte::EMPTY_DICT));
        } else {
            steps.extend([Step::Opcode(byte::MARK), Step::Opcode(byte::DICT)]);
        }
        steps.push(Step::Number);
        if len > 1 && binary {
            steps.push(Step::Opcode(byte::MARK));
        }
        for (key, value) in items {
            steps.extend([Step::Save(key), Step::Save(value)]);
            if len == 1 || !binary {
                steps.push(Step::Opcode(byte::SETITEM));
            }
        }
        if len > 1 && binary {
            steps.push(Step::Opcode(byte::SETITEMS));
        }
        steps
    }

    /// Whether these globals stand for those of a function written before; if so, writes a GET.
    pub(super) fn known_globals(&mut self, globals: Option<&Py<PyAny>>) -> bool {
        let Some(globals) = globals.filter(|_| !self.fast) else {
            return false;
        };
        let known = self.globals.iter().rev().find(|(of, _)| of.is(globals));
        match known {
            Some(&(_, number)) => {
                self.out.get(number);
                true
            }
            None => false,
        }
    }
}
