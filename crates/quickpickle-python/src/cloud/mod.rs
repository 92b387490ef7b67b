//! By value: functions and classes that a receiver cannot import, and how they are rebuilt.

pub(crate) mod tracker;
