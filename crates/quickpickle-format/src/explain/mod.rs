//! What is in a pickle and how many bytes each part takes: a tree of everything it holds, found without running it.
//!
//! Parts that play the same role in like objects are one node: a list of a million records is a node for the list, one for its
//! records and one for each of their keys. So the tree stays small however large the pickle is; what grows with the
//! pickle is the stack, and an entry for each memo number that is fetched.
//!
//! `tree` is the aggregate, `walk` the machine that fills it, `names` knows globals and what cloudpickle's helpers make.

mod names;
mod repeats;
mod tree;
mod walk;

use std::result::Result;

/// A part of the pickle, and all parts that play the same role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What it is for the object that holds it: `[*]`, `['key']`, `.attribute`, `state`, ...
    pub role: String,
    /// What it is: `list`, `str`, `module.Class`, `function name`, ...
    pub kind: String,
    /// How many objects.
    pub count: u64,
    /// Bytes, those of everything it holds included.
    pub bytes: u64,
    /// Where the first of them begins.
    pub offset: u64,
    /// Bytes of the largest one.
    pub largest: u64,
    /// Where the largest one begins.
    pub largest_offset: u64,
    /// Whether its code travels in the pickle.
    pub by_value: bool,
    /// Parts, most bytes first.
    pub children: Vec<Node>,
}

/// A global that a pickle names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Imported when the pickle is loaded.
    pub module: String,
    /// Looked up in the module.
    pub name: String,
    /// How often it is used.
    pub count: u64,
    /// How often it is called.
    pub calls: u64,
    /// Where it is named first.
    pub offset: u64,
}

/// An object that several places refer to, or equal objects that could be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeated {
    /// What it is.
    pub kind: String,
    /// Bytes of one.
    pub bytes: u64,
    /// Places, the first one included.
    pub count: u64,
    /// Where the first of them begins.
    pub offset: u64,
}

/// Everything about one pickle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Bytes up to and including STOP.
    pub bytes: u64,
    /// Objects in the pickle; references to objects do not count.
    pub objects: u64,
    /// The object that loading returns.
    pub root: Node,
    /// Globals, most used first.
    pub globals: Vec<Named>,
    /// Objects that are pickled once and referred to from several places; what that saves most first.
    pub shared: Vec<Repeated>,
    /// Equal objects that are pickled several times; what sharing them would save most first.
    pub duplicates: Vec<Repeated>,
}

/// Explains the pickle at the start of `data`; `progress` is told now and then how many bytes are done.
///
/// ```
/// use quickpickle_format::explain::explain;
///
/// let found = explain(b"\x80\x02]q\x00(K\x01K\x02X\x03\0\0\0abce.", |_| Ok::<_, quickpickle_format::Error>(()))?;
/// assert_eq!((found.root.kind.as_str(), found.root.children.len()), ("list", 2));
/// assert_eq!((found.root.children[1].kind.as_str(), found.root.children[1].count), ("int", 2));
/// # Ok::<(), quickpickle_format::Error>(())
/// ```
///
/// # Errors
///
/// What the reader says, and what `progress` says.
pub fn explain<E: From<crate::Error>>(
    data: &[u8],
    mut progress: impl FnMut(u64) -> Result<(), E>,
) -> Result<Explanation, E> {
    walk::Walk::new(data)?.run(&mut progress)
}
