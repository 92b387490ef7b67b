//! Functions, cells and code objects: made and filled without going through their constructors' argument parsing.
//!
//! Only what is exactly as expected is done here; for everything else the caller asks the constructor or sets the
//! attribute, and so gets the interpreter's own result or complaint.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};

unsafe extern "C" {
    static mut PyCode_Type: ffi::PyTypeObject;
    fn PyCompile_OpcodeStackEffectWithJump(
        opcode: std::ffi::c_int,
        argument: std::ffi::c_int,
        jump: std::ffi::c_int,
    ) -> std::ffi::c_int;
    fn PySys_Audit(
        event: *const std::ffi::c_char,
        format: *const std::ffi::c_char,
        ...
    ) -> std::ffi::c_int;
}

/// `types.FunctionType`
pub(crate) fn class(py: Python<'_>) -> Bound<'_, PyType> {
    // SAFETY: a static type, alive as long as the interpreter.
    unsafe { PyType::from_borrowed_type_ptr(py, &raw mut ffi::PyFunction_Type) }
}

/// `types.CodeType`
pub(crate) fn code_class(py: Python<'_>) -> Bound<'_, PyType> {
    // SAFETY: as above.
    unsafe { PyType::from_borrowed_type_ptr(py, &raw mut PyCode_Type) }
}

fn is_exactly(object: &Bound<'_, PyAny>, class: *mut ffi::PyTypeObject) -> bool {
    // SAFETY: the object is alive.
    unsafe { ffi::Py_TYPE(object.as_ptr()) == class }
}

/// Whether the object is `types.CodeType`.
#[inline(always)]
pub(crate) fn is_code_class(object: &Bound<'_, PyAny>) -> bool {
    object.as_ptr() == (&raw mut PyCode_Type).cast()
}

/// What an instruction does to the depth of the stack; None for what is no instruction.
pub(crate) fn stack_effect(opcode: u8, argument: u32, jumps: bool) -> Option<isize> {
    let argument = i32::try_from(argument).ok()?;
    // SAFETY: a function of its arguments.
    let effect =
        unsafe { PyCompile_OpcodeStackEffectWithJump(opcode.into(), argument, jumps.into()) };
    (effect != i32::MAX).then_some(effect as isize)
}

/// Where a code object keeps the number of its free variables (3.11 and later), once that has been seen to be so.
const FREE_COUNT_AT: usize = if cfg!(Py_3_12) { 88 } else { 92 };

static FREE_COUNT_READABLE: PyOnceLock<bool> = PyOnceLock::new();

/// # Safety
/// `code` is a live code object.
unsafe fn free_count_field(code: *mut ffi::PyObject) -> usize {
    // SAFETY: the caller's promise; every code object is larger than this.
    unsafe {
        *code
            .cast::<u8>()
            .add(FREE_COUNT_AT)
            .cast::<std::ffi::c_int>() as usize
    }
}

/// Number of a code object's free variables.
fn free_count(code: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = code.py();
    let asked = |code: &Bound<'_, PyAny>| code.getattr(intern!(py, "co_freevars"))?.len();
    let readable = *FREE_COUNT_READABLE.get_or_try_init(py, || {
        if cfg!(not(Py_3_11)) {
            return Ok::<_, PyErr>(false);
        }
        let samples = [
            c"(lambda a, b, c: lambda x: (a, b, c, x))(1, 2, 3).__code__",
            c"(lambda a, *, b: [a for _ in b]).__code__",
        ];
        for sample in samples {
            let code = py.eval(sample, None, None)?;
            // SAFETY: a code object, alive.
            if asked(&code)? != unsafe { free_count_field(code.as_ptr()) } {
                return Ok(false);
            }
        }
        Ok(true)
    })?;
    if readable {
        // SAFETY: the callers have checked that it is a code object.
        return Ok(unsafe { free_count_field(code.as_ptr()) });
    }
    asked(code)
}

/// A function; None where something is not as the constructor wants it.
pub(crate) fn new<'py>(
    code: &Bound<'py, PyAny>,
    globals: &Bound<'py, PyDict>,
    name: &Bound<'py, PyAny>,
    defaults: &Bound<'py, PyAny>,
    closure: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = code.py();
    if !is_exactly(code, &raw mut PyCode_Type)
        || !(name.is_none() || name.is_exact_instance_of::<PyString>())
        || !(defaults.is_none() || defaults.is_exact_instance_of::<PyTuple>())
    {
        return Ok(None);
    }
    if !closes(code, closure)? {
        return Ok(None);
    }
    // SAFETY: all are alive and of the types that the callees want, and there are as many cells as free variables.
    unsafe {
        if PySys_Audit(c"function.__new__".as_ptr(), c"O".as_ptr(), code.as_ptr()) < 0 {
            return Err(PyErr::fetch(py));
        }
        let made =
            Bound::from_owned_ptr_or_err(py, ffi::PyFunction_New(code.as_ptr(), globals.as_ptr()))?;
        if !closure.is_none() && ffi::PyFunction_SetClosure(made.as_ptr(), closure.as_ptr()) < 0
            || !defaults.is_none()
                && ffi::PyFunction_SetDefaults(made.as_ptr(), defaults.as_ptr()) < 0
        {
            return Err(PyErr::fetch(py));
        }
        if !name.is_none() {
            set_field(&made, Field::Name, name);
        }
        Ok(Some(made))
    }
}

/// Whether these are the cells, in a tuple, that code with its free variables wants; None where it has none.
fn closes(code: &Bound<'_, PyAny>, closure: &Bound<'_, PyAny>) -> PyResult<bool> {
    let cells = match closure.cast_exact::<PyTuple>() {
        Ok(cells) => {
            if !cells
                .as_slice()
                .iter()
                .all(|cell| is_exactly(cell, &raw mut ffi::PyCell_Type))
            {
                return Ok(false);
            }
            cells.len()
        }
        Err(_) if closure.is_none() => 0,
        Err(_) => return Ok(false),
    };
    Ok(cells == free_count(code)?)
}

/// Gives a function other cells; false, and nothing is done, where they are not what its code wants.
pub(crate) fn set_closure<'py>(
    object: &Bound<'py, PyAny>,
    closure: &Bound<'py, PyAny>,
) -> PyResult<bool> {
    if !is_exactly(object, &raw mut ffi::PyFunction_Type) || closure.is_none() {
        return Ok(false);
    }
    // SAFETY: a function, which holds its code; the code's cells are as many as it has free variables.
    unsafe {
        let code = Bound::from_borrowed_ptr(object.py(), ffi::PyFunction_GetCode(object.as_ptr()));
        if !closes(&code, closure)? {
            return Ok(false);
        }
        if ffi::PyFunction_SetClosure(object.as_ptr(), closure.as_ptr()) < 0 {
            return Err(PyErr::fetch(object.py()));
        }
    }
    Ok(true)
}

/// What has a place of its own in a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// `__name__`
    Name,
    /// `__qualname__`
    QualifiedName,
    /// `__module__`
    Module,
    /// `__doc__`
    Doc,
    /// `__annotations__`
    Annotations,
    /// `__kwdefaults__`
    KeywordDefaults,
    /// `__defaults__`
    Defaults,
    /// Anything else
    Other,
}

/// Sets a field of a function; false, and nothing is done, where that is not a matter of putting the value in its place.
pub(crate) fn set_field(object: &Bound<'_, PyAny>, field: Field, value: &Bound<'_, PyAny>) -> bool {
    if !is_exactly(object, &raw mut ffi::PyFunction_Type) {
        return false;
    }
    let function = object.as_ptr().cast::<ffi::PyFunctionObject>();
    // SAFETY: the object is a function. A field holds a reference of its own, or null; what it held is given up once the
    // new value is in place.
    unsafe {
        let place = match field {
            Field::Name if value.is_exact_instance_of::<PyString>() => {
                &raw mut (*function).func_name
            }
            Field::QualifiedName if value.is_exact_instance_of::<PyString>() => {
                &raw mut (*function).func_qualname
            }
            Field::Module => &raw mut (*function).func_module,
            Field::Doc => &raw mut (*function).func_doc,
            Field::Annotations if value.is_exact_instance_of::<PyDict>() => {
                return ffi::PyFunction_SetAnnotations(object.as_ptr(), value.as_ptr()) == 0;
            }
            // There are none, and none are to be.
            Field::KeywordDefaults if value.is_none() => {
                return (*function).func_kwdefaults.is_null();
            }
            Field::Defaults if value.is_none() => return (*function).func_defaults.is_null(),
            _ => return false,
        };
        if *place != value.as_ptr() {
            let old = place.replace(value.clone().into_ptr());
            drop(Bound::from_owned_ptr_or_opt(object.py(), old));
        }
        true
    }
}

/// The globals of a function.
pub(crate) fn globals<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    if !is_exactly(object, &raw mut ffi::PyFunction_Type) {
        return None;
    }
    // SAFETY: a function, which holds its globals.
    unsafe {
        Bound::from_borrowed_ptr_or_opt(object.py(), ffi::PyFunction_GetGlobals(object.as_ptr()))
    }
}

/// A cell, with the value in it if there is one.
pub(crate) fn new_cell<'py>(
    py: Python<'py>,
    value: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let value = value.map_or(std::ptr::null_mut(), |value| value.as_ptr());
    // SAFETY: null, or alive; a new reference or null with an exception comes back.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCell_New(value)) }
}

/// What is in a cell; None if it is empty.
pub(crate) fn cell_contents<'py>(cell: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = cell.py();
    if is_exactly(cell, &raw mut ffi::PyCell_Type) {
        // SAFETY: a cell; a new reference, or null if it is empty.
        return Ok(unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyCell_Get(cell.as_ptr())) });
    }
    match cell.getattr(intern!(py, "cell_contents")) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyValueError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts a value into a cell.
pub(crate) fn set_cell(cell: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = cell.py();
    if !is_exactly(cell, &raw mut ffi::PyCell_Type) {
        return cell.setattr(intern!(py, "cell_contents"), value);
    }
    // SAFETY: a cell, which takes a reference of its own.
    if unsafe { ffi::PyCell_Set(cell.as_ptr(), value.as_ptr()) } < 0 {
        return Err(PyErr::fetch(py));
    }
    Ok(())
}

/// The arguments of a code object's constructor, each of the type that it wants.
pub(crate) struct NewCode<'a, 'py> {
    /// argcount, posonlyargcount, kwonlyargcount, nlocals, stacksize, flags
    pub(crate) counts: [i32; 6],
    /// The instructions.
    pub(crate) bytes: &'a Bound<'py, PyBytes>,
    /// Constants.
    pub(crate) consts: &'a Bound<'py, PyTuple>,
    /// Names, each a str; as are those of the three tuples below.
    pub(crate) names: &'a Bound<'py, PyTuple>,
    /// Local variables, as many as nlocals says.
    pub(crate) variables: &'a Bound<'py, PyTuple>,
    /// The file that the code is from.
    pub(crate) file: &'a Bound<'py, PyString>,
    /// Name of the function or class.
    pub(crate) name: &'a Bound<'py, PyString>,
    /// Qualified name and exception table, since 3.11.
    pub(crate) since_3_11: Option<(&'a Bound<'py, PyString>, &'a Bound<'py, PyBytes>)>,
    /// First line.
    pub(crate) line: i32,
    /// Line table.
    pub(crate) lines: &'a Bound<'py, PyBytes>,
    /// Free variables.
    pub(crate) free: &'a Bound<'py, PyTuple>,
    /// Cells.
    pub(crate) cells: &'a Bound<'py, PyTuple>,
}

#[cfg(not(Py_3_11))]
unsafe extern "C" {
    fn PyCode_NewWithPosOnlyArgs(
        argcount: i32,
        posonlyargcount: i32,
        kwonlyargcount: i32,
        nlocals: i32,
        stacksize: i32,
        flags: i32,
        code: *mut ffi::PyObject,
        consts: *mut ffi::PyObject,
        names: *mut ffi::PyObject,
        varnames: *mut ffi::PyObject,
        freevars: *mut ffi::PyObject,
        cellvars: *mut ffi::PyObject,
        filename: *mut ffi::PyObject,
        name: *mut ffi::PyObject,
        firstlineno: i32,
        linetable: *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;
}

#[cfg(Py_3_11)]
unsafe extern "C" {
    #[cfg_attr(Py_3_12, link_name = "PyUnstable_Code_NewWithPosOnlyArgs")]
    fn PyCode_NewWithPosOnlyArgs(
        argcount: i32,
        posonlyargcount: i32,
        kwonlyargcount: i32,
        nlocals: i32,
        stacksize: i32,
        flags: i32,
        code: *mut ffi::PyObject,
        consts: *mut ffi::PyObject,
        names: *mut ffi::PyObject,
        varnames: *mut ffi::PyObject,
        freevars: *mut ffi::PyObject,
        cellvars: *mut ffi::PyObject,
        filename: *mut ffi::PyObject,
        name: *mut ffi::PyObject,
        qualname: *mut ffi::PyObject,
        firstlineno: i32,
        linetable: *mut ffi::PyObject,
        exceptiontable: *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;
}

/// A code object; None where the arguments are such as the constructor would look at more closely.
pub(crate) fn new_code<'py>(new: &NewCode<'_, 'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = new.bytes.py();
    let [argcount, posonly, kwonly, nlocals, stacksize, flags] = new.counts;
    let strs = |tuple: &Bound<'py, PyTuple>| {
        tuple
            .iter()
            .all(|name| name.is_exact_instance_of::<PyString>())
    };
    // What the constructor checks, and the function below it only asserts.
    if new.counts.iter().any(|&count| count < 0)
        || posonly > argcount
        || nlocals as usize != new.variables.len()
        || !strs(new.names)
        || !strs(new.variables)
        || !strs(new.free)
        || !strs(new.cells)
        || cfg!(Py_3_11) != new.since_3_11.is_some()
    {
        return Ok(None);
    }
    // SAFETY: all are alive and of the types that the callees want.
    unsafe {
        // The number of locals is not told.
        if PySys_Audit(
            c"code.__new__".as_ptr(),
            c"OOOiiiiii".as_ptr(),
            new.bytes.as_ptr(),
            new.file.as_ptr(),
            new.name.as_ptr(),
            argcount,
            posonly,
            kwonly,
            nlocals,
            stacksize,
            flags,
        ) < 0
        {
            return Err(PyErr::fetch(py));
        }
        #[cfg(not(Py_3_11))]
        let made = PyCode_NewWithPosOnlyArgs(
            argcount,
            posonly,
            kwonly,
            nlocals,
            stacksize,
            flags,
            new.bytes.as_ptr(),
            new.consts.as_ptr(),
            new.names.as_ptr(),
            new.variables.as_ptr(),
            new.free.as_ptr(),
            new.cells.as_ptr(),
            new.file.as_ptr(),
            new.name.as_ptr(),
            new.line,
            new.lines.as_ptr(),
        );
        #[cfg(Py_3_11)]
        let made = {
            let Some((qualname, exceptions)) = new.since_3_11 else {
                return Ok(None);
            };
            PyCode_NewWithPosOnlyArgs(
                argcount,
                posonly,
                kwonly,
                nlocals,
                stacksize,
                flags,
                new.bytes.as_ptr(),
                new.consts.as_ptr(),
                new.names.as_ptr(),
                new.variables.as_ptr(),
                new.free.as_ptr(),
                new.cells.as_ptr(),
                new.file.as_ptr(),
                new.name.as_ptr(),
                qualname.as_ptr(),
                new.line,
                new.lines.as_ptr(),
                exceptions.as_ptr(),
            )
        };
        Bound::from_owned_ptr_or_err(py, made).map(Some)
    }
}
