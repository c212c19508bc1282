//! What the disks hold: pages of 4 KiB, of which only those exist that hold
//! something.
//!
//! All disks of a calendar keep their pages in one arena, so that one limit holds
//! for the whole run. A disk's page table has three levels of small arrays of page
//! numbers: twelve disks of 4 TB cost some kilobytes until they are written to,
//! and 1/1000 of what is written after that. The arena is filled from its start,
//! in slabs: a page that is written at random costs 4 KiB and no more, whatever
//! the size of the pages below it (a mapping as large as the disk would cost 2 MiB
//! a write where the system uses huge pages by itself).
//!
//! Zeros written to where nothing is are not kept: they are what is read there.

/// Bytes of a page.
pub(crate) const PAGE_BYTES: usize = 4096;
/// A page as an address shift.
const PAGE_SHIFT: u32 = 12;
/// Pages of a slab: 2 MiB.
const SLAB_PAGES: usize = 512;
/// Pages under a leaf: 4 MiB.
const LEAF_PAGES: u64 = 1024;
/// Leaves under a branch: 4 GiB.
const BRANCH_LEAVES: u64 = 1024;

/// One page's bytes.
type Page = [u8; PAGE_BYTES];

/// Pages of all disks.
#[derive(Debug)]
pub(crate) struct Arena {
    slabs: Vec<Box<[Page]>>,
    /// Pages given out so far; the numbers of pages begin with 1.
    used: u32,
    free: Vec<u32>,
    limit: u32,
}

/// The arena is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Arena {
    /// Room for `limit_bytes`, rounded down to pages.
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self {
            slabs: Vec::new(),
            used: 0,
            free: Vec::new(),
            limit: u32::try_from(limit_bytes >> PAGE_SHIFT).unwrap_or(u32::MAX - 1),
        }
    }

    /// Bytes in pages that are in use.
    pub(crate) fn stored_bytes(&self) -> u64 {
        (u64::from(self.used) - self.free.len() as u64) << PAGE_SHIFT
    }

    fn allocate(&mut self) -> Result<u32, Full> {
        if let Some(number) = self.free.pop() {
            self.page_mut(number).fill(0);
            return Ok(number);
        }
        if self.used >= self.limit {
            return Err(Full);
        }
        if self.used as usize == self.slabs.len() * SLAB_PAGES {
            let slab = vec![[0; PAGE_BYTES]; SLAB_PAGES].into_boxed_slice();
            self.slabs.push(slab);
        }
        self.used += 1;
        Ok(self.used)
    }

    fn page(&self, number: u32) -> &Page {
        let index = number as usize - 1;
        &self.slabs[index / SLAB_PAGES][index % SLAB_PAGES]
    }

    fn page_mut(&mut self, number: u32) -> &mut Page {
        let index = number as usize - 1;
        &mut self.slabs[index / SLAB_PAGES][index % SLAB_PAGES]
    }
}

/// Page numbers, 0 for none.
type Leaf = Box<[u32]>;
type Branch = Box<[Option<Leaf>]>;

/// One disk's pages. It must be used with the same arena always.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    branches: Vec<Option<Branch>>,
}

/// Bytes from `at` to the end of its page, `length` at most.
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
    /// stops at its first error. No piece is longer than a page.
    pub(crate) fn read<E>(
        &self,
        arena: &Arena,
        at: u64,
        length: usize,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        const NOTHING: Page = [0; PAGE_BYTES];
        let mut done = 0;
        while done < length {
            let here = at + done as u64;
            let count = within_page(here, length - done);
            let offset = here as usize % PAGE_BYTES;
            let page = match self.number(here >> PAGE_SHIFT) {
                0 => &NOTHING,
                number => arena.page(number),
            };
            take(&page[offset..offset + count])?;
            done += count;
        }
        Ok(())
    }

    /// Stores bytes at `at`.
    pub(crate) fn write(&mut self, arena: &mut Arena, at: u64, bytes: &[u8]) -> Result<(), Full> {
        let mut done = 0;
        while done < bytes.len() {
            let here = at + done as u64;
            let count = within_page(here, bytes.len() - done);
            let piece = &bytes[done..done + count];
            let mut number = self.number(here >> PAGE_SHIFT);
            if number == 0 && piece.iter().any(|&byte| byte != 0) {
                number = arena.allocate()?;
                *self.entry(here >> PAGE_SHIFT) = number;
            }
            if number != 0 {
                let offset = here as usize % PAGE_BYTES;
                arena.page_mut(number)[offset..offset + count].copy_from_slice(piece);
            }
            done += count;
        }
        Ok(())
    }

    /// Makes `length` bytes from `at` on zero; whole pages are given back.
    pub(crate) fn clear(&mut self, arena: &mut Arena, at: u64, length: u64) {
        let mut done = 0;
        while done < length {
            let here = at + done;
            let count = within_page(here, usize::try_from(length - done).unwrap_or(usize::MAX));
            let number = self.number(here >> PAGE_SHIFT);
            if number != 0 && count == PAGE_BYTES {
                arena.free.push(number);
                *self.entry(here >> PAGE_SHIFT) = 0;
            } else if number != 0 {
                let offset = here as usize % PAGE_BYTES;
                arena.page_mut(number)[offset..offset + count].fill(0);
            }
            done += count as u64;
        }
    }
}

#[cfg(test)]
mod tests;
