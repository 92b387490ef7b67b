//! Text as pickles hold it: escaped lines in protocol 0, UTF-8 with lone surrogates elsewhere.
//!
//! Python strings may hold lone surrogates, Rust strings may not. Text therefore is bytes here: UTF-8 in which a surrogate is
//! written like any other code point (Python's `surrogatepass`), exactly as BINUNICODE has it; [`code_points`] reads it.

use std::borrow::Cow;

/// The line of STRING without its quotes, `None` unless it has the same quote at both ends.
#[must_use]
pub fn unquote(line: &[u8]) -> Option<&[u8]> {
    match line {
        [b'\'', text @ .., b'\''] | [b'"', text @ .., b'"'] => Some(text),
        _ => None,
    }
}

/// The bytes that an escaped Python 2 string stands for, `None` if an escape is malformed.
///
/// Unknown escapes keep their backslash, as in Python.
///
/// ```
/// use quickpickle_format::text::unescape;
///
/// assert_eq!(unescape(br"a\tb\x00\101\q").as_deref(), Some(&b"a\tb\0A\\q"[..]));
/// assert_eq!(unescape(br"\x4"), None);
/// ```
#[must_use]
pub fn unescape(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    let Some(first) = text.iter().position(|&byte| byte == b'\\') else {
        return Some(Cow::Borrowed(text));
    };
    let (plain, mut rest) = text.split_at(first);
    let mut out = plain.to_vec();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let (&escape, tail) = rest.split_first()?;
        rest = tail;
        match escape {
            b'\n' => {}
            b'\\' | b'\'' | b'"' => out.push(escape),
            b'a' => out.push(0x07),
            b'b' => out.push(0x08),
            b't' => out.push(b'\t'),
            b'n' => out.push(b'\n'),
            b'v' => out.push(0x0b),
            b'f' => out.push(0x0c),
            b'r' => out.push(b'\r'),
            b'0'..=b'7' => {
                let mut value = u32::from(escape - b'0');
                for _ in 0..2 {
                    let Some((&digit @ b'0'..=b'7', tail)) = rest.split_first() else {
                        break;
                    };
                    value = value * 8 + u32::from(digit - b'0');
                    rest = tail;
                }
                // Three octal digits reach 511; the ninth bit is dropped, as Python does.
                out.push(value as u8);
            }
            b'x' => {
                let (digits, tail) = rest.split_at_checked(2)?;
                out.push(u8::try_from(hex(digits)?).ok()?);
                rest = tail;
            }
            other => out.extend([b'\\', other]),
        }
    }
    Some(Cow::Owned(out))
}

/// The text of a UNICODE line (raw-unicode-escape), `None` if a `\u` or `\U` escape is malformed.
///
/// ```
/// use quickpickle_format::text::decode_unicode_line;
///
/// assert_eq!(decode_unicode_line(br"snow\u2603\n").as_deref(), Some("snow\u{2603}\\n".as_bytes()));
/// assert_eq!(decode_unicode_line(b"caf\xe9").as_deref(), Some("caf\u{e9}".as_bytes()));
/// assert_eq!(decode_unicode_line(br"\u26"), None);
/// ```
#[must_use]
pub fn decode_unicode_line(line: &[u8]) -> Option<Cow<'_, [u8]>> {
    if line.is_ascii() && !line.contains(&b'\\') {
        return Some(Cow::Borrowed(line));
    }
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        // A backslash only escapes a `u`: `\\u0041` is two backslashes and four digits of plain text.
        let digits = match (byte, rest.first()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            (b'\\', Some(b'\\')) => {
                out.extend(b"\\\\");
                rest = &rest[1..];
                continue;
            }
            _ => {
                push_code_point(&mut out, u32::from(byte));
                continue;
            }
        };
        let (number, tail) = rest[1..].split_at_checked(digits)?;
        let code_point = hex(number)?;
        if code_point > 0x10_ffff {
            return None;
        }
        push_code_point(&mut out, code_point);
        rest = tail;
    }
    Some(Cow::Owned(out))
}

/// Appends text as CPython's protocol 0 writes it: a UNICODE line without opcode and newline.
///
/// ```
/// use quickpickle_format::text::encode_unicode_line;
///
/// let mut line = Vec::new();
/// encode_unicode_line("a\\\n\u{e9}\u{2603}".chars().map(u32::from), &mut line);
/// assert_eq!(line, b"a\\u005c\\u000a\xe9\\u2603");
/// ```
pub fn encode_unicode_line(code_points: impl IntoIterator<Item = u32>, line: &mut Vec<u8>) {
    for code_point in code_points {
        match code_point {
            // What would end the line or start an escape, and two that text-mode files of old swallowed.
            0 | 0x0a | 0x0d | 0x1a | 0x5c => line.extend(format!("\\u{code_point:04x}").bytes()),
            0..=0xff => line.push(code_point as u8),
            0x100..=0xffff => line.extend(format!("\\u{code_point:04x}").bytes()),
            _ => line.extend(format!("\\U{code_point:08x}").bytes()),
        }
    }
}

/// The value of a FLOAT line in any form that Python's `float()` accepts, `None` for anything else.
///
/// ```
/// use quickpickle_format::text::parse_float;
///
/// assert_eq!(parse_float(b" 1_0.5e3\r"), Some(10_500.0));
/// assert_eq!(parse_float(b"-inf"), Some(f64::NEG_INFINITY));
/// assert_eq!(parse_float(b"0x1p3"), None);
/// ```
#[must_use]
pub fn parse_float(line: &[u8]) -> Option<f64> {
    // Rust's grammar is Python's without blanks and underscores.
    let plain = without_underscores(trim(line))?;
    std::str::from_utf8(&plain).ok()?.parse().ok()
}

/// What Python strips from numbers: ASCII white space, vertical tab included.
pub(crate) fn trim(line: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | 0x09..=0x0d);
    let start = line
        .iter()
        .position(|byte| !blank(byte))
        .unwrap_or(line.len());
    let end = line
        .iter()
        .rposition(|byte| !blank(byte))
        .map_or(start, |last| last + 1);
    &line[start..end]
}

/// A number without the underscores between its digits, `None` if one is elsewhere.
pub(crate) fn without_underscores(number: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !number.contains(&b'_') {
        return Some(Cow::Borrowed(number));
    }
    let digit = |index: Option<usize>| {
        index
            .and_then(|index| number.get(index))
            .is_some_and(u8::is_ascii_digit)
    };
    let misplaced = |index: usize| !(digit(index.checked_sub(1)) && digit(Some(index + 1)));
    if (0..number.len()).any(|index| number[index] == b'_' && misplaced(index)) {
        return None;
    }
    Some(Cow::Owned(
        number
            .iter()
            .copied()
            .filter(|&byte| byte != b'_')
            .collect(),
    ))
}

/// The code points of UTF-8 that may hold lone surrogates. The first malformed byte ends it with an `Err` of its index.
///
/// ```
/// use quickpickle_format::text::code_points;
///
/// assert_eq!(code_points(b"a\xed\xa0\x80").collect::<Vec<_>>(), [Ok(0x61), Ok(0xd800)]);
/// assert_eq!(code_points(b"a\xff!").collect::<Vec<_>>(), [Ok(0x61), Err(1)]);
/// ```
#[must_use]
pub fn code_points(text: &[u8]) -> CodePoints<'_> {
    CodePoints { text, at: 0 }
}

/// What [`code_points`] returns.
#[derive(Debug, Clone)]
pub struct CodePoints<'a> {
    text: &'a [u8],
    at: usize,
}

impl Iterator for CodePoints<'_> {
    type Item = std::result::Result<u32, usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        match first_code_point(rest) {
            Some((code_point, len)) => {
                self.at += len;
                Some(Ok(code_point))
            }
            None => {
                let at = self.at;
                self.at = self.text.len();
                Some(Err(at))
            }
        }
    }
}

fn first_code_point(text: &[u8]) -> Option<(u32, usize)> {
    let continuation = |index: usize| {
        let byte = *text.get(index)?;
        (byte & 0xc0 == 0x80).then_some(u32::from(byte & 0x3f))
    };
    let lead = u32::from(*text.first()?);
    // Lowest code point of each length: anything below would have a shorter form and is malformed.
    let (code_point, len, lowest) = match lead {
        0x00..=0x7f => (lead, 1, 0),
        0xc0..=0xdf => ((lead & 0x1f) << 6 | continuation(1)?, 2, 0x80),
        0xe0..=0xef => (
            (lead & 0x0f) << 12 | continuation(1)? << 6 | continuation(2)?,
            3,
            0x800,
        ),
        0xf0..=0xf7 => {
            let tail = continuation(1)? << 12 | continuation(2)? << 6 | continuation(3)?;
            ((lead & 0x07) << 18 | tail, 4, 0x1_0000)
        }
        _ => return None,
    };
    (lowest..=0x10_ffff)
        .contains(&code_point)
        .then_some((code_point, len))
}

/// Appends one code point, surrogates included.
fn push_code_point(out: &mut Vec<u8>, code_point: u32) {
    if let Some(char) = char::from_u32(code_point) {
        out.extend(char.encode_utf8(&mut [0; 4]).bytes());
    } else {
        out.extend(
            [
                0xe0 | code_point >> 12,
                0x80 | code_point >> 6 & 0x3f,
                0x80 | code_point & 0x3f,
            ]
            .map(|b| b as u8),
        );
    }
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, &digit| {
        Some(value << 4 | char::from(digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_must_match() {
        assert_eq!(unquote(b"'a'b'"), Some(&b"a'b"[..]));
        assert_eq!(unquote(b"\"\""), Some(&b""[..]));
        for bad in ["", "'", "a", "'a\"", "'a' ", " 'a'"] {
            assert_eq!(unquote(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn escapes_at_their_edges() {
        assert_eq!(unescape(b"a\\\nb").as_deref(), Some(&b"ab"[..]));
        assert_eq!(
            unescape(br"\7x\400\777\8").as_deref(),
            Some(&b"\x07x\x00\xff\\8"[..])
        );
        for bad in [&br"a\"[..], br"\x", br"\x4", br"\xzz"] {
            assert_eq!(unescape(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn unicode_lines_at_their_edges() {
        let decode = |line: &'static [u8]| decode_unicode_line(line).map(Cow::into_owned);
        assert_eq!(decode(br"\"), Some(b"\\".to_vec()));
        assert_eq!(decode(br"\\u1234"), Some(br"\\u1234".to_vec()));
        assert_eq!(decode(br"\\\u0041"), Some(br"\\A".to_vec()));
        assert_eq!(decode(br"\U0001F600"), Some("\u{1f600}".into()));
        assert_eq!(
            decode(br"\ud83d\ude00"),
            Some(b"\xed\xa0\xbd\xed\xb8\x80".to_vec())
        );
        for bad in [
            &br"\u"[..],
            br"\u12",
            br"\uzzzz",
            br"\U0001",
            br"\U00110000",
            br"\u+123",
        ] {
            assert_eq!(decode(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn every_code_point_survives_a_line() {
        for code_point in 0..=0x10_ffff {
            let mut line = Vec::new();
            encode_unicode_line([code_point], &mut line);
            let text = decode_unicode_line(&line).expect("what we encode decodes");
            assert!(code_points(&text).eq([Ok(code_point)]), "{code_point:x}");
        }
    }

    #[test]
    fn malformed_utf8_is_found() {
        for bad in [
            &b"\x80"[..],
            b"\xc0\x80",
            b"\xc3",
            b"\xe0\x80\x80",
            b"\xf0\x80\x80\x80",
            b"\xf4\x90\x80\x80",
            b"\xf8\x80",
        ] {
            assert!(code_points(bad).eq([Err(0)]), "{bad:?}");
        }
    }
}
