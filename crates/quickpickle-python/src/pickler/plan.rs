//! Steps that end up as one object: a reduce value, a class or function by name, a persistent id.
//!
//! Made where Python runs, worked off by the walk. A plan owns the objects it names.

use pyo3::prelude::*;

use crate::cloud::wire::{Helper, Wire};

use super::script::BaseGlobals;

/// One step.
pub(super) enum Step {
    /// Save an object.
    Save(Py<PyAny>),
    /// Save an object without asking for its persistent id.
    SaveAsIs(Py<PyAny>),
    /// Write opcodes or whole lines.
    Write(Vec<u8>),
    /// Write one opcode.
    Opcode(u8),
    /// Remember the object, which is on top of the stack now. If it has been remembered meanwhile it is recursive: POP
    /// what was built and GET the other, leaving out the rest of the plan.
    Remember(Py<PyAny>),
    /// Remember an object that came by name.
    RememberName(Py<PyAny>),
    /// Write `)`, NEWOBJ and the state of an instance whose class has just been saved.
    Instance(Py<PyAny>),
    /// Append what an iterator yields.
    ListItems(Items),
    /// Set the pairs that an iterator yields.
    DictItems(Items),
    /// Write None.
    None,
    /// Write an int.
    Int(i32),
    /// Use up a number of the memo.
    Number,
    /// Close the frame if it is full.
    Boundary,
    /// Write a helper of by-value pickles.
    Helper(&'static Wire, Helper),
    /// Write a str without asking the memo.
    Text(Py<PyAny>),
    /// An object is begun that will be remembered only later.
    BeginObject,
    /// As [`Step::Remember`], but whatever happens the plan goes on.
    RememberPart(Py<PyAny>),
    /// Write what stands for a function's globals.
    Globals(Box<BaseGlobals>),
}

/// An iterator being worked off.
pub(super) struct Items {
    pub(super) iterator: Py<PyAny>,
    /// The item being saved: an object, or for a dict a tuple of key and value.
    pub(super) current: Option<Py<PyAny>>,
    /// The item after it, where it was fetched together with the first of a batch.
    pub(super) ahead: Option<Py<PyAny>>,
    /// Whether the iterator has ended.
    pub(super) ended: bool,
    /// Whether a fetch has been asked for.
    pub(super) fetched: bool,
    /// Whether `current` is being saved.
    pub(super) saving: bool,
    /// Whether the key of `current` has been saved.
    pub(super) has_key: bool,
    /// Items saved in this batch.
    pub(super) in_batch: u32,
    /// Items saved in the batches before it.
    pub(super) before: usize,
    /// Whether the item gets an APPEND or SETITEM of its own.
    pub(super) single: bool,
}

impl Items {
    pub(super) fn new(iterator: Py<PyAny>) -> Self {
        Items {
            iterator,
            current: None,
            ahead: None,
            ended: false,
            fetched: false,
            saving: false,
            has_key: false,
            in_batch: 0,
            before: 0,
            single: false,
        }
    }
}

/// Steps with a cursor.
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) at: usize,
    /// How many objects are begun and not remembered yet, so that what lies below them could be met twice.
    pub(super) unremembered: u32,
}

impl Plan {
    pub(super) fn new(steps: Vec<Step>, unremembered: bool) -> Self {
        Plan {
            steps,
            at: 0,
            unremembered: u32::from(unremembered),
        }
    }
}

/// An object is about to be remembered; whether it counted among those that are not yet.
pub(super) fn remembers(unremembered: &mut u32) -> bool {
    let counts = *unremembered > 0;
    *unremembered -= u32::from(counts);
    counts
}
