//! The content oracle: random requests, faults and verbs on a small array of
//! any level that keeps copies, with every sector's content known as a version
//! number.
//!
//! Per array sector the oracle keeps the set of versions that a read may
//! return: what the last acknowledged write wrote, and what writes in flight or
//! failed since may have written. It checks after every event:
//! * a read that succeeds returns for each sector a version that was allowed
//!   at some time while it was in flight; if the copy that a dirty array is read
//!   from does not fail, what was read once is what is read from then on;
//! * when a write is acknowledged, every member in sync that has a copy holds
//!   it, but for the member's bad blocks;
//! * a member under recovery holds allowed versions wherever it is readable,
//!   and reads go only there and to members in sync;
//! * no write that a failed member had a part in is sent before its failure was
//!   recorded, if that is asked for;
//! * no member is failed for another one's errors;
//! * every request finishes exactly once, and if one copy of everything is
//!   spared from all faults every request succeeds.
//!
//! At the end, without faults, everything must come to rest: no command or
//! request in flight, no sync left, every member in sync with only allowed
//! versions, and all copies equal where exactly one is allowed. Then a repair
//! finds what differs, and a check after it nothing.

mod checks;
mod verbs;

use super::disks::{Buffers, Disk, Flight, POISON, Version, index};
use super::plan::{self, Plan};
use super::{ALL, member, request};
use crate::array::Array;
use crate::config::{ArrayConfig, Initial, MemberConfig};
use crate::engine::Engine;
use crate::engine::{SyncAction, SyncRequest};
use crate::request::{ComputeStep, Event, MemberError, Operation, Outputs, Request, Slot};
use proptest::prelude::*;
use raidlab_geometry::{CopyMap, SlotSet};
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors, Span};
use std::collections::{BTreeMap, BTreeSet};

const OFFSET: u64 = 16;
/// Rubbish is told by its number.
const RUBBISH: Version = 500_000;

/// A request in flight and, for each of its sectors, the versions that a read
/// may return.
struct Pending {
    request: Request,
    allowed: Vec<BTreeSet<Version>>,
}

/// A disk as it was when it was taken out while in sync, and the array sectors
/// that may have been written since.
struct Shelved {
    content: Vec<Version>,
    stale: BTreeSet<u64>,
}

struct World {
    plan: Plan,
    random: Stream,
    map: CopyMap,
    array: Array,
    out: Outputs,
    now: Nanos,
    disks: Vec<Disk>,
    /// The disk in each slot.
    slots: Vec<Option<usize>>,
    shelf: Vec<Option<Shelved>>,
    /// Slots that are spared from faults.
    spared: SlotSet,
    /// Failed members of which nobody has told yet that it was recorded.
    unrecorded: Vec<Slot>,
    flights: Vec<Flight>,
    buffers: Buffers,
    pending: BTreeMap<u64, Pending>,
    allowed: Vec<BTreeSet<Version>>,
    next_id: u64,
    faults: bool,
    mismatches: u64,
}

impl World {
    fn new(plan: Plan) -> Self {
        let map = CopyMap::new(&plan.shape).expect("a sound shape");
        let mut random = Stream::new(plan.seed);
        let spared: SlotSet = map
            .copy_sets()
            .iter()
            .filter_map(|set| set.lowest())
            .collect();
        let slots: Vec<_> = (0..).map(Slot).take(map.members()).collect();
        let mut disks: Vec<_> = slots
            .iter()
            .map(|&slot| Disk::new(first_content(&map, slot, plan.dirty)))
            .collect();
        let mut allowed = vec![BTreeSet::new(); index(map.array_size().0)];
        let mut members = Vec::new();
        for (&slot, disk) in slots.iter().zip(&mut disks) {
            let config = member_config(&map, slot, plan.remembers_bad_blocks);
            let may_miss = plan.incomplete && !spared.contains(slot);
            members.push(match random.below(3) {
                0 if may_miss => Initial::Missing,
                1 if may_miss => {
                    disk.content.fill(RUBBISH);
                    Initial::Recovering(config, ALL)
                }
                _ => Initial::InSync(config),
            });
        }
        for (&slot, (disk, member)) in slots.iter().zip(disks.iter().zip(&members)) {
            if matches!(member, Initial::InSync(_)) {
                for (sector, version) in held(&map, slot, disk) {
                    allowed[sector].insert(version);
                }
            }
        }
        for (slot, disk) in slots.iter().zip(&mut disks) {
            for _ in 0..plan.latent {
                let sector = random.below(map.member_used(*slot).0.max(1));
                if !(plan.spared && spared.contains(*slot)) {
                    disk.latent.insert(index(sector));
                }
            }
        }
        let missing = |member: &Initial| matches!(member, Initial::Missing);
        let occupied = members.iter().enumerate();
        let array = Array::new(ArrayConfig {
            shape: plan.shape.clone(),
            members: members.clone(),
            read_policy: plan.policy,
            recovery: plan.recovery.clone(),
            maximum_request: Sectors(plan.maximum_request),
            record_failures: plan.record_failures,
        })
        .expect("a sound configuration");
        let mut world = Self {
            random,
            array,
            out: Outputs::default(),
            now: Nanos::ZERO,
            slots: occupied
                .map(|(slot, member)| (!missing(member)).then_some(slot))
                .collect(),
            shelf: slots.iter().map(|_| None).collect(),
            spared: if plan.spared { spared } else { SlotSet::EMPTY },
            unrecorded: Vec::new(),
            disks,
            flights: Vec::new(),
            buffers: Buffers::default(),
            pending: BTreeMap::new(),
            allowed,
            next_id: 1_000_000,
            faults: true,
            mismatches: 0,
            map,
            plan,
        };
        if world.plan.dirty {
            world.sync(SyncAction::Resync, None).expect("nothing runs");
        }
        world.take_outputs();
        world
    }

    fn sync(
        &mut self,
        action: SyncAction,
        ranges: Option<Vec<Span>>,
    ) -> Result<(), crate::AdminError> {
        let request = SyncRequest { action, ranges };
        self.array.start_sync(self.now, request, &mut self.out)
    }

    fn step(&mut self) {
        self.now += Nanos::from_millis(self.random.below(40));
        match self.random.below(100) {
            0..30 => self.submit(),
            30..60 => self.land_one(),
            60..89 => self.complete_one(),
            89..92 => self.record_failure(),
            92..95 => self.fail_or_remove(),
            95..97 => self.add(),
            97 => self.array.freeze_sync(),
            98 => self.start_or_stop_sync(),
            _ => self.array.thaw_sync(self.now, &mut self.out),
        }
        self.take_outputs();
        if self.array.next_tick().is_some_and(|tick| tick <= self.now) {
            self.array.tick(self.now, &mut self.out);
            self.take_outputs();
        }
        self.check_recovering();
    }

    fn submit(&mut self) {
        let size = self.map.array_size().0;
        let start = self.random.below(size);
        let count = 1 + self.random.below((size - start).min(24));
        let operation = match self.random.below(10) {
            0..5 => Operation::Write,
            5 => Operation::Discard,
            6 => Operation::Flush,
            _ => Operation::Read,
        };
        let id = self.next_id;
        self.next_id += 1;
        let request = match operation {
            Operation::Flush => request(id, operation, 0, 0),
            _ => request(id, operation, start, count),
        };
        if is_write(operation) {
            // The order of two overlapping writes in flight is nobody's.
            let mut sectors = start..start + count;
            if sectors.any(|sector| self.is_being_written(sector)) {
                return;
            }
            self.allow(&request, id);
        }
        let range = index(request.start.0)..index((request.start + request.count).0);
        let payload = if is_write(operation) { id } else { POISON };
        self.buffers.requests.insert(id, vec![payload; range.len()]);
        let allowed = self.allowed[range].to_vec();
        self.pending.insert(id, Pending { request, allowed });
        self.array.submit(self.now, request, &mut self.out);
    }

    fn is_being_written(&self, sector: u64) -> bool {
        self.pending.values().any(|pending| {
            let request = &pending.request;
            is_write(request.operation)
                && (request.start.0..(request.start + request.count).0).contains(&sector)
        })
    }

    /// A write begins: its version may be seen from now on.
    fn allow(&mut self, write: &Request, version: Version) {
        for sector in write.start.0..(write.start + write.count).0 {
            self.allowed[index(sector)].insert(version);
            for shelved in self.shelf.iter_mut().flatten() {
                shelved.stale.insert(sector);
            }
            for pending in self.pending.values_mut() {
                if let Some(at) = sector.checked_sub(pending.request.start.0)
                    && let Some(allowed) = pending.allowed.get_mut(index(at))
                {
                    allowed.insert(version);
                }
            }
        }
    }

    fn land_one(&mut self) {
        let waiting = self.flights.iter().filter(|flight| !flight.landed).count();
        let chosen = index(self.random.below(waiting as u64));
        let mut waiting = self.flights.iter_mut().filter(|flight| !flight.landed);
        if let Some(flight) = waiting.nth(chosen) {
            self.disks[flight.disk].land(flight, &mut self.buffers, OFFSET);
        }
    }

    /// Completes a random command that has landed, or fails one, landed or not.
    fn complete_one(&mut self) {
        if self.flights.is_empty() {
            return;
        }
        let chosen = index(self.random.below(self.flights.len() as u64));
        let disk = self.flights[chosen].disk;
        let strikes = self.random.below(1000) < u64::from(self.plan.faults);
        if self.faults && strikes && !self.is_spared(disk) {
            self.disks[disk].gone |= self.random.percent(20);
            self.flights[chosen].result = Err(MemberError::Medium);
        }
        if self.disks[disk].gone {
            self.flights[chosen].result = Err(MemberError::Gone);
        }
        self.disks[disk].blamed |= self.flights[chosen].result.is_err();
        if self.flights[chosen].landed || self.flights[chosen].result.is_err() {
            self.complete(chosen);
        }
    }

    fn is_spared(&self, disk: usize) -> bool {
        let mut spared = self.spared.iter();
        spared.any(|slot| self.slots[slot.index()] == Some(disk))
    }

    fn complete(&mut self, chosen: usize) {
        let mut flight = self.flights.swap_remove(chosen);
        if flight.command.operation == Operation::Read && flight.result.is_ok() {
            if self.disks[flight.disk].retired {
                flight.data.fill(POISON);
            }
            self.buffers.store(&flight);
        }
        self.array
            .complete(self.now, flight.command.id, flight.result, &mut self.out);
    }

    fn take_outputs(&mut self) {
        loop {
            let mut out = std::mem::take(&mut self.out);
            let mut results = Vec::new();
            for step in &out.steps {
                let result = self.buffers.execute(step);
                if let (ComputeStep::Compare { id, .. }, Some(result)) = (step, result) {
                    results.push((*id, result));
                }
            }
            for event in &out.events {
                self.check_event(event);
            }
            for finished in &out.finished {
                self.finish(finished);
            }
            for command in &out.commands {
                self.check_command(command);
                self.send(*command);
            }
            for event in &out.events {
                if let Event::MemberFailed(slot) = event {
                    self.unrecorded.push(*slot);
                }
            }
            out.clear();
            self.out = out;
            if results.is_empty() {
                return;
            }
            for (id, result) in results {
                self.array.computed(self.now, id, result, &mut self.out);
            }
        }
    }

    fn send(&mut self, command: crate::MemberCommand) {
        let discarded = self.pending.iter().find(|(_, pending)| {
            // Writes do not overlap, so place and kind tell the request.
            let request = &pending.request;
            request.operation == Operation::Discard
                && self.array_sector(&command).is_some_and(|sector| {
                    (request.start.0..(request.start + request.count).0).contains(&sector)
                })
        });
        self.flights.push(Flight {
            command,
            disk: self.slots[command.slot.index()].expect("a command to an empty slot"),
            discarded: discarded.map_or(POISON, |(id, _)| *id),
            landed: false,
            result: Ok(()),
            data: Vec::new(),
        });
    }

    /// The array sector that a command begins at.
    fn array_sector(&self, command: &crate::MemberCommand) -> Option<u64> {
        let sector = Sectors(command.start.0.checked_sub(OFFSET)?);
        let content = self.map.inverse(command.slot, sector).content?;
        Some(content.start.0)
    }
}

fn member_config(map: &CopyMap, slot: Slot, remembers_bad_blocks: bool) -> MemberConfig {
    MemberConfig {
        bad_blocks: remembers_bad_blocks.then(Vec::new),
        ..member(map.member_used(slot).0, OFFSET)
    }
}

/// What a disk holds of the array: array sector and version.
fn held<'a>(
    map: &'a CopyMap,
    slot: Slot,
    disk: &'a Disk,
) -> impl Iterator<Item = (usize, Version)> + 'a {
    let content = (0..).zip(&disk.content);
    content.filter_map(move |(sector, version)| {
        let content = map.inverse(slot, Sectors(sector)).content?;
        Some((index(content.start.0), *version))
    })
}

fn first_content(map: &CopyMap, slot: Slot, dirty: bool) -> Vec<Version> {
    let first = if dirty {
        1000 * (u64::from(slot.0) + 1)
    } else {
        0
    };
    let sectors = (0..map.member_used(slot).0).map(Sectors);
    sectors
        .map(|sector| {
            let content = map.inverse(slot, sector).content;
            content.map_or(POISON, |content| first + content.start.0)
        })
        .collect()
}

fn is_write(operation: Operation) -> bool {
    matches!(operation, Operation::Write | Operation::Discard)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8 * ProptestConfig::default().cases))]

    #[test]
    fn content_is_never_wrong(plan in plan::any_plan()) {
        run(plan);
    }
}

fn run(plan: Plan) {
    let steps = plan.steps;
    let mut world = World::new(plan);
    for _ in 0..steps {
        world.step();
    }
    world.settle();
}

/// What would the oracle be worth if it found nothing?
#[cfg(feature = "mutations")]
#[test]
fn seeded_bugs_are_found() {
    use crate::mutation::{self, Mutation};
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    for bug in [
        Mutation::AcknowledgedByFirst,
        Mutation::WriteErrorIgnored,
        Mutation::ReadErrorIgnored,
        Mutation::FailureNotAwaited,
        Mutation::CopyReadUnrecovered,
        Mutation::CopyWriteSkipsRecovering,
        Mutation::CopyBarrierIgnored,
        Mutation::CopyTrimmed,
        Mutation::CheckBlind,
        Mutation::BadBlockForgotten,
    ] {
        let mut runner = TestRunner::deterministic();
        mutation::choose(Some(bug));
        let runs = (1..=4000).find(|_| {
            let tree = plan::any_plan().new_tree(&mut runner).expect("a plan");
            catch_unwind(AssertUnwindSafe(|| run(tree.current()))).is_err()
        });
        mutation::choose(None);
        assert!(runs.is_some(), "{} is not found", bug.name());
        println!("{}: run {runs:?}", bug.name());
    }
}
