//! The real operating system: positioned reads and writes, fdatasync, flock.
//!
//! Locks are `flock` locks: they belong to the open file, so two engines in one process exclude each other as two processes do, and the
//! kernel drops them when the process dies, however it dies. On network file systems `flock` is only as good as the server makes it.

use std::any::Any;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::FlockOperation;

use super::{Access, Storage, StoredFile};

/// The operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsStorage;

struct OsFile(File);

impl StoredFile for OsFile {
    fn len(&self) -> io::Result<u64> {
        self.0.metadata().map(|metadata| metadata.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn try_lock(&self) -> io::Result<bool> {
        try_flock(&self.0)
    }
}

fn try_flock(file: &File) -> io::Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl Storage for OsStorage {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        let missing = path
            .ancestors()
            .take_while(|one| !one.as_os_str().is_empty() && !one.is_dir())
            .count();
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        // The names of the new directories must survive a power loss as well.
        for made in path.ancestors().take(missing) {
            match made.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => self.sync_dir(parent)?,
                _ => self.sync_dir(Path::new("."))?,
            }
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if entry.file_type()?.is_file()
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn StoredFile>> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(access != Access::Read)
            .create_new(access == Access::Create)
            .mode(0o600);
        Ok(Arc::new(OsFile(options.open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        loop {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(path)?;
            if !try_flock(&file)? {
                return Ok(None);
            }
            // Somebody may have removed the file between our open and our lock; then we hold a lock nobody else will ever meet.
            let ours = file.metadata()?;
            match fs::metadata(path) {
                Ok(named) if named.ino() == ours.ino() && named.dev() == ours.dev() => {
                    // For people who look: who holds it. Not read by us, so a failure to write it is no failure to lock.
                    let note = format!("{}\n", std::process::id());
                    let _ = file
                        .set_len(0)
                        .and_then(|()| file.write_all_at(note.as_bytes(), 0));
                    return Ok(Some(Box::new(file)));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
}
