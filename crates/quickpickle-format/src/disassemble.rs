//! Pickles as text for people: one line for each operation, in the layout of Python's `pickletools.dis`.
//!
//! Lines are byte for byte what `pickletools` prints, its annotations excepted, which are in our own words. Where it gives up
//! on input that unpickles (Latin-1 in STRING, UTF-8 in GLOBAL, very long integers) the listing goes on. Stack and memo
//! are checked on the way by [`Machine`]; nothing is executed.

use std::fmt::Write;

use crate::error::{Error, ErrorKind};
use crate::int;
use crate::limits;
use crate::machine::{Effect, Machine};
use crate::op::{Argument, Op, Ops};
use crate::opcode::{ArgumentKind, Opcode};
use crate::protocol::Protocol;
use crate::repr;
use crate::text;

/// The listing of one pickle, line by line.
///
/// An operation that does not fit the stack or the memo is listed, then its error follows as the last item. A
/// complete pickle ends with a line naming the newest protocol among its opcodes.
///
/// ```
/// use quickpickle_format::Listing;
///
/// let lines = Listing::new(b"\x80\x02](K\x01K\x02e.").collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(lines.join("\n"), r"
///     0: \x80 PROTO      2
///     2: ]    EMPTY_LIST
///     3: (    MARK
///     4: K        BININT1    1
///     6: K        BININT1    2
///     8: e        APPENDS    (MARK at 3)
///     9: .    STOP
/// highest protocol among opcodes = 2".trim_start_matches('\n'));
/// # Ok::<(), quickpickle_format::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Listing<'a> {
    ops: Ops<'a>,
    machine: Machine,
    highest: Protocol,
    indent: usize,
    annotate: Option<usize>,
    column: usize,
    next: Next,
}

/// What the iterator yields next.
#[derive(Debug, Clone)]
enum Next {
    Operation,
    Summary,
    Fault(Error),
    Nothing,
}

impl<'a> Listing<'a> {
    /// The listing of the pickle at the start of `data`, indented by four for each open mark.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Self {
            ops: Ops::new(data),
            machine: Machine::new(),
            highest: Protocol::V0,
            indent: 4,
            annotate: None,
            column: 0,
            next: Next::Operation,
        }
    }

    /// Indents by `width` for each open mark, up to [`limits::INDENT_LEVELS`] of them.
    #[must_use]
    pub fn indent(mut self, width: usize) -> Self {
        self.indent = width;
        self
    }

    /// Adds what each operation does, from `column` behind the offset on, or further right where lines are longer.
    ///
    /// ```
    /// use quickpickle_format::Listing;
    ///
    /// let mut lines = Listing::new(b"N.").annotate(20);
    /// assert_eq!(lines.next().unwrap()?, "    0: N    NONE            push None");
    /// # Ok::<(), quickpickle_format::Error>(())
    /// ```
    #[must_use]
    pub fn annotate(mut self, column: usize) -> Self {
        self.annotate = Some(column);
        self.column = column;
        self
    }

    /// What has not been read yet: after the last line, what follows the pickle.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.ops.rest()
    }

    fn operation(&mut self) -> Result<String, Error> {
        let Some(op) = self.ops.next().transpose()? else {
            // Ops ends with STOP or an error, and both change `next`.
            return Err(Error::new(ErrorKind::UnexpectedEnd, self.ops.offset()));
        };
        let at = |kind| Error::new(kind, op.offset);
        let (mut line, columns_from) = self.head(&op);
        let argument = argument(&op).map_err(at)?;
        self.highest = self.highest.max(op.opcode.protocol());
        let (effect, result) = self.machine.apply(op.opcode, argument.index, op.offset);
        let note = match effect {
            _ if result == Err(ErrorKind::NoMark) => "no MARK exists on stack".to_owned(),
            Effect::ClosedMark(mark) => format!("(MARK at {mark})"),
            Effect::Memoized(index) => format!("(as {index})"),
            Effect::Plain => String::new(),
        };
        push_details(&mut line, op.opcode, &[&argument.text, &note]);
        self.push_annotation(&mut line, columns_from, op.opcode);
        self.next = match result {
            Err(kind) => Next::Fault(at(kind)),
            Ok(_) if op.opcode == Opcode::Stop => Next::Summary,
            Ok(_) => Next::Operation,
        };
        Ok(line)
    }

    /// Offset, code and indented name, and where in the line the code begins.
    fn head(&self, op: &Op<'_>) -> (String, usize) {
        let mut line = String::with_capacity(80);
        let _ = write!(line, "{:5}: ", op.offset);
        let columns_from = line.len();
        line.extend(op.opcode.byte().escape_ascii().map(char::from));
        // Blanks by count, not as a width of `write!`, which has a largest.
        let code_length = line.len() - columns_from;
        let levels = self.machine.marks().len().min(limits::INDENT_LEVELS);
        let indent = levels.saturating_mul(self.indent);
        push_blanks(&mut line, indent.saturating_add(5 - code_length));
        line.push_str(op.opcode.name());
        (line, columns_from)
    }

    /// Annotations move right with the longest line so far, and back once that got too far.
    fn push_annotation(&mut self, line: &mut String, columns_from: usize, opcode: Opcode) {
        let Some(first_column) = self.annotate else {
            return;
        };
        let length = line[columns_from..].chars().count();
        push_blanks(line, self.column.saturating_sub(length));
        self.column = self.column.max(length);
        if self.column > 50 {
            self.column = first_column;
        }
        line.push(' ');
        line.push_str(opcode.summary());
    }

    fn summary(&mut self) -> String {
        self.next = match self.machine.stack().len() {
            0 => Next::Nothing,
            left => Next::Fault(Error::new(ErrorKind::StackLeft(left), self.ops.offset())),
        };
        format!("highest protocol among opcodes = {}", self.highest)
    }
}

impl Iterator for Listing<'_> {
    type Item = Result<String, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        match std::mem::replace(&mut self.next, Next::Nothing) {
            // On an error nothing is put back, which makes it the last item.
            Next::Operation => Some(self.operation()),
            Next::Summary => Some(Ok(self.summary())),
            Next::Fault(error) => Some(Err(error)),
            Next::Nothing => None,
        }
    }
}

impl std::iter::FusedIterator for Listing<'_> {}

/// An argument as it is listed, and as the memo number it may be.
#[derive(Default)]
struct Shown {
    text: String,
    index: Option<u64>,
}

fn argument(op: &Op<'_>) -> Result<Shown, ErrorKind> {
    let mut shown = Shown::default();
    let out = &mut shown.text;
    match op.argument {
        Argument::Nothing => {}
        Argument::Version(version) => push_number(out, version),
        Argument::Length(len) => push_number(out, len),
        Argument::Int(value) => push_number(out, value),
        Argument::Float(value) => repr::push_float(out, value),
        Argument::Index(index) => {
            push_number(out, index);
            shown.index = Some(index.into());
        }
        Argument::Bytes(payload) => push_payload(out, op.opcode, payload)?,
        Argument::Line(line) => {
            push_line(out, op.opcode, line)?;
            if matches!(op.opcode, Opcode::Put | Opcode::Get) {
                shown.index = Some(out.parse().map_err(|_| ErrorKind::InvalidInt(op.opcode))?);
            }
        }
        Argument::Lines(module, name) => {
            let both = [module, name].join(&b' ');
            push_utf8(out, op.opcode, &both)?;
        }
    }
    Ok(shown)
}

fn push_payload(out: &mut String, opcode: Opcode, payload: &[u8]) -> Result<(), ErrorKind> {
    match opcode.argument() {
        ArgumentKind::Long1 | ArgumentKind::Long4 if payload.len() <= limits::DECIMAL_BYTES => {
            out.push_str(&int::decimal(payload));
        }
        ArgumentKind::Long1 | ArgumentKind::Long4 => out.push_str(&int::hexadecimal(payload)),
        ArgumentKind::String1 | ArgumentKind::String4 => push_latin1(out, payload),
        ArgumentKind::ByteArray8 => repr::push_bytearray(out, payload),
        ArgumentKind::Bytes1 | ArgumentKind::Bytes4 | ArgumentKind::Bytes8 => {
            repr::push_bytes(out, payload)
        }
        _ => push_utf8(out, opcode, payload)?,
    }
    Ok(())
}

fn push_line(out: &mut String, opcode: Opcode, line: &[u8]) -> Result<(), ErrorKind> {
    match opcode.argument() {
        ArgumentKind::DecimalLine if opcode == Opcode::Int && matches!(line, b"00" | b"01") => {
            out.push_str(if line == b"01" { "True" } else { "False" });
        }
        ArgumentKind::DecimalLine => {
            out.push_str(&int::canonical(line).ok_or(ErrorKind::InvalidInt(opcode))?);
        }
        ArgumentKind::LongLine => {
            let digits = line.strip_suffix(b"L").unwrap_or(line);
            out.push_str(&int::canonical(digits).ok_or(ErrorKind::InvalidInt(opcode))?);
        }
        ArgumentKind::FloatLine => {
            repr::push_float(out, text::parse_float(line).ok_or(ErrorKind::InvalidFloat)?)
        }
        ArgumentKind::StringLine => {
            let escaped = text::unquote(line).ok_or(ErrorKind::UnquotedString)?;
            push_latin1(
                out,
                &text::unescape(escaped).ok_or(ErrorKind::InvalidEscape(opcode))?,
            );
        }
        ArgumentKind::UnicodeLine => {
            let decoded =
                text::decode_unicode_line(line).ok_or(ErrorKind::InvalidEscape(opcode))?;
            push_utf8(out, opcode, &decoded)?;
        }
        _ => push_utf8(out, opcode, line)?,
    }
    Ok(())
}

/// Appends those details that are there, the first in a column of its own.
fn push_details(line: &mut String, opcode: Opcode, details: &[&str]) {
    let mut blanks = 10_usize.saturating_sub(opcode.name().len());
    for detail in details.iter().filter(|detail| !detail.is_empty()) {
        push_blanks(line, blanks + 1);
        line.push_str(detail);
        blanks = 0;
    }
}

fn push_blanks(out: &mut String, count: usize) {
    const BLANKS: &str = "                                ";
    let mut left = count;
    while left > BLANKS.len() {
        out.push_str(BLANKS);
        left -= BLANKS.len();
    }
    out.push_str(&BLANKS[..left]);
}

fn push_number(out: &mut String, number: impl std::fmt::Display) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{number}");
}

fn push_utf8(out: &mut String, opcode: Opcode, bytes: &[u8]) -> Result<(), ErrorKind> {
    if text::code_points(bytes).any(|code_point| code_point.is_err()) {
        return Err(ErrorKind::InvalidUtf8(opcode));
    }
    repr::push_str(out, text::code_points(bytes).map_while(Result::ok));
    Ok(())
}

/// Python 2 strings have no encoding; Latin-1 shows every byte as something.
fn push_latin1(out: &mut String, bytes: &[u8]) {
    repr::push_str(out, bytes.iter().map(|&byte| u32::from(byte)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_width_will_do() {
        let lines = |listing: Listing<'_>| {
            listing
                .map(|line| line.map(|line| line.len()))
                .collect::<Result<Vec<_>, _>>()
        };
        assert_eq!(
            lines(Listing::new(b"(t.").indent(70_000)),
            Ok(vec![16, 70_000 + 34, 16, 34])
        );
        assert_eq!(
            lines(Listing::new(b"(t.").indent(0)),
            Ok(vec![16, 34, 16, 34])
        );
        let line = Listing::new(b"(t.")
            .annotate(70_000)
            .next()
            .and_then(Result::ok);
        assert!(line.is_some_and(|line| line.len() > 70_000));
    }

    #[test]
    fn a_fault_in_an_argument_has_no_line() {
        let mut listing = Listing::new(b"NX\x01\0\0\0\xff.");
        assert!(listing.next().is_some_and(|line| line.is_ok()));
        let fault = Error::new(ErrorKind::InvalidUtf8(Opcode::BinUnicode), 1);
        assert_eq!(listing.next(), Some(Err(fault)));
        assert_eq!(listing.next(), None);
    }

    #[test]
    fn a_fault_of_the_stack_follows_its_line() {
        let mut listing = Listing::new(b"N0R.");
        assert_eq!(
            listing.nth(2).and_then(Result::ok).as_deref(),
            Some("    2: R    REDUCE")
        );
        let fault = Error::new(
            ErrorKind::StackUnderflow {
                wanted: 2,
                found: 0,
            },
            2,
        );
        assert_eq!(listing.next(), Some(Err(fault)));
        assert_eq!(listing.next(), None);
    }
}
