//! The stop of the array, before its next start (`come_up`).
//!
//! **Power cut.** The core is gone; writes in flight or in a volatile cache land as drawn; hung
//! disks answer again or are dead. **Kill.** The core is gone; commands in flight are carried out
//! as they were sent, or not at all, and the caches survive. **Stop.** The array is stopped
//! cleanly, and then the power is cut: a clean stop must not rely on the caches.

use super::{LONGEST_WAIT_NS, Standing, Violation, World, violation};
use crate::disk::{Health, PendingWrite, Tear};
use crate::driver::Driver;
use crate::reader::slot_of;
use crate::script::Restart;
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

    /// Returns the slots whose members serve by all superblocks, on disks that live on; and those
    /// that another disk has taken over from a member that has not failed, whatever the
    /// superblocks record. None where any part of a superblock or a log is unreadable, as that may
    /// cost any member.
    pub(crate) fn surely_served(&self) -> SlotSet {
        let dies = |disk: usize| self.standing[disk].hung.is_some_and(|(_, dies)| dies);
        let mut attached = self.handles.iter().flatten();
        if attached.any(|disk| self.has_spoilt_metadata(*disk)) {
            return SlotSet::EMPTY;
        }
        let lives = |slot: &usize| self.slots[*slot].is_some_and(|disk| !dies(disk));
        let living: SlotSet = (0..self.slots.len()).filter(lives).map(slot_of).collect();
        match self.said() {
            Some(said) if self.reader.redundancy() > 0 => {
                self.in_sync() & (said.current() | self.safely_handed_over()) & living
            }
            _ => SlotSet::EMPTY,
        }
    }

    /// Checks that a crash alone removes no member: whichever of its superblocks have landed, a
    /// slot that was served is served again. Where disks stay away or come back late, a slot may be
    /// lost with them.
    pub(super) fn costs_no_member(
        &self,
        restart: Restart,
        served: SlotSet,
    ) -> Result<(), Violation> {
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
        self.did("stop");
        let degraded = !self.suspects().is_empty();
        self.stop_cleanly()?;
        self.look_at_hole();
        if self.first_sync {
            // Without a log a first resync cannot be distinguished from one after a crash once the
            // array has been stopped.
            self.before_a_crash();
        }
        self.lose_power(restart.seed);
        self.oracle.power_cut();
        self.come_up(restart, degraded)
    }

    /// Stops the array cleanly, and waits for the end.
    pub(super) fn stop_cleanly(&mut self) -> Result<(), Violation> {
        self.call(|driver, now| driver.owner.stop(now))?;
        let deadline = self.now + LONGEST_WAIT_NS;
        let runs =
            |driver: &Option<Driver>| driver.as_ref().is_some_and(|it| !it.owner.has_ended());
        while runs(&self.driver) || !self.flights.is_empty() || !self.asked.is_empty() {
            self.wait_for("the stop", deadline)?;
        }
        Ok(())
    }

    /// Prepares for a crash: without a log, an unreadable sector and a torn stripe are two faults
    /// in one place, and so is a disk that dies before the stripes are resynced.
    fn before_a_crash(&mut self) {
        self.look_at_hole();
        if !self.has_hole() {
            return;
        }
        if self.options.over_budget {
            let fails = |it: &Standing| it.trying || it.hung.is_some_and(|(_, dies)| dies);
            let any_fails = self.standing.iter().any(fails);
            self.beyond |= !self.unreadable().is_empty() || any_fails;
            return;
        }
        for (disk, standing) in self.disks.iter_mut().zip(&mut self.standing) {
            disk.heal();
            if std::mem::take(&mut standing.trying) {
                standing.hung = None;
                disk.slowness = 1;
                if disk.health == Health::Hung {
                    disk.health = Health::Well;
                }
            }
            if let Some((_, dies)) = &mut standing.hung {
                *dies = false;
            }
        }
    }

    /// Returns the writes in flight with their disks, in the order sent.
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
        for standing in &mut self.standing {
            (standing.transient, standing.erring) = (0, false);
        }
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
        for (disk, standing) in self.disks.iter_mut().zip(&mut self.standing) {
            if let Some((_, true)) = standing.hung.take() {
                disk.health = Health::Gone;
            }
        }
        if let Some((disk, write)) = torn {
            self.tear_physical(disk, &write);
        }
        self.forget_flights();
    }

    /// Makes the physical sector of a write unreadable: a drive of 512-byte sectors that writes 4
    /// KiB at a time may lose all of them. That is one more unreadable place: within the promise if
    /// the level tolerates one more and the stripe is not open to the write hole.
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
}
