//! Many changes to a [`NameTable`] at once, put in the order of the table before they are made.
//!
//! Names arrive in no order the table knows, so each one alone costs a miss of the cache and, in a table that is new, a page fault. Kept
//! back until there are many and sorted by the region of the table they belong to, they are made region by region, each of which fits the
//! first-level cache. The sort is stable, so that changes of one name keep their order; the last one wins.

use super::{Key, Location, NameTable};

/// Marks a change that removes its name, in the slot's half of its key.
pub(super) const REMOVAL: u32 = 1 << 31;
/// Places of the table that are worked on together: 64 KiB.
const REGION: usize = 1 << 13;
/// Changes kept back at least; after that, as many as there are names, so that what is replaced never outweighs what is alive.
const KEPT_BACK: usize = if cfg!(test) { 1 << 11 } else { 1 << 17 };

/// Changes that have not been made yet.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Keys as the table has them, some with [`REMOVAL`].
    keys: Vec<u64>,
    sorted: Vec<u64>,
    starts: Vec<usize>,
    /// Bytes of the records that set a location.
    added: i64,
}

impl Changes {
    /// Sets the location of a name, in the end.
    #[inline]
    pub(crate) fn insert(&mut self, table: &mut NameTable, name: &str, location: Location) {
        let slot = table.add_slot(name, location);
        self.keys.push(Key::new(table.hash(name), slot).0);
        self.added += i64::from(location.len);
    }

    /// Removes a name, in the end.
    pub(crate) fn remove(&mut self, table: &mut NameTable, name: &str) {
        let unused = Location {
            segment: 0,
            offset: 0,
            len: 0,
        };
        let slot = table.add_slot(name, unused);
        self.keys
            .push(Key::new(table.hash(name), slot).0 | u64::from(REMOVAL));
    }

    /// There are enough for them to be made.
    #[inline]
    pub(crate) fn are_many(&self, table: &NameTable) -> bool {
        self.keys.len() >= KEPT_BACK && self.keys.len() >= table.len() / 2
    }

    /// Makes all changes; returns by how much the bytes of all records the table points to grow. Until then the table knows nothing of
    /// the changes, and must not be changed otherwise.
    pub(crate) fn make(&mut self, table: &mut NameTable) -> i64 {
        let mut grown = std::mem::take(&mut self.added);
        // What has a slot counts as a name already; more room than that is never needed.
        table.reserve_keys(0);
        self.sort(table);
        for &key in &self.sorted {
            let removes = key as u32 & REMOVAL != 0;
            let key = Key(key & !u64::from(REMOVAL));
            let slot = key.slot();
            let found = table.find_slot(key);
            match (found, removes) {
                (None, false) => {
                    let at = table.vacancy(key.hash());
                    table.keys[at] = key.0;
                }
                (Some(at), false) => {
                    let location = table.entries[slot as usize].location();
                    let known = &mut table.entries[Key(table.keys[at]).slot() as usize];
                    grown -= i64::from(known.len);
                    known.set_location(location);
                    table.drop_slot(slot);
                }
                (Some(at), true) => {
                    let known = Key(table.keys[at]).slot();
                    grown -= i64::from(table.entries[known as usize].len);
                    table.close_gap(at);
                    table.drop_slot(known);
                    table.drop_slot(slot);
                }
                (None, true) => table.drop_slot(slot),
            }
        }
        self.keys.clear();
        table.clear_up_if_worthwhile();
        grown
    }

    /// Counting sort by region.
    fn sort(&mut self, table: &NameTable) {
        let region = |key: u64| table.home(Key(key).hash()) / REGION;
        self.starts.clear();
        self.starts.resize(table.keys.len().div_ceil(REGION) + 1, 0);
        for &key in &self.keys {
            self.starts[region(key) + 1] += 1;
        }
        for at in 1..self.starts.len() {
            self.starts[at] += self.starts[at - 1];
        }
        self.sorted.clear();
        self.sorted.resize(self.keys.len(), 0);
        for &key in &self.keys {
            let next = &mut self.starts[region(key)];
            self.sorted[*next] = key;
            *next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::tests::location;
    use super::*;

    #[test]
    fn many_changes_at_once_end_as_they_would_one_by_one() {
        let mut state = 7_u64;
        let mut random = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for names in [3, 500, 15_000] {
            let mut table = NameTable::default();
            let mut changes = Changes::default();
            let mut map: HashMap<String, Location> = HashMap::new();
            let mut live = 0;
            for round in 0..6 {
                for step in 0..8_000 {
                    let name = format!("{:0>40}", random(names));
                    if random(4) == 0 {
                        changes.remove(&mut table, &name);
                        map.remove(&name);
                    } else {
                        let location = location(round << 32 | step << 3);
                        changes.insert(&mut table, &name, location);
                        map.insert(name, location);
                    }
                }
                live += changes.make(&mut table);
                let all = |map: &HashMap<String, Location>| -> i64 {
                    map.values().map(|location| i64::from(location.len)).sum()
                };
                assert_eq!(live, all(&map));
                // Between, the table is an ordinary one.
                for step in 0..1000 {
                    let name = format!("{:0>40}", random(names));
                    if step % 2 == 0 {
                        assert_eq!(table.remove(&name), map.remove(&name));
                    } else {
                        let location = location(round << 32 | 1 << 31 | step);
                        assert_eq!(table.insert(&name, location), map.insert(name, location));
                    }
                }
                live = all(&map);
                assert_eq!(table.len(), map.len());
                for (name, location) in &map {
                    assert_eq!(table.get(name), Some(*location), "{name}");
                }
                let found: HashMap<String, Location> = table
                    .iter()
                    .map(|(name, location)| (name.to_owned(), location))
                    .collect();
                assert_eq!(found, map);
            }
        }
    }

    #[test]
    fn what_is_kept_back_stays_in_proportion_to_what_is_alive() {
        for names in [100_u64, 15_000] {
            let mut table = NameTable::default();
            let mut changes = Changes::default();
            let mut map: HashMap<String, Location> = HashMap::new();
            let (mut live, mut times) = (0, 0);
            for step in 0..30_000_u64 {
                let name = format!("worker_{}", step.wrapping_mul(2_654_435_761) % names);
                if step % 5 == 4 {
                    changes.remove(&mut table, &name);
                    map.remove(&name);
                } else {
                    changes.insert(&mut table, &name, location(step << 3));
                    map.insert(name, location(step << 3));
                }
                if changes.are_many(&table) {
                    live += changes.make(&mut table);
                    times += 1;
                    assert!(
                        table.entries.len() <= 3 * map.len() + KEPT_BACK,
                        "at step {step}"
                    );
                }
            }
            live += changes.make(&mut table);
            assert!(times >= 2, "{times}");
            assert_eq!(
                live,
                map.values().map(|location| i64::from(location.len)).sum()
            );
            assert_eq!(table.len(), map.len());
            for (name, location) in &map {
                assert_eq!(table.get(name), Some(*location), "{name}");
            }
        }
    }
}
