//! Settings in the terms Spark uses, by value, from a file or from the environment, and the engine they describe.
//!
//! A Spark property that is none of ours is left alone; one of ours with a value that makes no sense is an error, never a default.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::black_hole::BlackHoleEngine;
use crate::compression::{Compressed, Compression};
use crate::engine::{Durability, PersistenceEngine, Wait};
use crate::entry::CodecId;
use crate::error::{Error, ErrorKind, Result};
use crate::file_system::{FileSystemEngine, FileSystemOptions, MARKER};
use crate::log::{LogEngine, LogOptions};

/// Properties of ours that Spark does not have begin with this.
const OWN_PREFIX: &str = "spark.quickpickle.recovery.";
/// Environment variables begin with this; the rest is the setting, in capitals.
const ENV_PREFIX: &str = "QUICKPICKLE_RECOVERY_";
/// Where Spark's own scripts put properties for masters.
const SPARK_ENV: &str = "SPARK_DAEMON_JAVA_OPTS";

/// Which engine keeps the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EngineKind {
    /// The embedded log.
    #[default]
    Log,
    /// One file per entry.
    FileSystem,
    /// ZooKeeper nodes.
    ZooKeeper,
    /// Nothing is kept.
    BlackHole,
}

impl EngineKind {
    /// Reads an engine's name, or one of Spark's recovery modes.
    pub fn parse(text: &str) -> Result<Self> {
        match text.trim().to_ascii_lowercase().replace('-', "_").as_str() {
            "log" => Ok(Self::Log),
            "file_system" | "filesystem" => Ok(Self::FileSystem),
            "zookeeper" => Ok(Self::ZooKeeper),
            "black_hole" | "blackhole" | "none" => Ok(Self::BlackHole),
            _ => Err(Error::new(
                ErrorKind::Config,
                "engine",
                format!("{text:?} is not an engine; use log, file_system, zookeeper or black_hole"),
            )),
        }
    }

    /// As it is written in settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::FileSystem => "file_system",
            Self::ZooKeeper => "zookeeper",
            Self::BlackHole => "black_hole",
        }
    }
}

/// Everything needed to open an engine.
///
/// ```
/// use quickpickle_recovery::{Config, PersistenceEngine};
///
/// # fn main() -> quickpickle_recovery::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().display();
/// let config = Config::from_properties(&format!(
///     "spark.deploy.recoveryDirectory      {path}\n\
///      spark.quickpickle.recovery.sync     group(20)\n"
/// ))?;
/// let engine = config.open()?;
/// engine.persist("driver_1", b"submitted")?;
/// engine.close()
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Which engine. `None` asks the directory: a store of files stays one, anything else is a log.
    pub engine: Option<EngineKind>,
    /// Where the log or the files are.
    pub directory: Option<PathBuf>,
    /// ZooKeeper servers: `host:port,host:port`.
    pub zookeeper_url: Option<String>,
    /// ZooKeeper node everything is under; `/spark` unless set, as Spark has it.
    pub zookeeper_dir: Option<String>,
    /// What the caller's serialiser is, for layers above. Engines do not look at values.
    pub serializer: Option<CodecId>,
    /// How new values are compressed.
    pub compression: Compression,
    /// When a change counts as stored.
    pub durability: Durability,
    /// Refuse a damaged store.
    pub strict: bool,
    /// Open for reading only.
    pub read_only: bool,
    /// What to do while another process holds the store.
    pub wait: Wait,
    /// Ends the wait when set.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Longest any call to ZooKeeper takes; the engine's default unless set.
    pub operation_timeout: Option<Duration>,
    /// How long ZooKeeper keeps the lock of a master it does not hear from; the engine's default unless set.
    pub session_timeout: Option<Duration>,
    /// Size of a log segment; the log's default unless set.
    pub segment_bytes: Option<u64>,
    /// Whether the log compacts by itself; it does unless set to `false`.
    pub auto_compact: Option<bool>,
}

impl Config {
    /// A log in `directory`.
    pub fn log(directory: impl Into<PathBuf>) -> Self {
        Self {
            engine: Some(EngineKind::Log),
            directory: Some(directory.into()),
            ..Self::default()
        }
    }

    /// Files in `directory`.
    pub fn file_system(directory: impl Into<PathBuf>) -> Self {
        Self {
            engine: Some(EngineKind::FileSystem),
            directory: Some(directory.into()),
            ..Self::default()
        }
    }

    /// Nodes under `dir` on the servers `url`.
    pub fn zookeeper(url: impl Into<String>, dir: impl Into<String>) -> Self {
        Self {
            engine: Some(EngineKind::ZooKeeper),
            zookeeper_url: Some(url.into()),
            zookeeper_dir: Some(dir.into()),
            ..Self::default()
        }
    }

    /// No store at all.
    #[must_use]
    pub fn black_hole() -> Self {
        Self {
            engine: Some(EngineKind::BlackHole),
            ..Self::default()
        }
    }

    /// Reads `log:DIRECTORY`, `file_system:DIRECTORY`, `zookeeper://HOST:PORT,HOST:PORT/DIR`, `black_hole:` or a plain directory.
    pub fn from_url(url: &str) -> Result<Self> {
        let directory = |rest: &str| {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            if path.is_empty() {
                return Err(Error::new(ErrorKind::Config, url, "names no directory"));
            }
            Ok(PathBuf::from(path))
        };
        let with_directory = |engine, rest| {
            Ok(Self {
                engine,
                directory: Some(directory(rest)?),
                ..Self::default()
            })
        };
        match url.split_once(':') {
            Some(("log", rest)) => with_directory(Some(EngineKind::Log), rest),
            Some(("file_system" | "file-system" | "file" | "fs", rest)) => {
                with_directory(Some(EngineKind::FileSystem), rest)
            }
            Some(("black_hole" | "black-hole" | "blackhole", _)) => Ok(Self::black_hole()),
            Some(("zookeeper" | "zk", rest)) => {
                let rest = rest.strip_prefix("//").unwrap_or(rest);
                let (servers, dir) = rest
                    .split_once('/')
                    .map_or((rest, None), |(servers, dir)| (servers, Some(dir)));
                if servers.is_empty() {
                    return Err(Error::new(
                        ErrorKind::Config,
                        url,
                        "names no server; use zookeeper://HOST:PORT/DIR",
                    ));
                }
                let dir = dir
                    .filter(|dir| !dir.is_empty())
                    .map(|dir| format!("/{dir}"));
                Ok(Self {
                    engine: Some(EngineKind::ZooKeeper),
                    zookeeper_url: Some(servers.into()),
                    zookeeper_dir: dir,
                    ..Self::default()
                })
            }
            Some((scheme, rest)) if rest.starts_with("//") => Err(Error::new(
                ErrorKind::Config,
                url,
                format!(
                    "{scheme}: is not known; use log:, file_system:, zookeeper:, black_hole: or a plain directory"
                ),
            )),
            _ => with_directory(None, url),
        }
    }

    /// Takes one Spark property; `false` if it is none of ours.
    pub fn set(&mut self, key: &str, value: &str) -> Result<bool> {
        let value = value.trim();
        let at = |error: Error| Error::new(error.kind(), key, error.to_string());
        match key {
            "spark.deploy.recoveryMode" => match value.to_ascii_uppercase().as_str() {
                // The engine is named by a property of its own then.
                "CUSTOM" => {}
                "ROCKSDB" => {
                    return Err(Error::new(
                        ErrorKind::Config,
                        key,
                        "ROCKSDB is not an engine here; use LOG",
                    ));
                }
                _ => self.engine = Some(EngineKind::parse(value).map_err(at)?),
            },
            "spark.deploy.recoveryDirectory" => {
                self.directory = (!value.is_empty()).then(|| value.into())
            }
            "spark.deploy.recoverySerializer" => self.set_own("serializer", value).map_err(at)?,
            "spark.deploy.recoveryCompressionCodec" => {
                self.set_own("compression", value).map_err(at)?
            }
            "spark.deploy.zookeeper.url" => self.zookeeper_url = Some(value.into()),
            "spark.deploy.zookeeper.dir" => self.zookeeper_dir = Some(value.into()),
            _ => match key.strip_prefix(OWN_PREFIX) {
                Some(setting) => self.set_own(setting, value).map_err(at)?,
                None => return Ok(false),
            },
        }
        Ok(true)
    }

    /// Takes one setting by its own name.
    fn set_own(&mut self, setting: &str, value: &str) -> Result<()> {
        match setting {
            "engine" => self.engine = Some(EngineKind::parse(value)?),
            "directory" => self.directory = Some(value.into()),
            "url" => {
                let url = Self::from_url(value)?;
                self.engine = url.engine;
                self.directory = url.directory.or(self.directory.take());
                self.zookeeper_url = url.zookeeper_url.or(self.zookeeper_url.take());
                self.zookeeper_dir = url.zookeeper_dir.or(self.zookeeper_dir.take());
            }
            "serializer" => {
                let known = CodecId::named(&value.to_ascii_lowercase());
                let message = || {
                    format!("{value:?} is not a serialiser; use java, kryo, pickle, compact or raw")
                };
                self.serializer =
                    Some(known.ok_or_else(|| Error::new(ErrorKind::Config, "", message()))?);
            }
            "compression" => self.compression = Compression::parse(value)?,
            "sync" => self.durability = Durability::parse(value)?,
            "strict" => self.strict = parse_bool(value)?,
            "autoCompact" | "auto_compact" => self.auto_compact = Some(parse_bool(value)?),
            "wait" => self.wait = parse_wait(value)?,
            "operationTimeout" | "operation_timeout" => {
                self.operation_timeout = Some(parse_millis(value)?)
            }
            "sessionTimeout" | "session_timeout" => {
                self.session_timeout = Some(parse_millis(value)?)
            }
            "segmentBytes" | "segment_bytes" => {
                let bytes = value.parse().ok().filter(|&bytes: &u64| bytes >= 4096);
                self.segment_bytes = Some(bytes.ok_or_else(|| {
                    Error::new(ErrorKind::Config, "", "must be a number, 4096 or more")
                })?);
            }
            // The Java side's own: what a master does when a write fails, and with a record it cannot read.
            "onFailure" | "on_failure" | "onUnreadable" | "on_unreadable" => {}
            _ => {
                let message = "there is no such setting; there are engine, directory, url, serializer, compression, sync, strict, \
                               wait, operationTimeout, sessionTimeout, segmentBytes, autoCompact, onFailure and onUnreadable";
                return Err(Error::new(ErrorKind::Config, "", message));
            }
        }
        Ok(())
    }

    /// Reads properties in the form of `spark-defaults.conf`: a key, white space or `=`, a value; `#` begins a comment line.
    pub fn from_properties(text: &str) -> Result<Self> {
        let mut config = Self::default();
        for line in text.lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let end = line
                .find(|c: char| c.is_whitespace() || c == '=')
                .unwrap_or(line.len());
            let (key, rest) = line.split_at(end);
            let rest = rest.trim_start();
            config.set(key, rest.strip_prefix('=').unwrap_or(rest))?;
        }
        Ok(config)
    }

    /// Reads a properties file.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::io("read the settings", path, error))?;
        Self::from_properties(&text)
    }

    /// Reads the process environment, see [`Config::from_vars`].
    pub fn from_env() -> Result<Self> {
        Self::from_vars(
            std::env::vars_os().filter_map(|(key, value)| {
                Some((key.into_string().ok()?, value.into_string().ok()?))
            }),
        )
    }

    /// Reads `-Dkey=value` from `SPARK_DAEMON_JAVA_OPTS`, then `QUICKPICKLE_RECOVERY_*`, which wins.
    pub fn from_vars(vars: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        let mut config = Self::default();
        let vars: Vec<(String, String)> = vars.into_iter().collect();
        for (_, options) in vars.iter().filter(|(key, _)| key == SPARK_ENV) {
            for option in options.split_whitespace() {
                if let Some((key, value)) = option
                    .strip_prefix("-D")
                    .and_then(|option| option.split_once('='))
                {
                    config.set(key, value.trim_matches(['"', '\'']))?;
                }
            }
        }
        for (key, value) in &vars {
            if let Some(setting) = key.strip_prefix(ENV_PREFIX) {
                let own = config.set_own(&setting.to_ascii_lowercase(), value);
                own.map_err(|error| Error::new(error.kind(), key, error.to_string()))?;
            }
        }
        Ok(config)
    }

    /// The engine that would be opened.
    #[must_use]
    pub fn engine_kind(&self) -> EngineKind {
        self.engine.unwrap_or_else(|| match &self.directory {
            Some(directory) if directory.join(MARKER).is_file() => EngineKind::FileSystem,
            Some(_) => EngineKind::Log,
            None if self.zookeeper_url.is_some() => EngineKind::ZooKeeper,
            None => EngineKind::Log,
        })
    }

    /// Opens the engine.
    pub fn open(&self) -> Result<Box<dyn PersistenceEngine>> {
        let compression = self.compression;
        Ok(match self.engine_kind() {
            EngineKind::Log => Box::new(Compressed::new(
                LogEngine::open(self.needed_directory()?, self.log_options())?,
                compression,
            )),
            EngineKind::FileSystem => {
                let options = FileSystemOptions {
                    durability: self.durability,
                    strict: self.strict,
                    read_only: self.read_only,
                    wait: self.wait,
                    cancel: self.cancel.clone(),
                };
                Box::new(Compressed::new(
                    FileSystemEngine::open(self.needed_directory()?, options)?,
                    compression,
                ))
            }
            EngineKind::BlackHole => Box::new(BlackHoleEngine::new()),
            EngineKind::ZooKeeper => self.open_zookeeper()?,
        })
    }

    #[cfg(not(feature = "zookeeper"))]
    #[expect(
        clippy::unused_self,
        reason = "the same signature with and without the feature"
    )]
    fn open_zookeeper(&self) -> Result<Box<dyn PersistenceEngine>> {
        Err(Error::new(
            ErrorKind::Config,
            "engine",
            "this build has no zookeeper engine; build with the feature of that name",
        ))
    }

    #[cfg(feature = "zookeeper")]
    fn open_zookeeper(&self) -> Result<Box<dyn PersistenceEngine>> {
        let missing = || {
            Error::new(
                ErrorKind::Config,
                "spark.deploy.zookeeper.url",
                "names no servers; the engine needs them",
            )
        };
        let servers = self.zookeeper_url.as_deref().ok_or_else(missing)?;
        let defaults = crate::zookeeper::ZooKeeperOptions::default();
        let options = crate::zookeeper::ZooKeeperOptions {
            strict: self.strict,
            read_only: self.read_only,
            wait: self.wait,
            cancel: self.cancel.clone(),
            operation_timeout: self.operation_timeout.unwrap_or(defaults.operation_timeout),
            session_timeout: self.session_timeout.unwrap_or(defaults.session_timeout),
        };
        let dir = self.zookeeper_dir.as_deref().unwrap_or("/spark");
        let engine = crate::zookeeper::ZooKeeperEngine::open(servers, dir, options)?;
        Ok(Box::new(Compressed::new(engine, self.compression)))
    }

    fn needed_directory(&self) -> Result<&Path> {
        let missing = || {
            Error::new(
                ErrorKind::Config,
                "spark.deploy.recoveryDirectory",
                "names no directory; the engine needs one",
            )
        };
        self.directory.as_deref().ok_or_else(missing)
    }

    fn log_options(&self) -> LogOptions {
        let defaults = LogOptions::default();
        LogOptions {
            durability: self.durability,
            strict: self.strict,
            read_only: self.read_only,
            wait: self.wait,
            cancel: self.cancel.clone(),
            segment_bytes: self.segment_bytes.unwrap_or(defaults.segment_bytes),
            auto_compact: self.auto_compact.unwrap_or(defaults.auto_compact),
            ..defaults
        }
    }
}

fn parse_bool(text: &str) -> Result<bool> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(Error::new(
            ErrorKind::Config,
            "",
            format!("{text:?} is neither true nor false"),
        )),
    }
}

fn parse_wait(text: &str) -> Result<Wait> {
    match text {
        "no" => Ok(Wait::No),
        "forever" => Ok(Wait::Forever),
        _ => match text.trim_end_matches('s').parse() {
            Ok(seconds) => Ok(Wait::For(Duration::from_secs(seconds))),
            Err(_) => Err(Error::new(
                ErrorKind::Config,
                "",
                format!("{text:?} is not a wait; use no, forever or seconds"),
            )),
        },
    }
}

fn parse_millis(text: &str) -> Result<Duration> {
    let millis = text
        .trim_end_matches("ms")
        .parse()
        .ok()
        .filter(|&millis: &u64| millis > 0);
    millis.map(Duration::from_millis).ok_or_else(|| {
        Error::new(
            ErrorKind::Config,
            "",
            format!("{text:?} is not a time; use milliseconds"),
        )
    })
}
