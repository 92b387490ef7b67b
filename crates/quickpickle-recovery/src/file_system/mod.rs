//! One file per entry: written under a temporary name, synced, renamed, directory synced.
//!
//! For people who want to see their entries with `ls`, and to compare with; the log is cheaper and no less safe. `file` knows the bytes,
//! this module keeps the directory. A file is complete or it is damaged: a crash leaves the old
//! value or the new one, and at most a temporary file.

mod file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::{CompactReport, Damage, Durability, PersistenceEngine, Report, Stats, Wait};
use crate::entry::{self, CodecId, Entry};
use crate::error::{Error, ErrorKind, Result};
use crate::lock::{self, Held, Patience};
use crate::storage::{Access, OsStorage, Storage, read_all};

use file::{FORMAT_VERSION, Marker};

/// File that says what a directory is; the log refuses a directory that has it.
pub(crate) const MARKER: &str = "STORE";
const ENTRIES: &str = "entries";
const QUARANTINE: &str = "quarantine";
const TEMPORARY: &str = "writing.tmp";
const SUFFIX: &str = ".entry";

/// How a directory of files is opened.
#[derive(Clone, Debug, Default)]
pub struct FileSystemOptions {
    /// When a change counts as stored. [`Durability::Group`] is taken for [`Durability::Always`]: files have no group to sync.
    pub durability: Durability,
    /// Refuse to open a damaged store instead of going on with what is left.
    pub strict: bool,
    /// Take no lock and change nothing; writing fails.
    pub read_only: bool,
    /// What to do while another process holds the store.
    pub wait: Wait,
    /// Ends the wait when set.
    pub cancel: Option<Arc<AtomicBool>>,
}

/// One file per entry.
pub struct FileSystemEngine {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    entries: PathBuf,
    options: FileSystemOptions,
    store_id: [u8; 16],
    report: Report,
    state: Mutex<State>,
}

/// Name to file name and length.
type Files = BTreeMap<String, (String, u64)>;

struct State {
    index: Files,
    health: Health,
    lock: Option<Held>,
}

enum Health {
    Good,
    Poisoned(String),
    Closed,
}

impl std::fmt::Debug for FileSystemEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSystemEngine")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl FileSystemEngine {
    /// Opens the store in `directory`, creating it if need be; fails as the log does.
    pub fn open(directory: impl AsRef<Path>, options: FileSystemOptions) -> Result<Self> {
        Self::open_on(Arc::new(OsStorage), directory.as_ref(), options)
    }

    /// Like [`FileSystemEngine::open`], on any [`Storage`].
    pub fn open_on(
        storage: Arc<dyn Storage>,
        directory: &Path,
        options: FileSystemOptions,
    ) -> Result<Self> {
        let entries = directory.join(ENTRIES);
        let lock = if options.read_only {
            None
        } else {
            storage
                .create_dir(directory)
                .map_err(|error| Error::io("create the directory", directory, error))?;
            let patience = Patience::new(options.wait, options.cancel.as_ref());
            Some(lock::acquire(&*storage, directory, &patience)?)
        };
        let marked = read_marker(&*storage, directory, &entries, options.read_only)?;
        let mut engine = Self {
            storage,
            directory: directory.to_owned(),
            entries,
            options,
            // Of a damaged marker nothing can be told; a writer draws an id anew.
            store_id: marked.unwrap_or_default(),
            report: Report::default(),
            state: Mutex::new(State {
                index: BTreeMap::new(),
                health: Health::Good,
                lock,
            }),
        };
        let (mut report, index) = engine.scan()?;
        if engine.options.strict && !report.is_sound() {
            let first = report
                .damage
                .first()
                .map(|damage| format!("{}: {}", damage.place, damage.reason));
            let message = format!(
                "strict mode refuses a damaged store: {} damaged files; first: {}",
                report.damage.len(),
                first.unwrap_or_default()
            );
            return Err(Error::new(ErrorKind::Corrupt, directory.display(), message));
        }
        if !engine.options.read_only {
            engine.tidy(&mut report)?;
            if marked.is_none() {
                engine.store_id =
                    write_marker(&*engine.storage, &engine.directory, &engine.entries)?;
            }
        }
        if !report.is_sound() {
            tracing::error!(directory = %directory.display(), damaged = report.damage.len(), "damaged files were skipped");
        }
        engine.report = report;
        engine.state().index = index;
        Ok(engine)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change to the state is complete before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_state(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state();
        match state.health {
            Health::Closed => Err(Error::new(
                ErrorKind::Closed,
                self.directory.display(),
                "the engine is closed",
            )),
            _ => Ok(state),
        }
    }

    fn writable(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.open_state()?;
        if let Health::Poisoned(reason) = &state.health {
            let message = format!(
                "an earlier write failed, so nothing is written any more: {reason}; open the store again"
            );
            return Err(Error::new(
                ErrorKind::Poisoned,
                self.directory.display(),
                message,
            ));
        }
        if self.options.read_only {
            return Err(Error::new(
                ErrorKind::ReadOnly,
                self.directory.display(),
                "the store was opened for reading",
            ));
        }
        Ok(state)
    }

    fn durable(&self) -> bool {
        self.options.durability != Durability::None
    }

    /// Reads every file, the marker too.
    fn scan(&self) -> Result<(Report, Files)> {
        let mut report = Report {
            closed_cleanly: true,
            ..Report::default()
        };
        let marker = match read_file(&*self.storage, &self.directory.join(MARKER)) {
            // Removed under a running engine; opening has written one.
            Err(error) if error.is_not_found() => Vec::new(),
            read => read?,
        };
        report.bytes_scanned += marker.len() as u64;
        if let Err(reason) = Marker::decode(&marker) {
            // The entries carry checksums of their own; losing the id costs nothing they hold.
            report.damage.push(damaged(MARKER.into(), &marker, reason));
        }
        let mut index = BTreeMap::new();
        let listed = self
            .storage
            .list(&self.entries)
            .map_err(|error| Error::io("list the entries", &self.entries, error))?;
        for file_name in listed {
            if file_name == TEMPORARY {
                report.closed_cleanly = false;
                continue;
            }
            if !file_name.ends_with(SUFFIX) {
                report.notes.push(format!(
                    "{file_name}: not one of the store's files; left alone"
                ));
                continue;
            }
            let bytes = read_file(&*self.storage, &self.entries.join(&file_name))?;
            report.bytes_scanned += bytes.len() as u64;
            let checked = file::decode(&bytes).and_then(|entry| {
                if file_of(&entry.name) == file_name {
                    Ok(entry)
                } else {
                    Err("the file has the name of another entry")
                }
            });
            match checked {
                Ok(entry) => {
                    report.records += 1;
                    index.insert(entry.name, (file_name, bytes.len() as u64));
                }
                Err(file::NEWER) => {
                    return Err(Error::new(
                        ErrorKind::Version,
                        self.entries.join(file_name).display(),
                        file::NEWER,
                    ));
                }
                Err(reason) => {
                    let place = format!("{ENTRIES}/{file_name}");
                    report.damage.push(damaged(place, &bytes, reason));
                }
            }
        }
        report.entries = index.len() as u64;
        Ok((report, index))
    }

    /// Moves damaged files out of the way and removes the temporary file of an interrupted write. A damaged marker is copied and stays
    /// until the new one takes its place, so that at no moment the directory looks like nobody's.
    fn tidy(&self, report: &mut Report) -> Result<()> {
        self.remove(&self.entries.join(TEMPORARY))?;
        if !report.damage.is_empty() {
            self.put_aside(report)?;
        }
        // A writer that died between a rename and its sync leaves a name that is shown and not yet durable.
        self.sync_dir(&self.entries)?;
        self.sync_dir(&self.directory)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.storage
            .sync_dir(path)
            .map_err(|error| Error::io("sync the directory", path, error))
    }

    /// Moves damaged files to the quarantine, under names of their own even if files of these names were damaged before.
    fn put_aside(&self, report: &mut Report) -> Result<()> {
        let folder = self.directory.join(QUARANTINE);
        self.storage
            .create_dir(&folder)
            .map_err(|error| Error::io("create the quarantine directory", &folder, error))?;
        let mut taken = self
            .storage
            .list(&folder)
            .map_err(|error| Error::io("list the quarantine directory", &folder, error))?;
        for damage in &mut report.damage {
            let from = self.directory.join(&damage.place);
            let name = damage.place.rsplit('/').next().unwrap_or_default();
            let mut free = name.to_owned();
            for number in 2.. {
                if !taken.contains(&free) {
                    break;
                }
                free = format!("{name}.{number}");
            }
            let to = folder.join(&free);
            let moved = if damage.place == MARKER {
                copy(&*self.storage, &from, &to)
            } else {
                self.storage.rename(&from, &to)
            };
            moved.map_err(|error| Error::io("put a damaged file aside", &from, error))?;
            damage.quarantined_to = Some(to.display().to_string());
            taken.push(free);
        }
        self.sync_dir(&folder)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        match self.storage.remove(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove a file", path, error))
            }
            _ => Ok(()),
        }
    }

    fn write(&self, file_name: &str, bytes: &[u8]) -> Result<()> {
        let temporary = self.entries.join(TEMPORARY);
        let path = self.entries.join(file_name);
        let write = || {
            let file = self.storage.open(&temporary, Access::Create)?;
            file.write_at(0, bytes)?;
            if self.durable() {
                file.sync_data()?;
            }
            self.storage.rename(&temporary, &path)?;
            if self.durable() {
                self.storage.sync_dir(&self.entries)
            } else {
                Ok(())
            }
        };
        write().map_err(|error| {
            let _ = self.storage.remove(&temporary);
            Error::io("write an entry", &path, error)
        })
    }

    fn delete(&self, file_name: &str) -> Result<()> {
        let path = self.entries.join(file_name);
        self.remove(&path)?;
        if !self.durable() {
            return Ok(());
        }
        self.storage
            .sync_dir(&self.entries)
            .map_err(|error| Error::io("sync the directory", &self.entries, error))
    }

    fn poison_on_error<T>(&self, state: &mut State, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            tracing::error!(directory = %self.directory.display(), %error, "the store is poisoned");
            state.health = Health::Poisoned(error.to_string());
        }
        result
    }

    fn load(&self, name: &str, file_name: &str) -> Result<Entry> {
        let bytes = read_file(&*self.storage, &self.entries.join(file_name))?;
        match file::decode(&bytes) {
            Ok(entry) if entry.name == name => Ok(entry),
            result => {
                let reason = result
                    .err()
                    .unwrap_or("the file has the name of another entry");
                Err(Error::new(
                    ErrorKind::Corrupt,
                    self.entries.join(file_name).display(),
                    reason,
                ))
            }
        }
    }
}

/// The file of an entry.
fn file_of(name: &str) -> String {
    crate::names::encode(name) + SUFFIX
}

/// A file's damage.
fn damaged(place: String, bytes: &[u8], reason: &str) -> Damage {
    Damage {
        place,
        offset: 0,
        length: bytes.len() as u64,
        reason: reason.into(),
        quarantined_to: None,
    }
}

fn read_file(storage: &dyn Storage, path: &Path) -> Result<Vec<u8>> {
    let file = storage
        .open(path, Access::Read)
        .map_err(|error| Error::io("open a file of the store", path, error))?;
    read_all(&*file).map_err(|error| Error::io("read a file of the store", path, error))
}

fn copy(storage: &dyn Storage, from: &Path, to: &Path) -> std::io::Result<()> {
    let bytes = read_all(&*storage.open(from, Access::Read)?)?;
    let file = storage.open(to, Access::Create)?;
    file.write_at(0, &bytes)?;
    file.sync_data()
}

/// Reads the store's marker, writing it first in a new directory. `None` if it is damaged.
fn read_marker(
    storage: &dyn Storage,
    directory: &Path,
    entries: &Path,
    read_only: bool,
) -> Result<Option<[u8; 16]>> {
    let names = storage
        .list(directory)
        .map_err(|error| Error::io("list the directory", directory, error))?;
    if names.iter().any(|name| name.ends_with(".qlog")) {
        let message =
            "holds a store of the log engine; open it with that, or copy it into another directory";
        return Err(Error::new(ErrorKind::Version, directory.display(), message));
    }
    let path = directory.join(MARKER);
    if names.iter().any(|name| name == MARKER) {
        return match Marker::decode(&read_file(storage, &path)?) {
            Ok(marker) => Ok(Some(marker.store_id)),
            Err(file::NEWER) => Err(Error::new(ErrorKind::Version, path.display(), file::NEWER)),
            Err(_) => Ok(None),
        };
    }
    if read_only {
        return Err(Error::new(
            ErrorKind::Version,
            directory.display(),
            "holds no store of the file_system engine",
        ));
    }
    write_marker(storage, directory, entries).map(Some)
}

fn write_marker(storage: &dyn Storage, directory: &Path, entries: &Path) -> Result<[u8; 16]> {
    let store_id = crate::entry::new_store_id()?;
    let path = directory.join(MARKER);
    let temporary = directory.join(TEMPORARY);
    let _ = storage.remove(&temporary);
    let write = || {
        storage.create_dir(entries)?;
        let file = storage.open(&temporary, Access::Create)?;
        file.write_at(0, &Marker { store_id }.encode())?;
        file.sync_data()?;
        storage.rename(&temporary, &path)?;
        storage.sync_dir(directory)
    };
    write().map_err(|error| Error::io("write the store's marker", &path, error))?;
    Ok(store_id)
}

impl PersistenceEngine for FileSystemEngine {
    fn persist_tagged(&self, name: &str, codec: CodecId, value: &[u8]) -> Result<()> {
        entry::check_sizes(name, value)?;
        let bytes = file::encode(name, codec, value);
        let file_name = file_of(name);
        let mut state = self.writable()?;
        let written = self.write(&file_name, &bytes);
        self.poison_on_error(&mut state, written)?;
        state
            .index
            .insert(name.to_owned(), (file_name, bytes.len() as u64));
        Ok(())
    }

    fn unpersist(&self, name: &str) -> Result<()> {
        let mut state = self.writable()?;
        let Some((file_name, _)) = state.index.get(name).cloned() else {
            return Ok(());
        };
        let deleted = self.delete(&file_name);
        self.poison_on_error(&mut state, deleted)?;
        state.index.remove(name);
        Ok(())
    }

    fn read(&self, prefix: &str) -> Result<Vec<Entry>> {
        let state = self.open_state()?;
        let found = state
            .index
            .range(prefix.to_owned()..)
            .take_while(|(name, _)| name.starts_with(prefix));
        found
            .map(|(name, (file_name, _))| self.load(name, file_name))
            .collect()
    }

    fn names(&self, prefix: &str) -> Result<Vec<String>> {
        let state = self.open_state()?;
        let found = state
            .index
            .range(prefix.to_owned()..)
            .take_while(|(name, _)| name.starts_with(prefix));
        Ok(found.map(|(name, _)| name.clone()).collect())
    }

    fn contains(&self, name: &str) -> Result<bool> {
        Ok(self.open_state()?.index.contains_key(name))
    }

    fn get(&self, name: &str) -> Result<Option<Entry>> {
        let state = self.open_state()?;
        state
            .index
            .get(name)
            .map(|(file_name, _)| self.load(name, file_name))
            .transpose()
    }

    fn sync(&self) -> Result<()> {
        let mut state = self.writable()?;
        if self.durable() {
            return Ok(());
        }
        let files: Vec<String> = state
            .index
            .values()
            .map(|(file_name, _)| file_name.clone())
            .collect();
        let sync = || {
            for file_name in &files {
                self.storage
                    .open(&self.entries.join(file_name), Access::Read)?
                    .sync_data()?;
            }
            self.storage.sync_dir(&self.entries)
        };
        let synced = sync().map_err(|error| Error::io("sync the entries", &self.entries, error));
        self.poison_on_error(&mut state, synced)
    }

    fn opening_report(&self) -> Report {
        self.report.clone()
    }

    fn verify(&self) -> Result<Report> {
        let state = self.open_state()?;
        let (mut report, index) = self.scan()?;
        for name in state.index.keys().filter(|name| !index.contains_key(*name)) {
            report.missing_records += 1;
            report.notes.push(format!(
                "{}: its file is gone or damaged",
                entry::shorten(name)
            ));
        }
        Ok(report)
    }

    fn compact(&self) -> Result<CompactReport> {
        // Files are replaced and removed at once; there is nothing to give back.
        let state = self.writable()?;
        let bytes = state.index.values().map(|(_, length)| length).sum();
        Ok(CompactReport {
            bytes_before: bytes,
            bytes_after: bytes,
            entries: state.index.len() as u64,
        })
    }

    fn stats(&self) -> Result<Stats> {
        let state = self.open_state()?;
        let bytes = state.index.values().map(|(_, length)| length).sum();
        Ok(Stats {
            engine: "file_system".into(),
            location: self.directory.display().to_string(),
            sync: if self.durable() {
                Durability::Always
            } else {
                Durability::None
            }
            .to_string(),
            store_id: crate::entry::hex(&self.store_id),
            format_version: u32::from(FORMAT_VERSION),
            entries: state.index.len() as u64,
            live_bytes: bytes,
            total_bytes: bytes,
            files: state.index.len() as u64,
            poisoned: matches!(state.health, Health::Poisoned(_)),
        })
    }

    fn revive(&self) -> Result<()> {
        let mut state = self.open_state()?;
        if matches!(state.health, Health::Good) {
            return Ok(());
        }
        self.remove(&self.entries.join(TEMPORARY))?;
        let (report, index) = self.scan()?;
        if !report.is_sound() {
            return Err(Error::new(
                ErrorKind::Corrupt,
                self.directory.display(),
                "entries are damaged; open the store again",
            ));
        }
        // A sync that failed may have taken data with it that the page cache still shows: what is kept is written anew.
        for (name, (file_name, _)) in &index {
            let entry = self.load(name, file_name)?;
            self.write(
                file_name,
                &file::encode(&entry.name, entry.codec, &entry.value),
            )?;
        }
        state.index = index;
        state.health = Health::Good;
        Ok(())
    }

    fn disown(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            state.health = Health::Closed;
            state.lock = None;
        }
    }

    fn close(&self) -> Result<()> {
        let result = match self.writable() {
            Err(error) if matches!(error.kind(), ErrorKind::Closed | ErrorKind::ReadOnly) => Ok(()),
            Err(error) => Err(error),
            Ok(state) => {
                drop(state);
                self.sync()
            }
        };
        let mut state = self.state();
        state.health = Health::Closed;
        state.index.clear();
        state.lock = None;
        result
    }
}
