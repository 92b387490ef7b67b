//! Which instances can be walked by their fields: those of classes for which `object.__reduce_ex__` would say nothing
//! that cannot be read directly.
//!
//! The verdict on a class holds for its version tag, which changes with any change to the class or its bases. What the
//! tag does not cover, the tables of reducers, is looked at again in each dump and whenever other code has run.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::ffi::compat;
use crate::ffi::instance::{self, Place};
use crate::ffi::object::{Anchor, TypePtr, quiet};
use crate::ffi::time::{self, Temporal};
use crate::python_types::library;

/// Classes remembered; more than that evict each other.
const ENTRIES: usize = 64;

#[derive(Clone, Copy)]
struct Entry {
    class: usize,
    version: u32,
    /// How instances are walked, where they are.
    walk: Option<Walk>,
    /// How they would be walked, whatever the tables of reducers say.
    judged: Option<Walk>,
    /// When the tables of reducers were last looked at.
    epoch: u64,
    /// The keys last found to hold no special name, and how many of them.
    harmless: (usize, usize),
}

/// How instances are written without asking their class.
#[derive(Clone, Copy)]
enum Walk {
    /// By their attributes.
    Fields,
    /// As a value of datetime.
    Time(Temporal),
}

/// What is known of classes.
pub(super) struct Verdicts {
    entries: [Entry; ENTRIES],
}

/// What to do with an instance.
pub(super) enum Verdict {
    /// Walk it.
    Walk,
    /// It is one of datetime's values: write what those reduce to.
    Time(Temporal),
    /// Ask its reducer.
    Reduce,
    /// Judge its class first.
    Unknown,
}

impl Verdicts {
    pub(super) const fn new() -> Self {
        let nothing = Entry {
            class: 0,
            version: 0,
            walk: None,
            judged: None,
            epoch: 0,
            harmless: (0, 0),
        };
        Verdicts {
            entries: [nothing; ENTRIES],
        }
    }

    #[inline(always)]
    fn slot(class: usize) -> usize {
        ((class >> 4) ^ (class >> 10)) % ENTRIES
    }

    /// What is known of instances of the class at `class`.
    #[inline(always)]
    pub(super) fn on(&self, class: usize, ty: TypePtr, epoch: u64) -> Verdict {
        let entry = &self.entries[Self::slot(class)];
        if entry.class != class || entry.epoch != epoch || ty.version() != Some(entry.version) {
            return Verdict::Unknown;
        }
        match entry.walk {
            Some(Walk::Fields) => Verdict::Walk,
            Some(Walk::Time(time)) => Verdict::Time(time),
            None => Verdict::Reduce,
        }
    }

    /// Whether these keys of an instance of the class are known to hold no special name.
    #[inline(always)]
    pub(super) fn is_harmless(&self, class: usize, keys: (usize, usize)) -> bool {
        self.entries[Self::slot(class)].harmless == keys
    }

    /// Remembers that these keys hold no special name.
    pub(super) fn harmless(&mut self, class: usize, keys: (usize, usize)) {
        let entry = &mut self.entries[Self::slot(class)];
        if entry.class == class {
            entry.harmless = keys;
        }
    }

    /// Judges a class, for this epoch. Returns false where its version cannot be remembered.
    pub(super) fn judge(
        &mut self,
        class: &Bound<'_, PyType>,
        private_table: Option<&Bound<'_, PyAny>>,
        epoch: u64,
    ) -> PyResult<bool> {
        let py = class.py();
        let address = class.as_ptr() as usize;
        let known = self.entries[Self::slot(address)];
        let is_known = known.class == address && compat::version_now(class) == Some(known.version);
        // The names of slots are cached in the class, which changes its version: first of all.
        let judged = if is_known {
            known.judged
        } else {
            judge_class(class)?
        };
        let Some(version) = compat::class_version(class) else {
            return Ok(false);
        };
        let listed = match private_table {
            // Looking it up in a foreign mapping runs code each time: leave it to the slow path.
            Some(table) => match table.cast_exact::<PyDict>() {
                Ok(table) => table.contains(class)?,
                Err(_) => true,
            },
            None => library(py)?.dispatch_table.bind(py).contains(class)?,
        };
        let slot = &mut self.entries[Self::slot(address)];
        let harmless = if slot.class == address && slot.version == version {
            slot.harmless
        } else {
            (0, 0)
        };
        *slot = Entry {
            class: address,
            version,
            judged,
            walk: judged.filter(|_| !listed),
            epoch,
            harmless,
        };
        Ok(true)
    }
}

/// How instances of the class are walked: if it leaves pickling to `object`, and attributes are where they can be read.
fn judge_class(class: &Bound<'_, PyType>) -> PyResult<Option<Walk>> {
    let py = class.py();
    if let Some(time) = time::of_class(class.as_any()) {
        return Ok(Some(Walk::Time(time)));
    }
    // A metaclass with its own hash or comparison could see the table lookups.
    let shape = instance::shape(class);
    if !(shape.all_python
        && shape.has_new
        && shape.item_size == 0
        && shape.plain_getattr
        && shape.plain_hash)
    {
        return Ok(None);
    }
    let library = library(py)?;
    let is = |name: &str, wanted: Option<&Py<PyAny>>| -> PyResult<bool> {
        Ok(match (lookup(class, name)?, wanted) {
            (Some(found), Some(wanted)) => found.is(wanted),
            (None, None) => true,
            _ => false,
        })
    };
    let plain = is("__reduce_ex__", Some(&library.object_reduce_ex))?
        && is("__reduce__", Some(&library.object_reduce))?
        && is("__getstate__", library.object_getstate.as_ref())?
        && is("__getnewargs_ex__", None)?
        && is("__getnewargs__", None)?
        && !overrides(class, "__class__")?
        && lookup(class, "__dict__")?.is_none_or(|found| {
            found
                .get_type()
                .name()
                .is_ok_and(|name| name == "getset_descriptor")
        });
    if !plain {
        return Ok(None);
    }
    let slots = py
        .import(intern!(py, "copyreg"))?
        .call_method1(intern!(py, "_slotnames"), (class,))?;
    if slots.len()? > 0 {
        return Ok(None);
    }
    let place = quiet(py, |q| Anchor::of(class.as_any()).obj(q).as_type_place());
    let pointers =
        isize::from(matches!(place, Place::Slot(_))) + isize::from(shape.has_weakref_slot);
    let expected = instance::OBJECT_SIZE + pointers * size_of::<usize>() as isize;
    Ok((place != Place::Unknown && shape.basic_size <= expected).then_some(Walk::Fields))
}

/// An attribute of the class or a base, as found in their dicts.
fn lookup<'py>(class: &Bound<'py, PyType>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    for base in class.mro() {
        match base
            .getattr(intern!(class.py(), "__dict__"))?
            .get_item(name)
        {
            Ok(found) => return Ok(Some(found)),
            Err(error) if error.is_instance_of::<pyo3::exceptions::PyKeyError>(class.py()) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Whether a base other than `object` has the attribute.
fn overrides(class: &Bound<'_, PyType>, name: &str) -> PyResult<bool> {
    let py = class.py();
    let object = py.get_type::<PyAny>();
    for base in class.mro() {
        if !base.is(&object) && base.getattr(intern!(py, "__dict__"))?.contains(name)? {
            return Ok(true);
        }
    }
    Ok(false)
}
