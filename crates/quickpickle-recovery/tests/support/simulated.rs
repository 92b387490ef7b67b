//! A file system in memory that remembers what has reached the device and what has not, and fails where it is told to.
//!
//! The rules are those of a careless but real system: writes are durable once the file was synced, names once their directory was; until
//! then a power loss keeps any subset of 512-byte sectors and any prefix of the directory's changes. A sync that fails **forgets** what
//! it should have written: readers still see it, no later sync will write it (as Linux does it).

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use quickpickle_recovery::storage::{Access, Storage, StoredFile};

const SECTOR: usize = 512;

/// What happens at the chosen operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It fails and has no effect.
    Fail,
    /// It fails half done: half a write, a rename or removal that did happen.
    Tear,
    /// It and everything after it fails: the power is gone.
    PowerOff,
    /// It and every later write that needs space fails, as on a full disk.
    Full,
}

/// What a crash leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Survives {
    /// Everything handed over: the process died, the system did not.
    Everything,
    /// Only what was synced.
    Synced,
    /// What was synced, and a random part of the rest.
    Random(u64),
}

#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    SetLen(u64),
}

#[derive(Clone, Debug, Default)]
struct Inode {
    durable: Vec<u8>,
    visible: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone, Debug)]
enum NameChange {
    Link(PathBuf, usize),
    Unlink(PathBuf),
    Rename(PathBuf, PathBuf, usize),
}

#[derive(Clone, Default)]
struct Disk {
    inodes: Vec<Inode>,
    visible: BTreeMap<PathBuf, usize>,
    durable: BTreeMap<PathBuf, usize>,
    unsynced: Vec<NameChange>,
    locks: BTreeSet<PathBuf>,
    operations: u64,
    reads: u64,
    fault: Option<(u64, Fault)>,
    read_fault: Option<u64>,
    off: bool,
    full: bool,
}

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Simulated(Arc<Mutex<Disk>>);

impl Simulated {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap()
    }

    /// Lets the `at`th operation from the beginning fail.
    pub(crate) fn fail_at(&self, at: u64, fault: Fault) {
        self.disk().fault = Some((at, fault));
    }

    /// Lets the `at`th read from now on fail.
    pub(crate) fn fail_read(&self, at: u64) {
        let mut disk = self.disk();
        disk.reads = 0;
        disk.read_fault = Some(at);
    }

    /// How many operations that change something there were.
    pub(crate) fn operations(&self) -> u64 {
        self.disk().operations
    }

    pub(crate) fn reads(&self) -> u64 {
        self.disk().reads
    }

    /// No more faults.
    pub(crate) fn heal(&self) {
        let mut disk = self.disk();
        (disk.fault, disk.read_fault, disk.off, disk.full) = (None, None, false, false);
    }

    /// What a machine finds that starts after a crash at this moment.
    pub(crate) fn crash(&self, survives: Survives) -> Self {
        let mut disk = self.disk().clone();
        disk.locks.clear();
        (disk.fault, disk.read_fault, disk.off, disk.full) = (None, None, false, false);
        disk.operations = 0;
        match survives {
            Survives::Everything => {
                // Unsynced changes stay unsynced: a later power loss can still take them.
                return Self(Arc::new(Mutex::new(disk)));
            }
            Survives::Synced => {}
            Survives::Random(seed) => {
                let mut random = Random(seed);
                for inode in &mut disk.inodes {
                    for change in std::mem::take(&mut inode.unsynced) {
                        apply_some(&mut inode.durable, change, &mut random);
                    }
                }
                let keep = random.below(disk.unsynced.len() as u64 + 1) as usize;
                for change in disk.unsynced.drain(..keep).collect::<Vec<_>>() {
                    apply_name(&mut disk.durable, change);
                }
            }
        }
        disk.unsynced.clear();
        disk.visible = disk.durable.clone();
        for inode in &mut disk.inodes {
            inode.unsynced.clear();
            inode.visible = inode.durable.clone();
        }
        Self(Arc::new(Mutex::new(disk)))
    }

    /// Files there are, with their content.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let disk = self.disk();
        disk.visible
            .iter()
            .map(|(path, &inode)| (path.clone(), disk.inodes[inode].visible.clone()))
            .collect()
    }

    /// Changes the content of a file in place: those who have it open see it.
    pub(crate) fn overwrite(&self, path: &Path, bytes: Vec<u8>) {
        let mut disk = self.disk();
        let inode = disk.visible[path];
        disk.inodes[inode].visible = bytes;
    }

    /// Removes a file, durably.
    pub(crate) fn delete(&self, path: &Path) {
        let mut disk = self.disk();
        disk.visible.remove(path);
        disk.durable.remove(path);
    }

    /// Puts `bytes` into a file, durably, creating it if need be.
    pub(crate) fn put(&self, path: &Path, bytes: Vec<u8>) {
        let mut disk = self.disk();
        let inode = disk.inodes.len();
        disk.inodes.push(Inode {
            durable: bytes.clone(),
            visible: bytes,
            unsynced: Vec::new(),
        });
        disk.visible.insert(path.to_owned(), inode);
        disk.durable.insert(path.to_owned(), inode);
    }
}

/// Applies a random selection of a write's sectors.
fn apply_some(bytes: &mut Vec<u8>, change: Change, random: &mut Random) {
    match change {
        Change::SetLen(len) => {
            if random.below(2) == 0 {
                bytes.resize(len as usize, 0);
            }
        }
        Change::Write(offset, data) => {
            let mut at = 0;
            while at < data.len() {
                let sector_end = ((offset as usize + at) / SECTOR + 1) * SECTOR - offset as usize;
                let end = sector_end.min(data.len());
                if random.below(2) == 0 {
                    apply(
                        bytes,
                        &Change::Write(offset + at as u64, data[at..end].to_vec()),
                    );
                }
                at = end;
            }
        }
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::SetLen(len) => bytes.resize(*len as usize, 0),
        Change::Write(offset, data) => {
            let end = *offset as usize + data.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*offset as usize..end].copy_from_slice(data);
        }
    }
}

fn apply_name(names: &mut BTreeMap<PathBuf, usize>, change: NameChange) {
    match change {
        NameChange::Link(path, inode) => {
            names.insert(path, inode);
        }
        NameChange::Unlink(path) => {
            names.remove(&path);
        }
        NameChange::Rename(from, to, inode) => {
            names.remove(&from);
            names.insert(to, inode);
        }
    }
}

/// Small, fast, repeatable.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

enum Verdict {
    Go,
    Fail(io::Error),
    Tear(io::Error),
}

impl Disk {
    /// Counts an operation that changes something, and decides its fate.
    fn operate(&mut self, takes_space: bool) -> Verdict {
        let at = self.operations;
        self.operations += 1;
        if self.off {
            return Verdict::Fail(io::Error::other("the power is gone"));
        }
        match self.fault {
            Some((chosen, fault)) if chosen == at => match fault {
                Fault::Fail => return Verdict::Fail(io::Error::other("injected failure")),
                Fault::Tear => return Verdict::Tear(io::Error::other("injected torn operation")),
                Fault::PowerOff => {
                    self.off = true;
                    return Verdict::Tear(io::Error::other("the power is gone"));
                }
                Fault::Full => self.full = true,
            },
            _ => {}
        }
        if self.full && takes_space {
            return Verdict::Tear(io::Error::from(io::ErrorKind::StorageFull));
        }
        Verdict::Go
    }

    fn read(&mut self) -> io::Result<()> {
        let at = self.reads;
        self.reads += 1;
        if self.off || self.read_fault == Some(at) {
            return Err(io::Error::other("injected read failure"));
        }
        Ok(())
    }

    fn change(&mut self, inode: usize, change: Change) {
        let inode = &mut self.inodes[inode];
        apply(&mut inode.visible, &change);
        inode.unsynced.push(change);
    }

    fn rename_names(&mut self, change: NameChange) {
        apply_name(&mut self.visible, change.clone());
        self.unsynced.push(change);
    }
}

struct OpenFile {
    disk: Arc<Mutex<Disk>>,
    inode: usize,
}

impl StoredFile for OpenFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.lock().unwrap().inodes[self.inode].visible.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut disk = self.disk.lock().unwrap();
        disk.read()?;
        let bytes = &disk.inodes[self.inode].visible;
        let from = bytes.len().min(offset as usize);
        let size = buffer.len().min(bytes.len() - from);
        buffer[..size].copy_from_slice(&bytes[from..from + size]);
        Ok(size)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.disk.lock().unwrap();
        match disk.operate(true) {
            Verdict::Go => {
                disk.change(self.inode, Change::Write(offset, bytes.to_vec()));
                Ok(())
            }
            Verdict::Fail(error) => Err(error),
            Verdict::Tear(error) => {
                disk.change(
                    self.inode,
                    Change::Write(offset, bytes[..bytes.len() / 2].to_vec()),
                );
                Err(error)
            }
        }
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut disk = self.disk.lock().unwrap();
        match disk.operate(false) {
            Verdict::Go => {
                disk.change(self.inode, Change::SetLen(length));
                Ok(())
            }
            Verdict::Fail(error) => Err(error),
            Verdict::Tear(error) => {
                disk.change(self.inode, Change::SetLen(length));
                Err(error)
            }
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut disk = self.disk.lock().unwrap();
        let verdict = disk.operate(false);
        let off = disk.off;
        let inode = &mut disk.inodes[self.inode];
        match verdict {
            Verdict::Go => {
                let changes = std::mem::take(&mut inode.unsynced);
                changes
                    .iter()
                    .for_each(|change| apply(&mut inode.durable, change));
                Ok(())
            }
            Verdict::Fail(error) => {
                // What the kernel does: the pages are clean now, and not on the device.
                if !off {
                    inode.unsynced.clear();
                }
                Err(error)
            }
            Verdict::Tear(error) => {
                // Half done, and the rest forgotten, unless it is the machine that stopped.
                let half = inode.unsynced.len() / 2;
                let mut changes = std::mem::take(&mut inode.unsynced);
                if off {
                    inode.unsynced = changes.split_off(half);
                }
                changes
                    .iter()
                    .take(half)
                    .for_each(|change| apply(&mut inode.durable, change));
                Err(error)
            }
        }
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(true)
    }
}

impl Storage for Simulated {
    fn create_dir(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let disk = self.disk();
        let within = disk
            .visible
            .keys()
            .filter(|file| file.parent() == Some(path));
        Ok(within
            .filter_map(|file| file.file_name()?.to_str().map(String::from))
            .collect())
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn StoredFile>> {
        let mut disk = self.disk();
        let inode = match (access, disk.visible.get(path)) {
            (Access::Create, Some(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Access::Create, None) => {
                let verdict = disk.operate(true);
                let inode = disk.inodes.len();
                if !matches!(verdict, Verdict::Fail(_)) {
                    disk.inodes.push(Inode::default());
                    disk.rename_names(NameChange::Link(path.to_owned(), inode));
                }
                match verdict {
                    Verdict::Go => inode,
                    Verdict::Fail(error) | Verdict::Tear(error) => return Err(error),
                }
            }
            (_, Some(&inode)) => inode,
            (_, None) => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Arc::new(OpenFile {
            disk: Arc::clone(&self.0),
            inode,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        let Some(&inode) = disk.visible.get(from) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let verdict = disk.operate(false);
        if !matches!(verdict, Verdict::Fail(_)) {
            disk.rename_names(NameChange::Rename(from.to_owned(), to.to_owned(), inode));
        }
        match verdict {
            Verdict::Go => Ok(()),
            Verdict::Fail(error) | Verdict::Tear(error) => Err(error),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        if !disk.visible.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let verdict = disk.operate(false);
        if !matches!(verdict, Verdict::Fail(_)) {
            disk.rename_names(NameChange::Unlink(path.to_owned()));
        }
        match verdict {
            Verdict::Go => Ok(()),
            Verdict::Fail(error) | Verdict::Tear(error) => Err(error),
        }
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        let verdict = disk.operate(false);
        let within = |change: &NameChange| match change {
            NameChange::Link(name, _)
            | NameChange::Unlink(name)
            | NameChange::Rename(_, name, _) => name.parent() == Some(path),
        };
        match verdict {
            Verdict::Go => {
                let (synced, rest) = std::mem::take(&mut disk.unsynced)
                    .into_iter()
                    .partition(within);
                disk.unsynced = rest;
                let synced: Vec<NameChange> = synced;
                synced
                    .into_iter()
                    .for_each(|change| apply_name(&mut disk.durable, change));
                Ok(())
            }
            Verdict::Fail(error) | Verdict::Tear(error) => Err(error),
        }
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        struct Guard(Arc<Mutex<Disk>>, PathBuf);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.lock().unwrap().locks.remove(&self.1);
            }
        }
        if !self.disk().locks.insert(path.to_owned()) {
            return Ok(None);
        }
        Ok(Some(Box::new(Guard(Arc::clone(&self.0), path.to_owned()))))
    }
}
