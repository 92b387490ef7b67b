//! Objects that only a reducer can tell: which reducer is asked, in CPython's order, and the plan its answer becomes.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyByteArray, PyBytes, PyDict, PyFrozenSet, PyFunction, PyList, PySet, PyString, PyTuple, PyType,
};
use quickpickle_format::opcode::byte;

use crate::ffi::object::{Anchor, quiet};
use crate::ffi::{build, compat, outside};
use crate::python_types::{library, pickling_error, pickling_error_of};

use super::engine::{Engine, Settings};
use super::notes;
use super::plan::{Items, Step};

impl Engine {
    /// Saves an object that is no leaf and no container the walk knows.
    pub(super) fn reduce(&mut self, obj: Bound<'_, PyAny>, settings: &Settings) -> PyResult<()> {
        let py = obj.py();
        if settings.protocol < 5
            && let Some(value) = reduce_builtin(&obj, settings.protocol)?
        {
            return self.plan_reduce(&value, Some(&obj), settings);
        }
        if obj.is_exact_instance_of::<PyByteArray>() || compat::is_pickle_buffer(&obj) {
            return self.save_buffer(obj, settings);
        }
        if let Some(hook) = &settings.reducer_override {
            self.exposed();
            let value = outside::call1(hook.bind(py), &obj)?;
            if !value.is(py.NotImplemented()) {
                return self.reduced(&value, &obj, settings);
            }
        }
        if let Some(cloud) = settings.cloud
            && crate::cloud::save::save(self, &obj, cloud, settings)?
        {
            return Ok(());
        }
        if obj.get_type().is(py.get_type::<PyType>()) {
            for singleton in [py.None(), py.Ellipsis(), py.NotImplemented()] {
                if singleton.bind(py).get_type().is(&obj) {
                    let value = (py.get_type::<PyType>(), (singleton,)).into_pyobject(py)?;
                    return self.plan_reduce(&value, Some(&obj), settings);
                }
            }
            return self.save_global(&obj, None, settings);
        }
        if obj.is_exact_instance_of::<PyFunction>() {
            return self.save_global(&obj, None, settings);
        }
        let class = obj.get_type();
        let reducer = match &settings.dispatch_table {
            None => library(py)?.dispatch_table.bind(py).get_item(&class)?,
            Some(table) => {
                self.exposed();
                match get_optional(table.bind(py), class.as_any())? {
                    None if settings.cloud.is_some() => {
                        library(py)?.dispatch_table.bind(py).get_item(&class)?
                    }
                    found => found,
                }
            }
        };
        if let Some(reducer) = reducer {
            self.exposed();
            let value = outside::call1(&reducer, &obj)?;
            return self.reduced(&value, &obj, settings);
        }
        if obj.is_instance_of::<PyType>() {
            self.exposed();
            return self.save_global(&obj, None, settings);
        }
        // Types built into the interpreter reduce themselves without running other code.
        if !compat::is_heap_type(&class) {
            let protocol = build::int(py, settings.protocol.into())?;
            let value = obj.call_method1(intern!(py, "__reduce_ex__"), (protocol,))?;
            return self.reduced(&value, &obj, settings);
        }
        self.exposed();
        let value = match compat::optional_attribute(&obj, intern!(py, "__reduce_ex__"))? {
            Some(reducer) => {
                let protocol = build::int(py, settings.protocol.into())?;
                outside::call1(&reducer, &protocol)?
            }
            None => match compat::optional_attribute(&obj, intern!(py, "__reduce__"))? {
                Some(reducer) => outside::call0(&reducer)?,
                None => {
                    let name = compat::class_name_of(&obj);
                    let message = if cfg!(Py_3_14) {
                        format!("Can't pickle {name} object")
                    } else {
                        format!("can't pickle '{name}' object: {}", obj.repr()?)
                    };
                    return Err(pickling_error(py, message));
                }
            },
        };
        self.reduced(&value, &obj, settings)
    }

    /// What a reducer answered: a name, or a tuple.
    fn reduced(
        &mut self,
        value: &Bound<'_, PyAny>,
        obj: &Bound<'_, PyAny>,
        settings: &Settings,
    ) -> PyResult<()> {
        if let Ok(name) = value.cast::<PyString>() {
            return self.save_global(obj, Some(name), settings);
        }
        if self.reduced_simply(value, obj) {
            return Ok(());
        }
        match value.cast::<PyTuple>() {
            Ok(value) => self.plan_reduce(value, Some(obj), settings),
            Err(_) => {
                let wanted = "__reduce__ must return a string or tuple";
                Err(wrong_type(wanted, value))
            }
        }
        .inspect_err(|error| notes::serializing(error, obj, "object"))
    }

    /// Writes at once what most reducers answer: a class that has been written before, and a few arguments that hold no
    /// other objects. False, and nothing is written, where it is more than that.
    fn reduced_simply(&mut self, value: &Bound<'_, PyAny>, obj: &Bound<'_, PyAny>) -> bool {
        let Ok(value) = value.cast_exact::<PyTuple>() else {
            return false;
        };
        if self.asks_persistent_id || value.len() != 2 {
            return false;
        }
        let py = value.py();
        let (value, obj) = (Anchor::of(value.as_any()), Anchor::of(obj));
        let written = quiet(py, |q| self.write_simple(q, value.obj(q), obj.obj(q)));
        if written {
            // Before the answer is dropped, and with it what was remembered by its address.
            self.memo.settle(py);
        }
        written
    }

    /// Plans to save what a reducer answered. `obj` is remembered once it is built; without it nothing is.
    pub(super) fn plan_reduce(
        &mut self,
        value: &Bound<'_, PyTuple>,
        obj: Option<&Bound<'_, PyAny>>,
        settings: &Settings,
    ) -> PyResult<()> {
        let py = value.py();
        let error = |message: String| pickling_error(py, message);
        let len = value.len();
        if !(2..=6).contains(&len) {
            return Err(error(
                "tuple returned by __reduce__ must contain 2 through 6 elements".into(),
            ));
        }
        let item = |index: usize| -> PyResult<Option<Bound<'_, PyAny>>> {
            if index >= len {
                return Ok(None);
            }
            Ok(Some(value.get_item(index)?).filter(|item| !item.is_none()))
        };
        let callable = value.get_item(0)?;
        if !callable.is_callable() {
            let wanted = "first item of the tuple returned by __reduce__ must be callable";
            return Err(wrong_type(wanted, &callable));
        }
        let args = value.get_item(1)?;
        let Ok(args) = args.cast::<PyTuple>() else {
            let wanted = "second item of the tuple returned by __reduce__ must be a tuple";
            return Err(wrong_type(wanted, &args));
        };
        let state = item(2)?;
        let list_items = item(3)?;
        let dict_items = item(4)?;
        let setter = item(5)?;
        for (items, place) in [(&list_items, "fourth"), (&dict_items, "fifth")] {
            if let Some(items) = items
                && !compat::is_iterator(items)
            {
                let item = if cfg!(Py_3_14) { "item" } else { "element" };
                return Err(error(format!(
                    "{place} {item} of the tuple returned by __reduce__ must be an iterator, not {}",
                    compat::class_name_of(items)
                )));
            }
        }
        if let Some(setter) = &setter
            && !setter.is_callable()
        {
            let wanted = if cfg!(Py_3_14) {
                "item of the tuple returned by __reduce__ must be callable"
            } else {
                "element of the tuple returned by __reduce__ must be a function"
            };
            let found = compat::class_name_of(setter);
            return Err(error(format!("sixth {wanted}, not {found}")));
        }
        let mut steps = Vec::with_capacity(8);
        self.plan_call(&mut steps, &callable, args, obj, settings)?;
        if let Some(obj) = obj {
            steps.push(Step::Remember(obj.clone().unbind()));
        }
        let items = |iterator: Bound<'_, PyAny>| {
            let mut items = Items::new(iterator.unbind());
            items.single = settings.protocol == 0;
            items
        };
        steps.extend(list_items.map(|iterator| Step::ListItems(items(iterator))));
        steps.extend(dict_items.map(|iterator| Step::DictItems(items(iterator))));
        match (state, setter, obj) {
            (None, ..) => {}
            (Some(state), None, _) => {
                steps.extend([Step::Save(state.unbind()), Step::Opcode(byte::BUILD)]);
            }
            // The setter is called with the object and its state, and what it returns is thrown away.
            (Some(state), Some(setter), obj) => {
                let obj = obj.map_or_else(|| py.None(), |obj| obj.clone().unbind());
                steps.extend([
                    Step::Save(setter.unbind()),
                    Step::Save(obj),
                    Step::Save(state.unbind()),
                    Step::Opcode(byte::TUPLE2),
                    Step::Opcode(byte::REDUCE),
                    Step::Opcode(byte::POP),
                ]);
            }
        }
        self.plan(steps, obj.is_some())
    }

    /// The steps that call `callable` with `args`, by NEWOBJ and NEWOBJ_EX where they can.
    fn plan_call(
        &mut self,
        steps: &mut Vec<Step>,
        callable: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        obj: Option<&Bound<'_, PyAny>>,
        settings: &Settings,
    ) -> PyResult<()> {
        let py = callable.py();
        let error = |message: String| pickling_error(py, message);
        let name = if settings.protocol >= 2 {
            compat::optional_attribute(callable, intern!(py, "__name__"))?
        } else {
            None
        };
        let name = name.as_ref().and_then(|name| name.cast::<PyString>().ok());
        if name.is_some_and(|name| name == "__newobj_ex__") {
            if args.len() != 3 {
                let len = args.len();
                return Err(error(if cfg!(Py_3_14) {
                    format!("__newobj_ex__ expected 3 arguments, got {len}")
                } else {
                    format!("length of the NEWOBJ_EX argument tuple must be exactly 3, not {len}")
                }));
            }
            let (class, new_args, kwargs) =
                (args.get_item(0)?, args.get_item(1)?, args.get_item(2)?);
            let wrong = |place: &str, wanted: &str, found: &Bound<'_, PyAny>| {
                let what = if cfg!(Py_3_14) {
                    "argument to __newobj_ex__()"
                } else {
                    "item from NEWOBJ_EX argument tuple"
                };
                let found = compat::class_name_of(found);
                error(format!("{place} {what} must be a {wanted}, not {found}"))
            };
            if !class.is_instance_of::<PyType>() {
                return Err(wrong("first", "class", &class));
            }
            let Ok(new_args) = new_args.cast::<PyTuple>() else {
                return Err(wrong("second", "tuple", &new_args));
            };
            let Ok(kwargs) = kwargs.cast::<PyDict>() else {
                return Err(wrong("third", "dict", &kwargs));
            };
            if settings.protocol >= 4 {
                steps.extend([
                    Step::Save(class.unbind()),
                    Step::Save(new_args.clone().into_any().unbind()),
                    Step::Save(kwargs.clone().into_any().unbind()),
                    Step::Opcode(byte::NEWOBJ_EX),
                ]);
                return Ok(());
            }
            self.exposed();
            let mut bound = vec![class.getattr(intern!(py, "__new__"))?, class];
            bound.extend(new_args.iter());
            let partial = library(py)?
                .partial
                .bind(py)
                .call(PyTuple::new(py, bound)?, Some(kwargs))?;
            steps.extend([
                Step::Save(partial.unbind()),
                Step::Save(PyTuple::empty(py).into_any().unbind()),
                Step::Opcode(byte::REDUCE),
            ]);
            return Ok(());
        }
        if name.is_some_and(|name| name == "__newobj__") {
            let Ok(class) = args.get_item(0) else {
                return Err(error(if cfg!(Py_3_14) {
                    "__newobj__ expected at least 1 argument, got 0".into()
                } else {
                    "__newobj__ arglist is empty".into()
                }));
            };
            if !class.is_instance_of::<PyType>() {
                return Err(if cfg!(Py_3_14) {
                    wrong_type("first argument to __newobj__() must be a class", &class)
                } else {
                    error("args[0] from __newobj__ args is not a type".into())
                });
            }
            if let Some(obj) = obj {
                let of_obj = compat::optional_attribute(obj, intern!(py, "__class__"))?;
                if !of_obj.as_ref().is_some_and(|of_obj| of_obj.is(&class)) {
                    let message = "args[0] from __newobj__ args has the wrong class";
                    return Err(match of_obj {
                        Some(of_obj) if cfg!(Py_3_14) => pickling_error_of(
                            py,
                            "first argument to __newobj__() must be %r, not %r",
                            (of_obj, class),
                        ),
                        _ => error(message.into()),
                    });
                }
            }
            steps.extend([
                Step::Save(class.unbind()),
                Step::Save(args.get_slice(1, args.len()).into_any().unbind()),
                Step::Opcode(byte::NEWOBJ),
            ]);
            return Ok(());
        }
        steps.extend([
            Step::Save(callable.clone().unbind()),
            Step::Save(args.clone().into_any().unbind()),
            Step::Opcode(byte::REDUCE),
        ]);
        Ok(())
    }
}

/// What a reducer answered is not what it should be; since 3.14 the complaint names what it is.
fn wrong_type(wanted: &str, found: &Bound<'_, PyAny>) -> PyErr {
    let mut message = wanted.to_owned();
    if cfg!(Py_3_14) {
        message += ", not ";
        message += &compat::class_name_of(found);
    }
    pickling_error(found.py(), message)
}

/// Builtins that the protocol has no opcode for, as calls.
fn reduce_builtin<'py>(
    obj: &Bound<'py, PyAny>,
    protocol: u8,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let py = obj.py();
    if protocol < 4
        && (obj.is_exact_instance_of::<PySet>() || obj.is_exact_instance_of::<PyFrozenSet>())
    {
        let items = PyList::empty(py);
        for item in obj.try_iter()? {
            items.append(item?)?;
        }
        return Ok(Some((obj.get_type(), (items,)).into_pyobject(py)?));
    }
    if protocol < 3
        && let Ok(bytes) = obj.cast_exact::<PyBytes>()
    {
        if bytes.as_bytes().is_empty() {
            return Ok(Some(
                (obj.get_type(), PyTuple::empty(py)).into_pyobject(py)?,
            ));
        }
        let text = latin1(py, bytes.as_bytes());
        let value = (
            library(py)?.codecs_encode.bind(py),
            (text, intern!(py, "latin1")),
        )
            .into_pyobject(py)?;
        return Ok(Some(value));
    }
    if protocol < 5
        && let Ok(bytes) = obj.cast_exact::<PyByteArray>()
    {
        let value = if bytes.is_empty() {
            (obj.get_type(), PyTuple::empty(py)).into_pyobject(py)?
        } else {
            // A bytes object of its own, even of a single byte, for which there is one that is shared.
            let content = py.get_type::<PyBytes>().call1((bytes,))?;
            (obj.get_type(), (content,)).into_pyobject(py)?
        };
        return Ok(Some(value));
    }
    Ok(None)
}

fn latin1<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyString> {
    PyString::new(
        py,
        &bytes
            .iter()
            .map(|&byte| char::from(byte))
            .collect::<String>(),
    )
}

/// `table[key]`, None where it raises KeyError.
fn get_optional<'py>(
    table: &Bound<'py, PyAny>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match table.get_item(key) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyKeyError>(table.py()) => Ok(None),
        Err(error) if error.is_instance_of::<PyTypeError>(table.py()) => Err(error),
        Err(error) => Err(error),
    }
}
