//! Recovery stores for Python: `quickpickle-recovery`'s engines as one class, bytes in and bytes out.
//!
//! `engine` is the class, `opening` waits for a store without shutting out signals, `reports` and `errors` turn the crate's findings into
//! Python's objects. Serialising objects, and everything that makes a store pleasant to use, is left to the package
//! `quickpickle.recovery`. What must stay true: no call that may wait for a disk, a lock or a server holds the GIL, and no engine is used
//! or dropped in another process than the one that opened it.

mod engine;
mod errors;
mod opening;
mod reports;

pub(crate) use engine::{RecoveryEngine, recovery_codec_name};
