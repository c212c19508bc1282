//! The settling of the world, after which everything must be right.
//!
//! First all of the array is read, degraded or not. Then the empty slots are filled, the syncs
//! awaited, the array flushed. The content that the independent reader finds on the members must be
//! permitted; copies and parity agree; every loss of as many members as the level tolerates leaves
//! every byte. At last the array's own check must find nothing.

use super::{LONGEST_WAIT_NS, Violation, World, violation};
use crate::driver::Driver;
use crate::pages::Pages;
use crate::reader::SectorBytes;
use crate::value::Value;
use raidlab_array::{MemberState, Operation, SyncAction};
use raidlab_geometry::SlotSet;

/// The bytes that are read in one verification to try all losses.
const LOSS_BUDGET: u64 = 6 << 20;

/// The most rounds of mending: each brings every member in sync, or leaves one dying disk fewer.
const MOST_ROUNDS: u32 = 8;

impl World<'_> {
    /// Lets everything settle, and verifies it.
    pub(super) fn settle(&mut self) -> Result<(), Violation> {
        self.drain()?;
        self.read_everything()?;
        self.go_on()?;
        self.end_faults();
        if self.beyond {
            return self.settle_beyond();
        }
        self.mend_and_flush()?;
        self.verify()?;
        self.check_finds(0..0)
    }

    /// Brings every slot in sync, flushes everything, and waits until nothing is in flight. A disk
    /// that hangs answers the flush at last, or dies of it: then all begins anew.
    fn mend_and_flush(&mut self) -> Result<(), Violation> {
        for _ in 0..MOST_ROUNDS {
            self.mend_and_sync()?;
            self.ask(Operation::Flush, 0, 0, false)?;
            self.drain()?;
            self.quiet("the flush", LONGEST_WAIT_NS)?;
            if self.is_whole() {
                return Ok(());
            }
        }
        Err(self.never_whole())
    }

    /// Whether every slot's member is in sync and lives.
    fn is_whole(&self) -> bool {
        let mut disks = self.slots.iter().flatten();
        self.in_sync().len() == self.slots.len() && disks.all(|disk| self.is_alive(*disk))
    }

    fn never_whole(&self) -> Violation {
        let states = self.states();
        let detail = format!("members are not in sync again: {states:?}");
        violation("liveness", detail)
    }

    /// Settles a world beyond the budget: every answer must be right.
    fn settle_beyond(&mut self) -> Result<(), Violation> {
        self.quiet("the end", LONGEST_WAIT_NS)?;
        self.read_everything()?;
        self.did("over-budget settled");
        Ok(())
    }

    /// Ends the faults of disks: hung or slow ones are well again, or die.
    fn end_faults(&mut self) {
        for disk in &mut self.disks {
            disk.slowness = 1;
        }
        self.standing.iter_mut().for_each(|it| it.transient = 0);
    }

    /// Brings every slot in sync, and waits until nothing is in flight.
    pub(super) fn mend_and_sync(&mut self) -> Result<(), Violation> {
        for _ in 0..MOST_ROUNDS {
            self.quiet("sync", LONGEST_WAIT_NS)?;
            if self.is_whole() && self.unreadable().is_empty() {
                return Ok(());
            }
            self.notice_the_dead()?;
            self.mend(false, true)?;
            if self.in_sync().len() == self.slots.len() {
                self.rewrite_unreadable();
                self.repair_noted()?;
            }
        }
        Err(self.never_whole())
    }

    /// Fails disks that have died without the core having used them since.
    fn notice_the_dead(&mut self) -> Result<(), Violation> {
        for slot in 0..self.slots.len() {
            let dead = self.slots[slot].is_some_and(|disk| !self.is_alive(disk));
            let state = self.states().get(slot).copied();
            let unnoticed = !matches!(state, Some(MemberState::Faulty | MemberState::Missing));
            if dead
                && unnoticed
                && let Some(handle) = self.handle_of(slot)
            {
                // A last member in sync cannot be failed: beyond the budget.
                let _refused = self.call(|driver, now| driver.fail(now, handle))?;
                self.quiet("a failure", LONGEST_WAIT_NS)?;
            }
        }
        Ok(())
    }

    /// Clears unreadable sectors that were never read.
    fn rewrite_unreadable(&mut self) {
        for disk in self.slots.iter().flatten() {
            self.disks[*disk].heal();
        }
    }

    /// Waits until no sync runs, no request is in work and no command in flight.
    pub(super) fn quiet(&mut self, what: &str, longest: u64) -> Result<(), Violation> {
        let deadline = self.now + longest;
        loop {
            let busy = |driver: &Driver| driver.is_syncing() || !driver.is_idle();
            let busy = self.driver.as_ref().is_some_and(busy);
            if !busy && self.flights.is_empty() && self.asked.is_empty() {
                return Ok(());
            }
            // With more lost than the level tolerates, members that cannot be recovered stay so.
            if self.beyond && self.asked.is_empty() && self.next_event().is_none() {
                return Ok(());
            }
            self.wait_for(what, deadline)?;
        }
    }

    /// Reads the whole array by requests, and checks the bytes.
    pub(super) fn read_everything(&mut self) -> Result<(), Violation> {
        let size = self.reader.size;
        let step = 256;
        for start in (0..size).step_by(step) {
            self.ask(
                Operation::Read,
                start,
                (size - start).min(step as u64),
                false,
            )?;
        }
        self.drain()
    }

    /// Compares the disks' bytes with the oracle, and with each other.
    pub(super) fn verify(&mut self) -> Result<(), Violation> {
        self.statistics.verifications += 1;
        let present = self.in_sync();
        self.agree(present)?;
        // All members agree: the first content counts as written.
        self.first_sync = false;
        self.settle_values(present)?;
        self.try_losses(present)
    }

    fn agree(&self, present: SlotSet) -> Result<(), Violation> {
        self.reader.agree(&self.images(), present).map_err(|found| {
            violation("redundancy", format!("at {}: {}", found.sector, found.what))
        })
    }

    fn settle_values(&mut self, present: SlotSet) -> Result<(), Violation> {
        let lost = SlotSet::first(self.slots.len()) - present;
        // The same as `images`, which would borrow the oracle, too.
        let image = |disk: &Option<usize>| self.disks[disk.unwrap_or(0)].pristine();
        let images: Vec<&Pages> = self.slots.iter().map(image).collect();
        for sector in 0..self.reader.size {
            let bytes = self.reader.read(&images, lost, sector);
            let Some(bytes) = bytes else {
                return Err(violation("redundancy", format!("sector {sector} is lost")));
            };
            if let Err(wrong) = self.oracle.settle(sector, Value::of(&bytes)) {
                return Err(self.wrong(&wrong, &bytes, "on the disks"));
            }
        }
        Ok(())
    }

    /// Tries all ways to lose members; where that is too much work, on a part of the sectors that
    /// changes with time.
    fn try_losses(&mut self, present: SlotSet) -> Result<(), Violation> {
        let missing = self.slots.len() - present.len();
        let spare = self.reader.redundancy().saturating_sub(missing);
        let losses = self.reader.losses(present, spare);
        let images = self.images();
        let all = SlotSet::first(self.slots.len()) - present;
        let work = self.reader.size * (losses.len() * self.slots.len()) as u64 * 512;
        let stride = work.div_ceil(LOSS_BUDGET).max(1);
        let first = self.trace.hash() % stride;
        for sector in (first..self.reader.size).step_by(stride as usize) {
            let whole = self.reader.read(&images, all, sector);
            for loss in &losses {
                self.compare(&images, all | *loss, sector, whole.as_ref())?;
            }
        }
        Ok(())
    }

    fn compare(
        &self,
        images: &[&Pages],
        lost: SlotSet,
        sector: u64,
        whole: Option<&SectorBytes>,
    ) -> Result<(), Violation> {
        if self.reader.read(images, lost, sector).as_ref() == whole {
            return Ok(());
        }
        let slots: Vec<u16> = lost.iter().map(|slot| slot.0).collect();
        let detail = format!("sector {sector} is not the same without members {slots:?}");
        Err(violation("redundancy", detail))
    }

    /// Checks that the array's own check finds mismatches in this range (of the positions in which
    /// it reports), and nowhere else; with an empty range none at all.
    pub(super) fn check_finds(&mut self, expected: std::ops::Range<u64>) -> Result<(), Violation> {
        if self.reader.redundancy() == 0 {
            return Ok(());
        }
        self.mismatches.clear();
        let started = self.call(|driver, now| driver.start_sync(now, SyncAction::Check))?;
        if let Err(refused) = started {
            return Err(violation("verb", format!("check refused: {refused}")));
        }
        self.quiet("check", LONGEST_WAIT_NS)?;
        let overlaps =
            |(start, count): &(u64, u64)| *start < expected.end && expected.start < start + count;
        let found = self.mismatches.iter().any(overlaps);
        let stray = self.mismatches.iter().find(|mismatch| !overlaps(mismatch));
        match (expected.is_empty(), found, stray) {
            (_, _, Some(stray)) => Err(violation(
                "check",
                format!("finds a mismatch where none is: {stray:?}"),
            )),
            (false, false, None) => {
                Err(violation("check", format!("finds nothing at {expected:?}")))
            }
            _ => Ok(()),
        }
    }
}
