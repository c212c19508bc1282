//! Sparse bytes in sectors: zeros until written, cheap to clone.
//!
//! Pages are shared between clones until one of them writes, so that a
//! snapshot of a disk at a crash point costs pointers, not bytes.

use std::sync::Arc;

/// Bytes of a sector.
pub const SECTOR: usize = 512;
/// Sectors of a page, and of a physical sector of a 512e disk.
pub const PAGE_SECTORS: u64 = 8;
/// Bytes of a page.
pub const PAGE: usize = SECTOR * 8;

/// A run of sectors, of which those never written are zero.
#[derive(Debug, Clone, Default)]
pub struct Pages {
    sectors: u64,
    pages: Vec<Option<Arc<[u8; PAGE]>>>,
}

/// Returns the index of a sector's page and the sector's byte offset in it.
fn place(sector: u64) -> (usize, usize) {
    let page = usize::try_from(sector / PAGE_SECTORS).unwrap_or(usize::MAX);
    let within = (sector % PAGE_SECTORS) as usize;
    (page, within * SECTOR)
}

impl Pages {
    /// A run of this many sectors of zeros.
    #[must_use]
    pub fn new(sectors: u64) -> Self {
        let (pages, _) = place(sectors.next_multiple_of(PAGE_SECTORS));
        Self {
            sectors,
            pages: vec![None; pages],
        }
    }

    /// Returns the number of sectors. Where the last page is not a whole one, version 1.0 of md's
    /// metadata has its superblock at another place than on a disk of whole pages.
    #[must_use]
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Whether the sector is zero because it was never written.
    #[must_use]
    pub fn is_hole(&self, sector: u64) -> bool {
        self.pages[place(sector).0].is_none()
    }

    /// Returns the bytes of one sector.
    #[must_use]
    pub fn sector(&self, sector: u64) -> &[u8; SECTOR] {
        const ZEROS: [u8; SECTOR] = [0; SECTOR];
        let (page, at) = place(sector);
        match &self.pages[page] {
            None => &ZEROS,
            Some(bytes) => bytes[at..].first_chunk().unwrap_or(&ZEROS),
        }
    }

    /// Reads whole sectors.
    pub fn read(&self, start: u64, mut into: &mut [u8]) {
        let (mut page, mut at) = place(start);
        while !into.is_empty() {
            let (piece, rest) = into.split_at_mut(into.len().min(PAGE - at));
            match &self.pages[page] {
                None => piece.fill(0),
                Some(bytes) => piece.copy_from_slice(&bytes[at..at + piece.len()]),
            }
            (page, at, into) = (page + 1, 0, rest);
        }
    }

    /// Fills all sectors with the same page, which is stored once.
    pub fn fill(&mut self, page: &[u8; PAGE]) {
        self.pages.fill(Some(Arc::new(*page)));
    }

    /// Copies the pages of these sectors from another run, sharing their memory.
    pub fn share(&mut self, other: &Self, start: u64, sectors: u64) {
        let (first, _) = place(start);
        let (end, _) = place((start + sectors).next_multiple_of(PAGE_SECTORS));
        self.pages[first..end].clone_from_slice(&other.pages[first..end]);
    }

    /// Writes whole sectors.
    pub fn write(&mut self, start: u64, mut bytes: &[u8]) {
        let (mut index, mut at) = place(start);
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(bytes.len().min(PAGE - at));
            let page = &mut self.pages[index];
            match <&[u8; PAGE]>::try_from(piece) {
                Ok(whole) => *page = Some(Arc::new(*whole)),
                Err(_) => {
                    let page = page.get_or_insert_with(|| Arc::new([0; PAGE]));
                    Arc::make_mut(page)[at..at + piece.len()].copy_from_slice(piece);
                }
            }
            (index, at, bytes) = (index + 1, 0, rest);
        }
    }
}
