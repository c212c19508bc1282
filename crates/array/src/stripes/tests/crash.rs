//! The write hole: members that fail and are replaced, power cuts at any moment,
//! with any subset of what was not durable, then any members lost, then replay. What was flushed is there,
//! what nobody wrote has not changed, and what was being written is old or new.

use super::bench::{Bench, LOG_START, OFFSET, SECTOR, SESSION, member};
use super::random::{Plan, bench, content, plans};
use crate::admission::Admission;
use crate::config::Initial;
use crate::engine::{Engine, SyncAction, SyncRequest};
use crate::member::MemberState;
use crate::request::{Operation, RequestId, Slot};
use crate::stripes::StripeConfig;
use crate::stripes::log::{LogArea, Trust, replay};
use proptest::prelude::*;
use raidlab_random::Stream;
use raidlab_units::Sectors;
use std::collections::BTreeMap;

/// Writes that do not overlap while in flight, so that each sector's versions
/// have an order.
struct World {
    bench: Bench,
    parity: usize,
    random: Stream,
    /// In flight: range and version; for a flush, the floor it brings.
    writes: BTreeMap<RequestId, (u64, u64, u64, bool)>,
    flushes: BTreeMap<RequestId, Vec<u64>>,
    /// The newest version sent, acknowledged and durable of each sector.
    newest: Vec<u64>,
    acknowledged: Vec<u64>,
    floor: Vec<u64>,
    seen: usize,
    /// Members that were added: how much had landed on each when it was in sync.
    /// The engine calls it so as soon as all is written; whoever records that
    /// flushes first, and before that a crash finds a member that is being filled.
    arrived: BTreeMap<Slot, Option<u64>>,
}

impl World {
    fn step(&mut self) {
        let size = self.newest.len() as u64;
        match self.random.below(120) {
            0 => self.replace_member(),
            1..25 => {
                let start = self.random.below(size);
                let longest = [1, 8, 64, size][self.random.below(4) as usize];
                let count = 1 + self.random.below(longest.min(size - start));
                let end = start + count;
                let mut others = self.writes.values();
                if others.any(|(from, to, ..)| *from < end && start < *to) {
                    return;
                }
                let version = 1 + self.newest.iter().max().copied().unwrap_or(0);
                let durable = self.random.below(5) == 0;
                self.newest[start as usize..end as usize].fill(version);
                let id = RequestId(self.bench.next_id);
                self.writes.insert(id, (start, end, version, durable));
                let payload = (start..end).flat_map(|it| content(it, version)).collect();
                self.bench.submit(Operation::Write, start, payload, durable);
            }
            25..37 => {
                let id = RequestId(self.bench.next_id);
                self.flushes.insert(id, self.acknowledged.clone());
                self.bench.submit(Operation::Flush, 0, Vec::new(), false);
            }
            _ => {
                let flights = self.bench.flights.len() as u64;
                if flights > 0 {
                    let number = self.random.below(flights);
                    self.bench.land(number as usize);
                }
            }
        }
        self.follow_arrivals();
        while let Some((id, result)) = self.bench.finished.get(self.seen).copied() {
            self.seen += 1;
            assert_eq!(result, Ok(()));
            if let Some((start, end, version, durable)) = self.writes.remove(&id) {
                let range = start as usize..end as usize;
                self.acknowledged[range.clone()].fill(version);
                if durable {
                    self.floor[range].fill(version);
                }
            }
            if let Some(floor) = self.flushes.remove(&id) {
                for (mine, new) in self.floor.iter_mut().zip(floor) {
                    *mine = new.max(*mine);
                }
            }
        }
    }

    /// Members that were added are in sync, and then so by what is durable.
    fn follow_arrivals(&mut self) {
        let states = self.bench.array.member_states();
        let (disks, slots) = (&self.bench.disks, &self.bench.slots);
        self.arrived.retain(|slot, landed| {
            let disk = &disks[slots[slot.index()]];
            if states[slot.index()] == MemberState::InSync {
                landed.get_or_insert(disk.landed);
            }
            let unflushed = |landed: u64| disk.volatile.iter().any(|it| it.number < landed);
            landed.is_none_or(unflushed)
        });
    }

    /// Slots whose member is in sync by what is durable.
    fn in_sync(&self) -> Vec<usize> {
        let states = self.bench.array.member_states();
        let in_sync = |slot: &usize| {
            states[*slot] == MemberState::InSync && !self.arrived.contains_key(&Slot(*slot as u16))
        };
        (0..states.len()).filter(in_sync).collect()
    }

    /// A member fails and its disk, with all that was on it, is added again as
    /// a new one.
    fn replace_member(&mut self) {
        let in_sync = self.in_sync();
        let members = self.bench.slots.len();
        if in_sync.len() + self.parity <= members {
            return;
        }
        let slot = self.random.below(members as u64) as usize;
        if !in_sync.contains(&slot) {
            return;
        }
        let slot = Slot(slot as u16);
        self.arrived.insert(slot, None);
        let (now, out) = (self.bench.now, &mut self.bench.out);
        let array = &mut self.bench.array;
        array.fail(now, slot, out).expect("the others are enough");
        array.remove(now, slot, out).expect("it failed");
        let size = array.map().member_size();
        let admission = Admission::From(Sectors::ZERO);
        array
            .add(now, slot, member(size.0), admission, out)
            .expect("it was large enough before");
        self.bench.take_outputs();
    }

    /// Slots whose members hold no data, and any others as far as the level
    /// bears it.
    fn lose(&mut self) -> Vec<usize> {
        let members = self.bench.slots.len();
        let in_sync = self.in_sync();
        let unfilled = |slot: &usize| !in_sync.contains(slot);
        let mut lost: Vec<usize> = (0..members).filter(unfilled).collect();
        for _ in 0..self.random.below((self.parity + 1 - lost.len()) as u64) {
            let slot = self.random.below(members as u64) as usize;
            if !lost.contains(&slot) {
                lost.push(slot);
            }
        }
        lost
    }

    /// The power goes: of what is not durable, any part stays.
    fn cut_power(&mut self) {
        for flight in std::mem::take(&mut self.bench.flights) {
            if flight.command.operation == Operation::Write {
                let disk = &mut self.bench.disks[flight.disk];
                let start = flight.command.start.0;
                for (sector, bytes) in (start..).zip(flight.payload.chunks(SECTOR)) {
                    if self.random.below(2) == 0 {
                        let at = sector as usize * SECTOR;
                        // Straight to the medium, or behind what is cached.
                        if self.random.below(2) == 0 {
                            disk.bytes[at..at + SECTOR].copy_from_slice(bytes);
                        }
                    }
                }
            }
        }
        let random = &mut self.random;
        for disk in &mut self.bench.disks {
            let mut lands = |_: &_| random.below(2) == 0;
            disk.settle(&mut lands);
            disk.volatile.clear();
        }
    }

    /// Replays over the survivors and starts again without the lost ones.
    fn restart(mut self, plan: &Plan, lost: &[usize]) -> Bench {
        let ring = plan.log.expect("these plans have a log") as usize;
        let from = LOG_START as usize * SECTOR;
        let survivors = (0..plan.members).filter(|slot| !lost.contains(slot));
        let areas: Vec<LogArea> = survivors
            .map(|slot| LogArea {
                slot: Slot(slot as u16),
                bytes: &self.bench.disks[slot].bytes[from..from + ring * SECTOR],
                trust: Trust::Everywhere,
            })
            .collect();
        let member_size = self.bench.map().member_size();
        let writes = replay(SESSION, member_size, &areas).expect("sound areas");
        for write in writes {
            let at = (OFFSET + write.start.0) as usize * SECTOR;
            let disk = &mut self.bench.disks[write.slot.index()];
            disk.bytes[at..at + write.bytes.len()].copy_from_slice(&write.bytes);
        }
        let mut config: StripeConfig = super::bench::config(
            plan.level,
            plan.layout,
            plan.members,
            plan.chunk,
            super::random::ROWS,
        );
        for slot in lost {
            config.members[*slot] = Initial::Missing;
            // Nobody may look at it.
            self.bench.disks[*slot].bytes.fill(0xbd);
        }
        Bench::over(config, self.bench.disks)
    }
}

fn with_rings() -> impl Strategy<Value = Plan> {
    let rings = proptest::sample::select(vec![64_u64, 136, 512]);
    (plans(), rings).prop_map(|(plan, ring)| Plan {
        log: Some(ring),
        ..plan
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_power_cut_and_lost_members_leave_no_hole(plan in with_rings(), steps in 1_usize..400) {
        let bench = bench(&plan);
        let size = bench.map().size().0 as usize;
        let mut world = World {
            bench,
            parity: plan.level.parity_count(),
            random: Stream::new(plan.seed),
            writes: BTreeMap::new(),
            flushes: BTreeMap::new(),
            newest: vec![0; size],
            acknowledged: vec![0; size],
            floor: vec![0; size],
            seen: 0,
            arrived: BTreeMap::new(),
        };
        for _ in 0..steps {
            world.step();
        }
        world.cut_power();
        let lost = world.lose();
        let (floor, newest) = (world.floor.clone(), world.newest.clone());
        let mut bench = world.restart(&plan, &lost);
        let bytes = bench.read(0, size as u64).expect("no more are lost than the level bears");
        for ((sector, got), (floor, newest)) in
            (0..).zip(bytes.chunks(SECTOR)).zip(floor.iter().zip(&newest))
        {
            let fits = (*floor..=*newest).any(|version| content(sector, version) == got);
            prop_assert!(fits, "sector {sector}: {:?}, not {floor}..={newest}; lost {lost:?}", &got[..8]);
        }
        if lost.is_empty() {
            let request = SyncRequest { action: SyncAction::Check, ranges: None };
            let (now, out) = (bench.now, &mut bench.out);
            bench.array.start_sync(now, request, out).expect("nothing runs");
            bench.run();
            prop_assert_eq!(bench.mismatches(), []);
        }
    }
}

/// The same without a log finds holes: the test above can fail.
#[test]
fn without_a_log_there_is_a_hole() {
    use raidlab_geometry::{Level, ParityLayout};
    let config = super::bench::config(Level::Raid5, ParityLayout::LeftSymmetric, 3, 8, 2);
    let mut bench = Bench::new(config.clone());
    bench.write(8, content(8, 1)).expect("healthy");
    let id = bench.submit(Operation::Write, 0, content(0, 2), false);
    while !bench
        .flights
        .iter()
        .any(|it| it.command.operation == Operation::Write)
    {
        bench.land(0);
    }
    // One of the two writes lands; the power goes; member 1 is lost.
    bench.land(0);
    assert_eq!(bench.result(id), None);
    let mut disks = bench.disks;
    for disk in &mut disks {
        disk.settle(|_| true);
    }
    let mut config = config;
    config.members[1] = Initial::Missing;
    let mut bench = Bench::over(config, disks);
    let neighbour = bench.read(8, 1).expect("one is lost");
    assert_ne!(neighbour, content(8, 1));
    assert_eq!(bench.map().data_count(), 2);
    assert_eq!(bench.array.size(), Sectors(32));
}
