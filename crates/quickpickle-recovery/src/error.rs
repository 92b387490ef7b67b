//! What can go wrong, where it happened and what to do next.
//!
//! One `Error` for all engines: a kind to act on, the place (a path, a node, a setting) and a sentence for people. Callers decide by
//! [`ErrorKind`]; nothing should parse messages. Turning these into Python or Java exceptions is left to the bindings.

use std::fmt;
use std::io;
use std::path::Path;

/// The result of every fallible call in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What sort of failure this is: the part of an [`Error`] that programs act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused a read, write, sync or directory operation.
    Io,
    /// The disk or quota is full.
    Full,
    /// The directory cannot be written: read-only mount, missing permission, or an engine opened for reading.
    ReadOnly,
    /// Another process holds the store.
    Locked,
    /// An earlier write failed; the engine answers no more writes until it is opened again.
    Poisoned,
    /// The engine was closed.
    Closed,
    /// Stored bytes are damaged.
    Corrupt,
    /// The store was written by a newer release, or by something else.
    Version,
    /// A name or value is larger than the engine accepts.
    TooLarge,
    /// Another master took over this store; this one must not write any more.
    Fenced,
    /// The service did not answer in time, or the connection was lost; whether the call took effect is unknown.
    Unavailable,
    /// A setting is missing, unknown or contradicts another.
    Config,
    /// A value cannot be encoded or decoded.
    Codec,
}

impl ErrorKind {
    /// A short stable name, for logs, JSON and exception classes.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::Full => "full",
            Self::ReadOnly => "read_only",
            Self::Locked => "locked",
            Self::Poisoned => "poisoned",
            Self::Closed => "closed",
            Self::Corrupt => "corrupt",
            Self::Version => "version",
            Self::TooLarge => "too_large",
            Self::Fenced => "fenced",
            Self::Unavailable => "unavailable",
            Self::Config => "config",
            Self::Codec => "codec",
        }
    }
}

/// A failure: its kind, the place and a sentence.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    place: String,
    message: String,
    source: Option<io::Error>,
}

impl Error {
    /// An error of `kind` at `place` (a path, a node, a setting; may be empty).
    pub fn new(kind: ErrorKind, place: impl fmt::Display, message: impl Into<String>) -> Self {
        Self {
            kind,
            place: place.to_string(),
            message: message.into(),
            source: None,
        }
    }

    /// Wraps an operating system error; a full disk and a read-only place get kinds of their own.
    pub fn io(action: &str, path: &Path, error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Full,
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                ErrorKind::ReadOnly
            }
            _ => ErrorKind::Io,
        };
        Self {
            kind,
            place: path.display().to_string(),
            message: format!("cannot {action}"),
            source: Some(error),
        }
    }

    /// The operating system said that a file is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        self.source
            .as_ref()
            .is_some_and(|source| source.kind() == io::ErrorKind::NotFound)
    }

    /// What sort of failure this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where it happened: a path, a node or a setting. Empty if there is no such place.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
