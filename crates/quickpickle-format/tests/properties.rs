//! Properties of the reader on arbitrary bytes, and on a source that is nothing like a slice.

use std::io::{self, BufRead, Cursor, Read};

use proptest::prelude::*;
use quickpickle_format::{
    Error, ErrorKind, Listing, Opcode, Ops, SliceSource, Source, Visitor, read,
};

/// A source over [`Read`], byte by byte and with no look ahead: as far from a slice as a source can be.
struct Trickle {
    input: Cursor<Vec<u8>>,
    taken: Vec<u8>,
}

impl Trickle {
    fn end(&self, error: io::Error, kind: ErrorKind) -> Error {
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        Error::new(kind, self.input.get_ref().len() as u64)
    }
}

impl Source for Trickle {
    type Error = Error;

    fn opcode(&mut self) -> Result<u8, Error> {
        let mut byte = [0];
        self.input
            .read_exact(&mut byte)
            .map_err(|error| self.end(error, ErrorKind::UnexpectedEnd))?;
        Ok(byte[0])
    }

    fn byte(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn bytes(&mut self, n: usize) -> Result<&[u8], Error> {
        self.taken.clear();
        let found = self
            .input
            .by_ref()
            .take(n as u64)
            .read_to_end(&mut self.taken);
        if found.is_ok_and(|found| found == n) {
            return Ok(&self.taken);
        }
        Err(self.end(io::ErrorKind::UnexpectedEof.into(), ErrorKind::Truncated))
    }

    fn line(&mut self) -> Result<&[u8], Error> {
        self.taken.clear();
        let _ = self.input.read_until(b'\n', &mut self.taken);
        match self.taken.pop() {
            Some(b'\n') => Ok(&self.taken),
            _ => Err(self.end(io::ErrorKind::UnexpectedEof.into(), ErrorKind::Truncated)),
        }
    }

    fn fill(&mut self, into: &mut [u8]) -> Result<(), Error> {
        self.input
            .read_exact(into)
            .map_err(|error| self.end(error, ErrorKind::Truncated))
    }

    fn offset(&self) -> u64 {
        self.input.position()
    }

    fn remaining(&self) -> Option<u64> {
        None
    }

    fn peek(&self) -> &[u8] {
        &[]
    }
}

/// Writes down what it visits, from any source.
#[derive(Default)]
struct Trace {
    opcodes: Vec<(Opcode, u64)>,
    visits: Vec<String>,
}

macro_rules! trace {
    (plain: $($plain:ident)*; value: $($value:ident: $type:ty),*; payload: $($payload:ident: $length:ty),*;
     line: $($line:ident)*; lines: $($lines:ident)*;) => {
        impl<S: Source> Visitor<S> for Trace {
            type Error = S::Error;

            fn opcode(&mut self, opcode: Opcode, at: u64) {
                self.opcodes.push((opcode, at));
            }
            $(fn $plain(&mut self, _: &mut S) -> Result<(), S::Error> {
                self.visits.push(stringify!($plain).to_owned());
                Ok(())
            })*
            $(fn $value(&mut self, _: &mut S, value: $type) -> Result<(), S::Error> {
                self.visits.push(format!("{} {value:?}", stringify!($value)));
                Ok(())
            })*
            $(fn $payload(&mut self, source: &mut S, len: $length) -> Result<(), S::Error> {
                let payload = source.bytes(usize::try_from(len).unwrap_or(usize::MAX))?;
                self.visits.push(format!("{} {payload:?}", stringify!($payload)));
                Ok(())
            })*
            $(fn $line(&mut self, source: &mut S) -> Result<(), S::Error> {
                let line = source.line()?;
                self.visits.push(format!("{} {line:?}", stringify!($line)));
                Ok(())
            })*
            $(fn $lines(&mut self, source: &mut S) -> Result<(), S::Error> {
                let module = source.line()?.to_vec();
                let name = source.line()?;
                self.visits.push(format!("{} {module:?} {name:?}", stringify!($lines)));
                Ok(())
            })*
        }
    };
}

trace! {
    plain: stop none next_buffer readonly_buffer mark pop pop_mark dup empty_tuple tuple1 tuple2 tuple3 tuple
        empty_list list append appends empty_dict dict setitem setitems empty_set additems frozenset memoize
        stack_global binpersid reduce build obj newobj newobj_ex;
    value: proto: u8, frame: u64, boolean: bool, int: i32, float: f64, put: u32, get: u32, ext: i32;
    payload: long: usize, string: usize, unicode: u64, bytes: u64, bytearray: u64;
    line: int_text long_text float_text string_text unicode_text put_text get_text persid_text;
    lines: global inst;
}

fn trace(source: &mut impl Source<Error = Error>) -> (Trace, Result<(), Error>) {
    let mut trace = Trace::default();
    let result = read(source, &mut trace);
    (trace, result)
}

/// Mostly well-formed operations in any order, now and then arbitrary bytes.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let operation = prop_oneof![
        8 => proptest::sample::select(Opcode::ALL).prop_flat_map(operation),
        1 => proptest::collection::vec(any::<u8>(), 0..12),
    ];
    proptest::collection::vec(operation, 0..40).prop_map(|operations| operations.concat())
}

/// One opcode with an argument that is well formed most of the time.
fn operation(opcode: Opcode) -> impl Strategy<Value = Vec<u8>> {
    use quickpickle_format::opcode::ArgumentKind as Kind;
    (
        any::<u64>(),
        proptest::collection::vec(any::<u8>(), 0..20),
        "[0-9]{1,3}",
    )
        .prop_map(move |(bits, payload, digits)| {
            let fixed = bits.to_le_bytes();
            let counted =
                |width: usize| [&(payload.len() as u64).to_le_bytes()[..width], &payload].concat();
            let argument = match opcode.argument() {
                Kind::Nothing => vec![],
                Kind::Uint1 => fixed[..1].to_vec(),
                Kind::Uint2 => fixed[..2].to_vec(),
                Kind::Int4 | Kind::Uint4 => fixed[..4].to_vec(),
                Kind::Uint8 | Kind::Float8 => fixed.to_vec(),
                Kind::String1 | Kind::Bytes1 | Kind::Unicode1 | Kind::Long1 => counted(1),
                Kind::String4 | Kind::Bytes4 | Kind::Unicode4 | Kind::Long4 => counted(4),
                Kind::Bytes8 | Kind::ByteArray8 | Kind::Unicode8 => counted(8),
                Kind::StringLine => format!("'{digits}'\n").into_bytes(),
                Kind::TextLinePair => format!("{digits}\nname\n").into_bytes(),
                Kind::DecimalLine
                | Kind::LongLine
                | Kind::FloatLine
                | Kind::TextLine
                | Kind::UnicodeLine => format!("{digits}\n").into_bytes(),
            };
            [vec![opcode.byte()], argument].concat()
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn operations_tile_the_input(data in bytes()) {
        let mut ops = Ops::new(&data);
        let mut end = 0;
        while let Some(op) = ops.next() {
            match op {
                Ok(op) => {
                    prop_assert_eq!(op.offset, end);
                    prop_assert_eq!(op.opcode.byte(), data[op.offset as usize]);
                    end = ops.offset();
                }
                Err(error) => {
                    prop_assert!(error.offset >= end && error.offset <= data.len() as u64);
                    prop_assert!(ops.next().is_none());
                }
            }
        }
        prop_assert_eq!(ops.rest(), &data[ops.offset() as usize..]);
    }

    #[test]
    fn every_source_reads_the_same(data in bytes()) {
        let mut slice = SliceSource::new(&data);
        let mut trickle = Trickle { input: Cursor::new(data.clone()), taken: Vec::new() };
        let (expected, result) = trace(&mut slice);
        let (found, same) = trace(&mut trickle);
        prop_assert_eq!(found.visits, expected.visits);
        prop_assert_eq!(&found.opcodes, &expected.opcodes);
        prop_assert_eq!(&same, &result);
        if result.is_ok() {
            prop_assert_eq!(slice.offset(), trickle.offset());
        }
    }

    #[test]
    fn visitor_and_iterator_agree(data in bytes()) {
        let (trace, result) = trace(&mut SliceSource::new(&data));
        let (ops, errors): (Vec<_>, Vec<_>) = Ops::new(&data).partition(Result::is_ok);
        let ops: Vec<_> = ops.into_iter().flatten().map(|op| (op.opcode, op.offset)).collect();
        // The hook also announces the operation that then fails.
        prop_assert_eq!(&trace.opcodes[..ops.len()], &ops);
        prop_assert_eq!(errors.into_iter().next().and_then(Result::err), result.err());
    }

    #[test]
    fn a_listing_has_a_line_for_each_operation(data in bytes(), indent in 0..9_usize, column in 0..60_usize) {
        let ops = Ops::new(&data).filter(Result::is_ok).count();
        let lines: Vec<_> = Listing::new(&data).indent(indent).annotate(column).collect();
        let good = lines.iter().filter(|line| line.is_ok()).count();
        match lines.last() {
            // One more for the summary.
            Some(Ok(_)) => prop_assert_eq!(good, ops + 1),
            Some(Err(_)) => prop_assert!(good <= ops + 1 && lines.len() == good + 1),
            None => prop_assert!(false, "a listing always says something"),
        }
    }
}
