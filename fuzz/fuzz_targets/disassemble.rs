//! The listing of arbitrary bytes: it ends, says something, and stays in proportion to its input.

#![no_main]

use libfuzzer_sys::fuzz_target;
use quickpickle_format::{Listing, Ops, limits};

fuzz_target!(|data: &[u8]| {
    // Options follow from the length, so that any pickle can be a seed.
    let indent = data.len() % 8;
    let mut listing = Listing::new(data).indent(indent);
    if data.len().is_multiple_of(3) {
        listing = listing.annotate(data.len() % 64);
    }
    let mut lines = 0_usize;
    let mut length = 0_usize;
    let mut failed = false;
    for line in &mut listing {
        assert!(!failed, "an error is the last item");
        match line {
            Ok(line) => {
                assert!(!line.contains('\n'));
                lines += 1;
                length += line.len();
            }
            Err(error) => {
                assert!(error.offset <= data.len() as u64);
                // Messages are for people; what they are made of must not fail either.
                assert!(!error.to_string().is_empty());
                failed = true;
            }
        }
    }
    let operations = Ops::new(data).filter(Result::is_ok).count();
    assert!(failed || lines == operations + 1);
    assert!(lines <= operations + 1);
    // An escape takes ten characters at most; the rest is the frame of a line.
    let frame = limits::INDENT_LEVELS * indent + 200;
    assert!(
        length <= 10 * data.len() + frame * (lines + 1),
        "{length} characters for {} bytes",
        data.len()
    );
});
