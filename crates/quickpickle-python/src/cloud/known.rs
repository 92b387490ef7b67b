//! Strings that nearly every payload by value holds: one object each, which costs neither an allocation nor a hash.
//!
//! Names of helpers and of what belongs to functions. What is not among them is for the caller to make.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

use super::wire_names::NAMES;

/// Keys of the dicts in which functions and their globals travel, and the usual module of the helpers.
pub(crate) const KEYS: [&str; 13] = [
    "__name__",
    "__qualname__",
    "__annotations__",
    "__kwdefaults__",
    "__defaults__",
    "__module__",
    "__doc__",
    "__closure__",
    "_cloudpickle_submodules",
    "__globals__",
    "__package__",
    "__file__",
    "cloudpickle.cloudpickle",
];

/// Them.
pub(crate) struct Known {
    /// Of [`KEYS`].
    pub(crate) keys: [Py<PyString>; KEYS.len()],
    names: [Py<PyString>; NAMES.len()],
}

static KNOWN: PyOnceLock<Known> = PyOnceLock::new();

/// Makes them. Called once, when the module is imported.
pub(crate) fn prepare(py: Python<'_>) {
    KNOWN.get_or_init(py, || Known {
        keys: KEYS.map(|key| PyString::intern(py, key).unbind()),
        names: NAMES.map(|(_, name, ..)| PyString::intern(py, name).unbind()),
    });
}

/// All of them.
#[inline(always)]
pub(crate) fn known(py: Python<'_>) -> Option<&'static Known> {
    KNOWN.get(py)
}

/// The one object of this text, if it is among them.
#[inline(always)]
pub(crate) fn find<'py>(py: Python<'py>, utf8: &[u8]) -> Option<Bound<'py, PyAny>> {
    // All but one begin with an underscore; hardly any other string in a pickle does.
    if !matches!(utf8, [b'_', ..] | [b'c', b'l', b'o', b'u', b'd', ..]) {
        return None;
    }
    search(py, utf8)
}

fn search<'py>(py: Python<'py>, utf8: &[u8]) -> Option<Bound<'py, PyAny>> {
    let known = KNOWN.get(py)?;
    let at = |list: &[Py<PyString>], at: usize| Some(list.get(at)?.bind(py).clone().into_any());
    // Told apart by length first.
    match utf8 {
        b"__name__" => at(&known.keys, 0),
        b"__qualname__" => at(&known.keys, 1),
        b"__annotations__" => at(&known.keys, 2),
        b"__kwdefaults__" => at(&known.keys, 3),
        b"__defaults__" => at(&known.keys, 4),
        b"__module__" => at(&known.keys, 5),
        b"__doc__" => at(&known.keys, 6),
        b"__closure__" => at(&known.keys, 7),
        b"_cloudpickle_submodules" => at(&known.keys, 8),
        b"__globals__" => at(&known.keys, 9),
        b"__package__" => at(&known.keys, 10),
        b"__file__" => at(&known.keys, 11),
        b"cloudpickle.cloudpickle" => at(&known.keys, 12),
        b"_builtin_type" => at(&known.names, 0),
        b"_make_cell" => at(&known.names, 1),
        b"_make_empty_cell" => at(&known.names, 2),
        b"_make_function" => at(&known.names, 3),
        b"_function_setstate" => at(&known.names, 4),
        b"_make_skeleton_class" => at(&known.names, 5),
        b"_class_setstate" => at(&known.names, 7),
        _ => None,
    }
}

/// The number of the helper's name, where module and name are the objects that [`find`] gives.
#[inline(always)]
pub(crate) fn helper(module: &Bound<'_, PyString>, name: &Bound<'_, PyString>) -> Option<usize> {
    let known = KNOWN.get(module.py())?;
    if !module.is(&known.keys[12]) {
        return None;
    }
    known.names.iter().position(|known| name.is(known))
}

/// The number of a key in [`KEYS`]' order, where it is the object that [`find`] gives.
#[inline(always)]
pub(crate) fn key(name: &Bound<'_, PyAny>) -> Option<usize> {
    let known = KNOWN.get(name.py())?;
    known.keys.iter().position(|known| name.is(known))
}

/// The number of a key, by its text.
pub(crate) fn number(text: &str) -> Option<usize> {
    KEYS.iter().position(|key| *key == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_lists() {
        let source = include_str!("known.rs");
        for (at, key) in KEYS.iter().enumerate() {
            assert!(
                source.contains(&format!("b\"{key}\" => at(&known.keys, {at})")),
                "{key}"
            );
        }
        for (at, (_, name, ..)) in NAMES.iter().enumerate() {
            let arm = format!("b\"{name}\" => at(&known.names, ");
            if let Some(found) = source.find(&arm) {
                assert!(
                    source[found + arm.len()..].starts_with(&format!("{at})")),
                    "{name}"
                );
            }
        }
    }
}
