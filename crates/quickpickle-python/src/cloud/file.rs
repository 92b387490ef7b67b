//! Text files: the standard streams by name, others as their content in memory.

use pyo3::exceptions::PyOSError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::ffi::compat;
use crate::pickler::Engine;
use crate::python_types::pickling_error;

use super::Cloud;
use super::misc::{Callee, call, getattr};
use super::wire::Helper;

/// What a text file is pickled as.
pub(super) enum Found<'py> {
    /// A standard stream: the module `sys` and a name in it.
    Stream(Vec<Bound<'py, PyAny>>),
    /// Another file of the same content.
    Content(Bound<'py, PyAny>),
}

/// Writes a text file.
pub(super) fn save(engine: &mut Engine, file: &Bound<'_, PyAny>, cloud: Cloud) -> PyResult<()> {
    match find(file)? {
        Found::Stream(args) => call(engine, file, getattr(file.py())?, args, cloud),
        Found::Content(copy) => {
            let callee = Callee::Helper(Helper::FileReconstructor);
            call(engine, file, callee, vec![copy], cloud)
        }
    }
}

/// What a text file is pickled as; PicklingError where it is none that can be read.
pub(super) fn find<'py>(file: &Bound<'py, PyAny>) -> PyResult<Found<'py>> {
    let py = file.py();
    let refuse = |why: &str| Err(pickling_error(py, format!("Cannot pickle {why}")));
    let attribute = |name: &Bound<'py, PyString>| compat::optional_attribute(file, name);
    let (Some(name), Some(mode)) = (
        attribute(intern!(py, "name"))?,
        attribute(intern!(py, "mode"))?,
    ) else {
        return refuse("files that do not map to an actual file");
    };
    let sys = py.import("sys")?;
    // Under the name it has now, else, while something else stands in for it, under the one it keeps.
    for stream in ["stdout", "stderr", "__stdout__", "__stderr__"] {
        let stream = PyString::intern(py, stream);
        if compat::optional_attribute(sys.as_any(), &stream)?.is_some_and(|found| found.is(file)) {
            let args = vec![sys.into_any(), stream.into_any()];
            return Ok(Found::Stream(args));
        }
    }
    for stream in [intern!(py, "stdin"), intern!(py, "__stdin__")] {
        if compat::optional_attribute(sys.as_any(), stream)?.is_some_and(|found| found.is(file)) {
            return refuse("standard input");
        }
    }
    if file.getattr(intern!(py, "closed"))?.is_truthy()? {
        return refuse("closed files");
    }
    if file.call_method0(intern!(py, "isatty"))?.is_truthy()? {
        return refuse("files that map to tty objects");
    }
    if !mode.contains("r")? && !mode.contains("+")? {
        return refuse(&format!(
            "files that are not opened for reading: {}",
            mode.str()?
        ));
    }
    let copy = py.import("io")?.call_method0("StringIO")?;
    let read = || -> PyResult<_> {
        let at = file.call_method0(intern!(py, "tell"))?;
        file.call_method1(intern!(py, "seek"), (0,))?;
        let content = file.call_method0(intern!(py, "read"))?;
        file.call_method1(intern!(py, "seek"), (&at,))?;
        Ok((content, at))
    };
    let (content, at) = match read() {
        Ok(read) => read,
        Err(error) if error.is_instance_of::<PyOSError>(py) => {
            let made = pickling_error(
                py,
                format!("Cannot pickle file {} as it cannot be read", name.str()?),
            );
            made.set_cause(py, Some(error));
            return Err(made);
        }
        Err(error) => return Err(error),
    };
    copy.call_method1(intern!(py, "write"), (content,))?;
    copy.call_method1(intern!(py, "seek"), (at,))?;
    copy.setattr(intern!(py, "name"), name)?;
    Ok(Found::Content(copy))
}
