//! Read policies: the choice of the member that serves a read.
//!
//! A policy is a small pure object. The core reports everything that happens on the members to it,
//! so that each driver's own rule of what moves a head position, and when, can be followed exactly:
//! a choice, then `issued` for every command that goes to a member, then `completed` for every
//! answer. Positions are array sectors.
//!
//! An array that keeps data chooses among a few rules (see `ReadPolicyKind::OWN`). Those that
//! imitate other drivers are in a crate of their own, for models; a model that uses one passes it
//! in as a [`ReadPolicyKind`].

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

/// A policy's view of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberView {
    /// The sector of its data area up to which reads may be served: beyond its end for a member in
    /// sync, 0 for one that has failed.
    pub readable_below: Sectors,
    /// The number of commands outstanding, sync I/O and flushes included. In `issued` the new
    /// command counts already, in `completed` the old one no longer does.
    pub pending: u32,
    /// Whether the member is a mechanical disk.
    pub rotational: bool,
    /// Whether the member should be read only where no other one can serve.
    pub write_mostly: bool,
}

/// A read that needs a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// The first array sector of the read.
    pub start: Sectors,
    /// Sectors for which a member is still to be chosen, at least 1.
    pub count: Sectors,
    /// The first sector of the read that this is a part of, before a policy split it.
    pub whole_start: Sectors,
    /// The number of sectors of that whole read.
    pub whole_count: Sectors,
    /// The process that submitted it.
    pub process: u32,
    /// The members that hold this range and did not fail this read before.
    pub candidates: SlotSet,
}

/// A policy's choice of a member, and of how much of the read it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The member to be read.
    pub slot: Slot,
    /// The number of sectors that it gets, from the read's start; a choice for the rest follows.
    pub count: Sectors,
}

/// The purpose of a command to a member, as far as policies distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoKind {
    /// A read for which the policy chose; a sync read too where the driver balances those.
    Read,
    /// A write or a discard for a request.
    Write,
    /// A sync read for which the policy did not choose.
    SyncRead,
    /// A write to a member under recovery or resync.
    SyncWrite,
}

/// A command to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// The purpose of the command.
    pub kind: IoKind,
    /// The member that it goes to.
    pub slot: Slot,
    /// The first array sector of the command.
    pub start: Sectors,
    /// The number of sectors.
    pub count: Sectors,
    /// First sector of the member's data area: for a mirror the array sector.
    pub address: Sectors,
}

/// The places of a read's copies, for levels where they differ.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The copies of the read, each with its sector on its member.
    pub extent: Extent<'a>,
    /// The layout of the array's copies.
    pub copies: Copies,
}

/// A rule that chooses a member for each read.
pub trait ReadPolicy: fmt::Debug + Send {
    /// Chooses a member for a read; `None` only where there is no candidate.
    /// The chosen count is at least 1 and at most the read's. A choice is
    /// always followed by `issued` for the same range.
    fn choose(&mut self, now: Nanos, read: &Read, members: &[MemberView]) -> Option<Choice>;

    /// Chooses a member where copies lie at different sectors. Policies for mirrors only go
    /// by array sectors.
    fn choose_place(
        &mut self,
        now: Nanos,
        read: &Read,
        _places: &Places<'_>,
        members: &[MemberView],
    ) -> Option<Choice> {
        self.choose(now, read, members)
    }

    /// Chooses a member for a read beyond the resync position of a dirty mirror, where members may
    /// differ and every read must get the same answer: the lowest candidate that is not
    /// write-mostly, else the lowest.
    fn choose_first(&self, read: &Read, members: &[MemberView]) -> Option<Slot> {
        read.preferred(members).lowest()
    }

    /// Reports that a command went to a member.
    fn issued(&mut self, _io: &Io, _members: &[MemberView]) {}

    /// Reports that a command came back, with or without an error.
    fn completed(&mut self, _io: &Io) {}

    /// Reports that a new member was put into a slot. Answers from the one before are not
    /// reported any more.
    fn member_added(&mut self, _slot: Slot) {}
}

impl Read {
    /// Returns the sector after the last.
    #[must_use]
    #[inline]
    pub fn end(&self) -> Sectors {
        self.start + self.count
    }

    /// Returns the candidates that are not write-mostly; all where only write-mostly ones are left.
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

    /// Returns the choice of one member for the whole read.
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
    /// Returns the sector after the last.
    #[must_use]
    #[inline]
    pub fn end(&self) -> Sectors {
        self.start + self.count
    }
}
