//! Code objects: their parts, found out once and kept in them, and how they are written.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyCode, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyString, PyTuple,
};

use crate::ffi::compat;
use crate::ffi::function_view;
use crate::ffi::object::Anchor;
use crate::pickler::{Direct, Script, Text, Writing, bound};

use super::Cloud;

/// What is written of a code object, and what is asked about it.
pub(crate) struct CodeParts {
    /// argcount, posonlyargcount, kwonlyargcount, nlocals, stacksize, flags
    counts: [i32; 6],
    code: Py<PyAny>,
    consts: Py<PyAny>,
    names: Py<PyTuple>,
    varnames: Py<PyTuple>,
    filename: Py<PyAny>,
    name: Py<PyAny>,
    qualname: Option<Py<PyAny>>,
    first_line: i32,
    line_table: Py<PyAny>,
    exception_table: Option<Py<PyAny>>,
    freevars: Py<PyTuple>,
    cellvars: Py<PyTuple>,
    /// Names of globals that it, or code in its constants, reads, writes or deletes.
    pub(crate) globals: Vec<Py<PyString>>,
    /// Names of attributes and globals in it and in code in its constants.
    pub(crate) all_names: Vec<Py<PyString>>,
    /// How many variables of enclosing functions it uses.
    pub(crate) free_count: usize,
    /// frozensets among its constants whose order differs from process to process, and their items in an order that does
    /// not.
    pub(crate) sets: Vec<(Py<PyAny>, Py<PyTuple>)>,
    /// What its name is written as.
    name_text: Option<Text>,
    /// The code objects among its constants, and their parts, if it has a bound.
    pub(crate) inner: Vec<(Py<PyAny>, CodeParts)>,
    /// Bytes that it takes at most, if it holds nothing but constants that are leaves, and is not long.
    pub(crate) bound: Option<usize>,
}

/// Code above this many bytes is not written in one go.
const LONGEST: usize = 16 * 1024;

/// The parts of a code object.
pub(crate) fn parts<'a>(code: &'a Bound<'_, PyAny>) -> PyResult<&'a CodeParts> {
    match function_view::parts(code)? {
        Some(parts) => Ok(parts),
        None => function_view::set_parts(code, find_parts(code, 0)?),
    }
}

#[cold]
fn find_parts(code: &Bound<'_, PyAny>, depth: usize) -> PyResult<CodeParts> {
    let py = code.py();
    let get = |name: &str| code.getattr(name);
    let int = |name: &str| get(name)?.extract::<i32>();
    let tuple =
        |name: &str| -> PyResult<Py<PyTuple>> { Ok(get(name)?.cast_into::<PyTuple>()?.unbind()) };
    let optional = |name: &str| -> PyResult<Option<Py<PyAny>>> {
        Ok(compat::optional_attribute(code, &PyString::intern(py, name))?.map(Bound::unbind))
    };
    let consts = get("co_consts")?;
    let (globals, all_names) = used_names(code)?;
    let mut sets = Vec::new();
    collect_sets(&consts, &mut sets, 0)?;
    let freevars = tuple("co_freevars")?;
    let mut parts = CodeParts {
        counts: [
            int("co_argcount")?,
            int("co_posonlyargcount")?,
            int("co_kwonlyargcount")?,
            int("co_nlocals")?,
            int("co_stacksize")?,
            int("co_flags")?,
        ],
        code: get("co_code")?.unbind(),
        names: tuple("co_names")?,
        varnames: tuple("co_varnames")?,
        filename: get("co_filename")?.unbind(),
        name: get("co_name")?.unbind(),
        qualname: if cfg!(Py_3_11) {
            optional("co_qualname")?
        } else {
            None
        },
        first_line: int("co_firstlineno")?,
        line_table: get("co_linetable")?.unbind(),
        exception_table: if cfg!(Py_3_11) {
            optional("co_exceptiontable")?
        } else {
            None
        },
        free_count: freevars.bind(py).len(),
        freevars,
        cellvars: tuple("co_cellvars")?,
        consts: consts.unbind(),
        globals,
        all_names,
        sets,
        name_text: None,
        inner: Vec::new(),
        bound: None,
    };
    parts.name_text = Text::copy_of(py, Anchor::of_owned(&parts.name));
    parts.bound = parts.find_bound(py, depth)?;
    Ok(parts)
}

impl CodeParts {
    fn find_bound(&mut self, py: Python<'_>, depth: usize) -> PyResult<Option<usize>> {
        if self.name_text.is_none() || !self.sets.is_empty() || depth > DEEPEST {
            return Ok(None);
        }
        // Code within code, and what each of the others takes for itself.
        let mut sum = 0;
        let mut plain = Vec::new();
        for item in self.consts.bind(py).cast::<PyTuple>()?.iter() {
            if !function_view::is_code(&item) {
                plain.push(item);
                continue;
            }
            let inner = find_parts(&item, depth + 1)?;
            let Some(bound) = inner.bound else {
                return Ok(None);
            };
            sum += bound + FOR_CODE;
            self.inner.push((item.unbind(), inner));
        }
        let objects = [
            Some(&self.code),
            Some(&self.filename),
            Some(&self.name),
            self.qualname.as_ref(),
            Some(&self.line_table),
            self.exception_table.as_ref(),
            Some(self.names.as_any()),
            Some(self.varnames.as_any()),
            Some(self.freevars.as_any()),
            Some(self.cellvars.as_any()),
        ];
        plain.extend(
            objects
                .into_iter()
                .flatten()
                .map(|object| object.bind(py).clone()),
        );
        let found = bound(py, &PyTuple::new(py, plain)?);
        Ok(found
            .map(|bound| sum + bound)
            .filter(|&bound| bound <= LONGEST))
    }
}

/// Code within code that is looked at for that.
const DEEPEST: usize = 8;
/// Bytes of a code object beside what is in it.
const FOR_CODE: usize = 128;

/// Opcodes that tell names, as this version numbers them.
struct Opcodes {
    load_global: u8,
    store_global: u8,
    delete_global: u8,
    load_name: u8,
    store_name: u8,
    extended_arg: u8,
}

fn opcodes(py: Python<'_>) -> PyResult<&'static Opcodes> {
    static OPCODES: PyOnceLock<Opcodes> = PyOnceLock::new();
    OPCODES.get_or_try_init(py, || {
        let map = py.import("opcode")?.getattr("opmap")?;
        let number = |name: &str| map.get_item(name)?.extract::<u8>();
        Ok(Opcodes {
            load_global: number("LOAD_GLOBAL")?,
            store_global: number("STORE_GLOBAL")?,
            delete_global: number("DELETE_GLOBAL")?,
            load_name: number("LOAD_NAME")?,
            store_name: number("STORE_NAME")?,
            extended_arg: number("EXTENDED_ARG")?,
        })
    })
}

type Strs = Vec<Py<PyString>>;

/// Names of globals that the code uses, and all names in it, each once, code in its constants included.
fn used_names(code: &Bound<'_, PyAny>) -> PyResult<(Strs, Strs)> {
    let py = code.py();
    let mut globals = Names::default();
    let mut all = Names::default();
    let mut waiting = vec![code.clone()];
    while let Some(code) = waiting.pop() {
        names_of(&code, &mut globals)?;
        for name in code
            .getattr(intern!(py, "co_names"))?
            .cast::<PyTuple>()?
            .iter()
        {
            all.add(name.cast_into::<PyString>()?)?;
        }
        let consts = code
            .getattr(intern!(py, "co_consts"))?
            .cast_into::<PyTuple>()?;
        let inner = consts.iter().filter(function_view::is_code);
        waiting.extend(inner.collect::<Vec<_>>().into_iter().rev());
    }
    Ok((globals.names, all.names))
}

#[derive(Default)]
struct Names {
    names: Vec<Py<PyString>>,
    seen: std::collections::HashSet<String>,
}

impl Names {
    fn add(&mut self, name: Bound<'_, PyString>) -> PyResult<()> {
        if self.seen.insert(name.to_string_lossy().into_owned()) {
            self.names.push(name.unbind());
        }
        Ok(())
    }
}

fn names_of(code: &Bound<'_, PyAny>, globals: &mut Names) -> PyResult<()> {
    let py = code.py();
    let opcodes = opcodes(py)?;
    let bytes = code
        .getattr(intern!(py, "co_code"))?
        .cast_into::<PyBytes>()?;
    let names = code
        .getattr(intern!(py, "co_names"))?
        .cast_into::<PyTuple>()?;
    // Names that the body of a class reads without having bound them are globals too.
    let mut bound = std::collections::HashSet::new();
    let mut extended = 0usize;
    for pair in bytes.as_bytes().chunks_exact(2) {
        let (op, argument) = (pair[0], extended | usize::from(pair[1]));
        extended = if op == opcodes.extended_arg {
            argument << 8
        } else {
            0
        };
        // The lowest bit says something else.
        let is_load = op == opcodes.load_global;
        let index = if is_load && cfg!(Py_3_11) {
            argument >> 1
        } else {
            argument
        };
        if op == opcodes.store_name {
            bound.insert(index);
        }
        let is_free = op == opcodes.load_name && !bound.contains(&index);
        if is_load || op == opcodes.store_global || op == opcodes.delete_global || is_free {
            let name = names.get_item(index)?.cast_into::<PyString>()?;
            if !(is_free && name == "__name__") {
                globals.add(name)?;
            }
        }
    }
    Ok(())
}

/// Names that a metaclass's functions use without looking for anything in the body of a class.
const HARMLESS: &[&str] = &[
    "__init__",
    "__module__",
    "__name__",
    "__new__",
    "__prepare__",
    "__qualname__",
    "add",
    "append",
    "dict",
    "get",
    "isinstance",
    "items",
    "keys",
    "list",
    "object",
    "print",
    "set",
    "setdefault",
    "super",
    "tuple",
    "type",
    "update",
    "values",
];

/// Whether code only passes on what it is given, writes things down, and calls nothing that could look for more.
pub(crate) fn is_harmless(code: &Bound<'_, PyAny>, globals: &Bound<'_, PyDict>) -> PyResult<bool> {
    let py = code.py();
    let names = code
        .getattr(intern!(py, "co_names"))?
        .cast_into::<PyTuple>()?;
    let mut harmless = true;
    instructions(code, |name, argument| {
        let index = match name {
            "BINARY_SUBSCR" | "DELETE_SUBSCR" | "RAISE_VARARGS" | "BINARY_SLICE" => {
                harmless = false;
                return;
            }
            // Subscripts are one of its operators since 3.14.
            "BINARY_OP" if cfg!(Py_3_14) && argument == 26 => {
                harmless = false;
                return;
            }
            "LOAD_GLOBAL" if cfg!(Py_3_11) => argument >> 1,
            "LOAD_ATTR" if cfg!(Py_3_12) => argument >> 1,
            "LOAD_SUPER_ATTR" => argument >> 2,
            "LOAD_GLOBAL" | "LOAD_ATTR" | "LOAD_METHOD" | "LOAD_NAME" => argument,
            _ => return,
        };
        let Some(found) = names
            .get_item(index)
            .ok()
            .and_then(|name| name.cast_into::<PyString>().ok())
        else {
            return;
        };
        let is_known = HARMLESS.iter().any(|known| found == *known);
        // A global that cannot be called is written to, or passed on.
        let is_data = name == "LOAD_GLOBAL"
            && globals
                .get_item(&found)
                .is_ok_and(|value| value.is_some_and(|value| !value.is_callable()));
        harmless &= is_known || is_data;
    })?;
    let consts = code
        .getattr(intern!(py, "co_consts"))?
        .cast_into::<PyTuple>()?;
    Ok(harmless && !consts.iter().any(|inner| function_view::is_code(&inner)))
}

/// Whether code has a `raise` in it.
pub(crate) fn raises(code: &Bound<'_, PyAny>) -> PyResult<bool> {
    let mut raises = false;
    instructions(code, |name, _| raises |= name == "RAISE_VARARGS")?;
    Ok(raises)
}

/// Calls `each` with the name and the argument of every instruction.
pub(crate) fn instructions(
    code: &Bound<'_, PyAny>,
    mut each: impl FnMut(&str, usize),
) -> PyResult<()> {
    static NAMES: PyOnceLock<Vec<String>> = PyOnceLock::new();
    let py = code.py();
    let names = NAMES.get_or_try_init(py, || {
        py.import("opcode")?
            .getattr("opname")?
            .extract::<Vec<String>>()
    })?;
    let bytes = code
        .getattr(intern!(py, "co_code"))?
        .cast_into::<PyBytes>()?;
    let mut extended = 0usize;
    for pair in bytes.as_bytes().chunks_exact(2) {
        let name = names.get(usize::from(pair[0])).map_or("", String::as_str);
        let argument = extended | usize::from(pair[1]);
        if name == "EXTENDED_ARG" {
            extended = argument << 8;
        } else {
            extended = 0;
            each(name, argument);
        }
    }
    Ok(())
}

/// Finds frozensets whose order depends on what hashes are seeded with, or on addresses.
fn collect_sets(
    constant: &Bound<'_, PyAny>,
    sets: &mut Vec<(Py<PyAny>, Py<PyTuple>)>,
    depth: usize,
) -> PyResult<()> {
    // No compiler nests constants so.
    if depth > 100 {
        return Ok(());
    }
    if let Ok(tuple) = constant.cast_exact::<PyTuple>() {
        for item in tuple.iter() {
            collect_sets(&item, sets, depth + 1)?;
        }
    } else if let Ok(set) = constant.cast_exact::<PyFrozenSet>() {
        if !set.iter().all(|item| has_fixed_hash(&item)) {
            let mut items = set
                .iter()
                .map(|item| Ok((sort_key(&item)?, item)))
                .collect::<PyResult<Vec<_>>>()?;
            items.sort_by(|(one, _), (other, _)| one.cmp(other));
            let sorted = PyTuple::new(set.py(), items.into_iter().map(|(_, item)| item))?;
            sets.push((constant.clone().unbind(), sorted.unbind()));
        }
        for item in set.iter() {
            collect_sets(&item, sets, depth + 1)?;
        }
    }
    Ok(())
}

pub(crate) fn has_fixed_hash(item: &Bound<'_, PyAny>) -> bool {
    item.is_exact_instance_of::<PyInt>()
        || item.is_exact_instance_of::<PyBool>()
        || item.is_exact_instance_of::<PyFloat>()
        || item.is_exact_instance_of::<PyComplex>()
        || item
            .cast_exact::<PyTuple>()
            .is_ok_and(|items| items.iter().all(|item| has_fixed_hash(&item)))
}

/// What constants in a set are sorted by.
pub(crate) fn sort_key(item: &Bound<'_, PyAny>) -> PyResult<String> {
    let class = compat::type_name(&item.get_type());
    let mut keys = Vec::new();
    if let Ok(items) = item.cast_exact::<PyTuple>() {
        for item in items.iter() {
            keys.push(sort_key(&item)?);
        }
    } else if let Ok(items) = item.cast_exact::<PyFrozenSet>() {
        for item in items.iter() {
            keys.push(sort_key(&item)?);
        }
        keys.sort();
    } else if item.is_exact_instance_of::<PyCode>() {
        keys.push(item.getattr("co_name")?.to_string());
    } else {
        keys.push(item.repr()?.to_string_lossy().into_owned());
    }
    Ok(format!("{class}({})", keys.join(",")))
}

/// The str that stands for the name of a file.
pub(crate) fn dynamic_filename(py: Python<'_>) -> &Bound<'_, PyString> {
    intern!(py, "<dynamic-code>")
}

/// The name under which `types` has code objects.
pub(crate) fn code_type_name(py: Python<'_>) -> &Bound<'_, PyString> {
    intern!(py, "CodeType")
}

/// Writes a code object that has not been written before.
pub(crate) fn write(
    script: &mut Script<'_, '_>,
    py: Python<'_>,
    code: Anchor,
    parts: &CodeParts,
    cloud: Cloud,
) {
    script.begin_object();
    script.builtin_type(
        function_view::code_type(py),
        Anchor::of(code_type_name(py).as_any()),
    );
    let count = if cfg!(Py_3_11) { 18 } else { 16 };
    script.open_tuple(count);
    for count in parts.counts {
        script.int(count);
    }
    script.save(Anchor::of_owned(&parts.code));
    for (set, sorted) in &parts.sets {
        script.sort_set(set, sorted);
    }
    script.save(Anchor::of_owned(&parts.consts));
    copy_tuple(script, parts.names.bind(py));
    copy_tuple(script, parts.varnames.bind(py));
    if cloud.keeps_filenames {
        script.save(Anchor::of_owned(&parts.filename));
    } else {
        script.text(Anchor::of(dynamic_filename(py).as_any()));
    }
    script.copy(Anchor::of_owned(&parts.name));
    if let Some(qualname) = &parts.qualname {
        script.save(Anchor::of_owned(qualname));
    }
    script.int(parts.first_line);
    script.save(Anchor::of_owned(&parts.line_table));
    if let Some(table) = &parts.exception_table {
        script.save(Anchor::of_owned(table));
    }
    copy_tuple(script, parts.freevars.bind(py));
    copy_tuple(script, parts.cellvars.bind(py));
    script.close_tuple(count);
    script.reduce();
    script.remember_part(code);
}

/// As [`write()`], of code with a [bound](CodeParts::bound): what is between the MARK and the end of the arguments.
pub(crate) fn write_directly(d: &mut Direct<'_, '_>, parts: &CodeParts, writing: Writing) {
    for count in parts.counts {
        d.int(count);
    }
    d.leaf(Anchor::of_owned(&parts.code));
    d.consts(Anchor::of_owned(&parts.consts), parts, writing);
    d.copy_tuple(Anchor::of_owned(parts.names.as_any()));
    d.copy_tuple(Anchor::of_owned(parts.varnames.as_any()));
    match writing.file {
        Some(file) => d.text(file),
        None => d.leaf(Anchor::of_owned(&parts.filename)),
    }
    if let Some(name) = parts.name_text {
        d.copy(name);
    }
    if let Some(qualname) = &parts.qualname {
        d.leaf(Anchor::of_owned(qualname));
    }
    d.int(parts.first_line);
    d.leaf(Anchor::of_owned(&parts.line_table));
    if let Some(table) = &parts.exception_table {
        d.leaf(Anchor::of_owned(table));
    }
    d.copy_tuple(Anchor::of_owned(parts.freevars.as_any()));
    d.copy_tuple(Anchor::of_owned(parts.cellvars.as_any()));
}

/// Writes a tuple as a new one with the same items.
fn copy_tuple(script: &mut Script<'_, '_>, tuple: &Bound<'_, PyTuple>) {
    let len = tuple.len();
    script.open_tuple(len);
    for item in tuple.iter_borrowed() {
        script.save(Anchor::of(&item));
    }
    script.close_tuple(len);
}
