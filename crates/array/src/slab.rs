//! A table of entries in flight: constant-time insert and take, no allocation once it has grown,
//! and keys that are recognised as stale after use.
//!
//! An entry's generation is odd while it is live and even while it is free. A key has the index
//! and the generation, so a key that was taken already matches nothing until its generation has
//! wrapped around all the 31 bits that a key has of it: keys stay below those that the layer above
//! the engines uses.

/// The mark of the end of the free list.
const NONE: u32 = u32::MAX;

/// The mask of the generation's bits in a key.
const GENERATION: u32 = u32::MAX >> 1;

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    next_free: u32,
    value: T,
}

/// A table of entries in flight.
#[derive(Debug)]
pub struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: u32,
}

impl<T: Copy> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> Slab<T> {
    /// A table without values.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: NONE,
        }
    }

    /// Inserts a value; returns its index.
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        let index = self.free;
        if let Some(entry) = self.entries.get_mut(index as usize) {
            self.free = entry.next_free;
            entry.generation = entry.generation.wrapping_add(1);
            entry.value = value;
            return index;
        }
        let index = u32::try_from(self.entries.len())
            .expect("four thousand million things in flight do not fit in memory");
        self.entries.push(Entry {
            generation: 1,
            next_free: NONE,
            value,
        });
        index
    }

    /// Returns the key of a live entry, for use outside.
    #[inline]
    #[must_use]
    pub fn key(&self, index: u32) -> u64 {
        let generation = self.entries[index as usize].generation & GENERATION;
        u64::from(generation) << 32 | u64::from(index)
    }

    /// Takes out the entry of a key; returns `None` for a key that is not live.
    #[inline]
    pub fn take_key(&mut self, key: u64) -> Option<T> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a key is two 32-bit halves"
        )]
        let (index, generation) = (key as u32, (key >> 32) as u32);
        let entry = self.entries.get(index as usize)?;
        if entry.generation & GENERATION != generation || generation & 1 == 0 {
            return None;
        }
        Some(self.take(index))
    }

    /// Takes a live entry out by its index.
    #[inline]
    pub(crate) fn take(&mut self, index: u32) -> T {
        let entry = &mut self.entries[index as usize];
        debug_assert!(entry.generation & 1 == 1, "entry {index} is not live");
        entry.generation = entry.generation.wrapping_add(1);
        entry.next_free = self.free;
        self.free = index;
        entry.value
    }

    /// Returns the value of a live key.
    pub(crate) fn get_key(&self, key: u64) -> &T {
        debug_assert!(self.key(key as u32) == key, "{key} is not live");
        self.get(key as u32)
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &T {
        &self.entries[index as usize].value
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut T {
        &mut self.entries[index as usize].value
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Returns the live values, by index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries
            .iter()
            .filter(|entry| entry.generation & 1 == 1)
            .map(|entry| &entry.value)
    }

    /// Returns the live values to be changed, by index.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries
            .iter_mut()
            .filter(|entry| entry.generation & 1 == 1)
            .map(|entry| &mut entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::Slab;

    #[test]
    fn entries_are_reused_and_stale_keys_refused() {
        let mut slab = Slab::new();
        let first = slab.insert('a');
        let second = slab.insert('b');
        let stale = slab.key(first);
        assert_eq!(slab.take_key(stale), Some('a'));
        assert_eq!(slab.take_key(stale), None, "taken twice");
        let third = slab.insert('c');
        assert_eq!(third, first, "the freed entry is used again");
        assert_ne!(slab.key(third), stale);
        assert_eq!(slab.take_key(stale), None, "stale after reuse");
        assert_eq!(slab.iter().collect::<String>(), "cb");
        assert_eq!(slab.take(second), 'b');
        assert_eq!(slab.take_key(99), None, "never existed");
    }
}
