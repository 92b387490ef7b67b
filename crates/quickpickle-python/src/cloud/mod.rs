//! By value: functions and classes that a receiver cannot import, and how they are rebuilt.

pub(crate) mod bytecode;
mod bytecode_tables;
pub(crate) mod reconstruct;
pub(crate) mod tracker;
pub(crate) mod wire_names;
