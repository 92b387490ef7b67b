//! A name is any text, and no name reaches outside the store.

use std::collections::BTreeSet;

use quickpickle_recovery::{ErrorKind, MAX_NAME_BYTES};

use crate::fixtures::{all, local};

fn awkward() -> Vec<String> {
    let mut names: Vec<String> = [
        "",
        ".",
        "..",
        "../escape",
        "../../escape",
        "/etc/passwd",
        "a/b/c",
        "a//b",
        "a/",
        "/a",
        "\\",
        "C:\\x",
        "nul\0byte",
        "\0",
        "line\nbreak",
        "tab\t",
        " ",
        "a b",
        "%",
        "%2f",
        "%00",
        "~",
        "LOCK",
        "STORE",
        "entries",
        "quarantine",
        "00000000000000000001.qlog",
        "x.tmp",
        "x.entry",
        "Worker",
        "worker",
        "WORKER",
        "ü",
        "u\u{308}",
        "日本語",
        "🦀",
        "\u{202e}rtl",
        "-",
        "--",
        "$(x)",
        "'",
        "\"",
        "{{x}}",
    ]
    .map(String::from)
    .into();
    names.push("x".repeat(10_000));
    names.push("é/".repeat(5_000));
    names.push(format!("{}a", "x".repeat(9_999)));
    names
}

#[test]
fn names_of_any_text_are_kept_apart_and_survive_reopening() {
    for fixture in all() {
        let names = awkward();
        let engine = fixture.open();
        for (at, name) in names.iter().enumerate() {
            engine
                .persist(name, &at.to_le_bytes())
                .unwrap_or_else(|error| panic!("{}: {name:?}: {error}", fixture.name));
        }
        engine.close().unwrap();
        drop(engine);
        let engine = fixture.open();
        assert!(
            engine.opening_report().is_sound(),
            "{}: {:?}",
            fixture.name,
            engine.opening_report()
        );
        for (at, name) in names.iter().enumerate() {
            assert_eq!(
                engine.get(name).unwrap().unwrap().value,
                at.to_le_bytes(),
                "{}: {name:?}",
                fixture.name
            );
        }
        let expected: BTreeSet<String> = names.iter().cloned().collect();
        let found = engine.names("").unwrap();
        assert!(
            found.iter().eq(expected.iter()),
            "{}: names come ordered and complete",
            fixture.name
        );
        for name in names.iter().step_by(2) {
            engine.unpersist(name).unwrap();
        }
        assert_eq!(
            engine.names("").unwrap().len(),
            names.len() / 2,
            "{}",
            fixture.name
        );
    }
}

#[test]
fn no_name_reaches_outside_the_store() {
    for fixture in local() {
        let outside = tempfile::tempdir().unwrap();
        let store = outside.path().join("deep/store");
        let config = quickpickle_recovery::Config {
            directory: Some(store.clone()),
            ..fixture.config.clone()
        };
        let engine = config.open().unwrap();
        for name in awkward() {
            engine.persist(&name, b"x").unwrap();
        }
        engine.close().unwrap();
        let beside: Vec<_> = std::fs::read_dir(outside.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(beside, ["deep"], "{}", fixture.name);
        let within: Vec<_> = std::fs::read_dir(outside.path().join("deep"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(within, ["store"], "{}", fixture.name);
    }
}

#[test]
fn a_name_beyond_the_limit_is_refused_and_harms_nothing() {
    for fixture in all() {
        let engine = fixture.open();
        let error = engine
            .persist(&"x".repeat(MAX_NAME_BYTES + 1), b"")
            .unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::TooLarge,
            "{}: {error}",
            fixture.name
        );
        engine.persist("x", b"still fine").unwrap();
        assert_eq!(engine.read("").unwrap().len(), 1, "{}", fixture.name);
    }
}
