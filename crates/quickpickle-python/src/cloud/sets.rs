//! Sets in an order that does not depend on what hashes are seeded with.

use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PySet};
use quickpickle_format::opcode::byte;

use crate::ffi::object::Anchor;
use crate::pickler::{Engine, Script};

use super::{Cloud, api, code};

/// Items that one ADDITEMS takes at most.
const BATCH: usize = 1000;

/// Writes a set or frozenset with its items sorted; false, and nothing is written, for anything else.
pub(super) fn save(engine: &mut Engine, obj: &Bound<'_, PyAny>, cloud: Cloud) -> PyResult<bool> {
    let is_set = obj.is_exact_instance_of::<PySet>();
    if !is_set && !obj.is_exact_instance_of::<PyFrozenSet>() {
        return Ok(false);
    }
    let mut items = Vec::new();
    for item in obj.try_iter()? {
        let item = item?;
        // By what they are written as; that of numbers sorts by size.
        let key = if code::has_fixed_hash(&item) {
            (item.extract::<f64>().unwrap_or(f64::INFINITY), Vec::new())
        } else {
            let written = api::dump_alone(&item, cloud)?;
            (f64::INFINITY, written.as_bytes().to_vec())
        };
        items.push((key, item));
    }
    items.sort_by(|(one, _), (other, _)| {
        one.0.total_cmp(&other.0).then_with(|| one.1.cmp(&other.1))
    });
    let own = Anchor::of(obj);
    let mut script = Script::new(engine, cloud.wire, obj);
    if is_set {
        script.opcode(byte::EMPTY_SET);
        script.remember(own);
        let mut items = items.into_iter().map(|(_, item)| item).peekable();
        while items.peek().is_some() {
            script.opcode(byte::MARK);
            for item in items.by_ref().take(BATCH) {
                script.save_made(item);
            }
            script.opcode(byte::ADDITEMS);
        }
    } else {
        script.begin_object();
        script.opcode(byte::MARK);
        for (_, item) in items {
            script.save_made(item);
        }
        script.opcode(byte::FROZENSET);
        script.remember(own);
    }
    script.finish()?;
    Ok(true)
}
