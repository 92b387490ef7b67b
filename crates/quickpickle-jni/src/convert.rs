//! Java's byte arrays and what is in them. Text is UTF-8; lists are packed into one array, because each element of a Java array costs
//! several calls into the JVM.
//!
//! Packed numbers are big-endian, as Java's `ByteBuffer` reads them; the other side is `Engine.java`.

use jni::Env;
use jni::objects::{JByteArray, JObjectArray};
use jni::sys::jint;
use quickpickle_recovery::{Entry, Report};

use crate::error::Failure;

/// Entries are handed over in arrays of about this size, since a Java array ends at 2 GiB.
const BLOCK: usize = 16 << 20;

/// A whole array.
pub(crate) fn bytes(env: &Env<'_>, array: &JByteArray<'_>) -> Result<Vec<u8>, Failure> {
    Ok(env.convert_byte_array(array)?)
}

/// A part of an array: `ByteBuffer.array()` is longer than its data.
pub(crate) fn part(
    env: &Env<'_>,
    array: &JByteArray<'_>,
    offset: jint,
    length: jint,
) -> Result<Vec<u8>, Failure> {
    let size = array.len(env)?;
    let length = usize::try_from(length).map_err(|_| Failure::argument("length"))?;
    let start = usize::try_from(offset).map_err(|_| Failure::argument("offset"))?;
    if start.checked_add(length).is_none_or(|end| end > size) {
        return Err(Failure::argument("offset and length"));
    }
    let mut signed = vec![0; length];
    array.get_region(env, offset, &mut signed)?;
    // The same bytes: compiles to nothing, or to a copy at memory speed.
    Ok(signed.into_iter().map(i8::cast_unsigned).collect())
}

/// A text.
pub(crate) fn string(env: &Env<'_>, array: &JByteArray<'_>) -> Result<String, Failure> {
    String::from_utf8(bytes(env, array)?).map_err(|_| Failure::argument("text"))
}

/// Texts, each after its length in four bytes.
pub(crate) fn strings(mut packed: &[u8]) -> Result<Vec<String>, Failure> {
    let mut strings = Vec::new();
    while let Some((length, rest)) = packed.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let text = rest
            .get(..length)
            .ok_or_else(|| Failure::argument("packed texts"))?;
        let text =
            String::from_utf8(text.to_vec()).map_err(|_| Failure::argument("packed texts"))?;
        strings.push(text);
        packed = &rest[length..];
    }
    if packed.is_empty() {
        Ok(strings)
    } else {
        Err(Failure::argument("packed texts"))
    }
}

fn push(packed: &mut Vec<u8>, bytes: &[u8]) {
    // Names and values are bounded far below four gigabytes.
    packed.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    packed.extend_from_slice(bytes);
}

/// See [`strings`].
pub(crate) fn packed_strings<'local>(
    env: &mut Env<'local>,
    strings: &[&str],
) -> Result<JByteArray<'local>, Failure> {
    let mut packed = Vec::new();
    for text in strings {
        push(&mut packed, text.as_bytes());
    }
    Ok(env.byte_array_from_slice(&packed)?)
}

/// Entries in arrays of some size: for each the codec in four bytes, name, value.
pub(crate) fn packed_entries<'local>(
    env: &mut Env<'local>,
    entries: &[Entry],
) -> Result<JObjectArray<'local, JByteArray<'local>>, Failure> {
    let packed_len = |entry: &Entry| entry.name.len() + entry.value.len() + 12;
    let all = entries
        .iter()
        .map(packed_len)
        .fold(0, usize::saturating_add);
    let mut blocks: Vec<JByteArray<'local>> = Vec::new();
    let mut packed = Vec::with_capacity(all.min(BLOCK));
    for (at, entry) in entries.iter().enumerate() {
        packed.extend_from_slice(&u32::from(entry.codec.to_u16()).to_be_bytes());
        push(&mut packed, entry.name.as_bytes());
        push(&mut packed, &entry.value);
        let next = entries.get(at + 1).map_or(usize::MAX, packed_len);
        if packed.len().saturating_add(next) > BLOCK {
            blocks.push(env.byte_array_from_slice(&packed)?);
            packed.clear();
        }
    }
    let array = JObjectArray::<JByteArray>::new(env, blocks.len(), JByteArray::null())?;
    for (at, block) in blocks.iter().enumerate() {
        array.set_element(env, at, block)?;
    }
    Ok(array)
}

/// Entries, torn bytes, damaged stretches and missing records in eight bytes each, whether it was closed in good order in one; then what
/// there is to say, as texts.
pub(crate) fn packed_report<'local>(
    env: &mut Env<'local>,
    report: &Report,
) -> Result<JByteArray<'local>, Failure> {
    let mut packed = Vec::new();
    for number in [
        report.entries,
        report.torn_tail_bytes,
        report.damage.len() as u64,
        report.missing_records,
    ] {
        packed.extend_from_slice(&number.to_be_bytes());
    }
    packed.push(u8::from(report.closed_cleanly));
    for damage in &report.damage {
        let kept = damage
            .quarantined_to
            .as_deref()
            .map_or_else(String::new, |place| format!("; kept in {place}"));
        let line = format!(
            "damage: {} bytes at {} of {}: {}{kept}",
            damage.length, damage.offset, damage.place, damage.reason
        );
        push(&mut packed, line.as_bytes());
    }
    for note in &report.notes {
        push(&mut packed, note.as_bytes());
    }
    Ok(env.byte_array_from_slice(&packed)?)
}
