//! The parts of a world that the exhaustive enumeration needs: stopping at an event, and continuing
//! from there many times, each time with another crash.

use super::{Violation, World, violation};
use crate::disk::{Health, Landing, PendingWrite};
use crate::driver::Shelf;
use crate::script::{Restart, Step};
use raidlab_geometry::SlotSet;
use raidlab_serve::export::BufferPool;
use std::collections::{BTreeMap, BinaryHeap};

/// The kind of a pseudo-violation, which stops a run at the event wanted.
pub(super) const ENOUGH: &str = "enough events";

impl<'a> World<'a> {
    /// Runs a script until all is quiet, but no further than this many events.
    pub(crate) fn run_to_event(
        &mut self,
        script: &[Step],
        events: Option<u64>,
    ) -> Result<(), Violation> {
        self.most_events = events;
        let run = |world: &mut Self| {
            for step in script {
                world.advance(world.now + step.after_ns)?;
                world.act(step.action)?;
            }
            world.drain()?;
            // Not so long that the array is marked clean.
            world.advance(world.now + 1_000_000_000)
        };
        match run(self) {
            Err(violation) if violation.kind == ENOUGH => Ok(()),
            result => result,
        }
    }

    /// Counts an event; an error if no more are wanted.
    pub(super) fn count_event(&mut self) -> Result<(), Violation> {
        if self.most_events == Some(self.statistics.events) {
            return Err(violation(ENOUGH, ""));
        }
        self.statistics.events += 1;
        if self.statistics.events > super::MOST_EVENTS {
            return Err(violation("liveness", "more events than any run can need"));
        }
        Ok(())
    }

    /// Returns the writes that a power cut now may lose: disk, place in its order, sectors.
    pub(crate) fn volatile_writes(&self) -> Vec<(usize, usize, u64)> {
        let pending = self.pending_writes();
        let mut writes = Vec::new();
        for (number, disk) in self.disks.iter().enumerate() {
            let mine = pending.iter().filter(|(its, _)| *its == number);
            let sizes = disk.cached().iter().chain(mine.map(|(_, write)| write));
            let sizes = sizes.map(PendingWrite::sectors).enumerate();
            writes.extend(sizes.map(|(place, sectors)| (number, place, sectors)));
        }
        writes
    }

    /// Returns every set of members that the level can lose.
    pub(crate) fn possible_losses(&self) -> Vec<SlotSet> {
        let all = SlotSet::first(self.slots.len());
        self.reader.losses(all, self.reader.redundancy())
    }

    /// Returns another world, in which the power was cut now.
    pub(crate) fn after_cut(
        &self,
        mut landing: impl FnMut(usize, usize, &PendingWrite) -> Landing,
        lost: SlotSet,
    ) -> World<'a> {
        let mut after = World {
            options: self.options,
            disks: self.disks.clone(),
            shelf: Shelf::new(self.interruptions.clone()),
            handles: self.handles.clone(),
            slots: self.slots.clone(),
            handed_over: self.handed_over,
            bitmap_file: self.bitmap_file,
            bitmap_there: self.bitmap_file,
            grows: false,
            retired: self.retired.clone(),
            driver: None,
            buffers: BufferPool::default(),
            happenings: Vec::new(),
            flights: BTreeMap::new(),
            delivered: Vec::new(),
            calendar: BinaryHeap::new(),
            now: self.now,
            order: self.order,
            asked: BTreeMap::new(),
            next_request: self.next_request,
            reader: self.reader.clone(),
            oracle: self.oracle.clone(),
            latency: self.latency.clone(),
            interruptions: self.interruptions.clone(),
            turn_at: None,
            models: super::timing::Models::default(),
            standing: self.standing.clone(),
            logged: self.logged,
            hole_open: self.hole_open,
            first_sync: self.first_sync,
            paused: false,
            noted: self.noted.clone(),
            beyond: false,
            ended: false,
            stale: self.stale,
            most_events: None,
            mismatches: Vec::new(),
            trace: self.trace.clone(),
            statistics: crate::statistics::Statistics::default(),
        };
        let pending = self.pending_writes();
        for (number, disk) in after.disks.iter_mut().enumerate() {
            let mine = pending.iter().filter(|(its, _)| *its == number);
            let mine = mine.map(|(_, write)| write.clone()).collect();
            disk.power_cut(mine, |place, write| landing(number, place, write));
        }
        for slot in lost.iter() {
            if let Some(disk) = after.slots[slot.index()] {
                after.disks[disk].health = Health::Gone;
            }
        }
        after.oracle.power_cut();
        after
    }

    /// Restores the power, lets everything settle, and verifies it. Where no disk was lost, the
    /// slots in `served` must be served again.
    pub(crate) fn come_up_and_settle(&mut self, served: SlotSet) -> Result<(), Violation> {
        let mut disks = self.slots.iter().flatten();
        let lost = disks.any(|disk| !self.is_alive(*disk));
        let restart = Restart {
            seed: 0,
            missing: None,
            stale: false,
            again: None,
        };
        self.come_up(restart, lost)?;
        if !lost {
            self.costs_no_member(restart, served)?;
        }
        self.settle()
    }
}
