//! The pickle format without Python: pickles read, listed and written, without running them.
//!
//! What a pickle asks for is data throughout. No length, index or depth in the input is trusted:
//! malformed input is an [`Error`] with the byte where it happened, never a panic, and memory follows the size of the
//! input.
//!
//! - [`Opcode`] is the table of operations, [`Protocol`] what each protocol brought.
//! - [`read`] and [`step`] push operations from a [`Source`] into a [`Visitor`]: the fast way, for unpicklers.
//! - [`Ops`] iterates over operations as data, [`Listing`] shows them to people, [`machine`] checks how they fit.
//! - [`Writer`] writes operations to a [`Sink`], as CPython would: the shortest form, in [`frame`]s.
//! - [`optimize()`] leaves out what a pickle never uses, [`statistics`] counts what it is made of.
//! - [`scan`] says what a pickle would import and call, and what to think of it.
//! - [`int`], [`text`] and [`mod@repr`] know values as pickles write them and as Python shows them.
//!
//! Which globals does a pickle name?
//!
//! ```
//! use quickpickle_format::{Argument, Opcode, Ops};
//!
//! let pickle = b"\x80\x02ccollections\nOrderedDict\n)R.";
//! let mut globals = Vec::new();
//! for op in Ops::new(pickle) {
//!     let op = op?;
//!     if let (Opcode::Global, Argument::Lines(module, name)) = (op.opcode, op.argument) {
//!         globals.push((module, name));
//!     }
//! }
//! assert_eq!(globals, [(&b"collections"[..], &b"OrderedDict"[..])]);
//! # Ok::<(), quickpickle_format::Error>(())
//! ```
//!
//! A pickle of 1.5 in protocol 4:
//!
//! ```
//! use quickpickle_format::Writer;
//!
//! let mut writer = Writer::new(Vec::new(), 4);
//! writer.begin();
//! writer.float(1.5);
//! writer.end();
//! assert_eq!(writer.sink(), b"\x80\x04\x95\x0a\0\0\0\0\0\0\0G\x3f\xf8\0\0\0\0\0\0.");
//! ```
#![forbid(unsafe_code)]

pub mod disassemble;
pub mod error;
pub mod explain;
pub mod frame;
pub mod int;
pub mod limits;
pub mod machine;
pub mod memo;
pub mod op;
pub mod opcode;
pub mod optimize;
pub mod protocol;
pub mod reader;
pub mod repr;
pub mod run;
pub mod scan;
#[cfg(feature = "serde")]
pub mod serde;
pub mod sink;
pub mod source;
pub mod statistics;
pub mod text;
pub mod writer;

pub use disassemble::Listing;
pub use error::{Error, ErrorKind, Result};
pub use op::{Argument, Op, Ops};
pub use opcode::Opcode;
pub use optimize::optimize;
pub use protocol::Protocol;
pub use reader::{Flow, Visitor, read, step};
pub use sink::Sink;
pub use source::{SliceSource, Source};
pub use writer::Writer;
