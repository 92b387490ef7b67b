//! Tools that read pickles without running them, for Python: the format crate's listing, statistics, optimiser and so on.
//!
//! Bytes in, text or plain Python data out. What commands look like is left to `quickpickle.cli`, what callers import to
//! `quickpickle.tools`. What must stay true: nothing here imports, looks up or calls what a pickle names.

mod explaining;
mod listing;
mod rewriting;
mod scanning;
mod statistics;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quickpickle_format::Error;

pub(crate) use explaining::tools_explain;
pub(crate) use listing::tools_dis;
pub(crate) use rewriting::tools_optimize;
pub(crate) use scanning::{tools_scan, tools_scan_rules};
pub(crate) use statistics::tools_stats;

/// A fault of a pickle at `start` bytes into what the caller gave, as `ValueError(message, offset)`.
fn fault(error: &Error, start: usize) -> PyErr {
    PyValueError::new_err((error.kind.to_string(), error.offset + start as u64))
}

/// What lies behind the first `start` bytes.
fn from(data: &[u8], start: usize) -> &[u8] {
    data.get(start..).unwrap_or_default()
}
