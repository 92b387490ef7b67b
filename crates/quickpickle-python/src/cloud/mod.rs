//! By value: functions and classes that a receiver cannot import, and how they are rebuilt.
//!
//! A Pickler that is given a [`Cloud`] asks [`save::save`] about every object that is no plain data. What travels by value is
//! written as cloudpickle writes it, straight from the object's own fields: see `pickler::script`.

pub(crate) mod api;
mod base;
pub(crate) mod by_value;
pub(crate) mod bytecode;
mod bytecode_tables;
pub(crate) mod class;
pub(crate) mod code;
pub(crate) mod context;
pub(crate) mod dataclass;
pub(crate) mod enums;
pub(crate) mod exception;
mod exception_init;
pub(crate) mod file;
pub(crate) mod function;
pub(crate) mod functools;
pub(crate) mod globals;
pub(crate) mod known;
pub(crate) mod making;
pub(crate) mod method;
pub(crate) mod misc;
pub(crate) mod reconstruct;
pub(crate) mod save;
pub(crate) mod sets;
pub(crate) mod special;
pub(crate) mod tracker;
pub(crate) mod typing;
pub(crate) mod weak;
pub(crate) mod wire;
pub(crate) mod wire_names;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use wire::Wire;

/// How to write what travels by value.
#[derive(Clone, Copy)]
pub(crate) struct Cloud {
    /// The helpers that payloads name.
    pub(crate) wire: &'static Wire,
    /// Whether code objects keep the name of the file they come from.
    pub(crate) keeps_filenames: bool,
    /// Whether equal functions and classes give equal bytes in any process.
    pub(crate) is_deterministic: bool,
    /// Whether exceptions are made anew without calling their class.
    pub(crate) keeps_exceptions: bool,
    /// Whether classes go without ids: while one's id is being found out.
    is_anonymous: bool,
}

/// The id under which a class or type variable travels. Ids are drawn at random; where bytes are to be the same in any
/// process, they are made from what the class would be written as without one.
fn tracked_id<'py>(class: &Bound<'py, PyAny>, cloud: Cloud) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    if cloud.is_anonymous {
        return Ok(py.None().into_bound(py));
    }
    if !cloud.is_deterministic {
        return Ok(tracker::id_of(class)?.into_any());
    }
    let anonymous = Cloud {
        is_anonymous: true,
        ..cloud
    };
    let content = api::dump_alone(class, anonymous)?;
    let kwargs = PyDict::new(py);
    kwargs.set_item("digest_size", 16)?;
    let digest = py
        .import("hashlib")?
        .getattr("blake2b")?
        .call((content,), Some(&kwargs))?
        .call_method0("hexdigest")?;
    let id = digest.cast_into::<PyString>()?;
    tracker::track_home(class, &id)?;
    Ok(id.into_any())
}
