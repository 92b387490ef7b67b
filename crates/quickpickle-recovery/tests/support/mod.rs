//! What several tests share.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod simulated;

/// Says that a test could not run. Written past the test harness, which would keep it to itself.
pub(crate) fn skipped(why: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

#[cfg(feature = "zookeeper")]
pub(crate) mod zookeeper;
