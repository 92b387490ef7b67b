//! What an object is, by its exact type, with a typed view for each builtin that is read directly.
//!
//! A view can only be made by [`classify`], which has compared the type pointer; that is the fact the accessors rest on.

use pyo3::ffi;

use super::compat;
use super::object::{Obj, Quiet};

/// An object sorted by exact type; subclasses are [`Kind::Other`].
pub(crate) enum Kind<'q> {
    /// None
    None,
    /// True or False
    Bool(bool),
    /// int
    Int(Int<'q>),
    /// float
    Float(f64),
    /// str
    Str(Str<'q>),
    /// bytes
    Bytes(Bytes<'q>),
    /// tuple
    Tuple(Tuple<'q>),
    /// list
    List(List<'q>),
    /// dict
    Dict(super::dict::Dict<'q>),
    /// set
    Set(Set<'q>),
    /// frozenset
    FrozenSet(Set<'q>),
    /// bytearray
    ByteArray(ByteArray<'q>),
    /// PickleBuffer
    PickleBuffer,
    /// type (a class whose metaclass is `type`)
    Type,
    /// a Python function
    Function,
    /// anything else
    Other,
}

/// Sorts an object by its exact type.
#[inline(always)]
pub(crate) fn classify<'q>(obj: Obj<'q>) -> Kind<'q> {
    let ty = obj.type_ptr().as_ptr();
    // SAFETY: taking addresses of statics, and reading None's, True's and False's, which live forever; the view types are
    // made only for the exact type they name.
    unsafe {
        if ty == &raw mut ffi::PyUnicode_Type {
            Kind::Str(Str(obj))
        } else if ty == &raw mut ffi::PyLong_Type {
            Kind::Int(Int(obj))
        } else if ty == &raw mut ffi::PyFloat_Type {
            Kind::Float(ffi::PyFloat_AS_DOUBLE(obj.as_ptr()))
        } else if ty == &raw mut ffi::PyTuple_Type {
            Kind::Tuple(Tuple(obj))
        } else if ty == &raw mut ffi::PyDict_Type {
            Kind::Dict(super::dict::Dict::new(obj))
        } else if ty == &raw mut ffi::PyList_Type {
            Kind::List(List(obj))
        } else if obj.as_ptr() == ffi::Py_None() {
            Kind::None
        } else if ty == &raw mut ffi::PyBool_Type {
            Kind::Bool(obj.as_ptr() == ffi::Py_True())
        } else if ty == &raw mut ffi::PyBytes_Type {
            Kind::Bytes(Bytes(obj))
        } else if ty == &raw mut ffi::PySet_Type {
            Kind::Set(Set(obj))
        } else if ty == &raw mut ffi::PyFrozenSet_Type {
            Kind::FrozenSet(Set(obj))
        } else if ty == &raw mut ffi::PyByteArray_Type {
            Kind::ByteArray(ByteArray(obj))
        } else if ty == &raw mut compat::PyPickleBuffer_Type {
            Kind::PickleBuffer
        } else if ty == &raw mut ffi::PyType_Type {
            Kind::Type
        } else if ty == &raw mut ffi::PyFunction_Type {
            Kind::Function
        } else {
            Kind::Other
        }
    }
}

/// The object as an exact int.
#[inline(always)]
pub(crate) fn classify_int<'q>(obj: Obj<'q>) -> Option<Int<'q>> {
    (obj.type_ptr().as_ptr() == &raw mut ffi::PyLong_Type).then_some(Int(obj))
}

/// The value of an exact float.
#[inline(always)]
pub(crate) fn classify_float(obj: Obj<'_>) -> Option<f64> {
    // SAFETY: read only from an exact float, alive for the section.
    (obj.type_ptr().as_ptr() == &raw mut ffi::PyFloat_Type)
        .then(|| unsafe { ffi::PyFloat_AS_DOUBLE(obj.as_ptr()) })
}

/// An exact int; see [`super::long`].
#[derive(Clone, Copy)]
pub(crate) struct Int<'q>(pub(super) Obj<'q>);

/// An exact str.
#[derive(Clone, Copy)]
pub(crate) struct Str<'q>(Obj<'q>);

impl<'q> Str<'q> {
    /// Its UTF-8 where that is at hand: for ASCII, and where Python has made it before. None otherwise.
    #[inline(always)]
    pub(crate) fn utf8(self, _q: Quiet<'q>) -> Option<&'q [u8]> {
        let ptr = self.0.as_ptr();
        // SAFETY: the object is an exact str, ready since 3.12 and made ready below before; the data of an ASCII str is
        // `length` bytes, and neither it nor a cached UTF-8 form changes while the str is alive.
        unsafe {
            #[cfg(not(Py_3_12))]
            if ffi::PyUnicode_READY(ptr) < 0 {
                ffi::PyErr_Clear();
                return None;
            }
            if compat::is_compact_ascii(ptr) {
                let data = ptr.cast::<ffi::PyASCIIObject>().add(1).cast::<u8>();
                let len = (*ptr.cast::<ffi::PyASCIIObject>()).length as usize;
                return Some(std::slice::from_raw_parts(data, len));
            }
        }
        self.utf8_made()
    }

    /// The UTF-8 of a str with other than ASCII characters, made and cached in it by Python; None with lone surrogates.
    #[inline(never)]
    fn utf8_made(self) -> Option<&'q [u8]> {
        #[cfg(not(Py_3_12))]
        if self.has_surrogates() {
            return None;
        }
        let mut len = 0;
        // SAFETY: an exact str; the call allocates plain memory only and runs no code; for a
        // lone surrogate it makes an exception, which since 3.12 starts no collection. The cached form lives as long as
        // the str, which outlives 'q.
        unsafe {
            let data = ffi::PyUnicode_AsUTF8AndSize(self.0.as_ptr(), &mut len);
            if data.is_null() {
                ffi::PyErr_Clear();
                return None;
            }
            Some(std::slice::from_raw_parts(data.cast(), len as usize))
        }
    }

    /// Whether a lone surrogate is in it: encoding that fails, which makes an exception, and allocating that may start a
    /// collection.
    #[cfg(not(Py_3_12))]
    fn has_surrogates(self) -> bool {
        let ptr = self.0.as_ptr();
        // SAFETY: an exact str that is ready has `length` units of one, two or four bytes.
        unsafe {
            let len = ffi::PyUnicode_GET_LENGTH(ptr) as usize;
            let data = ffi::PyUnicode_DATA(ptr);
            match ffi::PyUnicode_KIND(ptr) {
                ffi::PyUnicode_1BYTE_KIND => false,
                ffi::PyUnicode_2BYTE_KIND => std::slice::from_raw_parts(data.cast::<u16>(), len)
                    .iter()
                    .any(|unit| (0xd800..0xe000).contains(unit)),
                _ => std::slice::from_raw_parts(data.cast::<u32>(), len)
                    .iter()
                    .any(|unit| (0xd800..0xe000).contains(unit)),
            }
        }
    }
}

/// An exact bytes object.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'q>(Obj<'q>);

impl<'q> Bytes<'q> {
    /// Its content, which never changes.
    #[inline(always)]
    pub(crate) fn as_slice(self, _q: Quiet<'q>) -> &'q [u8] {
        // SAFETY: an exact bytes object is immutable and alive for 'q.
        unsafe {
            let data = ffi::PyBytes_AS_STRING(self.0.as_ptr()).cast::<u8>();
            std::slice::from_raw_parts(data, ffi::PyBytes_Size(self.0.as_ptr()) as usize)
        }
    }
}

/// An exact bytearray.
#[derive(Clone, Copy)]
pub(crate) struct ByteArray<'q>(Obj<'q>);

impl<'q> ByteArray<'q> {
    /// Its content; nothing can change it while the quiet section lasts.
    pub(crate) fn as_slice(self, _q: Quiet<'q>) -> &'q [u8] {
        // SAFETY: an exact bytearray, alive for 'q, in which no code runs that could resize it. An empty one has a valid
        // pointer too.
        unsafe {
            let data = ffi::PyByteArray_AsString(self.0.as_ptr()).cast::<u8>();
            std::slice::from_raw_parts(data, ffi::PyByteArray_Size(self.0.as_ptr()) as usize)
        }
    }
}

/// An exact tuple.
#[derive(Clone, Copy)]
pub(crate) struct Tuple<'q>(Obj<'q>);

impl<'q> Tuple<'q> {
    /// The object itself.
    #[inline(always)]
    pub(crate) fn obj(self) -> Obj<'q> {
        self.0
    }

    /// Number of items.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        // SAFETY: an exact tuple.
        unsafe { ffi::PyTuple_GET_SIZE(self.0.as_ptr()) as usize }
    }

    /// The item at `index`, if there is one. A tuple still being filled may have holes, which end it.
    #[inline(always)]
    pub(crate) fn get(self, index: usize) -> Option<Obj<'q>> {
        if index >= self.len() {
            return None;
        }
        // SAFETY: within bounds, checked above; the tuple holds its items and is alive for 'q.
        unsafe {
            let item = ffi::PyTuple_GET_ITEM(self.0.as_ptr(), index as ffi::Py_ssize_t);
            if item.is_null() {
                None
            } else {
                Some(Obj::from_raw(item))
            }
        }
    }
}

/// An exact list.
#[derive(Clone, Copy)]
pub(crate) struct List<'q>(Obj<'q>);

impl<'q> List<'q> {
    /// The object itself.
    #[inline(always)]
    pub(crate) fn obj(self) -> Obj<'q> {
        self.0
    }

    /// Number of items now.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        // SAFETY: an exact list.
        unsafe { ffi::PyList_GET_SIZE(self.0.as_ptr()) as usize }
    }

    /// The item at `index`, if there is one now.
    #[inline(always)]
    pub(crate) fn get(self, index: usize) -> Option<Obj<'q>> {
        if index >= self.len() {
            return None;
        }
        // SAFETY: within bounds, checked above against the size of this moment; the list holds its items, and nothing
        // takes them out during 'q.
        unsafe {
            let item = ffi::PyList_GET_ITEM(self.0.as_ptr(), index as ffi::Py_ssize_t);
            if item.is_null() {
                None
            } else {
                Some(Obj::from_raw(item))
            }
        }
    }
}

/// An exact set or frozenset.
#[derive(Clone, Copy)]
pub(crate) struct Set<'q>(Obj<'q>);

impl<'q> Set<'q> {
    /// The object itself.
    #[inline(always)]
    pub(crate) fn obj(self) -> Obj<'q> {
        self.0
    }

    /// Number of items now.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        // SAFETY: an exact set or frozenset.
        unsafe { (*self.0.as_ptr().cast::<ffi::PySetObject>()).used as usize }
    }

    /// The first item at or after table position `*pos`, which is moved behind it.
    #[inline(always)]
    pub(crate) fn next(self, pos: &mut usize) -> Option<Obj<'q>> {
        // SAFETY: an exact set or frozenset: `table` has `mask + 1` slots, which nothing changes during 'q.
        let table = unsafe {
            let set = &*self.0.as_ptr().cast::<ffi::PySetObject>();
            std::slice::from_raw_parts(set.table.cast::<compat::SetEntry>(), set.mask as usize + 1)
        };
        while let Some(entry) = table.get(*pos) {
            *pos += 1;
            if !entry.key.is_null() && entry.hash != -1 {
                // SAFETY: a key in use is held by the set.
                return Some(unsafe { Obj::from_raw(entry.key) });
            }
        }
        None
    }
}
