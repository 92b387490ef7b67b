//! int, read from its digits and built from two's complement bytes.

use super::compat;
use super::object::Quiet;
use super::types::Int;

/// Bits in one digit of an int, on every platform with 64-bit pointers.
const DIGIT_BITS: u32 = 30;

impl<'q> Int<'q> {
    /// The value, where it has at most one digit (less than 2**30 in magnitude).
    #[inline(always)]
    pub(crate) fn small(self) -> Option<i32> {
        // SAFETY: an exact int, alive for 'q.
        unsafe { compat::long_digit(self.0.as_ptr()) }
    }

    /// The value, where it fits 32 bits.
    pub(crate) fn middle(self) -> Option<i32> {
        // SAFETY: an exact int, alive for 'q.
        let (digits, negative) = unsafe { compat::long_digits(self.0.as_ptr()) };
        let magnitude = match *digits {
            [] => 0,
            [low] => i64::from(low),
            [low, high] => i64::from(low) | i64::from(high) << DIGIT_BITS,
            _ => return None,
        };
        i32::try_from(if negative { -magnitude } else { magnitude }).ok()
    }

    /// The shortest little-endian two's complement form. Zero has no bytes.
    pub(crate) fn to_le_bytes(self, _q: Quiet<'q>) -> Vec<u8> {
        // SAFETY: an exact int, alive for 'q.
        let (digits, negative) = unsafe { compat::long_digits(self.0.as_ptr()) };
        twos_complement(digits, negative)
    }
}

/// Sign and magnitude in 30-bit digits to the shortest two's complement bytes.
fn twos_complement(digits: &[u32], negative: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(digits.len() * 4 + 2);
    let (mut window, mut bits) = (0_u64, 0);
    // Negation, digit by digit: complement, then add one from the right.
    let mut carry = 1;
    for &digit in digits {
        let digit = if negative {
            let flipped = (!digit & ((1 << DIGIT_BITS) - 1)) + carry;
            carry = flipped >> DIGIT_BITS;
            flipped & ((1 << DIGIT_BITS) - 1)
        } else {
            digit
        };
        window |= u64::from(digit) << bits;
        bits += DIGIT_BITS;
        while bits >= 8 {
            bytes.push(window as u8);
            window >>= 8;
            bits -= 8;
        }
    }
    let sign = if negative { 0xff } else { 0 };
    if bits > 0 {
        bytes.push(window as u8 | if negative { 0xff << bits } else { 0 });
    }
    bytes.push(sign);
    // Drop bytes that only repeat the sign bit of the byte below.
    while let [.., below, top] = bytes[..] {
        if top != sign || (below >= 0x80) != negative {
            break;
        }
        bytes.pop();
    }
    if bytes == [0] {
        bytes.clear();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::twos_complement;

    #[test]
    fn agrees_with_i128() {
        for shift in 0..118 {
            for near in [-1_i128, 0, 1] {
                for value in [(1_i128 << shift) + near, -(1_i128 << shift) + near] {
                    let mut magnitude = value.unsigned_abs();
                    let mut digits = Vec::new();
                    while magnitude > 0 {
                        digits.push((magnitude & ((1 << 30) - 1)) as u32);
                        magnitude >>= 30;
                    }
                    let got = twos_complement(&digits, value < 0);
                    let mut wanted = value.to_le_bytes().to_vec();
                    let sign = if value < 0 { 0xff } else { 0 };
                    while wanted.len() > 1
                        && wanted[wanted.len() - 1] == sign
                        && (wanted[wanted.len() - 2] >= 0x80) == (value < 0)
                    {
                        wanted.pop();
                    }
                    if value == 0 {
                        wanted.clear();
                    }
                    assert_eq!(got, wanted, "{value}");
                }
            }
        }
    }
}
