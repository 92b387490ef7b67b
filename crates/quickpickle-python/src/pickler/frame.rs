//! What the pickler is in the middle of: one frame for each container that has been begun and not ended.
//!
//! Frames take the place of recursion, so that nesting is bounded by memory. They hold anchors, not references: see
//! [`super::engine::Engine::settle`].

use crate::ffi::object::Anchor;

use super::plan::Plan;

/// Items that one APPENDS, SETITEMS or ADDITEMS takes at most.
pub(super) const BATCH: u32 = 1000;

/// A place to go on from.
pub(super) enum Frame {
    /// A list.
    List(ListFrame),
    /// A tuple.
    Tuple(TupleFrame),
    /// A dict, or an instance's state that is one.
    Dict(DictFrame),
    /// A set.
    Set(SetFrame),
    /// A frozenset.
    FrozenSet(FrozenSetFrame),
    /// An instance's state, read from its array of values.
    Values(ValuesFrame),
    /// A sequence of steps made from a reduce value, a global or a persistent id.
    Plan(Box<Plan>),
}

/// See [`Frame::List`].
pub(super) struct ListFrame {
    pub(super) list: Anchor,
    /// Items begun.
    pub(super) index: usize,
    /// Items begun in this batch.
    pub(super) in_batch: u32,
    /// Whether each item gets an APPEND of its own.
    pub(super) single: bool,
    /// Size when it was begun.
    pub(super) size: usize,
}

/// See [`Frame::Tuple`].
pub(super) struct TupleFrame {
    pub(super) tuple: Anchor,
    pub(super) index: usize,
    /// Whether nothing else can lead to the tuple while it is open.
    pub(super) sole: bool,
}

/// See [`Frame::Dict`].
pub(super) struct DictFrame {
    pub(super) dict: Anchor,
    pub(super) pos: usize,
    /// The value whose key has been begun.
    pub(super) value: Option<Anchor>,
    pub(super) in_batch: u32,
    pub(super) single: bool,
    /// Whether it is an instance's state: BUILD follows.
    pub(super) build: bool,
    /// Size when it was begun.
    pub(super) size: usize,
}

/// See [`Frame::Set`].
pub(super) struct SetFrame {
    pub(super) set: Anchor,
    pub(super) pos: usize,
    pub(super) in_batch: u32,
    pub(super) size: usize,
}

/// See [`Frame::FrozenSet`].
pub(super) struct FrozenSetFrame {
    pub(super) set: Anchor,
    pub(super) pos: usize,
    pub(super) sole: bool,
}

/// See [`Frame::Values`].
pub(super) struct ValuesFrame {
    pub(super) instance: Anchor,
    pub(super) index: usize,
    pub(super) value: Option<Anchor>,
    /// Number of attributes when it was begun.
    pub(super) size: usize,
}

impl Frame {
    /// Calls `each` with the objects that the frame will look at again.
    pub(super) fn anchors(&self, mut each: impl FnMut(Anchor)) {
        let (container, value) = match self {
            Frame::List(frame) => (frame.list, None),
            Frame::Tuple(frame) => (frame.tuple, None),
            Frame::Dict(frame) => (frame.dict, frame.value),
            Frame::Set(frame) => (frame.set, None),
            Frame::FrozenSet(frame) => (frame.set, None),
            Frame::Values(frame) => (frame.instance, frame.value),
            // A plan owns what it holds.
            Frame::Plan(_) => return,
        };
        each(container);
        if let Some(value) = value {
            each(value);
        }
    }
}
