//! Attributes of instances of ordinary classes, read from where the interpreter keeps them without making a `__dict__`.
//!
//! Since 3.11 an instance keeps its attribute values in an array of its own, in the order of keys that its class holds,
//! until someone asks for `__dict__`. Where these arrays lie differs by version; [`check_layout`] compares what is read
//! here with what Python says, once, and without that proof `VALUES_READABLE` stays false and `__dict__` is used.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use super::compat;
use super::dict::Dict;
use super::object::{Obj, Quiet, TypePtr};

/// Set by [`check_layout`]; read by every walk.
static VALUES_READABLE: AtomicBool = AtomicBool::new(false);

/// Where instances of a class keep their attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// They have none (`__slots__` all the way).
    Nowhere,
    /// In a dict, in a slot at this many bytes from the start.
    Slot(isize),
    /// In an array or a dict that the interpreter manages, before the object's start (3.11 and later).
    Managed,
    /// Somewhere this module does not read.
    Unknown,
}

/// What an instance's attributes are kept in.
pub(crate) enum Attributes<'q> {
    /// Nothing: no attribute has been set.
    Empty,
    /// A dict.
    Dict(Dict<'q>),
    /// An array of values.
    Values(Values<'q>),
    /// A mapping of some other type, which a subclass of dict is.
    Foreign,
}

impl TypePtr {
    /// The type's version tag; see [`compat::type_version`].
    #[inline(always)]
    pub(crate) fn version(self) -> Option<u32> {
        // SAFETY: a TypePtr is of a type that a live object has.
        unsafe { compat::type_version(self.as_ptr()) }
    }

    /// Where instances keep their attributes.
    pub(crate) fn place(self) -> Place {
        // SAFETY: as above.
        let (flags, offset) =
            unsafe { ((*self.as_ptr()).tp_flags, (*self.as_ptr()).tp_dictoffset) };
        if cfg!(Py_3_11) && flags & MANAGED_DICT != 0 {
            if cfg!(not(Py_GIL_DISABLED)) && VALUES_READABLE.load(Ordering::Relaxed) {
                Place::Managed
            } else {
                Place::Unknown
            }
        } else {
            match offset {
                0 => Place::Nowhere,
                1.. => Place::Slot(offset),
                _ => Place::Unknown,
            }
        }
    }
}

const MANAGED_DICT: std::ffi::c_ulong = 1 << 4;

/// Facts of a class that the by-field walk of its instances needs.
pub(crate) struct Shape {
    /// Whether the class and all its bases but `object` were made by a class statement.
    pub(crate) all_python: bool,
    /// Whether it can be instantiated at all.
    pub(crate) has_new: bool,
    /// Bytes of an instance without items.
    pub(crate) basic_size: isize,
    /// Bytes of each item of a variable-sized instance.
    pub(crate) item_size: isize,
    /// Whether instances have a slot for weak references.
    pub(crate) has_weakref_slot: bool,
    /// Whether looking up an attribute is left to `object`.
    pub(crate) plain_getattr: bool,
    /// Whether making an instance is left to `object`, and possible.
    pub(crate) plain_new: bool,
    /// Whether hashing the class, as a key, is left to `type`.
    pub(crate) plain_hash: bool,
}

/// Reads the [`Shape`] of a class.
pub(crate) fn shape(class: &Bound<'_, PyType>) -> Shape {
    let ty = class.as_type_ptr();
    // SAFETY: `class` and, through it, its bases are alive; only fields of types are read.
    unsafe {
        let object = &raw mut ffi::PyBaseObject_Type;
        let of_types = &raw mut ffi::PyType_Type;
        let meta = ffi::Py_TYPE(ty.cast());
        let mut all_python = true;
        let mut base = ty;
        while !base.is_null() && base != object {
            all_python &= (*base).tp_flags & ffi::Py_TPFLAGS_HEAPTYPE != 0;
            base = (*base).tp_base;
        }
        Shape {
            all_python,
            has_new: (*ty).tp_new.is_some(),
            basic_size: (*ty).tp_basicsize,
            item_size: (*ty).tp_itemsize,
            has_weakref_slot: (*ty).tp_weaklistoffset > 0,
            plain_getattr: same(
                (*ty).tp_getattro.map(|f| f as usize),
                (*object).tp_getattro.map(|f| f as usize),
            ),
            plain_new: same(
                (*ty).tp_new.map(|f| f as usize),
                (*object).tp_new.map(|f| f as usize),
            ) && (*ty).tp_flags & ffi::Py_TPFLAGS_IS_ABSTRACT == 0,
            plain_hash: same(
                (*meta).tp_hash.map(|f| f as usize),
                (*of_types).tp_hash.map(|f| f as usize),
            ) && same(
                (*meta).tp_richcompare.map(|f| f as usize),
                (*of_types).tp_richcompare.map(|f| f as usize),
            ),
        }
    }
}

/// Whether setting an attribute of the class is left to `type`.
pub(crate) fn sets_attributes_plainly(class: &Bound<'_, PyType>) -> bool {
    // SAFETY: the class is alive, and so is its metaclass; only fields of types are read.
    unsafe {
        let meta = ffi::Py_TYPE(class.as_ptr());
        same(
            (*meta).tp_setattro.map(|f| f as usize),
            ffi::PyType_Type.tp_setattro.map(|f| f as usize),
        )
    }
}

/// Whether the class itself, and not a base, has just this object as its attribute of that name.
pub(crate) fn has_own(
    class: &Bound<'_, PyType>,
    name: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> bool {
    // Other names could run code when they are compared.
    if !name.is_exact_instance_of::<pyo3::types::PyString>() {
        return false;
    }
    // SAFETY: the class is alive; the dict of one that was made at run time is in its type object. What is found is
    // borrowed and only compared.
    unsafe {
        let ty = class.as_type_ptr();
        if (*ty).tp_flags & ffi::Py_TPFLAGS_HEAPTYPE == 0 || (*ty).tp_dict.is_null() {
            return false;
        }
        let found = ffi::PyDict_GetItemWithError((*ty).tp_dict, name.as_ptr());
        if found.is_null() && !ffi::PyErr_Occurred().is_null() {
            ffi::PyErr_Clear();
        }
        found == value.as_ptr()
    }
}

fn same(one: Option<usize>, other: Option<usize>) -> bool {
    one == other
}

impl<'q> Obj<'q> {
    /// The last part of the name of an object that is a type; empty for anything else.
    pub(crate) fn type_name(self, _q: Quiet<'q>) -> &'q [u8] {
        // SAFETY: checked to be a type, whose name ends with a zero byte and lives as long as the type.
        unsafe {
            if ffi::PyType_Check(self.as_ptr()) == 0 {
                return &[];
            }
            let name =
                std::ffi::CStr::from_ptr((*self.as_ptr().cast::<ffi::PyTypeObject>()).tp_name)
                    .to_bytes();
            name.rsplit(|&byte| byte == b'.').next().unwrap_or(name)
        }
    }

    /// Where instances of an object that is a type keep their attributes.
    pub(crate) fn as_type_place(self) -> Place {
        // SAFETY: checked to be a type.
        unsafe {
            if ffi::PyType_Check(self.as_ptr()) == 0 {
                return Place::Unknown;
            }
            TypePtr::of_type(self.as_ptr().cast()).place()
        }
    }

    /// Reads what the instance's attributes are kept in. `place` is that of its type.
    #[inline(always)]
    pub(crate) fn attributes(self, _q: Quiet<'q>, place: Place) -> Attributes<'q> {
        let dict = match place {
            Place::Nowhere | Place::Unknown => return Attributes::Empty,
            // SAFETY: `place` is that of the object's type: a pointer lies there, null or to a dict.
            Place::Slot(offset) => unsafe {
                *self
                    .as_ptr()
                    .cast::<u8>()
                    .offset(offset)
                    .cast::<*mut ffi::PyObject>()
            },
            // SAFETY: `place` is that of the object's type, and the layout has been checked.
            Place::Managed => match unsafe { managed(self.as_ptr()) } {
                Managed::Dict(dict) => dict,
                Managed::Values(values) => {
                    return Attributes::Values(Values {
                        owner: self,
                        values,
                    });
                }
            },
        };
        if dict.is_null() {
            return Attributes::Empty;
        }
        // SAFETY: the instance holds what it has as its dict.
        if unsafe { ffi::Py_TYPE(dict) != &raw mut ffi::PyDict_Type } {
            return Attributes::Foreign;
        }
        // SAFETY: the instance holds its dict.
        Attributes::Dict(Dict::new(unsafe { Obj::from_raw(dict) }))
    }
}

enum Managed {
    Dict(*mut ffi::PyObject),
    #[cfg_attr(
        not(Py_3_11),
        allow(dead_code, reason = "3.10 keeps attributes in dicts only")
    )]
    Values(*mut u8),
}

/// # Safety
/// `obj`'s type has MANAGED_DICT set, and `obj` is alive.
#[inline(always)]
unsafe fn managed(obj: *mut ffi::PyObject) -> Managed {
    let words = obj.cast::<*mut u8>();
    // SAFETY: such an object has its dict pointer three words before its start. 3.11: the values are one word before it.
    // 3.12: one word for both, values having the lowest bit set. 3.13: values follow the object and say whether they count.
    unsafe {
        #[cfg(all(Py_3_11, not(Py_3_12)))]
        {
            let values = *words.sub(4);
            if values.is_null() {
                Managed::Dict((*words.sub(3)).cast())
            } else {
                Managed::Values(values)
            }
        }
        #[cfg(all(Py_3_12, not(Py_3_13)))]
        {
            let tagged = *words.sub(3);
            if tagged as usize & 1 != 0 {
                Managed::Values(tagged.add(1))
            } else {
                Managed::Dict(tagged.cast())
            }
        }
        #[cfg(Py_3_13)]
        {
            let dict = *words.sub(3);
            let ty = ffi::Py_TYPE(obj);
            const INLINE_VALUES: std::ffi::c_ulong = 1 << 2;
            if dict.is_null() && (*ty).tp_flags & INLINE_VALUES != 0 {
                let values = obj.cast::<u8>().add((*ty).tp_basicsize as usize);
                // valid: the fourth byte.
                if *values.add(3) != 0 {
                    return Managed::Values(values);
                }
            }
            Managed::Dict(dict.cast())
        }
        #[cfg(not(Py_3_11))]
        {
            Managed::Dict((*words).cast())
        }
    }
}

/// The array of an instance's attribute values.
#[derive(Clone, Copy)]
pub(crate) struct Values<'q> {
    owner: Obj<'q>,
    values: *mut u8,
}

/// Bytes before the index table of a dict's keys, and where the log2 of that table's size is in them.
const KEYS_HEADER: usize = 32;
const KEYS_LOG2_INDEX_BYTES: usize = 9;
/// Where the number of entries is in a dict's keys.
const KEYS_ENTRY_COUNT: usize = 24;
/// Bytes of an object without any fields.
pub(crate) const OBJECT_SIZE: isize = size_of::<ffi::PyObject>() as isize;

impl<'q> Values<'q> {
    /// Number of attributes.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        // SAFETY: values of a checked layout: up to 3.12 the count is two bytes before the array, since then the second
        // byte of its header.
        unsafe {
            usize::from(if cfg!(Py_3_13) {
                *self.values.add(1)
            } else {
                *self.values.sub(2)
            })
        }
    }

    #[inline(always)]
    fn keys_ptr(self) -> *mut u8 {
        // SAFETY: the class of an instance with values is a heap type, and its cached keys are those of the values.
        unsafe {
            let class = ffi::Py_TYPE(self.owner.as_ptr()).cast::<ffi::PyHeapTypeObject>();
            (*class).ht_cached_keys.cast()
        }
    }

    /// Identity and number of the keys that instances of the class share. They are only ever added to.
    #[inline(always)]
    pub(crate) fn keys_id(self) -> (usize, usize) {
        let keys = self.keys_ptr();
        // SAFETY: a checked layout: the number of entries lies before the index table.
        (keys as usize, unsafe {
            *keys.add(KEYS_ENTRY_COUNT).cast::<usize>()
        })
    }

    /// All keys that instances of the class share, whether or not this one has them set.
    pub(crate) fn keys(self, _q: Quiet<'q>) -> impl Iterator<Item = Obj<'q>> {
        let (_, count) = self.keys_id();
        (0..count).filter_map(move |at| {
            // SAFETY: `at` is below the number of entries; keys are held by the class.
            unsafe {
                let key = self.key_at(at);
                (!key.is_null()).then(|| Obj::from_raw(key))
            }
        })
    }

    /// # Safety
    /// `at` is below the number of entries.
    #[inline(always)]
    unsafe fn key_at(self, at: usize) -> *mut ffi::PyObject {
        let keys = self.keys_ptr();
        // SAFETY: a checked layout: entries of keys that are all str follow the index table, a key and an unused value each.
        unsafe {
            let entries = keys.add(KEYS_HEADER + (1 << *keys.add(KEYS_LOG2_INDEX_BYTES)));
            *entries
                .cast::<[*mut ffi::PyObject; 2]>()
                .add(at)
                .cast::<*mut ffi::PyObject>()
        }
    }

    /// The attribute set as number `index`: its name and value.
    #[inline(always)]
    pub(crate) fn get(self, index: usize) -> Option<(Obj<'q>, Obj<'q>)> {
        if index >= self.len() {
            return None;
        }
        // SAFETY: a checked layout. `index` is below the count, so its place in the order of setting is filled with the
        // place of a key. Such a key and its value are held by the class and by the instance.
        unsafe {
            let (order, first) = if cfg!(Py_3_13) {
                let capacity = usize::from(*self.values);
                let first = self.values.add(8).cast::<*mut ffi::PyObject>();
                (*first.add(capacity).cast::<u8>().add(index), first)
            } else {
                (
                    *self.values.sub(3 + index),
                    self.values.cast::<*mut ffi::PyObject>(),
                )
            };
            let value = *first.add(usize::from(order));
            let key = self.key_at(usize::from(order));
            if value.is_null() || key.is_null() {
                return None;
            }
            Some((Obj::from_raw(key), Obj::from_raw(value)))
        }
    }
}

/// Fills the values of an instance that has no attributes with `pairs`, names and values in turn, if they are the first
/// names of the keys its class shares, in their order. The instance then owns the values; the names are only compared.
///
/// # Safety
/// `pairs` are live objects. If true is returned, the references to the values have been given away.
#[inline(always)]
pub(super) unsafe fn set_fresh_values(
    instance: &Bound<'_, PyAny>,
    pairs: &[NonNull<ffi::PyObject>],
) -> bool {
    let obj = instance.as_ptr();
    // SAFETY: the instance is alive; its array is only looked at where the layout has been checked and its type has one.
    // Places filled are those of existing keys, for each of which the array has a place; nothing runs in between.
    unsafe {
        let ty = ffi::Py_TYPE(obj);
        if !cfg!(Py_3_11)
            || (*ty).tp_flags & MANAGED_DICT == 0
            || !VALUES_READABLE.load(Ordering::Relaxed)
            || (*ty).tp_flags & ffi::Py_TPFLAGS_HEAPTYPE == 0
        {
            return false;
        }
        let Managed::Values(values) = managed(obj) else {
            return false;
        };
        let keys = (*ty.cast::<ffi::PyHeapTypeObject>())
            .ht_cached_keys
            .cast::<u8>();
        let count = pairs.len() / 2;
        if keys.is_null() || *keys.add(KEYS_ENTRY_COUNT).cast::<usize>() < count || count > 254 {
            return false;
        }
        let (used, first, order, room) = if cfg!(Py_3_13) {
            let first = values.add(8).cast::<*mut ffi::PyObject>();
            let capacity = usize::from(*values);
            (
                values.add(1),
                first,
                first.add(capacity).cast::<u8>(),
                capacity,
            )
        } else {
            // The byte before the array says how large the log of the order in front of it is.
            let room = usize::from(*values.sub(1)).saturating_sub(2);
            (
                values.sub(2),
                values.cast::<*mut ffi::PyObject>(),
                values.sub(3),
                room,
            )
        };
        if *used != 0 || room < count {
            return false;
        }
        let entries = keys
            .add(KEYS_HEADER + (1 << *keys.add(KEYS_LOG2_INDEX_BYTES)))
            .cast::<[*mut ffi::PyObject; 2]>();
        for at in 0..count {
            if !same_name((*entries.add(at))[0], pairs[2 * at].as_ptr())
                || !(*first.add(at)).is_null()
            {
                return false;
            }
        }
        for at in 0..count {
            *first.add(at) = pairs[2 * at + 1].as_ptr();
            *(if cfg!(Py_3_13) {
                order.add(at)
            } else {
                order.sub(at)
            }) = at as u8;
        }
        *used = count as u8;
        true
    }
}

/// Whether both are strs with the same ASCII text.
///
/// # Safety
/// `key` is null or a live object, `name` a live object.
#[inline(always)]
unsafe fn same_name(key: *mut ffi::PyObject, name: *mut ffi::PyObject) -> bool {
    if key == name {
        return true;
    }
    if key.is_null() {
        return false;
    }
    // SAFETY: both are alive and found to be exact strs, whose text is read as types.rs does.
    unsafe {
        let is_str = |object| ffi::Py_TYPE(object) == &raw mut ffi::PyUnicode_Type;
        if !is_str(key) || !is_str(name) || !is_ready_ascii(key) || !is_ready_ascii(name) {
            return false;
        }
        ascii(key) == ascii(name)
    }
}

/// # Safety
/// `text` is a live str.
unsafe fn is_ready_ascii(text: *mut ffi::PyObject) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(Py_3_12))]
        if ffi::PyUnicode_IS_READY(text) == 0 {
            return false;
        }
        compat::is_compact_ascii(text)
    }
}

/// # Safety
/// `text` is a live compact ASCII str.
unsafe fn ascii<'a>(text: *mut ffi::PyObject) -> &'a [u8] {
    // SAFETY: the caller's promise; the characters follow the header.
    unsafe {
        let header = text.cast::<ffi::PyASCIIObject>();
        std::slice::from_raw_parts(header.add(1).cast(), (*header).length as usize)
    }
}

/// Makes instances, sets and deletes attributes, and compares what is read from their arrays with what Python says. Only
/// if all agree are arrays read from then on.
pub(crate) fn check_layout(py: Python<'_>) -> PyResult<()> {
    if cfg!(not(Py_3_11)) || cfg!(Py_GIL_DISABLED) {
        return Ok(());
    }
    let class = py
        .get_type::<PyType>()
        .call1(("Probe", (), PyDict::new(py)))?;
    let mut agrees = true;
    for names in [&["a"][..], &["b", "a"], &["c", "a", "d", "b"], &[]] {
        let instance = class.call0()?;
        let mut expected = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let name = pyo3::types::PyString::intern(py, name);
            let value = (at + 1000,).into_pyobject(py)?;
            instance.setattr(&name, &value)?;
            expected.push((name.as_ptr() as usize, value.as_ptr() as usize));
        }
        agrees &= read_back(&instance).is_some_and(|found| found == expected);
        if names.len() > 2 {
            instance.delattr(names[1])?;
            expected.remove(1);
            agrees &= read_back(&instance).is_some_and(|found| found == expected);
            // Once asked for, the dict takes over.
            instance.getattr("__dict__")?;
            agrees &= read_back(&instance).is_none();
        }
    }
    VALUES_READABLE.store(agrees, Ordering::Relaxed);
    Ok(())
}

/// Addresses of names and values in the instance's array; None where it has no array.
fn read_back(instance: &Bound<'_, PyAny>) -> Option<Vec<(usize, usize)>> {
    // SAFETY: the instance is of a class made by `type()`, so it has a managed dict where the version has them.
    let Managed::Values(values) = (unsafe { managed(instance.as_ptr()) }) else {
        return None;
    };
    super::object::quiet(instance.py(), |q| {
        let values = Values {
            owner: super::object::Anchor::of(instance).obj(q),
            values,
        };
        (0..values.len())
            .map(|at| values.get(at).map(|(k, v)| (k.address(), v.address())))
            .collect()
    })
}
