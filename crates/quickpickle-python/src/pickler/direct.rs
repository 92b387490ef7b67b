//! The beginning of a function, written in one go where all of it is plain: its code, what tells where it comes from, its
//! names. What this writes is what the operations of [`super::script`] write one by one; it asks once, at the start, what
//! they ask each time: whether a frame may end here, whether something has interrupted the script, whether hooks have a
//! say.
//!
//! What must stay true: whatever is written here takes no Python code and no frame of the walk, so all that could has been
//! looked at before ([`CodeParts::bound`], [`Head::bound`]).

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use quickpickle_format::opcode::byte;

use crate::cloud::code::{self, CodeParts};
use crate::cloud::known::{self, Known};
use crate::cloud::wire::{Helper, Wire};
use crate::ffi::object::{Anchor, Obj, Quiet, quiet};
use crate::ffi::types::{Kind, classify};

use super::engine::Engine;
use super::leaves::Fresh;

/// Bytes that opcodes, keys and names of helpers take at most, but for those of cells.
const AROUND: usize = 1024;
/// Bytes for each cell.
const FOR_CELL: usize = 64;
/// The longest text that counts as a name.
const LONGEST: usize = 255;

/// How far a function has been written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(crate) enum Stage {
    /// Not at all.
    Nothing,
    /// It is made, and about to be given its state.
    Made,
    /// Its state is begun, up to its qualified name.
    Named,
    /// Up to its documentation.
    Documented,
    /// Up to its globals, of which none have been written.
    Closed,
}

/// A str that is written as a copy of itself: see [`super::script::Script::copy`].
#[derive(Clone, Copy)]
pub(crate) enum Text {
    /// Nothing else can be this copy.
    Own(Anchor),
    /// Python shares it.
    Shared(Anchor),
}

impl Text {
    /// A copy of a str; None where it is longer than a name. Whoever asks holds what is shared.
    pub(crate) fn copy_of<'py>(py: Python<'py>, text: Anchor) -> Option<Self> {
        let len = quiet(py, |q| {
            short(q, text).map(|utf8| (utf8.len(), utf8.first().copied()))
        });
        match len? {
            (0 | 1, _) => {}
            (2, Some(first)) if !first.is_ascii() => {}
            _ => return Some(Text::Own(text)),
        }
        // Strs of a single character that Python shares live for ever, or as long as the code that has them.
        let pinned = text.pin(py).cast_into::<pyo3::types::PyString>().ok()?;
        let copied = crate::ffi::build::copied_text(&pinned)?;
        copied
            .is(&pinned)
            .then(|| Text::Shared(Anchor::of(&copied)))
    }
}

/// The text of a str that is no longer than a name.
fn short<'q>(q: Quiet<'q>, text: Anchor) -> Option<&'q [u8]> {
    match classify(text.obj(q)) {
        Kind::Str(text) => text.utf8(q).filter(|utf8| utf8.len() <= LONGEST),
        _ => None,
    }
}

/// A function of which the beginning is to be written.
pub(crate) struct Head<'a> {
    /// The names of helpers.
    pub(crate) wire: &'static Wire,
    /// The function.
    pub(crate) function: Anchor,
    /// Its code.
    pub(crate) code: Anchor,
    /// What is written of that.
    pub(crate) parts: &'a CodeParts,
    /// What the name of its file is written as; None for the name itself.
    pub(crate) file: Option<Anchor>,
    /// The type of code objects, and the name that `types` has for it.
    pub(crate) code_type: (Anchor, Anchor),
    /// Its dict of globals.
    pub(crate) globals: &'a Bound<'a, PyAny>,
    /// Those of them that tell where it comes from: values of the keys `__package__`, `__name__`, `__path__` and `__file__`.
    pub(crate) origin: &'a [Option<Bound<'a, PyAny>>; 4],
    /// Keys of those.
    pub(crate) origin_keys: [Anchor; 4],
    /// How many cells it has, if it has any.
    pub(crate) cells: Option<usize>,
    /// `__name__`
    pub(crate) name: Anchor,
    /// `__qualname__`
    pub(crate) qualname: Anchor,
    /// `__annotations__`, if that is a dict; an empty one.
    pub(crate) annotations: Option<Anchor>,
    /// `__module__`
    pub(crate) module: Option<Anchor>,
    /// `__doc__`
    pub(crate) doc: Option<Anchor>,
    /// How far it may be written here.
    pub(crate) stage: Stage,
}

impl Head<'_> {
    /// Bytes that it takes at most; None where something in it is not plain.
    fn bound(&self, q: Quiet<'_>) -> Option<usize> {
        let mut bound = AROUND + self.parts.bound? + FOR_CELL * self.cells.unwrap_or_default();
        let is_plain = |value: Anchor| match classify(value.obj(q)) {
            Kind::None => true,
            _ => short(q, value).is_some(),
        };
        for value in self.origin.iter().flatten() {
            if !is_plain(Anchor::of(value)) {
                return None;
            }
            bound += LONGEST;
        }
        if !is_plain(self.name) || !is_plain(self.qualname) {
            return None;
        }
        Some(bound + 4 * LONGEST)
    }
}

impl Engine {
    /// Writes the beginning of a function; says how far.
    pub(crate) fn write_head(&mut self, py: Python<'_>, head: &Head<'_>) -> Stage {
        if self.out.protocol() < 4 || self.fast || self.flush_is_due || self.asks_hooks() {
            return Stage::Nothing;
        }
        let Some(known) = known::known(py) else {
            return Stage::Nothing;
        };
        let (Some(name), Some(qualname)) = (
            Text::copy_of(py, head.name),
            Text::copy_of(py, head.qualname),
        ) else {
            return Stage::Nothing;
        };
        quiet(py, |q| {
            let fits = head
                .bound(q)
                .is_some_and(|bound| self.out.has_frame_room(bound));
            if !fits || self.memo.get(head.code.obj(q)).is_some() {
                return Stage::Nothing;
            }
            let mut stage = head.stage;
            let is_plain = |value: Option<Anchor>| {
                value.is_none_or(|value| {
                    matches!(classify(value.obj(q)), Kind::None) || short(q, value).is_some()
                })
            };
            if stage > Stage::Named && !(is_plain(head.doc) && is_plain(head.module)) {
                stage = Stage::Named;
            }
            // Whatever its count of references: what holds an object may be reached by other ways.
            self.open += 1;
            let mut direct = Direct {
                engine: self,
                q,
                wire: head.wire,
                known,
            };
            direct.head(head, name, qualname, stage);
            self.open -= 1;
            stage
        })
    }

    /// Where the globals of a function are remembered.
    fn number_of_globals(&self, globals: &Bound<'_, PyAny>) -> Option<usize> {
        let known = self.globals.iter().rev().find(|(of, _)| of.is(globals));
        known.map(|&(_, number)| number)
    }
}

/// How code is written.
#[derive(Clone, Copy)]
pub(crate) struct Writing {
    /// What the name of its file is written as; None for the name itself.
    pub(crate) file: Option<Anchor>,
    /// The type of code objects, and the name that `types` has for it.
    code_type: (Anchor, Anchor),
}

/// Writes opcodes without asking anything but the memo.
pub(crate) struct Direct<'e, 'q> {
    engine: &'e mut Engine,
    q: Quiet<'q>,
    wire: &'static Wire,
    known: &'static Known,
}

impl<'q> Direct<'_, 'q> {
    fn head(&mut self, head: &Head<'_>, name: Text, qualname: Text, stage: Stage) {
        self.helper(Helper::MakeFunction);
        self.op(byte::MARK);
        let writing = Writing {
            file: head.file,
            code_type: head.code_type,
        };
        self.code(head.code, head.parts, writing);
        match self.engine.number_of_globals(head.globals) {
            Some(number) => self.engine.out.get(number),
            None => self.origin(head),
        }
        self.ops([byte::NONE, byte::NONE]);
        match head.cells {
            Some(count) => {
                if count > 3 {
                    self.op(byte::MARK);
                }
                for _ in 0..count {
                    self.helper(Helper::MakeEmptyCell);
                    self.numbered([byte::EMPTY_TUPLE, byte::REDUCE]);
                }
                self.close_tuple(count);
            }
            None => self.op(byte::NONE),
        }
        self.numbered([byte::TUPLE]);
        self.op(byte::REDUCE);
        self.remember(head.function);
        self.helper(Helper::FunctionSetstate);
        self.leaf_known(head.function);
        if stage < Stage::Named {
            return;
        }
        // Its attributes: none.
        self.numbered([byte::EMPTY_DICT]);
        self.numbered([byte::EMPTY_DICT]);
        self.op(byte::MARK);
        self.key::<0>();
        self.copy(name);
        self.key::<1>();
        self.copy(qualname);
        if stage < Stage::Documented {
            return;
        }
        self.key::<2>();
        match head.annotations {
            Some(annotations) => self.empty_dict(annotations),
            None => self.numbered([byte::EMPTY_DICT]),
        }
        self.key::<3>();
        self.op(byte::NONE);
        self.key::<4>();
        self.op(byte::NONE);
        self.key::<5>();
        self.optional(head.module);
        self.key::<6>();
        self.optional(head.doc);
        if stage < Stage::Closed {
            return;
        }
        self.key::<7>();
        self.op(byte::NONE);
        self.key::<8>();
        self.numbered([byte::EMPTY_LIST]);
        self.key::<9>();
        self.numbered([byte::EMPTY_DICT]);
    }

    /// The globals that a function begins with.
    fn origin(&mut self, head: &Head<'_>) {
        let number = self.engine.memo.next();
        let globals = head.globals.clone().unbind();
        self.engine.globals.push((globals, number));
        self.numbered([byte::EMPTY_DICT]);
        let count = head.origin.iter().flatten().count();
        if count > 1 {
            self.op(byte::MARK);
        }
        for (key, value) in head.origin_keys.iter().zip(head.origin) {
            if let Some(value) = value {
                self.leaf(*key);
                self.leaf(Anchor::of(value));
            }
        }
        match count {
            0 => {}
            1 => self.op(byte::SETITEM),
            _ => self.op(byte::SETITEMS),
        }
    }

    /// An opcode.
    #[inline(always)]
    pub(crate) fn op(&mut self, code: u8) {
        self.engine.out.opcode(code);
    }

    /// Several opcodes.
    #[inline(always)]
    pub(crate) fn ops<const N: usize>(&mut self, codes: [u8; N]) {
        self.engine.out.opcodes(codes);
    }

    /// Opcodes whose result takes a number, though nothing is remembered under it.
    #[inline(always)]
    pub(crate) fn numbered<const N: usize>(&mut self, codes: [u8; N]) {
        self.engine.out.opcodes(codes);
        self.op(byte::MEMOIZE);
        self.engine.memo.skip();
    }

    /// An int.
    #[inline(always)]
    pub(crate) fn int(&mut self, value: i32) {
        self.engine.out.int(value);
    }

    /// The end of a tuple that is no object.
    #[inline(always)]
    pub(crate) fn close_tuple(&mut self, len: usize) {
        match len {
            0 => self.op(byte::EMPTY_TUPLE),
            1..=3 => self.numbered([[byte::TUPLE1, byte::TUPLE2, byte::TUPLE3][len - 1]]),
            _ => self.numbered([byte::TUPLE]),
        }
    }

    /// A key that functions travel with.
    #[inline(always)]
    fn key<const AT: usize>(&mut self) {
        let obj = Anchor::of_owned(self.known.keys[AT].as_any()).obj(self.q);
        self.fixed(obj, known::KEYS[AT].as_bytes());
    }

    /// A str of known text, no longer than a name.
    #[inline(always)]
    fn fixed(&mut self, obj: Obj<'q>, utf8: &[u8]) {
        match self.engine.memo.look(obj) {
            Ok(number) => self.engine.out.get(number),
            Err(vacant) => {
                self.engine.out.short_unicode_memoized(utf8);
                self.engine.memo.put_at(vacant, obj);
            }
        }
    }

    /// A helper.
    #[inline(always)]
    pub(crate) fn helper(&mut self, helper: Helper) {
        let key = Anchor::of_owned(self.wire.key(helper)).obj(self.q);
        match self.engine.memo.get(key) {
            Some(number) => self.engine.out.get(number),
            None => self.new_helper(helper, key),
        }
    }

    #[inline(never)]
    fn new_helper(&mut self, helper: Helper, key: Obj<'q>) {
        let wire = self.wire;
        let module = Anchor::of_owned(&wire.module).obj(self.q);
        self.fixed(module, wire.module_text.as_bytes());
        let name = Anchor::of_owned(wire.name(helper)).obj(self.q);
        self.fixed(name, helper.text().as_bytes());
        self.op(byte::STACK_GLOBAL);
        self.engine.remember(key, Fresh::Shared);
    }

    /// A class that `types` names.
    #[inline(always)]
    pub(crate) fn builtin_type(&mut self, class: Anchor, name: Anchor) {
        if let Some(number) = self.engine.memo.get(class.obj(self.q)) {
            return self.engine.out.get(number);
        }
        self.helper(Helper::BuiltinType);
        self.leaf(name);
        self.numbered([byte::TUPLE1]);
        self.op(byte::REDUCE);
        self.remember(class);
    }

    /// A code object that has not been written.
    pub(crate) fn code(&mut self, code: Anchor, parts: &CodeParts, writing: Writing) {
        self.builtin_type(writing.code_type.0, writing.code_type.1);
        self.op(byte::MARK);
        code::write_directly(self, parts, writing);
        self.numbered([byte::TUPLE]);
        self.op(byte::REDUCE);
        self.remember(code);
    }

    /// The constants of code.
    #[inline(always)]
    pub(crate) fn consts(&mut self, consts: Anchor, parts: &CodeParts, writing: Writing) {
        if parts.inner.is_empty() {
            return self.tuple(consts);
        }
        let obj = consts.obj(self.q);
        let Kind::Tuple(items) = classify(obj) else {
            return;
        };
        if let Some(number) = self.engine.memo.get(obj) {
            return self.engine.out.get(number);
        }
        let len = items.len();
        if len > 3 {
            self.op(byte::MARK);
        }
        for at in 0..len {
            let Some(item) = items.get(at) else {
                continue;
            };
            let inner = parts
                .inner
                .iter()
                .find(|(code, _)| code.as_ptr() as usize == item.address());
            match inner {
                None => self.tuple(item.anchor()),
                Some((_, parts)) => match self.engine.memo.get(item) {
                    Some(number) => self.engine.out.get(number),
                    None => self.code(item.anchor(), parts, writing),
                },
            }
        }
        self.end_tuple(obj, len);
    }

    fn end_tuple(&mut self, obj: Obj<'q>, len: usize) {
        self.op(match len {
            1..=3 => [byte::TUPLE1, byte::TUPLE2, byte::TUPLE3][len - 1],
            _ => byte::TUPLE,
        });
        self.engine.remember(obj, Fresh::Shared);
    }

    fn empty_dict(&mut self, dict: Anchor) {
        match self.engine.memo.get(dict.obj(self.q)) {
            Some(number) => self.engine.out.get(number),
            None => {
                self.op(byte::EMPTY_DICT);
                self.remember(dict);
            }
        }
    }

    /// An object that holds no others.
    #[inline(always)]
    pub(crate) fn leaf(&mut self, leaf: Anchor) {
        let obj = leaf.obj(self.q);
        let written = self.engine.leaf(self.q, obj, &classify(obj));
        debug_assert!(written);
    }

    #[inline(always)]
    fn optional(&mut self, leaf: Option<Anchor>) {
        match leaf {
            Some(leaf) => self.leaf(leaf),
            None => self.op(byte::NONE),
        }
    }

    /// An object that has been written.
    fn leaf_known(&mut self, obj: Anchor) {
        if let Some(number) = self.engine.memo.get(obj.obj(self.q)) {
            self.engine.out.get(number);
        }
    }

    /// A copy of a str.
    #[inline(always)]
    pub(crate) fn copy(&mut self, text: Text) {
        match text {
            Text::Own(text) => self.text(text),
            Text::Shared(text) => self.leaf(text),
        }
    }

    /// A str that nothing else can be.
    #[inline(always)]
    pub(crate) fn text(&mut self, text: Anchor) {
        if let Kind::Str(text) = classify(text.obj(self.q))
            && let Some(utf8) = text.utf8(self.q)
        {
            self.engine.out.short_unicode_memoized(utf8);
            self.engine.memo.skip();
        }
    }

    /// A tuple of strs, as a new one with the same items.
    #[inline(always)]
    pub(crate) fn copy_tuple(&mut self, tuple: Anchor) {
        let Kind::Tuple(tuple) = classify(tuple.obj(self.q)) else {
            return;
        };
        let len = tuple.len();
        if len > 3 {
            self.op(byte::MARK);
        }
        for at in 0..len {
            if let Some(item) = tuple.get(at) {
                self.leaf(item.anchor());
            }
        }
        self.close_tuple(len);
    }

    /// A tuple of leaves and such tuples.
    pub(crate) fn tuple(&mut self, tuple: Anchor) {
        let obj = tuple.obj(self.q);
        let Kind::Tuple(items) = classify(obj) else {
            return self.leaf(tuple);
        };
        let len = items.len();
        if len == 0 {
            return self.op(byte::EMPTY_TUPLE);
        }
        if let Some(number) = self.engine.memo.get(obj) {
            return self.engine.out.get(number);
        }
        if len > 3 {
            self.op(byte::MARK);
        }
        for at in 0..len {
            if let Some(item) = items.get(at) {
                self.tuple(item.anchor());
            }
        }
        self.end_tuple(obj, len);
    }

    /// Remembers an object just built.
    #[inline(always)]
    pub(crate) fn remember(&mut self, obj: Anchor) {
        self.engine.remember(obj.obj(self.q), Fresh::Shared);
    }
}

/// Bytes that constants take at most; None where they are not plain.
pub(crate) fn bound(py: Python<'_>, consts: &Bound<'_, PyTuple>) -> Option<usize> {
    fn of<'q>(q: Quiet<'q>, obj: Obj<'q>, depth: usize) -> Option<usize> {
        Some(match classify(obj) {
            Kind::None | Kind::Bool(_) | Kind::Float(_) => 9,
            Kind::Int(int) => {
                int.small()?;
                5
            }
            Kind::Str(text) => text.utf8(q)?.len() + 6,
            Kind::Bytes(bytes) => bytes.as_slice(q).len() + 6,
            Kind::Tuple(tuple) if depth < 8 => {
                let mut sum = 4;
                for at in 0..tuple.len() {
                    sum += of(q, tuple.get(at)?, depth + 1)?;
                }
                sum
            }
            _ => return None,
        })
    }
    let anchor = Anchor::of(consts.as_any());
    quiet(py, |q| of(q, anchor.obj(q), 0))
}
