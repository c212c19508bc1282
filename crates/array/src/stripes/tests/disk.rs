//! A disk with a volatile cache.

use super::bench::{SECTOR, index};
use std::collections::BTreeSet;

/// A sector that is not durable yet.
#[derive(Debug, Clone)]
pub(super) struct Volatile {
    pub(super) sector: u64,
    pub(super) bytes: Vec<u8>,
    /// How many sectors had landed on the disk before.
    pub(super) number: u64,
}

/// A disk: what is durable, and writes that are not.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    pub(super) bytes: Vec<u8>,
    /// Landed, not durable, in order.
    pub(super) volatile: Vec<Volatile>,
    pub(super) landed: u64,
    /// Sectors that cannot be read until they are written.
    pub(super) bad: BTreeSet<u64>,
    pub(super) gone: bool,
}

impl Disk {
    pub(super) fn read(&self, start: u64, count: u64) -> Vec<u8> {
        let mut bytes = self.bytes[index(start)..index(start + count)].to_vec();
        for it in &self.volatile {
            if (start..start + count).contains(&it.sector) {
                bytes[index(it.sector - start)..][..SECTOR].copy_from_slice(&it.bytes);
            }
        }
        bytes
    }

    pub(super) fn write(&mut self, start: u64, bytes: &[u8], durable: bool) {
        for (sector, content) in (start..).zip(bytes.chunks(SECTOR)) {
            self.bad.remove(&sector);
            self.volatile.push(Volatile {
                sector,
                bytes: content.to_vec(),
                number: self.landed,
            });
            self.landed += 1;
        }
        if durable {
            let end = start + (bytes.len() / SECTOR) as u64;
            self.settle(|it| (start..end).contains(&it.sector));
        }
    }

    /// These become durable.
    pub(super) fn settle(&mut self, mut which: impl FnMut(&Volatile) -> bool) {
        let all = std::mem::take(&mut self.volatile);
        for it in all {
            if which(&it) {
                self.bytes[index(it.sector)..][..SECTOR].copy_from_slice(&it.bytes);
            } else {
                self.volatile.push(it);
            }
        }
    }
}
