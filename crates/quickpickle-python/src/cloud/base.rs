//! What a load has put into a class, as far as it takes to tell later whether its sender has changed it since, and
//! whether this process has.
//!
//! Nothing here may keep a class alive: of values that can refer to one, only a number made from what is in them is kept.
//! That is found out without running any code of theirs; what cannot be told so is unknown, and counts as changed.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDict, PyFloat, PyFrozenSet, PyFunction, PyInt, PyList, PyModule, PySet,
    PyString, PyTuple, PyType,
};

use crate::ffi::function_view::{self, class_dict};
use crate::ffi::{compat, instance};

/// Objects that are looked at for an attribute at most; one that holds more is unknown.
const MOST: usize = 2000;
/// Nesting that is looked at.
const DEEPEST: usize = 30;

/// Attributes of a class as a load has put them there.
pub(crate) struct Base {
    items: Vec<(Py<PyAny>, Seen)>,
}

/// An attribute's value.
enum Seen {
    /// It cannot change, nor hold a class.
    Atom(Py<PyAny>),
    /// A function of this code.
    Code(Py<PyAny>),
    /// Made from what is in it, and whether there are functions in it that travelled along.
    Print(u64, bool),
    Unknown,
}

impl Base {
    /// Without any attribute, with room for some.
    pub(crate) fn new(len: usize) -> Self {
        Base {
            items: Vec::with_capacity(len),
        }
    }

    /// Notes an attribute.
    pub(crate) fn add(&mut self, name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) {
        self.items.push((name.clone().unbind(), Seen::of(value)));
    }

    /// Whether an attribute is to stay as it is in the class: the sender has not changed it since, and here it is
    /// another one now, or there is nothing in it that belongs to what has just been loaded. `at` is where it probably
    /// stands.
    pub(crate) fn keeps(
        &self,
        at: usize,
        name: &Bound<'_, PyAny>,
        incoming: &Bound<'_, PyAny>,
        own: Option<&Bound<'_, PyAny>>,
    ) -> bool {
        let is_it = |(known, _): &&(Py<PyAny>, Seen)| known.is(name);
        let found = self
            .items
            .get(at)
            .filter(is_it)
            .or_else(|| self.items.iter().find(is_it));
        let Some((_, seen)) = found else {
            return false;
        };
        seen.is(incoming) && (!seen.is_live() || !own.is_some_and(|own| seen.is(own)))
    }
}

impl Seen {
    fn of(value: &Bound<'_, PyAny>) -> Self {
        if is_atom(value) {
            return Seen::Atom(value.clone().unbind());
        }
        if let Some(code) = code_of(value) {
            return Seen::Code(code.unbind());
        }
        match print(value) {
            Some((print, live)) => Seen::Print(print, live),
            None => Seen::Unknown,
        }
    }

    fn is(&self, value: &Bound<'_, PyAny>) -> bool {
        let py = value.py();
        match self {
            Seen::Atom(known) => {
                known.is(value)
                    || is_atom(value)
                        && known.bind(py).get_type().is(value.get_type())
                        && known.bind(py).eq(value).unwrap_or(false)
            }
            Seen::Code(known) => code_of(value)
                .is_some_and(|code| known.is(&code) || known.bind(py).eq(code).unwrap_or(false)),
            Seen::Print(known, live) => print(value) == Some((*known, *live)),
            Seen::Unknown => false,
        }
    }

    fn is_live(&self) -> bool {
        matches!(self, Seen::Code(_) | Seen::Print(_, true))
    }
}

fn is_atom(value: &Bound<'_, PyAny>) -> bool {
    value.is_none()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyBytes>()
}

fn code_of<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let function = value.cast_exact::<PyFunction>().ok()?;
    Some(function_view::view(function).code.pin(value.py()))
}

/// A number made from what is in an object, and whether there are functions in it; None if that cannot be told.
fn print(value: &Bound<'_, PyAny>) -> Option<(u64, bool)> {
    let mut printer = Printer {
        hasher: DefaultHasher::new(),
        left: MOST,
        live: false,
    };
    // What goes wrong is not to be told.
    printer.object(value, 0).ok().flatten()?;
    Some((printer.hasher.finish(), printer.live))
}

struct Printer {
    hasher: DefaultHasher,
    left: usize,
    live: bool,
}

/// None: it cannot be told.
type Told = PyResult<Option<()>>;

impl Printer {
    fn all<'py>(
        &mut self,
        items: impl IntoIterator<Item = Bound<'py, PyAny>>,
        depth: usize,
    ) -> Told {
        let mut count = 0usize;
        for item in items {
            count += 1;
            if self.object(&item, depth)?.is_none() {
                return Ok(None);
            }
        }
        count.hash(&mut self.hasher);
        Ok(Some(()))
    }

    fn unordered<'py>(
        &mut self,
        items: impl IntoIterator<Item = Bound<'py, PyAny>>,
        depth: usize,
    ) -> Told {
        let outer = std::mem::replace(&mut self.hasher, DefaultHasher::new());
        let mut sum = 0u64;
        for item in items {
            self.hasher = DefaultHasher::new();
            if self.object(&item, depth)?.is_none() {
                return Ok(None);
            }
            sum = sum.wrapping_add(self.hasher.finish());
        }
        self.hasher = outer;
        sum.hash(&mut self.hasher);
        Ok(Some(()))
    }

    fn object(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> Told {
        let py = value.py();
        if self.left == 0 || depth > DEEPEST {
            return Ok(None);
        }
        self.left -= 1;
        let class = value.get_type();
        (class.as_ptr() as usize).hash(&mut self.hasher);
        if let Ok(text) = value.cast_exact::<PyString>() {
            text.to_string_lossy().hash(&mut self.hasher);
            return Ok(Some(()));
        }
        if let Ok(bytes) = value.cast_exact::<PyBytes>() {
            bytes.as_bytes().hash(&mut self.hasher);
            return Ok(Some(()));
        }
        if is_atom(value) || class.is(py.get_type::<pyo3::types::PyByteArray>()) {
            value.repr()?.to_string_lossy().hash(&mut self.hasher);
            return Ok(Some(()));
        }
        if value.is_instance_of::<PyType>() || value.is_instance_of::<PyModule>() {
            (value.as_ptr() as usize).hash(&mut self.hasher);
            return Ok(Some(()));
        }
        if let Some(code) = code_of(value) {
            self.live = true;
            code.hash()?.hash(&mut self.hasher);
            return self.all([value.getattr(intern!(py, "__defaults__"))?], depth + 1);
        }
        if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            return self.all(tuple.iter(), depth + 1);
        }
        if compat::is_property(value) {
            let names = [
                intern!(py, "fget"),
                intern!(py, "fset"),
                intern!(py, "fdel"),
            ];
            for name in names {
                if self.object(&value.getattr(name)?, depth + 1)?.is_none() {
                    return Ok(None);
                }
            }
            return Ok(Some(()));
        }
        if compat::is_static_or_class_method(value) {
            return self.object(&value.getattr(intern!(py, "__func__"))?, depth + 1);
        }
        if !compat::is_heap_type(&class) && !self.is_container(value) {
            return Ok(None);
        }
        self.instance(value, &class, depth)
    }

    fn is_container(&self, value: &Bound<'_, PyAny>) -> bool {
        value.is_instance_of::<PyDict>()
            || value.is_instance_of::<PyList>()
            || value.is_instance_of::<PySet>()
            || value.is_instance_of::<PyFrozenSet>()
    }

    /// A list, dict or set, or an instance of a class made by a class statement; items and attributes.
    fn instance(
        &mut self,
        value: &Bound<'_, PyAny>,
        class: &Bound<'_, PyType>,
        depth: usize,
    ) -> Told {
        let told = if let Ok(dict) = value.cast::<PyDict>() {
            self.all(dict.iter().flat_map(|(key, value)| [key, value]), depth + 1)?
        } else if let Ok(list) = value.cast::<PyList>() {
            self.all(list.iter(), depth + 1)?
        } else if let Ok(set) = value.cast::<PySet>() {
            self.unordered(set.iter(), depth + 1)?
        } else if let Ok(set) = value.cast::<PyFrozenSet>() {
            self.unordered(set.iter(), depth + 1)?
        } else if instance::shape(class).all_python {
            Some(())
        } else {
            None
        };
        if told.is_none() || !compat::is_heap_type(class) {
            return Ok(told);
        }
        if !instance::shape(class).plain_getattr {
            return Ok(None);
        }
        for base in class.mro().iter() {
            let base = base.cast_into::<PyType>()?;
            if !compat::is_heap_type(&base) {
                continue;
            }
            for (name, entry) in class_dict(&base)?.iter() {
                if compat::is_member(&entry)
                    && let Ok(name) = name.cast::<PyString>()
                {
                    let held = compat::optional_attribute(value, name)?;
                    if self.all(held, depth + 1)?.is_none() {
                        return Ok(None);
                    }
                }
            }
        }
        match compat::optional_attribute(value, intern!(value.py(), "__dict__"))? {
            Some(attributes) => self.object(&attributes, depth + 1),
            None => Ok(Some(())),
        }
    }
}
