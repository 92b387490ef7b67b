//! What engines ask of the operating system, as a trait, so that tests can make any single call fail, tear or be forgotten.
//!
//! An implementation must keep these apart: data handed over (`write_at` returned), data on the device (`sync_data` returned) and names
//! on the device (`sync_dir` returned). Engines rely on nothing else; in particular not on clocks, modification times or the order in
//! which unsynced writes reach the device.

mod os;

use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use os::OsStorage;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    Write,
    /// A file that must not exist yet, for reading and writing, mode 0600.
    Create,
}

/// An open file.
pub trait StoredFile: Send + Sync {
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }

    /// Reads up to `buffer.len()` bytes at `offset`; 0 at the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes all of `bytes` at `offset`. On an error any part of it may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts or extends (with zeros) to `length`.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Returns once the file's data, and what is needed to find it, is on the device.
    fn sync_data(&self) -> io::Result<()>;

    /// Takes an exclusive lock that lasts as long as the file is open; `false` if another open file has it.
    fn try_lock(&self) -> io::Result<bool>;
}

impl std::fmt::Debug for dyn StoredFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoredFile")
    }
}

/// Files and directories.
pub trait Storage: Send + Sync {
    /// Creates the directory and its parents, mode 0700; fine if it exists.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Names of the files in a directory, in no particular order. Names that are not UTF-8 are none of ours and are left out.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Opens a file.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn StoredFile>>;

    /// Renames a file, replacing what was there.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Returns once the names in the directory are on the device.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Takes the lock file at `path`, creating it if need be. `None` if another holder has it. The lock ends with the returned value,
    /// or with the process.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>>;
}

/// Reads a whole file. Its length is taken as a hint up to a bound; beyond that the buffer grows as data arrives.
pub(crate) fn read_all(file: &dyn StoredFile) -> io::Result<Vec<u8>> {
    const STEP: u64 = 64 << 10;
    let mut bytes = Vec::new();
    // One more than there should be, so that a single read also finds the end.
    let mut step = (file.len()? + 1).min(STEP) as usize;
    loop {
        let start = bytes.len();
        bytes.resize(start + step, 0);
        let got = read_full(file, start as u64, &mut bytes[start..])?;
        if got < step {
            bytes.truncate(start + got);
            return Ok(bytes);
        }
        step = bytes.len();
    }
}

/// Reads until the buffer is full or the file ends; returns how much there was.
pub(crate) fn read_full(
    file: &dyn StoredFile,
    offset: u64,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(offset + done as u64, &mut buffer[done..]) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
