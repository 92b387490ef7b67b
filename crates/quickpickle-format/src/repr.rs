//! Values as Python's `repr` shows them, for listings that read like Python's own.
//!
//! Text comes in as code points rather than `str`, because pickled text may hold lone surrogates. What counts as printable
//! follows the Unicode version of the Rust standard library, so characters younger than a given Python may be shown
//! as themselves where that Python escapes them.

use std::fmt::Write;

/// Appends the repr of a str.
///
/// ```
/// use quickpickle_format::repr::push_str;
///
/// let mut out = String::new();
/// push_str(&mut out, "it's \u{e9}\u{200b}\n".chars().map(u32::from));
/// assert_eq!(out, r#""it's é\u200b\n""#);
/// ```
pub fn push_str(out: &mut String, text: impl Iterator<Item = u32> + Clone) {
    let quote = quote(text.clone());
    out.push(quote);
    for code_point in text {
        match char::from_u32(code_point) {
            Some(char) if char == quote || char == '\\' => out.extend(['\\', char]),
            Some('\t') => out.push_str("\\t"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some(char) if is_printable(char) => out.push(char),
            _ => push_escape(out, code_point),
        }
    }
    out.push(quote);
}

/// Appends the repr of a str, if it is one that needs no escapes: printable ASCII without `'` and `\`. Answers whether it was.
pub fn push_plain(out: &mut String, text: &[u8]) -> bool {
    if !text
        .iter()
        .all(|&byte| matches!(byte, b' '..=b'~') && byte != b'\'' && byte != b'\\')
    {
        return false;
    }
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    out.reserve(text.len() + 2);
    out.push('\'');
    out.push_str(text);
    out.push('\'');
    true
}

/// Appends the repr of a bytes object.
///
/// ```
/// use quickpickle_format::repr::push_bytes;
///
/// let mut out = String::new();
/// push_bytes(&mut out, b"a\"'\x00\xff");
/// assert_eq!(out, r#"b'a"\'\x00\xff'"#);
/// ```
pub fn push_bytes(out: &mut String, bytes: &[u8]) {
    out.push('b');
    push_quoted_bytes(out, bytes, false);
}

/// Appends the repr of a bytearray, which unlike that of bytes escapes a `'` even where `"` encloses it.
///
/// ```
/// use quickpickle_format::repr::push_bytearray;
///
/// let mut out = String::new();
/// push_bytearray(&mut out, b"it's");
/// assert_eq!(out, r#"bytearray(b"it\'s")"#);
/// ```
pub fn push_bytearray(out: &mut String, bytes: &[u8]) {
    out.push_str("bytearray(b");
    push_quoted_bytes(out, bytes, true);
    out.push(')');
}

/// Appends the repr of a float: the shortest digits that read back as the same value.
///
/// ```
/// use quickpickle_format::repr::push_float;
///
/// let mut out = String::new();
/// for value in [0.1, 1e16, -1.5e-5, 3.0, f64::NAN, f64::NEG_INFINITY] {
///     push_float(&mut out, value);
///     out.push(' ');
/// }
/// assert_eq!(out, "0.1 1e+16 -1.5e-05 3.0 nan -inf ");
/// ```
pub fn push_float(out: &mut String, value: f64) {
    if value.is_nan() {
        out.push_str("nan");
        return;
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) && magnitude.is_finite() {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        // Python writes the sign always and at least two digits.
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        push_formatted(out, format_args!("{digits}e{sign}{exponent:0>2}"));
    } else {
        // `{:?}` is the shortest text that keeps a `.0`.
        push_formatted(out, format_args!("{value:?}"));
    }
}

/// Python's choice of quotes: `'`, unless there are `'` inside and no `"`.
fn quote(text: impl Iterator<Item = u32>) -> char {
    let mut single = false;
    for code_point in text {
        match code_point {
            0x22 => return '\'',
            0x27 => single = true,
            _ => {}
        }
    }
    if single { '"' } else { '\'' }
}

fn push_quoted_bytes(out: &mut String, bytes: &[u8], always_escape_single: bool) {
    let quote = quote(bytes.iter().map(|&byte| u32::from(byte)));
    out.reserve(bytes.len() + 2);
    out.push(quote);
    for &byte in bytes {
        match char::from(byte) {
            '\'' if always_escape_single => out.push_str("\\'"),
            char if char == quote || char == '\\' => out.extend(['\\', char]),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            char @ ' '..='~' => out.push(char),
            _ => push_escape(out, u32::from(byte)),
        }
    }
    out.push(quote);
}

fn push_escape(out: &mut String, code_point: u32) {
    match code_point {
        0..=0xff => push_formatted(out, format_args!("\\x{code_point:02x}")),
        0x100..=0xffff => push_formatted(out, format_args!("\\u{code_point:04x}")),
        _ => push_formatted(out, format_args!("\\U{code_point:08x}")),
    }
}

fn push_formatted(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(arguments);
}

/// Python's `str.isprintable` for one character.
fn is_printable(char: char) -> bool {
    if char.is_ascii() {
        return matches!(char, ' '..='~');
    }
    // The standard library decides by the same categories as Python (not Cc, Cf, Cs, Co, Cn, Zl, Zp, Zs) but tells only
    // through escape_debug, which also escapes combining characters, yet not behind another character.
    let mut text = [0; 5];
    text[0] = b'a';
    let len = char.encode_utf8(&mut text[1..]).len();
    std::str::from_utf8(&text[..=len]).is_ok_and(|text| text.escape_debug().nth(1) == Some(char))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn str_repr(text: &str) -> String {
        let mut out = String::new();
        push_str(&mut out, text.chars().map(u32::from));
        out
    }

    #[test]
    fn printable_is_what_python_prints() {
        // Combining characters, emoji and letters are shown; separators, controls, private use and unassigned are not.
        assert_eq!(
            str_repr("e\u{301}\u{1f600}\u{4e2d}"),
            "'e\u{301}\u{1f600}\u{4e2d}'"
        );
        assert_eq!(str_repr("\u{301}"), "'\u{301}'");
        assert_eq!(
            str_repr("\u{a0}\u{ad}\u{2028}\u{e000}\u{378}\u{10ffff}"),
            r"'\xa0\xad\u2028\ue000\u0378\U0010ffff'"
        );
        assert_eq!(str_repr("\u{7f}\u{0}\\"), r"'\x7f\x00\\'");
    }

    #[test]
    fn lone_surrogates_are_escaped() {
        let mut out = String::new();
        push_str(&mut out, [0xd800, 0xdfff].into_iter());
        assert_eq!(out, r"'\ud800\udfff'");
    }

    #[test]
    fn quotes() {
        assert_eq!(str_repr("a'b"), r#""a'b""#);
        assert_eq!(str_repr("a\"b"), r#"'a"b'"#);
        assert_eq!(str_repr("a\"'b"), r#"'a"\'b'"#);
    }

    #[test]
    fn float_thresholds() {
        let repr = |value| {
            let mut out = String::new();
            push_float(&mut out, value);
            out
        };
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1e-4, "0.0001"),
            (9.999e-5, "9.999e-05"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1e16, "1e+16"),
            (1e22, "1e+22"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(repr(value), text);
        }
    }
}
