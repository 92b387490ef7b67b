//! The pickle format without Python: what is in a pickle, read and listed safely.
//!
//! Nothing here runs what a pickle asks for; it is data throughout.
#![forbid(unsafe_code)]

pub mod error;
pub mod int;
pub mod opcode;
pub mod protocol;
pub mod reader;
pub mod source;
pub mod text;

pub use error::{Error, ErrorKind, Result};
pub use opcode::Opcode;
pub use protocol::Protocol;
pub use reader::{Flow, Visitor, read, step};
pub use source::{SliceSource, Source};
