//! Broken pickles: cut short, damaged, lying about lengths, nested without end. All end in an error, none in a panic.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use quickpickle_format::{Error, ErrorKind, Listing, Opcode, Ops};

/// The golden pickles that read to their STOP, without what follows it.
fn complete() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let mut found = Vec::new();
    for folder in fs::read_dir(root).expect("the golden folder is there") {
        let folder = folder.expect("readable").path();
        for file in fs::read_dir(folder).into_iter().flatten() {
            let path = file.expect("readable").path();
            if path.extension().is_some_and(|ext| ext == "pickle") {
                let mut data = fs::read(path).expect("readable");
                let mut ops = Ops::new(&data);
                if ops.all(|op| op.is_ok()) {
                    data.truncate(usize::try_from(ops.offset()).expect("it fits"));
                    found.push(data);
                }
            }
        }
    }
    assert!(found.len() > 250, "only {} golden pickles", found.len());
    found
}

/// Lists to the end and returns the error that ended it.
fn fault(data: &[u8]) -> Option<Error> {
    Listing::new(data).find_map(Result::err)
}

fn last_error(data: &[u8]) -> Option<Error> {
    Ops::new(data).last().and_then(Result::err)
}

#[test]
fn every_truncation_is_an_error_where_the_input_ends() {
    for pickle in complete() {
        let starts: HashSet<u64> = Ops::new(&pickle).flatten().map(|op| op.offset).collect();
        // Of long ones the start, the end and a sample between.
        let len = pickle.len();
        let cuts = (0..len).filter(|cut| *cut < 300 || cut % 997 == 0 || len - cut < 100);
        for cut in cuts {
            let error = last_error(&pickle[..cut]).expect("a prefix is no pickle");
            assert_eq!(error.offset, cut as u64, "{:?}", &pickle[..cut.min(100)]);
            let kind = if starts.contains(&error.offset) {
                ErrorKind::UnexpectedEnd
            } else {
                ErrorKind::Truncated
            };
            assert_eq!(
                error.kind,
                kind,
                "cut at {cut} of {:?}",
                &pickle[..cut.min(100)]
            );
            if len < 300 {
                assert!(fault(&pickle[..cut]).is_some());
            }
        }
    }
}

#[test]
fn every_damaged_byte_is_survived() {
    let mut listed = 0;
    for mut pickle in complete() {
        if pickle.len() > 150 {
            continue;
        }
        for at in 0..pickle.len() {
            let good = pickle[at];
            for bad in [0, 0xff, b'.', b'\n', b'(', good ^ 1, good ^ 0x80] {
                pickle[at] = bad;
                // Whatever it is now, the listing ends, and no line is out of proportion.
                for line in Listing::new(&pickle).annotate(30) {
                    match line {
                        Ok(line) => assert!(line.len() < 10 * pickle.len() + 1000, "{pickle:?}"),
                        Err(error) => assert!(error.offset <= pickle.len() as u64, "{pickle:?}"),
                    }
                    listed += 1;
                }
            }
            pickle[at] = good;
        }
    }
    assert!(listed > 100_000, "only {listed} lines");
}

#[test]
fn lengths_beyond_the_input_are_truncation() {
    let lengths: [(Opcode, &[u8]); 11] = [
        (Opcode::ShortBinUnicode, &[0xff]),
        (Opcode::ShortBinBytes, &[0xff]),
        (Opcode::ShortBinString, &[0xff]),
        (Opcode::Long1, &[0xff]),
        (Opcode::BinUnicode, &[0xff; 4]),
        (Opcode::BinBytes, &[0xff; 4]),
        (Opcode::BinString, &[0xff, 0xff, 0xff, 0x7f]),
        (Opcode::Long4, &[0xff, 0xff, 0xff, 0x7f]),
        (Opcode::BinUnicode8, &[0xff; 8]),
        (Opcode::BinBytes8, &[0xff; 8]),
        (Opcode::ByteArray8, &[0xff; 8]),
    ];
    for (opcode, length) in lengths {
        let pickle = [&[opcode.byte()], length, b"few."].concat();
        let end = pickle.len() as u64;
        assert_eq!(
            last_error(&pickle),
            Some(Error::new(ErrorKind::Truncated, end)),
            "{opcode}"
        );
    }
    for opcode in [Opcode::BinString, Opcode::Long4] {
        let pickle = [opcode.byte(), 0, 0, 0, 0x80, b'.'];
        assert_eq!(
            last_error(&pickle),
            Some(Error::new(ErrorKind::NegativeLength(opcode), 1))
        );
    }
}

#[test]
fn every_byte_that_is_no_opcode_is_named() {
    let mut unknown = 0;
    for byte in (0..=u8::MAX).filter(|&byte| Opcode::from_byte(byte).is_none()) {
        assert_eq!(
            fault(&[b'N', byte]),
            Some(Error::new(ErrorKind::UnknownOpcode(byte), 1))
        );
        unknown += 1;
    }
    assert_eq!(unknown, 256 - 68);
}

#[test]
fn marks_without_end() {
    let marks = vec![b'('; 1_000_000];
    assert_eq!(
        last_error(&marks),
        Some(Error::new(ErrorKind::UnexpectedEnd, 1_000_000))
    );
    // Indentation stops growing, or a listing would be the square of its pickle.
    let mut longest = 0;
    let error = Listing::new(&marks[..20_000]).find_map(|line| match line {
        Ok(line) => {
            longest = longest.max(line.len());
            None
        }
        Err(error) => Some(error.kind),
    });
    assert_eq!(error, Some(ErrorKind::UnexpectedEnd));
    assert!(longest < 1000, "{longest}");
    // Closed again, one by one: each looks for its mark from the top.
    let mut pickle = marks;
    pickle.resize(2_000_000, b't');
    pickle.push(b'.');
    assert_eq!(Ops::new(&pickle).filter(Result::is_ok).count(), 2_000_001);
    pickle.drain(..990_000);
    pickle.truncate(20_000);
    pickle.push(b'.');
    assert_eq!(fault(&pickle), None);
}

#[test]
fn nesting_without_end() {
    let mut pickle = vec![b'N'];
    pickle.resize(1_000_000, Opcode::Tuple1.byte());
    pickle.push(b'.');
    assert_eq!(
        Listing::new(&pickle).filter(Result::is_ok).count(),
        1_000_002
    );
}

#[test]
fn memo_numbers_are_not_sizes() {
    assert_eq!(fault(b"Nr\xff\xff\xff\xff."), None);
    assert_eq!(fault(b"Np18446744073709551615\n."), None);
    let error = |pickle: &[u8]| fault(pickle).map(|error| error.kind);
    assert_eq!(
        error(b"Np18446744073709551616\n."),
        Some(ErrorKind::InvalidInt(Opcode::Put))
    );
    assert_eq!(error(b"Np-1\n."), Some(ErrorKind::InvalidInt(Opcode::Put)));
    assert_eq!(
        error(b"j\xff\xff\xff\xff."),
        Some(ErrorKind::MemoMissing(0xffff_ffff))
    );
}

#[test]
fn long_numbers_do_not_take_long() {
    // 8 MiB in decimal would take many minutes.
    let mut pickle = vec![Opcode::Long4.byte(), 0, 0, 0x80, 0];
    pickle.resize(5 + (8 << 20), 0x5a);
    pickle.push(b'.');
    let line = Listing::new(&pickle)
        .next()
        .and_then(Result::ok)
        .expect("listed");
    assert!(
        line.starts_with(r"    0: \x8b LONG4      0x5a5a5a"),
        "{}",
        &line[..40]
    );
    let digits = "9".repeat(1_000_000);
    let pickle = format!("L{digits}L\n.");
    let line = Listing::new(pickle.as_bytes())
        .next()
        .and_then(Result::ok)
        .expect("listed");
    assert!(line.ends_with(&digits));
}
