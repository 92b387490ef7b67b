//! Objects built by calls: REDUCE, NEWOBJ, OBJ, INST, and BUILD, which gives an instance its state.
//!
//! Instances of ordinary classes are made and filled without running any of the class's code, because there is none to
//! run: see [`Classes::judge`].

use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySet, PyTuple, PyType};
use quickpickle_format::{Error, ErrorKind};

use super::fail::Fail;
use super::machine::Machine;
use super::notes;
use super::source::Feed;
use crate::cloud::reconstruct;
use crate::ffi::instance::{self, Place};
use crate::ffi::object::{Anchor, quiet};
use crate::ffi::{build, compat, outside, time};

/// Classes remembered; more than that evict each other.
const ENTRIES: usize = 64;

#[derive(Clone, Copy)]
struct Entry {
    class: usize,
    version: u32,
    plain: bool,
}

/// Which classes have instances that can be made and filled directly.
pub(super) struct Classes {
    entries: [Entry; ENTRIES],
    /// A class that can have no version tag any more, and the verdict on it: since 3.13 the interpreter gives a class a
    /// thousand of them and no more, and each load of a dynamic class that is known changes it. Holds until other code
    /// runs.
    unversioned: (usize, bool),
}

impl Classes {
    pub(super) const fn new() -> Self {
        Classes {
            entries: [Entry {
                class: 0,
                version: 0,
                plain: false,
            }; ENTRIES],
            unversioned: (0, false),
        }
    }

    /// Other code runs: what was found out without a version tag to tell of changes no longer holds.
    #[inline(always)]
    pub(super) fn forget_unversioned(&mut self) {
        self.unversioned = (0, false);
    }

    /// Whether instances of the class are made by `object.__new__`, get their state by BUILD's default, and keep it in
    /// values that can be written directly. Holds for the class's version tag.
    #[inline(always)]
    pub(super) fn is_plain(&mut self, class: &Bound<'_, PyType>) -> PyResult<bool> {
        let address = class.as_ptr() as usize;
        let slot = ((address >> 4) ^ (address >> 10)) % ENTRIES;
        let version = compat::version_now(class);
        let entry = &self.entries[slot];
        if entry.class == address && version == Some(entry.version) {
            return Ok(entry.plain);
        }
        if version.is_none() && self.unversioned.0 == address {
            return Ok(self.unversioned.1);
        }
        let plain = Self::judge(class)?;
        if let Some(version) = compat::class_version(class) {
            self.entries[slot] = Entry {
                class: address,
                version,
                plain,
            };
        } else {
            self.unversioned = (address, plain);
        }
        Ok(plain)
    }

    #[inline(never)]
    fn judge(class: &Bound<'_, PyType>) -> PyResult<bool> {
        let py = class.py();
        let shape = instance::shape(class);
        if !(shape.all_python && shape.plain_new && shape.plain_getattr && shape.item_size == 0) {
            return Ok(false);
        }
        if quiet(py, |q| Anchor::of(class.as_any()).obj(q).as_type_place()) != Place::Managed {
            return Ok(false);
        }
        for base in class.mro() {
            let own = base.getattr(intern!(py, "__dict__"))?;
            if own.contains(intern!(py, "__setstate__"))? {
                return Ok(false);
            }
            if let Ok(descriptor) = own.get_item(intern!(py, "__dict__"))
                && descriptor.get_type().name()? != "getset_descriptor"
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<'py> Machine<'py, '_> {
    pub(super) fn make_instance<S: Feed>(&mut self, source: &mut S) -> Result<(), Fail>
    where
        Fail: From<S::Error>,
    {
        let py = self.py;
        self.at = source.offset();
        let args = self.pop_one()?;
        let class = self.pop_one()?;
        if args
            .cast_exact::<PyTuple>()
            .is_ok_and(|args| args.is_empty())
            && let Ok(class) = class.cast::<PyType>()
            && self.memory.classes.is_plain(class)?
        {
            let instance = build::new_instance(class, &args, None)?;
            self.count();
            self.push(instance)?;
            return self.expect_state(source);
        }
        let class = self.instantiable(class, "NEWOBJ")?;
        if !args.is_instance_of::<PyTuple>() {
            let message = format!(
                "NEWOBJ args argument must be a tuple, not {}",
                compat::type_name(&args.get_type())
            );
            return Err(Fail::new(py, message));
        }
        self.new_with(class, args, None)
    }

    pub(super) fn make_instance_ex(&mut self) -> Result<(), Fail> {
        let py = self.py;
        let kwargs = self.pop_one()?;
        let args = self.pop_one()?;
        let class = self.pop_one()?;
        let class = self.instantiable(class, "NEWOBJ_EX")?;
        let wrong = |wanted: &str, found: &Bound<'_, PyAny>| {
            Fail::new(
                py,
                format!(
                    "NEWOBJ_EX {wanted}, not {}",
                    compat::type_name(&found.get_type())
                ),
            )
        };
        if !args.is_instance_of::<PyTuple>() {
            return Err(wrong("args argument must be a tuple", &args));
        }
        if !kwargs.is_instance_of::<PyDict>() {
            return Err(wrong("kwargs argument must be a dict", &kwargs));
        }
        self.new_with(class, args, Some(kwargs))
    }

    fn instantiable(
        &self,
        class: Bound<'py, PyAny>,
        opcode: &str,
    ) -> Result<Bound<'py, PyType>, Fail> {
        match class.cast_into::<PyType>() {
            Ok(class) if instance::shape(&class).has_new => Ok(class),
            Ok(class) => Err(Fail::new(
                self.py,
                format!(
                    "{opcode} class argument '{}' doesn't have __new__",
                    compat::type_name(&class)
                ),
            )),
            Err(other) => Err(Fail::new(
                self.py,
                format!(
                    "{opcode} class argument must be a type, not {}",
                    compat::type_name(&other.into_inner().get_type())
                ),
            )),
        }
    }

    fn new_with(
        &mut self,
        class: Bound<'py, PyType>,
        args: Bound<'py, PyAny>,
        kwargs: Option<Bound<'py, PyAny>>,
    ) -> Result<(), Fail> {
        let at = self.at;
        let made = self.outside(|_| build::new_instance(&class, &args, kwargs.as_ref()));
        let made = made.map_err(|error| notes::rebuilding(class.as_any(), at, error))?;
        self.count();
        self.push(made)
    }

    pub(super) fn call_reduce(&mut self) -> Result<(), Fail> {
        let args = self.pop_one()?;
        let callable = self.pop_one()?;
        if let Ok(args) = args.cast_exact::<PyTuple>()
            && let Some(made) = time::make(&callable, args)
        {
            return self.push(made);
        }
        let made = self.call(&callable, &args)?;
        self.push(made)
    }

    /// `callable(*args)`.
    pub(super) fn call(
        &mut self,
        callable: &Bound<'py, PyAny>,
        args: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>, Fail> {
        let at = self.at;
        let made = match self.outside(|_| reconstruct::call(callable, args)) {
            Ok(made) => made,
            // What protocols without an opcode for sets write: the same, item by item.
            Err(error) if callable.is(self.py.get_type::<PySet>()) => {
                self.set_of(args, error, at)?
            }
            Err(error) => return Err(notes::rebuilding(callable, at, error).into()),
        };
        self.count();
        Ok(made)
    }

    fn set_of(
        &mut self,
        args: &Bound<'py, PyAny>,
        error: PyErr,
        at: u64,
    ) -> Result<Bound<'py, PyAny>, Fail> {
        let py = self.py;
        let items = args
            .cast_exact::<PyTuple>()
            .ok()
            .filter(|args| args.len() == 1)
            .and_then(|args| args.get_item(0).ok());
        let Some(Ok(items)) = items.as_ref().map(|items| items.cast_exact::<PyList>()) else {
            return Err(notes::rebuilding(py.get_type::<PySet>().as_any(), at, error).into());
        };
        let set = PySet::empty(py)?;
        for item in items.iter() {
            if let Err(error) = set.add(&item) {
                self.defer_add(&set, item, error)?;
            }
        }
        Ok(set.into_any())
    }

    /// INST and OBJ: a class without arguments is instantiated without calling it, unless it asks for arguments.
    pub(super) fn instantiate(
        &mut self,
        class: Bound<'py, PyAny>,
        args: Bound<'py, PyTuple>,
    ) -> Result<(), Fail> {
        let py = self.py;
        let at = self.at;
        let made = self.outside(|_| {
            if args.is_empty()
                && class.is_instance_of::<PyType>()
                && compat::optional_attribute(&class, intern!(py, "__getinitargs__"))?.is_none()
            {
                return class.call_method1(intern!(py, "__new__"), (&class,));
            }
            build::call(&class, args.as_any())
        });
        let made = made.map_err(|error| notes::rebuilding(&class, at, error))?;
        self.count();
        self.push(made)
    }

    /// BUILD.
    pub(super) fn set_state(&mut self) -> Result<(), Fail> {
        let py = self.py;
        let state = self.pop_one()?;
        let instance = self.top_one()?;
        let at = self.at;
        let set = self.outside(|machine| machine.give_state(&instance, state));
        set.map_err(|error| notes::setting_state(&instance, at, error.into_pyerr(py)).into())
    }

    fn give_state(
        &mut self,
        instance: &Bound<'py, PyAny>,
        mut state: Bound<'py, PyAny>,
    ) -> Result<(), Fail> {
        let py = self.py;
        if let Some(setter) = state_setter(instance)? {
            outside::call1(&setter, &state)?;
            return Ok(());
        }
        let mut slots = None;
        if let Ok(pair) = state.cast::<PyTuple>()
            && pair.len() == 2
        {
            let (dict, of_slots) = (pair.get_item(0)?, pair.get_item(1)?);
            (state, slots) = (dict, Some(of_slots));
        }
        if !state.is_none() {
            let Ok(state) = state.cast::<PyDict>() else {
                return Err(Fail::new(py, "state is not a dictionary"));
            };
            let attributes = instance.getattr(intern!(py, "__dict__"))?;
            // A dict is filled directly; what else an instance may have as its `__dict__`, by item.
            match attributes.cast_exact::<PyDict>() {
                Ok(attributes) => {
                    for (name, value) in state.iter().collect::<Vec<_>>() {
                        attributes.set_item(build::interned(name), value)?;
                    }
                }
                Err(_) => {
                    for (name, value) in state.iter().collect::<Vec<_>>() {
                        attributes.set_item(build::interned(name), value)?;
                    }
                }
            }
        }
        if let Some(slots) = slots {
            let Ok(slots) = slots.cast::<PyDict>() else {
                return Err(Fail::new(py, "slot state is not a dictionary"));
            };
            for (name, value) in slots.iter().collect::<Vec<_>>() {
                compat::set_attribute(instance, &name, &value)
                    .or_else(|error| reconstruct::of_other_version(instance, error))?;
            }
        }
        Ok(())
    }

    /// An item could not be hashed. If it is still being built, which happens where it is inside of a set that it refers to,
    /// it is added when all is built; otherwise that is the error.
    pub(super) fn defer_add(
        &mut self,
        set: &Bound<'py, PySet>,
        item: Bound<'py, PyAny>,
        error: PyErr,
    ) -> Result<(), Fail> {
        let py = self.py;
        let is_open = (0..self.memory.stack.len()).any(|at| {
            self.memory
                .stack
                .get(py, at)
                .is_some_and(|open| open.is(&item))
        });
        if !is_open || !error.is_instance_of::<PyException>(py) {
            return Err(error.into());
        }
        self.deferred.push((set.clone(), item, error));
        Ok(())
    }

    /// Adds what was put off.
    #[inline(always)]
    pub(super) fn add_deferred(&mut self) -> Result<(), Fail> {
        if self.deferred.is_empty() {
            return Ok(());
        }
        self.add_deferred_items()
    }

    #[cold]
    fn add_deferred_items(&mut self) -> Result<(), Fail> {
        for (set, item, error) in std::mem::take(&mut self.deferred) {
            if self.outside(|_| set.add(item)).is_err() {
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// What a persistent id stands for.
    pub(super) fn persistent(&mut self, id: Bound<'py, PyAny>) -> Result<(), Fail> {
        let Some(load) = self.hooks.persistent_load.clone() else {
            return Err(self.no_persistent_load());
        };
        let object = self.outside(|_| outside::call1(&load, &id))?;
        self.push(object)
    }

    pub(super) fn no_persistent_load(&self) -> Fail {
        Fail::new(self.py, super::NO_PERSISTENT_LOAD)
    }

    /// An int from text: decimal, or up to 3.13 in a notation that Python has for it.
    pub(super) fn decimal(&self, text: &std::ffi::CStr) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let bytes = text.to_bytes();
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        if let Some(small) = quickpickle_format::int::parse_line(bytes) {
            return Ok(small.into_pyobject(py)?.into_any());
        }
        let (sign, digits) = match bytes {
            [b'-', digits @ ..] => (-1, digits),
            digits => (1, digits),
        };
        // The limit on digits (CVE-2020-10735) is for text from outside; a pickle's numbers have no such limit in any
        // other protocol.
        const PIECE: usize = 4000;
        if digits.len() > PIECE && digits.iter().all(u8::is_ascii_digit) && digits[0] != b'0' {
            let mut value = 0_i32.into_pyobject(py)?.into_any();
            let first = digits.len() % PIECE;
            for piece in std::iter::once(&digits[..first]).chain(digits[first..].chunks(PIECE)) {
                let scale = 10_i32.into_pyobject(py)?.pow(piece.len(), py.None())?;
                let text =
                    std::ffi::CString::new(piece).map_err(|_| PyTypeError::new_err("digits"))?;
                let number = if piece.is_empty() {
                    0_i32.into_pyobject(py)?.into_any()
                } else {
                    build::int_from_text(py, &text, 10)?
                };
                value = value.mul(scale)?.add(number)?;
            }
            return value.mul(sign);
        }
        build::int_from_text(py, text, if cfg!(Py_3_14) { 10 } else { 0 })
    }
}

/// The instance's `__setstate__`. One that hands questions for attributes on to an object which it has not been given yet
/// cannot answer: then it has none, if its class has none.
fn state_setter<'py>(instance: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let name = intern!(instance.py(), "__setstate__");
    compat::optional_attribute(instance, name).or_else(|error| {
        let has_one = !error.is_instance_of::<PyException>(instance.py())
            || compat::optional_attribute(instance.get_type().as_any(), name)?.is_some();
        if has_one { Err(error) } else { Ok(None) }
    })
}

/// A line that must not be empty, as bytes.
pub(super) fn full_line<S: Feed>(source: &mut S) -> Result<Vec<u8>, Fail>
where
    Fail: From<S::Error>,
{
    let line = source.line()?.to_vec();
    if line.is_empty() {
        return Err(Error::new(ErrorKind::Truncated, source.offset()).into());
    }
    Ok(line)
}
