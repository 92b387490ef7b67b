//! All unsafe code of this crate, and every place where CPython versions differ.
//!
//! Everything outside of this folder is safe Rust over these types. Two kinds of access exist:
//!
//! * **With Python running** (`Python<'py>`, `Bound`): owned references, any API.
//! * **Quiet sections** ([`object::quiet`]): object graphs are read through [`object::Obj`], borrowed pointers that cost no
//!   reference counting. Inside a quiet section nothing may run Python code, release the GIL, free an object, or allocate
//!   an object that the cyclic collector tracks (which may start a collection and thereby finalizers). Under that rule no
//!   object reachable from a held root can go away, so borrowed pointers stay valid. Nothing in a quiet section is given
//!   a `Python` token; that is what keeps the rule.
//!
//! What must outlive a quiet section is anchored ([`object::Anchor`]) and pinned (a reference is taken) before Python
//! runs; `pickler::engine` is the only user and does so in one place.
//!
//! Facts about object layouts are checked when the module is imported (`instance::check_layout`, `dict_table::check_layout`): where the running interpreter does
//! not look as expected, the shortcuts built on them are switched off.

pub(crate) mod buffer;
pub(crate) mod build;
pub(crate) mod bytes;
pub(crate) mod clock;
pub(crate) mod compat;
pub(crate) mod descriptor;
pub(crate) mod dict;
pub(crate) mod dict_table;
pub(crate) mod fastcall;
pub(crate) mod function;
pub(crate) mod function_view;
pub(crate) mod instance;
pub(crate) mod long;
pub(crate) mod memo;
pub(crate) mod object;
pub(crate) mod outside;
#[cfg(Py_3_13)]
pub(crate) mod own_hook;
pub(crate) mod slots;
pub(crate) mod stack;
pub(crate) mod time;
pub(crate) mod types;
