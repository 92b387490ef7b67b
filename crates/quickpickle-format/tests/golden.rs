//! Every pickle under `tests/golden` at the root: what is listed is what Python's `pickletools` lists.
//!
//! The files come from `tests/golden/generate.py`. A listing there ends in `error` where `pickletools` raised.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use quickpickle_format::{Error, Listing, Opcode, Ops};

fn golden() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let mut found = Vec::new();
    for folder in fs::read_dir(&root).expect("the golden folder is there") {
        let folder = folder.expect("readable").path();
        if folder.is_dir() {
            let files = fs::read_dir(folder)
                .expect("readable")
                .map(|file| file.expect("readable").path());
            found.extend(files.filter(|path| path.extension().is_some_and(|ext| ext == "pickle")));
        }
    }
    found.sort();
    // A test over no files would hold too.
    assert!(
        found.len() > 300,
        "only {} golden pickles under {}",
        found.len(),
        root.display()
    );
    found
}

fn list(data: &[u8]) -> (String, Option<Error>) {
    let mut text = String::new();
    for line in Listing::new(data) {
        match line {
            Ok(line) => text.extend([&line, "\n"]),
            Err(error) => return (text, Some(error)),
        }
    }
    (text, None)
}

#[test]
fn listings_are_those_of_pickletools() {
    for path in golden() {
        let data = fs::read(&path).expect("readable");
        let expected = fs::read_to_string(path.with_extension("listing"))
            .expect("each pickle has its listing");
        let (text, error) = list(&data);
        let (lines, fails) = match expected.strip_suffix("error\n") {
            Some(lines) => (lines, true),
            None => (&*expected, false),
        };
        assert_eq!(text, lines, "{}", path.display());
        assert_eq!(error.is_some(), fails, "{}: {error:?}", path.display());
    }
}

#[test]
fn every_opcode_occurs() {
    let seen: HashSet<Opcode> = golden()
        .iter()
        .flat_map(|path| {
            Ops::new(&fs::read(path).expect("readable"))
                .map_while(Result::ok)
                .map(|op| op.opcode)
                .collect::<Vec<_>>()
        })
        .collect();
    let missing: Vec<_> = Opcode::ALL
        .iter()
        .filter(|opcode| !seen.contains(opcode))
        .collect();
    assert!(missing.is_empty(), "no golden pickle has {missing:?}");
}
