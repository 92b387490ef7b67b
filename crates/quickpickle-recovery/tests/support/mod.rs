//! What several tests share.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod simulated;
#[cfg(feature = "zookeeper")]
pub(crate) mod zookeeper;
