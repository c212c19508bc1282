//! The reads of a solid-state disk: those of its commands, and those ahead of streams.

use super::super::ahead::Found;
use super::super::dies::Page;
use super::super::events::Event;
use super::{FlashDisk, PAGE_SECTORS};
use crate::command::{Command, CommandKind};
use raidlab_units::SECTOR_BYTES;
use std::ops::Range;

/// The bit by which the dies tell what is fetched of a stream from what a command waits for.
const AHEAD: u32 = 1 << 31;

impl FlashDisk {
    /// Begins the reads of a command's pages; those within one page of flash are one read.
    pub(super) fn read(&mut self, now: u64, slot: u32) {
        let Command { start, count, .. } = self.flights[slot as usize].command;
        let end = start.0 + count.0;
        self.ahead.follow(start.0..end);
        self.flights[slot as usize].pending = 1;
        let mut sector = start.0;
        while sector < end {
            let (page, next) = self.page(sector);
            let next = next.min(end);
            let bytes = (next - sector) * SECTOR_BYTES;
            self.flights[slot as usize].pending += 1;
            match (page, self.ahead.find(&(sector..next), slot, bytes)) {
                (_, Found::Coming) => {}
                (_, Found::Here) | (None, Found::Nowhere) => self.came(now, slot, bytes),
                (Some(page), Found::Nowhere) => self.read_page(now, slot, page, bytes),
            }
            sector = next;
        }
        self.came(now, slot, 0);
        while let Some(sector) = self.ahead.next() {
            match self.page(sector) {
                (Some(page), next) => {
                    let piece = self.ahead.fetch(sector..next);
                    self.read_page(now, AHEAD | piece, page, (next - sector) * SECTOR_BYTES);
                }
                (None, next) => self.ahead.skip(next),
            }
        }
    }

    /// The page of flash in which a sector lies, if any, and where the next one begins.
    pub(super) fn page(&self, sector: u64) -> (Option<Page>, u64) {
        let logical = sector / PAGE_SECTORS;
        let alone = (logical + 1) * PAGE_SECTORS;
        let Some(location) = self.writes.pages.location(logical) else {
            return (None, alone);
        };
        let dies = self.numbers.dies as u64;
        let in_page = self.numbers.page.0 / SECTOR_BYTES;
        let (die, next) = if location.together {
            (sector / in_page % dies, (sector / in_page + 1) * in_page)
        } else {
            (((location.hash & 0xffff_ffff) * dies) >> 32, alone)
        };
        let bit = (((location.hash >> 32) & 0xffff) * u64::from(self.numbers.bits)) >> 16;
        let page = Page {
            die: die as usize,
            number: location.hash,
            sense: self.numbers.sense_time(bit as u32),
        };
        (Some(page), next)
    }

    /// Reads so many bytes of a page of flash.
    pub(super) fn read_page(&mut self, now: u64, command: u32, page: Page, bytes: u64) {
        let due = self.dies.read(now, page, command, bytes as u32);
        if let Some(at) = due {
            self.push(at, Event::Die(page.die as u32));
        }
    }

    /// Counts bytes for a command that came from a die, or of pages that are not mapped.
    pub(super) fn came(&mut self, now: u64, slot: u32, bytes: u64) {
        let flight = &mut self.flights[slot as usize];
        flight.pending -= 1;
        if flight.command.kind == CommandKind::Read {
            if bytes > 0 {
                flight.end = self.link.transfer(now, 1, bytes);
            }
            if flight.pending == 0 {
                let end = flight.end.max(now);
                self.push(end, Event::Sent(slot));
            }
        } else if flight.pending == 0 {
            self.admit(now, slot);
        }
    }

    /// Handles a read of a die that has ended.
    pub(super) fn ended_read(&mut self, now: u64, command: u32, bytes: u64) {
        if command & AHEAD == 0 {
            return self.came(now, command, bytes);
        }
        for (slot, bytes) in self.ahead.arrived(command & !AHEAD) {
            self.came(now, slot, bytes);
        }
    }

    /// Makes dies forget logical pages that are written anew, which lie elsewhere from then on.
    pub(super) fn forget_pages(&mut self, pages: Range<u64>) {
        let mut sector = pages.start * PAGE_SECTORS;
        while sector < pages.end * PAGE_SECTORS {
            let (page, next) = self.page(sector);
            if let Some(page) = page {
                self.dies.forget(page);
            }
            sector = next;
        }
    }
}
