//! `dumps` of a small object made of plain values: no engine is set up, and what is remembered fits on the stack.
//!
//! Nothing is written outside of the call, so whatever turns out too large, too deep, met inside itself or of another
//! type is left to the engine, which begins anew.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quickpickle_format::frame::{FRAME_HEADER_SIZE, FRAME_SIZE_MIN};
use quickpickle_format::opcode::byte;
use quickpickle_format::{Sink, Writer};

use crate::ffi::object::{Anchor, Obj, Quiet, quiet};
use crate::ffi::types::{Bytes, Int, Kind, Str, classify};

/// Bytes before the first operation: PROTO and the header of a frame.
const HEADER: usize = 2 + FRAME_HEADER_SIZE;
/// Bytes of the longest pickle of a leaf written here; clearing room for more would take longer than all else.
const LEAF: usize = 64;
/// Bytes of the longest pickle of a container written here.
const CONTAINER: usize = 256;
/// Items of the largest container written here.
const PARTS: usize = 8;
/// Items of the largest list or tuple of numbers, which are not remembered.
const ITEMS: usize = 24;
/// Objects remembered at most; looking through more would take longer than a table.
const REMEMBERED: usize = 16;
/// Containers inside each other at most.
const DEPTH: usize = 4;

/// A sink of fixed size.
struct Short<const ROOM: usize> {
    bytes: [u8; ROOM],
    len: usize,
    /// Whether something did not fit.
    overflowed: bool,
}

impl<const ROOM: usize> Short<ROOM> {
    /// An empty one, with room for a header before what is written.
    #[inline(always)]
    fn new() -> Self {
        Short {
            bytes: [0; ROOM],
            len: HEADER,
            overflowed: false,
        }
    }

    /// The pickle: header and frame put before what has been written; None if that did not fit.
    #[inline(always)]
    fn finish(&mut self, protocol: u8) -> Option<&[u8]> {
        self.put([byte::STOP]);
        if self.overflowed {
            return None;
        }
        let size = self.len - HEADER;
        let start = if size < FRAME_SIZE_MIN {
            HEADER - 2
        } else {
            let mut frame = [byte::FRAME, 0, 0, 0, 0, 0, 0, 0, 0];
            frame[1..].copy_from_slice(&(size as u64).to_le_bytes());
            self.bytes[2..HEADER].copy_from_slice(&frame);
            0
        };
        self.bytes[start..start + 2].copy_from_slice(&[byte::PROTO, protocol]);
        Some(&self.bytes[start..self.len])
    }
}

impl<const ROOM: usize> Sink for Short<ROOM> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        match self.bytes.get_mut(self.len..self.len + N) {
            Some(room) => {
                room.copy_from_slice(&bytes);
                self.len += N;
            }
            None => self.overflowed = true,
        }
    }

    #[inline(always)]
    fn put_start<const N: usize>(&mut self, bytes: [u8; N], used: usize) {
        match self.bytes.get_mut(self.len..self.len + N) {
            Some(room) => {
                room.copy_from_slice(&bytes);
                self.len += used.min(N);
            }
            None => self.overflowed = true,
        }
    }

    #[inline(always)]
    fn put_slice(&mut self, bytes: &[u8]) {
        match self.bytes.get_mut(self.len..self.len + bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.len += bytes.len();
            }
            None => self.overflowed = true,
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

/// The pickle of `obj` in `protocol` (4 or later), if it is small and plain.
#[inline(always)]
pub(crate) fn dumps_small<'py>(
    obj: &Bound<'py, PyAny>,
    protocol: u8,
) -> Option<Bound<'py, PyBytes>> {
    let anchor = Anchor::of(obj);
    let is_container = quiet(obj.py(), |q| {
        matches!(
            classify(anchor.obj(q)),
            Kind::Tuple(_) | Kind::Dict(_) | Kind::List(_)
        )
    });
    if is_container {
        return dumps_container(obj, protocol);
    }
    finished(obj.py(), protocol, |q, out: &mut Writer<Short<LEAF>>| {
        leaf(q, anchor.obj(q), out, &mut Nothing)
    })
}

#[inline(never)]
fn dumps_container<'py>(obj: &Bound<'py, PyAny>, protocol: u8) -> Option<Bound<'py, PyBytes>> {
    let anchor = Anchor::of(obj);
    finished(
        obj.py(),
        protocol,
        |q, out: &mut Writer<Short<CONTAINER>>| {
            container(q, anchor.obj(q), out, &mut Few::new(), DEPTH) == Some(true)
        },
    )
}

/// The pickle that `write` writes, if it says that it has and all of it fits.
#[inline(always)]
fn finished<'py, const ROOM: usize>(
    py: Python<'py>,
    protocol: u8,
    write: impl for<'q> FnOnce(Quiet<'q>, &mut Writer<Short<ROOM>>) -> bool,
) -> Option<Bound<'py, PyBytes>> {
    let mut out = Writer::new(Short::<ROOM>::new(), protocol);
    if !quiet(py, |q| write(q, &mut out)) {
        return None;
    }
    let pickle = out.sink_mut().finish(protocol)?;
    Some(PyBytes::new(py, pickle))
}

/// What has been written.
trait Remember {
    /// The number of an object that has been written.
    fn find(&self, obj: Obj<'_>) -> Option<usize>;
    /// Remembers one just written. False where there is no room.
    fn add(&mut self, obj: Obj<'_>) -> bool;
}

/// For a single object.
struct Nothing;

impl Remember for Nothing {
    #[inline(always)]
    fn find(&self, _obj: Obj<'_>) -> Option<usize> {
        None
    }

    #[inline(always)]
    fn add(&mut self, _obj: Obj<'_>) -> bool {
        true
    }
}

/// Addresses, in the order of their numbers.
struct Few {
    addresses: [usize; REMEMBERED],
    len: usize,
}

impl Few {
    #[inline(always)]
    fn new() -> Self {
        Few {
            addresses: [0; REMEMBERED],
            len: 0,
        }
    }
}

impl Remember for Few {
    #[inline(always)]
    fn find(&self, obj: Obj<'_>) -> Option<usize> {
        let address = obj.address();
        self.addresses
            .iter()
            .take(self.len)
            .position(|&known| known == address)
    }

    #[inline(always)]
    fn add(&mut self, obj: Obj<'_>) -> bool {
        match self.addresses.get_mut(self.len) {
            Some(place) => {
                *place = obj.address();
                self.len += 1;
                true
            }
            None => false,
        }
    }
}

/// Writes an object that holds no others; false if it is not such.
#[inline(always)]
fn leaf<'q, const ROOM: usize>(
    q: Quiet<'q>,
    obj: Obj<'q>,
    out: &mut Writer<Short<ROOM>>,
    memo: &mut impl Remember,
) -> bool {
    match classify(obj) {
        Kind::Int(int) => small_int(int, out),
        Kind::Str(text) => string(q, obj, text, out, memo),
        Kind::None => {
            out.none();
            true
        }
        Kind::Bool(value) => {
            out.boolean(value);
            true
        }
        Kind::Float(value) => {
            out.float(value);
            true
        }
        Kind::Bytes(bytes) => byte_string(q, obj, bytes, out, memo),
        _ => false,
    }
}

#[inline(always)]
fn small_int<const ROOM: usize>(int: Int<'_>, out: &mut Writer<Short<ROOM>>) -> bool {
    match int.small() {
        Some(value) => {
            out.int(value);
            true
        }
        None => false,
    }
}

#[inline(always)]
fn string<'q, const ROOM: usize>(
    q: Quiet<'q>,
    obj: Obj<'q>,
    text: Str<'q>,
    out: &mut Writer<Short<ROOM>>,
    memo: &mut impl Remember,
) -> bool {
    if let Some(number) = memo.find(obj) {
        out.get(number);
        return true;
    }
    match text.utf8(q) {
        // A longer one could not fit, nor be told in one byte.
        Some(utf8) if utf8.len() < ROOM => {
            out.short_unicode_memoized(utf8);
            memo.add(obj)
        }
        _ => false,
    }
}

#[inline(always)]
fn byte_string<'q, const ROOM: usize>(
    q: Quiet<'q>,
    obj: Obj<'q>,
    bytes: Bytes<'q>,
    out: &mut Writer<Short<ROOM>>,
    memo: &mut impl Remember,
) -> bool {
    if let Some(number) = memo.find(obj) {
        out.get(number);
        return true;
    }
    let bytes = bytes.as_slice(q);
    if bytes.len() >= ROOM {
        return false;
    }
    out.short_bytes(bytes);
    out.opcode(byte::MEMOIZE);
    memo.add(obj)
}

type Out = Writer<Short<CONTAINER>>;

/// Writes an item of a container.
#[inline(always)]
fn item<'q>(q: Quiet<'q>, obj: Obj<'q>, out: &mut Out, memo: &mut Few, depth: usize) -> bool {
    leaf(q, obj, out, memo) || container(q, obj, out, memo, depth) == Some(true)
}

/// Whether a list or tuple may hold no more than can be remembered: a longer one not where its items, if they are like the
/// first, all have to be. To find that out at the end would be for nothing.
fn may_fit(len: usize, first: Option<Obj<'_>>) -> bool {
    let is_number = |first| {
        matches!(
            classify(first),
            Kind::Int(_) | Kind::Float(_) | Kind::Bool(_) | Kind::None
        )
    };
    len <= PARTS || len <= ITEMS && first.is_some_and(is_number)
}

/// Writes a container; None if it is none that is known here.
fn container<'q>(
    q: Quiet<'q>,
    obj: Obj<'q>,
    out: &mut Out,
    memo: &mut Few,
    depth: usize,
) -> Option<bool> {
    let depth = depth.checked_sub(1)?;
    if let Kind::Tuple(tuple) = classify(obj)
        && tuple.len() == 0
    {
        out.opcode(byte::EMPTY_TUPLE);
        return Some(true);
    }
    if let Some(number) = memo.find(obj) {
        out.get(number);
        return Some(true);
    }
    match classify(obj) {
        Kind::Tuple(tuple) if may_fit(tuple.len(), tuple.get(0)) => {
            let len = tuple.len();
            if len > 3 {
                out.opcode(byte::MARK);
            }
            for at in 0..len {
                if !item(q, tuple.get(at)?, out, memo, depth) {
                    return None;
                }
            }
            // One that holds itself has been written meanwhile.
            if memo.find(obj).is_some() {
                return None;
            }
            let opcode = match len {
                1 => byte::TUPLE1,
                2 => byte::TUPLE2,
                3 => byte::TUPLE3,
                _ => byte::TUPLE,
            };
            out.opcodes([opcode, byte::MEMOIZE]);
            Some(memo.add(obj))
        }
        Kind::List(list) if may_fit(list.len(), list.get(0)) => {
            out.opcodes([byte::EMPTY_LIST, byte::MEMOIZE]);
            if !memo.add(obj) {
                return None;
            }
            let len = list.len();
            if len > 1 {
                out.opcode(byte::MARK);
            }
            for at in 0..len {
                if !item(q, list.get(at)?, out, memo, depth) {
                    return None;
                }
            }
            match len {
                0 => {}
                1 => out.opcode(byte::APPEND),
                _ => out.opcode(byte::APPENDS),
            }
            Some(true)
        }
        Kind::Dict(dict) if dict.len() <= PARTS => {
            out.opcodes([byte::EMPTY_DICT, byte::MEMOIZE]);
            if !memo.add(obj) {
                return None;
            }
            let len = dict.len();
            if len > 1 {
                out.opcode(byte::MARK);
            }
            for (key, value) in dict.items(0) {
                if !item(q, key, out, memo, depth) || !item(q, value, out, memo, depth) {
                    return None;
                }
            }
            match len {
                0 => {}
                1 => out.opcode(byte::SETITEM),
                _ => out.opcode(byte::SETITEMS),
            }
            Some(true)
        }
        _ => None,
    }
}
