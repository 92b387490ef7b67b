//! No pickle makes us allocate on its word. A program of its own without the test harness, because it watches the memory
//! of the whole process, and the harness allocates now and then in a thread beside the tests.

use peak_alloc::PeakAlloc;
use quickpickle_format::{Listing, Opcode, Ops};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Bytes allocated at most at one time while listing, beyond what there was before.
fn peak(data: &[u8]) -> usize {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    for line in Listing::new(data) {
        std::hint::black_box(&line);
    }
    ALLOCATOR.peak_usage().saturating_sub(before)
}

fn main() {
    memory_follows_the_input_and_not_what_it_says();
    the_operations_themselves_are_borrowed();
    println!("test memory ... ok");
}

fn memory_follows_the_input_and_not_what_it_says() {
    // The watch itself works: a listed line is memory.
    assert!(
        peak(b"X\x40\0\0\0________________________________________________________________.") > 64
    );

    // Small inputs that ask for a lot.
    for opcode in [
        Opcode::BinUnicode8,
        Opcode::BinBytes8,
        Opcode::ByteArray8,
        Opcode::Frame,
    ] {
        for length in [1 << 31, 1 << 40, u64::MAX / 2, u64::MAX] {
            let pickle = [&[opcode.byte()][..], &length.to_le_bytes(), b"N."].concat();
            assert!(peak(&pickle) < 4096, "{opcode} {length}: {}", peak(&pickle));
        }
    }
    for pickle in [
        &b"X\xff\xff\xff\xff"[..],
        b"B\xff\xff\xff\xff",
        b"T\xff\xff\xff\x7f",
        b"\x8b\xff\xff\xff\x7f",
        b"Nr\xff\xff\xff\xffj\xff\xff\xff\xff.",
        b"Np18446744073709551615\n.",
    ] {
        assert!(peak(pickle) < 4096, "{pickle:?}: {}", peak(pickle));
    }

    // Checking keeps a byte for each object, and twenty or so for each mark and memo entry, in tables that double.
    let marks = b"(".repeat(100_000);
    assert!(peak(&marks) < 40 * marks.len(), "{}", peak(&marks));
    let memo = [b"N".to_vec(), vec![Opcode::Memoize.byte(); 100_000]].concat();
    assert!(peak(&memo) < 80 * memo.len(), "{}", peak(&memo));
}

fn the_operations_themselves_are_borrowed() {
    let pickle = [
        b"(".repeat(100_000),
        b"X\x04\0\0\0text".repeat(100_000),
        b"t.".to_vec(),
    ]
    .concat();
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    assert_eq!(Ops::new(&pickle).filter(Result::is_ok).count(), 200_002);
    assert_eq!(ALLOCATOR.peak_usage(), before);
}
