//! Bounds that keep work in proportion to the input when nobody vouches for it.
//!
//! Lengths need no bound: sources refuse what the input does not hold. These are for what grows faster than the input.

/// Bytes of a binary integer up to which listings show it in decimal, which takes time proportional to the square of the
/// length. Longer ones are shown in hexadecimal. It is the largest number of bytes that never has more than the
/// 4,300 digits at which Python stops by default.
pub const DECIMAL_BYTES: usize = 1785;

/// Levels of open marks up to which listings indent. A pickle is free to open a mark with every byte.
pub const INDENT_LEVELS: usize = 200;
