//! Memo entries by number: an array where numbers have few gaps, as every pickler's have, and a map beyond.
//!
//! A number is whatever the pickle says, so it must never decide how much is allocated: the array grows to at most a
//! fixed factor of what has been stored.

use std::collections::HashMap;

/// Numbers up to which the array is used regardless of how full it is.
const SMALL: u64 = 1024;

/// A memo of values that are copied out.
#[derive(Debug, Clone)]
pub struct Memo<T> {
    dense: Vec<Option<T>>,
    sparse: HashMap<u64, T>,
    filled: u64,
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self {
            dense: Vec::new(),
            sparse: HashMap::new(),
            filled: 0,
        }
    }
}

impl<T: Copy> Memo<T> {
    /// An empty memo.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many different numbers are filled: the number that MEMOIZE fills next.
    #[must_use]
    #[inline]
    pub fn len(&self) -> u64 {
        self.filled
    }

    /// Whether nothing is filled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// What is stored under a number.
    #[must_use]
    #[inline]
    pub fn get(&self, index: u64) -> Option<T> {
        let dense = usize::try_from(index)
            .ok()
            .and_then(|index| self.dense.get(index));
        match dense {
            Some(entry) => *entry,
            None if self.sparse.is_empty() => None,
            None => self.sparse.get(&index).copied(),
        }
    }

    /// Stores under a number; answers what was there.
    #[inline]
    pub fn insert(&mut self, index: u64, value: T) -> Option<T> {
        let len = self.dense.len() as u64;
        let before = if index == len && self.sparse.is_empty() {
            self.dense.push(Some(value));
            None
        } else if index < len {
            // Below the length of a Vec, so it fits.
            self.dense[index as usize].replace(value)
        } else {
            self.insert_far(index, value)
        };
        self.filled += u64::from(before.is_none());
        before
    }

    #[cold]
    fn insert_far(&mut self, index: u64, value: T) -> Option<T> {
        if index > SMALL && index / 4 > self.filled {
            return self.sparse.insert(index, value);
        }
        let old = self.dense.len() as u64;
        self.dense.resize(index as usize + 1, None);
        if !self.sparse.is_empty() {
            // What the array covers now moves there, so that each number has one place.
            let covered: Vec<u64> = self
                .sparse
                .keys()
                .copied()
                .filter(|key| (old..=index).contains(key))
                .collect();
            for key in covered {
                self.dense[key as usize] = self.sparse.remove(&key);
            }
        }
        self.dense[index as usize].replace(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_order_and_any_number() {
        let mut memo = Memo::new();
        let numbers = [
            0,
            1,
            5,
            3,
            u64::MAX,
            2000,
            100_000,
            1500,
            u64::from(u32::MAX),
            4,
        ];
        for (value, number) in numbers.into_iter().enumerate() {
            assert_eq!(memo.get(number), None);
            assert_eq!(memo.insert(number, value), None);
            assert_eq!(memo.len(), value as u64 + 1);
        }
        for (value, number) in numbers.into_iter().enumerate() {
            assert_eq!(memo.get(number), Some(value), "{number}");
            assert_eq!(memo.insert(number, 77), Some(value));
        }
        assert_eq!(memo.len(), numbers.len() as u64);
        assert!(memo.dense.len() < 10_000);
    }

    #[test]
    fn the_map_empties_into_the_array() {
        let mut memo = Memo::new();
        memo.insert(5000, 1);
        assert_eq!(memo.sparse.len(), 1);
        for number in 0..=6000 {
            if number != 5000 {
                assert_eq!(memo.insert(number, 2), None);
            }
        }
        assert_eq!((memo.get(5000), memo.len()), (Some(1), 6001));
        assert!(memo.sparse.is_empty());
    }
}
