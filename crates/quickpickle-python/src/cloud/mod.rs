//! By value: functions and classes that a receiver cannot import, and how they are rebuilt.
//!
//! A Pickler that is given a [`Cloud`] asks [`save::save`] about every object that is no plain data. What travels by value is
//! written as cloudpickle writes it, straight from the object's own fields: see `pickler::script`.

pub(crate) mod api;
pub(crate) mod by_value;
pub(crate) mod bytecode;
mod bytecode_tables;
pub(crate) mod class;
pub(crate) mod code;
pub(crate) mod context;
pub(crate) mod dataclass;
pub(crate) mod enums;
pub(crate) mod file;
pub(crate) mod function;
pub(crate) mod functools;
pub(crate) mod globals;
pub(crate) mod method;
pub(crate) mod misc;
pub(crate) mod reconstruct;
pub(crate) mod save;
pub(crate) mod special;
pub(crate) mod tracker;
pub(crate) mod typing;
pub(crate) mod weak;
pub(crate) mod wire;
pub(crate) mod wire_names;

use pyo3::prelude::*;
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
}

/// The id under which a class or type variable travels. Ids are drawn at random, so there is none where bytes are to be
/// the same in any process: each load then makes a class of its own.
fn tracked_id<'py>(class: &Bound<'py, PyAny>, cloud: Cloud) -> PyResult<Bound<'py, PyAny>> {
    if cloud.is_deterministic {
        return Ok(class.py().None().into_bound(class.py()));
    }
    Ok(tracker::id_of(class)?.into_any())
}
