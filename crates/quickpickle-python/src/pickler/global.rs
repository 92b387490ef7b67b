//! Classes and functions by name: which module an object says it is in, whether it is found there, how that is written.

use pyo3::exceptions::{
    PyAttributeError, PyImportError, PyKeyError, PyRuntimeError, PyTypeError, PyUnicodeEncodeError,
    PyValueError,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString, PyTuple};
use quickpickle_format::opcode::byte;

use crate::ffi::compat;
use crate::ffi::object::{Anchor, quiet};
use crate::python_types::{library, loaded_module, pickling_error_of};

use super::engine::{Engine, Settings};
use super::plan::Step;

impl Engine {
    /// Saves `obj` by the name it has, or that a reducer gave it.
    pub(super) fn save_global(
        &mut self,
        obj: &Bound<'_, PyAny>,
        name: Option<&Bound<'_, PyString>>,
        settings: &Settings,
    ) -> PyResult<()> {
        let py = obj.py();
        let library = library(py)?;
        if name.is_none()
            && settings.protocol >= 4
            && !self.asks_persistent_id
            && library.extension_registry.bind(py).is_empty()
            && let Some((module, name)) = find_plainly(obj)?
            && self.write_names(obj, module.as_any(), name.as_any())
        {
            return Ok(());
        }
        let found = find(obj, name)?;
        if settings.protocol >= 2
            && !library.extension_registry.bind(py).is_empty()
            && let Some(code) = library
                .extension_registry
                .bind(py)
                .get_item((&found.module_name, &found.name))?
        {
            let code = extension_code(obj, &code)?;
            self.out.extension(code);
            return Ok(());
        }
        let nested = !found.parent.is(&found.module);
        if settings.protocol >= 4
            && !self.asks_persistent_id
            && self.write_names(
                obj,
                &found.module_name,
                if nested { &found.name } else { &found.last },
            )
        {
            return Ok(());
        }
        if settings.protocol >= 4 {
            return self.plan(
                vec![
                    Step::Save(found.module_name.unbind()),
                    Step::Save(if nested { found.name } else { found.last }.unbind()),
                    Step::Opcode(byte::STACK_GLOBAL),
                    Step::RememberName(obj.clone().unbind()),
                ],
                false,
            );
        }
        if nested && cfg!(Py_3_13) {
            return self.plan_nested(obj, &found, settings);
        }
        if nested {
            let value = (library.getattr.bind(py), (found.parent, found.last)).into_pyobject(py)?;
            self.plan(vec![Step::RememberName(obj.clone().unbind())], false)?;
            return self.plan_reduce(&value, None, settings);
        }
        let line = global_line(found.module_name, found.last, settings)?;
        self.plan(
            vec![Step::Write(line), Step::RememberName(obj.clone().unbind())],
            false,
        )
    }

    /// Saves an object that is found under that name in that module.
    pub(crate) fn save_named(
        &mut self,
        obj: &Bound<'_, PyAny>,
        module_name: &Bound<'_, PyString>,
        name: &Bound<'_, PyString>,
    ) -> PyResult<()> {
        let first = if self.out.protocol() >= 4 {
            vec![
                Step::Save(module_name.clone().into_any().unbind()),
                Step::Save(name.clone().into_any().unbind()),
                Step::Opcode(byte::STACK_GLOBAL),
            ]
        } else {
            let (module_name, name) = (module_name.to_str()?, name.to_str()?);
            vec![Step::Write(
                format!("c{module_name}\n{name}\n").into_bytes(),
            )]
        };
        let mut steps = first;
        steps.push(Step::RememberName(obj.clone().unbind()));
        self.plan(steps, false)
    }

    /// Writes module and name, which are nearly always plain strs, and remembers the object; false, and nothing is written,
    /// where they are not.
    fn write_names(
        &mut self,
        obj: &Bound<'_, PyAny>,
        module_name: &Bound<'_, PyAny>,
        name: &Bound<'_, PyAny>,
    ) -> bool {
        let py = obj.py();
        let anchors = [Anchor::of(module_name), Anchor::of(name), Anchor::of(obj)];
        let written = quiet(py, |q| {
            self.write_stack_global(q, anchors.map(|anchor| anchor.obj(q)))
        });
        // The names may be ours alone.
        self.memo.settle(py);
        written
    }

    /// A class in a class, for protocols that have no dotted names: `getattr` for each part after the first, of which only
    /// the result is remembered.
    fn plan_nested(
        &mut self,
        obj: &Bound<'_, PyAny>,
        found: &Found<'_>,
        settings: &Settings,
    ) -> PyResult<()> {
        let py = obj.py();
        let getattr = &library(py)?.getattr;
        let Some((first, rest)) = found.path.split_first() else {
            return Ok(());
        };
        let mut steps = Vec::new();
        for _ in rest {
            steps.push(Step::Save(getattr.clone_ref(py)));
            if settings.protocol < 2 {
                steps.push(Step::Opcode(byte::MARK));
            }
        }
        steps.push(Step::Write(global_line(
            found.module_name.clone(),
            first.clone().into_any(),
            settings,
        )?));
        for part in rest {
            steps.push(Step::Save(part.clone().into_any().unbind()));
            steps.push(Step::Opcode(if settings.protocol < 2 {
                byte::TUPLE
            } else {
                byte::TUPLE2
            }));
            steps.push(Step::Opcode(byte::REDUCE));
        }
        steps.push(Step::RememberName(obj.clone().unbind()));
        self.plan(steps, false)
    }
}

/// The GLOBAL operation for a name in a module.
fn global_line(
    module_name: Bound<'_, PyAny>,
    name: Bound<'_, PyAny>,
    settings: &Settings,
) -> PyResult<Vec<u8>> {
    let py = module_name.py();
    let (mut module_name, mut name) = (module_name, name);
    if settings.protocol < 3 && settings.fix_imports {
        (module_name, name) = python2_names(module_name, name)?;
    }
    let mut line = vec![byte::GLOBAL];
    for (what, text) in [("module", &module_name), ("global", &name)] {
        let encoding = if settings.protocol == 3 {
            intern!(py, "utf-8")
        } else {
            intern!(py, "ascii")
        };
        let encoded = text
            .call_method1(intern!(py, "encode"), (encoding,))
            .map_err(|error| {
                if !error.is_instance_of::<PyUnicodeEncodeError>(py) {
                    return error;
                }
                let template = if cfg!(Py_3_14) {
                    "can't pickle %s identifier %r using pickle protocol %d"
                } else {
                    "can't pickle %s identifier '%s' using pickle protocol %d"
                };
                let raised = pickling_error_of(py, template, (what, text, settings.protocol));
                if cfg!(Py_3_14) {
                    raised.set_context(py, Some(error));
                }
                raised
            })?;
        line.extend_from_slice(encoded.extract()?);
        line.push(b'\n');
    }
    Ok(line)
}

/// An object found under the name it claims.
struct Found<'py> {
    module_name: Bound<'py, PyAny>,
    module: Bound<'py, PyAny>,
    /// What holds it: the module, or a class in it.
    parent: Bound<'py, PyAny>,
    /// Its whole name, dotted for nested classes.
    name: Bound<'py, PyAny>,
    /// The part of its name after the last dot.
    last: Bound<'py, PyAny>,
    /// All parts of its name.
    path: Vec<Bound<'py, PyString>>,
}

/// Module and name of a class that is found without running other code, which most are.
fn find_plainly<'py>(
    obj: &Bound<'py, PyAny>,
) -> PyResult<Option<(Bound<'py, PyString>, Bound<'py, PyString>)>> {
    let py = obj.py();
    let Some(name) = compat::qualified_name(obj) else {
        return Ok(None);
    };
    if !name.to_str().is_ok_and(|name| !name.contains('.')) {
        return Ok(None);
    }
    let module = compat::optional_attribute(obj, intern!(py, "__module__"))?;
    let Some(Ok(module)) = module.map(Bound::cast_into::<PyString>) else {
        return Ok(None);
    };
    Ok(compat::is_in_module(obj, &module, &name).then_some((module, name)))
}

fn find<'py>(obj: &Bound<'py, PyAny>, name: Option<&Bound<'py, PyString>>) -> PyResult<Found<'py>> {
    let py = obj.py();
    let name = match name {
        Some(name) => name.clone().into_any(),
        None => match compat::optional_attribute(obj, intern!(py, "__qualname__"))? {
            Some(name) => name,
            None => obj.getattr(intern!(py, "__name__"))?,
        },
    };
    let path = dotted_path(obj, &name)?;
    let module_name = which_module(obj, &path)?;
    let module = import(obj, &module_name)?;
    let mut parent = module.clone();
    let mut found = module.clone();
    for part in &path {
        let next = match compat::optional_attribute(&found, part) {
            Ok(Some(next)) => next,
            Ok(None) => return Err(not_found(obj, &name, &module_name, &found, part)),
            Err(error) => return Err(lookup_failed(obj, &name, &module_name, error)),
        };
        parent = std::mem::replace(&mut found, next);
    }
    if !found.is(obj) {
        let template = "Can't pickle %r: it's not the same object as %s.%s";
        return Err(pickling_error_of(py, template, (obj, &module_name, &name)));
    }
    let last = path
        .last()
        .map_or_else(|| name.clone(), |last| last.clone().into_any());
    Ok(Found {
        module_name,
        module,
        parent,
        name,
        last,
        path,
    })
}

/// The parts of a dotted name; functions inside functions have none.
fn dotted_path<'py>(
    obj: &Bound<'py, PyAny>,
    name: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyString>>> {
    let py = obj.py();
    let text = name.cast::<PyString>()?;
    // Without a dot the name is its own path; keeping the object keeps its identity, and with it the memo's.
    let Ok(utf8) = text.to_str() else {
        return Ok(vec![text.clone()]);
    };
    if !utf8.contains('.') && utf8 != "<locals>" {
        return Ok(vec![text.clone()]);
    }
    let parts: Vec<_> = utf8.split('.').collect();
    if parts.contains(&"<locals>") {
        return Err(local_object(obj, name)?);
    }
    Ok(parts
        .into_iter()
        .map(|part| PyString::new(py, part))
        .collect())
}

/// The module an object says it is in, or one of `sys.modules` in which it is found.
fn which_module<'py>(
    obj: &Bound<'py, PyAny>,
    path: &[Bound<'py, PyString>],
) -> PyResult<Bound<'py, PyAny>> {
    let py = obj.py();
    if let Some(name) = compat::optional_attribute(obj, intern!(py, "__module__"))?
        && !name.is_none()
    {
        return Ok(name);
    }
    let modules = py
        .import(intern!(py, "sys"))?
        .getattr(intern!(py, "modules"))?;
    // A copy: looking attributes up may import.
    let modules = modules.call_method0(intern!(py, "copy"))?;
    for (name, module) in modules.cast::<PyDict>()?.iter() {
        if module.is_none() || name.eq(intern!(py, "__main__"))? {
            continue;
        }
        let mut found = module;
        let mut complete = true;
        for part in path {
            match compat::optional_attribute(&found, part) {
                Ok(Some(next)) => found = next,
                Ok(None) => complete = false,
                Err(error) => return Err(error),
            }
            if !complete {
                break;
            }
        }
        if complete && found.is(obj) {
            return Ok(name);
        }
    }
    Ok(intern!(py, "__main__").clone().into_any())
}

fn import<'py>(
    obj: &Bound<'py, PyAny>,
    module_name: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(text) = module_name.cast::<PyString>()
        && let Some(module) = loaded_module(text)?
    {
        return Ok(module);
    }
    compat::import(module_name).map_err(|error| import_failed(obj, module_name, error))
}

fn extension_code(obj: &Bound<'_, PyAny>, code: &Bound<'_, PyAny>) -> PyResult<u32> {
    let py = obj.py();
    let Ok(number) = code.cast::<PyInt>() else {
        if cfg!(Py_3_13) {
            let found = compat::type_name(&code.get_type());
            return Err(PyTypeError::new_err(format!(
                "'{found}' object cannot be interpreted as an integer"
            )));
        }
        let template = "Can't pickle %r: extension code %r isn't an integer";
        return Err(pickling_error_of(py, template, (obj, code)));
    };
    match number.extract::<i64>()? {
        number @ 1..=0x7fff_ffff => Ok(number as u32),
        number if cfg!(Py_3_13) => Err(PyRuntimeError::new_err(format!(
            "extension code {number} is out of range"
        ))),
        _ => Err(pickling_error_of(
            py,
            "Can't pickle %r: extension code %s is out of range",
            (obj, code),
        )),
    }
}

/// Module and name as Python 2 had them.
fn python2_names<'py>(
    module_name: Bound<'py, PyAny>,
    name: Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let py = module_name.py();
    let library = library(py)?;
    if let Some(mapped) = library
        .names_3to2
        .bind(py)
        .get_item((&module_name, &name))?
    {
        let mapped = mapped
            .cast::<PyTuple>()
            .ok()
            .filter(|pair| pair.len() == 2)
            .ok_or_else(|| {
                PyRuntimeError::new_err(format!(
                    "_compat_pickle.REVERSE_NAME_MAPPING values should be 2-tuples, not {}",
                    compat::type_name(&mapped.get_type())
                ))
            })?;
        let (module_name, name) = (mapped.get_item(0)?, mapped.get_item(1)?);
        if !module_name.is_instance_of::<PyString>() || !name.is_instance_of::<PyString>() {
            return Err(PyRuntimeError::new_err(format!(
                "_compat_pickle.REVERSE_NAME_MAPPING values should be pairs of str, not ({}, {})",
                compat::type_name(&module_name.get_type()),
                compat::type_name(&name.get_type())
            )));
        }
        return Ok((module_name, name));
    }
    if let Some(mapped) = library.modules_3to2.bind(py).get_item(&module_name)? {
        if !mapped.is_instance_of::<PyString>() {
            return Err(PyRuntimeError::new_err(format!(
                "_compat_pickle.REVERSE_IMPORT_MAPPING values should be strings, not {}",
                compat::type_name(&mapped.get_type())
            )));
        }
        return Ok((mapped, name));
    }
    Ok((module_name, name))
}

fn local_object(obj: &Bound<'_, PyAny>, name: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    if cfg!(Py_3_14) {
        return Ok(pickling_error_of(
            obj.py(),
            "Can't pickle local object %r",
            (obj,),
        ));
    }
    let verb = if cfg!(Py_3_13) { "get" } else { "pickle" };
    Ok(PyAttributeError::new_err(format!(
        "Can't {verb} local object {}",
        name.repr()?
    )))
}

fn not_found(
    obj: &Bound<'_, PyAny>,
    name: &Bound<'_, PyAny>,
    module_name: &Bound<'_, PyAny>,
    holder: &Bound<'_, PyAny>,
    part: &Bound<'_, PyString>,
) -> PyErr {
    let py = obj.py();
    let cause = holder.getattr(part).err();
    let error = if cfg!(Py_3_14) {
        pickling_error_of(
            py,
            "Can't pickle %r: it's not found as %s.%s",
            (obj, module_name, name),
        )
    } else {
        pickling_error_of(
            py,
            "Can't pickle %r: attribute lookup %s on %s failed",
            (obj, name, module_name),
        )
    };
    error.set_context(py, cause);
    error
}

fn lookup_failed(
    obj: &Bound<'_, PyAny>,
    name: &Bound<'_, PyAny>,
    module_name: &Bound<'_, PyAny>,
    cause: PyErr,
) -> PyErr {
    if cfg!(Py_3_14) {
        return cause;
    }
    pickling_error_of(
        obj.py(),
        "Can't pickle %r: attribute lookup %s on %s failed",
        (obj, name, module_name),
    )
}

fn import_failed(obj: &Bound<'_, PyAny>, module_name: &Bound<'_, PyAny>, cause: PyErr) -> PyErr {
    let py = obj.py();
    if cfg!(Py_3_14) {
        if !(cause.is_instance_of::<PyImportError>(py)
            || cause.is_instance_of::<PyValueError>(py)
            || cause.is_instance_of::<PyKeyError>(py))
        {
            return cause;
        }
        let error = pickling_error_of(py, "Can't pickle %r: %s", (obj, cause.value(py)));
        error.set_context(py, Some(cause));
        return error;
    }
    pickling_error_of(
        py,
        "Can't pickle %r: import of module %r failed",
        (obj, module_name),
    )
}
