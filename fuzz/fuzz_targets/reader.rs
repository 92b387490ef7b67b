//! The reader on arbitrary bytes: operations tile the input, errors lie inside it, and an input cut short is never a
//! complete pickle.

#![no_main]

use libfuzzer_sys::fuzz_target;
use quickpickle_format::{ErrorKind, Ops};

fuzz_target!(|data: &[u8]| {
    let mut ops = Ops::new(data);
    let mut starts = Vec::new();
    let mut end = 0;
    let mut error = None;
    while let Some(op) = ops.next() {
        match op {
            Ok(op) => {
                assert_eq!(op.offset, end);
                assert_eq!(op.opcode.byte(), data[op.offset as usize]);
                starts.push(op.offset);
                end = ops.offset();
            }
            Err(found) => error = Some(found),
        }
    }
    match error {
        Some(error) => {
            assert!(end <= error.offset && error.offset <= data.len() as u64);
            let at_the_end = matches!(error.kind, ErrorKind::UnexpectedEnd | ErrorKind::Truncated);
            assert!(!at_the_end || error.offset == data.len() as u64);
        }
        None => {
            assert_eq!(ops.rest(), &data[end as usize..]);
            // Three cuts: inside the first, the middle and the last operation.
            let last = starts.len() - 1;
            for cut in [starts[0], starts[last / 2], starts[last], end - 1] {
                let cut = cut as usize;
                let error = Ops::new(&data[..cut]).last().and_then(Result::err);
                let error = error.expect("a prefix is no pickle");
                assert_eq!(error.offset, cut as u64);
            }
        }
    }
});
