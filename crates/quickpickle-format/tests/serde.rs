//! Rust values through pickles and back, pickles that Python wrote, and pickles that want more than plain data.
//!
//! The Python ones were written by CPython 3.11 and are given as bytes.
#![cfg(feature = "serde")]

use std::collections::BTreeMap;

use quickpickle_format::Listing;
use quickpickle_format::serde::{from_slice, to_vec};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Shape {
    Point,
    Circle(f64),
    Line(i32, i32),
    Box { width: u8, height: u8 },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Everything {
    flag: bool,
    small: i8,
    number: i64,
    unsigned: u64,
    wide: i128,
    widest: u128,
    real: f64,
    letter: char,
    text: String,
    nothing: Option<u8>,
    something: Option<u8>,
    list: Vec<u32>,
    tuple: (u8, String),
    map: BTreeMap<String, Vec<Option<bool>>>,
    shapes: Vec<Shape>,
    nested: Vec<Everything>,
    unit: (),
}

fn everything(depth: usize) -> Everything {
    Everything {
        flag: true,
        small: -128,
        number: i64::MIN,
        unsigned: u64::MAX,
        wide: i128::MIN,
        widest: u128::MAX,
        real: -0.1,
        letter: '🦀',
        text: "Ünïcode\0".repeat(depth * 100),
        nothing: None,
        something: Some(255),
        list: (0..1500).collect(),
        tuple: (7, String::new()),
        map: BTreeMap::from([
            ("a".into(), vec![None, Some(true)]),
            (String::new(), vec![]),
        ]),
        shapes: vec![
            Shape::Point,
            Shape::Circle(1.5),
            Shape::Line(-1, i32::MAX),
            Shape::Box {
                width: 1,
                height: 2,
            },
        ],
        nested: (0..depth).map(|_| everything(depth - 1)).collect(),
        unit: (),
    }
}

#[test]
fn values_come_back_as_they_were() {
    for depth in 0..4 {
        let value = everything(depth);
        let pickle = to_vec(&value).unwrap();
        assert_eq!(from_slice::<Everything>(&pickle).unwrap(), value);
    }
}

#[test]
fn large_strings_and_many_frames_come_back() {
    let value: Vec<String> = (0..50).map(|i| "x".repeat(i * 5000)).collect();
    let pickle = to_vec(&value).unwrap();
    assert_eq!(from_slice::<Vec<String>>(&pickle).unwrap(), value);
}

#[test]
fn integers_of_every_size_come_back() {
    for shift in 0..127 {
        for value in [
            1_i128 << shift,
            (1_i128 << shift) - 1,
            -(1_i128 << shift),
            -(1_i128 << shift) - 1,
        ] {
            assert_eq!(from_slice::<i128>(&to_vec(&value).unwrap()).unwrap(), value);
            if let Ok(value) = u64::try_from(value) {
                assert_eq!(from_slice::<u64>(&to_vec(&value).unwrap()).unwrap(), value);
            }
            if let Ok(value) = i64::try_from(value) {
                assert_eq!(from_slice::<i64>(&to_vec(&value).unwrap()).unwrap(), value);
            }
        }
    }
    assert!(from_slice::<u8>(&to_vec(&256).unwrap()).is_err());
}

#[test]
fn names_of_fields_are_written_once() {
    #[derive(Serialize)]
    struct Row {
        rather_long_name: u8,
    }
    let rows: Vec<Row> = (0..100)
        .map(|i| Row {
            rather_long_name: i,
        })
        .collect();
    let pickle = to_vec(&rows).unwrap();
    let name = b"rather_long_name";
    assert_eq!(
        pickle
            .windows(name.len())
            .filter(|window| window == name)
            .count(),
        1
    );
}

#[test]
fn what_is_written_passes_the_checks_of_the_listing() {
    let pickle = to_vec(&everything(2)).unwrap();
    for line in Listing::new(&pickle[..]) {
        line.unwrap();
    }
}

#[test]
fn pickles_of_python_are_read_in_every_protocol() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Data {
        a: Vec<i64>,
        b: (f64, Option<bool>),
        c: String,
    }
    let expected = Data {
        a: vec![1, 1 << 40, -5],
        b: (0.5, Some(true)),
        c: "é".into(),
    };
    let pickles: [&[u8]; 6] = [
        b"(dp0\nVa\np1\n(lp2\nI1\naL1099511627776L\naI-5\nasVb\np3\n(F0.5\nI01\ntp4\nsVc\np5\nV\xe9\np6\ns.",
        b"}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01L1099511627776L\nJ\xfb\xff\xff\xffeX\x01\x00\x00\x00bq\x03(G?\xe0\x00\x00\x00\x00\x00\x00I01\ntq\x04X\x01\x00\x00\x00cq\x05X\x02\x00\x00\x00\xc3\xa9q\x06u.",
        b"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01\x8a\x06\x00\x00\x00\x00\x00\x01J\xfb\xff\xff\xffeX\x01\x00\x00\x00bq\x03G?\xe0\x00\x00\x00\x00\x00\x00\x88\x86q\x04X\x01\x00\x00\x00cq\x05X\x02\x00\x00\x00\xc3\xa9q\x06u.",
        b"\x80\x03}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01\x8a\x06\x00\x00\x00\x00\x00\x01J\xfb\xff\xff\xffeX\x01\x00\x00\x00bq\x03G?\xe0\x00\x00\x00\x00\x00\x00\x88\x86q\x04X\x01\x00\x00\x00cq\x05X\x02\x00\x00\x00\xc3\xa9q\x06u.",
        b"\x80\x04\x955\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01\x8a\x06\x00\x00\x00\x00\x00\x01J\xfb\xff\xff\xffe\x8c\x01b\x94G?\xe0\x00\x00\x00\x00\x00\x00\x88\x86\x94\x8c\x01c\x94\x8c\x02\xc3\xa9\x94u.",
        b"\x80\x05\x955\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01\x8a\x06\x00\x00\x00\x00\x00\x01J\xfb\xff\xff\xffe\x8c\x01b\x94G?\xe0\x00\x00\x00\x00\x00\x00\x88\x86\x94\x8c\x01c\x94\x8c\x02\xc3\xa9\x94u.",
    ];
    for pickle in pickles {
        assert_eq!(from_slice::<Data>(pickle).unwrap(), expected, "{pickle:?}");
    }
}

#[test]
fn classes_and_calls_are_refused_by_name() {
    for (pickle, opcode) in [
        (&b"cos\nsystem\n(S'true'\ntR."[..], "GLOBAL"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "STACK_GLOBAL"),
        (b"Pid\n.", "PERSID"),
    ] {
        let message = from_slice::<u8>(pickle).unwrap_err().to_string();
        assert!(
            message.contains(opcode) && message.contains("plain data"),
            "{message}"
        );
    }
}

#[test]
fn circles_and_bombs_are_errors_and_end_soon() {
    #[derive(Debug, Deserialize)]
    #[serde(transparent)]
    struct Tree(#[expect(dead_code, reason = "only its depth matters")] Vec<Tree>);
    // A list that holds itself.
    assert!(from_slice::<Tree>(b"]q\x00h\x00a.").is_err());
    // Each list holds the one before twice: 2^60 objects in 300 bytes.
    let mut bomb = b"]q\x00".to_vec();
    for level in 0..60_u8 {
        bomb.extend_from_slice(&[
            b'0',
            b']',
            b'q',
            level + 1,
            b'(',
            b'h',
            level,
            b'h',
            level,
            b'e',
        ]);
    }
    bomb.push(b'.');
    assert!(
        from_slice::<Tree>(&bomb)
            .unwrap_err()
            .to_string()
            .contains("shares")
    );
    // Deeper than serde may recurse.
    let mut deep = vec![b']'; 100_000];
    deep.extend(std::iter::repeat_n(b'a', 99_999));
    deep.push(b'.');
    assert!(
        from_slice::<Tree>(&deep)
            .unwrap_err()
            .to_string()
            .contains("deep")
    );
}

#[test]
fn every_truncation_and_every_changed_byte_ends_in_a_value_or_an_error() {
    let good = to_vec(&everything(1)).unwrap();
    for len in (0..good.len()).step_by(7) {
        assert!(from_slice::<Everything>(&good[..len]).is_err(), "{len}");
    }
    let small = to_vec(&(
        1,
        "two",
        Some(3.0),
        vec![4_u64; 3],
        Shape::Box {
            width: 1,
            height: 2,
        },
    ))
    .unwrap();
    for at in 0..small.len() {
        for byte in 0..=255 {
            let mut bytes = small.clone();
            bytes[at] = byte;
            // Whatever it says, it says it without a panic.
            let _ = from_slice::<(u8, String, Option<f64>, Vec<u64>, Shape)>(&bytes);
        }
    }
    let mut more = small;
    more.push(b'.');
    assert!(
        from_slice::<(u8, String, Option<f64>, Vec<u64>, Shape)>(&more)
            .unwrap_err()
            .to_string()
            .contains("follow")
    );
}

/// Python itself is asked where there is one.
#[test]
fn python_reads_what_is_written() {
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[derive(Serialize)]
    struct Data {
        id: u8,
        shapes: Vec<Shape>,
        other: (f64, Option<i64>, Vec<Data>),
    }
    let inner = Data {
        id: 1,
        shapes: vec![Shape::Point, Shape::Line(-1, 70_000)],
        other: (0.5, Some(-1 << 40), vec![]),
    };
    let pickle = to_vec(&Data {
        id: 2,
        shapes: vec![],
        other: (1.0, None, vec![inner]),
    })
    .unwrap();
    let program = "import pickle, sys; print(pickle.load(sys.stdin.buffer))";
    let python = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut python) = python else {
        println!("SKIPPED: there is no python3");
        return;
    };
    python.stdin.take().unwrap().write_all(&pickle).unwrap();
    let output = String::from_utf8(python.wait_with_output().unwrap().stdout).unwrap();
    let inner =
        "{'id': 1, 'shapes': ['Point', {'Line': (-1, 70000)}], 'other': (0.5, -1099511627776, [])}";
    assert_eq!(
        output.trim(),
        format!("{{'id': 2, 'shapes': [], 'other': (1.0, None, [{inner}])}}")
    );
}
