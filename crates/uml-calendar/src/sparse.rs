//! The disks' contents: pages of 4 KiB, of which only those exist that hold something, and
//! each content once.
//!
//! All disks of a calendar keep their pages in one arena, so that one limit holds
//! for the whole run. A disk's page table has three levels of small arrays of page
//! numbers: twelve disks of 4 TB cost some kilobytes until they are written to,
//! and 1/1000 of what is written after that. The arena is filled from its start,
//! in slabs: a page that is written at random costs 4 KiB and no more, whatever
//! the size of the pages below it (a mapping as large as the disk would cost 2 MiB
//! a write where the system uses huge pages by itself). Slabs are in memory as far
//! as the [`Storage`]'s budget goes, and then in its file.
//!
//! A page's bytes are found again by their hash, and compared: pages with the same bytes, on any of
//! the disks, are one page with several holders. A file system that copies on write needs that. It
//! writes a whole record for a few bytes, elsewhere, and never says that the old one is free, if
//! the disks take no discards: all that it has written in an hour would have to be kept. All but
//! one page of such a record are pages that are there already, and the second disk of a mirror
//! costs nothing. A page that has one holder is overwritten in its place; one that has more is left
//! to the others.
//!
//! Zeros are not kept: a read gives zeros where there is no page.

use crate::storage::{Overflow, Storage, StorageError};
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::hash::BuildHasher;

/// The size of a page in bytes.
pub(crate) const PAGE_BYTES: usize = 4096;
/// The size of a page as an address shift.
const PAGE_SHIFT: u32 = 12;
/// The number of pages in a slab, which has 2 MiB.
const SLAB_PAGES: usize = 512;
const SLAB_BYTES: u64 = (SLAB_PAGES * PAGE_BYTES) as u64;
/// The number of pages under a leaf: 4 MiB.
const LEAF_PAGES: u64 = 1024;
/// The number of leaves under a branch: 4 GiB.
const BRANCH_LEAVES: u64 = 1024;

/// The bytes of one page.
type Page = [u8; PAGE_BYTES];

/// A page of zeros, which is never kept: a read gives zeros where there is no page.
const NOTHING: Page = [0; PAGE_BYTES];

/// The place of a slab's pages: in memory or in the overflow file.
#[derive(Debug)]
enum Slab {
    Memory(Box<[Page]>),
    /// The slab's pages are in the overflow file, from this offset on.
    File(u64),
}

/// The record of a page.
#[derive(Debug, Clone, Copy, Default)]
struct Kept {
    hash: u64,
    /// The number of entries of page tables that have its number; 0: it is free.
    holders: u64,
}

/// Pages of all disks. The numbers of pages begin with 1.
#[derive(Debug)]
pub(crate) struct Arena {
    storage: Storage,
    slabs: Vec<Slab>,
    /// The file for the slabs that are not in memory.
    file: Option<Overflow>,
    /// The bytes of memory taken from the storage's budget.
    taken_bytes: u64,
    /// The records of the pages; that of page `number` is at `number - 1`.
    kept: Vec<Kept>,
    /// The number of a page by the hash of its bytes. Of two pages with one hash,
    /// which are rare, the second is not found and kept as often as it is written.
    by_hash: HashMap<u64, u32, FixedState>,
    hasher: FixedState,
    free: Vec<u32>,
    limit: u32,
}

/// The reason why the arena has not done its task.
#[derive(Debug)]
pub(crate) enum ArenaError {
    /// The most pages that there may be are in use.
    Full,
    /// The storage has no room left, or the system refuses its file.
    Storage(StorageError),
}

impl From<StorageError> for ArenaError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl Arena {
    /// Makes an arena with room for `limit_bytes`, rounded down to pages.
    pub(crate) fn new(limit_bytes: u64, storage: Storage) -> Self {
        Self {
            storage,
            slabs: Vec::new(),
            file: None,
            taken_bytes: 0,
            kept: Vec::new(),
            by_hash: HashMap::default(),
            hasher: FixedState::default(),
            free: Vec::new(),
            limit: u32::try_from(limit_bytes >> PAGE_SHIFT).unwrap_or(u32::MAX - 1),
        }
    }

    /// The number of bytes in pages that are in use.
    pub(crate) fn stored_bytes(&self) -> u64 {
        (self.kept.len() as u64 - self.free.len() as u64) << PAGE_SHIFT
    }

    /// Keeps a content for a holder of page `old`, 0 for none, which holds the returned page
    /// from now on.
    fn store(&mut self, old: u32, content: &Page) -> Result<u32, ArenaError> {
        if *content == NOTHING {
            self.release(old);
            return Ok(0);
        }
        let hash = self.hasher.hash_one(content.as_slice());
        if let Some(same) = self.find(hash, content)? {
            if same != old {
                self.kept[same as usize - 1].holders += 1;
                self.release(old);
            }
            return Ok(same);
        }
        let alone = old != 0 && self.kept[old as usize - 1].holders == 1;
        let number = if alone {
            self.forget(old);
            old
        } else {
            let number = self.allocate()?;
            self.release(old);
            number
        };
        self.put(number, content)?;
        self.kept[number as usize - 1] = Kept { hash, holders: 1 };
        self.by_hash.entry(hash).or_insert(number);
        Ok(number)
    }

    /// Finds the page that holds these bytes.
    fn find(&self, hash: u64, content: &Page) -> Result<Option<u32>, ArenaError> {
        let Some(&number) = self.by_hash.get(&hash) else {
            return Ok(None);
        };
        let mut buffer = NOTHING;
        let same = self.page(number, &mut buffer)? == content;
        Ok(same.then_some(number))
    }

    /// Takes one holder from a page, if there is a page.
    fn release(&mut self, number: u32) {
        if number == 0 {
            return;
        }
        let kept = &mut self.kept[number as usize - 1];
        kept.holders -= 1;
        if kept.holders == 0 {
            self.forget(number);
            self.free.push(number);
        }
    }

    /// Makes a page no longer be found by its bytes.
    fn forget(&mut self, number: u32) {
        let hash = self.kept[number as usize - 1].hash;
        if self.by_hash.get(&hash) == Some(&number) {
            self.by_hash.remove(&hash);
        }
    }

    /// Takes a page without holders, whose bytes are any.
    fn allocate(&mut self) -> Result<u32, ArenaError> {
        if let Some(number) = self.free.pop() {
            return Ok(number);
        }
        if self.kept.len() >= self.limit as usize {
            return Err(ArenaError::Full);
        }
        if self.kept.len() == self.slabs.len() * SLAB_PAGES {
            let slab = self.slab()?;
            self.slabs.push(slab);
        }
        self.kept.push(Kept::default());
        Ok(u32::try_from(self.kept.len()).unwrap_or(self.limit))
    }

    fn slab(&mut self) -> Result<Slab, StorageError> {
        if self.storage.take_memory(SLAB_BYTES) {
            self.taken_bytes += SLAB_BYTES;
            let pages = vec![NOTHING; SLAB_PAGES];
            return Ok(Slab::Memory(pages.into_boxed_slice()));
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(self.storage.file()?),
        };
        Ok(Slab::File(file.extend(SLAB_BYTES)?))
    }

    /// A page's bytes, in `buffer` if they are not in memory.
    fn page<'a>(&'a self, number: u32, buffer: &'a mut Page) -> Result<&'a Page, StorageError> {
        let index = number as usize - 1;
        match &self.slabs[index / SLAB_PAGES] {
            Slab::Memory(pages) => Ok(&pages[index % SLAB_PAGES]),
            Slab::File(offset) => {
                if let Some(file) = &self.file {
                    let within = (index % SLAB_PAGES * PAGE_BYTES) as u64;
                    file.read(offset + within, buffer)?;
                }
                Ok(buffer)
            }
        }
    }

    fn put(&mut self, number: u32, content: &Page) -> Result<(), StorageError> {
        let index = number as usize - 1;
        match &mut self.slabs[index / SLAB_PAGES] {
            Slab::Memory(pages) => pages[index % SLAB_PAGES] = *content,
            Slab::File(offset) => {
                if let Some(file) = &self.file {
                    let within = (index % SLAB_PAGES * PAGE_BYTES) as u64;
                    file.write(*offset + within, content)?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.storage.give_back(self.taken_bytes);
    }
}

/// The page in the arena for each page of the disk; 0 for one that was never written.
type Leaf = Box<[u32]>;
type Branch = Box<[Option<Leaf>]>;

/// The pages of one disk. They must be used with the same arena always.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    branches: Vec<Option<Branch>>,
}

/// The number of bytes from `at` to the end of its page, `length` at most.
fn within_page(at: u64, length: usize) -> usize {
    let offset = at as usize % PAGE_BYTES;
    length.min(PAGE_BYTES - offset)
}

impl Pages {
    fn number(&self, page: u64) -> u32 {
        let leaf = page / LEAF_PAGES;
        let branch = self.branches.get((leaf / BRANCH_LEAVES) as usize);
        branch
            .and_then(Option::as_ref)
            .and_then(|branch| branch[(leaf % BRANCH_LEAVES) as usize].as_ref())
            .map_or(0, |leaf| leaf[(page % LEAF_PAGES) as usize])
    }

    fn entry(&mut self, page: u64) -> &mut u32 {
        let leaf = page / LEAF_PAGES;
        let branch = (leaf / BRANCH_LEAVES) as usize;
        if self.branches.len() <= branch {
            self.branches.resize_with(branch + 1, || None);
        }
        let branch = self.branches[branch]
            .get_or_insert_with(|| vec![None; BRANCH_LEAVES as usize].into_boxed_slice());
        let leaf = branch[(leaf % BRANCH_LEAVES) as usize]
            .get_or_insert_with(|| vec![0; LEAF_PAGES as usize].into_boxed_slice());
        &mut leaf[(page % LEAF_PAGES) as usize]
    }

    /// Hands `length` bytes from `at` on to `take`, piece by piece in order, and
    /// stops at the first error. No piece is longer than a page.
    pub(crate) fn read<E: From<ArenaError>>(
        &self,
        arena: &Arena,
        at: u64,
        length: usize,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut buffer = NOTHING;
        let mut done = 0;
        while done < length {
            let here = at + done as u64;
            let count = within_page(here, length - done);
            let offset = here as usize % PAGE_BYTES;
            let page = match self.number(here >> PAGE_SHIFT) {
                0 => &NOTHING,
                number => arena.page(number, &mut buffer).map_err(ArenaError::from)?,
            };
            take(&page[offset..offset + count])?;
            done += count;
        }
        Ok(())
    }

    /// Stores bytes at `at`.
    pub(crate) fn write(
        &mut self,
        arena: &mut Arena,
        at: u64,
        bytes: &[u8],
    ) -> Result<(), ArenaError> {
        let mut done = 0;
        while done < bytes.len() {
            let here = at + done as u64;
            let count = within_page(here, bytes.len() - done);
            let piece = &bytes[done..done + count];
            match <&Page>::try_from(piece) {
                Ok(whole) => self.store(arena, here >> PAGE_SHIFT, whole)?,
                Err(_) => self.change(arena, here, count, |old| old.copy_from_slice(piece))?,
            }
            done += count;
        }
        Ok(())
    }

    /// Makes `length` bytes from `at` on zero; pages of zeros are given back.
    pub(crate) fn clear(
        &mut self,
        arena: &mut Arena,
        at: u64,
        length: u64,
    ) -> Result<(), ArenaError> {
        let mut done = 0;
        while done < length {
            let here = at + done;
            let count = within_page(here, usize::try_from(length - done).unwrap_or(usize::MAX));
            if count == PAGE_BYTES {
                self.store(arena, here >> PAGE_SHIFT, &NOTHING)?;
            } else {
                self.change(arena, here, count, |old| old.fill(0))?;
            }
            done += count as u64;
        }
        Ok(())
    }

    /// Changes `count` bytes from `at` on, which lie in one page.
    fn change(
        &mut self,
        arena: &mut Arena,
        at: u64,
        count: usize,
        change: impl FnOnce(&mut [u8]),
    ) -> Result<(), ArenaError> {
        let mut buffer = NOTHING;
        let mut content = match self.number(at >> PAGE_SHIFT) {
            0 => NOTHING,
            number => *arena.page(number, &mut buffer)?,
        };
        let offset = at as usize % PAGE_BYTES;
        change(&mut content[offset..offset + count]);
        self.store(arena, at >> PAGE_SHIFT, &content)
    }

    fn store(&mut self, arena: &mut Arena, page: u64, content: &Page) -> Result<(), ArenaError> {
        let old = self.number(page);
        let new = arena.store(old, content)?;
        // Where there was no page and is none now, no table is made.
        if new != old {
            *self.entry(page) = new;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
