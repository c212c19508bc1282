//! A vector with holes: a value gets a number that is kept until it is taken out. Freed numbers are
//! reused, last freed first, so that the numbers depend only on the calls.

/// A table that gives values numbers, and reuses the numbers of removed values.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    items: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self {
            items: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn insert(&mut self, item: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.items[index as usize] = Some(item);
            return index;
        }
        self.items.push(Some(item));
        u32::try_from(self.items.len() - 1).expect("fewer than 2^32 things in flight")
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.items.get_mut(index as usize)?.as_mut()
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let item = self.items.get_mut(index as usize)?.take()?;
        self.free.push(index);
        Some(item)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of values.
    pub(crate) fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Slab;

    #[test]
    fn numbers_are_reused_and_stale_ones_give_nothing() {
        let mut slab = Slab::new();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!((a, b), (0, 1));
        assert_eq!(slab.remove(a), Some('a'));
        assert_eq!((slab.remove(a), slab.remove(7)), (None, None));
        assert_eq!(slab.insert('c'), a);
        assert_eq!(slab.get_mut(a), Some(&mut 'c'));
        assert!(!slab.is_empty());
        slab.remove(a);
        slab.remove(b);
        assert!(slab.is_empty());
    }
}
