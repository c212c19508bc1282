//! Devices that ran without each other: each side may have been written to, and it is unknown which
//! bytes are right.
//!
//! A device belongs to the side of the newest one if a chain of superblocks leads there: some
//! member was in service by its own superblock and by the newest one, or by its own and then later
//! together with a device that belongs there. A device without such a chain is another side if
//! members were missing by its superblock, or if it and the newest one call each other failed.
//! Otherwise it is only out of date.

use super::{View, role_of};
use crate::mutation::{self, Mutation};
use crate::persistent::assembly::{AssembleOptions, Candidate, LeftOut};
use crate::persistent::error::AssembleError;
use raidlab_geometry::{Slot, SlotSet};
use raidlab_metadata::{Role, Superblock, Uuid};
use std::collections::BTreeSet;

impl View {
    /// Refuses the set if a device ran without any of the current members.
    pub(super) fn refuse_split_brain(
        &mut self,
        options: &AssembleOptions,
    ) -> Result<(), AssembleError> {
        if mutation::is(Mutation::SplitBrainAccepted) {
            return Ok(());
        }
        let kin = self.kin();
        for at in 0..self.candidates.len() {
            let eligible = self.verdicts[at].is_none() && self.claim(at).is_some();
            if !eligible || at == self.newest || self.is_current(at) {
                continue;
            }
            let is_full = self.service(at).is_full;
            if kin.contains(&at) || is_full && !self.call_each_other_failed(at) {
                continue;
            }
            if !options.force {
                let (newer, older) = (&self.candidates[self.newest], &self.candidates[at]);
                return Err(AssembleError::SplitBrain {
                    newer: newer.name.clone(),
                    newer_events: newer.superblock().events,
                    older: older.name.clone(),
                    older_events: older.superblock().events,
                });
            }
            self.verdicts[at] = Some(LeftOut::SplitBrain);
        }
        Ok(())
    }

    /// Returns the candidates that did not run without the current members: some member may have
    /// been in service both by their superblock and by the newest, or by their superblock and with
    /// one of these later on.
    fn kin(&self) -> BTreeSet<usize> {
        let newest = self.service(self.newest);
        let eligible = |at: &usize| self.verdicts[*at].is_none() && self.claim(*at).is_some();
        let all = (0..self.candidates.len()).filter(eligible);
        let sets: Vec<(usize, Service)> = all.map(|at| (at, self.service(at))).collect();
        let meeting = sets.iter().filter(|(_, set)| set.meets(&newest));
        let mut kin: BTreeSet<usize> = meeting.map(|(at, _)| *at).collect();
        let mut before = 0;
        while kin.len() > before {
            before = kin.len();
            for (at, set) in &sets {
                let own = self.candidates[*at].superblock();
                let names = |other: &usize| {
                    let other = self.candidates[*other].superblock();
                    other.events >= own.events && set.names(other)
                };
                if kin.iter().any(names) {
                    kin.insert(*at);
                }
            }
        }
        kin
    }

    /// Whether a candidate and the newest call each other failed.
    fn call_each_other_failed(&self, at: usize) -> bool {
        let (array, own) = (self.array(), self.candidates[at].superblock());
        role_of(array, own.device_number) == Role::Faulty
            && role_of(own, array.device_number) == Role::Faulty
    }

    /// Returns the members in service by a candidate's superblock.
    fn service(&self, at: usize) -> Service {
        let superblock = self.candidates[at].superblock();
        let mut slots = SlotSet::EMPTY;
        let mut members = Vec::new();
        for (number, role) in (0..).zip(&superblock.roles) {
            let Role::Slot(slot) = *role else { continue };
            if usize::from(slot) < self.slot_count().min(raidlab_geometry::MAXIMUM_MEMBERS) {
                slots = slots.with(Slot(slot));
            }
            members.push((number, self.identity(number, superblock)));
        }
        Service {
            is_full: slots.len() >= self.slot_count(),
            members,
        }
    }

    /// Returns the device that had this number when that superblock was written, if one of the
    /// candidates shows it: numbers are used again.
    fn identity(&self, number: u32, superblock: &Superblock) -> Option<Uuid> {
        if superblock.device_number == number {
            return Some(superblock.device_uuid);
        }
        self.candidates
            .iter()
            .map(Candidate::superblock)
            .find(|other| {
                other.device_number == number && other.events.abs_diff(superblock.events) <= 1
            })
            .map(|other| other.device_uuid)
    }
}

/// The members in service by one superblock: number and, where known, identity.
struct Service {
    /// Whether each slot of the array has a member in service.
    is_full: bool,
    members: Vec<(u32, Option<Uuid>)>,
}

impl Service {
    /// Whether a device is one of these members.
    fn names(&self, superblock: &Superblock) -> bool {
        self.members.iter().any(|(number, identity)| {
            *number == superblock.device_number
                && identity.is_none_or(|identity| identity == superblock.device_uuid)
        })
    }

    /// Whether a member may be in both sets.
    fn meets(&self, other: &Self) -> bool {
        self.members.iter().any(|(number, identity)| {
            other.members.iter().any(|(other_number, other_identity)| {
                number == other_number
                    && match (identity, other_identity) {
                        (Some(own), Some(other)) => own == other,
                        _ => true,
                    }
            })
        })
    }
}
