//! Calls of one short argument, as dates, decimals and the like pickle to: argument, tuple and call in one go.
//!
//! A pickle has all three remembered, though it hardly ever refers to argument or tuple again. Where no one else holds
//! them after the call, the memo keeps the value in their place and makes them again if it is asked.

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use quickpickle_format::opcode::byte;

use super::fail::Fail;
use super::machine::Machine;
use super::memo::{ARGUMENT_MAX, Argument};
use super::source::Feed;
use crate::ffi::object::{Anchor, quiet};
use crate::ffi::slots::Other;
use crate::ffi::time::{self, Temporal};

/// What follows an argument that is the only one of a call, after its own MEMOIZE.
const CALL: [u8; 4] = [byte::TUPLE1, byte::MEMOIZE, byte::REDUCE, byte::MEMOIZE];

impl<'py> Machine<'py, '_> {
    /// Before the payload of a bytes object of `len` bytes: if it is what a date or time is made of, makes that.
    #[inline(always)]
    pub(super) fn call_with_bytes<S: Feed>(
        &mut self,
        source: &mut S,
        len: usize,
    ) -> Result<bool, Fail>
    where
        Fail: From<S::Error>,
    {
        if len > ARGUMENT_MAX || !self.memory.memo.is_dense() {
            return Ok(false);
        }
        let ahead = self.ahead(source);
        let (Some(state), Some(&byte::MEMOIZE)) = (ahead.get(..len), ahead.get(len)) else {
            return Ok(false);
        };
        if ahead.get(len + 1..len + 5) != Some(&CALL) {
            return Ok(false);
        }
        let Ok(class) = self.top_one() else {
            return Ok(false);
        };
        let time = time::of_class(&class).filter(|&time| time != Temporal::Delta);
        let Some(time) = time else {
            return Ok(false);
        };
        let (Some(made), Some(argument)) = (
            time::make_of(self.py, time, state),
            Argument::of(state, false),
        ) else {
            return Ok(false);
        };
        source.bytes(len + 5)?;
        drop((self.pop_one()?, class));
        self.memory.memo.put_argument(argument);
        self.push_remembered(made)?;
        Ok(true)
    }

    /// After a str and its MEMOIZE, where a tuple of it may follow: if a call of that is all that follows, makes it.
    #[inline(never)]
    pub(super) fn call_with_text<S: Feed>(
        &mut self,
        source: &mut S,
        text: Bound<'py, PyAny>,
    ) -> Result<(), Fail>
    where
        Fail: From<S::Error>,
    {
        if self.ahead(source).get(..4) != Some(&CALL) || !self.memory.memo.is_dense() {
            return self.push_remembered(text);
        }
        let Ok(callable) = self.pop_one() else {
            return self.push_remembered(text);
        };
        source.bytes(3)?;
        self.at = source.offset();
        source.byte()?;
        let args = self.single.of(&text)?;
        let made = self.call(&callable, args.as_any());
        let argument = self.left_out(&text, &args);
        match argument {
            Some(argument) => {
                self.memory.memo.put_argument(argument);
                self.single.give_back(args);
            }
            None => {
                let number = self.memory.memo.len();
                // New numbers: there is nothing to replace.
                self.memory.memo.put(number, text);
                self.memory.memo.put(number + 1, args.into_any());
            }
        }
        self.push_remembered(made?)
    }

    /// What to keep of an argument and its tuple if no one else holds them.
    fn left_out(&self, text: &Bound<'py, PyAny>, args: &Bound<'py, PyTuple>) -> Option<Argument> {
        let (tuple, item) = (Anchor::of(args.as_any()), Anchor::of(text));
        quiet(self.py, |q| {
            // The text is held here and by the tuple.
            (tuple.obj(q).is_sole() && item.obj(q).references() == Some(2)).then_some(())
        })?;
        let value = text.cast_exact::<PyString>().ok()?;
        Argument::of(value.to_str().ok()?.as_bytes(), true)
    }

    fn push_remembered(&mut self, object: Bound<'py, PyAny>) -> Result<(), Fail> {
        let old = self.memory.memo.put(self.memory.memo.len(), object.clone());
        self.memory.stack.push(object);
        drop(old);
        Ok(())
    }

    /// An argument that was left out, or its tuple (`number`), made now; both are, as one holds the other.
    pub(super) fn make_argument(
        &mut self,
        at: usize,
        number: usize,
        first: usize,
    ) -> Result<Option<Bound<'py, PyAny>>, Fail> {
        let py = self.py;
        let Some(argument) = self.memory.memo.argument(at) else {
            return Ok(None);
        };
        let item = argument.make(py)?;
        let tuple = PyTuple::new(py, [&item])?.into_any();
        for (number, object) in [(first, item), (first + 1, tuple)] {
            // Unless another PUT has taken the number meanwhile.
            if let Other::Argument(of) | Other::ArgumentTuple(of) =
                self.memory.memo.other(py, number)
                && of == at
            {
                drop(self.memory.memo.put(number, object));
            }
        }
        Ok(self.memory.memo.get(py, number))
    }
}
