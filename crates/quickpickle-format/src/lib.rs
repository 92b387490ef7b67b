//! The pickle format without Python: what is in a pickle, read and listed safely.
//!
//! Nothing here runs what a pickle asks for; it is data throughout.
#![forbid(unsafe_code)]

pub mod disassemble;
pub mod error;
pub mod int;
pub mod limits;
pub mod machine;
pub mod op;
pub mod opcode;
pub mod protocol;
pub mod reader;
pub mod repr;
pub mod source;
pub mod text;

pub use disassemble::Listing;
pub use error::{Error, ErrorKind, Result};
pub use op::{Argument, Op, Ops};
pub use opcode::Opcode;
pub use protocol::Protocol;
pub use reader::{Flow, Visitor, read, step};
pub use source::{SliceSource, Source};
