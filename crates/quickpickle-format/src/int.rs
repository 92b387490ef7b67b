//! Integers as pickles hold them: little-endian two's complement of any size (LONG1, LONG4), and decimal lines.
//!
//! Values that fit 64 bits are handled here completely; larger ones stay bytes, for whoever has a type for them. Their
//! text can still be printed.

use crate::text;

/// The value of up to eight bytes of little-endian two's complement, `None` if there are more. No bytes are zero.
///
/// ```
/// use quickpickle_format::int::from_le_bytes;
///
/// assert_eq!(from_le_bytes(b""), Some(0));
/// assert_eq!(from_le_bytes(b"\xff\x00"), Some(255));
/// assert_eq!(from_le_bytes(b"\xff"), Some(-1));
/// assert_eq!(from_le_bytes(&[0; 9]), None);
/// ```
#[must_use]
#[inline]
pub fn from_le_bytes(bytes: &[u8]) -> Option<i64> {
    if bytes.len() > 8 {
        return None;
    }
    let sign = if bytes.last().is_some_and(|&top| top >= 0x80) {
        0xff
    } else {
        0
    };
    let mut full = [sign; 8];
    full[..bytes.len()].copy_from_slice(bytes);
    Some(i64::from_le_bytes(full))
}

/// The shortest two's complement of a value: eight bytes, and how many of them count. Zero has none.
///
/// ```
/// use quickpickle_format::int::to_le_bytes;
///
/// let (bytes, len) = to_le_bytes(1 << 31);
/// assert_eq!(&bytes[..len], b"\x00\x00\x00\x80\x00");
/// assert_eq!(to_le_bytes(0).1, 0);
/// assert_eq!(to_le_bytes(-128).1, 1);
/// ```
#[must_use]
#[inline]
pub const fn to_le_bytes(value: i64) -> ([u8; 8], usize) {
    if value == 0 {
        return ([0; 8], 0);
    }
    // Bits that repeat the sign, all but one of which may go.
    let magnitude = if value < 0 { !value } else { value };
    let bits = 64 - magnitude.leading_zeros() as usize + 1;
    (value.to_le_bytes(), bits.div_ceil(8))
}

/// The value of a plain decimal line: an optional minus and digits without leading zeros, as every pickler writes them.
///
/// Anything else is `None`: the value may not fit, or the line may be one of the stranger forms that Python's own
/// parsers accept (`0x10`, `1_000`, blanks), or no number at all.
///
/// ```
/// use quickpickle_format::int::parse_line;
///
/// assert_eq!(parse_line(b"-42"), Some(-42));
/// assert_eq!(parse_line(b"9223372036854775808"), None);
/// assert_eq!(parse_line(b"01"), None);
/// ```
#[must_use]
pub fn parse_line(line: &[u8]) -> Option<i64> {
    let (negative, digits) = match line {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits[0] == b'0' && line.len() > 1 {
        return None;
    }
    digits.iter().try_fold(0_i64, |value, &digit| {
        let digit = i64::from(char::from(digit).to_digit(10)?);
        let value = value.checked_mul(10)?;
        // Counted downwards for negative numbers, or the smallest i64 would not fit.
        if negative {
            value.checked_sub(digit)
        } else {
            value.checked_add(digit)
        }
    })
}

/// The decimal text of little-endian two's complement bytes of any number.
///
/// Takes time proportional to the square of the length: put a bound on it first for input nobody vouches for.
///
/// ```
/// use quickpickle_format::int::decimal;
///
/// assert_eq!(decimal(b"\x00\x80"), "-32768");
/// assert_eq!(decimal(&[0xff; 16]), "-1");
/// ```
#[must_use]
pub fn decimal(bytes: &[u8]) -> String {
    if let Some(value) = from_le_bytes(bytes) {
        return value.to_string();
    }
    let negative = bytes.last().is_some_and(|&top| top >= 0x80);
    let mut words = magnitude(bytes, negative);
    // Digits in groups of nine, least significant first: the largest power of ten whose remainder leaves room for
    // another word below it in 64 bits.
    let mut groups = Vec::new();
    while !words.is_empty() {
        let mut rest = 0_u64;
        for word in words.iter_mut().rev() {
            let value = rest << 32 | u64::from(*word);
            *word = (value / 1_000_000_000) as u32;
            rest = value % 1_000_000_000;
        }
        groups.push(rest);
        while words.last() == Some(&0) {
            words.pop();
        }
    }
    let mut text = String::with_capacity(groups.len() * 9 + 1);
    if negative {
        text.push('-');
    }
    let mut groups = groups.into_iter().rev();
    text.push_str(&groups.next().unwrap_or(0).to_string());
    for group in groups {
        text.push_str(&format!("{group:09}"));
    }
    text
}

/// The hexadecimal text of little-endian two's complement bytes of any number, as a Python literal. Linear in the length.
///
/// ```
/// use quickpickle_format::int::hexadecimal;
///
/// assert_eq!(hexadecimal(b"\x00\x80"), "-0x8000");
/// assert_eq!(hexadecimal(b"\x01\x00\x00\x00\x00\x02\x00"), "0x20000000001");
/// assert_eq!(hexadecimal(b""), "0x0");
/// ```
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    let negative = bytes.last().is_some_and(|&top| top >= 0x80);
    let words = magnitude(bytes, negative);
    let mut text = String::with_capacity(words.len() * 8 + 3);
    text.push_str(if negative { "-0x" } else { "0x" });
    let mut words = words.into_iter().rev();
    text.push_str(&format!("{:x}", words.next().unwrap_or(0)));
    for word in words {
        text.push_str(&format!("{word:08x}"));
    }
    text
}

/// The plain decimal text of whatever line Python's `int()` accepts in base 10: blanks around it, a plus, leading zeros,
/// single underscores between digits. `None` for anything else. Of any size, since nothing is converted.
///
/// ```
/// use quickpickle_format::int::canonical;
///
/// assert_eq!(canonical(b" -0_07\r").as_deref(), Some("-7"));
/// assert_eq!(canonical(b"1__0"), None);
/// ```
#[must_use]
pub fn canonical(line: &[u8]) -> Option<String> {
    let line = text::trim(line);
    let (negative, digits) = match line {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let digits = text::without_underscores(digits)?;
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let leading = digits.iter().take_while(|&&digit| digit == b'0').count();
    let digits = &digits[leading.min(digits.len() - 1)..];
    let sign = if negative && digits != b"0" { "-" } else { "" };
    Some(format!("{sign}{}", std::str::from_utf8(digits).ok()?))
}

/// Absolute value in 32-bit words, least significant first, without leading zero words.
fn magnitude(bytes: &[u8], negative: bool) -> Vec<u32> {
    let sign = if negative { 0xff } else { 0 };
    let mut carry = negative;
    let mut words: Vec<u32> = bytes
        .chunks(4)
        .map(|chunk| {
            let mut full = [sign; 4];
            full[..chunk.len()].copy_from_slice(chunk);
            let word = u32::from_le_bytes(full);
            if !negative {
                return word;
            }
            let (word, overflow) = (!word).overflowing_add(u32::from(carry));
            carry = overflow;
            word
        })
        .collect();
    if carry {
        // Only the smallest number of its size gets here: its magnitude needs one more word.
        words.push(1);
    }
    while words.last() == Some(&0) {
        words.pop();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_bytes_and_back() {
        for shift in 0..64 {
            for value in [
                1_i64 << shift,
                (1_i64 << shift).wrapping_sub(1),
                (1_i64 << shift).wrapping_add(1),
            ] {
                for value in [value, value.wrapping_neg(), !value] {
                    let (bytes, len) = to_le_bytes(value);
                    assert_eq!(from_le_bytes(&bytes[..len]), Some(value));
                    if len > 1 {
                        assert_ne!(
                            from_le_bytes(&bytes[..len - 1]),
                            Some(value),
                            "{value} needs fewer than {len} bytes"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn decimal_agrees_with_i128_and_carries_over() {
        for value in [
            i128::MAX,
            i128::MIN,
            i128::MIN + 1,
            1 << 64,
            -(1 << 64),
            -(1 << 96),
            10_i128.pow(27),
            -1,
            0,
        ] {
            assert_eq!(decimal(&value.to_le_bytes()), value.to_string());
        }
        // 2**128 needs a 17th byte; -2**127 - 1 as well.
        let mut bytes = [0; 17];
        bytes[16] = 1;
        assert_eq!(decimal(&bytes), "340282366920938463463374607431768211456");
        bytes[16] = 0xff;
        assert_eq!(decimal(&bytes), "-340282366920938463463374607431768211456");
    }

    #[test]
    fn lines_that_python_accepts() {
        for (line, text) in [
            ("0", "0"),
            ("-000", "0"),
            ("+1", "1"),
            ("1_0_0", "100"),
            (" \t\r\x0b\x0c5 ", "5"),
            ("-09", "-9"),
        ] {
            assert_eq!(canonical(line.as_bytes()).as_deref(), Some(text), "{line}");
        }
        for bad in [
            "", "-", "_1", "1_", "1__0", "- 1", "+-1", "1L", "0x1", "\u{660}",
        ] {
            assert_eq!(canonical(bad.as_bytes()), None, "{bad}");
        }
        let long = "9".repeat(100_000);
        assert_eq!(canonical(long.as_bytes()), Some(long));
    }

    #[test]
    fn hexadecimal_agrees_with_i128() {
        for value in [
            i128::MAX,
            i128::MIN,
            i128::MIN + 1,
            1 << 64,
            -(1 << 96),
            -1,
            0,
            255,
        ] {
            let sign = if value < 0 { "-" } else { "" };
            assert_eq!(
                hexadecimal(&value.to_le_bytes()),
                format!("{sign}{:#x}", value.unsigned_abs())
            );
        }
    }

    #[test]
    fn decimal_lines() {
        assert_eq!(parse_line(i64::MIN.to_string().as_bytes()), Some(i64::MIN));
        assert_eq!(parse_line(i64::MAX.to_string().as_bytes()), Some(i64::MAX));
        assert_eq!(parse_line(b"0"), Some(0));
        for odd in [
            "",
            "-",
            "-0",
            "00",
            "+1",
            " 1",
            "1_0",
            "0x1",
            "1L",
            "9223372036854775808",
            "-9223372036854775809",
        ] {
            assert_eq!(parse_line(odd.as_bytes()), None, "{odd}");
        }
    }
}
