//! A map from names to locations that stays fast at a million names.
//!
//! What costs at that size is not hashing but memory: a miss for each pointer followed and a page fault for each new page. So the hash
//! table is one vector of eight bytes for a name (half of its hash and its number) with linear probing, which takes one miss where a
//! table with its tags apart takes two; everything else lies in two plain vectors that grow in order of arrival, and the bytes of names
//! lie end to end.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use super::index::Location;

/// Below this much space of removed names nothing is cleared up.
const TOLERATED: usize = 1 << 20;
/// Smallest table; a power of two, as all of them.
const SMALLEST: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct NameTable {
    /// At most half full. 0 where nothing is, otherwise a [`Key`].
    keys: Vec<u64>,
    entries: Vec<Slot>,
    /// Slots that are not in use.
    free: Vec<u32>,
    /// Names, end to end.
    text: String,
    /// Bytes of `text` that belong to no name any more.
    dead_text: usize,
    hasher: RandomState,
}

/// What the hash table holds: enough of the hash to grow without looking at the names and to tell nearly all others apart, and the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key(u64);

impl Key {
    fn new(hash: u32, slot: u32) -> Self {
        // One more than the slot, so that no key is 0.
        Self(u64::from(hash) << 32 | (u64::from(slot) + 1))
    }

    fn hash(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn slot(self) -> u32 {
        (self.0 as u32).wrapping_sub(1)
    }
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    location: Location,
    text_start: usize,
    text_len: u32,
}

impl NameTable {
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Makes room for this many more names.
    pub(crate) fn reserve(&mut self, names: usize) {
        let wanted = (2 * (self.len() + names)).next_power_of_two().max(SMALLEST);
        if wanted > self.keys.len() {
            let old = std::mem::replace(&mut self.keys, vec![0; wanted]);
            for key in old.into_iter().filter(|&key| key != 0) {
                let at = self.vacancy(Key(key).hash());
                self.keys[at] = key;
            }
        }
    }

    #[inline]
    fn hash(&self, name: &str) -> u32 {
        let hash = self.hasher.hash_one(name);
        (hash ^ (hash >> 32)) as u32
    }

    /// Where probing for a hash begins. The table is not empty.
    #[inline]
    fn home(&self, hash: u32) -> usize {
        hash as usize & (self.keys.len() - 1)
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.keys.len() - 1)
    }

    /// The first free place for a hash.
    #[inline]
    fn vacancy(&self, hash: u32) -> usize {
        let mut at = self.home(hash);
        while self.keys[at] != 0 {
            at = self.after(at);
        }
        at
    }

    /// Where a name's key is.
    #[inline]
    fn find(&self, hash: u32, name: &str) -> Option<usize> {
        if self.keys.is_empty() {
            return None;
        }
        let mut at = self.home(hash);
        while self.keys[at] != 0 {
            let key = Key(self.keys[at]);
            if key.hash() == hash && self.text_of(key.slot()) == name {
                return Some(at);
            }
            at = self.after(at);
        }
        None
    }

    #[inline]
    fn text_of(&self, slot: u32) -> &str {
        let slot = &self.entries[slot as usize];
        &self.text[slot.text_start..slot.text_start + slot.text_len as usize]
    }

    pub(crate) fn get(&self, name: &str) -> Option<Location> {
        let at = self.find(self.hash(name), name)?;
        Some(self.entries[Key(self.keys[at]).slot() as usize].location)
    }

    /// Touches the places where these names will be looked for. The touches do not wait for each other, so their cache misses overlap;
    /// one that comes right before its insertion would be waited for.
    pub(crate) fn foresee<'n>(&self, names: impl Iterator<Item = &'n str>) {
        if !self.keys.is_empty() {
            let touched = names.fold(0, |seen, name| seen ^ self.keys[self.home(self.hash(name))]);
            std::hint::black_box(touched);
        }
    }

    /// Sets the location of a name; returns the one before.
    #[inline]
    pub(crate) fn insert(&mut self, name: &str, location: Location) -> Option<Location> {
        let hash = self.hash(name);
        if let Some(at) = self.find(hash, name) {
            let slot = Key(self.keys[at]).slot();
            return Some(std::mem::replace(
                &mut self.entries[slot as usize].location,
                location,
            ));
        }
        if 2 * (self.len() + 1) > self.keys.len() {
            self.reserve(self.len() + 1);
        }
        let entry = Slot {
            location,
            text_start: self.text.len(),
            text_len: name.len() as u32,
        };
        self.text.push_str(name);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                // Four thousand million names would have filled the memory long before.
                u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 names")
            }
        };
        let at = self.vacancy(hash);
        self.keys[at] = Key::new(hash, slot).0;
        None
    }

    /// Removes a name; returns its location.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Location> {
        let at = self.find(self.hash(name), name)?;
        let slot = Key(self.keys[at]).slot();
        self.close_gap(at);
        let removed = self.entries[slot as usize];
        self.entries[slot as usize].location.len = 0;
        self.free.push(slot);
        self.dead_text += removed.text_len as usize;
        if self.dead_text > TOLERATED && self.dead_text > self.text.len() / 2 {
            self.clear_up();
        }
        Some(removed.location)
    }

    /// Empties a place and moves up the keys whose probing would stop there.
    fn close_gap(&mut self, gap: usize) {
        let mask = self.keys.len() - 1;
        let mut gap = gap;
        let mut at = self.after(gap);
        while self.keys[at] != 0 {
            let home = self.home(Key(self.keys[at]).hash());
            let travelled = at.wrapping_sub(home) & mask;
            if travelled >= (at.wrapping_sub(gap) & mask) {
                self.keys[gap] = self.keys[at];
                gap = at;
            }
            at = self.after(at);
        }
        self.keys[gap] = 0;
    }

    /// Moves the names together.
    fn clear_up(&mut self) {
        let mut text = String::with_capacity(self.text.len() - self.dead_text);
        for slot in self.entries.iter_mut().filter(|slot| slot.location.len > 0) {
            let start = text.len();
            text.push_str(&self.text[slot.text_start..slot.text_start + slot.text_len as usize]);
            slot.text_start = start;
        }
        self.text = text;
        self.dead_text = 0;
    }

    /// Names and locations, in no order that means anything; mostly that of their arrival, which is also that on disk.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Location)> {
        self.slots()
            .map(|(slot, location)| (self.text_of(slot), location))
    }

    /// Locations, each with a handle for [`NameTable::relocate`].
    pub(crate) fn slots(&self) -> impl Iterator<Item = (u32, Location)> {
        // No record has length 0; slots that are not in use do.
        let used = |(slot, entry): (usize, &Slot)| {
            (entry.location.len > 0).then_some((slot as u32, entry.location))
        };
        self.entries.iter().enumerate().filter_map(used)
    }

    /// Sets a location, if it is still the one it was when its handle was taken.
    pub(crate) fn relocate(&mut self, slot: u32, old: Location, new: Location) {
        if let Some(entry) = self.entries.get_mut(slot as usize)
            && entry.location == old
        {
            entry.location = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn location(offset: u64) -> Location {
        Location {
            segment: 1,
            offset,
            len: 48,
        }
    }

    #[test]
    fn it_agrees_with_a_plain_map_through_many_changes() {
        let mut table = NameTable::default();
        let mut map: HashMap<String, Location> = HashMap::new();
        let mut state = 1_u64;
        for step in 0..200_000_u64 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let number = state >> 33;
            // Long names, so that removed text is cleared up on the way.
            let name = format!("{:0>300}", number % 5000);
            if number.is_multiple_of(3) {
                assert_eq!(table.remove(&name), map.remove(&name));
            } else {
                assert_eq!(
                    table.insert(&name, location(step)),
                    map.insert(name.clone(), location(step))
                );
            }
            assert_eq!(table.get(&name), map.get(&name).copied());
        }
        assert_eq!(table.len(), map.len());
        assert!(
            table
                .iter()
                .all(|(name, location)| map.get(name) == Some(&location))
        );
        assert!(
            table.text.len() < 2 * map.len() * 300 + TOLERATED + 300,
            "removed names are not kept for ever"
        );
        let slots: Vec<_> = table.slots().collect();
        assert_eq!(slots.len(), map.len());
        let new = |old: Location| Location { segment: 9, ..old };
        let (changed, _) = map.iter().next().expect("some are left");
        table.insert(changed, location(1 << 40));
        slots
            .iter()
            .for_each(|&(slot, old)| table.relocate(slot, old, new(old)));
        for (name, found) in table.iter() {
            let expected = if name == changed {
                location(1 << 40)
            } else {
                new(map[name])
            };
            assert_eq!(found, expected, "what changed meanwhile is left alone");
        }
    }
}
