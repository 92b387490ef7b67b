//! Entries to nodes. Every write is one transaction with the fence; a value too large for a node goes into chunks first.

use std::sync::Arc;

use zookeeper_client as zk;

use super::node::{self, CHUNK, MAX_NAME, MAX_VALUE, Paths};
use super::session::{Connected, Failure, persistent};
use super::{Chunks, State, ZooKeeperEngine};
use crate::entry::{self, CodecId, Entry};
use crate::error::{Error, ErrorKind, Result};
use crate::names;

/// Operations in one transaction at most.
const TRANSACTION: usize = 200;

impl ZooKeeperEngine {
    /// Removes nodes; what is gone already is fine.
    pub(super) fn delete_all(&self, nodes: Vec<String>) -> Result<()> {
        for path in nodes {
            let paths = self.paths.clone();
            self.session.run("remove a node", move |connected| {
                let (path, paths) = (path.clone(), paths.clone());
                async move { delete(&connected, &paths, &path).await }
            })?;
        }
        Ok(())
    }

    pub(super) fn chunk_paths(&self, chunks: Chunks) -> Vec<String> {
        (0..chunks.count)
            .map(|number| self.paths.chunk(chunks.generation, number))
            .collect()
    }

    pub(super) fn check(&self, name: &str, value: &[u8]) -> Result<()> {
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
    pub(super) fn write_chunks(&self, generation: u64, value: &[u8]) -> Result<u32> {
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
    pub(super) fn write_small(&self, state: &mut State, entries: &[Entry]) -> Result<()> {
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

    pub(super) fn write_large(
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
    pub(super) fn forget_chunks(&self, chunks: Vec<String>) {
        if let Err(error) = self.delete_all(chunks) {
            tracing::warn!(%error, "parts of a replaced value stay until the store is opened again");
        }
    }
}

/// Writes one node in a transaction with the fence. `exists` is a guess; an answer that was lost makes it wrong.
pub(super) async fn put(
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
pub(super) async fn put_all(
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

pub(super) async fn delete(
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
