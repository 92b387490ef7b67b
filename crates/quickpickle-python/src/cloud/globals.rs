//! What a function needs of its globals: those its code uses, those its annotations name, and submodules that it reaches
//! through a package.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PyString, PyTuple, PyType};

use crate::ffi::compat;
use crate::ffi::object::{Anchor, quiet};
use crate::ffi::types::{Kind, classify};

use super::by_value;
use super::code::CodeParts;

/// Names and values that travel with a function.
pub(crate) type Used<'py> = Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

/// `globals[name]`, None where there is no such name.
pub(crate) fn get<'py>(
    globals: &Bound<'py, PyDict>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if globals.is_exact_instance_of::<PyDict>() {
        return globals.get_item(name);
    }
    let globals = globals.as_any();
    if globals.contains(name)? {
        return globals.get_item(name).map(Some);
    }
    Ok(None)
}

/// The globals that a function's code uses, in the order in which it does.
pub(crate) fn used<'py>(globals: &Bound<'py, PyDict>, parts: &CodeParts) -> PyResult<Used<'py>> {
    let py = globals.py();
    let mut used = Vec::with_capacity(parts.globals.len());
    for name in &parts.globals {
        let name = name.bind(py);
        if let Some(value) = get(globals, name)? {
            used.push((name.clone().into_any(), value));
        }
    }
    Ok(used)
}

/// Adds what annotations name that are strs, so that `typing.get_type_hints` finds it. Only types and what makes them,
/// and modules: other things of that name would be dragged along by chance.
pub(crate) fn add_annotated<'py>(
    used: &mut Used<'py>,
    globals: &Bound<'py, PyDict>,
    annotations: &Bound<'py, PyDict>,
) -> PyResult<()> {
    let py = globals.py();
    for (_, annotation) in annotations.iter() {
        let Ok(text) = annotation.cast::<PyString>() else {
            continue;
        };
        let text = text.to_string_lossy().into_owned();
        for name in identifiers(&text) {
            let name = PyString::intern(py, name);
            if used.iter().any(|(known, _)| known.is(&name)) {
                continue;
            }
            if let Some(value) = get(globals, &name)?
                && is_typing(&value)?
            {
                used.push((name.into_any(), value));
            }
        }
    }
    Ok(())
}

/// Whether the object is something that annotations are made of.
fn is_typing(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if value.is_instance_of::<PyType>() || value.is_instance_of::<PyModule>() {
        return Ok(true);
    }
    let class = value.get_type();
    let module = class.module()?;
    Ok(matches!(
        module.to_str().unwrap_or_default(),
        "typing" | "typing_extensions" | "types"
    ) && !value.is_instance_of::<pyo3::types::PyFunction>())
}

/// Names in an expression that are no attributes.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c == '_' || c.is_alphanumeric();
    let mut rest = text;
    let mut after_dot = false;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(is_part)?;
            let dotted = after_dot && start == 0
                || rest[..start].trim_end().ends_with('.')
                || (after_dot && rest[..start].trim().is_empty());
            rest = &rest[start..];
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let (name, tail) = rest.split_at(end);
            rest = tail;
            after_dot = false;
            if !dotted && !name.starts_with(|c: char| c.is_ascii_digit()) {
                return Some(name);
            }
        }
    })
}

/// Modules in `sys.modules` that the code can reach as attributes of `packages`.
pub(crate) fn submodules<'py>(
    py: Python<'py>,
    packages: &[Bound<'py, PyAny>],
    parts: &CodeParts,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut found = Vec::new();
    for package in packages {
        let within = compat::optional_attribute(package, intern!(py, "__package__"))?;
        if !within.is_some_and(|within| within.is_truthy().unwrap_or(false)) {
            continue;
        }
        let name = package.getattr(intern!(py, "__name__"))?;
        let Ok(name) = name.cast::<PyString>() else {
            continue;
        };
        let prefix = format!("{}.", name.to_string_lossy());
        let modules = by_value::modules(py)?;
        let Ok(modules) = modules.cast_exact::<PyDict>() else {
            continue;
        };
        // What of the names in `sys.modules` begins so, without making an object of each.
        let anchor = Anchor::of(modules.as_any());
        let mut below: Vec<(String, Anchor)> = Vec::new();
        quiet(py, |q| {
            let Kind::Dict(modules) = classify(anchor.obj(q)) else {
                return;
            };
            for (key, module) in modules.items(0) {
                if let Kind::Str(key) = classify(key)
                    && let Some(key) = key.utf8(q)
                    && let Some(rest) = key.strip_prefix(prefix.as_bytes())
                {
                    let rest = String::from_utf8_lossy(rest).into_owned();
                    below.push((rest, module.anchor()));
                }
            }
        });
        let below: Vec<_> = below
            .into_iter()
            .map(|(rest, module)| (rest, module.pin(py)))
            .collect();
        for (rest, module) in below {
            if rest.split('.').all(|token| parts.has_name(py, token)) {
                found.push(module);
            }
        }
    }
    Ok(found)
}

/// The names that tell where a function comes from.
pub(crate) fn origin_names(py: Python<'_>) -> [&Bound<'_, PyString>; 4] {
    [
        intern!(py, "__package__"),
        intern!(py, "__name__"),
        intern!(py, "__path__"),
        intern!(py, "__file__"),
    ]
}

/// The values of those names, as far as a function's globals have them.
pub(crate) fn origin<'py>(
    globals: &Bound<'py, PyDict>,
) -> PyResult<[Option<Bound<'py, PyAny>>; 4]> {
    let py = globals.py();
    let names = origin_names(py);
    let mut values = [const { None }; 4];
    // They are among the first that a module is given.
    if globals.is_exact_instance_of::<PyDict>() {
        let anchor = Anchor::of(globals.as_any());
        let wanted = names.map(|name| name.as_ptr() as usize);
        let mut found = [const { None }; 4];
        quiet(py, |q| {
            if let Kind::Dict(globals) = classify(anchor.obj(q)) {
                for (key, value) in globals.items(0).take(FIRST) {
                    if let Some(at) = wanted.iter().position(|&name| name == key.address()) {
                        found[at] = Some(value.anchor());
                    }
                }
            }
        });
        values = found.map(|value: Option<Anchor>| value.map(|value| value.pin(py)));
    }
    for (name, value) in names.into_iter().zip(&mut values) {
        if value.is_none() {
            *value = get(globals, name)?;
        }
    }
    Ok(values)
}

/// How many of a module's names are looked at one by one.
const FIRST: usize = 10;

impl CodeParts {
    fn has_name(&self, py: Python<'_>, name: &str) -> bool {
        self.all_names
            .iter()
            .any(|known| known.bind(py).to_str().is_ok_and(|known| known == name))
    }
}

/// The modules among what cells hold.
pub(crate) fn modules_in_cells<'py>(
    closure: &Bound<'py, PyTuple>,
    modules: &mut Vec<Bound<'py, PyAny>>,
) {
    for cell in closure.iter_borrowed() {
        if let Some(content) = crate::ffi::function_view::cell_contents(&cell)
            && content.is_instance_of::<PyModule>()
        {
            modules.push(content);
        }
    }
}
