//! One node per entry on ZooKeeper servers, for masters on several machines.
//!
//! `node` knows bytes and paths, `session` keeps the connection, the lock and the fence; this module maps entries to nodes. A value that
//! a server would refuse goes into chunks, which are written first; the entry's node, written last and in one transaction with the fence,
//! makes them count. Every call answers within `operation_timeout`. What ZooKeeper has acknowledged is on the disks of a majority, so the
//! durability level has no meaning here; it is always the strongest.

mod node;
mod session;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zookeeper_client as zk;

use crate::engine::{CompactReport, Damage, PersistenceEngine, Report, Stats, Wait};
use crate::entry::{self, CodecId, Entry};
use crate::error::{Error, ErrorKind, Result};
use crate::names;

use node::{CHUNK, Head, MAX_NAME, MAX_VALUE, Paths};
use session::{Connected, Failure, Session, persistent};

/// How many reads are under way at once.
const PIPELINE: usize = 64;
/// Operations in one transaction at most.
const TRANSACTION: usize = 200;

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

    fn make_nodes(&self) -> Result<()> {
        let paths = self.paths.clone();
        self.session
            .run("create the store's nodes", move |connected| {
                let paths = paths.clone();
                async move {
                    for path in [
                        &paths.root,
                        &paths.entries,
                        &paths.chunks,
                        &paths.epoch,
                        &paths.quarantine,
                    ] {
                        connected.client.mkdir(path, &persistent()).await?;
                    }
                    Ok(())
                }
            })
    }

    /// The store's id; a writer draws it for a store that has none yet.
    fn read_root(&self) -> Result<[u8; 16]> {
        let root = self.paths.root.clone();
        let read = self.session.run("read the root node", move |connected| {
            let root = root.clone();
            async move {
                match connected.client.get_data(&root).await {
                    Ok((data, _)) => Ok(Some(data)),
                    Err(zk::Error::NoNode) => Ok(None),
                    Err(error) => Err(error.into()),
                }
            }
        })?;
        match read.as_deref().map(node::decode_root) {
            Some(Ok(store_id)) => Ok(store_id),
            Some(Err(node::NEWER)) => Err(Error::new(
                ErrorKind::Version,
                &self.paths.root,
                node::NEWER,
            )),
            // The id is of use to people only; entries carry checksums of their own.
            _ if !self.options.read_only => {
                let store_id = entry::new_store_id()?;
                let paths = self.paths.clone();
                self.session.run("write the root node", move |connected| {
                    let paths = paths.clone();
                    async move {
                        let mut writer = connected.fenced(&paths)?;
                        writer.add_set_data(&paths.root, &node::encode_root(store_id), None)?;
                        writer.commit().await?;
                        Ok(())
                    }
                })?;
                Ok(store_id)
            }
            Some(Err(reason)) => Err(Error::new(ErrorKind::Corrupt, &self.paths.root, reason)),
            None => Err(Error::new(
                ErrorKind::Version,
                &self.paths.root,
                "there is no store here",
            )),
        }
    }

    /// Names of the entries' nodes, as fresh as the leader's.
    fn list(&self) -> Result<Vec<String>> {
        let entries = self.paths.entries.clone();
        let mut nodes = self.session.run("list the entries", move |connected| {
            let entries = entries.clone();
            async move {
                // A follower may lag behind what another master wrote through the leader.
                connected.client.sync(&entries).await?;
                Ok(connected.client.list_children(&entries).await?)
            }
        })?;
        nodes.sort_unstable();
        Ok(nodes)
    }

    /// Reads nodes, many at a time; what is gone by then is left out.
    fn fetch(&self, nodes: &[String]) -> Result<Vec<(String, Fetched)>> {
        let mut all = Vec::with_capacity(nodes.len());
        for some in nodes.chunks(PIPELINE) {
            let (some, paths) = (some.to_vec(), self.paths.clone());
            all.extend(self.session.run("read entries", move |connected| {
                fetch_some(connected, paths.clone(), some.clone())
            })?);
        }
        Ok(all)
    }

    /// Reads and checks everything.
    fn scan(&self) -> Result<(Report, HashMap<String, Chunks>)> {
        let mut report = Report {
            closed_cleanly: true,
            ..Report::default()
        };
        let mut known = HashMap::new();
        for (node, fetched) in self.fetch(&self.list()?)? {
            report.bytes_scanned += fetched.bytes;
            match fetched.entry {
                Ok(entry) if names::encode(&entry.name) == node => {
                    report.records += 1;
                    known.insert(node, fetched.chunks);
                }
                Ok(_) => report.damage.push(self.damage(
                    &node,
                    fetched.bytes,
                    "the node has the name of another entry",
                )),
                Err(node::NEWER) => {
                    return Err(Error::new(
                        ErrorKind::Version,
                        self.paths.entry(&node),
                        node::NEWER,
                    ));
                }
                Err(reason) => report
                    .damage
                    .push(self.damage(&node, fetched.bytes, reason)),
            }
        }
        report.entries = known.len() as u64;
        Ok((report, known))
    }

    fn damage(&self, node: &str, bytes: u64, reason: &str) -> Damage {
        Damage {
            place: self.paths.entry(node),
            offset: 0,
            length: bytes,
            reason: reason.into(),
            quarantined_to: None,
        }
    }

    /// Moves damaged nodes out of the way, as they are.
    fn quarantine(&mut self) -> Result<()> {
        for damage in &mut self.report.damage {
            let from = damage.place.clone();
            let to = format!(
                "{}/{}",
                self.paths.quarantine,
                from.rsplit('/').next().unwrap_or_default()
            );
            let (paths, target) = (self.paths.clone(), to.clone());
            self.session
                .run("put a damaged node aside", move |connected| {
                    let (from, target, paths) = (from.clone(), target.clone(), paths.clone());
                    async move {
                        let (data, _) = connected.client.get_data(&from).await?;
                        let exists = connected.client.check_stat(&target).await?.is_some();
                        let mut writer = connected.fenced(&paths)?;
                        if exists {
                            writer.add_set_data(&target, &data, None)?;
                        } else {
                            writer.add_create(&target, &data, &persistent())?;
                        }
                        writer.add_delete(&from, None)?;
                        writer.commit().await?;
                        Ok(())
                    }
                })?;
            damage.quarantined_to = Some(to);
        }
        Ok(())
    }

    /// Removes chunks no entry refers to: what a master leaves that stopped between the chunks and their entry. While something is
    /// damaged they stay, since they may belong to it.
    fn remove_stray_chunks(&self, nodes: &HashMap<String, Chunks>) -> Result<()> {
        if !self.report.damage.is_empty() {
            return Ok(());
        }
        let used: std::collections::HashSet<u64> = nodes
            .values()
            .filter(|chunks| chunks.count > 0)
            .map(|chunks| chunks.generation)
            .collect();
        let folder = self.paths.chunks.clone();
        let listed = self.session.run("list the chunks", move |connected| {
            let folder = folder.clone();
            async move { Ok(connected.client.list_children(&folder).await?) }
        })?;
        let stray: Vec<String> = listed
            .into_iter()
            .filter(|chunk| {
                node::generation_of(chunk).is_some_and(|generation| !used.contains(&generation))
            })
            .map(|chunk| format!("{}/{chunk}", self.paths.chunks))
            .collect();
        self.delete_all(stray)
    }

    /// Removes nodes; what is gone already is fine.
    fn delete_all(&self, nodes: Vec<String>) -> Result<()> {
        for path in nodes {
            let paths = self.paths.clone();
            self.session.run("remove a node", move |connected| {
                let (path, paths) = (path.clone(), paths.clone());
                async move { delete(&connected, &paths, &path).await }
            })?;
        }
        Ok(())
    }

    fn chunk_paths(&self, chunks: Chunks) -> Vec<String> {
        (0..chunks.count)
            .map(|number| self.paths.chunk(chunks.generation, number))
            .collect()
    }

    fn check(&self, name: &str, value: &[u8]) -> Result<()> {
        entry::check_sizes(name, value)?;
        let too_large = |what: &str, size: usize, limit: usize| {
            let message = format!("{what} of {size} bytes; this engine's limit is {limit}");
            Err(Error::new(
                ErrorKind::TooLarge,
                entry::shorten(name),
                message,
            ))
        };
        if name.len() > MAX_NAME {
            return too_large("name", name.len(), MAX_NAME);
        }
        if value.len() > MAX_VALUE {
            return too_large("value", value.len(), MAX_VALUE);
        }
        Ok(())
    }

    /// Writes the chunks of a large value.
    fn write_chunks(&self, generation: u64, value: &[u8]) -> Result<u32> {
        let mut count = 0;
        for chunk in value.chunks(CHUNK) {
            let (path, paths, data) = (
                self.paths.chunk(generation, count),
                self.paths.clone(),
                Arc::<[u8]>::from(chunk),
            );
            self.session
                .run("write a part of a value", move |connected| {
                    let (path, paths, data) = (path.clone(), paths.clone(), Arc::clone(&data));
                    async move { put(&connected, &paths, &path, &data, false).await }
                })?;
            count += 1;
        }
        Ok(count)
    }

    /// Writes entries whose values fit into their nodes, as few transactions as possible.
    fn write_small(&self, state: &mut State, entries: &[Entry]) -> Result<()> {
        let mut rest = entries;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |entry: &&Entry| {
                bytes += entry.value.len() + entry.name.len() + 512;
                bytes <= CHUNK + 512 + MAX_NAME
            };
            let count = rest
                .iter()
                .take(TRANSACTION)
                .take_while(fits)
                .count()
                .max(1);
            let batch: Arc<[(String, Vec<u8>, bool)]> = rest[..count]
                .iter()
                .map(|entry| {
                    let node = names::encode(&entry.name);
                    let exists = state.nodes.contains_key(&node);
                    (
                        self.paths.entry(&node),
                        node::encode(&entry.name, entry.codec, &entry.value, 0, 0),
                        exists,
                    )
                })
                .collect();
            let paths = self.paths.clone();
            self.session.run("persist", move |connected| {
                let (batch, paths) = (Arc::clone(&batch), paths.clone());
                async move { put_all(&connected, &paths, &batch).await }
            })?;
            let mut old = Vec::new();
            for entry in &rest[..count] {
                let before = state
                    .nodes
                    .insert(names::encode(&entry.name), Chunks::default());
                old.extend(
                    before
                        .map(|chunks| self.chunk_paths(chunks))
                        .unwrap_or_default(),
                );
            }
            self.forget_chunks(old);
            rest = &rest[count..];
        }
        Ok(())
    }

    fn write_large(
        &self,
        state: &mut State,
        name: &str,
        codec: CodecId,
        value: &[u8],
    ) -> Result<()> {
        let generation = state.next_generation;
        state.next_generation += 1;
        let count = self.write_chunks(generation, value)?;
        let node = names::encode(name);
        let exists = state.nodes.contains_key(&node);
        let (path, paths) = (self.paths.entry(&node), self.paths.clone());
        let data: Arc<[u8]> = node::encode(name, codec, value, generation, count).into();
        self.session.run("persist", move |connected| {
            let (path, paths, data) = (path.clone(), paths.clone(), Arc::clone(&data));
            async move { put(&connected, &paths, &path, &data, exists).await }
        })?;
        let before = state.nodes.insert(node, Chunks { generation, count });
        self.forget_chunks(
            before
                .map(|chunks| self.chunk_paths(chunks))
                .unwrap_or_default(),
        );
        Ok(())
    }

    /// The value these belonged to is replaced already; what cannot be removed now is removed when the store is opened next.
    fn forget_chunks(&self, chunks: Vec<String>) {
        if let Err(error) = self.delete_all(chunks) {
            tracing::warn!(%error, "parts of a replaced value stay until the store is opened again");
        }
    }
}

/// A node read and checked.
struct Fetched {
    entry: std::result::Result<Entry, &'static str>,
    chunks: Chunks,
    bytes: u64,
}

async fn fetch_some(
    connected: Connected,
    paths: Paths,
    nodes: Vec<String>,
) -> std::result::Result<Vec<(String, Fetched)>, Failure> {
    // The client sends when a call is made, not when it is awaited: this asks for all of them at once.
    let asked: Vec<_> = nodes
        .iter()
        .map(|node| connected.client.get_data(&paths.entry(node)))
        .collect();
    let mut found = Vec::with_capacity(nodes.len());
    for (node, answer) in nodes.into_iter().zip(asked) {
        let data = match answer.await {
            Ok((data, _)) => data,
            Err(zk::Error::NoNode) => continue,
            Err(error) => return Err(error.into()),
        };
        let mut bytes = data.len() as u64;
        let mut chunks = Chunks::default();
        let entry = match Head::decode(&data) {
            Err(reason) => Err(reason),
            Ok(head) => {
                chunks = Chunks {
                    generation: head.generation,
                    count: head.chunks,
                };
                let mut parts = Vec::new();
                for number in 0..head.chunks {
                    match connected
                        .client
                        .get_data(&paths.chunk(head.generation, number))
                        .await
                    {
                        Ok((part, _)) => {
                            bytes += part.len() as u64;
                            parts.push(part);
                        }
                        Err(zk::Error::NoNode) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                head.join(parts)
            }
        };
        found.push((
            node,
            Fetched {
                entry,
                chunks,
                bytes,
            },
        ));
    }
    Ok(found)
}

/// Writes one node in a transaction with the fence. `exists` is a guess; an answer that was lost makes it wrong.
async fn put(
    connected: &Connected,
    paths: &Paths,
    path: &str,
    data: &[u8],
    exists: bool,
) -> std::result::Result<(), Failure> {
    let mut exists = exists;
    loop {
        let mut writer = connected.fenced(paths)?;
        if exists {
            writer.add_set_data(path, data, None)?;
        } else {
            writer.add_create(path, data, &persistent())?;
        }
        match writer.commit().await {
            Ok(_) => return Ok(()),
            Err(zk::CheckWriteError::OperationFailed {
                source: zk::Error::NodeExists,
                ..
            }) if !exists => exists = true,
            Err(zk::CheckWriteError::OperationFailed {
                source: zk::Error::NoNode,
                ..
            }) if exists => exists = false,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Writes several nodes in one transaction; one by one where the guesses about their existence were wrong.
async fn put_all(
    connected: &Connected,
    paths: &Paths,
    batch: &[(String, Vec<u8>, bool)],
) -> std::result::Result<(), Failure> {
    if let [(path, data, exists)] = batch {
        return put(connected, paths, path, data, *exists).await;
    }
    let mut writer = connected.fenced(paths)?;
    for (path, data, exists) in batch {
        if *exists {
            writer.add_set_data(path, data, None)?;
        } else {
            writer.add_create(path, data, &persistent())?;
        }
    }
    match writer.commit().await {
        Ok(_) => Ok(()),
        Err(zk::CheckWriteError::OperationFailed {
            source: zk::Error::NodeExists | zk::Error::NoNode,
            ..
        }) => {
            for (path, data, exists) in batch {
                put(connected, paths, path, data, *exists).await?;
            }
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

async fn delete(
    connected: &Connected,
    paths: &Paths,
    path: &str,
) -> std::result::Result<(), Failure> {
    let mut writer = connected.fenced(paths)?;
    writer.add_delete(path, None)?;
    match writer.commit().await {
        Ok(_)
        | Err(zk::CheckWriteError::OperationFailed {
            source: zk::Error::NoNode,
            ..
        }) => Ok(()),
        Err(error) => Err(error.into()),
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
        Ok(self
            .read(prefix)?
            .into_iter()
            .map(|entry| entry.name)
            .collect())
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
