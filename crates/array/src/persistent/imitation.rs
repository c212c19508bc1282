//! What an array has that keeps no data but predicts what md does, in a model.
//!
//! Where md remembers less than an array of our own, or later, so does one whose engine has
//! md's threads ([`MdThreads`](crate::MdThreads)). How md goes about it stands here; where
//! only a condition is another one, the rules of the durable array ask `imitates_md`.

use super::{PersistentArray, Tracked};
use crate::engine::Imitation;
use crate::request::{Finished, Outputs, Request, RequestId};
use raidlab_units::{Nanos, Sectors};
use std::collections::{BTreeSet, VecDeque};

/// Flushes of an array whose md has one at a time (Linux 6.1 drivers/md/md.c,
/// `md_flush_request` and `md_submit_flush_data`).
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// The one that the members have, and when it began.
    running: Option<(RequestId, Nanos)>,
    /// Those that were asked for meanwhile, and when.
    waiting: Vec<(Request, Nanos)>,
    /// The one that goes to the members as soon as the engine can be called.
    next: Option<Request>,
}

/// Writers whose bits have to be on the members first, of levels with copies.
///
/// Each has a pass of its own, one after the other, though the pages of the one before hold
/// its bits already. A process that has set a bit takes its page's mark of being dirty
/// (Linux 6.12 drivers/md/md-bitmap.c, `md_bitmap_unplug`), and sleeps until no metadata are
/// being written (drivers/md/md.c, `md_super_wait`). The first one that wakes writes its page,
/// and the others, which look again, sleep on. It is before the one whose pass has ended in
/// the list of those that are woken, and so are its page's flushes before that one's data.
///
/// Of those who set bits of a page in the same moment the first takes the mark of all. The
/// others find none, and do not wait at all.
#[derive(Debug, Default)]
pub(super) struct BitPasses {
    /// Those that wait for theirs to begin, the longest first.
    waiting: VecDeque<RequestId>,
    /// The one whose pass is running.
    running: Option<RequestId>,
    /// The one whose pass has ended, and which has not gone on yet.
    ended: Option<RequestId>,
    /// A moment, and the pages whose marks were taken in it.
    marked: (Nanos, BTreeSet<usize>),
}

impl BitPasses {
    /// Whether somebody took the marks of all these pages in this moment.
    fn is_marked(&mut self, now: Nanos, pages: &BTreeSet<usize>) -> bool {
        if self.marked.0 != now {
            self.marked = (now, BTreeSet::new());
        }
        self.marked.1.is_superset(pages)
    }

    /// A writer takes the marks of these pages.
    fn wait(&mut self, id: RequestId, pages: BTreeSet<usize>) {
        self.waiting.push_back(id);
        self.marked.1.extend(pages);
    }

    /// Whether it is one that has to wait for a pass of its own.
    fn holds(&self, id: RequestId) -> bool {
        self.running == Some(id) || self.waiting.contains(&id)
    }

    /// Whether somebody's pass has to begin.
    pub(super) fn is_wanted(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A pass begins that only sets bits: whose it is.
    pub(super) fn next(&mut self) -> Option<RequestId> {
        self.running = self.waiting.pop_front();
        self.running
    }

    /// A pass that only set bits has ended.
    pub(super) fn end(&mut self) {
        self.ended = self.running.take();
        self.marked.1.clear();
    }
}

impl PersistentArray {
    /// Whether a write passes the sync's barrier before its bits are set: md's levels with
    /// copies.
    pub(super) const fn enters_first(&self) -> bool {
        self.imitates_md && self.stripes.is_none()
    }

    /// md with copies: each process passes the sync's barrier, then sets its bits and
    /// waits for these ([`BitPasses`]); whose bits are set already passes those that
    /// wait.
    pub(super) fn release_each(&mut self, out: &mut Outputs) -> bool {
        let (mut go, mut wait) = (Vec::new(), VecDeque::new());
        for request in std::mem::take(&mut self.held) {
            let imitation = self.engine.imitation_mut();
            let enters = self.started
                && self.disk_dirty
                && imitation.is_none_or(|it| it.enter(self.now, &request));
            if enters {
                self.mark(request.id);
            }
            match enters && self.has_its_bits(&request) {
                true => go.push(request),
                false => wait.push_back(request),
            }
        }
        self.held = wait;
        let progress = !go.is_empty();
        for request in go {
            self.writes += 1;
            self.pass_to_engine(request, out);
        }
        progress
    }

    /// Whether the bits of a write are on the members, by a pass of its own if it needs one.
    fn has_its_bits(&mut self, request: &Request) -> bool {
        if self.bit_passes.holds(request.id) {
            return false;
        }
        let is_durable = self.may_go(request);
        let had_its_own = self.bit_passes.ended.take_if(|id| *id == request.id);
        if had_its_own.is_some() {
            return is_durable;
        }
        if is_durable || !self.has_internal_bitmap() {
            return is_durable;
        }
        let (Some(intent), Some(write)) = (&mut self.intent, self.tracked.get(&request.id)) else {
            return false;
        };
        let pages = intent.wanted_for(write.chunks.clone());
        if pages.is_empty() {
            return false;
        }
        let goes_on = self.bit_passes.is_marked(self.now, &pages);
        match goes_on {
            true => intent.believe(write.chunks.clone()),
            false => self.bit_passes.wait(request.id, pages),
        }
        goes_on
    }

    /// Whether md keeps the bits of a write that has ended, until all members are there and
    /// filled.
    pub(super) fn keeps_bits_of(&self, write: &Tracked) -> bool {
        let imitation = self.engine.imitation();
        self.imitates_md
            && self.is_degraded()
            && (self.rules.keeps_all_degraded_bits
                || imitation.is_some_and(|it| it.leaves_out(write.range)))
    }

    /// Whether a flush goes to the members now: in Linux 6.1 none does while another is on
    /// its way.
    pub(super) fn flush_is_next(&mut self, request: &Request) -> bool {
        if !self.imitates_md || self.rules.flushes_at_once {
            return true;
        }
        if self.flushes.running.is_some() {
            self.flushes.waiting.push((*request, self.now));
            return false;
        }
        self.flushes.running = Some((request.id, self.now));
        true
    }

    /// A request has ended. If it is the flush that ran, all are done that were asked for
    /// before it began, and of the others the first one begins.
    pub(super) fn flush_ended(&mut self, id: RequestId, out: &mut Outputs) {
        let Some((_, began)) = self.flushes.running.take_if(|(running, _)| *running == id) else {
            return;
        };
        let result = Ok(());
        for (request, asked) in std::mem::take(&mut self.flushes.waiting) {
            if asked <= began {
                self.tracked.remove(&request.id);
                out.finished.push(Finished {
                    id: request.id,
                    result,
                });
            } else if self.flush_is_next(&request) {
                self.flushes.next = Some(request);
            }
        }
    }

    /// The flush that comes next goes to the members.
    pub(super) fn send_next_flush(&mut self, out: &mut Outputs) -> bool {
        let next = self.flushes.next.take();
        if let Some(request) = next {
            self.pass_to_engine(request, out);
        }
        next.is_some()
    }

    /// Whether md would have the process sleep that submitted a request which
    /// waits: for the dirty mark (Linux 6.12 drivers/md/md.c, `md_write_start`),
    /// at levels with copies for the bits too (raid1.c and raid10.c,
    /// `raid1_unplug` and `raid10_unplug`, which wait for `md_bitmap_unplug`; since
    /// 6.10 `__submit_bio` of block/blk-core.c unplugs after every request), or
    /// for the engine. With parity, md's own thread waits for the bits.
    #[must_use]
    pub fn holds_submitter(&self, process: u32) -> bool {
        let waits_for_bits = self.stripes.is_none();
        let for_metadata = waits_for_bits || !self.disk_dirty || !self.started;
        let is_held = self.held.iter().any(|held| held.process == process);
        let imitation = self.engine.imitation();
        is_held && for_metadata || imitation.is_some_and(|it| it.holds_submitter(process))
    }

    /// A tick that is a turn of this thread; see
    /// [`Imitation::begin_turn`](crate::Imitation::begin_turn).
    pub fn turn(&mut self, now: Nanos, thread: usize, out: &mut Outputs) {
        if let Some(imitation) = self.engine.imitation_mut() {
            imitation.begin_turn(thread);
        }
        self.tick(now, out);
    }

    /// The turn of this thread is over.
    pub fn turn_over(&mut self, now: Nanos, thread: usize, out: &mut Outputs) {
        if !self.engine.imitation().is_some_and(Imitation::has_a_thread) {
            return;
        }
        self.now = now;
        self.with_engine_do(out, |engine, out| {
            if let Some(imitation) = engine.imitation_mut() {
                imitation.end_turn(now, thread, out);
            }
        });
        self.pump(out);
    }

    /// The host lets go of what its caches need not keep; see
    /// [`Imitation::drop_caches`](crate::Imitation::drop_caches).
    pub fn drop_caches(&mut self) {
        if let Some(imitation) = self.engine.imitation_mut() {
            imitation.drop_caches();
        }
    }

    /// md's thread runs, whatever woke it: bits age if they did not in the last few
    /// seconds (Linux drivers/md/md-bitmap.c, `bitmap_daemon_work`). It then sleeps for
    /// its whole time anew (md.c, `md_thread`), so bits of an array that wakes it
    /// now and then grow older than that.
    pub(super) fn wake_thread(&mut self) {
        if !self.imitates_md {
            return;
        }
        let keeps_bits = self.keeps_bits();
        let Some(intent) = self.intent.as_mut().filter(|_| !keeps_bits) else {
            self.daemon_at = None;
            return;
        };
        let sleep = intent.daemon_sleep();
        let mut wakes_by_itself = self.daemon_at.is_some();
        if self.now >= self.daemon_ran + sleep {
            self.daemon_ran = self.now;
            wakes_by_itself = intent.age_as_md(self.array.events);
        }
        wakes_by_itself |= !intent.is_all_clean();
        self.daemon_at = wakes_by_itself.then_some(self.now + sleep);
    }

    /// While a sync runs, and with parity while there are writes, something wakes md's
    /// thread all the time: it does what is due when it is due.
    pub(super) fn follow_thread(&mut self) {
        let Some(intent) = &self.intent else { return };
        let has_writes = self.stripes.is_some() && self.writes > 0;
        if !has_writes && self.engine.sync_status().is_none() {
            return;
        }
        let due = self.daemon_ran + intent.daemon_sleep();
        if self.now >= due && self.pass.is_none() {
            self.wake_thread();
        } else if !intent.is_all_clean() {
            self.daemon_at = Some(due);
        }
    }

    /// md's own thread writes metadata from now on, or no longer.
    pub(super) fn tell_engine_of_pass(&mut self, runs: bool, out: &mut Outputs) {
        let now = self.now;
        self.with_engine_do(out, |engine, out| {
            if let Some(imitation) = engine.imitation_mut() {
                imitation.set_metadata_pass(now, runs, out);
            }
        });
    }

    /// The engine's [`Engine::freeze_sync`](crate::Engine::freeze_sync), for simulations.
    pub fn freeze_sync(&mut self) {
        self.engine.freeze_sync();
    }

    /// The engine's [`Engine::thaw_sync`](crate::Engine::thaw_sync), for simulations.
    pub fn thaw_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        self.with_engine_do(out, |engine, out| engine.thaw_sync(now, out));
        self.pump(out);
    }

    /// The engine's [`Engine::leap_sync`](crate::Engine::leap_sync), for simulations.
    pub fn leap_sync(&mut self, now: Nanos, position: Sectors, out: &mut Outputs) {
        self.now = now;
        self.with_engine_do(out, |engine, out| engine.leap_sync(now, position, out));
        self.pump(out);
    }
}
