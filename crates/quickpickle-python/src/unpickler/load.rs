//! One load, from bytes or from a file, with memory that is reused from load to load.

use std::cell::Cell;

use pyo3::prelude::*;
use quickpickle_format::{Flow, SliceSource, Source, read, step};

use super::fail::Fail;
use super::machine::{Machine, Memory};
use super::source::{Feed, File, FileSource};
use super::{Hooks, notes};

/// Loads one pickle from a source.
fn load<'py, S: Feed>(
    py: Python<'py>,
    source: &mut S,
    memory: &mut Memory,
    hooks: &Hooks<'py>,
) -> Result<Bound<'py, PyAny>, Fail>
where
    Fail: From<S::Error>,
{
    memory.rest(py);
    let mut machine = Machine::new(py, memory, hooks);
    let result = run(source, &mut machine).and_then(|()| machine.pop_one());
    let result = result.and_then(|object| machine.add_deferred().map(|()| object));
    machine.finish();
    memory.rest(py);
    result
}

/// Runs all operations up to STOP.
fn run<'py, S: Feed>(source: &mut S, machine: &mut Machine<'py, '_>) -> Result<(), Fail>
where
    Fail: From<S::Error>,
{
    if !cfg!(Py_3_14) {
        return read(source, machine);
    }
    while step(source, machine)? == Flow::Continue {
        machine.leave_frame(source)?;
    }
    machine.leave_frame(source)
}

/// Loads the pickle at the start of `data`; also says how many bytes it has, or how far a failed load has come.
pub(super) fn load_slice<'py>(
    py: Python<'py>,
    data: &[u8],
    memory: &mut Memory,
    hooks: &Hooks<'py>,
) -> (PyResult<Bound<'py, PyAny>>, usize) {
    let mut source = SliceSource::new(data);
    let result = load(py, &mut source, memory, hooks).map_err(|fail| {
        let error = fail.into_pyerr(py);
        if let Some(note) = notes::foreign(data) {
            notes::add(py, &error, note.into());
        }
        error
    });
    (result, source.offset() as usize)
}

/// `loads`: the pickle at the start of `data`.
pub(crate) fn load_bytes<'py>(
    py: Python<'py>,
    data: &[u8],
    hooks: &Hooks<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    with_memory(py, |memory| load_slice(py, data, memory, hooks).0)
}

/// `load`: the next pickle of a file.
pub(crate) fn load_file<'py>(
    file: &Bound<'py, PyAny>,
    hooks: &Hooks<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = file.py();
    let file = File::of(file)?;
    with_memory(py, |memory| load_stream(py, file, memory, hooks))
}

/// The next pickle of a file.
pub(super) fn load_stream<'py>(
    py: Python<'py>,
    file: File,
    memory: &mut Memory,
    hooks: &Hooks<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some((content, at)) = file.in_memory(py)? {
        let (result, used) = load_slice(py, &content.as_bytes()[at..], memory, hooks);
        let result = result?;
        file.move_to(py, at + used)?;
        return Ok(result);
    }
    let mut source = FileSource::new(py, file);
    let result = load(py, &mut source, memory, hooks);
    let result = match result {
        Ok(result) => Ok(result),
        Err(fail) => {
            let error = fail.into_pyerr(py);
            if let Some(note) = notes::foreign(source.start()) {
                notes::add(py, &error, note.into());
            }
            Err(error)
        }
    };
    let finished = source.finish();
    let result = result?;
    finished?;
    Ok(result)
}

thread_local! {
    static SPARE: Cell<Option<Box<Memory>>> = const { Cell::new(None) };
}

/// Runs `body` with empty memory, reusing the thread's spare.
fn with_memory<R>(py: Python<'_>, body: impl FnOnce(&mut Memory) -> R) -> R {
    // Taken out of its place while in use: what `body` calls may get here again.
    let mut memory = SPARE
        .try_with(Cell::take)
        .ok()
        .flatten()
        .unwrap_or_else(Memory::new);
    let result = body(&mut memory);
    memory.clear(py);
    let _ = SPARE.try_with(|spare| spare.set(Some(memory)));
    result
}
