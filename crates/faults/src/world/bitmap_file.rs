//! The file of the bitmap, where that is not on the members.
//!
//! It lies on a disk of its own, which may err, die, or be away at a start. That costs no data, and
//! no member: the array then has to treat every chunk as dirty.

use super::World;
use crate::disk::Health;
use crate::script::Restart;
use raidlab_array::{EXTERNAL_BITMAP, Slot};
use raidlab_serve::array::place_of;

impl World<'_> {
    /// Returns the disk that is attached at a place of the driver.
    pub(super) fn disk_at(&self, place: usize) -> Option<usize> {
        match place == place_of(EXTERNAL_BITMAP) {
            true => self.bitmap_file,
            false => self.handles.get(place).copied().flatten(),
        }
    }

    /// Returns the disk to which the core's commands to a slot go.
    pub(super) fn disk_of(&self, slot: Slot) -> Option<usize> {
        self.disk_at(place_of(slot))
    }

    /// Returns the disk with the bitmap's file, if it lives.
    pub(super) fn living_bitmap_file(&self) -> Option<usize> {
        self.bitmap_file.filter(|disk| self.is_alive(*disk))
    }

    /// Decides whether the file is away at a start.
    pub(super) fn find_bitmap_file(&mut self, restart: Restart) {
        let is_away = (restart.seed >> 48).is_multiple_of(4);
        self.bitmap_there = self.living_bitmap_file().filter(|_| !is_away);
        if self.bitmap_there != self.bitmap_file {
            self.did("no bitmap file");
        }
    }

    pub(super) fn lose_bitmap_file(&mut self) -> bool {
        let file = self.living_bitmap_file();
        if let Some(disk) = file {
            self.disks[disk].health = Health::Gone;
        }
        self.bitmap_there = None;
        file.is_some()
    }

    pub(super) fn bitmap_file_errs(&mut self, commands: u32) -> bool {
        let file = self.living_bitmap_file();
        if let Some(disk) = file {
            self.standing[disk].transient = commands;
        }
        file.is_some()
    }
}
