//! The member table: all that an engine knows of its members, for every level.
//!
//! A slot is empty (`Missing`), or holds a member that is in sync, is being recovered, or has
//! failed. A member leaves service for good when it fails: its epoch advances, and the results of
//! its commands in flight are counted as answers from a member that is gone.
//!
//! For each member the table has the part of its content that can be relied on (`content`), and
//! whether the superblocks of the others do not record its failure yet.
//!
//! The administrator's verbs on members, and the loss of a member, are implemented once, in
//! `verbs`; an engine adds its own part.

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

/// The state of a slot of the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// A member with current content everywhere.
    InSync,
    /// A member under recovery, or waiting for it.
    Recovering {
        /// The sector of its data area below which reads may be served.
        readable_below: Sectors,
    },
    /// A failed member, not yet removed.
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

/// Sectors moved by a member since it was added: the input of the idle test of md's resync.
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
    /// Members whose failure the superblocks of the others do not record yet.
    unrecorded: SlotSet,
    rules: MemberRules,
    /// Whether ranges that a member could not read may be rewritten.
    pub(crate) corrects: bool,
}

/// The rules by which an engine keeps its members.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemberRules {
    /// For levels with parity, the size of a member and the sectors of the blocks in which it is
    /// recovered and has bad blocks; `None`: in sectors, as reported.
    pub blocks: Option<(Sectors, u64)>,
    /// Whether a member under recovery may be read where it was filled before it was added.
    pub reads_filled: bool,
    /// Whether the layer above records failures, and reports when that is done.
    pub record_failures: bool,
}

/// A sector beyond all others: the whole member is readable.
const EVERYTHING: Sectors = Sectors(u64::MAX);

impl Members {
    /// A table of members in their states at the start of the array.
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

    /// Returns the members with current content everywhere.
    #[must_use]
    pub const fn in_sync(&self) -> SlotSet {
        self.in_sync
    }

    /// Returns the members under recovery, or waiting for it.
    #[must_use]
    pub const fn recovering(&self) -> SlotSet {
        self.recovering
    }

    /// Returns the members that take writes.
    #[must_use]
    pub fn in_service(&self) -> SlotSet {
        self.in_sync | self.recovering
    }

    /// Returns the members whose failure the superblocks of the others do not record yet.
    #[must_use]
    pub const fn unrecorded(&self) -> SlotSet {
        self.unrecorded
    }

    /// Notes that the superblocks of the others record this member's failure.
    pub fn failure_recorded(&mut self, slot: Slot) {
        self.unrecorded = self.unrecorded.without(slot);
    }

    pub(crate) fn views(&self) -> &[MemberView] {
        &self.views
    }

    pub(crate) fn exists(&self, slot: Slot) -> bool {
        slot.index() < self.members.len()
    }

    /// Checks that a slot holds a member.
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

    /// Whether the member is in sync, and without it fewer than `least` would be.
    #[must_use]
    pub fn is_needed(&self, slot: Slot, least: usize) -> bool {
        self.in_sync.contains(slot) && self.in_sync.without(slot).len() < least
    }

    /// Checks that a slot is empty.
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

    /// Returns the number of members of a slot that have failed: commands sent in another
    /// epoch are void.
    #[inline]
    #[must_use]
    pub fn epoch(&self, slot: Slot) -> u32 {
        self.members[slot.index()].epoch
    }

    /// Returns the sector at which a member's data area begins.
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

    /// Returns the state of each slot, slot 0 first.
    pub fn states(&self) -> impl Iterator<Item = MemberState> {
        (0..)
            .map(Slot)
            .take(self.members.len())
            .map(|slot| self.state(slot))
    }

    /// Counts a command sent to a member; `sync_sectors` of it are for a sync.
    #[inline]
    pub fn issued(&mut self, slot: Slot, sync_sectors: u64) {
        self.views[slot.index()].pending += 1;
        self.members[slot.index()].traffic.sync_submitted += sync_sectors;
    }

    /// Counts the end of a command of `sectors` sectors.
    #[inline]
    pub fn completed(&mut self, slot: Slot, sectors: u64) {
        self.views[slot.index()].pending -= 1;
        self.members[slot.index()].traffic.completed += sectors;
    }

    /// Counts a sync's command that was merged into another one.
    pub(crate) fn part_issued(&mut self, slot: Slot, sync_sectors: u64) {
        self.members[slot.index()].traffic.sync_submitted += sync_sectors;
    }

    /// Corrects the counts for a sync's command that was sent and then merged into another one.
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

    /// Removes a member from service, and forgets what was known of its content.
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

    /// Removes a failed member from its slot.
    pub(crate) fn remove(&mut self, slot: Slot, out: &mut Outputs) {
        self.members[slot.index()].state = State::Missing;
        // An empty slot must not make the array count as one with a non-rotational member.
        self.views[slot.index()].rotational = true;
        out.events.push(Event::MemberRemoved(slot));
    }

    /// Adds a member to a slot, which is to be recovered to the extent of its admission.
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

    /// Puts another device in a member's place, with the member's known content and open commands.
    pub fn set_replaced(&mut self, slot: Slot, config: MemberConfig) {
        if !self.exists(slot) {
            return;
        }
        let view = &mut self.views[slot.index()];
        view.rotational = config.rotational;
        view.write_mostly = config.write_mostly;
        self.members[slot.index()].config = config;
    }

    /// Puts a new member into a slot: the state of the one before is forgotten, and the bad blocks
    /// are those of the new one's log.
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

/// The configuration of an empty slot.
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
