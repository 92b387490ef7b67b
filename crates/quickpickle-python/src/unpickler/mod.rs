//! Unpickling: pickles to Python objects. `operations` does what each operation says, on the `machine`; `source` is where
//! they come from; `class` is what Python sees.

mod argument;
mod class;
mod construct;
mod fail;
mod global;
mod load;
mod machine;
mod memo;
mod notes;
mod operations;
mod source;

use std::borrow::Cow;
use std::ffi::CStr;

use pyo3::prelude::*;
use pyo3::types::PyIterator;

pub(crate) use class::{Unpickler, UnpicklerMemo};
pub(crate) use load::{load_bytes, load_file};

/// How a load deals with what the pickle does not say.
pub(crate) struct Hooks<'py> {
    /// Whether names of Python 2 are mapped in protocols below 3.
    pub(crate) fix_imports: bool,
    /// Encoding of Python 2 strings; `bytes` leaves them bytes.
    pub(crate) encoding: Cow<'static, CStr>,
    /// What becomes of bytes that are not in that encoding.
    pub(crate) errors: Cow<'static, CStr>,
    /// Out-of-band buffers.
    pub(crate) buffers: Option<Bound<'py, PyIterator>>,
    /// The Unpickler's `find_class`, where a subclass has one.
    pub(crate) find_class: Option<Bound<'py, PyAny>>,
    /// The Unpickler itself, which is told the protocol: its `find_class` may be called by one that overrides it.
    pub(crate) owner: Option<Bound<'py, Unpickler>>,
    /// The Unpickler's `persistent_load`.
    pub(crate) persistent_load: Option<Bound<'py, PyAny>>,
}

impl Hooks<'_> {
    /// Those of `loads(data)` and `load(file)`.
    #[inline(always)]
    pub(crate) fn plain() -> Self {
        Hooks {
            fix_imports: true,
            encoding: Cow::Borrowed(c"ASCII"),
            errors: Cow::Borrowed(c"strict"),
            buffers: None,
            find_class: None,
            owner: None,
            persistent_load: None,
        }
    }
}

/// What a persistent id without `persistent_load` is answered with.
const NO_PERSISTENT_LOAD: &str = if cfg!(Py_3_12) {
    "A load persistent id instruction was encountered, but no persistent_load function was specified."
} else {
    "A load persistent id instruction was encountered,\nbut no persistent_load function was specified."
};
