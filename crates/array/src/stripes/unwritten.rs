//! The first resync: sectors that were never written since the array was made.
//!
//! After a crash parity may not fit the data because a write was interrupted. Nothing may be
//! computed from it then (the write hole) until a resync has passed: these sectors are
//! `unsynced`. In a new array parity does not fit either, but there no data are expected. The
//! content of a block that was never written is undefined, so what parity computes for it when
//! its member is lost, or its medium refuses it, is as good as its own content. These sectors are
//! `unwritten`: lost blocks are computed there as everywhere, by P where one is lost, and are the
//! same each time.
//!
//! A write there computes parity from all data, never from the old parity (Linux
//! drivers/md/raid5.c, `handle_stripe_dirtying`, which forces the same above the resync's
//! checkpoint), after which it fits. While the write is under way its range is `unsynced`: if it
//! fails, it is unknown what fits.
//!
//! *Nothing to compare with.* Where as many blocks are lost as there are parities, parity fits
//! whatever its content, and the resync has nothing to do: md ends it at once
//! (`raid5_sync_request`). A RAID 6 that has lost one member goes on: P defines the content of the
//! lost one, and Q is made to fit. Until then a second loss is tolerated too: in unwritten sectors,
//! P and Q together define the content of both.

use super::config::BLOCK;
use super::job::{Job, Kind};
use super::{Mutation, StripeArray, mutated};
use crate::admission::blocks_of;
use raidlab_geometry::SlotSet;
use raidlab_units::{Span, SpanSet};

impl StripeArray {
    /// Declares, before any read, that these ranges of the members' data areas were never written
    /// since the array was made.
    pub fn declare_unwritten(&mut self, spans: &[Span]) {
        let spans = blocks_of(Some(spans), self.map.member_size(), BLOCK);
        for span in spans.iter() {
            self.unwritten.insert(span);
        }
        self.define_unwritten();
    }

    /// Whether parity fits the data of a job's window.
    pub(super) fn parity_fits(&self, job: &Job) -> bool {
        self.parity_tells(job) && !self.unwritten.overlaps(job.span())
    }

    /// Whether lost blocks of a job's window may be computed from parity.
    pub(super) fn parity_tells(&self, job: &Job) -> bool {
        !self.unsynced.overlaps(job.span()) || mutated(Mutation::UnsyncedParityTrusted)
    }

    /// Marks a range in which parity fits the data from now on.
    pub(super) fn now_fits(&mut self, span: Span) {
        self.unsynced.remove(span);
        self.unwritten.remove(span);
    }

    /// Marks ranges in which parity may not fit, and must not be relied on.
    pub(super) fn may_not_fit(&mut self, spans: &SpanSet) {
        for span in spans.iter() {
            self.unwritten.remove(span);
            self.unsynced.insert(span);
        }
    }

    /// Marks the window of a job whose writes leave now as written.
    pub(super) fn first_written(&mut self, job: &Job) {
        // Without a parity member there is nothing that could fit.
        if matches!(job.kind, Kind::Write { .. }) && job.makes_fit {
            for first in self.unwritten.take(job.span()) {
                self.unsynced.insert(first);
            }
        }
    }

    /// Marks parity as fitting in unwritten sectors where no redundancy is left.
    pub(super) fn define_unwritten(&mut self) {
        let lost = SlotSet::first(self.map.members()) - self.members.in_sync();
        if lost.len() < self.map.level().parity_count() {
            return;
        }
        let mut defined = self.unwritten.clone();
        for slot in (lost & self.members.in_service()).iter() {
            defined = defined.common(&self.members.unfilled_ranges(slot).collect());
        }
        // Jobs in work may have read a block of the member that is lost now, and not the content
        // that parity defines for it.
        for (start, end) in &self.locks {
            if !mutated(Mutation::DefinedInWork) {
                defined.remove(Span::new(*start, *end));
            }
        }
        for span in defined.iter() {
            self.unwritten.remove(span);
        }
    }

    /// Returns the parts of these ranges that a first resync has to do.
    pub(super) fn without_fit(&self, spans: &SpanSet) -> SpanSet {
        let [torn, unwritten] = [&self.unsynced, &self.unwritten].map(|set| set.common(spans));
        torn.iter().chain(unwritten.iter()).collect()
    }
}
