//! What a pickle describes, as nodes that refer to each other by number: sharing is kept, nothing is run.
//!
//! Only plain data: what would need a class or a call is an error that says so. Every node comes from at least one byte of input and
//! refers to others no more often than there were bytes, so memory is in proportion to the input.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Error;
use crate::{Argument, Op, Opcode, Ops, int, text};

/// Number of a node.
pub(super) type Id = u32;

#[derive(Debug)]
pub(super) enum Node<'a> {
    None,
    Bool(bool),
    Int(i64),
    /// Little-endian two's complement of more than eight bytes.
    Long(&'a [u8]),
    Float(f64),
    Str(Cow<'a, str>),
    Bytes(&'a [u8]),
    /// Lists, tuples, sets.
    Items(Vec<Id>),
    Dict(Vec<(Id, Id)>),
}

#[derive(Debug)]
pub(super) struct Graph<'a> {
    nodes: Vec<Node<'a>>,
    root: Id,
}

impl<'a> Graph<'a> {
    pub(super) fn read(pickle: &'a [u8]) -> Result<Self, Error> {
        let mut builder = Builder::default();
        let mut ops = Ops::new(pickle);
        for op in ops.by_ref() {
            builder.take(op?)?;
        }
        if !ops.rest().is_empty() {
            return Err(Error::at("more bytes follow the pickle", ops.offset()));
        }
        match builder.stack[..] {
            [root] if builder.marks.is_empty() => Ok(Self {
                nodes: builder.nodes,
                root,
            }),
            _ => Err(Error::new(
                "the pickle does not end with exactly one object",
            )),
        }
    }

    pub(super) fn root(&self) -> Id {
        self.root
    }

    pub(super) fn node(&self, id: Id) -> &Node<'a> {
        &self.nodes[id as usize]
    }
}

#[derive(Default)]
struct Builder<'a> {
    nodes: Vec<Node<'a>>,
    stack: Vec<Id>,
    /// Heights of the stack where marks are.
    marks: Vec<usize>,
    /// Pickles number their entries from 0, mostly without gaps; whoever does not pays for a map.
    memo: Vec<Id>,
    sparse: HashMap<u64, Id>,
}

impl<'a> Builder<'a> {
    fn push(&mut self, node: Node<'a>) -> Result<(), Error> {
        let id =
            u32::try_from(self.nodes.len()).map_err(|_| Error::new("more than 2^32 objects"))?;
        self.nodes.push(node);
        self.stack.push(id);
        Ok(())
    }

    fn pop(&mut self, offset: u64) -> Result<Id, Error> {
        if self
            .marks
            .last()
            .is_some_and(|&mark| mark == self.stack.len())
        {
            return Err(Error::at(
                "an operation takes an object from below a mark",
                offset,
            ));
        }
        self.stack
            .pop()
            .ok_or_else(|| Error::at("the stack is empty", offset))
    }

    fn top(&self, offset: u64) -> Result<Id, Error> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.last() {
            Some(&id) if self.stack.len() > floor => Ok(id),
            _ => Err(Error::at("the stack is empty", offset)),
        }
    }

    /// Everything above the mark, which goes with it.
    fn above_mark(&mut self, offset: u64) -> Result<Vec<Id>, Error> {
        let mark = self
            .marks
            .pop()
            .ok_or_else(|| Error::at("no mark is on the stack", offset))?;
        Ok(self.stack.split_off(mark))
    }

    fn extend(&mut self, items: &[Id], offset: u64) -> Result<(), Error> {
        let id = self.top(offset)?;
        match &mut self.nodes[id as usize] {
            Node::Items(list) => {
                list.extend_from_slice(items);
                Ok(())
            }
            _ => Err(Error::at("items are added to what is no list", offset)),
        }
    }

    fn set_items(&mut self, items: &[Id], offset: u64) -> Result<(), Error> {
        let pairs = pairs(items, offset)?;
        let id = self.top(offset)?;
        match &mut self.nodes[id as usize] {
            Node::Dict(dict) => {
                dict.extend(pairs);
                Ok(())
            }
            _ => Err(Error::at("items are set in what is no dict", offset)),
        }
    }

    fn last(&mut self, count: usize, offset: u64) -> Result<Vec<Id>, Error> {
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(self.pop(offset)?);
        }
        items.reverse();
        Ok(items)
    }

    fn memoize(&mut self, index: u64, offset: u64) -> Result<(), Error> {
        let id = self.top(offset)?;
        if index == self.memo.len() as u64 {
            self.memo.push(id);
        } else if let Some(entry) = usize::try_from(index)
            .ok()
            .and_then(|index| self.memo.get_mut(index))
        {
            *entry = id;
        } else {
            self.sparse.insert(index, id);
        }
        Ok(())
    }

    fn recall(&mut self, index: u64, offset: u64) -> Result<(), Error> {
        let dense = usize::try_from(index)
            .ok()
            .and_then(|index| self.memo.get(index));
        let id = dense.or_else(|| self.sparse.get(&index)).copied();
        let id = id.ok_or_else(|| Error::at("a memo entry was never filled", offset))?;
        self.stack.push(id);
        Ok(())
    }

    fn take(&mut self, op: Op<'a>) -> Result<(), Error> {
        let Op {
            opcode,
            argument,
            offset,
        } = op;
        match opcode {
            Opcode::Proto | Opcode::Frame | Opcode::Stop => Ok(()),
            Opcode::Mark => {
                self.marks.push(self.stack.len());
                Ok(())
            }
            Opcode::Pop => {
                // A mark counts as an object here.
                if self
                    .marks
                    .last()
                    .is_some_and(|&mark| mark == self.stack.len())
                {
                    self.marks.pop();
                    return Ok(());
                }
                self.pop(offset).map(drop)
            }
            Opcode::PopMark => self.above_mark(offset).map(drop),
            Opcode::Dup => {
                let id = self.top(offset)?;
                self.stack.push(id);
                Ok(())
            }
            Opcode::EmptyList | Opcode::EmptySet | Opcode::EmptyTuple => {
                self.push(Node::Items(Vec::new()))
            }
            Opcode::EmptyDict => self.push(Node::Dict(Vec::new())),
            Opcode::List | Opcode::Tuple | Opcode::FrozenSet => {
                let items = self.above_mark(offset)?;
                self.push(Node::Items(items))
            }
            Opcode::Tuple1 | Opcode::Tuple2 | Opcode::Tuple3 => {
                let count = usize::from(opcode.byte() - Opcode::Tuple1.byte()) + 1;
                let items = self.last(count, offset)?;
                self.push(Node::Items(items))
            }
            Opcode::Dict => {
                let items = self.above_mark(offset)?;
                let pairs = pairs(&items, offset)?;
                self.push(Node::Dict(pairs))
            }
            Opcode::Append => {
                let item = self.pop(offset)?;
                self.extend(&[item], offset)
            }
            Opcode::Appends | Opcode::AddItems => {
                let items = self.above_mark(offset)?;
                self.extend(&items, offset)
            }
            Opcode::SetItem => {
                let pair = self.last(2, offset)?;
                self.set_items(&pair, offset)
            }
            Opcode::SetItems => {
                let items = self.above_mark(offset)?;
                self.set_items(&items, offset)
            }
            Opcode::Memoize => self.memoize((self.memo.len() + self.sparse.len()) as u64, offset),
            Opcode::Put | Opcode::BinPut | Opcode::LongBinPut => {
                self.memoize(index(argument, offset)?, offset)
            }
            Opcode::Get | Opcode::BinGet | Opcode::LongBinGet => {
                self.recall(index(argument, offset)?, offset)
            }
            _ => {
                let node = atom(opcode, argument, offset)?;
                self.push(node)
            }
        }
    }
}

fn pairs(items: &[Id], offset: u64) -> Result<Vec<(Id, Id)>, Error> {
    let pairs = items.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(Error::at("a key has no value", offset));
    }
    Ok(pairs.map(|pair| (pair[0], pair[1])).collect())
}

/// A memo number, from a line or from bytes.
fn index(argument: Argument<'_>, offset: u64) -> Result<u64, Error> {
    let index = match argument {
        Argument::Index(index) => Some(u64::from(index)),
        Argument::Line(line) => int::parse_line(line).and_then(|index| u64::try_from(index).ok()),
        _ => None,
    };
    index.ok_or_else(|| Error::at("a memo number is none", offset))
}

/// An object without parts.
fn atom<'a>(opcode: Opcode, argument: Argument<'a>, offset: u64) -> Result<Node<'a>, Error> {
    let not_utf8 = || Error::at("text is not UTF-8, or holds lone surrogates", offset);
    let no_number = || Error::at("a line is not a number", offset);
    Ok(match (opcode, argument) {
        (Opcode::None, _) => Node::None,
        (Opcode::NewTrue, _) | (Opcode::Int, Argument::Line(b"01")) => Node::Bool(true),
        (Opcode::NewFalse, _) | (Opcode::Int, Argument::Line(b"00")) => Node::Bool(false),
        (Opcode::BinInt | Opcode::BinInt1 | Opcode::BinInt2, Argument::Int(value)) => {
            Node::Int(value.into())
        }
        (Opcode::Int | Opcode::Long, Argument::Line(line)) => {
            let line = line.strip_suffix(b"L").unwrap_or(line);
            Node::Int(int::parse_line(line).ok_or_else(no_number)?)
        }
        (Opcode::Long1 | Opcode::Long4, Argument::Bytes(digits)) => {
            match int::from_le_bytes(digits) {
                Some(value) => Node::Int(value),
                None => Node::Long(digits),
            }
        }
        (Opcode::BinFloat, Argument::Float(value)) => Node::Float(value),
        (Opcode::Float, Argument::Line(line)) => {
            Node::Float(text::parse_float(line).ok_or_else(no_number)?)
        }
        (Opcode::Unicode, Argument::Line(line)) => {
            let decoded = text::decode_unicode_line(line).ok_or_else(not_utf8)?;
            Node::Str(
                String::from_utf8(decoded.into_owned())
                    .map_err(|_| not_utf8())?
                    .into(),
            )
        }
        (
            Opcode::ShortBinUnicode | Opcode::BinUnicode | Opcode::BinUnicode8,
            Argument::Bytes(bytes),
        ) => Node::Str(std::str::from_utf8(bytes).map_err(|_| not_utf8())?.into()),
        (
            Opcode::ShortBinBytes | Opcode::BinBytes | Opcode::BinBytes8 | Opcode::ByteArray8,
            Argument::Bytes(bytes),
        ) => Node::Bytes(bytes),
        // Python 2 made no difference between the two; most of what it wrote was text.
        (Opcode::ShortBinString | Opcode::BinString, Argument::Bytes(bytes)) => {
            match std::str::from_utf8(bytes) {
                Ok(text) => Node::Str(text.into()),
                Err(_) => Node::Bytes(bytes),
            }
        }
        (opcode, _) => {
            let message = format!(
                "{opcode} asks for more than plain data; classes and calls are not read here"
            );
            return Err(Error::at(&message, offset));
        }
    })
}
