//! What a scan found, as plain Python data.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use quickpickle_format::scan::{Report, Rule, scan};

use crate::ffi::buffer::Exported;

/// Scan the pickles at the start of data; the keys are those that quickpickle.tools reads.
#[pyfunction]
#[pyo3(signature = (data, /))]
pub(crate) fn tools_scan<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let exported = Exported::of(data)?;
    let bytes = exported.bytes();
    // Others may write to what is writable while they have the GIL.
    let report = if exported.is_readonly() {
        py.detach(|| scan(bytes))
    } else {
        scan(bytes)
    };
    as_dict(py, &report)
}

fn as_dict<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("verdict", report.verdict.name())?;
    dict.set_item("pickles", report.pickles)?;
    dict.set_item("operations", report.operations)?;
    dict.set_item("end", report.end)?;
    let error = report
        .error
        .as_ref()
        .map(|error| (error.kind.to_string(), error.offset));
    dict.set_item("error", error)?;
    let findings: Vec<_> = report
        .findings
        .iter()
        .map(|found| {
            let rule = found.rule.name();
            let verdict = found.verdict.name();
            (verdict, rule, found.offset, &found.message, found.count)
        })
        .collect();
    dict.set_item("findings", findings)?;
    let globals: Vec<_> = report
        .globals
        .iter()
        .map(|global| {
            let verdict = global.verdict.name();
            let (module, name) = (&global.module, &global.name);
            (
                module,
                name,
                verdict,
                global.offset,
                global.count,
                global.calls,
            )
        })
        .collect();
    dict.set_item("globals", globals)?;
    Ok(dict)
}

/// The rules by which scans find something: names and what they mean.
#[pyfunction]
pub(crate) fn tools_scan_rules() -> Vec<(&'static str, &'static str)> {
    Rule::ALL
        .iter()
        .map(|rule| (rule.name(), rule.summary()))
        .collect()
}
