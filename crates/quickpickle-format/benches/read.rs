//! How fast pickles are read: pushed into a visitor, iterated as data, listed.
//!
//! `cargo bench -p quickpickle-format`. The visitor only counts, which leaves the cost of the grammar itself: what
//! an unpickler pays for sharing the reader. Each answer is checked before it is timed.

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use quickpickle_format::{Error, Listing, Opcode, Ops, SliceSource, Source, Visitor, read};

fn main() {
    divan::main();
}

/// Counts operations and touches every argument.
#[derive(Default)]
struct Count {
    operations: usize,
    sum: u64,
}

macro_rules! count {
    (plain: $($plain:ident)*; value: $($value:ident: $type:ty),*; payload: $($payload:ident: $length:ty),*;
     line: $($line:ident)*; lines: $($lines:ident)*;) => {
        impl<S: Source> Visitor<S> for Count {
            type Error = S::Error;

            $(#[inline(always)]
            fn $plain(&mut self, _: &mut S) -> Result<(), S::Error> {
                self.operations += 1;
                Ok(())
            })*
            $(#[inline(always)]
            fn $value(&mut self, _: &mut S, value: $type) -> Result<(), S::Error> {
                self.operations += 1;
                self.sum = self.sum.wrapping_add(value as u64);
                Ok(())
            })*
            $(#[inline(always)]
            fn $payload(&mut self, source: &mut S, len: $length) -> Result<(), S::Error> {
                self.operations += 1;
                let payload = source.bytes(usize::try_from(len).unwrap_or(usize::MAX))?;
                self.sum = self.sum.wrapping_add(payload.len() as u64);
                Ok(())
            })*
            $(#[inline(always)]
            fn $line(&mut self, source: &mut S) -> Result<(), S::Error> {
                self.operations += 1;
                self.sum = self.sum.wrapping_add(source.line()?.len() as u64);
                Ok(())
            })*
            $(#[inline(always)]
            fn $lines(&mut self, source: &mut S) -> Result<(), S::Error> {
                self.operations += 1;
                let len = source.line()?.len() + source.line()?.len();
                self.sum = self.sum.wrapping_add(len as u64);
                Ok(())
            })*
        }
    };
}

count! {
    plain: stop none next_buffer readonly_buffer mark pop pop_mark dup empty_tuple tuple1 tuple2 tuple3 tuple
        empty_list list append appends empty_dict dict setitem setitems empty_set additems frozenset memoize
        stack_global binpersid reduce build obj newobj newobj_ex;
    value: proto: u8, frame: u64, boolean: bool, int: i32, float: f64, put: u32, get: u32, ext: i32;
    payload: long: usize, string: usize, unicode: u64, bytes: u64, bytearray: u64;
    line: int_text long_text float_text string_text unicode_text put_text get_text persid_text;
    lines: global inst;
}

/// What is in the pickle.
#[derive(Debug, Clone, Copy)]
enum Data {
    /// 100,000 small ints.
    Ints,
    /// 20,000 records of an int, a short str, a float and a tuple.
    Records,
    /// The same records in protocol 0.
    Lines,
}

const DATA: [Data; 3] = [Data::Ints, Data::Records, Data::Lines];

impl Data {
    /// The pickle, in the opcodes CPython would write.
    fn pickle(self) -> Vec<u8> {
        let mut pickle = vec![Opcode::Mark.byte()];
        match self {
            Self::Ints => {
                for value in 0..100_000_u32 {
                    pickle.push(Opcode::BinInt2.byte());
                    pickle.extend((value as u16).to_le_bytes());
                }
            }
            Self::Records => {
                // The keys, which the records get from the memo.
                pickle.extend(b"\x8c\x02id\x940\x8c\x04name\x940\x8c\x01x\x940\x8c\x01t\x940");
                for value in 0..20_000_u16 {
                    let [low, high] = value.to_le_bytes();
                    let name = value.to_string();
                    pickle.extend(b"}\x94(h\x00M");
                    pickle.extend([
                        low,
                        high,
                        b'h',
                        1,
                        Opcode::ShortBinUnicode.byte(),
                        name.len() as u8,
                    ]);
                    pickle.extend(name.as_bytes());
                    pickle.extend(b"\x94h\x02G");
                    pickle.extend(f64::from(value).to_be_bytes());
                    pickle.extend(b"h\x03K\x05N\x86\x94u");
                }
            }
            Self::Lines => {
                for value in 0..20_000 {
                    let (dict, name) = (2 * value, 2 * value + 1);
                    let record = format!(
                        "(dp{dict}\nVid\nI{value}\nsVname\nV{value}\np{name}\nsVx\nF{value}.5\ns"
                    );
                    pickle.extend(record.as_bytes());
                }
            }
        }
        pickle.extend(b"l.");
        pickle
    }
}

/// Times `count`, which answers how many operations there are, after checking that.
fn bench(bencher: Bencher<'_, '_>, data: Data, count: impl Fn(&[u8]) -> usize + Sync) {
    let pickle = data.pickle();
    let operations = Ops::new(&pickle).filter(Result::is_ok).count();
    assert_eq!(count(&pickle), operations);
    bencher
        .counter(BytesCount::new(pickle.len()))
        .counter(ItemsCount::new(operations))
        .bench(|| count(black_box(&pickle)));
}

#[divan::bench(args = DATA)]
fn visit(bencher: Bencher<'_, '_>, data: Data) {
    bench(bencher, data, |pickle| {
        let mut count = Count::default();
        let result: Result<(), Error> = read(&mut SliceSource::new(pickle), &mut count);
        assert!(result.is_ok());
        black_box(count.sum);
        count.operations
    });
}

#[divan::bench(args = DATA)]
fn iterate(bencher: Bencher<'_, '_>, data: Data) {
    bench(bencher, data, |pickle| {
        Ops::new(pickle).map_while(Result::ok).count()
    });
}

#[divan::bench(args = DATA)]
fn list(bencher: Bencher<'_, '_>, data: Data) {
    // One line more than operations, the summary.
    bench(bencher, data, |pickle| {
        Listing::new(pickle).filter(Result::is_ok).count() - 1
    });
}
