//! Objects that occur several times: fetched from the memo, or equal to each other.
//!
//! Equal objects are told by a hash of their content. Both tables are bounded: where one is full, what would save least goes.

use std::collections::HashMap;

use super::tree::Kind;

/// Entries of a table before it is thinned out.
const ENTRIES: usize = 100_000;
/// Smaller objects are not worth sharing: a reference takes up to five bytes, and a memo write one.
pub(super) const WORTH: u64 = 32;

#[derive(Debug, Clone, Copy)]
pub(super) struct Repeat<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) bytes: u64,
    pub(super) count: u64,
    pub(super) offset: u64,
}

#[derive(Debug, Default)]
pub(super) struct Repeats<'a> {
    by_key: HashMap<u64, Repeat<'a>>,
    least: u64,
}

impl<'a> Repeats<'a> {
    /// One more object under a key; `count` says how often that is.
    pub(super) fn add(&mut self, key: u64, found: Repeat<'a>) {
        if found.bytes < self.least.max(WORTH) {
            return;
        }
        if self.by_key.len() >= ENTRIES && !self.by_key.contains_key(&key) {
            self.least = self.least.max(WORTH) * 2;
            let least = self.least;
            self.by_key
                .retain(|_, entry| entry.count > 1 && entry.bytes * entry.count >= least);
        }
        self.by_key
            .entry(key)
            .and_modify(|entry| entry.count += found.count)
            .or_insert(found);
    }

    /// What occurs more than once, what it saves most first.
    pub(super) fn most(self, limit: usize) -> Vec<Repeat<'a>> {
        let mut found: Vec<_> = self
            .by_key
            .into_values()
            .filter(|entry| entry.count > 1)
            .collect();
        found.sort_by_key(|entry| {
            (
                std::cmp::Reverse(entry.bytes * (entry.count - 1)),
                entry.offset,
            )
        });
        found.truncate(limit);
        found
    }
}
