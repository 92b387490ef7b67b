//! File names for any text.
//!
//! Lower-case letters, digits and `-_.` stand for themselves, everything else is `%` and two hex digits, so that names differ on file
//! systems that fold case as well. What would be longer than a file name may be is named by its SHA-256; the full name is inside the
//! file either way.

use std::fmt::Write;

use sha2::{Digest, Sha256};

const SUFFIX: &str = ".entry";
/// Longest encoded name; with the suffix well below the 255 bytes that file systems allow.
const LONGEST: usize = 200;

/// The file name of an entry.
pub(super) fn file_name(name: &str) -> String {
    if name.is_empty() {
        return format!("%{SUFFIX}");
    }
    let mut encoded = String::with_capacity(name.len() + SUFFIX.len());
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => encoded.push(char::from(byte)),
            b'.' if at > 0 => encoded.push('.'),
            _ => {
                let _ = write!(encoded, "%{byte:02x}");
            }
        }
        if encoded.len() > LONGEST {
            return format!(
                "~{}{SUFFIX}",
                crate::entry::hex(&Sha256::digest(name.as_bytes()))
            );
        }
    }
    encoded + SUFFIX
}

/// Whether a file is an entry's.
pub(super) fn is_entry(file_name: &str) -> bool {
    file_name.ends_with(SUFFIX)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ordinary_names_stay_readable() {
        assert_eq!(
            file_name("worker_worker-20260101-10.0.0.1-7078"),
            "worker_worker-20260101-10.0.0.1-7078.entry"
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
            .map(|name| file_name(name).to_lowercase())
            .collect();
        assert_eq!(files.len(), names.len());
        for file in files {
            assert!(
                !file.contains('/')
                    && !file.starts_with('.')
                    && !file.contains('\0')
                    && file.len() <= 255,
                "{file}"
            );
        }
    }
}
