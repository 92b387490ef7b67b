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

/// Objects of the stack that a line shows.
const SHOWN_ITEMS: usize = 6;
/// Where the stack is shown, behind the offset, or further right where lines are longer.
const STACK_COLUMN: usize = 40;

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
    show_stack: bool,
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
            show_stack: false,
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

    /// Adds the kinds of what is on the stack after each operation, topmost last, and how many memo entries are filled.
    ///
    /// ```
    /// use quickpickle_format::Listing;
    ///
    /// let lines = Listing::new(b"](K\x01e.").stack().collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(lines[2], "    2: K        BININT1    1                    ; [list, mark, int] memo 0");
    /// # Ok::<(), quickpickle_format::Error>(())
    /// ```
    #[must_use]
    pub fn stack(mut self) -> Self {
        self.show_stack = true;
        self
    }

    /// What has not been read yet: after the last line, what follows the pickle.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.ops.rest()
    }

    /// Appends the next line to `out`, without a newline: what [`Iterator::next`] yields, without making a string for it.
    ///
    /// `None` after the last line. On an error nothing is appended, and it is the last item.
    pub fn append_line(&mut self, out: &mut String) -> Option<Result<(), Error>> {
        let before = out.len();
        // On an error nothing is put back, which makes it the last item.
        let result = match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::Operation => self.operation(out),
            Next::Summary => {
                self.summary(out);
                Ok(())
            }
            Next::Fault(error) => Err(error),
            Next::Nothing => return None,
        };
        if result.is_err() {
            out.truncate(before);
        }
        Some(result)
    }

    fn operation(&mut self, line: &mut String) -> Result<(), Error> {
        let Some(op) = self.ops.next().transpose()? else {
            // Ops ends with STOP or an error, and both change `next`.
            return Err(Error::new(ErrorKind::UnexpectedEnd, self.ops.offset()));
        };
        let at = |kind| Error::new(kind, op.offset);
        let columns_from = self.head(line, &op);
        let bare = line.len();
        push_blanks(line, 11_usize.saturating_sub(op.opcode.name().len()).max(1));
        let details = line.len();
        push_argument(line, &op).map_err(at)?;
        self.highest = self.highest.max(op.opcode.protocol());
        let (effect, result) = self.machine.apply(op.opcode, op.memo_index()?, op.offset);
        if line.len() > details && (result == Err(ErrorKind::NoMark) || effect != Effect::Plain) {
            line.push(' ');
        }
        match effect {
            _ if result == Err(ErrorKind::NoMark) => line.push_str("no MARK exists on stack"),
            Effect::ClosedMark(mark) => push_formatted(line, format_args!("(MARK at {mark})")),
            Effect::Memoized(index) => push_formatted(line, format_args!("(as {index})")),
            Effect::Plain => {}
        }
        if line.len() == details {
            line.truncate(bare);
        }
        self.push_annotation(line, columns_from, op.opcode);
        if self.show_stack {
            self.push_stack(line, columns_from);
        }
        self.next = match result {
            Err(kind) => Next::Fault(at(kind)),
            Ok(_) if op.opcode == Opcode::Stop => Next::Summary,
            Ok(_) => Next::Operation,
        };
        Ok(())
    }

    /// Offset, code and indented name; answers where in `line` the code begins.
    fn head(&self, line: &mut String, op: &Op<'_>) -> usize {
        push_offset(line, op.offset);
        let columns_from = line.len();
        match op.opcode.byte() {
            byte @ b' '..=b'~' => line.push(char::from(byte)),
            byte => push_formatted(line, format_args!("\\x{byte:02x}")),
        }
        let code_length = line.len() - columns_from;
        let levels = self.machine.marks().len().min(limits::INDENT_LEVELS);
        let indent = levels.saturating_mul(self.indent);
        // Blanks by count, not as a width of `write!`, which has a largest.
        push_blanks(line, indent.saturating_add(5 - code_length));
        line.push_str(op.opcode.name());
        columns_from
    }

    /// The stack after the operation, its top last, and how large the memo is.
    fn push_stack(&self, line: &mut String, columns_from: usize) {
        let stack = self.machine.stack();
        let length = line[columns_from..].chars().count();
        push_blanks(line, STACK_COLUMN.saturating_sub(length));
        line.push_str(" ; [");
        if stack.len() > SHOWN_ITEMS {
            push_formatted(
                line,
                format_args!("... {} more, ", stack.len() - SHOWN_ITEMS),
            );
        }
        for (at, item) in stack[stack.len().saturating_sub(SHOWN_ITEMS)..]
            .iter()
            .enumerate()
        {
            line.push_str(if at == 0 { "" } else { ", " });
            line.push_str(item.name());
        }
        push_formatted(line, format_args!("] memo {}", self.machine.memo().len()));
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

    fn summary(&mut self, line: &mut String) {
        self.next = match self.machine.stack().len() {
            0 => Next::Nothing,
            left => Next::Fault(Error::new(ErrorKind::StackLeft(left), self.ops.offset())),
        };
        push_formatted(
            line,
            format_args!("highest protocol among opcodes = {}", self.highest),
        );
    }
}

impl Iterator for Listing<'_> {
    type Item = Result<String, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = String::with_capacity(80);
        self.append_line(&mut line)
            .map(|result| result.map(|()| line))
    }
}

impl std::iter::FusedIterator for Listing<'_> {}

/// The argument as it is listed.
fn push_argument(out: &mut String, op: &Op<'_>) -> Result<(), ErrorKind> {
    match op.argument {
        Argument::Nothing => {}
        Argument::Version(version) => push_unsigned(out, version.into()),
        Argument::Length(len) => push_unsigned(out, len),
        Argument::Int(value) => {
            if value < 0 {
                out.push('-');
            }
            push_unsigned(out, value.unsigned_abs().into());
        }
        Argument::Float(value) => repr::push_float(out, value),
        Argument::Index(index) => push_unsigned(out, index.into()),
        Argument::Bytes(payload) => push_payload(out, op.opcode, payload)?,
        Argument::Line(line) => {
            push_line(out, op.opcode, line)?;
            op.memo_index().map_err(|error| error.kind)?;
        }
        Argument::Lines(module, name) => {
            let both = [module, name].join(&b' ');
            push_utf8(out, op.opcode, &both)?;
        }
    }
    Ok(())
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

fn push_blanks(out: &mut String, count: usize) {
    const BLANKS: &str = "                                ";
    let mut left = count;
    while left > BLANKS.len() {
        out.push_str(BLANKS);
        left -= BLANKS.len();
    }
    out.push_str(&BLANKS[..left]);
}

fn push_formatted(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(arguments);
}

/// A number in decimal. By hand, because `write!` is half of what a short line costs.
fn push_unsigned(out: &mut String, number: u64) {
    let mut digits = [b'0'; 20];
    let start = decimal(number, &mut digits);
    out.extend(digits[start..].iter().copied().map(char::from));
}

/// An offset with the colon behind it, in at least five columns.
fn push_offset(out: &mut String, offset: u64) {
    let mut digits = [b' '; 20];
    let start = decimal(offset, &mut digits).min(15);
    out.extend(digits[start..].iter().copied().map(char::from));
    out.push_str(": ");
}

/// Writes to the end of `digits` and answers where the number starts.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> usize {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return start;
        }
    }
}

fn push_utf8(out: &mut String, opcode: Opcode, bytes: &[u8]) -> Result<(), ErrorKind> {
    if repr::push_plain(out, bytes) {
        return Ok(());
    }
    if text::code_points(bytes).any(|code_point| code_point.is_err()) {
        return Err(ErrorKind::InvalidUtf8(opcode));
    }
    repr::push_str(out, text::code_points(bytes).map_while(Result::ok));
    Ok(())
}

/// Python 2 strings have no encoding; Latin-1 shows every byte as something.
fn push_latin1(out: &mut String, bytes: &[u8]) {
    if repr::push_plain(out, bytes) {
        return;
    }
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
