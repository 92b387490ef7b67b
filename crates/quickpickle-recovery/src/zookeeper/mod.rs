//! One node per entry on ZooKeeper servers, for masters on several machines.
//!
//! `node` knows bytes and paths, `session` keeps the connection, the lock and the fence, `opening`, `reading` and `writing` map entries to
//! nodes; this module keeps the promises. A value that a server would refuse goes into chunks, which are written first; the entry's node,
//! written last and in one transaction with the fence, makes them count. Every call answers within `operation_timeout`. What ZooKeeper has
//! acknowledged is on the disks of a majority, so the durability level has no meaning here; it is always the strongest.

mod node;
mod opening;
mod reading;
mod session;
mod writing;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::engine::{CompactReport, PersistenceEngine, Report, Stats, Wait};
use crate::entry::{self, CodecId, Entry};
use crate::error::{Error, ErrorKind, Result};
use crate::names;

use node::{CHUNK, Paths};
use session::Session;
use writing::delete;

/// How a store on ZooKeeper is opened.
#[derive(Clone, Debug)]
pub struct ZooKeeperOptions {
    /// Longest any call takes.
    pub operation_timeout: Duration,
    /// How long the servers keep the session, and with it the lock, of a master they do not hear from. They may choose differently.
    pub session_timeout: Duration,
    /// Refuse to open a damaged store instead of going on with what is left.
    pub strict: bool,
    /// Take no lock and change nothing; writing fails.
    pub read_only: bool,
    /// What to do while another master holds the store.
    pub wait: Wait,
    /// Ends the wait when set.
    pub cancel: Option<Arc<AtomicBool>>,
}

impl Default for ZooKeeperOptions {
    fn default() -> Self {
        Self {
            operation_timeout: Duration::from_secs(15),
            session_timeout: Duration::from_secs(10),
            strict: false,
            read_only: false,
            wait: Wait::No,
            cancel: None,
        }
    }
}

/// Entries as ZooKeeper nodes.
pub struct ZooKeeperEngine {
    servers: String,
    paths: Paths,
    options: ZooKeeperOptions,
    session: Session,
    store_id: [u8; 16],
    report: Report,
    state: Mutex<State>,
    closed: AtomicBool,
}

/// What the writer knows of the nodes; nobody else changes them.
#[derive(Default)]
struct State {
    nodes: HashMap<String, Chunks>,
    next_generation: u64,
}

/// Where the value of a node is, if not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Chunks {
    generation: u64,
    count: u32,
}

impl std::fmt::Debug for ZooKeeperEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ZooKeeperEngine")
            .field("root", &self.paths.root)
            .finish_non_exhaustive()
    }
}

impl ZooKeeperEngine {
    /// Opens the store under the node `dir` on `servers` (`host:port,host:port`), creating it if need be.
    ///
    /// Fails with [`ErrorKind::Unavailable`] if no server answers in time, otherwise as the log does.
    pub fn open(servers: &str, dir: &str, options: ZooKeeperOptions) -> Result<Self> {
        let paths = Paths::new(dir);
        let session = Session::new(servers, paths.clone(), options.clone())?;
        let mut engine = Self {
            servers: servers.into(),
            paths,
            options,
            session,
            store_id: [0; 16],
            report: Report::default(),
            state: Mutex::default(),
            closed: AtomicBool::new(false),
        };
        if !engine.options.read_only {
            engine.make_nodes()?;
            engine.session.take_lock()?;
        }
        engine.store_id = engine.read_root()?;
        let (report, nodes) = engine.scan()?;
        engine.report = report;
        if engine.options.strict && !engine.report.is_sound() {
            let first = engine
                .report
                .damage
                .first()
                .map_or_else(String::new, |damage| {
                    format!("{}: {}", damage.place, damage.reason)
                });
            let message = format!(
                "strict mode refuses a damaged store: {} damaged nodes; first: {first}",
                engine.report.damage.len()
            );
            return Err(Error::new(ErrorKind::Corrupt, &engine.paths.root, message));
        }
        if !engine.options.read_only {
            engine.quarantine()?;
            engine.remove_stray_chunks(&nodes)?;
            let next_generation = nodes
                .values()
                .map(|chunks| chunks.generation)
                .max()
                .unwrap_or(0)
                + 1;
            *engine.state() = State {
                nodes,
                next_generation,
            };
        }
        Ok(engine)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_only(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::new(
                ErrorKind::Closed,
                &self.paths.root,
                "the engine is closed",
            ));
        }
        Ok(())
    }

    fn writable(&self) -> Result<MutexGuard<'_, State>> {
        self.open_only()?;
        if self.options.read_only {
            return Err(Error::new(
                ErrorKind::ReadOnly,
                &self.paths.root,
                "the store was opened for reading",
            ));
        }
        Ok(self.state())
    }
}

impl PersistenceEngine for ZooKeeperEngine {
    fn persist_tagged(&self, name: &str, codec: CodecId, value: &[u8]) -> Result<()> {
        self.persist_batch(&[Entry {
            name: name.into(),
            codec,
            value: value.to_vec(),
        }])
    }

    fn persist_batch(&self, entries: &[Entry]) -> Result<()> {
        entries
            .iter()
            .try_for_each(|entry| self.check(&entry.name, &entry.value))?;
        let mut state = self.writable()?;
        // A name twice in one transaction would be created twice; the later one goes into a transaction of its own.
        let mut seen = std::collections::HashSet::new();
        let mut small: Vec<Entry> = Vec::new();
        for entry in entries {
            let is_large = entry.value.len() > CHUNK;
            if is_large || !seen.insert(entry.name.as_str()) {
                self.write_small(&mut state, &small)?;
                small.clear();
                seen.clear();
                seen.insert(entry.name.as_str());
            }
            if is_large {
                self.write_large(&mut state, &entry.name, entry.codec, &entry.value)?;
            } else {
                small.push(entry.clone());
            }
        }
        self.write_small(&mut state, &small)
    }

    fn unpersist(&self, name: &str) -> Result<()> {
        let mut state = self.writable()?;
        let node = names::encode(name);
        let Some(&chunks) = state.nodes.get(&node) else {
            return Ok(());
        };
        let (path, paths) = (self.paths.entry(&node), self.paths.clone());
        self.session.run("unpersist", move |connected| {
            let (path, paths) = (path.clone(), paths.clone());
            async move { delete(&connected, &paths, &path).await }
        })?;
        state.nodes.remove(&node);
        self.forget_chunks(self.chunk_paths(chunks));
        Ok(())
    }

    fn read(&self, prefix: &str) -> Result<Vec<Entry>> {
        self.open_only()?;
        let mut nodes = self.list()?;
        nodes.retain(|node| names::may_start_with(node, prefix));
        let mut entries = Vec::new();
        for (node, fetched) in self.fetch(&nodes)? {
            let entry = fetched.entry.map_err(|reason| {
                Error::new(ErrorKind::Corrupt, self.paths.entry(&node), reason)
            })?;
            if entry.name.starts_with(prefix) {
                entries.push(entry);
            }
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn names(&self, prefix: &str) -> Result<Vec<String>> {
        self.open_only()?;
        let (mut found, mut hashed) = (Vec::new(), Vec::new());
        for node in self.list()? {
            // Most nodes say what they are; only the others need to be read.
            match names::decode(&node) {
                Some(name) => found.push(name),
                None => hashed.push(node),
            }
        }
        for (node, fetched) in self.fetch(&hashed)? {
            let entry = fetched.entry.map_err(|reason| {
                Error::new(ErrorKind::Corrupt, self.paths.entry(&node), reason)
            })?;
            found.push(entry.name);
        }
        found.retain(|name| name.starts_with(prefix));
        found.sort_unstable();
        Ok(found)
    }

    fn get(&self, name: &str) -> Result<Option<Entry>> {
        self.open_only()?;
        let node = names::encode(name);
        match self.fetch(&[node])?.pop() {
            None => Ok(None),
            Some((node, fetched)) => {
                let entry = fetched.entry.map_err(|reason| {
                    Error::new(ErrorKind::Corrupt, self.paths.entry(&node), reason)
                })?;
                Ok(Some(entry))
            }
        }
    }

    fn sync(&self) -> Result<()> {
        // Everything acknowledged is on the disks of a majority already; what may have changed is whose the store is.
        drop(self.writable()?);
        let paths = self.paths.clone();
        self.session.run("check the epoch", move |connected| {
            let paths = paths.clone();
            async move {
                connected.fenced(&paths)?.commit().await?;
                Ok(())
            }
        })
    }

    fn opening_report(&self) -> Report {
        self.report.clone()
    }

    fn verify(&self) -> Result<Report> {
        self.open_only()?;
        Ok(self.scan()?.0)
    }

    fn compact(&self) -> Result<CompactReport> {
        drop(self.writable()?);
        let stats = self.stats()?;
        Ok(CompactReport {
            bytes_before: stats.total_bytes,
            bytes_after: stats.total_bytes,
            entries: stats.entries,
        })
    }

    fn stats(&self) -> Result<Stats> {
        self.open_only()?;
        let report = self.scan()?.0;
        Ok(Stats {
            engine: "zookeeper".into(),
            location: format!("{}{}", self.servers, self.paths.root),
            sync: "always".into(),
            store_id: entry::hex(&self.store_id),
            format_version: u32::from(node::FORMAT_VERSION),
            entries: report.entries,
            live_bytes: report.bytes_scanned,
            total_bytes: report.bytes_scanned,
            files: report.entries,
            poisoned: self.session.is_fenced(),
        })
    }

    fn revive(&self) -> Result<()> {
        // A lost connection comes back by itself; a fence never opens again.
        let _state = self.writable()?;
        let epoch = self.paths.epoch.clone();
        self.session.run("reach the servers", move |connected| {
            let epoch = epoch.clone();
            async move {
                let writer = connected
                    .client
                    .new_check_writer(&epoch, Some(connected.epoch))?;
                writer.commit().await?;
                Ok(())
            }
        })
    }

    fn close(&self) -> Result<()> {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.session.close();
        }
        Ok(())
    }
}

impl Drop for ZooKeeperEngine {
    fn drop(&mut self) {
        let _ = self.close();
    }
}
