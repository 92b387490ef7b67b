//! Pickling: Python objects to pickles. `walk` goes through objects, `engine` answers what it needs Python for, `class`
//! is what Python sees.

mod class;
mod cloud_class;
mod direct;
mod engine;
mod frame;
mod global;
mod items;
mod notes;
mod payload;
mod plan;
mod reduce;
mod script;
mod small;
mod time;
mod verdict;
mod walk;

pub(crate) use class::{Pickler, PicklerMemo};
pub(crate) use cloud_class::{CloudPickler, DefaultTable};
pub(crate) use direct::{Direct, Head, Stage, Text, Writing, bound};
pub(crate) use engine::{Engine, Settings, with_engine};
pub(crate) use script::{BaseGlobals, Script};
pub(crate) use small::dumps_small;
