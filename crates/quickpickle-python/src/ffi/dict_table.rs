//! The table of a dict with few keys, built in one go instead of item by item.
//!
//! A table has counters, an index by hash, and pairs of key and value in the order of insertion; since 3.11 one whose keys
//! are all str has a kind of its own, which leaves out the hashes. For a dict that is still empty, and keys that differ, that table can be written as it
//! will be. [`check_layout`] compares dicts built here with the interpreter's; without that proof nothing is built.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::compat;

/// The table that all empty dicts share; 0 until the layout has been checked.
static EMPTY_KEYS: AtomicUsize = AtomicUsize::new(0);

/// Most pairs that a table built here holds: that of 128 slots, the largest whose index has one byte for each.
const MAX_PAIRS: usize = 85;

/// What comes before the index.
#[repr(C)]
struct Header {
    references: isize,
    log2_size: u8,
    log2_index_bytes: u8,
    kind: u8,
    version: u32,
    usable: isize,
    entries: isize,
}

/// The kind of table whose keys are all str.
const KIND_UNICODE: u8 = 1;
/// The kind whose keys may be anything.
const KIND_GENERAL: u8 = 0;

/// A table's memory, from the allocator that the interpreter frees it with.
///
/// # Safety
/// As `malloc`.
unsafe fn allocate(size: usize) -> *mut u8 {
    // SAFETY: the GIL is held.
    unsafe {
        if cfg!(Py_3_13) {
            ffi::PyMem_Malloc(size).cast()
        } else {
            ffi::PyObject_Malloc(size).cast()
        }
    }
}

/// The entries of an exact dict: where the first lies, how many, and how far apart; None where tables are not read, or
/// belong to several dicts. An entry is key and value; an emptied one has no value.
///
/// # Safety
/// `dict` is a live exact dict.
#[inline(always)]
pub(super) unsafe fn entries(dict: *mut ffi::PyObject) -> Option<(*const u8, usize, usize)> {
    let object = dict.cast::<ffi::PyDictObject>();
    // SAFETY: a checked layout: behind the index lie as many entries as the header says, each a key and a value, with the
    // hash before them where keys are not all str.
    unsafe {
        if EMPTY_KEYS.load(Ordering::Relaxed) == 0 || !(*object).ma_values.is_null() {
            return None;
        }
        let header = (*object).ma_keys.cast::<Header>();
        let entries = header
            .add(1)
            .cast::<u8>()
            .add(1 << (*header).log2_index_bytes);
        let (size, key_at) = match (*header).kind {
            KIND_UNICODE => (16, 0),
            KIND_GENERAL => (24, 8),
            _ => return None,
        };
        Some((entries.add(key_at), (*header).entries as usize, size))
    }
}

/// Fills a dict that has never held anything with `pairs`, keys and values in turn, which are live objects; false, and
/// nothing has happened, where that cannot be done here. The references of all pairs pass to the dict.
///
/// # Safety
/// `pairs` are live objects. If true is returned, the references to them have been given away.
#[inline(always)]
pub(super) unsafe fn fill(dict: &Bound<'_, PyDict>, pairs: &[NonNull<ffi::PyObject>]) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        match pairs.first() {
            Some(key) if ffi::Py_TYPE(key.as_ptr()) == &raw mut ffi::PyUnicode_Type => {
                fill_table::<true>(dict, pairs)
            }
            Some(_) => fill_table::<false>(dict, pairs),
            None => false,
        }
    }
}

/// [`fill`] with a table for str keys (`TEXT`), or for keys of any type, which has a hash in front of each pair.
///
/// # Safety
/// As [`fill`].
#[inline(always)]
unsafe fn fill_table<const TEXT: bool>(
    dict: &Bound<'_, PyDict>,
    pairs: &[NonNull<ffi::PyObject>],
) -> bool {
    let count = pairs.len() / 2;
    let object = dict.as_ptr().cast::<ffi::PyDictObject>();
    let (entry, pair_at) = if TEXT { (16, 0) } else { (24, 8) };
    // SAFETY: `dict` is an exact dict. Its shared empty table is replaced by one of its own, complete before the dict
    // refers to it; nothing runs in between.
    unsafe {
        let empty = EMPTY_KEYS.load(Ordering::Relaxed);
        if empty == 0 || (*object).ma_keys as usize != empty || count == 0 || count > MAX_PAIRS {
            return false;
        }
        let log2_size = match count {
            0..=5 => 3,
            6..=10 => 4,
            11..=21 => 5,
            22..=42 => 6,
            _ => 7,
        };
        let size = 1_usize << log2_size;
        let usable = size * 2 / 3;
        let bytes = size_of::<Header>() + size + usable * entry;
        let table = allocate(bytes);
        if table.is_null() {
            return false;
        }
        let index = table.add(size_of::<Header>());
        std::ptr::write_bytes(index, 0xff, size);
        let entries = index.add(size);
        let pair = |at: usize| {
            entries
                .add(at * entry + pair_at)
                .cast::<[*mut ffi::PyObject; 2]>()
        };
        let key_hash = |key| {
            if TEXT {
                text_hash(key)
            } else {
                plain_hash(key)
            }
        };
        let mut tracked = false;
        for at in 0..count {
            let (key, value) = (pairs[2 * at].as_ptr(), pairs[2 * at + 1].as_ptr());
            let Some(hash) = key_hash(key) else {
                return give_up(table);
            };
            // The interpreter's own sequence of probes.
            let mut slot = hash as usize & (size - 1);
            let mut perturb = hash as usize;
            loop {
                let taken = *index.add(slot);
                if taken == 0xff {
                    break;
                }
                let other = (*pair(usize::from(taken)))[0];
                if other == key || key_hash(other) == Some(hash) {
                    // Twice the same key, most likely: let the interpreter see to it.
                    return give_up(table);
                }
                perturb >>= 5;
                slot = (slot * 5 + perturb + 1) & (size - 1);
            }
            *index.add(slot) = at as u8;
            pair(at).write([key, value]);
            if !TEXT {
                pair(at).cast::<isize>().sub(1).write(hash);
            }
            tracked |= may_be_tracked(value);
        }
        std::ptr::write_bytes(entries.add(count * entry), 0, (usable - count) * entry);
        table.cast::<Header>().write(Header {
            references: 1,
            log2_size,
            log2_index_bytes: log2_size,
            kind: if TEXT { KIND_UNICODE } else { KIND_GENERAL },
            version: 0,
            usable: (usable - count) as isize,
            entries: count as isize,
        });
        if cfg!(not(Py_3_12)) {
            // Up to 3.11 the shared table counts the dicts that have it.
            (*(empty as *mut Header)).references -= 1;
        }
        (*object).ma_keys = table.cast();
        (*object).ma_used = count as ffi::Py_ssize_t;
        if tracked && ffi::PyObject_GC_IsTracked(dict.as_ptr()) == 0 {
            ffi::PyObject_GC_Track(dict.as_ptr().cast());
        }
        true
    }
}

/// # Safety
/// `table` has just been allocated, and nothing refers to it.
#[cold]
unsafe fn give_up(table: *mut u8) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        if cfg!(Py_3_13) {
            ffi::PyMem_Free(table.cast())
        } else {
            ffi::PyObject_Free(table.cast())
        }
    }
    false
}

/// The hash of an exact str, from where it is kept once known; None for anything else.
///
/// # Safety
/// `key` is a live object.
#[inline(always)]
unsafe fn text_hash(key: *mut ffi::PyObject) -> Option<isize> {
    // SAFETY: the caller's promise. Hashing an exact str runs no other code.
    unsafe {
        if ffi::Py_TYPE(key) != &raw mut ffi::PyUnicode_Type {
            return None;
        }
        match (*key.cast::<ffi::PyASCIIObject>()).hash {
            -1 => match ffi::PyObject_Hash(key) {
                -1 => {
                    ffi::PyErr_Clear();
                    None
                }
                hash => Some(hash),
            },
            hash => Some(hash),
        }
    }
}

/// The hash of an object whose type is exactly one of those for which hashing and comparing run no other code; None for
/// anything else. None of them is followed by the cyclic collector.
///
/// # Safety
/// `key` is a live object.
#[inline(always)]
unsafe fn plain_hash(key: *mut ffi::PyObject) -> Option<isize> {
    // SAFETY: the caller's promise.
    unsafe {
        let ty = ffi::Py_TYPE(key);
        if ty == &raw mut ffi::PyLong_Type {
            if let Some(value) = compat::long_digit(key) {
                // What stands for an error is no hash.
                return Some(if value == -1 { -2 } else { value as isize });
            }
        } else if ty == &raw mut ffi::PyUnicode_Type {
            return text_hash(key);
        } else if ty != &raw mut ffi::PyFloat_Type
            && ty != &raw mut ffi::PyBytes_Type
            && ty != &raw mut ffi::PyBool_Type
        {
            return None;
        }
        match ffi::PyObject_Hash(key) {
            -1 => {
                ffi::PyErr_Clear();
                None
            }
            hash => Some(hash),
        }
    }
}

/// Whether the cyclic collector follows, or may come to follow, an object that a dict refers to.
///
/// # Safety
/// `value` is a live object.
#[inline(always)]
unsafe fn may_be_tracked(value: *mut ffi::PyObject) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let flags = (*ffi::Py_TYPE(value)).tp_flags;
        flags & ffi::Py_TPFLAGS_HAVE_GC != 0
            && (ffi::Py_TYPE(value) != &raw mut ffi::PyTuple_Type
                || ffi::PyObject_GC_IsTracked(value) != 0)
    }
}

/// Builds dicts of several sizes and compares them with the interpreter's, as tables and as dicts.
pub(crate) fn check_layout(py: Python<'_>) -> PyResult<()> {
    if cfg!(not(Py_3_11)) || cfg!(Py_GIL_DISABLED) {
        return Ok(());
    }
    let empty = PyDict::new(py);
    // SAFETY: reading a field of a live dict.
    let shared = unsafe { (*empty.as_ptr().cast::<ffi::PyDictObject>()).ma_keys as usize };
    let mut agrees = true;
    let sizes = [1, 2, 5, 6, 10, 11, 21, 42, MAX_PAIRS];
    for (count, text) in sizes
        .into_iter()
        .flat_map(|count| [(count, true), (count, false)])
    {
        let theirs = PyDict::new(py);
        let key = |at: usize| -> PyResult<Bound<'_, PyAny>> {
            if text {
                Ok(PyString::new(py, &format!("key {at}")).into_any())
            } else {
                Ok((at * 97).into_pyobject(py)?.into_any())
            }
        };
        for at in 0..count {
            theirs.set_item(key(at)?, at + 1000)?;
        }
        let kind = if text { KIND_UNICODE } else { KIND_GENERAL };
        agrees &= looks_as_expected(&theirs, count, kind);
        if !agrees {
            break;
        }
        EMPTY_KEYS.store(shared, Ordering::Relaxed);
        let ours = PyDict::new(py);
        let mut pairs = Vec::new();
        for (key, value) in theirs.iter() {
            // SAFETY: a Bound is not null.
            pairs.extend(unsafe {
                [
                    NonNull::new_unchecked(key.into_ptr()),
                    NonNull::new_unchecked(value.into_ptr()),
                ]
            });
        }
        // SAFETY: `pairs` are live objects whose references are given away on success, and given up otherwise.
        unsafe {
            if !fill(&ours, &pairs) {
                agrees = false;
                for pair in pairs {
                    ffi::Py_DECREF(pair.as_ptr());
                }
            }
        }
        agrees &= ours.eq(&theirs)? && ours.len() == count;
        // It grows, shrinks and is copied like any other.
        ours.set_item("one more", 1)?;
        ours.del_item(key(0)?)?;
        agrees &= ours.copy()?.len() == count && !ours.contains(key(0)?)?;
        ours.clear();
    }
    EMPTY_KEYS.store(if agrees { shared } else { 0 }, Ordering::Relaxed);
    for make_key in [|at: i32| format!("'{at}'"), |at: i32| at.to_string()] {
        let dict = PyDict::new(py);
        for at in 0..300 {
            let key = py.eval(&std::ffi::CString::new(make_key(at))?, None, None)?;
            dict.set_item(key, at + 1000)?;
        }
        for at in [0, 7, 299] {
            let key = py.eval(&std::ffi::CString::new(make_key(at))?, None, None)?;
            dict.del_item(key)?;
        }
        agrees &= reads_like_items(&dict);
    }
    if !agrees {
        EMPTY_KEYS.store(0, Ordering::Relaxed);
    }
    Ok(())
}

/// Whether the table of a dict holds what the dict says it does.
fn reads_like_items(dict: &Bound<'_, PyDict>) -> bool {
    // SAFETY: a live exact dict.
    let Some((first, count, size)) = (unsafe { entries(dict.as_ptr()) }) else {
        return false;
    };
    let mut expected = dict.iter();
    for at in 0..count {
        // SAFETY: within the entries that the table says it has, if it looks as expected; if it does not, what is read here
        // are pointers that are only compared.
        let [key, value] = unsafe { *first.add(at * size).cast::<[*mut ffi::PyObject; 2]>() };
        if value.is_null() {
            continue;
        }
        if expected
            .next()
            .is_none_or(|(k, v)| k.as_ptr() != key || v.as_ptr() != value)
        {
            return false;
        }
    }
    expected.next().is_none()
}

/// Whether the interpreter's table for `count` keys has the header that is written here.
fn looks_as_expected(dict: &Bound<'_, PyDict>, count: usize, kind: u8) -> bool {
    // SAFETY: reading the table of a live dict, whose first bytes are at least as many as a header has in every version.
    let header = unsafe {
        &*(*dict.as_ptr().cast::<ffi::PyDictObject>())
            .ma_keys
            .cast::<Header>()
    };
    header.references == 1
        && header.kind == kind
        && (3..=8).contains(&header.log2_size)
        && header.entries == count as isize
        && header.usable >= 0
        && header.usable as usize + count == (1_usize << header.log2_size) * 2 / 3
}
