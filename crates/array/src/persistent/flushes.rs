//! The flushes of an array whose md has one at a time (Linux 6.1 drivers/md/md.c,
//! `md_flush_request` and `md_submit_flush_data`).
//!
//! When a flush ends, one of those that waited is the next. Its process wakes a worker, which sends
//! it. Before the worker runs, the processes that were answered submit their next writes. So the
//! members have these writes before the flush, and the flush takes as long as they need. The flushes
//! of these processes come behind it. So writers that flush fall into two groups, and each group
//! waits for the flushes of both.

use super::PersistentArray;
use crate::request::{Finished, Outputs, Request, RequestId};
use raidlab_units::Nanos;

/// The flushes that run, wait and come next.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// The flush that the members have, and the time when it began.
    running: Option<(RequestId, Nanos)>,
    /// Flushes that were submitted meanwhile, and when.
    waiting: Vec<(Request, Nanos)>,
    /// The flush that goes to the members next, and when.
    next: Option<(Request, Nanos)>,
    /// The time that a process and then the worker take before the next flush is sent.
    lead: Nanos,
}

impl Flushes {
    /// No flushes; a process that was answered submits what it has next after `turnaround`.
    pub(super) fn new(turnaround: Nanos) -> Self {
        Self {
            lead: turnaround * 2,
            ..Self::default()
        }
    }

    /// The time at which the next flush is sent.
    pub(super) fn next_at(&self) -> Option<Nanos> {
        self.next.map(|(_, at)| at)
    }
}

impl PersistentArray {
    /// Whether a flush goes to the members now: in Linux 6.1 none does while another is on
    /// its way.
    pub(super) fn flush_is_next(&mut self, request: &Request) -> bool {
        if !self.imitates_md || self.rules.flushes_at_once {
            return true;
        }
        if self.flushes.running.is_some() || self.flushes.next.is_some() {
            self.flushes.waiting.push((*request, self.now));
            return false;
        }
        self.flushes.running = Some((request.id, self.now));
        true
    }

    /// Handles the end of a request. If it is the running flush, all flushes are done that were
    /// submitted before it began, and of the others the first one is the next.
    pub(super) fn flush_ended(&mut self, id: RequestId, out: &mut Outputs) {
        let Some((_, began)) = self.flushes.running.take_if(|(running, _)| *running == id) else {
            return;
        };
        let is_done = |(_, asked): &(Request, Nanos)| *asked < began;
        let (done, waiting) = std::mem::take(&mut self.flushes.waiting)
            .into_iter()
            .partition::<Vec<_>, _>(is_done);
        for (request, _) in done {
            self.tracked.remove(&request.id);
            out.finished.push(Finished {
                id: request.id,
                result: Ok(()),
            });
        }
        let mut waiting = waiting.into_iter();
        let at = self.now + self.flushes.lead;
        self.flushes.next = waiting.next().map(|(request, _)| (request, at));
        self.flushes.waiting = waiting.collect();
    }

    /// Sends the next flush to the members once it is time.
    pub(super) fn send_next_flush(&mut self, out: &mut Outputs) -> bool {
        let now = self.now;
        let next = self.flushes.next.take_if(|(_, at)| *at <= now);
        if let Some((request, _)) = next {
            self.flushes.running = Some((request.id, now));
            self.pass_to_engine(request, out);
        }
        next.is_some()
    }
}
