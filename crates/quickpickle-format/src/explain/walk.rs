//! From operations to the tree: each object becomes a part of what holds it as soon as that is known.

use super::names::{Makes, Names};
use super::repeats::{Repeat, Repeats, WORTH};
use super::tree::{Kind, Role, Tree};
use super::{Explanation, Node, Repeated};
use crate::error::Error;
use crate::memo::Memo;
use crate::op::{Argument, Op, Ops};
use crate::opcode::Opcode as O;

/// Operations between two calls of the progress function.
const STEP: u32 = 1 << 20;
/// Shared and duplicate objects that are reported.
const REPORTED: usize = 50;
/// Arguments of a call that have positions of their own.
const POSITIONS: usize = 20;

/// An object on the stack.
#[derive(Debug, Clone, Copy)]
struct Item<'a> {
    kind: Kind<'a>,
    /// Its node, once it has parts.
    part: Option<u32>,
    bytes: u64,
    offset: u64,
    text: Option<&'a [u8]>,
    hash: u64,
    /// Its memo number, if that is fetched anywhere.
    memo: Option<u64>,
}

pub(super) struct Walk<'a> {
    data: &'a [u8],
    /// How often each memo number is fetched.
    fetched: Memo<u32>,
    memo: Memo<Item<'a>>,
    filled: Memo<()>,
    stack: Vec<Item<'a>>,
    marks: Vec<usize>,
    tree: Tree<'a>,
    names: Names,
    /// What the latest tuple held: the arguments of the call that follows.
    arguments: Vec<(Option<&'a [u8]>, Kind<'a>)>,
    shared: Repeats<'a>,
    equal: Repeats<'a>,
    objects: u64,
}

impl<'a> Walk<'a> {
    pub(super) fn new(data: &'a [u8]) -> Result<Self, Error> {
        let mut fetched = Memo::<u32>::new();
        for op in Ops::new(data) {
            let op = op?;
            if matches!(op.opcode, O::BinGet | O::LongBinGet | O::Get)
                && let Some(index) = op.memo_index()?
            {
                let count = fetched.get(index).unwrap_or(0);
                fetched.insert(index, count.saturating_add(1));
            }
        }
        Ok(Self {
            data,
            fetched,
            memo: Memo::new(),
            filled: Memo::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            tree: Tree::default(),
            names: Names::default(),
            arguments: Vec::new(),
            shared: Repeats::default(),
            equal: Repeats::default(),
            objects: 0,
        })
    }

    pub(super) fn run<E: From<Error>>(
        mut self,
        progress: &mut impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Explanation, E> {
        let mut ops = Ops::new(self.data);
        let mut until = STEP;
        while let Some(op) = ops.next() {
            let op = op?;
            self.take(&op, ops.offset() - op.offset)?;
            until -= 1;
            if until == 0 {
                until = STEP;
                progress(op.offset)?;
            }
        }
        Ok(self.finish(ops.offset()))
    }

    fn take(&mut self, op: &Op<'a>, size: u64) -> Result<(), Error> {
        let at = op.offset;
        match op.opcode {
            O::Proto | O::Frame | O::Stop => {}
            O::Mark => self.marks.push(self.stack.len()),
            O::Pop => self.drop_one(),
            O::PopMark => {
                let start = self.mark();
                self.stack.truncate(start);
            }
            O::Dup => {
                let top = self.stack.last().copied();
                self.push(Kind::Reference, size, at, top.and_then(|top| top.text), 0);
            }
            O::Memoize => {
                let index = self.filled.len();
                self.store(index, size);
            }
            O::Put | O::BinPut | O::LongBinPut => {
                let index = op.memo_index()?.unwrap_or_default();
                self.store(index, size);
            }
            O::Get | O::BinGet | O::LongBinGet => {
                self.fetch(op.memo_index()?.unwrap_or_default(), size, at)
            }
            O::Global => {
                if let Argument::Lines(module, name) = op.argument {
                    let number = self.names.number(module, name, at);
                    self.push(Kind::Global(number), size, at, None, u64::from(number));
                }
            }
            O::StackGlobal => {
                let (name, module) = (self.pop(), self.pop());
                let number =
                    self.names
                        .number(module.text.unwrap_or(b"?"), name.text.unwrap_or(b"?"), at);
                let bytes = size + name.bytes + module.bytes;
                self.push(
                    Kind::Global(number),
                    bytes,
                    module.offset.min(at),
                    None,
                    u64::from(number),
                );
            }
            O::Tuple1 => self.collect(1, "tuple", size, at),
            O::Tuple2 => self.collect(2, "tuple", size, at),
            O::Tuple3 => self.collect(3, "tuple", size, at),
            O::Tuple => self.collect_from_mark("tuple", size, at),
            O::List => self.collect_from_mark("list", size, at),
            O::FrozenSet => self.collect_from_mark("frozenset", size, at),
            O::Dict => {
                let start = self.mark();
                let items = self.stack.split_off(start);
                self.push(Kind::Plain("dict"), size + 1, at, None, 3);
                self.add_pairs(&items);
            }
            O::Append => {
                let item = self.pop();
                self.grow(size);
                self.add(Role::Item, &item);
            }
            O::Appends | O::AddItems => {
                let start = self.mark();
                let items = self.stack.split_off(start);
                self.grow(size + 1);
                for item in &items {
                    self.add(Role::Item, item);
                }
            }
            O::SetItem => {
                let start = self.stack.len().saturating_sub(2);
                let items = self.stack.split_off(start);
                self.grow(size);
                self.add_pairs(&items);
            }
            O::SetItems => {
                let start = self.mark();
                let items = self.stack.split_off(start);
                self.grow(size + 1);
                self.add_pairs(&items);
            }
            O::Reduce | O::NewObj => {
                let arguments = self.pop();
                let callable = self.pop();
                self.call(&callable, &[arguments], size, at);
            }
            O::NewObjEx => {
                let keywords = self.pop();
                let arguments = self.pop();
                let callable = self.pop();
                self.call(&callable, &[arguments, keywords], size, at);
            }
            O::Inst => {
                if let Argument::Lines(module, name) = op.argument {
                    let number = self.names.number(module, name, at);
                    let start = self.mark();
                    let items = self.stack.split_off(start);
                    let class = item(Kind::Global(number), 0, at, None, u64::from(number));
                    self.call(&class, &items, size + 1, at);
                }
            }
            O::Obj => {
                let start = self.mark();
                let items = self.stack.split_off(start);
                match items.split_first() {
                    Some((class, items)) => self.call(class, items, size + 1, at),
                    None => self.push(Kind::Plain("object"), size, at, None, 0),
                }
            }
            O::Build => {
                let state = self.pop();
                self.grow(size);
                self.add_state(&state);
            }
            O::BinPersId => {
                let id = self.pop();
                self.push(
                    Kind::Plain("persistent object"),
                    size,
                    id.offset.min(at),
                    None,
                    5,
                );
                self.add(Role::Arguments, &id);
            }
            O::ReadonlyBuffer => self.grow(size),
            _ => self.leaf(op, size),
        }
        Ok(())
    }

    fn leaf(&mut self, op: &Op<'a>, size: u64) {
        let (kind, text, hash) = match op.argument {
            Argument::Bytes(payload) => (payload_kind(op.opcode), Some(payload), hash(payload)),
            Argument::Line(line) => (payload_kind(op.opcode), Some(line), hash(line)),
            Argument::Int(value) => ("int", None, value as u64),
            Argument::Float(value) => ("float", None, value.to_bits()),
            _ => (payload_kind(op.opcode), None, u64::from(op.opcode.byte())),
        };
        let text = text.filter(|_| matches!(kind, "str" | "str of Python 2"));
        self.push(
            Kind::Plain(kind),
            size,
            op.offset,
            text,
            mix(hash, kind.len() as u64),
        );
    }

    fn push(&mut self, kind: Kind<'a>, bytes: u64, offset: u64, text: Option<&'a [u8]>, hash: u64) {
        self.objects += u64::from(kind != Kind::Reference);
        self.stack.push(item(kind, bytes, offset, text, hash));
    }

    fn pop(&mut self) -> Item<'a> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() > floor
            && let Some(top) = self.stack.pop()
        {
            return top;
        }
        item(Kind::Plain("nothing"), 0, u64::MAX, None, 0)
    }

    fn mark(&mut self) -> usize {
        self.marks.pop().unwrap_or(0).min(self.stack.len())
    }

    /// What is dropped completed the object below it, or was for nothing.
    fn drop_one(&mut self) {
        if self.marks.last() == Some(&self.stack.len()) {
            self.marks.pop();
            return;
        }
        if let Some(dropped) = self.stack.pop()
            && let Kind::Made(number) = dropped.kind
            && self.names.all[number as usize].1 == Makes::State
        {
            self.add(Role::State, &dropped);
        }
    }

    /// The object on top has taken more bytes.
    fn grow(&mut self, bytes: u64) {
        if let Some(top) = self.stack.last_mut() {
            top.bytes += bytes;
        }
    }

    fn store(&mut self, index: u64, size: u64) {
        self.filled.insert(index, ());
        self.grow(size);
        if self.fetched.get(index).is_some()
            && let Some(top) = self.stack.last_mut()
        {
            top.memo = Some(index);
            self.memo.insert(index, *top);
        }
    }

    fn fetch(&mut self, index: u64, size: u64, at: u64) {
        let found = self.memo.get(index);
        // Globals are named again by this; they are no objects of the pickle.
        let kind = match found {
            Some(Item {
                kind: Kind::Global(number),
                ..
            }) => {
                self.names.all[number as usize].0.count += 1;
                Kind::Global(number)
            }
            Some(Item {
                kind: kind @ (Kind::Code(_) | Kind::Made(_)),
                text: Some(_),
                ..
            }) => kind,
            _ => Kind::Reference,
        };
        let text = found.and_then(|item| item.text);
        self.stack.push(item(kind, size, at, text, mix(index, 7)));
    }

    /// Makes an object a part of the one on top.
    fn add(&mut self, role: Role<'a>, child: &Item<'a>) {
        self.note_repeats(child);
        let Some(top) = self.stack.last_mut() else {
            return;
        };
        top.bytes += child.bytes;
        top.hash = mix(top.hash, child.hash);
        let parent = match top.part {
            Some(parent) => parent,
            None => {
                let made = self.tree.make(top.kind, 0, top.offset);
                top.part = Some(made);
                made
            }
        };
        match child.part {
            Some(part) => {
                self.settle(part, child);
                self.tree.attach(parent, role, part);
            }
            None => self
                .tree
                .attach_leaf(parent, role, child.kind, child.bytes, child.offset),
        }
    }

    /// A node gets the bytes of its object, which are known only now.
    fn settle(&mut self, part: u32, item: &Item<'a>) {
        let part = self.tree.part_mut(part);
        part.kind = item.kind;
        part.bytes = item.bytes;
        part.largest = item.bytes;
        part.largest_offset = item.offset;
    }

    fn note_repeats(&mut self, child: &Item<'a>) {
        if child.kind == Kind::Reference || child.bytes < WORTH {
            return;
        }
        let repeat = Repeat {
            kind: child.kind,
            bytes: child.bytes,
            count: 1,
            offset: child.offset,
        };
        if let Some(index) = child.memo {
            let count = u64::from(self.fetched.get(index).unwrap_or(0)) + 1;
            self.shared.add(index, Repeat { count, ..repeat });
        }
        self.equal.add(child.hash, repeat);
    }

    fn add_pairs(&mut self, items: &[Item<'a>]) {
        for pair in items.chunks_exact(2) {
            self.add(Role::Keys, &pair[0]);
            let role = pair[0]
                .text
                .filter(|text| text.len() <= 100)
                .map_or(Role::Value, Role::Key);
            self.add(role, &pair[1]);
        }
    }

    /// A state that is a dict becomes attributes.
    fn add_state(&mut self, state: &Item<'a>) {
        let (Kind::Plain("dict"), Some(part)) = (state.kind, state.part) else {
            return self.add(Role::State, state);
        };
        for &child in &self.tree.part(part).children.clone() {
            if let Role::Key(name) = self.tree.part(child).role {
                self.tree.part_mut(child).role = Role::Attribute(name);
            }
        }
        self.add(Role::State, state);
    }

    fn collect_from_mark(&mut self, kind: &'static str, size: u64, at: u64) {
        let start = self.mark();
        self.collect(self.stack.len() - start, kind, size + 1, at);
    }

    fn collect(&mut self, count: usize, kind: &'static str, size: u64, at: u64) {
        let start = self.stack.len().saturating_sub(count);
        let items = self.stack.split_off(start);
        let offset = items.first().map_or(at, |first| first.offset);
        self.push(Kind::Plain(kind), size, offset, None, kind.len() as u64);
        let positions = kind == "tuple" && items.len() <= POSITIONS;
        if positions {
            self.arguments.clear();
            self.arguments
                .extend(items.iter().map(|item| (item.text, item.kind)));
        }
        for (at, item) in items.iter().enumerate() {
            let role = if positions {
                Role::Position(at as u8)
            } else {
                Role::Item
            };
            self.add(role, item);
        }
    }

    fn call(&mut self, callable: &Item<'a>, arguments: &[Item<'a>], size: u64, at: u64) {
        let argument = |at: usize| self.arguments.get(at).copied();
        let text = |at: usize| argument(at).and_then(|(text, _)| text).unwrap_or(b"?");
        let (kind, label) = match callable.kind {
            Kind::Global(number) => {
                self.names.all[number as usize].0.calls += 1;
                match self.names.all[number as usize].1 {
                    Makes::Function => {
                        let name = match argument(0) {
                            Some((_, Kind::Code(name))) => name,
                            _ => b"?",
                        };
                        (Kind::Function(name), None)
                    }
                    Makes::Class => (Kind::Class(text(1)), Some(text(1))),
                    Makes::Cell => (Kind::Cell, None),
                    Makes::Type => (Kind::Made(number), argument(0).and_then(|(text, _)| text)),
                    Makes::Object | Makes::State => (Kind::Made(number), None),
                }
            }
            // From 3.11 on the qualified name follows the name.
            Kind::Made(_) if callable.text == Some(b"CodeType") => match argument(12) {
                Some((Some(qualified), _)) => (Kind::Code(qualified), None),
                _ => (Kind::Code(text(11)), None),
            },
            Kind::Class(name) => (Kind::Instance(name), None),
            Kind::Reference => match callable.text {
                Some(name) => (Kind::Instance(name), None),
                None => (Kind::Plain("object"), None),
            },
            _ => (Kind::Plain("object"), None),
        };
        let offset = callable.offset.min(at);
        self.push(kind, size, offset, label, 11);
        self.add(Role::Callable, callable);
        for item in arguments {
            // Empty arguments say nothing.
            if item.part.is_some() {
                self.add(Role::Arguments, item);
            } else {
                self.grow(item.bytes);
            }
        }
    }

    fn finish(mut self, bytes: u64) -> Explanation {
        let root = self
            .stack
            .pop()
            .unwrap_or(item(Kind::Plain("nothing"), 0, 0, None, 0));
        let part = match root.part {
            Some(part) => {
                self.settle(part, &root);
                part
            }
            None => self.tree.make(root.kind, root.bytes, root.offset),
        };
        let repeated = |found: Vec<Repeat<'a>>| {
            found
                .into_iter()
                .map(|found| Repeated {
                    kind: shown(found.kind, &self.names),
                    bytes: found.bytes,
                    count: found.count,
                    offset: found.offset,
                })
                .collect()
        };
        let (shared, duplicates) = (
            repeated(std::mem::take(&mut self.shared).most(REPORTED)),
            repeated(std::mem::take(&mut self.equal).most(REPORTED)),
        );
        let root = node(&self.tree, &self.names, part);
        let mut globals: Vec<_> = self.names.all.into_iter().map(|(named, _)| named).collect();
        globals.sort_by_key(|named| (std::cmp::Reverse(named.count), named.offset));
        Explanation {
            bytes,
            objects: self.objects,
            root,
            globals,
            shared,
            duplicates,
        }
    }
}

fn item<'a>(
    kind: Kind<'a>,
    bytes: u64,
    offset: u64,
    text: Option<&'a [u8]>,
    hash: u64,
) -> Item<'a> {
    Item {
        kind,
        part: None,
        bytes,
        offset,
        text,
        hash,
        memo: None,
    }
}

fn payload_kind(opcode: O) -> &'static str {
    match opcode {
        O::None => "None",
        O::NewTrue | O::NewFalse => "bool",
        O::Int | O::Long | O::Long1 | O::Long4 => "int",
        O::Float => "float",
        O::ShortBinUnicode | O::BinUnicode | O::BinUnicode8 | O::Unicode => "str",
        O::String | O::BinString | O::ShortBinString => "str of Python 2",
        O::ShortBinBytes | O::BinBytes | O::BinBytes8 => "bytes",
        O::ByteArray8 => "bytearray",
        O::EmptyTuple => "tuple",
        O::EmptyList => "list",
        O::EmptyDict => "dict",
        O::EmptySet => "set",
        O::PersId => "persistent object",
        O::NextBuffer => "out-of-band buffer",
        O::Ext1 | O::Ext2 | O::Ext4 => "extension",
        _ => "object",
    }
}

/// A node of the tree for others to read.
fn node(tree: &Tree<'_>, names: &Names, id: u32) -> Node {
    let part = tree.part(id);
    let mut children: Vec<_> = part
        .children
        .iter()
        .map(|&child| node(tree, names, child))
        .collect();
    children.sort_by_key(|child| (std::cmp::Reverse(child.bytes), child.offset));
    let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    Node {
        role: match part.role {
            Role::Root => String::new(),
            Role::Item => "[*]".to_owned(),
            Role::Key(key) => format!("[{:?}]", text(key)),
            Role::Attribute(name) => format!(".{}", text(name)),
            Role::Value => "[?]".to_owned(),
            Role::Keys => "keys".to_owned(),
            Role::Position(at) => format!("[{at}]"),
            Role::Arguments => "arguments".to_owned(),
            Role::Callable => "callable".to_owned(),
            Role::State => "state".to_owned(),
            Role::Other => "others".to_owned(),
        },
        kind: shown(part.kind, names),
        count: part.count,
        bytes: part.bytes,
        offset: part.offset,
        largest: part.largest,
        largest_offset: part.largest_offset,
        by_value: matches!(
            part.kind,
            Kind::Function(_) | Kind::Class(_) | Kind::Code(_)
        ),
        children,
    }
}

fn shown(kind: Kind<'_>, names: &Names) -> String {
    let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    match kind {
        Kind::Plain(name) => name.to_owned(),
        Kind::Made(number) => names.shown(number),
        Kind::Global(number) => format!("global {}", names.shown(number)),
        Kind::Reference => "reference".to_owned(),
        Kind::Function(name) => format!("function {}", text(name)),
        Kind::Class(name) => format!("class {}", text(name)),
        Kind::Instance(name) => format!("instance of {}", text(name)),
        Kind::Code(name) => format!("code of {}", text(name)),
        Kind::Cell => "closure cell".to_owned(),
    }
}

fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95)
}

/// Fast rather than strong: who makes two objects look equal on purpose gains a wrong line in a report.
fn hash(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let mut hash = bytes.len() as u64;
    for word in &mut words {
        hash = mix(
            hash,
            u64::from_le_bytes(word.try_into().unwrap_or_default()),
        );
    }
    words
        .remainder()
        .iter()
        .fold(hash, |hash, &byte| mix(hash, byte.into()))
}
