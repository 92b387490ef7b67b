//! The listing of a pickle, handed to a write function in large pieces.

use pyo3::prelude::*;
use quickpickle_format::Listing;

use super::{fault, from};
use crate::ffi::buffer::Exported;

/// Text that is collected before it is written.
const PIECE: usize = 1 << 16;

/// Write the listing of the pickle at start, and return where the pickle ends.
#[pyfunction]
#[pyo3(signature = (data, write, /, *, start=0, indent=4, annotate=None, stack=false))]
pub(crate) fn tools_dis(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    write: &Bound<'_, PyAny>,
    start: usize,
    indent: usize,
    annotate: Option<usize>,
    stack: bool,
) -> PyResult<usize> {
    let exported = Exported::of(data)?;
    let data = from(exported.bytes(), start);
    let mut listing = Listing::new(data).indent(indent);
    if let Some(column) = annotate {
        listing = listing.annotate(column);
    }
    if stack {
        listing = listing.stack();
    }
    let mut text = String::with_capacity(PIECE + 1024);
    while let Some(line) = listing.append_line(&mut text) {
        match line {
            Ok(()) => text.push('\n'),
            Err(error) => {
                write.call1((&text,))?;
                return Err(fault(&error, start));
            }
        }
        if text.len() >= PIECE {
            write.call1((&text,))?;
            text.clear();
            py.check_signals()?;
        }
    }
    write.call1((&text,))?;
    Ok(start + data.len() - listing.rest().len())
}
