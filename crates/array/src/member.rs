//! The members and their states.
//!
//! A slot is empty (`Missing`), or holds a member that is in sync, is being
//! recovered, or has failed. A member leaves service for good when it fails:
//! its epoch advances, and whatever its commands in flight still report is
//! counted as an answer from a member that is gone.
//!
//! A member knows what recovery owes it, and its bad blocks: ranges of its data
//! area that have no right bytes, which reads avoid until a write made them
//! right again.

use crate::admission::Admission;
use crate::config::{AdminError, Initial, MemberConfig};
use crate::policy::MemberView;
use crate::recovery::need::Need;
use crate::request::Slot;
use raidlab_geometry::SlotSet;
use raidlab_units::{Sectors, Span, SpanSet};

/// What a slot holds.
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
    /// Nothing.
    Missing,
}

#[derive(Debug)]
struct Member {
    config: MemberConfig,
    state: State,
    epoch: u32,
    traffic: Traffic,
    /// What recovery owes it.
    need: Need,
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

/// All slots.
#[derive(Debug)]
pub(crate) struct Members {
    members: Vec<Member>,
    views: Vec<MemberView>,
    in_sync: SlotSet,
    recovering: SlotSet,
    /// Those that have bad blocks.
    with_bad_blocks: SlotSet,
}

/// Higher than any sector: the whole member is readable.
const EVERYTHING: Sectors = Sectors(u64::MAX);

impl Members {
    /// All members in sync.
    pub(crate) fn new(configs: Vec<MemberConfig>) -> Self {
        let initial = configs.into_iter().map(Initial::InSync);
        Self::as_found(initial.collect(), false)
    }

    /// Members as they are when the array starts. Recovering ones serve reads
    /// below what they have already, if `readable` says so.
    pub(crate) fn as_found(initial: Vec<Initial>, readable: bool) -> Self {
        let count = initial.len();
        let mut members = Self {
            members: (0..count).map(|_| Member::missing()).collect(),
            views: vec![view(&NOTHING, Sectors::ZERO); count],
            in_sync: SlotSet::EMPTY,
            recovering: SlotSet::EMPTY,
            with_bad_blocks: SlotSet::EMPTY,
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
                    members.set_admitted(slot, config, admission, readable);
                }
            }
        }
        members
    }

    pub(crate) const fn in_sync(&self) -> SlotSet {
        self.in_sync
    }

    pub(crate) const fn recovering(&self) -> SlotSet {
        self.recovering
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
    pub(crate) fn is_needed(&self, slot: Slot, least: usize) -> bool {
        self.in_sync.contains(slot) && self.in_sync.without(slot).len() < least
    }

    /// Whether a member can be marked failed; `is_needed`: the array cannot do
    /// without it.
    ///
    /// # Errors
    /// When there is none, it has failed before, or it is needed.
    pub(crate) fn may_fail(
        &self,
        slot: Slot,
        is_needed: impl FnOnce() -> bool,
    ) -> Result<(), AdminError> {
        self.occupied(slot)?;
        if self.is_faulty(slot) {
            return Err(AdminError::AlreadyFaulty(slot));
        }
        if is_needed() {
            return Err(AdminError::LastInSync(slot));
        }
        Ok(())
    }

    /// Whether a member can be put into a slot of an array that uses so much of it.
    ///
    /// # Errors
    /// When there is no such slot, it is not empty, or the member is too small.
    pub(crate) fn takes(
        &self,
        slot: Slot,
        member: &MemberConfig,
        used: impl FnOnce() -> Sectors,
    ) -> Result<(), AdminError> {
        if !self.exists(slot) {
            return Err(AdminError::NoSuchSlot(slot));
        }
        if !self.is_missing(slot) {
            return Err(AdminError::Occupied(slot));
        }
        let (size, needed) = (member.size.0, member.needed(used()));
        if size < needed {
            return Err(AdminError::TooSmall { size, needed });
        }
        Ok(())
    }

    pub(crate) fn is_missing(&self, slot: Slot) -> bool {
        self.members[slot.index()].state == State::Missing
    }

    pub(crate) fn is_faulty(&self, slot: Slot) -> bool {
        self.members[slot.index()].state == State::Faulty
    }

    #[inline]
    pub(crate) fn epoch(&self, slot: Slot) -> u32 {
        self.members[slot.index()].epoch
    }

    #[inline]
    pub(crate) fn data_offset(&self, slot: Slot) -> Sectors {
        self.members[slot.index()].config.data_offset
    }

    pub(crate) fn traffic(&self, slot: Slot) -> Traffic {
        self.members[slot.index()].traffic
    }

    /// Whether a member may serve a read of this range of its data area.
    pub(crate) fn may_read(&self, slot: Slot, range: Span) -> bool {
        let view = &self.views[slot.index()];
        view.readable_below >= range.end && !self.is_bad(slot, range)
    }

    /// Whether all members in sync may serve every read, and no other ones any.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.recovering.is_empty() && self.with_bad_blocks.is_empty()
    }

    pub(crate) const fn with_bad_blocks(&self) -> SlotSet {
        self.with_bad_blocks
    }

    /// Whether a member has a log in which bad blocks can be remembered.
    pub(crate) fn remembers_bad_blocks(&self, slot: Slot) -> bool {
        self.members[slot.index()].config.bad_blocks.is_some()
    }

    pub(crate) fn is_bad(&self, slot: Slot, range: Span) -> bool {
        self.with_bad_blocks.contains(slot) && self.members[slot.index()].bad_blocks.overlaps(range)
    }

    /// Where, from this sector of the member's data area on, bad blocks begin or
    /// end.
    pub(crate) fn bad_block_boundary(&self, slot: Slot, sector: Sectors) -> Sectors {
        self.members[slot.index()].bad_blocks.at(sector).1
    }

    pub(crate) fn set_bad(&mut self, slot: Slot, span: Span) {
        self.members[slot.index()].bad_blocks.insert(span);
        self.note_bad_blocks(slot);
    }

    /// A range has right bytes again; gives what was bad of it.
    pub(crate) fn clear_bad(&mut self, slot: Slot, range: Span) -> Vec<Span> {
        if !self.with_bad_blocks.contains(slot) {
            return Vec::new();
        }
        let cleared = self.members[slot.index()].bad_blocks.remove(range);
        self.note_bad_blocks(slot);
        cleared
    }

    pub(crate) fn bad_blocks(&self, slot: Slot) -> impl Iterator<Item = Span> {
        self.members[slot.index()].bad_blocks.iter()
    }

    fn note_bad_blocks(&mut self, slot: Slot) {
        self.with_bad_blocks = if self.members[slot.index()].bad_blocks.is_empty() {
            self.with_bad_blocks.without(slot)
        } else {
            self.with_bad_blocks.with(slot)
        };
    }

    pub(crate) fn need(&self, slot: Slot) -> &Need {
        &self.members[slot.index()].need
    }

    /// Recovery stopped short: everything below is done.
    pub(crate) fn recovered_to(&mut self, slot: Slot, position: Sectors) {
        let need = &mut self.members[slot.index()].need;
        need.from = need.from.max(position);
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

    pub(crate) fn states(&self) -> impl Iterator<Item = MemberState> {
        (0..)
            .map(Slot)
            .take(self.members.len())
            .map(|slot| self.state(slot))
    }

    /// What each slot holds, where the caller knows how far a new member is filled.
    pub(crate) fn states_filled_to(&self, filled: impl Fn(Slot) -> Sectors) -> Vec<MemberState> {
        let state = |(slot, state)| match state {
            MemberState::Recovering { .. } => MemberState::Recovering {
                readable_below: filled(slot),
            },
            state => state,
        };
        (0..).map(Slot).zip(self.states()).map(state).collect()
    }

    #[inline]
    pub(crate) fn issued(&mut self, slot: Slot, sync_sectors: u64) {
        self.views[slot.index()].pending += 1;
        self.members[slot.index()].traffic.sync_submitted += sync_sectors;
    }

    #[inline]
    pub(crate) fn completed(&mut self, slot: Slot, sectors: u64) {
        self.views[slot.index()].pending -= 1;
        self.members[slot.index()].traffic.completed += sectors;
    }

    /// A sync's command became part of another one.
    pub(crate) fn part_issued(&mut self, slot: Slot, sync_sectors: u64) {
        self.members[slot.index()].traffic.sync_submitted += sync_sectors;
    }

    /// And has ended with it.
    pub(crate) fn part_completed(&mut self, slot: Slot, sectors: u64) {
        self.members[slot.index()].traffic.completed += sectors;
    }

    /// Recovery got on; what was readable before stays so.
    pub(crate) fn set_readable_below(&mut self, slot: Slot, sector: Sectors) {
        let readable = &mut self.views[slot.index()].readable_below;
        *readable = sector.max(*readable);
    }

    pub(crate) fn set_in_sync(&mut self, slot: Slot) {
        self.members[slot.index()].state = State::InSync;
        self.views[slot.index()].readable_below = EVERYTHING;
        self.in_sync = self.in_sync.with(slot);
        self.recovering = self.recovering.without(slot);
    }

    pub(crate) fn set_faulty(&mut self, slot: Slot) {
        let member = &mut self.members[slot.index()];
        member.state = State::Faulty;
        member.epoch = member.epoch.wrapping_add(1);
        let view = &mut self.views[slot.index()];
        view.readable_below = Sectors::ZERO;
        view.pending = 0;
        self.in_sync = self.in_sync.without(slot);
        self.recovering = self.recovering.without(slot);
    }

    pub(crate) fn set_missing(&mut self, slot: Slot) {
        let member = &mut self.members[slot.index()];
        member.state = State::Missing;
        member.bad_blocks = SpanSet::default();
        self.note_bad_blocks(slot);
        // An empty slot must not make the array count as one with an SSD.
        self.views[slot.index()].rotational = true;
    }

    pub(crate) fn set_recovering(&mut self, slot: Slot, config: MemberConfig) {
        self.set_admitted(slot, config, Admission::From(Sectors::ZERO), false);
    }

    /// A member that recovery has to fill as far as its admission says; what it
    /// has already may be read if `readable` says so.
    pub(crate) fn set_admitted(
        &mut self,
        slot: Slot,
        config: MemberConfig,
        admission: Admission,
        readable: bool,
    ) {
        let need = Need::from(admission);
        let readable_below = if readable { need.from } else { Sectors::ZERO };
        self.views[slot.index()] = view(&config, readable_below);
        self.put_in(slot, config);
        let member = &mut self.members[slot.index()];
        member.state = State::Recovering;
        member.traffic = Traffic::default();
        member.need = need;
        self.recovering = self.recovering.with(slot);
    }

    /// Another device has taken a member's place, with all that it knows and owes.
    pub(crate) fn set_replaced(&mut self, slot: Slot, config: MemberConfig) {
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
        let member = &mut self.members[slot.index()];
        member.bad_blocks = config.bad_blocks.iter().flatten().copied().collect();
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
            need: Need::default(),
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
