//! `dumps` of an object that holds no others: there is nothing to walk and nothing to remember, so no engine is needed.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quickpickle_format::opcode::byte;
use quickpickle_format::{Sink, Writer};

use crate::ffi::object::{Anchor, Obj, Quiet, quiet};
use crate::ffi::types::{Kind, classify};

/// Bytes of a pickle beside its payload: header, frame, opcode and length, MEMOIZE and STOP.
const AROUND: usize = 2 + 9 + 2 + 1 + 1;
/// Bytes of the longest pickle written here; clearing room for more would take longer than all else.
const LONGEST: usize = 64;
/// The longest payload of such a pickle.
const PAYLOAD: usize = LONGEST - AROUND;

/// A sink of fixed size.
struct Short {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Sink for Short {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(room) = self.bytes.get_mut(self.len..self.len + N) {
            room.copy_from_slice(&bytes);
            self.len += N;
        }
    }

    #[inline(always)]
    fn put_slice(&mut self, bytes: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            room.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    #[inline(always)]
    fn patch(&mut self, at: usize, bytes: [u8; 8]) {
        if let Some(room) = self.bytes.get_mut(at..at + 8) {
            room.copy_from_slice(&bytes);
        }
    }

    #[inline(always)]
    fn remove(&mut self, at: usize, count: usize) {
        let end = self.len;
        if at + count <= end {
            self.bytes.copy_within(at + count..end, at);
            self.len -= count;
        }
    }

    fn clear(&mut self) {
        self.len = 0;
    }
}

/// The pickle of `obj` in `protocol` (4 or later), if it is a leaf that fits.
#[inline(always)]
pub(crate) fn dumps_leaf<'py>(
    obj: &Bound<'py, PyAny>,
    protocol: u8,
) -> Option<Bound<'py, PyBytes>> {
    let py = obj.py();
    let anchor = Anchor::of(obj);
    let sink = Short {
        bytes: [0; LONGEST],
        len: 0,
    };
    let mut out = Writer::new(sink, protocol);
    out.begin();
    if !quiet(py, |q| write(q, anchor.obj(q), &mut out)) {
        return None;
    }
    out.end();
    let Short { bytes, len } = out.sink();
    Some(PyBytes::new(py, &bytes[..*len]))
}

#[inline(always)]
fn write<'q>(q: Quiet<'q>, obj: Obj<'q>, out: &mut Writer<Short>) -> bool {
    match classify(obj) {
        Kind::Int(int) => match int.small() {
            Some(value) => out.int(value),
            None => return false,
        },
        Kind::Str(text) => match text.utf8(q) {
            Some(utf8) if utf8.len() <= PAYLOAD => out.short_unicode_memoized(utf8),
            _ => return false,
        },
        Kind::None => out.none(),
        Kind::Bool(value) => out.boolean(value),
        Kind::Float(value) => out.float(value),
        Kind::Bytes(bytes) => {
            let bytes = bytes.as_slice(q);
            if bytes.len() > PAYLOAD {
                return false;
            }
            out.short_bytes(bytes);
            out.opcode(byte::MEMOIZE);
        }
        _ => return false,
    }
    true
}
