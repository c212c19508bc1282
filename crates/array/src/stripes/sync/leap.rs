//! Leaps over the even part of a sync, for simulations: see
//! [`Engine::leap_sync`](crate::Engine::leap_sync).

use super::{BLOCK, Mode, Pause};
use crate::request::{Event, Outputs};
use crate::stripes::StripeArray;
use raidlab_units::{Sectors, Span};

impl StripeArray {
    pub(in crate::stripes) const fn freeze_windows(&mut self) {
        self.syncs.frozen = Some(self.now);
    }

    pub(in crate::stripes) const fn thaw_windows(&mut self) {
        self.syncs.frozen = None;
    }

    /// Everything below `position` counts as done.
    pub(in crate::stripes) fn leap_windows(&mut self, position: Sectors, out: &mut Outputs) {
        let total = self.map.member_size().0;
        let position = position.0 / BLOCK * BLOCK;
        let (Some(since), Some(sync)) = (self.syncs.frozen, &mut self.syncs.running) else {
            return;
        };
        let from = sync.position(total);
        let possible = sync.in_work.is_empty() && (from..=total).contains(&position);
        debug_assert!(possible, "a leap needs a frozen and drained sync");
        if !possible || position == from {
            return;
        }
        sync.todo.remove(Span::new(from, position));
        sync.blocks = sync.blocks.split_off(&position);
        match sync.mode {
            Mode::Recovery => {
                for slot in sync.targets.iter() {
                    self.members
                        .set_filled(slot, Span::new(from, position), true);
                }
            }
            Mode::Action(_) => {
                self.unsynced.remove(Span::new(from, position));
                self.unwritten.remove(Span::new(from, position));
            }
        }
        sync.checkpoint = position;
        sync.checkpoint_at = self.now;
        sync.governor
            .leap(since, self.now, Sectors(position - from));
        sync.pause = Pause::None;
        sync.throttle_due = position < total;
        self.syncs.frozen = Some(self.now);
        out.events.push(Event::SyncCheckpoint(Sectors(position)));
    }
}
