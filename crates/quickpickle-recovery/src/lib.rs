//! A crash-safe store for what a cluster master must not forget: workers, applications, drivers.
//!
//! Once [`PersistenceEngine::persist`] has returned `Ok` at the default level, [`Durability::Always`], the value is on the device and
//! survives the process, the kernel and the power. Nothing is lost silently: an incomplete last write is dropped and reported, damage
//! anywhere else is found, put aside and reported, and after a write error no later write answers `Ok`.
//!
//! From the bottom: [`storage`] is what is asked of the operating system; [`LogEngine`] (the default), [`FileSystemEngine`],
//! `ZooKeeperEngine` and [`BlackHoleEngine`] keep names and bytes behind [`PersistenceEngine`]; [`Compressed`] goes around any of them;
//! [`Recovery`] puts Rust types on top through a [`Serializer`]; [`Config`] makes an engine from settings in Spark's terms.

#![forbid(unsafe_code)]

mod black_hole;
mod compression;
mod config;
mod engine;
mod entry;
mod error;
mod file_system;
mod lock;
mod log;
mod names;
mod recovery;
mod serializer;
pub mod spark;
mod spark_wire;
pub mod storage;
#[cfg(feature = "zookeeper")]
mod zookeeper;

pub use black_hole::BlackHoleEngine;
pub use compression::{Compressed, Compression, compress, decompress};
pub use config::{Config, EngineKind};
pub use engine::{CompactReport, Damage, Durability, PersistenceEngine, Report, Stats, Wait};
pub use entry::{CodecId, Entry, MAX_NAME_BYTES, MAX_VALUE_BYTES};
pub use error::{Error, ErrorKind, Result};
pub use file_system::{FileSystemEngine, FileSystemOptions};
pub use log::{LogEngine, LogOptions};
pub use recovery::{AsEngine, Recovery};
pub use serializer::{Compact, Pickle, Record, Serializer};
#[cfg(feature = "zookeeper")]
pub use zookeeper::{ZooKeeperEngine, ZooKeeperOptions};
