//! Rust values as pickles of plain data, through serde.
//!
//! A struct becomes a dict with the names of its fields, so that Python reads it as one, and field names written once are referred to
//! afterwards. Reading builds the data a pickle describes first and then hands it to serde; globals and calls are errors, nothing is run.
//! Shared objects are read once for each place they are in, within a bound, and cycles are errors.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct Worker {
//!     id: String,
//!     cores: u32,
//! }
//!
//! let worker = Worker { id: "w1".into(), cores: 4 };
//! let pickle = quickpickle_format::serde::to_vec(&worker)?;
//! assert_eq!(quickpickle_format::serde::from_slice::<Worker>(&pickle)?, worker);
//! # Ok::<(), quickpickle_format::serde::Error>(())
//! ```

mod de;
mod graph;
mod ser;

use std::fmt;

pub use de::from_slice;
pub use ser::{append, to_vec};

/// Why a value cannot be written or read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    message: String,
}

impl Error {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }

    fn at(message: &str, offset: u64) -> Self {
        Self::new(format!("{message} (byte {offset})"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<crate::Error> for Error {
    fn from(error: crate::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl ::serde::ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

impl ::serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}
