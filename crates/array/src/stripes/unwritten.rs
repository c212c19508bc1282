//! The first resync: places that nobody has written to since the array was made.
//!
//! After a crash parity may not fit the data because a write was cut off. Nothing may
//! be computed from it then (the write hole) until a resync has passed: these places
//! are `unsynced`. In a new array parity does not fit either, but there nobody is
//! waiting for anything. What a block holds that was never written is undefined, so
//! what parity makes of it when its member is lost, or its medium refuses it, is as
//! good as what was there. These places are `unwritten`: lost blocks are computed
//! there as everywhere, by P where one is lost, and come out the same each time.
//!
//! A write there makes parity out of all data, never out of the old parity (Linux
//! drivers/md/raid5.c, `handle_stripe_dirtying`, which forces the same above the
//! resync's checkpoint), after which it fits. While the write is under way its
//! place is `unsynced`: if it fails, nobody knows what fits.
//!
//! *Nothing to compare with.* Where as many blocks are lost as there are parities,
//! parity fits whatever it says, and the resync has nothing to do: md ends it at once
//! (`raid5_sync_request`). A RAID 6 that has lost one member goes on: P says what the
//! lost one holds, and Q is made to fit. Until then a second loss is borne too: where
//! nobody has written, P and Q together say what both hold.

use super::config::BLOCK;
use super::job::{Job, Kind};
use super::{Mutation, StripeArray, mutated};
use crate::admission::blocks_of;
use raidlab_geometry::SlotSet;
use raidlab_units::{Span, SpanSet};

impl StripeArray {
    /// Declares that nobody has written to these ranges of the members' data areas
    /// since the array was made, before anything is read.
    pub fn declare_unwritten(&mut self, spans: &[Span]) {
        let spans = blocks_of(Some(spans), self.map.member_size(), BLOCK);
        for span in spans.iter() {
            self.unwritten.insert(span);
        }
        self.define_unwritten();
    }

    /// Whether parity fits the data there.
    pub(super) fn parity_fits(&self, job: &Job) -> bool {
        self.parity_tells(job) && !self.unwritten.overlaps(job.span())
    }

    /// Whether what is lost there may be computed from parity.
    pub(super) fn parity_tells(&self, job: &Job) -> bool {
        !self.unsynced.overlaps(job.span()) || mutated(Mutation::UnsyncedParityTrusted)
    }

    /// Parity fits the data in this range from now on.
    pub(super) fn now_fits(&mut self, span: Span) {
        self.unsynced.remove(span);
        self.unwritten.remove(span);
    }

    /// Parity may not fit there, and must not be relied on.
    pub(super) fn may_not_fit(&mut self, spans: &SpanSet) {
        for span in spans.iter() {
            self.unwritten.remove(span);
            self.unsynced.insert(span);
        }
    }

    /// A job's writes leave now: somebody has written there.
    pub(super) fn first_written(&mut self, job: &Job) {
        // Without a parity member there is nothing that could fit.
        if matches!(job.kind, Kind::Write { .. }) && job.makes_fit {
            for first in self.unwritten.remove(job.span()) {
                self.unsynced.insert(first);
            }
        }
    }

    /// Where nobody has written and no redundancy is left, parity fits.
    pub(super) fn define_unwritten(&mut self) {
        let lost = SlotSet::first(self.map.members()) - self.members.in_sync();
        if lost.len() < self.map.level().parity_count() {
            return;
        }
        let mut defined = self.unwritten.clone();
        for slot in (lost & self.members.in_service()).iter() {
            defined = defined.common(&self.members.unfilled_ranges(slot).collect());
        }
        // What is in work may know a block of the member that is lost now, as it was
        // and not as parity makes it.
        for (start, end) in &self.locks {
            if !mutated(Mutation::DefinedInWork) {
                defined.remove(Span::new(*start, *end));
            }
        }
        for span in defined.iter() {
            self.unwritten.remove(span);
        }
    }

    /// What of these ranges a first resync has to do.
    pub(super) fn without_fit(&self, spans: &SpanSet) -> SpanSet {
        let [torn, unwritten] = [&self.unsynced, &self.unwritten].map(|set| set.common(spans));
        torn.iter().chain(unwritten.iter()).collect()
    }
}
