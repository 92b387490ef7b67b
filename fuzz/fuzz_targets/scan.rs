//! Scans of arbitrary bytes: they end, and offsets lie in the input.

#![no_main]

use libfuzzer_sys::fuzz_target;
use quickpickle_format::scan::scan;

fuzz_target!(|data: &[u8]| {
    let report = scan(data);
    assert!(report.end <= data.len() as u64);
    assert_eq!(report.pickles == 0, report.error.is_some());
    let worst = report.findings.iter().map(|found| found.verdict).max();
    assert!(worst.is_none_or(|worst| worst == report.verdict));
    for found in &report.findings {
        assert!(found.offset <= data.len() as u64 && found.count > 0);
    }
});
