//! A map from names to locations that stays fast at a million names.
//!
//! What costs at that size is not hashing but memory: a miss for each pointer followed and a page fault for each new page. So the hash
//! table is one vector of eight bytes for a name (half of its hash and its number) with linear probing, which takes one miss where a
//! table with its tags apart takes two; everything else lies in two plain vectors that grow in order of arrival, and the bytes of names
//! lie end to end. `bulk` is for many changes at once, which need not wait for memory at all.

mod bulk;

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use super::index::Location;

pub(crate) use bulk::Changes;

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

/// A [`Location`] and where the name is, in 32 bytes: the fields of the two together would be padded to 40.
#[derive(Clone, Copy, Debug)]
struct Slot {
    segment: u64,
    offset: u64,
    text_start: usize,
    /// 0 in a slot that is not in use; no record has that length.
    len: u32,
    text_len: u32,
}

impl Slot {
    fn location(&self) -> Location {
        Location {
            segment: self.segment,
            offset: self.offset,
            len: self.len,
        }
    }

    fn set_location(&mut self, location: Location) {
        (self.segment, self.offset, self.len) = (location.segment, location.offset, location.len);
    }
}

impl NameTable {
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Makes room for this many more names with `text` bytes together.
    pub(crate) fn reserve(&mut self, names: usize, text: usize) {
        self.entries.reserve(names);
        self.text.reserve(text);
        self.reserve_keys(names);
    }

    /// Bytes of all names.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len() - self.dead_text
    }

    fn reserve_keys(&mut self, names: usize) {
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
        self.find_key(hash, || name)
    }

    /// Where the key of another slot with the same name is.
    #[inline]
    fn find_slot(&self, key: Key) -> Option<usize> {
        self.find_key(key.hash(), || self.text_of(key.slot()))
    }

    /// Where a name's key is; the name is asked for only where half of its hash is met.
    #[inline]
    fn find_key<'a>(&'a self, hash: u32, name: impl Fn() -> &'a str) -> Option<usize> {
        if self.keys.is_empty() {
            return None;
        }
        let mut at = self.home(hash);
        while self.keys[at] != 0 {
            let key = Key(self.keys[at]);
            if key.hash() == hash && self.text_of(key.slot()) == name() {
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
        Some(self.entries[Key(self.keys[at]).slot() as usize].location())
    }

    /// Sets the location of a name; returns the one before.
    #[inline]
    pub(crate) fn insert(&mut self, name: &str, location: Location) -> Option<Location> {
        let hash = self.hash(name);
        if let Some(at) = self.find(hash, name) {
            let slot = &mut self.entries[Key(self.keys[at]).slot() as usize];
            let old = slot.location();
            slot.set_location(location);
            return Some(old);
        }
        if 2 * (self.len() + 1) > self.keys.len() {
            self.reserve_keys(self.len() + 1);
        }
        let slot = self.add_slot(name, location);
        let at = self.vacancy(hash);
        self.keys[at] = Key::new(hash, slot).0;
        None
    }

    /// A slot for a name, not yet found by anybody.
    #[inline]
    fn add_slot(&mut self, name: &str, location: Location) -> u32 {
        let entry = Slot {
            segment: location.segment,
            offset: location.offset,
            len: location.len,
            text_start: self.text.len(),
            text_len: name.len() as u32,
        };
        self.text.push_str(name);
        match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                // Two thousand million names would have filled the memory long before.
                let slot = self.entries.len() - 1;
                assert!(
                    slot < bulk::REMOVAL as usize - 1,
                    "too many names for the index"
                );
                slot as u32
            }
        }
    }

    /// Gives a slot back that nobody finds.
    fn drop_slot(&mut self, slot: u32) {
        let entry = &mut self.entries[slot as usize];
        entry.len = 0;
        self.dead_text += entry.text_len as usize;
        self.free.push(slot);
    }

    /// Removes a name; returns its location.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Location> {
        let at = self.find(self.hash(name), name)?;
        let slot = Key(self.keys[at]).slot();
        self.close_gap(at);
        let removed = self.entries[slot as usize].location();
        self.drop_slot(slot);
        self.clear_up_if_worthwhile();
        Some(removed)
    }

    fn clear_up_if_worthwhile(&mut self) {
        if self.dead_text > TOLERATED && self.dead_text > self.text.len() / 2 {
            self.clear_up();
        }
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
        for slot in self.entries.iter_mut().filter(|slot| slot.len > 0) {
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
            (entry.len > 0).then_some((slot as u32, entry.location()))
        };
        self.entries.iter().enumerate().filter_map(used)
    }

    /// Sets a location, if it is still the one it was when its handle was taken.
    pub(crate) fn relocate(&mut self, slot: u32, old: Location, new: Location) {
        if let Some(entry) = self.entries.get_mut(slot as usize)
            && entry.location() == old
        {
            entry.set_location(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    pub(super) fn location(offset: u64) -> Location {
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
