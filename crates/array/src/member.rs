//! The member table: all that an engine knows of its members, for every level.
//!
//! A slot is empty (`Missing`), or holds a member that is in sync, is being
//! recovered, or has failed. A member leaves service for good when it fails:
//! its epoch advances, and whatever its commands in flight still report is
//! counted as an answer from a member that is gone.
//!
//! Of each member the table has what of it can be relied on (`content`), and the members
//! whose failure the superblocks of the others do not tell yet.
//!
//! What an administrator does with members, and what happens when one is lost, is
//! written once, in `verbs`; an engine adds what it has to do besides.

mod content;
mod unfilled;
mod verbs;

pub(crate) use unfilled::Unfilled;
pub use verbs::{EngineParts, MemberVerbs};

use crate::admission::{Admission, blocks_of};
use crate::config::{AdminError, Initial, MemberConfig};
use crate::mutation::{self, Mutation};
use crate::policy::MemberView;
use crate::request::{Event, Outputs, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::{Sectors, SpanSet};

/// What a slot of the array holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// A member with current content everywhere.
    InSync,
    /// A member that recovery is filling, or that waits for it.
    Recovering {
        /// Reads may be served below this sector of its data area.
        readable_below: Sectors,
    },
    /// A failed member, not yet taken out.
    Faulty,
    /// There is no member: the slot is empty.
    Missing,
}

#[derive(Debug)]
struct Member {
    config: MemberConfig,
    state: State,
    epoch: u32,
    traffic: Traffic,
    unfilled: Unfilled,
    bad_blocks: SpanSet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    InSync,
    Recovering,
    Faulty,
    Missing,
}

/// Sectors moved by a member since it was put in: what the idle test of md's
/// resync looks at.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traffic {
    /// Sectors of completed reads and writes, sync I/O included.
    pub(crate) completed: u64,
    /// Sectors of sync I/O submitted.
    pub(crate) sync_submitted: u64,
}

/// The member table of an array.
#[derive(Debug)]
pub struct Members {
    members: Vec<Member>,
    views: Vec<MemberView>,
    in_sync: SlotSet,
    recovering: SlotSet,
    /// The slots whose member has bad blocks.
    with_bad_blocks: SlotSet,
    /// Members whose failure the superblocks of the others do not tell yet.
    unrecorded: SlotSet,
    rules: MemberRules,
    /// What a member could not read may be written anew.
    pub(crate) corrects: bool,
}

/// How an engine keeps its members.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemberRules {
    /// A member of this size is filled and has bad blocks in whole blocks of so many
    /// sectors (levels with parity); `None`: in sectors, as they are told.
    pub blocks: Option<(Sectors, u64)>,
    /// A member under recovery may be read where it was filled before it was added.
    pub reads_filled: bool,
    /// Somebody records failures, and tells when that is done.
    pub record_failures: bool,
}

/// Higher than any sector: the whole member is readable.
const EVERYTHING: Sectors = Sectors(u64::MAX);

impl Members {
    /// Members as they are when the array starts.
    #[must_use]
    pub fn new(initial: Vec<Initial>, rules: MemberRules) -> Self {
        let count = initial.len();
        let mut members = Self {
            members: (0..count).map(|_| Member::missing()).collect(),
            views: vec![view(&NOTHING, Sectors::ZERO); count],
            in_sync: SlotSet::EMPTY,
            recovering: SlotSet::EMPTY,
            with_bad_blocks: SlotSet::EMPTY,
            unrecorded: SlotSet::EMPTY,
            rules,
            corrects: true,
        };
        for (slot, initial) in (0..).map(Slot).zip(initial) {
            match initial {
                Initial::Missing => {}
                Initial::InSync(config) => {
                    members.views[slot.index()] = view(&config, EVERYTHING);
                    members.put_in(slot, config);
                    members.set_in_sync(slot);
                }
                Initial::Recovering(config, admission) => {
                    members.admit(slot, config, &admission);
                }
            }
        }
        members
    }

    /// Members with current content everywhere.
    #[must_use]
    pub const fn in_sync(&self) -> SlotSet {
        self.in_sync
    }

    /// Members that are being filled, or wait for it.
    #[must_use]
    pub const fn recovering(&self) -> SlotSet {
        self.recovering
    }

    /// Members that take writes.
    #[must_use]
    pub fn in_service(&self) -> SlotSet {
        self.in_sync | self.recovering
    }

    /// Members whose failure the superblocks of the others do not tell yet.
    #[must_use]
    pub const fn unrecorded(&self) -> SlotSet {
        self.unrecorded
    }

    /// The superblocks of the others tell that this one has failed.
    pub fn failure_recorded(&mut self, slot: Slot) {
        self.unrecorded = self.unrecorded.without(slot);
    }

    pub(crate) fn views(&self) -> &[MemberView] {
        &self.views
    }

    pub(crate) fn exists(&self, slot: Slot) -> bool {
        slot.index() < self.members.len()
    }

    /// Whether a slot holds a member.
    ///
    /// # Errors
    /// When there is no such slot, or it is empty.
    pub(crate) fn occupied(&self, slot: Slot) -> Result<(), AdminError> {
        if !self.exists(slot) {
            return Err(AdminError::NoSuchSlot(slot));
        }
        if self.is_missing(slot) {
            return Err(AdminError::Empty(slot));
        }
        Ok(())
    }

    /// Whether it is in sync, and without it fewer than `least` were.
    #[must_use]
    pub fn is_needed(&self, slot: Slot, least: usize) -> bool {
        self.in_sync.contains(slot) && self.in_sync.without(slot).len() < least
    }

    /// Whether a slot is empty.
    ///
    /// # Errors
    /// When there is no such slot, or it holds a member.
    pub(crate) fn vacant(&self, slot: Slot) -> Result<(), AdminError> {
        if !self.exists(slot) {
            return Err(AdminError::NoSuchSlot(slot));
        }
        if !self.is_missing(slot) {
            return Err(AdminError::Occupied(slot));
        }
        Ok(())
    }

    pub(crate) fn is_missing(&self, slot: Slot) -> bool {
        self.members[slot.index()].state == State::Missing
    }

    pub(crate) fn is_faulty(&self, slot: Slot) -> bool {
        self.members[slot.index()].state == State::Faulty
    }

    /// How many members of a slot have failed: what a command was sent in another epoch
    /// for is gone.
    #[inline]
    #[must_use]
    pub fn epoch(&self, slot: Slot) -> u32 {
        self.members[slot.index()].epoch
    }

    /// Where a member's data area begins.
    #[inline]
    #[must_use]
    pub fn data_offset(&self, slot: Slot) -> Sectors {
        self.members[slot.index()].config.data_offset
    }

    pub(crate) fn traffic(&self, slot: Slot) -> Traffic {
        self.members[slot.index()].traffic
    }

    /// Whether all members in sync may serve every read, and no other ones any.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.recovering.is_empty() && self.with_bad_blocks.is_empty()
    }

    pub(crate) fn state(&self, slot: Slot) -> MemberState {
        match self.members[slot.index()].state {
            State::InSync => MemberState::InSync,
            State::Recovering => MemberState::Recovering {
                readable_below: self.views[slot.index()].readable_below,
            },
            State::Faulty => MemberState::Faulty,
            State::Missing => MemberState::Missing,
        }
    }

    /// What each slot holds, slot 0 first.
    pub fn states(&self) -> impl Iterator<Item = MemberState> {
        (0..)
            .map(Slot)
            .take(self.members.len())
            .map(|slot| self.state(slot))
    }

    /// A command was sent to a member; `sync_sectors` of it are for a sync.
    #[inline]
    pub fn issued(&mut self, slot: Slot, sync_sectors: u64) {
        self.views[slot.index()].pending += 1;
        self.members[slot.index()].traffic.sync_submitted += sync_sectors;
    }

    /// A command of so many sectors has ended.
    #[inline]
    pub fn completed(&mut self, slot: Slot, sectors: u64) {
        self.views[slot.index()].pending -= 1;
        self.members[slot.index()].traffic.completed += sectors;
    }

    /// A sync's command became part of another one.
    pub(crate) fn part_issued(&mut self, slot: Slot, sync_sectors: u64) {
        self.members[slot.index()].traffic.sync_submitted += sync_sectors;
    }

    /// A sync's command that was sent by itself became part of another one after all.
    pub(crate) fn became_part(&mut self, slot: Slot) {
        self.views[slot.index()].pending -= 1;
    }

    /// Counts sectors that a member has completed, of sync I/O or of metadata.
    pub fn part_completed(&mut self, slot: Slot, sectors: u64) {
        self.members[slot.index()].traffic.completed += sectors;
    }

    /// Marks a member as filled: from now on it holds everything that it should.
    pub fn set_in_sync(&mut self, slot: Slot) {
        let member = &mut self.members[slot.index()];
        member.state = State::InSync;
        member.unfilled = Unfilled::default();
        self.views[slot.index()].readable_below = EVERYTHING;
        self.in_sync = self.in_sync.with(slot);
        self.recovering = self.recovering.without(slot);
    }

    /// A member leaves service, and what was known of its content is forgotten.
    pub(crate) fn fail(&mut self, slot: Slot, out: &mut Outputs) {
        let member = &mut self.members[slot.index()];
        member.state = State::Faulty;
        member.epoch = member.epoch.wrapping_add(1);
        member.unfilled = Unfilled::default();
        member.bad_blocks.clear();
        self.note_bad_blocks(slot);
        let view = &mut self.views[slot.index()];
        view.readable_below = Sectors::ZERO;
        view.pending = 0;
        self.in_sync = self.in_sync.without(slot);
        self.recovering = self.recovering.without(slot);
        out.events.push(Event::MemberFailed(slot));
        if self.rules.record_failures && !mutation::is(Mutation::FailureNotAwaited) {
            self.unrecorded = self.unrecorded.with(slot);
        }
    }

    /// A failed member is taken out of its slot.
    pub(crate) fn remove(&mut self, slot: Slot, out: &mut Outputs) {
        self.members[slot.index()].state = State::Missing;
        // An empty slot must not make the array count as one with an SSD.
        self.views[slot.index()].rotational = true;
        out.events.push(Event::MemberRemoved(slot));
    }

    /// Puts a member into a slot, which is to be filled as far as its admission says.
    pub(crate) fn admit(&mut self, slot: Slot, config: MemberConfig, admission: &Admission) {
        self.views[slot.index()] = view(&config, Sectors::ZERO);
        self.put_in(slot, config);
        let unfilled = match self.rules.blocks {
            Some((size, block)) => Unfilled::in_blocks(admission, size, block),
            None => Unfilled::from(admission.clone()),
        };
        let member = &mut self.members[slot.index()];
        member.state = State::Recovering;
        member.traffic = Traffic::default();
        member.unfilled = unfilled;
        self.views[slot.index()].readable_below = self.readable_below(slot);
        self.recovering = self.recovering.with(slot);
    }

    /// Another device has taken a member's place, with all that it knows and owes.
    pub fn set_replaced(&mut self, slot: Slot, config: MemberConfig) {
        if !self.exists(slot) {
            return;
        }
        let view = &mut self.views[slot.index()];
        view.rotational = config.rotational;
        view.write_mostly = config.write_mostly;
        self.members[slot.index()].config = config;
    }

    /// A slot's new member: what was known of the one before is forgotten, and
    /// what its own log says is known.
    fn put_in(&mut self, slot: Slot, config: MemberConfig) {
        let bad = config.bad_blocks.as_deref().unwrap_or_default();
        let member = &mut self.members[slot.index()];
        member.bad_blocks = match self.rules.blocks {
            Some((size, block)) => blocks_of(Some(bad), size, block),
            None => bad.iter().copied().collect(),
        };
        member.config = config;
        self.note_bad_blocks(slot);
    }
}

/// What an empty slot holds.
const NOTHING: MemberConfig = MemberConfig {
    size: Sectors::ZERO,
    data_offset: Sectors::ZERO,
    rotational: true,
    write_mostly: false,
    bad_blocks: None,
};

impl Member {
    fn missing() -> Self {
        Self {
            config: NOTHING,
            state: State::Missing,
            epoch: 0,
            traffic: Traffic::default(),
            unfilled: Unfilled::default(),
            bad_blocks: SpanSet::default(),
        }
    }
}

const fn view(config: &MemberConfig, readable_below: Sectors) -> MemberView {
    MemberView {
        readable_below,
        pending: 0,
        rotational: config.rotational,
        write_mostly: config.write_mostly,
    }
}
