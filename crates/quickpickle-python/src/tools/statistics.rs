//! The counts of a pickle as a dict.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use quickpickle_format::statistics::Statistics;

use super::{fault, from};
use crate::ffi::buffer::Exported;

/// Return what the pickle at start is made of; the keys are those of quickpickle.tools.Statistics.
#[pyfunction]
#[pyo3(signature = (data, /, *, start=0))]
pub(crate) fn tools_stats<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    start: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let exported = Exported::of(data)?;
    let found =
        Statistics::of(from(exported.bytes(), start)).map_err(|error| fault(&error, start))?;
    let dict = PyDict::new(py);
    dict.set_item("bytes", found.bytes)?;
    dict.set_item("operations", found.operations)?;
    dict.set_item("protocol", found.protocol)?;
    dict.set_item("highest_protocol", found.highest.number())?;
    dict.set_item("frames", found.frames)?;
    dict.set_item("memo_writes", found.memo_writes)?;
    dict.set_item("memo_used", found.memo_used)?;
    dict.set_item("memo_reads", found.memo_reads)?;
    dict.set_item("unused_memo_bytes", found.unused_memo_bytes)?;
    dict.set_item("payload_bytes", found.payload_bytes)?;
    let largest = found
        .largest_payload
        .map(|(size, offset)| (size, offset + start as u64));
    dict.set_item("largest_payload", largest)?;
    dict.set_item("deepest_marks", found.deepest_marks)?;
    let opcodes: Vec<_> = found
        .opcodes
        .iter()
        .map(|row| (row.opcode.name(), row.count, row.bytes))
        .collect();
    dict.set_item("opcodes", opcodes)?;
    Ok(dict)
}
