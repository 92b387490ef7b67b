//! File and node names for any text.
//!
//! Lower-case letters, digits and `-_.` stand for themselves, everything else is `%` and two hex digits, so that names differ on file
//! systems that fold case as well. What would be longer than a file name may be is named by its SHA-256; the full name is kept beside
//! the value either way. These names are on disk for ever.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Longest encoded name; with a suffix well below the 255 bytes that file systems allow.
const LONGEST: usize = 200;

/// The name of the file or node for `name`.
pub(crate) fn encode(name: &str) -> String {
    if name.is_empty() {
        return "%".into();
    }
    let encoded = encode_bytes(name);
    if encoded.len() > LONGEST {
        return format!("~{}", crate::entry::hex(&Sha256::digest(name.as_bytes())));
    }
    encoded
}

/// Whether the node called `node` can be that of a name which starts with `prefix`. A hash tells nothing, so it can.
#[cfg(feature = "zookeeper")]
pub(crate) fn may_start_with(node: &str, prefix: &str) -> bool {
    prefix.is_empty() || node.starts_with('~') || node.starts_with(&encode_bytes(prefix))
}

/// The name whose node is called `node`; `None` if that cannot be told, because it is a hash or because no name's node is called so.
#[cfg(feature = "zookeeper")]
pub(crate) fn decode(node: &str) -> Option<String> {
    if node == "%" {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(node.len());
    let mut rest = node.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        rest = after;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|name| encode(name) == node)
}

fn encode_bytes(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => encoded.push(char::from(byte)),
            b'.' if at > 0 => encoded.push('.'),
            _ => {
                let _ = write!(encoded, "%{byte:02x}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[cfg(feature = "zookeeper")]
    #[test]
    fn a_node_tells_its_name_unless_it_is_a_hash() {
        for name in [
            "",
            "worker_1",
            "..",
            "a/b%",
            "\0",
            "é",
            "A~",
            &"x".repeat(LONGEST),
        ] {
            assert_eq!(decode(&encode(name)).as_deref(), Some(name));
        }
        for node in [
            &encode(&"x".repeat(LONGEST + 1)),
            "~",
            "%4",
            "%zz",
            "%+1",
            "%41",
            "%2E",
            "%61",
            ".hidden",
            "UPPER",
            "é",
            "%ff",
            "",
        ] {
            let name = decode(node);
            assert!(
                name.as_deref().is_none_or(|name| encode(name) == node),
                "{node}: {name:?}"
            );
            assert_eq!(name.is_some(), node == "%41", "{node}: {name:?}");
        }
    }

    #[test]
    fn ordinary_names_stay_readable() {
        assert_eq!(
            encode("worker_worker-20260101-10.0.0.1-7078"),
            "worker_worker-20260101-10.0.0.1-7078"
        );
    }

    #[test]
    fn no_name_leaves_the_directory_and_no_two_share_a_file() {
        let long = "x".repeat(10_000);
        let longer = "x".repeat(10_001);
        let names = [
            "",
            ".",
            "..",
            "../../etc/passwd",
            "/",
            "a/b",
            "a%2fb",
            "A",
            "a",
            "\0",
            "%",
            "%00",
            "é",
            "e\u{301}",
            "~",
            &long,
            &longer,
        ];
        let files: HashSet<String> = names
            .iter()
            .map(|name| encode(name).to_lowercase())
            .collect();
        assert_eq!(files.len(), names.len());
        for file in files {
            assert!(
                !file.contains('/')
                    && !file.starts_with('.')
                    && !file.contains('\0')
                    && file.len() <= 210,
                "{file}"
            );
        }
    }
}
