//! Appending to one segment: its creation, its space and its syncs.
//!
//! A segment's header is on the device, and its name in the directory, before the first record is written to it; so a newest segment
//! without a good header is one whose creation was interrupted and that holds nothing. After any error the segment must not be written
//! again: that rule is kept by the engine, which poisons itself.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::format::{SEGMENT_HEADER, Salt, SegmentHeader, segment_name};
use crate::error::{Error, Result};
use crate::storage::{Access, Storage, StoredFile};

/// The segment that is written to.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) number: u64,
    pub(crate) file: Arc<dyn StoredFile>,
    pub(crate) salt: Salt,
    /// Where the next record goes.
    pub(crate) end: u64,
    /// Up to here the file has space of its own, filled with zeros.
    allocated: u64,
    /// How much space to take at a time; 0 to let the file grow with each write.
    step: u64,
}

impl Active {
    /// Goes on in a segment that was replayed.
    pub(crate) fn resume(
        number: u64,
        file: Arc<dyn StoredFile>,
        end: u64,
        allocated: u64,
        step: u64,
    ) -> Self {
        Self {
            number,
            file,
            salt: Salt::new(number),
            end,
            allocated,
            step,
        }
    }

    /// Makes a new segment, durable and empty.
    pub(crate) fn create(
        storage: &dyn Storage,
        directory: &Path,
        header: SegmentHeader,
        step: u64,
    ) -> Result<Self> {
        let path = directory.join(segment_name(header.number));
        let file = storage
            .open(&path, Access::Create)
            .map_err(|error| Error::io("create a segment", &path, error))?;
        let write = || -> io::Result<()> {
            // Second safety net beside the lock file, should somebody remove that.
            if !file.try_lock()? {
                return Err(io::Error::new(
                    io::ErrorKind::WouldBlock,
                    "another process locked the new segment",
                ));
            }
            file.write_at(0, &header.encode())?;
            file.sync_data()?;
            storage.sync_dir(directory)
        };
        if let Err(error) = write() {
            // Leave no half-made segment in the way of the next attempt; replay copes if this fails too.
            let _ = storage.remove(&path);
            return Err(Error::io("create a segment", &path, error));
        }
        let end = SEGMENT_HEADER as u64;
        Ok(Self {
            number: header.number,
            file,
            salt: Salt::new(header.number),
            end,
            allocated: end,
            step,
        })
    }

    /// Writes `bytes`, whole records, at the end.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let end = self.end + bytes.len() as u64;
        if self.step > 0 && end > self.allocated {
            self.allocate(end);
        }
        self.file.write_at(self.end, bytes)?;
        self.end = end;
        self.allocated = self.allocated.max(end);
        Ok(())
    }

    /// Takes space ahead of need, so that a sync has only data to write and no file size: a fifth to a third cheaper on ext4.
    /// A full disk is no error here; the write that follows finds out whether its own bytes still fit.
    fn allocate(&mut self, end: u64) {
        static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
        let target = (end + self.step).next_multiple_of(4096);
        while self.allocated < target {
            let size = (target - self.allocated).min(ZEROS.len() as u64);
            if self
                .file
                .write_at(self.allocated, &ZEROS[..size as usize])
                .is_err()
            {
                // Give back what the attempt took, then grow by single writes.
                let _ = self.file.set_len(self.end.max(SEGMENT_HEADER as u64));
                self.allocated = self.end;
                self.step = 0;
                return;
            }
            self.allocated += size;
        }
    }
}
