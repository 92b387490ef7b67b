//! The pickle machine: stack, marks and memo, and the steps that operations are made of.
//!
//! The operations themselves are in [`super::operations`]; what runs other code (globals, calls, states) is in
//! [`super::construct`] and [`super::global`].

use super::construct::Classes;
use super::fail::Fail;
use super::memo::Memo;
use super::source::Feed;
use super::{Hooks, notes};
use crate::ffi::build;
use crate::ffi::slots::Other;
use crate::ffi::stack::Stack;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PySet};
use quickpickle_format::opcode::byte;
use quickpickle_format::{Error, ErrorKind, Opcode};

/// Containers made before the cyclic collector is paused: about when it would run for the second time.
const PAUSE_AFTER: usize = 1_000;

/// Memory of a machine; reused from load to load.
pub(crate) struct Memory {
    pub(super) stack: Stack,
    pub(super) marks: Vec<Mark>,
    pub(super) memo: Memo,
    pub(super) classes: Classes,
}

/// A place on the stack, as MARK leaves it.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    /// Objects below it.
    pub(super) at: usize,
    /// For the mark in front of an instance's state: the number under which the dict was to be remembered, plus one. The
    /// dict itself, which would lie right below the mark, is not made unless it is needed.
    state: usize,
}

impl Memory {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Memory {
            stack: Stack::new(),
            marks: Vec::new(),
            memo: Memo::new(),
            classes: Classes::new(),
        })
    }

    /// Drops what a load left, but for the memo.
    #[inline(always)]
    pub(super) fn rest(&mut self, py: Python<'_>) {
        self.marks.clear();
        self.classes.forget_unversioned();
        self.stack.clear(py);
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self, py: Python<'_>) {
        self.rest(py);
        self.memo.clear(py);
    }
}

/// One load in progress.
pub(super) struct Machine<'py, 'a> {
    pub(super) py: Python<'py>,
    pub(super) memory: &'a mut Memory,
    pub(super) hooks: &'a Hooks<'py>,
    /// Protocol of the pickle as far as it has said.
    pub(super) protocol: u8,
    /// Stack length that no pop may go below: that of the last mark.
    pub(super) fence: usize,
    /// Marks below this one have no dict that was left out.
    deferred_from: usize,
    /// Where the frame ends that is being read; beyond everything where there is none. Frames bound operations since 3.14.
    pub(super) frame_end: u64,
    /// Where the last operation that may run other code ended.
    pub(super) at: u64,
    /// Containers made.
    pub(super) made: usize,
    collector: Collector,
    /// For calls of one argument.
    pub(super) single: build::Single<'py>,
    /// Items that wait to be added to sets, and why they could not be.
    pub(super) deferred: Vec<(Bound<'py, PySet>, Bound<'py, PyAny>, PyErr)>,
}

/// What the load has done to the cyclic collector.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Collector {
    /// Not looked at.
    Untouched,
    /// It was off: leave it alone.
    Off,
    /// Paused, to be switched on at the end and while other code runs.
    Paused,
}

type Done = Result<(), Fail>;

impl<'py, 'a> Machine<'py, 'a> {
    pub(super) fn new(py: Python<'py>, memory: &'a mut Memory, hooks: &'a Hooks<'py>) -> Self {
        Machine {
            py,
            memory,
            hooks,
            protocol: 0,
            fence: 0,
            deferred_from: usize::MAX,
            frame_end: u64::MAX,
            at: 0,
            made: 0,
            collector: Collector::Untouched,
            single: build::Single::new(),
            deferred: Vec::new(),
        }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, object: Bound<'py, PyAny>) -> Done {
        self.memory.stack.push(object);
        Ok(())
    }

    /// Counts a container; pauses the cyclic collector once there are many.
    #[inline(always)]
    pub(super) fn count(&mut self) {
        self.made += 1;
        if self.made == PAUSE_AFTER {
            self.pause();
        }
    }

    #[cold]
    pub(super) fn pause(&mut self) {
        if build::collector_is_on(self.py) {
            build::switch_collector(self.py, false);
            self.collector = Collector::Paused;
        } else {
            self.collector = Collector::Off;
        }
    }

    /// Runs other code, with the cyclic collector as the caller of the load left it.
    #[inline(always)]
    pub(super) fn outside<R>(&mut self, code: impl FnOnce(&mut Self) -> R) -> R {
        self.memory.classes.forget_unversioned();
        if self.collector != Collector::Paused {
            return code(self);
        }
        build::switch_collector(self.py, true);
        let result = code(self);
        // Unless that code has switched it off itself.
        if build::collector_is_on(self.py) {
            build::switch_collector(self.py, false);
        } else {
            self.collector = Collector::Off;
        }
        result
    }

    /// Switches the cyclic collector on again.
    pub(super) fn finish(&mut self) {
        if self.collector == Collector::Paused {
            build::switch_collector(self.py, true);
            self.collector = Collector::Off;
        }
    }

    /// What can be looked at of what follows, as far as operations may be taken together with the one before.
    #[inline(always)]
    pub(super) fn ahead<'s, S: Feed>(&self, source: &'s S) -> &'s [u8] {
        let ahead = source.peek();
        if !cfg!(Py_3_14) || self.frame_end == u64::MAX {
            return ahead;
        }
        let left = self.frame_end.saturating_sub(source.offset());
        &ahead[..ahead.len().min(usize::try_from(left).unwrap_or(usize::MAX))]
    }

    /// After an operation or its argument: an error where that went on beyond its frame.
    #[inline(always)]
    pub(super) fn check_frame<S: Feed>(&mut self, source: &S) -> Done {
        if cfg!(Py_3_14) && source.offset() >= self.frame_end {
            return self.end_frame(source.offset());
        }
        Ok(())
    }

    /// Between two operations: an error where the last one went on beyond its frame; forgets a frame that has ended.
    #[inline(always)]
    pub(super) fn leave_frame<S: Feed>(&mut self, source: &S) -> Done {
        if source.offset() >= self.frame_end {
            self.end_frame(source.offset())?;
            self.frame_end = u64::MAX;
        }
        Ok(())
    }

    #[cold]
    pub(super) fn end_frame(&mut self, at: u64) -> Done {
        if at > self.frame_end {
            let message = "pickle exhausted before end of frame";
            return Err(Fail::new(self.py, message));
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub(super) fn underflow(&self) -> Fail {
        let message = if self.memory.marks.is_empty() {
            "unpickling stack underflow"
        } else {
            "unexpected MARK found"
        };
        Fail::new(self.py, message)
    }

    /// Takes the object on top.
    #[inline(always)]
    pub(super) fn pop_one(&mut self) -> Result<Bound<'py, PyAny>, Fail> {
        if self.memory.stack.len() > self.fence
            && let Some(object) = self.memory.stack.pop(self.py)
        {
            return Ok(object);
        }
        Err(self.underflow())
    }

    /// The object on top.
    #[inline(always)]
    pub(super) fn top_one(&self) -> Result<Bound<'py, PyAny>, Fail> {
        if self.memory.stack.len() > self.fence
            && let Some(object) = self.memory.stack.top(self.py)
        {
            return Ok(object);
        }
        Err(self.underflow())
    }

    /// Takes the last mark away; returns where it was.
    #[inline(always)]
    pub(super) fn take_mark(&mut self) -> Result<usize, Fail> {
        match self.memory.marks.pop() {
            Some(mark) => {
                self.fence = self.memory.marks.last().map_or(0, |mark| mark.at);
                if mark.state != 0 {
                    return Ok(self.make_state_dict(mark));
                }
                Ok(mark.at)
            }
            None => Err(Fail::new(self.py, "could not find MARK")),
        }
    }

    /// Makes the dict below a mark that was left out; returns where the mark then is.
    #[cold]
    pub(super) fn make_state_dict(&mut self, mark: Mark) -> usize {
        let dict = PyDict::new(self.py).into_any();
        self.memory.stack.insert(mark.at, dict.clone());
        // Unless another PUT has taken the number meanwhile.
        let old = match self.memory.memo.other(self.py, mark.state - 1) {
            Other::Pending(_) => self.memory.memo.put(mark.state - 1, dict),
            _ => None,
        };
        drop(old);
        mark.at + 1
    }

    /// Remembers the object on top.
    #[inline(always)]
    pub(super) fn remember(&mut self, number: usize) -> Done {
        let object = self.top_one()?;
        if let Some(old) = self.memory.memo.put(number, object) {
            // Dropped with the memo complete: it may run code.
            drop(old);
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn fetch(&mut self, number: usize) -> Done {
        match self.memory.memo.get(self.py, number) {
            Some(object) => self.push(object),
            None => self.fetch_deferred(number),
        }
    }

    #[cold]
    pub(super) fn fetch_deferred(&mut self, number: usize) -> Done {
        let object = self.resolve(number)?;
        match object {
            Some(object) => self.push(object),
            None => Err(Fail::new(
                self.py,
                format!("Memo value not found at index {number}"),
            )),
        }
    }

    /// The dict that was left out under a number, made now.
    pub(super) fn resolve(&mut self, number: usize) -> Result<Option<Bound<'py, PyAny>>, Fail> {
        let py = self.py;
        let instance = match self.memory.memo.other(py, number) {
            Other::StateOf(instance) => instance,
            Other::Pending(index) => {
                let mark = self.memory.marks.get(index);
                if mark.is_none_or(|mark| mark.state != number + 1) {
                    return Ok(None);
                }
                self.make_state_dicts();
                return Ok(self.memory.memo.get(py, number));
            }
            Other::Argument(at) => return self.make_argument(at, number, number),
            Other::ArgumentTuple(at) => return self.make_argument(at, number, number - 1),
            Other::Nothing => return Ok(None),
        };
        // What it was filled with is what the instance got; what other code has done to that since shows.
        let copy = instance
            .getattr("__dict__")?
            .cast::<PyDict>()
            .map_err(PyErr::from)?
            .copy()?
            .into_any();
        let old = self.memory.memo.put(number, copy.clone());
        drop(old);
        Ok(Some(copy))
    }

    /// Makes all dicts that were left out: one by one, each would move what is on the stack above it, which an input could
    /// make arbitrarily slow.
    #[cold]
    pub(super) fn make_state_dicts(&mut self) {
        let mut made = Vec::new();
        let first = std::mem::replace(&mut self.deferred_from, usize::MAX);
        for mark in self.memory.marks.iter_mut().skip(first) {
            if mark.state != 0 {
                let dict = PyDict::new(self.py).into_any();
                made.push((mark.at, mark.state - 1, dict));
                mark.state = 0;
            }
            mark.at += made.len();
        }
        let dicts = made.iter().map(|(at, _, dict)| (*at, dict.clone()));
        self.memory.stack.insert_all(dicts.collect());
        for (_, number, dict) in made {
            // Unless another PUT has taken the number meanwhile.
            if let Other::Pending(_) = self.memory.memo.other(self.py, number) {
                drop(self.memory.memo.put(number, dict));
            }
        }
        self.fence = self.memory.marks.last().map_or(0, |mark| mark.at);
    }

    pub(super) fn mark_here(&mut self, state: usize) {
        let at = self.memory.stack.len();
        if state != 0 {
            self.deferred_from = self.deferred_from.min(self.memory.marks.len());
        }
        self.memory.marks.push(Mark { at, state });
        self.fence = at;
    }

    /// Right after an instance was made: if its state follows as a dict, leaves the dict out. The state's items go onto the
    /// stack above a special mark, and from there straight into the instance.
    pub(super) fn expect_state<S: Feed>(&mut self, source: &mut S) -> Done
    where
        Fail: From<S::Error>,
    {
        let number = self.memory.memo.len();
        if !self.memory.memo.is_dense() {
            return Ok(());
        }
        let length = match *self.ahead(source) {
            [
                byte::MEMOIZE,
                byte::EMPTY_DICT,
                byte::MEMOIZE,
                byte::MARK,
                ..,
            ] => 4,
            [
                byte::BINPUT,
                own,
                byte::EMPTY_DICT,
                byte::BINPUT,
                dicts,
                byte::MARK,
                ..,
            ] if usize::from(own) == number && usize::from(dicts) == number + 1 => 6,
            _ => return Ok(()),
        };
        source.bytes(length)?;
        self.remember(number)?;
        self.memory.memo.put_pending(self.memory.marks.len());
        self.mark_here(number + 2);
        Ok(())
    }

    /// SETITEMS above a special mark, with BUILD behind it: into the instance directly, if it can be.
    #[inline(always)]
    pub(super) fn set_state_directly<S: Feed>(&mut self, source: &mut S) -> Result<bool, Fail>
    where
        Fail: From<S::Error>,
    {
        let Some(&Mark { at, state }) = self.memory.marks.last().filter(|mark| mark.state != 0)
        else {
            return Ok(false);
        };
        if self.ahead(source).first() != Some(&byte::BUILD) || at == 0 {
            return Ok(false);
        }
        let below = self
            .memory
            .marks
            .len()
            .checked_sub(2)
            .map_or(0, |index| self.memory.marks[index].at);
        let Some(instance) = self
            .memory
            .stack
            .get(self.py, at - 1)
            .filter(|_| at > below)
        else {
            return Ok(false);
        };
        // Its class may have changed since.
        if !self.memory.classes.is_plain(&instance.get_type())?
            || !self.memory.stack.take_into_values(&instance, at)
        {
            return Ok(false);
        }
        source.byte()?;
        self.memory.marks.pop();
        self.fence = below;
        self.memory.memo.put_state(state - 1, instance);
        Ok(true)
    }

    #[inline(always)]
    pub(super) fn tuple_of<S: Feed>(&mut self, source: &mut S, count: usize) -> Done
    where
        Fail: From<S::Error>,
    {
        let len = self.memory.stack.len();
        if len < self.fence + count {
            return Err(self.underflow());
        }
        let tuple = self.memory.stack.take_tuple(self.py, len - count)?;
        self.count();
        self.push_new(source, tuple.into_any())
    }

    /// Pushes a new object; remembers it, where that is the next operation. It nearly always is: done here, it costs no
    /// operation of its own.
    #[inline(always)]
    pub(super) fn push_new<S: Feed>(&mut self, source: &mut S, object: Bound<'py, PyAny>) -> Done
    where
        Fail: From<S::Error>,
    {
        if self.ahead(source).first() == Some(&byte::MEMOIZE) {
            source.byte()?;
            let old = self.memory.memo.put(self.memory.memo.len(), object.clone());
            self.memory.stack.push(object);
            drop(old);
            return Ok(());
        }
        self.push(object)
    }

    /// Checks that a container lies below `at`, where its items begin.
    #[inline(always)]
    pub(super) fn container(&self, at: usize) -> Result<Bound<'py, PyAny>, Fail> {
        match self.memory.stack.get(self.py, at.wrapping_sub(1)) {
            Some(container) if at > self.fence => Ok(container),
            _ => Err(self.underflow()),
        }
    }

    /// Appends what lies above `at`.
    #[inline(always)]
    pub(super) fn append_from(&mut self, at: usize) -> Done {
        let list = self.container(at)?;
        if self.memory.stack.len() == at {
            return Ok(());
        }
        match list.cast_exact::<PyList>() {
            Ok(list) => Ok(self.memory.stack.take_into_list(list, at)?),
            Err(_) => self.extend(list, at),
        }
    }

    #[inline(never)]
    pub(super) fn extend(&mut self, list: Bound<'py, PyAny>, at: usize) -> Done {
        let py = self.py;
        let items = self.memory.stack.take_tuple(py, at)?;
        self.outside(|_| {
            if let Some(extend) = list.getattr_opt("extend")? {
                extend.call1((PyList::new(py, items.iter())?,))?;
                return Ok(());
            }
            let append = list.getattr("append")?;
            for item in items.iter() {
                append.call1((item,))?;
            }
            Ok::<(), PyErr>(())
        })?;
        Ok(())
    }

    /// Sets the pairs that lie above `at`.
    #[inline(always)]
    pub(super) fn set_from(&mut self, at: usize) -> Done {
        let dict = self.container(at)?;
        let len = self.memory.stack.len();
        if len == at {
            return Ok(());
        }
        if !(len - at).is_multiple_of(2) {
            return Err(Fail::new(self.py, "odd number of items for SETITEMS"));
        }
        match dict.cast_exact::<PyDict>() {
            // Hashing and comparing keys may run code, with the collector paused: it is not told of that.
            Ok(dict) => Ok(self.memory.stack.take_into_dict(dict, at)?),
            Err(_) => {
                let items = self.memory.stack.take_tuple(self.py, at)?;
                self.outside(|_| {
                    for index in (0..items.len()).step_by(2) {
                        dict.set_item(items.get_item(index)?, items.get_item(index + 1)?)?;
                    }
                    Ok::<(), PyErr>(())
                })?;
                Ok(())
            }
        }
    }

    pub(super) fn line_text<S: Feed>(&mut self, source: &mut S) -> Result<std::ffi::CString, Fail>
    where
        Fail: From<S::Error>,
    {
        let line = source.line()?.to_vec();
        self.text_of(line, source)
    }

    pub(super) fn text_of<S: Feed>(
        &self,
        mut line: Vec<u8>,
        source: &S,
    ) -> Result<std::ffi::CString, Fail>
    where
        Fail: From<S::Error>,
    {
        if line.is_empty() {
            return Err(Error::new(ErrorKind::Truncated, source.offset()).into());
        }
        // As C does, which sees the text end there. Otherwise it sees the newline too, skips it where it parses numbers, and
        // shows it in what it complains of.
        match line.iter().position(|&byte| byte == 0) {
            Some(end) => line.truncate(end),
            None => line.push(b'\n'),
        }
        Ok(std::ffi::CString::new(line).unwrap_or_default())
    }

    /// The number in the line of GET or PUT.
    pub(super) fn index_of(&self, text: &std::ffi::CStr) -> Result<isize, Fail> {
        let number = build::int_from_text(self.py, text, 10)?;
        number.extract::<isize>().map_err(|_| {
            PyOverflowError::new_err("Python int too large to convert to C ssize_t").into()
        })
    }

    pub(super) fn index_line<S: Feed>(&mut self, source: &mut S) -> Result<isize, Fail>
    where
        Fail: From<S::Error>,
    {
        let text = self.line_text(source)?;
        self.index_of(&text)
    }

    /// A Python 2 str, decoded as the caller of the load wants.
    pub(super) fn python2_string(&mut self, bytes: &[u8]) -> Done {
        let py = self.py;
        if &*self.hooks.encoding == c"bytes" {
            return self.push(PyBytes::new(py, bytes).into_any());
        }
        let text = build::decoded(py, bytes, &self.hooks.encoding, &self.hooks.errors);
        let text = text.map_err(|error| notes::decoding(py, error))?;
        self.push(text)
    }

    #[cold]
    pub(super) fn too_large(opcode: Opcode) -> Fail {
        let limit = isize::MAX;
        let message = match opcode {
            Opcode::Frame => format!("FRAME length exceeds system's maximum of {limit} bytes"),
            Opcode::ByteArray8 => {
                format!("BYTEARRAY8 exceeds system's maximum size of {limit} bytes")
            }
            Opcode::BinBytes8 => format!("BINBYTES exceeds system's maximum size of {limit} bytes"),
            _ => format!("BINUNICODE exceeds system's maximum size of {limit} bytes"),
        };
        PyOverflowError::new_err(message).into()
    }

    /// A length that fits an object.
    #[inline(always)]
    pub(super) fn fits(opcode: Opcode, len: u64) -> Result<usize, Fail> {
        match usize::try_from(len) {
            Ok(len) if len <= isize::MAX as usize => Ok(len),
            _ => Err(Self::too_large(opcode)),
        }
    }
}
