//! Pickling: Python objects to pickles. `walk` goes through objects; `leaves`, `sequences`, `dicts`, `sets`, `instances` and
//! `steps` write what it meets; `engine` answers what it needs Python for. `small` does without all of them. `class` is what
//! Python sees.

mod class;
mod cloud_class;
mod dicts;
mod direct;
mod engine;
mod frame;
mod global;
mod instances;
mod items;
mod leaves;
mod notes;
mod payload;
mod plan;
mod reduce;
mod script;
mod sequences;
mod sets;
mod small;
mod steps;
mod time;
mod verdict;
mod walk;

pub(crate) use class::{Pickler, PicklerMemo};
pub(crate) use cloud_class::{CloudPickler, DefaultTable};
pub(crate) use direct::{Direct, Head, Stage, Text, Writing, bound};
pub(crate) use engine::{Engine, Settings, with_engine};
pub(crate) use script::{BaseGlobals, Script};
pub(crate) use small::dumps_small;
