//! What the oracle asserts.

use super::{Pending, Shelved, World, held, is_write};
use crate::array::tests::disks::{POISON, Version, index};
use crate::engine::Engine;
use crate::engine::SyncAction;
use crate::member::MemberState;
use crate::request::{Event, Finished, MemberCommand, Operation, Purpose, Slot};
use raidlab_units::{Sectors, Span};
use std::collections::BTreeSet;

/// What a copy changed behind the array's back holds.
const ROTTEN: Version = 400_000;

impl World {
    pub(super) fn check_event(&mut self, event: &Event) {
        match event {
            Event::MemberFailed(slot) => self.member_failed(*slot),
            Event::Mismatch { count, .. } => self.mismatches += count.0,
            Event::BadBlocksFound { slot, .. } => {
                assert!(
                    !self.spared.contains(*slot),
                    "bad blocks on {slot:?}, which never fails"
                );
            }
            _ => {}
        }
    }

    fn member_failed(&mut self, slot: Slot) {
        let Some(disk) = self.slots[slot.index()] else {
            return;
        };
        // Where nothing is spared, a block that nobody can read fails others.
        let spares = !self.spared.is_empty();
        assert!(!spares || self.disks[disk].blamed, "{slot:?}");
        assert!(!self.spared.contains(slot));
        self.shelve(slot, disk);
        self.disks[disk].retired = true;
        self.disks[disk].content.fill(POISON);
    }

    /// Keeps what a disk holds that was in sync, to be added again.
    fn shelve(&mut self, slot: Slot, disk: usize) {
        self.shelf[slot.index()] = None;
        let disk = &self.disks[disk];
        let in_doubt = self.plan.dirty || !disk.latent.is_empty() || disk.gone;
        if in_doubt || self.array.members.bad_blocks(slot).next().is_some() {
            return;
        }
        // What differs from what is allowed would have to be copied, whether a
        // write in flight did that or recovery was not through.
        let mut stale: BTreeSet<u64> = held(&self.map, slot, disk)
            .filter(|(sector, version)| !self.allowed[*sector].contains(version))
            .map(|(sector, _)| sector as u64)
            .collect();
        let uncertain = self.allowed.iter().enumerate();
        stale.extend(
            uncertain
                .filter(|(sector, allowed)| {
                    allowed.len() > 1 || self.is_being_written(*sector as u64)
                })
                .map(|(sector, _)| sector as u64),
        );
        self.shelf[slot.index()] = Some(Shelved {
            content: disk.content.clone(),
            stale,
        });
    }

    pub(super) fn check_command(&self, command: &MemberCommand) {
        let slot = command.slot;
        let state = self.array.members.states().nth(slot.index());
        let end = Sectors(
            (command.start + command.count)
                .0
                .saturating_sub(super::OFFSET),
        );
        let fits = match (state, command.operation) {
            (Some(MemberState::InSync), _) => true,
            // A correction may ask it once more, and what it has may fill another one.
            (Some(MemberState::Recovering { readable_below }), Operation::Read) => {
                let start = command.start.0.saturating_sub(super::OFFSET);
                let range = Span::between(Sectors(start), end);
                let is_sync = command.purpose == Purpose::Sync;
                end <= readable_below || is_sync && self.array.members.is_filled(slot, range)
            }
            (Some(MemberState::Recovering { .. }), _) => true,
            // Failed by an event of the same call, after the command was made.
            (Some(MemberState::Faulty), _) => true,
            _ => false,
        };
        assert!(fits, "{command:?} to {state:?}");
        if !self.plan.record_failures
            || command.purpose != Purpose::Foreground
            || command.operation == Operation::Read
        {
            return;
        }
        match self.array_sector(command) {
            None => assert!(self.unrecorded.is_empty(), "a flush before the record"),
            Some(sector) => {
                let slots = self.map.extent(Sectors(sector)).slots();
                let part = self.unrecorded.iter().find(|slot| slots.contains(**slot));
                assert_eq!(part, None, "{command:?} before the record");
            }
        }
    }

    pub(super) fn finish(&mut self, finished: &Finished) {
        let pending = self.pending.remove(&finished.id.0);
        let Pending { request, allowed } = pending.expect("finishes exactly once");
        let payload = self.buffers.requests.remove(&finished.id.0).expect("kept");
        if finished.result.is_err() {
            let spares = !self.spared.is_empty();
            assert!(!spares, "{finished:?} in spite of a copy without faults");
            return;
        }
        if request.operation == Operation::Read {
            for ((at, version), allowed) in (request.start.0..).zip(payload).zip(allowed) {
                assert!(
                    allowed.contains(&version),
                    "sector {at}: {version} not in {allowed:?}"
                );
                self.was_read(at, version);
            }
        } else if is_write(request.operation) {
            let range = request.start.0..(request.start + request.count).0;
            for sector in range {
                self.allowed[index(sector)] = BTreeSet::from([finished.id.0]);
                self.check_copies(sector, finished.id.0);
            }
        }
    }

    /// What is read stays where the first copy does not fail, which is the one that reads of
    /// what may differ go to.
    fn was_read(&mut self, sector: u64, version: Version) {
        let first = self.map.extent(Sectors(sector)).copies().next();
        let stays = first.is_some_and(|(slot, _)| self.spared.contains(slot));
        if !stays || self.is_being_written(sector) {
            return;
        }
        let allowed = &mut self.allowed[index(sector)];
        if allowed.contains(&version) {
            *allowed = BTreeSet::from([version]);
        }
    }

    fn check_copies(&self, sector: u64, version: Version) {
        for (slot, address) in self.map.extent(Sectors(sector)).copies() {
            let state = self.array.members.states().nth(slot.index());
            let Some(disk) = self.slots[slot.index()] else {
                continue;
            };
            if state != Some(MemberState::InSync) || self.is_bad(slot, address) {
                continue;
            }
            let found = self.disks[disk].content[index(address.0)];
            assert_eq!(found, version, "sector {sector} of {slot:?}");
        }
    }

    fn is_bad(&self, slot: Slot, sector: Sectors) -> bool {
        let mut bad = self.array.members.bad_blocks(slot);
        bad.any(|span: Span| span.start <= sector && sector < span.end)
    }

    /// A member under recovery must be right wherever it may be read, except
    /// where a write is in flight.
    pub(super) fn check_recovering(&self) {
        for (slot, state) in (0..).map(Slot).zip(self.array.member_states()) {
            let MemberState::Recovering { readable_below } = state else {
                continue;
            };
            let disk = &self.disks[self.slots[slot.index()].expect("occupied")];
            for sector in (0..readable_below.0).map(Sectors) {
                let Some(content) = self.map.inverse(slot, sector).content else {
                    continue;
                };
                let version = disk.content[index(sector.0)];
                let allowed = &self.allowed[index(content.start.0)];
                assert!(
                    allowed.contains(&version)
                        || self.is_being_written(content.start.0)
                        || self.is_bad(slot, sector),
                    "readable {sector} of {slot:?} holds {version}, not {allowed:?}"
                );
            }
        }
    }

    /// No more faults or requests: everything comes to rest.
    pub(super) fn settle(&mut self) {
        self.faults = false;
        self.array.thaw_sync(self.now, &mut self.out);
        self.take_outputs();
        self.rest();
        // What was stopped goes on: a recovery behind any other sync.
        let ranges = (!self.plan.dirty).then(Vec::new);
        self.sync(SyncAction::Resync, ranges).expect("nothing runs");
        self.take_outputs();
        self.rest();
        assert!(self.pending.is_empty(), "requests that never finished");
        assert_eq!(self.array.sync_status(), None);
        assert!(self.array.is_idle());
        assert!(self.buffers.nothing_is_allocated());
        let recovering = |state| matches!(state, MemberState::Recovering { .. });
        assert!(!self.array.members.states().any(recovering));
        self.check_sectors();
        if !self.disks.iter().any(|disk| disk.gone) {
            self.repair();
        }
    }

    fn rest(&mut self) {
        for round in 0.. {
            assert!(round < 100_000, "it does not come to rest");
            while !self.flights.is_empty() || !self.unrecorded.is_empty() {
                self.record_failure();
                self.take_outputs();
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
    }

    /// The slots in sync that hold a sector, and where, in md's order.
    fn current_copies(&self, sector: Sectors) -> Vec<(Slot, usize)> {
        let copies = self.map.extent(sector).copies();
        let copies = copies.filter(|(slot, address)| {
            let state = self.array.members.states().nth(slot.index());
            state == Some(MemberState::InSync) && !self.is_bad(*slot, *address)
        });
        copies
            .map(|(slot, address)| (slot, index(address.0)))
            .collect()
    }

    fn content(&mut self, (slot, at): (Slot, usize)) -> &mut Version {
        let disk = self.slots[slot.index()].expect("in sync");
        &mut self.disks[disk].content[at]
    }

    /// Checks every copy; gives how many are not as their first one.
    fn check_sectors(&mut self) -> u64 {
        let mut differing = 0;
        for sector in (0..self.map.array_size().0).map(Sectors) {
            let copies = self.current_copies(sector);
            let versions: Vec<_> = copies.iter().map(|copy| *self.content(*copy)).collect();
            let allowed = &self.allowed[index(sector.0)];
            assert!(
                versions.iter().all(|version| allowed.contains(version)),
                "{sector}: {versions:?} of {allowed:?}"
            );
            let others = versions.iter().filter(|version| **version != versions[0]);
            differing += others.count() as u64;
        }
        differing
    }

    /// Changes a few copies other than the first ones behind the array's back.
    fn rot(&mut self) {
        for _ in 0..3 {
            let sector = Sectors(self.random.below(self.map.array_size().0));
            let copies = self.current_copies(sector);
            if let [_, .., last] = copies[..] {
                *self.content(last) = ROTTEN;
            }
        }
    }

    /// A repair finds what differs, and a check after it nothing.
    fn repair(&mut self) {
        let before = self.check_sectors();
        self.rot();
        let mut rotten = 0;
        for sector in (0..self.map.array_size().0).map(Sectors) {
            for copy in self.current_copies(sector) {
                rotten += u64::from(*self.content(copy) == ROTTEN);
            }
        }
        // Where something cannot be read, other copies may be compared.
        let slots = (0..).map(Slot).take(self.slots.len());
        let is_whole = self.disks.iter().all(|disk| disk.latent.is_empty())
            && slots
                .into_iter()
                .all(|slot| self.array.members.bad_blocks(slot).next().is_none());
        for action in [SyncAction::Check, SyncAction::Repair, SyncAction::Check] {
            self.mismatches = 0;
            let found = self.mismatches_of(action);
            if is_whole && action == SyncAction::Repair {
                assert!((rotten..=before + rotten).contains(&found), "{found}");
                rotten = 0;
            } else if is_whole && rotten == 0 {
                assert_eq!((found, self.check_sectors()), (0, 0));
            }
        }
    }

    fn mismatches_of(&mut self, action: SyncAction) -> u64 {
        self.sync(action, None).expect("nothing runs");
        self.take_outputs();
        self.rest();
        self.mismatches
    }
}
