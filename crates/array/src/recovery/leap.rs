//! Time that a simulation passes over.

use super::{Pause, Recovery, SyncKind, config};
use raidlab_units::{Nanos, Sectors};

impl Recovery {
    pub(crate) fn freeze(&mut self, now: Nanos) {
        self.frozen.get_or_insert(now);
    }

    pub(crate) fn thaw(&mut self) {
        self.frozen = None;
    }

    /// The driver says that time passed and everything below `position` was
    /// copied. False where that cannot be: not frozen, blocks in flight, or a
    /// position outside what is left.
    pub(crate) fn leap(&mut self, now: Nanos, position: Sectors) -> bool {
        let idle = self.in_flight == 0 && self.barrier.raised().is_none();
        let (Some(since), Some(sync), true) = (self.frozen, &mut self.sync, idle) else {
            return false;
        };
        if position < sync.next || position > sync.total {
            return false;
        }
        let fills = sync.kind == SyncKind::Recovery;
        if let Some(rule) = self.config.checkpoint.map(|rule| rule.of(fills)) {
            (sync.completed, sync.checkpointed_at) = rule.after_leap(&config::Leap {
                from: sync.next,
                to: position,
                since,
                now,
                completed: sync.completed,
                checkpointed_at: sync.checkpointed_at,
                total: sync.total,
            });
        }
        sync.governor
            .leap(since, now, Sectors(position.0 - sync.next.0));
        sync.next = position;
        sync.pause = Pause::None;
        sync.throttle_due = position < sync.total;
        self.frozen = Some(now);
        true
    }
}
