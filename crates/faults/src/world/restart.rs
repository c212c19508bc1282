//! The array goes down and comes up again.
//!
//! **Power cut.** The core is gone; what was in flight or in a volatile cache
//! lands as drawn; hung disks answer again or are dead. **Kill.** The core is
//! gone; commands in flight are carried out as they were sent, or not at all, and the
//! caches live.
//! **Stop.** The array is stopped cleanly, and then the power is cut: what a
//! clean stop leaves must not need the caches.
//!
//! Before the array comes up, the members' own words are compared with their
//! bytes (`inspect`): what they call clean must agree.

use super::{LONGEST_WAIT_NS, Violation, World, violation};
use crate::disk::{Health, PendingWrite, Tear};
use crate::driver::{self, Driver, HowToAssemble, Ready, Refusal};
use crate::inspect::{self, Said};
use crate::pages::Pages;
use crate::reader::slot_of;
use crate::script::Restart;
use raidlab_array::Stale;
use raidlab_geometry::SlotSet;
use raidlab_random::Stream;

impl World<'_> {
    pub(super) fn power_cut(&mut self, restart: Restart) -> Result<(), Violation> {
        self.before_a_crash();
        self.did("power cut");
        let degraded = !self.suspects().is_empty();
        let served = self.surely_served();
        self.lose_power(restart.seed);
        self.oracle.power_cut();
        self.come_up(restart, degraded)?;
        self.costs_no_member(restart, served)
    }

    pub(super) fn kill(&mut self, restart: Restart) -> Result<(), Violation> {
        self.before_a_crash();
        self.did("kill");
        let degraded = !self.suspects().is_empty();
        let served = self.surely_served();
        let mut random = Stream::new(restart.seed).fork("kill", 0);
        for (disk, write) in self.pending_writes() {
            if random.percent(50) {
                self.disks[disk].write(write.start, write.bytes, write.durable);
            }
        }
        self.forget_flights();
        self.oracle.power_cut();
        self.come_up(restart, degraded)?;
        self.costs_no_member(restart, served)
    }

    /// Slots whose members serve, as all superblocks say, on disks that live on; none where
    /// some of a superblock or a log cannot be read, as that may cost any member.
    fn surely_served(&self) -> SlotSet {
        let dies = |disk: usize| self.hung[disk].is_some_and(|(_, dies)| dies);
        let mut attached = self.handles.iter().flatten();
        if attached.any(|disk| self.has_spoilt_metadata(*disk)) {
            return SlotSet::EMPTY;
        }
        let lives = |slot: &usize| self.slots[*slot].is_some_and(|disk| !dies(disk));
        let living: SlotSet = (0..self.slots.len()).filter(lives).map(slot_of).collect();
        match self.said() {
            Some(said) if self.reader.redundancy() > 0 => self.in_sync() & said.current() & living,
            _ => SlotSet::EMPTY,
        }
    }

    /// A crash alone takes no member out: whatever of its superblocks has landed, a slot
    /// that was served is. Where disks stay away or come back late, a slot may be lost with
    /// them.
    fn costs_no_member(&self, restart: Restart, served: SlotSet) -> Result<(), Violation> {
        let all_came = restart.missing.is_none() && !restart.stale && restart.again.is_none();
        if self.beyond || self.ended || !all_came {
            return Ok(());
        }
        let lost = served - self.in_sync();
        match lost.is_empty() {
            true => Ok(()),
            false => Err(violation("assembly", format!("a crash has cost {lost:?}"))),
        }
    }

    pub(super) fn stop(&mut self, restart: Restart) -> Result<(), Violation> {
        self.drain()?;
        self.did("stop");
        let degraded = !self.suspects().is_empty();
        self.stop_cleanly()?;
        self.look_at_hole();
        if self.first_sync {
            // Without a log nobody can tell a first resync from one after a crash
            // once the array has been stopped.
            self.before_a_crash();
        }
        self.lose_power(restart.seed);
        self.oracle.power_cut();
        self.come_up(restart, degraded)
    }

    /// A clean stop, to its end.
    pub(super) fn stop_cleanly(&mut self) -> Result<(), Violation> {
        self.call(|driver, now| driver.owner.stop(now))?;
        let deadline = self.now + LONGEST_WAIT_NS;
        let runs =
            |driver: &Option<Driver>| driver.as_ref().is_some_and(|it| !it.owner.has_ended());
        while runs(&self.driver) || !self.flights.is_empty() {
            self.wait_for("the stop", deadline)?;
        }
        Ok(())
    }

    /// Without a log, an unreadable sector and a torn stripe are two faults in
    /// one place, and so is a disk that dies before the stripes are resynced.
    fn before_a_crash(&mut self) {
        self.look_at_hole();
        if !self.has_hole() {
            return;
        }
        let dies = |hung: &Option<(u64, bool)>| hung.is_some_and(|(_, dies)| dies);
        if self.options.over_budget {
            let fails = self.hung.iter().any(dies) || self.trying.contains(&true);
            self.beyond |= !self.unreadable().is_empty() || fails;
            return;
        }
        for (number, disk) in self.disks.iter_mut().enumerate() {
            disk.heal();
            if std::mem::take(&mut self.trying[number]) {
                self.hung[number] = None;
                disk.slowness = 1;
                if disk.health == Health::Hung {
                    disk.health = Health::Well;
                }
            }
        }
        for (_, dies) in self.hung.iter_mut().flatten() {
            *dies = false;
        }
    }

    /// The writes in flight with their disks, in the order sent.
    pub(super) fn pending_writes(&self) -> Vec<(usize, PendingWrite)> {
        let flights = self.flights.values();
        let pending = flights.filter_map(|flight| Some((flight.disk?, flight.pending()?)));
        let mut writes: Vec<(usize, PendingWrite)> =
            pending.filter(|(disk, _)| self.is_alive(*disk)).collect();
        writes.sort_by_key(|(_, write)| write.stamp);
        writes
    }

    fn forget_flights(&mut self) {
        self.flights.clear();
        self.calendar.clear();
        self.models.reset();
        self.asked.clear();
        self.turn_at = None;
        self.delivered.clear();
        self.transient.fill(0);
        self.erring.fill(false);
        self.driver = None;
    }

    pub(super) fn lose_power(&mut self, seed: u64) {
        let random = Stream::new(seed);
        let mut pending = self.pending_writes();
        let torn = pending
            .get(random.clone().below(pending.len() as u64) as usize)
            .cloned();
        for (number, disk) in self.disks.iter_mut().enumerate() {
            let (mine, others) = pending.into_iter().partition(|(its, _)| *its == number);
            pending = others;
            let mine: Vec<(usize, PendingWrite)> = mine;
            let random = random.fork("tear", number as u64);
            let mut tear = Tear::new(self.options.medium, self.options.tear, random);
            let in_flight = mine.into_iter().map(|(_, write)| write).collect();
            disk.power_cut(in_flight, |_, write| {
                tear.draw(write.start, write.sectors())
            });
        }
        for (disk, hung) in self.hung.iter_mut().enumerate() {
            if let Some((_, true)) = hung.take() {
                self.disks[disk].health = Health::Gone;
            }
        }
        if let Some((disk, write)) = torn {
            self.tear_physical(disk, &write);
        }
        self.forget_flights();
    }

    /// A drive of 512-byte sectors that writes 4 KiB at a time may lose all of
    /// them. That is one more unreadable place: within the promise if the level
    /// can bear one more and the stripe is not open to the write hole.
    fn tear_physical(&mut self, disk: usize, write: &PendingWrite) {
        let slot = self.slots.iter().position(|its| *its == Some(disk));
        let Some(slot) = slot.filter(|_| self.options.tear_physical && !self.has_hole()) else {
            return;
        };
        let (start, size) = self.reader.areas[slot];
        let in_data = write.start >= start && write.start < start + size;
        let aligned = start.is_multiple_of(8) && size.is_multiple_of(8);
        let bad = (self.suspects() | self.unreadable()).with(slot_of(slot));
        if in_data && aligned && bad.len() <= self.reader.redundancy() {
            self.disks[disk].tear_physical(write.start);
            self.did("torn physical sector");
        }
    }

    /// What is on the disks now is assembled.
    pub(super) fn come_up(&mut self, restart: Restart, degraded: bool) -> Result<(), Violation> {
        self.verify_promises()?;
        let mut present: Vec<usize> = self.handles.iter().copied().flatten().collect();
        self.stale = [Stale::LeaveOut, Stale::ReAdd, Stale::Rebuild][(restart.seed % 3) as usize];
        if restart.stale {
            present.extend(self.retired.iter().map(|(_, disk)| *disk));
        }
        present.retain(|disk| self.is_alive(*disk));
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
        let log_is_lost = present.iter().any(|disk| self.has_spoilt_metadata(*disk));
        let mut assembled = match self.assemble(&present, false, restart.again) {
            Err(Refusal::PowerCut) => {
                self.did("power cut in replay");
                self.lose_power(restart.seed ^ 1);
                self.assemble(&present, false, None)
            }
            assembled => assembled,
        };
        if matches!(assembled, Err(Refusal::SplitBrain)) && self.drop_strangers(&mut present) {
            assembled = self.assemble(&present, false, None);
        }
        if assembled.is_err() && self.drop_unreadable(&mut present) {
            if self.ends_without_witness(&present) {
                return Ok(());
            }
            assembled = self.assemble(&present, false, None);
        }
        let is_open = self.options.level.parity_count() > 0 && self.first_sync && log_is_lost;
        if self.has_hole() || is_open {
            // Nobody can tell a first resync by now.
            self.hole_open = true;
            self.first_sync = false;
        }
        match assembled {
            Ok(assembled) => self.take(assembled),
            Err(refusal) => self.refused(&refusal, &present, missing, degraded),
        }
    }

    /// Ends a run beyond the budget in which all who knew that these disks were out
    /// of date are lost, or were taken away: nobody can tell.
    fn ends_without_witness(&mut self, present: &[usize]) -> bool {
        if !self.beyond || self.has_newest(present) {
            return false;
        }
        self.did("no witness left");
        self.ended = true;
        true
    }

    /// Whether a disk with the highest event count of all that ever were is here.
    fn has_newest(&self, present: &[usize]) -> bool {
        let events =
            |disk: usize| inspect::events(self.disks[disk].pristine(), self.options.version);
        let newest = (0..self.disks.len()).filter_map(events).max();
        present.iter().filter_map(|disk| events(*disk)).max() == newest
    }

    /// Disks from an earlier time of the array that knew none of those that
    /// are current now cannot be told from the other side of a split: that they
    /// are refused is right. True if there were any; then the user has taken
    /// them away.
    fn drop_strangers(&mut self, present: &mut Vec<usize>) -> bool {
        let version = self.options.version;
        // Those taken out; those that failed, or were just put in, and are still
        // attached; and those in a slot of which no superblock knows yet.
        let served = (SlotSet::first(self.slots.len()) - self.unrecorded()).iter();
        let served: Vec<usize> = served.filter_map(|slot| self.slots[slot.index()]).collect();
        let is_stranger = |disk: &usize| {
            let old = &self.disks[*disk];
            let mut current = self.slots.iter().flatten();
            let knows = |other: &usize| {
                let other = self.disks[*other].pristine();
                inspect::knows(old.pristine(), other, version)
            };
            !served.contains(disk)
                && !current.any(|other| present.contains(other) && other != disk && knows(other))
        };
        let strangers: Vec<usize> = present.iter().copied().filter(is_stranger).collect();
        if strangers.is_empty() {
            return false;
        }
        self.did("stranger refused");
        present.retain(|disk| !strangers.contains(disk));
        true
    }

    /// Disks whose log or superblock cannot be read, and that the user takes away
    /// when the array is refused with them. True if there were any.
    fn drop_unreadable(&mut self, present: &mut Vec<usize>) -> bool {
        let before = present.len();
        present.retain(|disk| !self.has_spoilt_metadata(*disk));
        if present.len() < before {
            self.did("unreadable disk taken away");
        }
        present.len() < before
    }

    /// Whether some of a disk outside of its data area cannot be read.
    fn has_spoilt_metadata(&self, disk: usize) -> bool {
        let slot = self.slots.iter().position(|its| *its == Some(disk));
        let (offset, size) = self.reader.areas[slot.unwrap_or(0)];
        let disk = &self.disks[disk];
        let mut spoilt = disk.overlays(0, disk.sectors());
        spoilt.any(|(sector, _)| sector < offset || sector >= offset + size)
    }

    /// A disk that does not come back, or only `later`, out of date by then, if
    /// the budget allows it. Without a log it may always stay away: then a
    /// dirty array must refuse.
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

    /// As `suspects`, while no core runs.
    fn suspects_at_rest(&self) -> SlotSet {
        let dead = |slot: &usize| self.slots[*slot].is_none_or(|disk| !self.is_alive(disk));
        let dead: SlotSet = (0..self.slots.len()).filter(dead).map(slot_of).collect();
        dead | self.unrecorded()
    }

    /// The array was refused. That is right for a dirty, degraded array with
    /// parity and without a log, and beyond the budget.
    fn refused(
        &mut self,
        refusal: &Refusal,
        present: &[usize],
        missing: Option<usize>,
        degraded: bool,
    ) -> Result<(), Violation> {
        let degraded = degraded || missing.is_some();
        let right = matches!(refusal, Refusal::WriteHole(_)) && self.has_hole() && degraded;
        if self.beyond {
            return self.force(present);
        }
        if !right {
            return Err(violation("assembly", format!("refused: {refusal:?}")));
        }
        self.did("write hole refused");
        if let Some(disk) = missing {
            // It was only late.
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

    /// With force: the stripes that were being written may be lost.
    fn force(&mut self, present: &[usize]) -> Result<(), Violation> {
        self.did("forced assembly");
        self.forget_open_rows();
        match self.assemble(present, true, None) {
            Ok(assembled) => self.take(assembled),
            Err(refusal) if self.beyond => {
                // Nothing is left to be asked.
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

    /// Members out of date that were taken because nothing newer is left: what
    /// changed since they were in sync is lost, and what is computed from it.
    pub(super) fn forget_what_they_missed(&mut self, forced: &[usize]) {
        let since = forced.iter().map(|disk| self.in_sync_until[*disk]).min();
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

    /// Rows of 4 KiB windows with a sector that may hold more than one value.
    fn forget_open_rows(&mut self) {
        if self.hole_open {
            // Never in sync: nothing computed can be trusted.
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

    /// The pristine bytes of each slot's disk, if it lives.
    fn living(&self) -> Vec<Option<&Pages>> {
        let living = self
            .slots
            .iter()
            .map(|disk| disk.filter(|disk| self.is_alive(*disk)));
        living
            .map(|disk| disk.map(|disk| self.disks[disk].pristine()))
            .collect()
    }

    /// What the members' superblocks say now.
    pub(super) fn said(&self) -> Option<Said> {
        Said::read(self.options.version, &self.living())
    }

    /// What the members say of themselves holds for their bytes.
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
