//! The members and their states.
//!
//! A slot is empty (`Missing`), or holds a member that is in sync, is being
//! recovered, or has failed. A member leaves service for good when it fails:
//! its epoch advances, and whatever its commands in flight still report is
//! counted as an answer from a member that is gone.

use crate::config::MemberConfig;
use crate::policy::MemberView;
use crate::request::Slot;
use raidlab_geometry::SlotSet;
use raidlab_units::Sectors;

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// A member with current content everywhere.
    InSync,
    /// A member that recovery is filling, or that waits for it.
    Recovering {
        /// Reads may be served below this array sector.
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
}

/// Higher than any sector: the whole member is readable.
const EVERYTHING: Sectors = Sectors(u64::MAX);

impl Members {
    /// All members in sync.
    pub(crate) fn new(configs: Vec<MemberConfig>) -> Self {
        let views = configs.iter().map(|config| view(config, EVERYTHING));
        Self {
            views: views.collect(),
            in_sync: SlotSet::first(configs.len()),
            recovering: SlotSet::EMPTY,
            members: configs
                .into_iter()
                .map(|config| Member {
                    config,
                    state: State::InSync,
                    epoch: 0,
                    traffic: Traffic::default(),
                })
                .collect(),
        }
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

    pub(crate) fn is_missing(&self, slot: Slot) -> bool {
        self.members[slot.index()].state == State::Missing
    }

    pub(crate) fn is_faulty(&self, slot: Slot) -> bool {
        self.members[slot.index()].state == State::Faulty
    }

    /// Whether no other member is in sync.
    pub(crate) fn is_last_in_sync(&self, slot: Slot) -> bool {
        self.in_sync == SlotSet::only(slot)
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

    /// The members that may serve a read that ends at `end`.
    #[inline]
    pub(crate) fn readable(&self, end: Sectors) -> SlotSet {
        if self.recovering.is_empty() {
            return self.in_sync;
        }
        self.recovering
            .iter()
            .filter(|slot| self.views[slot.index()].readable_below >= end)
            .fold(self.in_sync, SlotSet::with)
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

    pub(crate) fn set_readable_below(&mut self, slot: Slot, sector: Sectors) {
        self.views[slot.index()].readable_below = sector;
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
        self.members[slot.index()].state = State::Missing;
        // An empty slot must not make the array count as one with an SSD.
        self.views[slot.index()].rotational = true;
    }

    pub(crate) fn set_recovering(&mut self, slot: Slot, config: MemberConfig) {
        let member = &mut self.members[slot.index()];
        self.views[slot.index()] = view(&config, Sectors::ZERO);
        member.config = config;
        member.state = State::Recovering;
        member.traffic = Traffic::default();
        self.recovering = self.recovering.with(slot);
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
