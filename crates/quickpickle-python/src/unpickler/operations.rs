//! What each operation of a pickle does: one method for each, called by the format crate's reader.

use super::fail::Fail;
use super::machine::Machine;
use super::source::Feed;
use crate::cloud::known;
use crate::ffi::build;
use crate::options::HIGHEST_PROTOCOL;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{
    PyByteArray, PyBytes, PyDict, PyFrozenSet, PyList, PyMemoryView, PySet, PyString, PyTuple,
};
use quickpickle_format::opcode::byte;
use quickpickle_format::{Error, ErrorKind, Opcode, Visitor};

type Done = Result<(), Fail>;

impl<'py, S: Feed> Visitor<S> for Machine<'py, '_>
where
    Fail: From<S::Error>,
{
    type Error = Fail;

    fn proto(&mut self, source: &mut S, version: u8) -> Done {
        if version > HIGHEST_PROTOCOL {
            return Err(
                Error::new(ErrorKind::UnsupportedProtocol(version), source.offset()).into(),
            );
        }
        self.protocol = version;
        if let Some(owner) = &self.hooks.owner {
            owner.get().has_protocol(version);
        }
        Ok(())
    }

    fn frame(&mut self, source: &mut S, len: u64) -> Done {
        let len = Self::fits(Opcode::Frame, len)?;
        if cfg!(Py_3_14) {
            self.check_frame(source)?;
            let at = source.offset();
            if self.frame_end != u64::MAX && at < self.frame_end {
                let message = "beginning of a new frame before end of current frame";
                return Err(Fail::new(self.py, message));
            }
            self.frame_end = at + len as u64;
        }
        Ok(source.frame(len as u64)?)
    }

    #[inline(always)]
    fn stop(&mut self, _source: &mut S) -> Done {
        Ok(())
    }

    #[inline(always)]
    fn none(&mut self, _source: &mut S) -> Done {
        self.push(self.py.None().into_bound(self.py))
    }

    #[inline(always)]
    fn boolean(&mut self, _source: &mut S, value: bool) -> Done {
        self.push(
            pyo3::types::PyBool::new(self.py, value)
                .to_owned()
                .into_any(),
        )
    }

    #[inline(always)]
    fn int(&mut self, _source: &mut S, value: i32) -> Done {
        self.push(build::int(self.py, value)?)
    }

    fn int_text(&mut self, source: &mut S) -> Done {
        let line = source.line()?;
        let (flag, is_cut) = (flag(line), line.first() == Some(&0));
        let text = self.text_of(line.to_vec(), source)?;
        if let Some(value) = flag {
            return self.boolean(source, value);
        }
        // Nothing before a NUL is no error, but zero.
        if is_cut {
            return self.int(source, 0);
        }
        let value = match octal(text.as_bytes()) {
            Some(value) if cfg!(not(Py_3_14)) => value
                .into_pyobject(self.py)
                .map_err(PyErr::from)?
                .into_any(),
            _ => self
                .decimal(&text)
                .map_err(|_| PyValueError::new_err("could not convert string to int"))?,
        };
        self.push(value)
    }

    fn long_text(&mut self, source: &mut S) -> Done {
        let text = self.line_text(source)?;
        let value = match text.as_bytes().strip_suffix(b"L\n") {
            Some(digits) => self.decimal(&std::ffi::CString::new(digits).unwrap_or_default())?,
            None => self.decimal(&text)?,
        };
        self.push(value)
    }

    fn long(&mut self, source: &mut S, len: usize) -> Done {
        let py = self.py;
        let value = build::long(py, source.bytes(len)?)?;
        self.push(value)
    }

    #[inline(always)]
    fn float(&mut self, _source: &mut S, value: f64) -> Done {
        self.push(build::float(self.py, value)?)
    }

    fn float_text(&mut self, source: &mut S) -> Done {
        let text = self.line_text(source)?;
        let value = build::float_from_text(self.py, &text)?;
        self.push(build::float(self.py, value)?)
    }

    fn string_text(&mut self, source: &mut S) -> Done {
        let line = source.line()?.to_vec();
        let inside = match line[..] {
            [b'\'', ref inside @ .., b'\''] | [b'"', ref inside @ .., b'"'] => inside,
            _ => {
                return Err(Fail::new(
                    self.py,
                    "the STRING opcode argument must be quoted",
                ));
            }
        };
        let bytes = build::escaped_bytes(self.py, inside)?;
        let bytes = bytes.cast_into::<PyBytes>().map_err(PyErr::from)?;
        self.python2_string(bytes.as_bytes())
    }

    fn string(&mut self, source: &mut S, len: usize) -> Done {
        let bytes = source.bytes(len)?.to_vec();
        self.python2_string(&bytes)
    }

    fn unicode_text(&mut self, source: &mut S) -> Done {
        let text = build::raw_unicode_escaped(self.py, source.line()?)?;
        self.push(text)
    }

    #[inline(always)]
    fn unicode(&mut self, source: &mut S, len: u64) -> Done {
        let len = Self::fits(Opcode::BinUnicode, len)?;
        let bytes = source.bytes(len)?;
        let text = match known::find(self.py, bytes) {
            Some(known) => known,
            None => build::text(self.py, bytes)?,
        };
        if let &[byte::MEMOIZE, byte::TUPLE1, ..] = self.ahead(source) {
            source.byte()?;
            return self.call_with_text(source, text);
        }
        self.push_new(source, text)
    }

    fn bytes(&mut self, source: &mut S, len: u64) -> Done {
        let len = Self::fits(Opcode::BinBytes8, len)?;
        if self.call_with_bytes(source, len)? {
            return Ok(());
        }
        let py = self.py;
        let bytes = match source.whole(py, len)? {
            Some(bytes) => bytes,
            None => PyBytes::new(py, source.bytes(len)?),
        };
        self.push_new(source, bytes.into_any())
    }

    fn bytearray(&mut self, source: &mut S, len: u64) -> Done {
        let len = Self::fits(Opcode::ByteArray8, len)?;
        let py = self.py;
        let bytes = match source.whole(py, len)? {
            Some(bytes) => PyByteArray::new(py, bytes.as_bytes()),
            None => PyByteArray::new(py, source.bytes(len)?),
        };
        self.push(bytes.into_any())
    }

    fn next_buffer(&mut self, _source: &mut S) -> Done {
        let Some(buffers) = &self.hooks.buffers else {
            let message =
                "pickle stream refers to out-of-band data but no *buffers* argument was given";
            return Err(Fail::new(self.py, message));
        };
        let mut buffers = buffers.clone();
        match self.outside(|_| buffers.next()).transpose()? {
            Some(buffer) => self.push(buffer),
            None => Err(Fail::new(self.py, "not enough out-of-band buffers")),
        }
    }

    fn readonly_buffer(&mut self, _source: &mut S) -> Done {
        let buffer = self.top_one()?;
        let view = PyMemoryView::from(&buffer)?;
        if !view.getattr("readonly")?.is_truthy()? {
            drop(self.pop_one()?);
            return self.push(view.call_method0("toreadonly")?);
        }
        Ok(())
    }

    #[inline(always)]
    fn mark(&mut self, _source: &mut S) -> Done {
        self.mark_here(0);
        Ok(())
    }

    fn pop(&mut self, _source: &mut S) -> Done {
        // C lets POP remove a mark that lies on top.
        if let Some(mark) = self.memory.marks.last()
            && mark.at == self.memory.stack.len()
        {
            self.take_mark()?;
            return Ok(());
        }
        drop(self.pop_one()?);
        Ok(())
    }

    fn pop_mark(&mut self, _source: &mut S) -> Done {
        let at = self.take_mark()?;
        self.memory.stack.truncate(self.py, at);
        Ok(())
    }

    fn dup(&mut self, _source: &mut S) -> Done {
        let object = self.top_one()?;
        self.push(object)
    }

    #[inline(always)]
    fn empty_tuple(&mut self, _source: &mut S) -> Done {
        self.push(PyTuple::empty(self.py).into_any())
    }

    #[inline(always)]
    fn tuple1(&mut self, source: &mut S) -> Done {
        self.tuple_of(source, 1)
    }

    #[inline(always)]
    fn tuple2(&mut self, source: &mut S) -> Done {
        self.tuple_of(source, 2)
    }

    #[inline(always)]
    fn tuple3(&mut self, source: &mut S) -> Done {
        self.tuple_of(source, 3)
    }

    #[inline(always)]
    fn tuple(&mut self, source: &mut S) -> Done {
        let at = self.take_mark()?;
        let tuple = self.memory.stack.take_tuple(self.py, at)?;
        self.count();
        self.push_new(source, tuple.into_any())
    }

    #[inline(always)]
    fn empty_list(&mut self, source: &mut S) -> Done {
        self.count();
        self.push_new(source, PyList::empty(self.py).into_any())
    }

    fn list(&mut self, _source: &mut S) -> Done {
        let at = self.take_mark()?;
        let list = PyList::empty(self.py);
        self.memory.stack.take_into_list(&list, at)?;
        self.count();
        self.push(list.into_any())
    }

    #[inline(always)]
    fn append(&mut self, _source: &mut S) -> Done {
        let len = self.memory.stack.len();
        if len < self.fence + 2 {
            return Err(self.underflow());
        }
        self.append_from(len - 1)
    }

    #[inline(always)]
    fn appends(&mut self, _source: &mut S) -> Done {
        let at = self.take_mark()?;
        self.append_from(at)
    }

    #[inline(always)]
    fn empty_dict(&mut self, source: &mut S) -> Done {
        self.count();
        self.push_new(source, PyDict::new(self.py).into_any())
    }

    fn dict(&mut self, _source: &mut S) -> Done {
        let at = self.take_mark()?;
        if !(self.memory.stack.len() - at).is_multiple_of(2) {
            return Err(Fail::new(self.py, "odd number of items for DICT"));
        }
        let dict = PyDict::new(self.py);
        self.memory.stack.take_into_dict(&dict, at)?;
        self.count();
        self.push(dict.into_any())
    }

    #[inline(always)]
    fn setitem(&mut self, _source: &mut S) -> Done {
        let len = self.memory.stack.len();
        if len < self.fence + 3 {
            return Err(self.underflow());
        }
        self.set_from(len - 2)
    }

    #[inline(always)]
    fn setitems(&mut self, source: &mut S) -> Done {
        if self.set_state_directly(source)? {
            return Ok(());
        }
        let at = self.take_mark()?;
        self.set_from(at)
    }

    #[inline(always)]
    fn empty_set(&mut self, _source: &mut S) -> Done {
        self.count();
        self.push(PySet::empty(self.py)?.into_any())
    }

    fn additems(&mut self, _source: &mut S) -> Done {
        let at = self.take_mark()?;
        let set = self.container(at)?;
        if self.memory.stack.len() == at {
            return Ok(());
        }
        let items = self.memory.stack.take_tuple(self.py, at)?;
        if let Ok(set) = set.cast::<PySet>() {
            for item in items.iter() {
                if let Err(error) = set.add(&item) {
                    self.defer_add(set, item, error)?;
                }
            }
            return Ok(());
        }
        self.outside(|_| {
            let add = set.getattr("add")?;
            for item in items.iter() {
                add.call1((item,))?;
            }
            Ok::<(), PyErr>(())
        })?;
        Ok(())
    }

    fn frozenset(&mut self, _source: &mut S) -> Done {
        let at = self.take_mark()?;
        let items = self.memory.stack.take_tuple(self.py, at)?;
        let set = PyFrozenSet::new(self.py, items.iter())?;
        self.count();
        self.push(set.into_any())
    }

    #[inline(always)]
    fn put(&mut self, _source: &mut S, index: u32) -> Done {
        self.remember(index as usize)
    }

    fn put_text(&mut self, source: &mut S) -> Done {
        let text = self.line_text(source)?;
        // The order of complaints is C's.
        self.top_one()?;
        let index = self.index_of(&text)?;
        match usize::try_from(index) {
            Ok(index) => self.remember(index),
            Err(_) => Err(pyo3::exceptions::PyValueError::new_err("negative PUT argument").into()),
        }
    }

    #[inline(always)]
    fn memoize(&mut self, _source: &mut S) -> Done {
        self.remember(self.memory.memo.len())
    }

    #[inline(always)]
    fn get(&mut self, _source: &mut S, index: u32) -> Done {
        self.fetch(index as usize)
    }

    fn get_text(&mut self, source: &mut S) -> Done {
        let index = self.index_line(source)?;
        match usize::try_from(index) {
            Ok(index) => self.fetch(index),
            Err(_) => Err(Fail::new(
                self.py,
                format!("Memo value not found at index {index}"),
            )),
        }
    }

    fn global(&mut self, source: &mut S) -> Done {
        self.at = source.offset();
        let found = self.global_lines(source, c"utf-8")?;
        self.push(found)
    }

    fn stack_global(&mut self, source: &mut S) -> Done {
        self.at = source.offset();
        let name = self.pop_one()?;
        let module = self.pop_one()?;
        let (Ok(module), Ok(name)) = (
            module.cast_exact::<PyString>(),
            name.cast_exact::<PyString>(),
        ) else {
            return Err(Fail::new(self.py, "STACK_GLOBAL requires str"));
        };
        let found = self.find_class(module, name)?;
        self.push(found)
    }

    fn ext(&mut self, source: &mut S, code: i32) -> Done {
        self.at = source.offset();
        self.check_frame(source)?;
        let found = self.extension(code)?;
        self.push(found)
    }

    fn persid_text(&mut self, source: &mut S) -> Done {
        let line = source.line()?.to_vec();
        self.check_frame(source)?;
        // Since 3.13 there always is one, which refuses: the id is looked at before.
        if cfg!(not(Py_3_13)) && self.hooks.persistent_load.is_none() {
            return Err(self.no_persistent_load());
        }
        let Ok(id) = std::str::from_utf8(&line)
            .map_err(drop)
            .and_then(|id| if id.is_ascii() { Ok(id) } else { Err(()) })
        else {
            return Err(Fail::new(
                self.py,
                "persistent IDs in protocol 0 must be ASCII strings",
            ));
        };
        let id = PyString::new(self.py, id).into_any();
        self.persistent(id)
    }

    fn binpersid(&mut self, _source: &mut S) -> Done {
        // Since 3.13 there always is a `persistent_load`, which refuses: the id is taken off before.
        if cfg!(not(Py_3_13)) && self.hooks.persistent_load.is_none() {
            return Err(self.no_persistent_load());
        }
        let id = self.pop_one()?;
        self.persistent(id)
    }

    fn reduce(&mut self, source: &mut S) -> Done {
        self.at = source.offset();
        self.call_reduce()
    }

    fn build(&mut self, source: &mut S) -> Done {
        self.at = source.offset();
        self.set_state()
    }

    fn inst(&mut self, source: &mut S) -> Done {
        self.at = source.offset();
        let at = self.take_mark()?;
        let class = self.global_lines(source, c"ascii")?;
        let args = self.memory.stack.take_tuple(self.py, at)?;
        self.instantiate(class, args)
    }

    fn obj(&mut self, source: &mut S) -> Done {
        self.at = source.offset();
        let at = self.take_mark()?;
        if self.memory.stack.len() < at + 1 {
            return Err(self.underflow());
        }
        let args = self.memory.stack.take_tuple(self.py, at + 1)?;
        let class = self.pop_one()?;
        self.instantiate(class, args)
    }

    #[inline(always)]
    fn newobj(&mut self, source: &mut S) -> Done {
        self.make_instance(source)
    }

    fn newobj_ex(&mut self, source: &mut S) -> Done {
        self.at = source.offset();
        self.make_instance_ex()
    }
}

/// What an INT line of two characters says if it is a bool: any zero or one, as C's `strtol` reads it, which skips space
/// and takes a sign or another zero, and stops at a NUL.
fn flag(line: &[u8]) -> Option<bool> {
    match *line {
        [
            b'0' | b'+' | b' ' | b'\t' | 0x0b | 0x0c | b'\r',
            digit @ (b'0' | b'1'),
        ]
        | [digit @ (b'0' | b'1'), 0] => Some(digit == b'1'),
        [b'-', b'0'] | [0, _] => Some(false),
        _ => None,
    }
}

/// An octal int as C writes it, with a leading zero: what the reference reads INT lines with up to 3.13 knows it.
fn octal(line: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(line).ok()?.trim_ascii();
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.starts_with('0')
        || digits.len() < 2
        || !digits.bytes().all(|digit| (b'0'..b'8').contains(&digit))
    {
        return None;
    }
    i64::from_str_radix(text, 8).ok()
}
