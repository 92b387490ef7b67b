//! Nodes to entries: listing, fetching many at a time, checking.

use std::collections::HashMap;

use zookeeper_client as zk;

use super::node::{self, Head, Paths};
use super::session::{Connected, Failure};
use super::{Chunks, ZooKeeperEngine};
use crate::engine::{Damage, Report};
use crate::entry::Entry;
use crate::error::{Error, ErrorKind, Result};
use crate::names;

/// How many reads are under way at once.
const PIPELINE: usize = 64;

impl ZooKeeperEngine {
    /// Names of the entries' nodes, as fresh as the leader's.
    pub(super) fn list(&self) -> Result<Vec<String>> {
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
    pub(super) fn fetch(&self, nodes: &[String]) -> Result<Vec<(String, Fetched)>> {
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
    pub(super) fn scan(&self) -> Result<(Report, HashMap<String, Chunks>)> {
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

    pub(super) fn damage(&self, node: &str, bytes: u64, reason: &str) -> Damage {
        Damage {
            place: self.paths.entry(node),
            offset: 0,
            length: bytes,
            reason: reason.into(),
            quarantined_to: None,
        }
    }
}

/// A node read and checked.
pub(super) struct Fetched {
    pub(super) entry: std::result::Result<Entry, &'static str>,
    pub(super) chunks: Chunks,
    pub(super) bytes: u64,
}

pub(super) async fn fetch_some(
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
