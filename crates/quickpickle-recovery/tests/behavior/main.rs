//! One suite, every engine that keeps what it is given: what `PersistenceEngine` promises, whoever keeps the promise.
//!
//! Each test runs over all of [`fixtures`]; a failure names the engine. What only one engine promises is tested elsewhere.

mod fixtures;
mod names;
mod persist;
mod read;
mod reopen;
mod settings;
mod threads;

#[path = "../support/mod.rs"]
mod support;
