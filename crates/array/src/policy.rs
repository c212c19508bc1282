//! Read policies: which member serves a read.
//!
//! A policy is a small pure object. The core tells it everything that happens
//! on the members, so that each driver's own rule of what moves a head
//! position, and when, can be kept exactly: a choice, then `issued` for every
//! command that goes to a member, then `completed` for every answer. Positions
//! are array sectors.
//!
//! An array that keeps data chooses among a few rules (see `ReadPolicyKind::OWN`). Those
//! that imitate other drivers live in a crate of their own, for models; whoever uses one
//! hands it in as a [`ReadPolicyKind`].

mod kind;
pub(crate) mod least_pending;
pub(crate) mod md;
mod md_6_9;
pub(crate) mod md_raid10;
mod round_robin;
#[cfg(test)]
mod testing;

pub use kind::{Parameter, ReadPolicyError, ReadPolicyKind, Rule};

use crate::request::Slot;
use raidlab_geometry::{Copies, Extent, SlotSet};
use raidlab_units::{Nanos, Sectors};
use std::fmt;

/// What a policy sees of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberView {
    /// Reads that end at or below this sector of its data area may be served:
    /// everything
    /// for a member in sync, nothing for one that has failed.
    pub readable_below: Sectors,
    /// Commands outstanding, sync I/O and flushes included. In `issued` the
    /// new command counts already, in `completed` the old one does no longer.
    pub pending: u32,
    /// Whether it is a mechanical disk.
    pub rotational: bool,
    /// Whether it should be read only where no other member can serve.
    pub write_mostly: bool,
}

/// A read that needs a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// The first array sector of the read.
    pub start: Sectors,
    /// Sectors still without a member, at least 1.
    pub count: Sectors,
    /// First sector of the read that this is a part of, before a policy split
    /// it.
    pub whole_start: Sectors,
    /// How many sectors that whole read has.
    pub whole_count: Sectors,
    /// The process that asks for it.
    pub process: u32,
    /// The members that hold this range and did not fail this read before.
    pub candidates: SlotSet,
}

/// The member that a policy has chosen, and for how much of the read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The member that is to be read.
    pub slot: Slot,
    /// How much of the read it gets, from its start; the rest is asked again.
    pub count: Sectors,
}

/// What a command to a member is for, as far as policies care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoKind {
    /// A read that went through the policy; a sync read too where the driver
    /// balances those.
    Read,
    /// A write or a discard for a request.
    Write,
    /// A sync read that did not go through the policy.
    SyncRead,
    /// A write to a member under recovery or resync.
    SyncWrite,
}

/// A command to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// What the command is for.
    pub kind: IoKind,
    /// The member that it goes to.
    pub slot: Slot,
    /// The first array sector of the command.
    pub start: Sectors,
    /// How many sectors it covers.
    pub count: Sectors,
    /// First sector of the member's data area: for a mirror the array sector.
    pub address: Sectors,
}

/// Where the copies of a read lie, for levels where that differs.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The copies of the read, each with its sector on its member.
    pub extent: Extent<'a>,
    /// How the array's copies are laid out.
    pub copies: Copies,
}

/// A rule that chooses a member for each read.
pub trait ReadPolicy: fmt::Debug + Send {
    /// Chooses a member for a read; `None` only where there is no candidate.
    /// The chosen count is at least 1 and at most the read's. A choice is
    /// always followed by `issued` for the same range.
    fn choose(&mut self, now: Nanos, read: &Read, members: &[MemberView]) -> Option<Choice>;

    /// Chooses likewise where copies lie at different sectors. Policies that know
    /// mirrors only go by array sectors.
    fn choose_place(
        &mut self,
        now: Nanos,
        read: &Read,
        _places: &Places<'_>,
        members: &[MemberView],
    ) -> Option<Choice> {
        self.choose(now, read, members)
    }

    /// Chooses for a read beyond the resync position of a dirty mirror, where
    /// members may differ and every read must get the same answer: the lowest
    /// candidate that is not write-mostly, else the lowest.
    fn choose_first(&self, read: &Read, members: &[MemberView]) -> Option<Slot> {
        read.preferred(members).lowest()
    }

    /// A command went to a member.
    fn issued(&mut self, _io: &Io, _members: &[MemberView]) {}

    /// A command came back, with or without an error.
    fn completed(&mut self, _io: &Io) {}

    /// A new member was put into a slot. Answers from the one before are not
    /// reported any more.
    fn member_added(&mut self, _slot: Slot) {}
}

impl Read {
    /// One past the last sector.
    #[must_use]
    #[inline]
    pub fn end(&self) -> Sectors {
        self.start + self.count
    }

    /// The candidates that are not write-mostly; all where only write-mostly
    /// ones are left.
    #[must_use]
    #[inline]
    pub fn preferred(&self, members: &[MemberView]) -> SlotSet {
        let preferred = self
            .candidates
            .iter()
            .filter(|slot| !members[slot.index()].write_mostly)
            .collect::<SlotSet>();
        if preferred.is_empty() {
            self.candidates
        } else {
            preferred
        }
    }

    /// The member for all of the read.
    #[must_use]
    #[inline]
    pub fn all_from(&self, slot: Slot) -> Choice {
        Choice {
            slot,
            count: self.count,
        }
    }
}

impl Io {
    /// One past the last sector.
    #[must_use]
    #[inline]
    pub fn end(&self) -> Sectors {
        self.start + self.count
    }
}
