//! Explanations of arbitrary bytes: bytes add up, and rewriting and counting agree on what a pickle is.

#![no_main]

use libfuzzer_sys::fuzz_target;
use quickpickle_format::explain::{Node, explain};
use quickpickle_format::statistics::Statistics;
use quickpickle_format::{Error, optimize};

fn check(node: &Node) {
    let below: u64 = node.children.iter().map(|child| child.bytes).sum();
    assert!(below <= node.bytes && node.largest <= node.bytes && node.count > 0);
    node.children.iter().for_each(check);
}

fuzz_target!(|data: &[u8]| {
    if let Ok(found) = explain(data, |_| Ok::<_, Error>(())) {
        assert!(found.bytes <= data.len() as u64 && found.root.bytes <= found.bytes);
        check(&found.root);
        assert_eq!(Statistics::of(data).map(|found| found.bytes), Ok(found.bytes));
    }
    if let Ok(made) = optimize(data) {
        assert_eq!(optimize(&made).as_ref(), Ok(&made), "nothing is left to drop");
    }
});
