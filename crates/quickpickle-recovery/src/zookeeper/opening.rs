//! Opening a store: its nodes and its id, and what interrupted work or damage has left.

use std::collections::{HashMap, HashSet};

use zookeeper_client as zk;

use super::node;
use super::session::persistent;
use super::{Chunks, ZooKeeperEngine};
use crate::entry;
use crate::error::{Error, ErrorKind, Result};

impl ZooKeeperEngine {
    pub(super) fn make_nodes(&self) -> Result<()> {
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
    pub(super) fn read_root(&self) -> Result<[u8; 16]> {
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

    /// Moves damaged nodes out of the way, as they are.
    pub(super) fn quarantine(&mut self) -> Result<()> {
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
    pub(super) fn remove_stray_chunks(&self, nodes: &HashMap<String, Chunks>) -> Result<()> {
        if !self.report.damage.is_empty() {
            return Ok(());
        }
        let used: HashSet<u64> = nodes
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
}
