//! The start of the array from the contents of the disks.
//!
//! Before it, the claims of the members' metadata are compared with their bytes (`inspect`): parts
//! that they call clean must agree. Disks may stay away or come back late. Where the array is
//! refused, that has to be right, and the user removes the disks that cause it, or uses force.

use super::{Violation, World, violation};
use crate::disk::Health;
use crate::driver::{self, HowToAssemble, Ready, Refusal};
use crate::inspect::{self, Said};
use crate::pages::Pages;
use crate::reader::slot_of;
use crate::script::Restart;
use raidlab_array::Stale;
use raidlab_geometry::SlotSet;
use raidlab_random::Stream;

impl World<'_> {
    /// Assembles the array from the disks as they are now.
    pub(super) fn come_up(&mut self, restart: Restart, degraded: bool) -> Result<(), Violation> {
        self.verify_promises()?;
        let mut present: Vec<usize> = self.handles.iter().copied().flatten().collect();
        self.stale = [Stale::LeaveOut, Stale::ReAdd, Stale::Rebuild][(restart.seed % 3) as usize];
        if restart.stale {
            present.extend(self.retired.iter().map(|(_, disk)| *disk));
        }
        present.retain(|disk| self.is_alive(*disk));
        self.find_bitmap_file(restart);
        let missing = restart
            .missing
            .and_then(|slot| self.leave_out(slot, degraded, restart.seed >> 16 & 1 == 1));
        present.retain(|disk| Some(*disk) != missing);
        shuffle(
            &mut present,
            &mut Stream::new(restart.seed).fork("order", 0),
        );
        if self.ends_without_witness(&present) {
            return Ok(());
        }
        // Old members may form an array of their own, which is looked at, too.
        if !restart.stale && (restart.seed >> 32).is_multiple_of(4) {
            self.glance(&present)?;
        }
        self.grows = self.is_to_grow(restart);
        let spoilt: Vec<usize> = present
            .iter()
            .copied()
            .filter(|disk| self.has_spoilt_metadata(*disk))
            .collect();
        let forces = self.is_forced(restart, degraded || missing.is_some(), &present);
        let mut assembled = match self.assemble(&present, forces, restart.again) {
            Err(Refusal::PowerCut) => {
                self.did("power cut in replay");
                self.lose_power(restart.seed ^ 1);
                self.assemble(&present, forces, None)
            }
            assembled => assembled,
        };
        assembled = self.without_growth(assembled, &present);
        assembled = self.without_strangers(assembled, &mut present);
        let is_dropped = assembled.is_err() && !self.ended && self.drop_unreadable(&mut present);
        let degraded = degraded || is_dropped;
        if is_dropped && !self.ends_without_witness(&present) {
            // Disks that were known through one of them count as strangers now.
            let again = self.assemble(&present, false, None);
            assembled = self.without_strangers(again, &mut present);
        }
        if self.ended {
            return Ok(());
        }
        if let Ok(ready) = &assembled
            && forces
            && !ready.forced.is_empty()
        {
            let detail = format!("a needless force takes {:?}", ready.forced);
            return Err(violation("assembly", detail));
        }
        // A disk that was taken away as its log could not be read, and is back, was not in the run
        // since. Where the runs before and after have no log in common, parity is made anew.
        let is_back = |disk: &usize| !self.slots.contains(&Some(*disk));
        let is_lost = self.first_sync && !spoilt.is_empty()
            || assembled.is_ok() && spoilt.iter().any(is_back);
        if self.has_hole() || self.options.level.parity_count() > 0 && is_lost {
            // A first resync cannot be distinguished from another one any more.
            self.hole_open = true;
            self.first_sync = false;
        }
        match assembled {
            Ok(assembled) => self.take(assembled),
            Err(refusal) => self.refused(&refusal, &present, missing, degraded),
        }
    }

    /// Ends a run beyond the budget in which all disks that could tell that these are out of date
    /// are lost, or were removed. Returns whether it did.
    fn ends_without_witness(&mut self, present: &[usize]) -> bool {
        if !self.beyond || self.has_newest(present) {
            return false;
        }
        self.did("no witness left");
        self.ended = true;
        true
    }

    /// Whether a readable disk with the highest event count of all that ever existed is present.
    fn has_newest(&self, present: &[usize]) -> bool {
        let version = self.options.version;
        let events = |disk: usize| inspect::events(self.disks[disk].pristine(), version);
        let can_tell = |disk: &usize| {
            let disk = &self.disks[*disk];
            let superblock = inspect::superblock_sector(disk.sectors(), version);
            let mut spoilt = disk.overlays(superblock, inspect::SUPERBLOCK_SECTORS);
            spoilt.next().is_none()
        };
        let newest = (0..self.disks.len()).filter_map(events).max();
        let here = present.iter().copied().filter(can_tell);
        here.filter_map(events).max() == newest
    }

    /// Returns the result of assembling again without the disks that are rightly refused.
    fn without_strangers(
        &mut self,
        assembled: Result<Ready, Refusal>,
        present: &mut Vec<usize>,
    ) -> Result<Ready, Refusal> {
        match assembled {
            Err(Refusal::SplitBrain)
                if self.drop_strangers(present) && !self.ends_without_witness(present) =>
            {
                self.assemble(present, false, None)
            }
            assembled => assembled,
        }
    }

    /// Removes strangers: disks from an earlier time of the array that knew none of the current
    /// ones. They cannot be distinguished from the other side of a split, so their refusal is
    /// right. Returns true if there were any; then the user has removed them.
    fn drop_strangers(&mut self, present: &mut Vec<usize>) -> bool {
        let version = self.options.version;
        // The candidates: disks that were removed; failed or new ones that are still attached; and
        // those in a slot that no superblock records yet.
        let served = (SlotSet::first(self.slots.len()) - self.unrecorded()).iter();
        let served: Vec<usize> = served.filter_map(|slot| self.slots[slot.index()]).collect();
        let is_stranger = |disk: &usize, present: &[usize]| {
            let old = &self.disks[*disk];
            let mut current = self.slots.iter().flatten();
            let knows = |other: &usize| {
                let other = self.disks[*other].pristine();
                inspect::knows(old.pristine(), other, version)
            };
            !served.contains(disk)
                && !current.any(|other| present.contains(other) && other != disk && knows(other))
        };
        let before = present.len();
        // Who knows a stranger alone is one as well.
        while let Some(at) = present.iter().position(|disk| is_stranger(disk, present)) {
            present.remove(at);
        }
        if present.len() == before {
            return false;
        }
        self.did("stranger refused");
        true
    }

    /// Removes disks whose log or superblock is unreadable, as the user does when the array is
    /// refused with them. Returns true if there were any.
    fn drop_unreadable(&mut self, present: &mut Vec<usize>) -> bool {
        let before = present.len();
        present.retain(|disk| !self.has_spoilt_metadata(*disk));
        if present.len() < before {
            self.did("unreadable disk taken away");
        }
        present.len() < before
    }

    /// Whether any part of a disk outside of its data area is unreadable.
    pub(super) fn has_spoilt_metadata(&self, disk: usize) -> bool {
        let slot = self.slots.iter().position(|its| *its == Some(disk));
        let (offset, size) = self.reader.areas[slot.unwrap_or(0)];
        let disk = &self.disks[disk];
        let mut spoilt = disk.overlays(0, disk.sectors());
        spoilt.any(|(sector, _)| sector < offset || sector >= offset + size)
    }

    /// Chooses a disk that does not come back, or only `later`, out of date by then, if the budget
    /// allows it. Without a log it may always stay away: then a dirty array must refuse.
    fn leave_out(&mut self, slot: usize, degraded: bool, later: bool) -> Option<usize> {
        let disk = self.slots[slot]?;
        let bad = (self.suspects_at_rest() | self.unreadable()).with(slot_of(slot));
        let within = bad.len() <= self.reader.redundancy() && !degraded && !self.hole_open;
        if !within || !self.is_alive(disk) {
            return None;
        }
        if later {
            self.did("disk late at restart");
        } else {
            self.disks[disk].health = Health::Gone;
            self.did("disk missing at restart");
        }
        Some(disk)
    }

    /// Returns the slots whose disk cannot be relied on while no core runs: dead or not current.
    fn suspects_at_rest(&self) -> SlotSet {
        let dead = |slot: &usize| self.slots[*slot].is_none_or(|disk| !self.is_alive(disk));
        let dead: SlotSet = (0..self.slots.len()).filter(dead).map(slot_of).collect();
        dead | self.unrecorded()
    }

    /// Handles a refusal of the array. It is right for a dirty, degraded array with parity that has
    /// no log, or has not made its parity anew since the log was lost; and beyond the budget.
    fn refused(
        &mut self,
        refusal: &Refusal,
        present: &[usize],
        missing: Option<usize>,
        degraded: bool,
    ) -> Result<(), Violation> {
        let degraded = degraded || missing.is_some();
        let may_be_torn = self.has_hole() || self.hole_open;
        let right = matches!(refusal, Refusal::WriteHole(_)) && may_be_torn && degraded;
        if self.beyond {
            return self.force(present);
        }
        if !right {
            return Err(violation("assembly", format!("refused: {refusal:?}")));
        }
        self.did("write hole refused");
        if let Some(disk) = missing {
            // The disk was only late.
            self.disks[disk].health = Health::Well;
            let mut all = present.to_vec();
            all.push(disk);
            let assembled = self.assemble(&all, false, None);
            if let Ok(assembled) = assembled {
                return self.take(assembled);
            }
        }
        self.force(present)
    }

    /// Whether this start is forced without need. It is not where force would accept an array that
    /// is refused otherwise: a write hole, a log that cannot be read, or one side of a split.
    fn is_forced(&mut self, restart: Restart, degraded: bool, present: &[usize]) -> bool {
        let is_asked = self.options.seldom.forces && (restart.seed >> 44).is_multiple_of(3);
        let accepts = self.has_hole() && degraded
            || restart.stale
            || present.iter().any(|disk| self.has_spoilt_metadata(*disk));
        let forces = is_asked && !accepts && !self.beyond;
        if forces {
            self.did("needless force");
        }
        forces
    }

    /// Assembles with force: the stripes that were being written may be lost.
    fn force(&mut self, present: &[usize]) -> Result<(), Violation> {
        self.did("forced assembly");
        self.forget_open_rows();
        match self.assemble(present, true, None) {
            Ok(assembled) => self.take(assembled),
            Err(refusal) if self.beyond => {
                // The run ends here, as no array is left.
                let text = format_args!("  refused with force: {refusal:?}");
                self.trace.note(self.now, &[10], text);
                self.ended = true;
                Ok(())
            }
            Err(refusal) => Err(violation(
                "assembly",
                format!("refused with force: {refusal:?}"),
            )),
        }
    }

    /// Permits the loss of what members lack that are out of date and were taken because no newer
    /// ones are left: sectors that changed since they were in sync, and those computed from them.
    pub(super) fn forget_what_they_missed(&mut self, forced: &[usize]) {
        let since = forced
            .iter()
            .map(|disk| self.standing[*disk].in_sync_until)
            .min();
        let Some(since) = since.filter(|_| self.beyond) else {
            return;
        };
        let changed: Vec<u64> = self.oracle.changed_since(since).collect();
        for sector in changed {
            if self.options.level.parity_count() == 0 {
                self.oracle.forget(sector, 1);
                continue;
            }
            for other in self.reader.window_of(sector) {
                self.oracle.forget(other, 1);
            }
        }
    }

    /// Permits any content of rows of 4 KiB windows with a sector that may have more
    /// than one value.
    fn forget_open_rows(&mut self) {
        if self.hole_open {
            // The array was never in sync, so that nothing computed can be trusted.
            self.oracle.forget(0, self.reader.size);
        }
        let open: Vec<u64> = (0..self.reader.size)
            .filter(|sector| !self.oracle.is_certain(*sector))
            .collect();
        for sector in open {
            for other in self.reader.window_of(sector) {
                self.oracle.forget(other, 1);
            }
        }
    }

    pub(super) fn assemble(
        &mut self,
        present: &[usize],
        force: bool,
        cut_replay_after: Option<u64>,
    ) -> Result<Ready, Refusal> {
        let how = HowToAssemble {
            force,
            session: self.latency.next_u64() | 1,
            stale: self.stale,
            read_only: false,
            grows: self.grows,
            bitmap: self.bitmap_there,
        };
        let assembled = self.shelf.lend(&mut self.disks, cut_replay_after, |shelf| {
            driver::assemble(self.options, shelf, present, how)
        });
        let words = present
            .iter()
            .map(|disk| *disk as u64)
            .collect::<Vec<u64>>();
        let text = match &assembled {
            Ok(assembled) => format!("{:?}", assembled.handles),
            Err(refusal) => format!("refused: {refusal:?}"),
        };
        self.trace.note(
            self.now,
            &words,
            format_args!("assemble {present:?}: {text}"),
        );
        assembled
    }

    /// Returns the pristine bytes of each slot's disk, if it lives.
    fn living(&self) -> Vec<Option<&Pages>> {
        let living = self
            .slots
            .iter()
            .map(|disk| disk.filter(|disk| self.is_alive(*disk)));
        living
            .map(|disk| disk.map(|disk| self.disks[disk].pristine()))
            .collect()
    }

    /// Returns the present claims of the members' superblocks.
    pub(super) fn said(&self) -> Option<Said> {
        let file = self.living_bitmap_file();
        let file = file.map(|disk| self.disks[disk].pristine());
        Said::read(self.options.version, &self.living(), file)
    }

    /// Checks that the claims of the members' metadata are true of their bytes.
    fn verify_promises(&mut self) -> Result<(), Violation> {
        if self.beyond || self.reader.redundancy() == 0 || self.has_notes() {
            return Ok(());
        }
        let Some(said) = self.said() else {
            return Ok(());
        };
        self.did("crash point inspected");
        said.verify(&self.reader, &self.living())
            .map_err(|detail| violation("bitmap", detail))
    }
}

fn shuffle(list: &mut [usize], random: &mut Stream) {
    for last in (1..list.len()).rev() {
        list.swap(last, random.below(last as u64 + 1) as usize);
    }
}
