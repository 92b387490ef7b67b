//! What engines say about themselves, as dicts whose keys are the fields of the package's dataclasses.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use quickpickle_recovery::{CompactReport, Damage, Report, Stats};

pub(super) fn report<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let damage = report
        .damage
        .iter()
        .map(|found| damage(py, found))
        .collect::<PyResult<Vec<_>>>()?;
    let dict = PyDict::new(py);
    dict.set_item("entries", report.entries)?;
    dict.set_item("records", report.records)?;
    dict.set_item("bytes_scanned", report.bytes_scanned)?;
    dict.set_item("torn_tail_bytes", report.torn_tail_bytes)?;
    dict.set_item("damage", PyList::new(py, damage)?)?;
    dict.set_item("missing_records", report.missing_records)?;
    dict.set_item("closed_cleanly", report.closed_cleanly)?;
    dict.set_item("notes", &report.notes)?;
    Ok(dict)
}

fn damage<'py>(py: Python<'py>, damage: &Damage) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("place", &damage.place)?;
    dict.set_item("offset", damage.offset)?;
    dict.set_item("length", damage.length)?;
    dict.set_item("reason", &damage.reason)?;
    dict.set_item("quarantined_to", &damage.quarantined_to)?;
    Ok(dict)
}

pub(super) fn stats<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("engine", &stats.engine)?;
    dict.set_item("location", &stats.location)?;
    dict.set_item("sync", &stats.sync)?;
    dict.set_item("store_id", &stats.store_id)?;
    dict.set_item("format_version", stats.format_version)?;
    dict.set_item("entries", stats.entries)?;
    dict.set_item("live_bytes", stats.live_bytes)?;
    dict.set_item("total_bytes", stats.total_bytes)?;
    dict.set_item("files", stats.files)?;
    dict.set_item("poisoned", stats.poisoned)?;
    Ok(dict)
}

pub(super) fn compaction<'py>(
    py: Python<'py>,
    report: CompactReport,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("bytes_before", report.bytes_before)?;
    dict.set_item("bytes_after", report.bytes_after)?;
    dict.set_item("entries", report.entries)?;
    Ok(dict)
}
