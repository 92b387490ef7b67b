//! Weak references and containers of them: what they refer to travels with them, and lives on where something else that
//! travels refers to it too.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::ffi::object::Anchor;
use crate::pickler::{Engine, Script};

use super::Cloud;
use super::misc::{Callee, call};

/// Writes a weak reference.
pub(super) fn save_ref(
    engine: &mut Engine,
    reference: &Bound<'_, PyAny>,
    cloud: Cloud,
) -> PyResult<()> {
    let py = reference.py();
    let target = reference.call0()?;
    let class = reference.get_type().into_any();
    let callback = reference.getattr(intern!(py, "__callback__"))?;
    if !target.is_none() {
        let mut args = vec![target];
        if !callback.is_none() {
            args.push(callback);
        }
        return call(engine, reference, Callee::Object(class), args, cloud);
    }
    // One whose target is gone: to a set that is gone as soon as it has been made.
    let mut script = Script::new(engine, cloud.wire, reference);
    script.begin_object();
    script.save_made(class);
    script.open_tuple(1);
    script.empty_set();
    script.close_tuple(1);
    script.reduce();
    script.remember(Anchor::of(reference));
    script.finish()
}

/// Writes a dict of weak keys or values: empty at first, because what it holds may hold it.
pub(super) fn save_dict(
    engine: &mut Engine,
    dict: &Bound<'_, PyAny>,
    cloud: Cloud,
) -> PyResult<()> {
    let py = dict.py();
    let items = dict.call_method0(intern!(py, "items"))?;
    let items = py.get_type::<PyList>().call1((items,))?;
    let items = items
        .try_iter()?
        .map(|pair| {
            let pair = pair?;
            Ok((pair.get_item(0)?, pair.get_item(1)?))
        })
        .collect::<PyResult<Vec<_>>>()?;
    let class = dict.get_type().into_any();
    let mut script = Script::new(engine, cloud.wire, dict);
    script.begin_object();
    script.save_made(class);
    script.empty_tuple();
    script.reduce();
    script.remember(Anchor::of(dict));
    let mut state = script.open_items(items.len());
    for (key, value) in items {
        script.save_made(key);
        script.save_made(value);
        script.end_item(&mut state);
    }
    script.close_dict(state);
    script.finish()
}

/// Writes a weak reference to a bound method; false where that is gone.
pub(super) fn save_method(
    engine: &mut Engine,
    reference: &Bound<'_, PyAny>,
    cloud: Cloud,
) -> PyResult<bool> {
    let method = reference.call0()?;
    if method.is_none() {
        return Ok(false);
    }
    let class = reference.get_type().into_any();
    call(
        engine,
        reference,
        Callee::Object(class),
        vec![method],
        cloud,
    )?;
    Ok(true)
}
