//! The content oracle: random requests, faults and verbs on a small array,
//! with every sector's content known as a version number.
//!
//! Per array sector the oracle keeps the set of versions that a read may
//! return: what the last acknowledged write wrote, and what writes in flight or
//! failed since may have written. It checks after every event:
//! * a read that succeeds returns for each sector a version that was allowed
//!   at some time while it was in flight;
//! * when a write is acknowledged, every member in sync holds it;
//! * a member under recovery holds allowed versions wherever it is readable,
//!   and foreground reads go only there and to members in sync;
//! * no member is failed for another one's errors;
//! * every request finishes exactly once, and with one member spared from all
//!   faults every request succeeds.
//!
//! At the end, without faults, everything must come to rest: no command or
//! request in flight, no sync left, every member in sync with only allowed
//! versions, and all equal where exactly one is allowed.

use super::disks::{Buffers, Disk, Flight, POISON, Version, index};
use super::plan::{self, Plan};
use super::{ALL, member, request};
use crate::array::Array;
use crate::config::ArrayConfig;
use crate::engine::{SyncAction, SyncRequest};
use crate::member::MemberState;
use crate::request::{Event, Finished, MemberError, Operation, Outputs, Request, Slot};
use proptest::prelude::*;
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};
use std::collections::{BTreeMap, BTreeSet};

const SIZE: u64 = 192;
const OFFSET: u64 = 16;

/// A request in flight and, for each of its sectors, the versions that a read
/// may return.
struct Pending {
    request: Request,
    allowed: Vec<BTreeSet<Version>>,
}

struct World {
    plan: Plan,
    random: Stream,
    array: Array,
    out: Outputs,
    now: Nanos,
    disks: Vec<Disk>,
    /// The disk in each slot.
    slots: Vec<Option<usize>>,
    flights: Vec<Flight>,
    buffers: Buffers,
    pending: BTreeMap<u64, Pending>,
    allowed: Vec<BTreeSet<Version>>,
    next_id: u64,
    faults: bool,
}

impl World {
    fn new(plan: Plan) -> Self {
        let mut array = Array::new(ArrayConfig::mirror(
            vec![member(SIZE, OFFSET); plan.members],
            Sectors(SIZE),
            plan.policy,
            plan.recovery.clone(),
            Sectors(plan.maximum_request),
        ))
        .expect("a sound configuration");
        let content = |disk: usize| {
            let first = if plan.dirty {
                1000 * (disk as u64 + 1)
            } else {
                0
            };
            (first..first + SIZE).collect::<Vec<Version>>()
        };
        let disks: Vec<_> = (0..plan.members)
            .map(|disk| Disk::new(content(disk)))
            .collect();
        let allowed = (0..index(SIZE))
            .map(|sector| disks.iter().map(|disk| disk.content[sector]).collect())
            .collect();
        let mut out = Outputs::default();
        if plan.dirty {
            let request = SyncRequest {
                action: SyncAction::Resync,
                ranges: None,
            };
            array
                .start_sync(Nanos::ZERO, request, &mut out)
                .expect("nothing runs");
        }
        let mut world = Self {
            random: Stream::new(plan.seed),
            array,
            out,
            now: Nanos::ZERO,
            slots: (0..plan.members).map(Some).collect(),
            disks,
            flights: Vec::new(),
            buffers: Buffers::default(),
            pending: BTreeMap::new(),
            allowed,
            next_id: 1_000_000,
            faults: true,
            plan,
        };
        world.take_outputs();
        world
    }

    fn step(&mut self) {
        self.now += Nanos::from_millis(self.random.below(40));
        match self.random.below(100) {
            0..30 => self.submit(),
            30..60 => self.land_one(),
            60..92 => self.complete_one(),
            92..95 => self.fail_or_remove(),
            95..97 => self.add(),
            97 => self.array.freeze_sync(),
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
        let start = self.random.below(SIZE);
        let count = 1 + self.random.below((SIZE - start).min(24));
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
        let overlaps = |other: &Pending| {
            other.request.operation != Operation::Read
                && other.request.start.0 < start + count
                && start < (other.request.start + other.request.count).0
        };
        if is_write(operation) {
            // The order of two overlapping writes in flight is nobody's.
            if self.pending.values().any(overlaps) {
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

    /// A write begins: its version may be seen from now on.
    fn allow(&mut self, write: &Request, version: Version) {
        for sector in write.start.0..(write.start + write.count).0 {
            self.allowed[index(sector)].insert(version);
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
            let discarded = match self.pending.iter().find(|(_, pending)| {
                // Writes do not overlap, so place and kind tell the request.
                let start = flight.command.start.0.wrapping_sub(OFFSET);
                pending.request.operation == Operation::Discard
                    && pending.request.start.0 <= start
                    && start < (pending.request.start + pending.request.count).0
            }) {
                Some((&id, _)) => id,
                None => POISON,
            };
            self.disks[flight.disk].land(flight, &self.buffers, OFFSET, discarded);
        }
    }

    /// Completes a random command that has landed, or fails one, landed or not.
    fn complete_one(&mut self) {
        if self.flights.is_empty() {
            return;
        }
        let chosen = index(self.random.below(self.flights.len() as u64));
        let disk = self.flights[chosen].disk;
        let spared = self.plan.spare_slot_0 && self.slots[0] == Some(disk);
        let strikes = self.random.below(1000) < u64::from(self.plan.faults);
        if self.faults && strikes && !spared {
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

    fn fail_or_remove(&mut self) {
        let slot = Slot(u16::try_from(self.random.below(self.plan.members as u64)).expect("few"));
        if !self.faults || (self.plan.spare_slot_0 && slot == Slot(0)) {
            return;
        }
        if let Some(disk) = self.slots[slot.index()] {
            self.disks[disk].blamed = true;
        }
        // Refusals (empty, failed before, last in sync) leave all unchanged.
        let refused = if self.random.percent(50) {
            self.array.fail(self.now, slot, &mut self.out).is_err()
        } else {
            self.array.remove(self.now, slot, &mut self.out).is_err()
        };
        assert!(!refused || self.out.events.is_empty());
    }

    /// Puts a new disk, full of rubbish, into an empty or failed slot.
    fn add(&mut self) {
        for slot in (0..).map(Slot).take(self.plan.members) {
            let state = self.array.member_states().nth(slot.index());
            if state == Some(MemberState::Faulty) {
                let removed = self.array.remove(self.now, slot, &mut self.out);
                removed.expect("a failed member can be removed");
            }
            if matches!(state, Some(MemberState::Faulty | MemberState::Missing)) {
                let rubbish = 500_000 + self.disks.len() as u64;
                self.disks.push(Disk::new(vec![rubbish; index(SIZE)]));
                self.take_outputs();
                self.slots[slot.index()] = Some(self.disks.len() - 1);
                self.array
                    .add(self.now, slot, member(SIZE, OFFSET), ALL, &mut self.out)
                    .expect("the slot is empty");
                return;
            }
        }
    }

    fn take_outputs(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        for event in &out.events {
            if let Event::MemberFailed(slot) = event
                && let Some(disk) = self.slots[slot.index()]
            {
                // Without slot 0 a block that nobody can read fails others.
                assert!(
                    !self.plan.spare_slot_0 || self.disks[disk].blamed,
                    "{slot:?}"
                );
                assert!(!self.plan.spare_slot_0 || slot.0 != 0);
                self.disks[disk].retired = true;
                self.disks[disk].content.fill(POISON);
            }
        }
        for finished in &out.finished {
            self.finish(finished);
        }
        for command in &out.commands {
            self.check_target(command.slot, command);
            self.flights.push(Flight {
                command: *command,
                disk: self.slots[command.slot.index()].expect("a command to an empty slot"),
                landed: false,
                result: Ok(()),
                data: Vec::new(),
            });
        }
        out.clear();
        self.out = out;
    }

    fn check_target(&self, slot: Slot, command: &crate::request::MemberCommand) {
        let state = self.array.member_states().nth(slot.index());
        let end = Sectors((command.start + command.count).0.saturating_sub(OFFSET));
        let fits = match (state, command.operation) {
            (Some(MemberState::InSync), _) => true,
            (Some(MemberState::Recovering { readable_below }), Operation::Read) => {
                end <= readable_below
            }
            (Some(MemberState::Recovering { .. }), _) => true,
            // Failed by an event of the same call, after the command was made.
            (Some(MemberState::Faulty), _) => true,
            _ => false,
        };
        assert!(fits, "{command:?} to {state:?}");
    }

    fn finish(&mut self, finished: &Finished) {
        let pending = self.pending.remove(&finished.id.0);
        let Pending { request, allowed } = pending.expect("finishes exactly once");
        let payload = self.buffers.requests.remove(&finished.id.0).expect("kept");
        if finished.result.is_err() {
            assert!(!self.plan.spare_slot_0, "{finished:?} in spite of slot 0");
            return;
        }
        if request.operation == Operation::Read {
            for ((at, version), allowed) in (request.start.0..).zip(payload).zip(allowed) {
                assert!(
                    allowed.contains(&version),
                    "sector {at}: {version} not in {allowed:?}"
                );
            }
        } else if is_write(request.operation) {
            let range = index(request.start.0)..index((request.start + request.count).0);
            for sector in range.clone() {
                self.allowed[sector] = BTreeSet::from([finished.id.0]);
            }
            for (slot, disk) in self.in_sync() {
                for sector in range.clone() {
                    let version = self.disks[disk].content[sector];
                    assert_eq!(version, finished.id.0, "sector {sector} of slot {slot}");
                }
            }
        }
    }

    fn in_sync(&self) -> Vec<(usize, usize)> {
        let states = self.array.member_states().zip(&self.slots).enumerate();
        states
            .filter(|(_, (state, _))| *state == MemberState::InSync)
            .map(|(slot, (_, disk))| (slot, disk.expect("occupied")))
            .collect()
    }

    /// A member under recovery must be right wherever it may be read, except
    /// where a write is in flight.
    fn check_recovering(&self) {
        for (state, disk) in self.array.member_states().zip(&self.slots) {
            let MemberState::Recovering { readable_below } = state else {
                continue;
            };
            let disk = &self.disks[disk.expect("occupied")];
            for sector in 0..index(readable_below.0) {
                let in_flight = self.pending.values().any(|pending| {
                    is_write(pending.request.operation)
                        && (pending.request.start.0
                            ..(pending.request.start + pending.request.count).0)
                            .contains(&(sector as u64))
                });
                let version = disk.content[sector];
                assert!(
                    in_flight || self.allowed[sector].contains(&version),
                    "readable sector {sector} holds {version}"
                );
            }
        }
    }

    /// No more faults or requests: everything comes to rest.
    fn settle(&mut self) {
        self.faults = false;
        self.array.thaw_sync(self.now, &mut self.out);
        self.take_outputs();
        for round in 0.. {
            assert!(round < 100_000, "it does not come to rest");
            while !self.flights.is_empty() {
                self.land_one();
                self.complete_one();
                self.take_outputs();
                self.check_recovering();
            }
            let Some(tick) = self.array.next_tick() else {
                break;
            };
            self.now = self.now.max(tick);
            self.array.tick(self.now, &mut self.out);
            self.take_outputs();
        }
        assert!(self.pending.is_empty(), "requests that never finished");
        assert_eq!(self.array.sync_status(), None);
        let in_sync = self.in_sync();
        assert!(!in_sync.is_empty());
        for sector in 0..index(SIZE) {
            let versions: BTreeSet<_> = in_sync
                .iter()
                .map(|&(_, disk)| self.disks[disk].content[sector])
                .collect();
            assert!(versions.is_subset(&self.allowed[sector]), "sector {sector}");
            // A dirty mirror without faults has been made equal everywhere.
            assert!(
                self.plan.faults > 0 || versions.len() == 1,
                "sector {sector}"
            );
        }
        let recovering = |state| matches!(state, MemberState::Recovering { .. });
        assert!(!self.array.member_states().any(recovering));
    }
}

fn is_write(operation: Operation) -> bool {
    matches!(operation, Operation::Write | Operation::Discard)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8 * ProptestConfig::default().cases))]

    #[test]
    fn content_is_never_wrong(plan in plan::any_plan()) {
        let mut world = World::new(plan.clone());
        for _ in 0..plan.steps {
            world.step();
        }
        world.settle();
    }
}
