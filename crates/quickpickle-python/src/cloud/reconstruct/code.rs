//! Code objects: checked to be of the running Python version before they are made.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString, PyTuple};

use crate::cloud::bytecode::{self, Code};
use crate::ffi::function::{self, NewCode};
use crate::python_types::unpickling_error;

/// Arguments of the constructor up to 3.7, up to 3.10 and since.
const COUNTS: [usize; 3] = [15, 16, 18];

/// A code object from the constructor's arguments, as pickles of functions by value hold them. Fails if another Python
/// version has written the code, naming both.
pub(crate) fn make_code<'py>(args: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = args.py();
    let Ok(tuple) = args.cast_exact::<PyTuple>() else {
        return crate::ffi::build::call(function::code_class(py).as_any(), args);
    };
    let slice = tuple.as_slice();
    if let Some(new) = arguments(slice) {
        let code = describe(&new);
        if !bytecode::is_ours(&code) {
            return Err(foreign(
                py,
                new.name,
                &bytecode::writers(&code, slice.len() == COUNTS[2]),
            ));
        }
        if let Some(made) = function::new_code(&new)? {
            return Ok(made);
        }
    } else if slice.len() == COUNTS[0]
        && let Ok(name) = slice[10].cast::<PyString>()
    {
        return Err(foreign(py, name, &[(3, 7)]));
    }
    // Something is not as it should be: the constructor says what.
    crate::ffi::build::call(function::code_class(py).as_any(), args)
}

/// The arguments, if they are as some version writes them.
fn arguments<'a, 'py>(args: &'a [Bound<'py, PyAny>]) -> Option<NewCode<'a, 'py>> {
    let number = |at: usize| -> Option<i32> { args[at].cast_exact::<PyInt>().ok()?.extract().ok() };
    let bytes = |at: usize| args[at].cast_exact::<PyBytes>().ok();
    let text = |at: usize| args[at].cast_exact::<PyString>().ok();
    let tuple = |at: usize| args[at].cast_exact::<PyTuple>().ok();
    // The qualified name is in front of the line, the exception table behind the line table.
    let (line, since_3_11) = match args.len() {
        16 => (12, None),
        18 => (13, Some((text(12)?, bytes(15)?))),
        _ => return None,
    };
    let last = args.len();
    Some(NewCode {
        counts: [
            number(0)?,
            number(1)?,
            number(2)?,
            number(3)?,
            number(4)?,
            number(5)?,
        ],
        bytes: bytes(6)?,
        consts: tuple(7)?,
        names: tuple(8)?,
        variables: tuple(9)?,
        file: text(10)?,
        name: text(11)?,
        since_3_11,
        line: number(line)?,
        lines: bytes(line + 1)?,
        free: tuple(last - 2)?,
        cells: tuple(last - 1)?,
    })
}

fn describe<'a>(new: &NewCode<'a, '_>) -> Code<'a> {
    let count = |number: i32| usize::try_from(number).unwrap_or_default();
    Code {
        bytes: new.bytes.as_bytes(),
        consts: new.consts.len(),
        names: new.names.len(),
        variables: new.variables.len() + new.free.len() + new.cells.len(),
        depth: count(new.counts[4]),
        flags: new.counts[5] as u32,
        lines: new.lines.as_bytes(),
    }
}

/// The error for code that another version has written.
#[cold]
fn foreign(py: Python<'_>, name: &Bound<'_, PyString>, writers: &[(u8, u8)]) -> PyErr {
    let written = match writers {
        [] => "a Python version that is not known here".to_owned(),
        [(3, 7)] => "CPython 3.7 or older".to_owned(),
        known => {
            let known: Vec<_> = known
                .iter()
                .map(|(major, minor)| format!("{major}.{minor}"))
                .collect();
            format!("CPython {}", known.join(" or "))
        }
    };
    let (major, minor) = bytecode::RUNNING;
    unpickling_error(
        py,
        format!(
            "function {:?} was pickled by value by {written} and cannot run on CPython {major}.{minor}: bytecode is of \
             one minor version only; load it with the version that wrote it, or put the function into a module that both \
             can import",
            name.to_string_lossy()
        ),
    )
}
