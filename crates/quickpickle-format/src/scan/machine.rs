//! The machine of abstract values that a scan runs: what is on the stack and in the memo, as far as it can be named.
//!
//! It follows C's unpickler in everything that loads, and is lenient where that would stop. Values that say nothing about names are
//! one and the same; memory is a few words for each object of the pickle's stack and memo.

use std::borrow::Cow;
use std::collections::HashMap;

use super::inline_array::Arrays;
use super::{Finding, GlobalUse, Report, Rule, Verdict, policy};
use crate::error::{Error, ErrorKind};
use crate::int;
use crate::memo::Memo;
use crate::op::{Argument, Op, Ops};
use crate::opcode::Opcode;
use crate::text;

/// Pickles inside of pickles that are looked into.
const NESTING: u32 = 4;
/// Longest tuple whose items are known.
const TUPLE: usize = 8;
/// Latest tuples whose items are kept; older ones are opaque, and calls with those are judged as such.
const TUPLES: usize = 1 << 14;
/// What joblib puts in the place of an array.
const WRAPPER: &str = "NumpyArrayWrapper";
/// Findings that are kept apart; beyond, only the worst verdict is.
const FINDINGS: usize = 10_000;

/// What is known about an object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    /// Nothing that matters.
    Other,
    /// Text as the pickle has it.
    Text(&'a [u8]),
    /// Text that had escapes, by number.
    Decoded(u32),
    Int(i64),
    /// A global by number.
    Global(u32),
    /// A module, by number of a global without name.
    Module(u32),
    /// What a call of this global returned.
    Result(u32),
    /// A tuple with known items.
    Tuple(u32),
    /// What an extension code stands for.
    Extension,
}

/// A global with its name, and the verdict on it.
#[derive(Debug, Clone)]
struct Global {
    module: String,
    name: String,
    verdict: Verdict,
    offset: u64,
    count: u64,
    calls: u64,
}

/// A scan under way.
#[derive(Debug)]
pub struct Scanner<'a> {
    data: &'a [u8],
    depth: u32,
    stack: Vec<Value<'a>>,
    marks: Vec<usize>,
    memo: Memo<Value<'a>>,
    /// A ring; the number of a tuple counts all there ever were.
    tuples: Vec<[Value<'a>; TUPLE]>,
    next_tuple: u32,
    decoded: Vec<Vec<u8>>,
    globals: Vec<Global>,
    by_name: HashMap<String, HashMap<String, u32>>,
    findings: Vec<Finding>,
    seen: HashMap<(Rule, String), usize>,
    worst: Verdict,
    arrays: Arrays,
    operations: u64,
}

impl<'a> Scanner<'a> {
    /// A scan of the pickles at the start of `data`, `depth` pickles deep inside of others.
    #[must_use]
    pub fn new(data: &'a [u8], depth: u32) -> Self {
        Self {
            data,
            depth,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Memo::new(),
            tuples: Vec::new(),
            next_tuple: 0,
            decoded: Vec::new(),
            globals: Vec::new(),
            by_name: HashMap::new(),
            findings: Vec::new(),
            seen: HashMap::new(),
            worst: Verdict::Ok,
            arrays: Arrays::default(),
            operations: 0,
        }
    }

    /// Scans to the end of the last pickle that can be read.
    #[must_use]
    pub fn run(mut self) -> Report {
        let (mut start, mut pickles, mut error) = (0, 0, None);
        while start < self.data.len() || pickles == 0 {
            self.stack.clear();
            self.marks.clear();
            self.memo = Memo::new();
            let before = self.operations;
            match self.pickle(start) {
                Ok(end) => {
                    pickles += 1;
                    start = end;
                }
                Err(found) => {
                    // Behind a complete pickle there may be anything; it is a broken pickle only once it did something.
                    if pickles == 0 {
                        error = Some(found);
                    } else if self.operations > before + 8 {
                        let message = format!("a broken pickle follows: {}", found.kind);
                        self.find(Verdict::Ok, Rule::Malformed, found.offset, message);
                    }
                    break;
                }
            }
        }
        self.findings
            .sort_by_key(|finding| (std::cmp::Reverse(finding.verdict), finding.offset));
        Report {
            verdict: self.worst,
            findings: self.findings,
            globals: self
                .globals
                .into_iter()
                .filter(|global| !global.name.is_empty())
                .map(|global| GlobalUse {
                    module: global.module,
                    name: global.name,
                    verdict: global.verdict,
                    offset: global.offset,
                    count: global.count,
                    calls: global.calls,
                })
                .collect(),
            pickles,
            operations: self.operations,
            end: start as u64,
            error,
        }
    }

    /// One pickle; answers where it ends.
    fn pickle(&mut self, mut start: usize) -> Result<usize, Error> {
        // Pickles that stand inside this one where an array is stored as such.
        let mut outer = Vec::new();
        'resume: loop {
            let mut ops = Ops::new(&self.data[start..]);
            let base = start as u64;
            while let Some(op) = ops.next() {
                let mut op = op.map_err(|error| Error::new(error.kind, error.offset + base))?;
                op.offset += base;
                self.operations += 1;
                self.take(&op);
                if let Some(skip) = self.arrays.take_skip(ops.rest()) {
                    start = self.data.len() - ops.rest().len() + skip.bytes;
                    if skip.pickle {
                        // It has a stack and a memo of its own.
                        outer.push((
                            std::mem::take(&mut self.stack),
                            std::mem::take(&mut self.marks),
                            std::mem::take(&mut self.memo),
                        ));
                    }
                    continue 'resume;
                }
            }
            start = self.data.len() - ops.rest().len();
            let Some((stack, marks, memo)) = outer.pop() else {
                return Ok(start);
            };
            (self.stack, self.marks, self.memo) = (stack, marks, memo);
        }
    }

    fn take(&mut self, op: &Op<'a>) {
        use Opcode as O;
        match op.opcode {
            O::Proto | O::Frame | O::Stop => {}
            O::Mark => self.marks.push(self.stack.len()),
            O::Pop => {
                if self.marks.last() == Some(&self.stack.len()) {
                    self.marks.pop();
                } else {
                    self.stack.pop();
                }
            }
            O::PopMark => self.drop_to_mark(),
            O::Dup => {
                let top = self.top();
                self.stack.push(top);
            }
            O::Put | O::BinPut | O::LongBinPut => {
                if let Ok(Some(index)) = op.memo_index() {
                    self.memo.insert(index, self.top());
                }
            }
            O::Memoize => {
                self.memo.insert(self.memo.len(), self.top());
            }
            O::Get | O::BinGet | O::LongBinGet => {
                let index = op.memo_index().ok().flatten();
                let value = index.and_then(|index| self.memo.get(index));
                self.stack.push(value.unwrap_or(Value::Other));
            }
            O::Global => {
                let value = self.global_lines(op);
                self.stack.push(value);
            }
            O::StackGlobal => self.stack_global(op.offset),
            O::Ext1 | O::Ext2 | O::Ext4 => self.extension(op),
            O::Inst => self.inst(op),
            O::Obj => {
                let start = self.marks.pop().unwrap_or(0).min(self.stack.len());
                let class = self.stack.get(start).copied().unwrap_or(Value::Other);
                self.stack.truncate(start);
                self.call(class, Value::Other, op.offset);
            }
            O::Reduce | O::NewObj => {
                let arguments = self.pop();
                let callable = self.pop();
                self.call(callable, arguments, op.offset);
            }
            O::NewObjEx => {
                self.pop();
                let arguments = self.pop();
                let callable = self.pop();
                self.call(callable, arguments, op.offset);
            }
            O::Build => {
                self.pop();
                let target = self.top();
                if matches!(target, Value::Global(_) | Value::Module(_)) {
                    self.changed(target, "its attributes", op.offset);
                }
                if let Value::Result(id) = target
                    && self.globals[id as usize].name == WRAPPER
                {
                    self.arrays.built();
                }
            }
            O::SetItem | O::SetItems => self.set_items(op),
            O::Append | O::Appends | O::AddItems => {
                if op.opcode == O::Append {
                    self.pop();
                } else {
                    self.drop_to_mark();
                }
                let target = self.top();
                if matches!(target, Value::Global(_) | Value::Module(_)) {
                    self.changed(target, "what it holds", op.offset);
                }
            }
            O::Tuple1 => self.tuple(1),
            O::Tuple2 => self.tuple(2),
            O::Tuple3 => self.tuple(3),
            O::Tuple => {
                let start = self.marks.pop().unwrap_or(0).min(self.stack.len());
                self.tuple(self.stack.len() - start);
            }
            O::List | O::Dict | O::FrozenSet => {
                self.drop_to_mark();
                self.stack.push(Value::Other);
            }
            O::BinPersId => {
                self.pop();
                self.stack.push(Value::Other);
            }
            O::ReadonlyBuffer => {}
            _ => {
                let value = self.atom(op);
                self.stack.push(value);
            }
        }
    }

    fn atom(&mut self, op: &Op<'a>) -> Value<'a> {
        match (op.opcode, op.argument) {
            (
                Opcode::ShortBinUnicode | Opcode::BinUnicode | Opcode::BinUnicode8,
                Argument::Bytes(text),
            )
            | (Opcode::ShortBinString | Opcode::BinString, Argument::Bytes(text)) => {
                self.nested(text, op.offset);
                Value::Text(text)
            }
            (
                Opcode::ShortBinBytes | Opcode::BinBytes | Opcode::BinBytes8 | Opcode::ByteArray8,
                Argument::Bytes(bytes),
            ) => {
                self.nested(bytes, op.offset);
                Value::Other
            }
            (Opcode::Unicode, Argument::Line(line)) => {
                self.line(text::decode_unicode_line(line), op.offset)
            }
            (Opcode::String, Argument::Line(line)) => {
                self.line(text::unquote(line).and_then(text::unescape), op.offset)
            }
            (Opcode::BinInt | Opcode::BinInt1 | Opcode::BinInt2, Argument::Int(value)) => {
                Value::Int(value.into())
            }
            (Opcode::Long1 | Opcode::Long4, Argument::Bytes(digits)) => {
                int::from_le_bytes(digits).map_or(Value::Other, Value::Int)
            }
            _ => Value::Other,
        }
    }

    fn line(&mut self, decoded: Option<Cow<'a, [u8]>>, offset: u64) -> Value<'a> {
        match decoded {
            Some(Cow::Borrowed(text)) => {
                self.nested(text, offset);
                Value::Text(text)
            }
            Some(Cow::Owned(text)) => {
                self.nested(&text, offset);
                self.decoded.push(text);
                Value::Decoded((self.decoded.len() - 1) as u32)
            }
            None => Value::Other,
        }
    }

    /// Looks for a pickle inside of bytes or text.
    fn nested(&mut self, content: &[u8], offset: u64) {
        // Protocols 0 and 1 have no header, but a pickle that calls something has a line or two for it.
        let headed = matches!(content, [0x80, 0..=5, _, ..]);
        let bare = matches!(content, [b'c' | b'(' | b'i' | b'\x8c', ..])
            && content.len() > 8
            && content.contains(&b'.');
        if self.depth >= NESTING || !(headed || bare) {
            return;
        }
        let report = Scanner::new(content, self.depth + 1).run();
        self.operations += report.operations;
        // Text that begins like a pickle by chance calls nothing.
        let is_pickle =
            headed && report.operations > 1 || report.globals.iter().any(|global| global.calls > 0);
        if report.verdict == Verdict::Ok || !is_pickle {
            return;
        }
        for found in report.findings {
            let message = format!("in a pickle inside of bytes or text: {}", found.message);
            self.find(found.verdict, Rule::NestedPickle, offset, message);
        }
    }

    // Globals.

    fn global_lines(&mut self, op: &Op<'a>) -> Value<'a> {
        match op.argument {
            Argument::Lines(module, name) => {
                let (module, name) = (
                    String::from_utf8_lossy(module),
                    String::from_utf8_lossy(name),
                );
                Value::Global(self.global(&module, &name, op.offset))
            }
            _ => Value::Other,
        }
    }

    fn stack_global(&mut self, offset: u64) {
        let (name, module) = (self.pop(), self.pop());
        let value = match (self.shared_text(module), self.shared_text(name)) {
            (Some(module), Some(name)) => {
                let module = String::from_utf8_lossy(&module);
                Value::Global(self.global(&module, &String::from_utf8_lossy(&name), offset))
            }
            (module, name) => {
                let known = |text: Option<Cow<'a, [u8]>>| {
                    text.map_or("?".into(), |text| {
                        String::from_utf8_lossy(&text).into_owned()
                    })
                };
                let message = format!(
                    "the global {}.{} is named by what only loading computes",
                    known(module),
                    known(name)
                );
                self.find(Verdict::Dangerous, Rule::ComputedGlobal, offset, message);
                Value::Other
            }
        };
        self.stack.push(value);
    }

    fn inst(&mut self, op: &Op<'a>) {
        let class = self.global_lines(op);
        self.drop_to_mark();
        self.call(class, Value::Other, op.offset);
    }

    fn extension(&mut self, op: &Op<'a>) {
        if let Argument::Int(code) = op.argument {
            let message = format!(
                "extension code {code}: what it stands for is known only to the process that loads"
            );
            self.find(Verdict::Unknown, Rule::ExtensionCode, op.offset, message);
        }
        self.stack.push(Value::Extension);
    }

    /// The number of a global; judged when it is first named.
    fn global(&mut self, module: &str, name: &str, offset: u64) -> u32 {
        if let Some(id) = self.known(module, name) {
            self.globals[id as usize].count += 1;
            return id;
        }
        let (verdict, reason) = policy::judge(module, name);
        match verdict {
            Verdict::Ok => {}
            Verdict::Unknown if policy::is_by_value(module, name) => {
                let message = "brings Python functions or classes by value".to_owned();
                self.find(Verdict::Unknown, Rule::CodeByValue, offset, message);
            }
            Verdict::Unknown => {
                let message = format!("{module}.{name} {reason}");
                self.find(Verdict::Unknown, Rule::UnknownGlobal, offset, message);
            }
            Verdict::Dangerous => {
                let message = format!("{module}.{name} {reason}");
                self.find(Verdict::Dangerous, Rule::DangerousGlobal, offset, message);
            }
        }
        self.enter(module, name, verdict, offset)
    }

    fn known(&self, module: &str, name: &str) -> Option<u32> {
        self.by_name.get(module)?.get(name).copied()
    }

    fn enter(&mut self, module: &str, name: &str, verdict: Verdict, offset: u64) -> u32 {
        let id = self.globals.len() as u32;
        self.globals.push(Global {
            module: module.to_owned(),
            name: name.to_owned(),
            verdict,
            offset,
            count: 1,
            calls: 0,
        });
        self.by_name
            .entry(module.to_owned())
            .or_default()
            .insert(name.to_owned(), id);
        self.arrays.watching |= name == WRAPPER;
        id
    }

    /// A module that a call imports; it is judged once something in it is looked up.
    fn module(&mut self, name: &str, offset: u64) -> Value<'a> {
        let known = self.known(name, "");
        Value::Module(known.unwrap_or_else(|| self.enter(name, "", Verdict::Unknown, offset)))
    }

    // Calls.

    fn call(&mut self, callable: Value<'a>, arguments: Value<'a>, offset: u64) {
        let result = match callable {
            Value::Global(id) => {
                self.globals[id as usize].calls += 1;
                self.call_global(id, arguments, offset)
            }
            Value::Result(id) => {
                let global = &self.globals[id as usize];
                let (verdict, what) = match &*global.name {
                    "_builtin_type" => (Verdict::Ok, ""),
                    "_make_function" | "_make_skel_func" => (
                        Verdict::Dangerous,
                        "a function that the pickle brings along",
                    ),
                    "attrgetter" | "methodcaller" | "getattr" | "itemgetter"
                    | "_function_setstate" => {
                        (Verdict::Dangerous, "what is computed while loading")
                    }
                    _ => (Verdict::Unknown, "what another call returned"),
                };
                if verdict != Verdict::Ok {
                    let message =
                        format!("calls {what}, made by {}.{}", global.module, global.name);
                    self.find(verdict, Rule::IndirectCall, offset, message);
                }
                Value::Result(id)
            }
            Value::Extension => {
                let message = "calls what an extension code stands for".to_owned();
                self.find(Verdict::Unknown, Rule::ExtensionCode, offset, message);
                Value::Other
            }
            Value::Module(_)
            | Value::Text(_)
            | Value::Decoded(_)
            | Value::Int(_)
            | Value::Tuple(_) => Value::Other,
            Value::Other => {
                let message = "calls what cannot be told without loading".to_owned();
                self.find(Verdict::Unknown, Rule::IndirectCall, offset, message);
                Value::Other
            }
        };
        self.stack.push(result);
    }

    /// Calls of which the answer matters for what can be named next.
    fn call_global(&mut self, id: u32, arguments: Value<'a>, offset: u64) -> Value<'a> {
        let global = &self.globals[id as usize];
        let (module, name) = (global.module.clone(), global.name.clone());
        match (&*module, &*name) {
            ("builtins" | "__builtin__", "getattr") => self.get_attribute(arguments, offset),
            ("operator" | "_operator", "attrgetter" | "methodcaller") => {
                self.check_attribute(arguments, 0, offset);
                Value::Result(id)
            }
            ("builtins" | "__builtin__", "__import__") | ("importlib", "import_module") => {
                match self.argument_text(arguments, 0) {
                    Some(name) => self.module(&name, offset),
                    None => Value::Result(id),
                }
            }
            (_, "subimport" | "_import_module") => match self.argument_text(arguments, 0) {
                Some(name) => self.module(&name, offset),
                None => {
                    let message = "imports a module whose name only loading computes".to_owned();
                    self.find(Verdict::Dangerous, Rule::ComputedGlobal, offset, message);
                    Value::Result(id)
                }
            },
            ("numpy", "dtype") => match self.argument_text(arguments, 0) {
                // A result of its own for each type, by which arrays that follow are measured.
                Some(text) => {
                    let known = self.known(&text, "");
                    Value::Result(
                        known.unwrap_or_else(|| self.enter(&text, "", Verdict::Ok, offset)),
                    )
                }
                None => Value::Result(id),
            },
            _ => Value::Result(id),
        }
    }

    fn get_attribute(&mut self, arguments: Value<'a>, offset: u64) -> Value<'a> {
        let object = self.argument(arguments, 0);
        let Some(attribute) = self.argument_text(arguments, 1) else {
            let message = "looks up an attribute whose name only loading computes".to_owned();
            self.find(Verdict::Dangerous, Rule::AttributeLookup, offset, message);
            return Value::Other;
        };
        match object {
            // As if the pickle had named it in one go.
            Some(Value::Global(id) | Value::Module(id)) => {
                let Global { module, name, .. } = &self.globals[id as usize];
                let (module, name) = if name.is_empty() {
                    (module.clone(), attribute)
                } else {
                    (module.clone(), format!("{name}.{attribute}"))
                };
                Value::Global(self.global(&module, &name, offset))
            }
            _ => {
                let (verdict, why) = if policy::is_reaching(&attribute) {
                    (Verdict::Dangerous, ", behind which anything can be reached")
                } else {
                    (Verdict::Unknown, "")
                };
                let message = format!("looks up the attribute {attribute:?} of an object{why}");
                self.find(verdict, Rule::AttributeLookup, offset, message);
                Value::Other
            }
        }
    }

    fn check_attribute(&mut self, arguments: Value<'a>, at: usize, offset: u64) {
        if let Some(attribute) = self.argument_text(arguments, at)
            && policy::is_reaching(&attribute)
        {
            let message = format!(
                "looks up the attribute {attribute:?}, behind which anything can be reached"
            );
            self.find(Verdict::Dangerous, Rule::AttributeLookup, offset, message);
        }
    }

    fn argument(&self, arguments: Value<'a>, at: usize) -> Option<Value<'a>> {
        match arguments {
            Value::Tuple(id) => self.items(id)?.get(at).copied(),
            _ => None,
        }
    }

    fn argument_text(&self, arguments: Value<'a>, at: usize) -> Option<String> {
        let value = self.argument(arguments, at)?;
        self.text(value)
            .map(|text| String::from_utf8_lossy(text).into_owned())
    }

    fn changed(&mut self, target: Value<'a>, what: &str, offset: u64) {
        let name = match target {
            Value::Global(id) | Value::Module(id) => {
                let global = &self.globals[id as usize];
                format!("{}.{}", global.module, global.name)
            }
            _ => return,
        };
        let message = format!("changes {name} itself: {what}");
        self.find(Verdict::Dangerous, Rule::ChangedGlobal, offset, message);
    }

    fn set_items(&mut self, op: &Op<'a>) {
        let start = match op.opcode {
            Opcode::SetItem => self.stack.len().saturating_sub(2),
            _ => self.marks.pop().unwrap_or(0).min(self.stack.len()),
        };
        if self.arrays.watching {
            self.note_array(start);
        }
        self.stack.truncate(start);
        let target = self.top();
        if matches!(target, Value::Global(_) | Value::Module(_)) {
            self.changed(target, "what it holds", op.offset);
        }
    }

    /// What the state of an array's stand-in says about the bytes that will follow it.
    fn note_array(&mut self, start: usize) {
        let mut pairs = self.stack[start..].chunks_exact(2);
        let mut notes = Vec::new();
        for pair in &mut pairs {
            match (self.text(pair[0]), pair[1]) {
                (Some(b"shape"), Value::Tuple(id)) => notes.push(self.items_in(id)),
                // The empty tuple, or what is too long to be known.
                (Some(b"shape"), _) => notes.push(Some(1)),
                (Some(b"dtype"), Value::Result(id)) => {
                    self.arrays.dtype(&self.globals[id as usize].module)
                }
                (Some(b"numpy_array_alignment_bytes"), value) => {
                    self.arrays.aligned = value != Value::Other
                }
                _ => {}
            }
        }
        if let Some(count) = notes.into_iter().next() {
            self.arrays.items = count;
        }
    }

    fn items_in(&self, tuple: u32) -> Option<u64> {
        let mut count = 1_u64;
        for &value in self.items(tuple)? {
            match value {
                Value::Int(length) => count = count.checked_mul(u64::try_from(length).ok()?)?,
                Value::Other => break,
                _ => return None,
            }
        }
        Some(count)
    }

    // The stack.

    fn top(&self) -> Value<'a> {
        self.stack.last().copied().unwrap_or(Value::Other)
    }

    /// Never from below a mark.
    fn pop(&mut self) -> Value<'a> {
        if self.marks.last() == Some(&self.stack.len()) {
            return Value::Other;
        }
        self.stack.pop().unwrap_or(Value::Other)
    }

    fn drop_to_mark(&mut self) {
        let start = self.marks.pop().unwrap_or(0);
        self.stack.truncate(start);
    }

    fn tuple(&mut self, count: usize) {
        let start = self.stack.len().saturating_sub(count);
        let items = &self.stack[start..];
        let value = if items.len() <= TUPLE && items.iter().any(|&item| item != Value::Other) {
            let mut known = [Value::Other; TUPLE];
            known[..items.len()].copy_from_slice(items);
            let id = self.next_tuple;
            self.next_tuple = id.wrapping_add(1);
            match self.tuples.get_mut(id as usize % TUPLES) {
                Some(oldest) => *oldest = known,
                None => self.tuples.push(known),
            }
            Value::Tuple(id)
        } else {
            Value::Other
        };
        self.stack.truncate(start);
        self.stack.push(value);
    }

    /// What a tuple holds, if it is not too old.
    fn items(&self, tuple: u32) -> Option<&[Value<'a>; TUPLE]> {
        let age = self.next_tuple.wrapping_sub(tuple) as usize;
        self.tuples
            .get(tuple as usize % TUPLES)
            .filter(|_| age <= TUPLES)
    }

    /// As [`Self::text`], but not borrowed from here.
    fn shared_text(&self, value: Value<'a>) -> Option<Cow<'a, [u8]>> {
        match value {
            Value::Text(text) => Some(Cow::Borrowed(text)),
            _ => self.text(value).map(|text| Cow::Owned(text.to_vec())),
        }
    }

    fn text(&self, value: Value<'a>) -> Option<&[u8]> {
        match value {
            Value::Text(text) => Some(text),
            Value::Decoded(id) => Some(&self.decoded[id as usize]),
            _ => None,
        }
    }

    fn find(&mut self, verdict: Verdict, rule: Rule, offset: u64, message: String) {
        self.worst = self.worst.max(verdict);
        if let Some(&at) = self.seen.get(&(rule, message.clone())) {
            self.findings[at].count += 1;
            return;
        }
        if self.findings.len() < FINDINGS || verdict == Verdict::Dangerous {
            self.seen
                .insert((rule, message.clone()), self.findings.len());
            self.findings.push(Finding {
                verdict,
                rule,
                offset,
                message,
                count: 1,
            });
        }
    }
}

/// The error of a pickle that ends too early, for callers that want to tell it from damage.
#[must_use]
pub fn is_cut_short(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::UnexpectedEnd | ErrorKind::Truncated)
}
