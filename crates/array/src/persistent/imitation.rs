//! The behaviour of an array that keeps no data but predicts md, in a model.
//!
//! Where md records less than an array of our own, or later, so does one whose engine has md's
//! threads ([`MdThreads`](crate::MdThreads)). md's procedures are here; where only a condition
//! differs, the rules of the durable array test `imitates_md`.

use super::{PersistentArray, Tracked};
use crate::engine::{Behind, Imitation};
use crate::request::{Outputs, Request, RequestId, Slot};
use raidlab_units::{Nanos, Sectors, Span, SpanSet};
use std::collections::{BTreeSet, VecDeque};

/// Writers whose bits have to be on the members first, at levels with copies.
///
/// For each writer a worker of md's takes the marks of pages in which bits were set, writes these
/// pages and wakes the writer (Linux 6.12 drivers/md/md-bitmap.c, `__bitmap_unplug` and
/// `bitmap_unplug_async`). Before it writes, and after, it sleeps until no metadata are being
/// written (drivers/md/md.c, `md_super_wait`). All sleepers lie in one list, and each new one comes
/// first in it (include/linux/wait.h, `__add_wait_queue`). When the last page has arrived all of
/// them wake in the list's order and check again. The first one that has not written its pages does
/// so, and those behind it go to sleep once more, even those whose pages have arrived. A worker
/// whose pages have arrived and that need not sleep sends its data before the next pages are
/// written. The scheduler does not always keep to the list's order, but the model does.
///
/// A worker that finds no mark does not wait at all: all bits of its write were set, though their
/// pages may not have arrived, or another worker has taken the mark. The latter happens to writers
/// that set bits in the same moment. On one processor a writer runs either before the worker of the
/// one before it, which then takes the marks of all pages, if it need not sleep, and else that of
/// its own page; or after it. The scheduler does both equally often (20 and 32 of 52 pairs, counted
/// with probes in Linux 6.12 on the kernel bench too). Here the two cases alternate, from each
/// writer of a moment to the next. In Linux 6.1 there is no worker: the process that sets bits
/// takes their marks before any other runs (drivers/md/raid1.c, `raid1_unplug`).
#[derive(Debug, Default)]
pub(super) struct BitPasses {
    /// Workers that sleep until no metadata are being written, the newest first.
    sleepers: VecDeque<Sleeper>,
    /// The writer whose pages are to be written now.
    next: Option<RequestId>,
    /// Writers that go on, as their pages have arrived.
    ended: BTreeSet<RequestId>,
    /// Pages in which bits were set, and whose marks no worker has taken.
    pub(super) dirty: BTreeSet<usize>,
    marked: Marked,
    /// Whether the last writer that followed another one in a moment ran before that one's worker.
    were_in_a_row: bool,
    /// The longest time between two writers of one moment; `None`: no writers share a moment, as
    /// there are no workers.
    moment: Option<Nanos>,
}

/// The marks of pages that a worker has taken in this moment.
#[derive(Debug, Default)]
struct Marked {
    at: Nanos,
    pages: BTreeSet<usize>,
    /// Whether the worker found no metadata being written, so that it writes all of them.
    are_being_written: bool,
}

/// The marks that a worker finds.
enum Marks {
    /// No marks: its writer goes on.
    None,
    /// Marks that the worker before has taken and writes: its writer goes on.
    OfThePass(BTreeSet<usize>),
    /// Marks of pages that it has to write itself.
    Own,
}

/// A worker that sleeps until no metadata are being written.
#[derive(Debug, Clone, Copy)]
struct Sleeper {
    writer: RequestId,
    /// Whether its pages have been written, and not only marked as its own.
    has_written: bool,
}

impl BitPasses {
    /// State without writers; those within `moment` of each other share a moment, if it is given.
    pub(super) fn new(moment: Option<Nanos>) -> Self {
        Self {
            moment,
            ..Self::default()
        }
    }

    /// Lets a writer's worker take the marks of pages; `is_writing`: metadata are being written.
    fn take_marks(&mut self, writer: RequestId, now: Nanos, is_writing: bool) -> Marks {
        if self
            .moment
            .is_none_or(|moment| now > self.marked.at + moment)
        {
            self.marked = Marked::default();
        }
        self.marked.at = now;
        let pages = std::mem::take(&mut self.dirty);
        if pages.is_empty() {
            return Marks::None;
        }
        if !self.marked.pages.is_empty() {
            self.were_in_a_row = !self.were_in_a_row;
            if !self.were_in_a_row {
                self.marked.pages.clear();
            }
            let rest = &pages - &self.marked.pages;
            if rest.is_empty() {
                return Marks::None;
            }
            if self.were_in_a_row && self.marked.are_being_written {
                self.marked.pages.extend(&rest);
                return Marks::OfThePass(rest);
            }
        }
        self.marked.pages.extend(pages);
        self.marked.are_being_written = !is_writing && self.next.is_none();
        let has_written = false;
        self.look(
            Sleeper {
                writer,
                has_written,
            },
            is_writing,
        );
        Marks::Own
    }

    /// Lets a worker check whether metadata are being written.
    fn look(&mut self, mut sleeper: Sleeper, is_writing: bool) {
        if !is_writing && self.next.is_none() {
            if sleeper.has_written {
                self.ended.insert(sleeper.writer);
                return;
            }
            self.next = Some(sleeper.writer);
            sleeper.has_written = true;
        }
        self.sleepers.push_front(sleeper);
    }

    /// Whether this writer's worker sleeps.
    fn holds(&self, id: RequestId) -> bool {
        self.sleepers.iter().any(|sleeper| sleeper.writer == id)
    }

    /// Whether a worker's pages have to be written.
    pub(super) const fn is_wanted(&self) -> bool {
        self.next.is_some()
    }

    /// Takes the writer for whom a pass that only sets bits begins.
    pub(super) const fn next(&mut self) -> Option<RequestId> {
        self.next.take()
    }

    /// Drops all waiting writers.
    pub(super) fn forget(&mut self) {
        *self = Self::new(self.moment);
    }

    /// Wakes all sleepers, as no metadata are being written any more; they check again.
    pub(super) fn wake(&mut self) {
        self.marked = Marked::default();
        for sleeper in std::mem::take(&mut self.sleepers) {
            self.look(sleeper, false);
        }
    }
}

impl PersistentArray {
    /// Whether a write passes the sync's barrier before its bits are set, as at md's
    /// levels with copies.
    pub(super) const fn enters_first(&self) -> bool {
        self.imitates_md && self.stripes.is_none()
    }

    /// Releases held requests as md does with copies: each process passes the sync's barrier, then
    /// sets its bits and waits for these ([`BitPasses`]); one whose bits are set already overtakes
    /// those that wait.
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
        if self.bit_passes.ended.remove(&request.id) {
            return is_durable;
        }
        if is_durable || !self.has_internal_bitmap() {
            return is_durable;
        }
        let (Some(intent), Some(write)) = (&mut self.intent, self.tracked.get(&request.id)) else {
            return false;
        };
        let is_writing = self.pass.is_some();
        match self.bit_passes.take_marks(request.id, self.now, is_writing) {
            Marks::Own => return false,
            Marks::None => intent.believe(write.chunks.clone()),
            Marks::OfThePass(pages) => {
                intent.believe(write.chunks.clone());
                self.add_bits(&pages);
            }
        }
        true
    }

    /// Whether md keeps the bits of a write that has ended, until all members are
    /// present and filled.
    pub(super) fn keeps_bits_of(&self, write: &Tracked) -> bool {
        let imitation = self.engine.imitation();
        self.imitates_md
            && self.is_degraded()
            && (self.rules.keeps_all_degraded_bits
                || imitation.is_some_and(|it| it.leaves_out(write.range)))
    }

    /// Whether md would put to sleep the process that submitted a request which waits: for the
    /// dirty mark (Linux 6.12 drivers/md/md.c, `md_write_start`), at levels with copies for the
    /// bits too (raid1.c and raid10.c, `raid1_unplug` and `raid10_unplug`, which wait for
    /// `md_bitmap_unplug`; since 6.10 `__submit_bio` of block/blk-core.c unplugs after every
    /// request), or for the engine. With parity, md's own thread waits for the bits.
    #[must_use]
    pub fn holds_submitter(&self, process: u32) -> bool {
        let waits_for_bits = self.stripes.is_none();
        let for_metadata = waits_for_bits || !self.disk_dirty || !self.started;
        let is_held = self.held.iter().any(|held| held.process == process);
        let imitation = self.engine.imitation();
        is_held && for_metadata || imitation.is_some_and(|it| it.holds_submitter(process))
    }

    /// The number of commands so far that found no free request of their disk, and that no queue of
    /// a disk counts.
    #[must_use]
    pub fn overflows(&self) -> u64 {
        self.engine.imitation().map_or(0, |it| it.overflows())
    }

    /// Makes these processes run after the threads that are woken with
    /// them; see [`Imitation::set_behind`](crate::Imitation::set_behind).
    pub fn set_behind(&mut self, behind: Behind) {
        if let Some(imitation) = self.engine.imitation_mut() {
            imitation.set_behind(behind);
        }
    }

    /// Runs a tick that is a turn of this thread; see
    /// [`Imitation::begin_turn`](crate::Imitation::begin_turn).
    pub fn turn(&mut self, now: Nanos, thread: usize, out: &mut Outputs) {
        if let Some(imitation) = self.engine.imitation_mut() {
            imitation.begin_turn(thread);
        }
        self.tick(now, out);
    }

    /// Ends the turn of this thread.
    pub fn turn_over(&mut self, now: Nanos, thread: usize, out: &mut Outputs) {
        self.with_imitation(now, out, |it, out| it.end_turn(now, thread, out));
    }

    /// Makes processes take time to go from stripe to stripe, which
    /// [`Imitation::take_time`](crate::Imitation::take_time) describes in full.
    pub fn take_time(&mut self, has_plug: bool) {
        if let Some(imitation) = self.engine.imitation_mut() {
            imitation.take_time(has_plug);
        }
    }

    /// Moves the request of this process on to its next stripe.
    pub fn go_on(&mut self, now: Nanos, process: u32, out: &mut Outputs) {
        self.with_imitation(now, out, |it, out| it.go_on(now, process, out));
    }

    fn with_imitation(
        &mut self,
        now: Nanos,
        out: &mut Outputs,
        what: impl FnOnce(&mut dyn Imitation, &mut Outputs),
    ) {
        if !self.engine.imitation().is_some_and(Imitation::has_a_thread) {
            return;
        }
        self.now = now;
        self.with_engine_do(out, |engine, out| {
            if let Some(imitation) = engine.imitation_mut() {
                what(imitation, out);
            }
        });
        self.pump(out);
    }

    /// Drops the host's caches; see [`Imitation::drop_caches`](crate::Imitation::drop_caches).
    pub fn drop_caches(&mut self) {
        if let Some(imitation) = self.engine.imitation_mut() {
            imitation.drop_caches();
        }
    }

    /// Runs md's thread, whatever woke it: bits age if they did not in the last few seconds (Linux
    /// drivers/md/md-bitmap.c, `bitmap_daemon_work`). It then sleeps for its whole time anew (md.c,
    /// `md_thread`), so bits of an array that wakes it now and then grow older than that.
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
            wakes_by_itself = intent.age_as_md();
        }
        wakes_by_itself |= !intent.is_all_clean();
        self.daemon_at = wakes_by_itself.then_some(self.now + sleep);
    }

    /// Follows md's thread where it is woken all the time, while a sync runs, and with parity while
    /// there are writes: it does its work when that is due.
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

    /// Tells the engine that md's own thread writes metadata from now on, or no longer.
    pub(super) fn tell_engine_of_pass(&mut self, runs: bool, out: &mut Outputs) {
        let now = self.now;
        self.with_engine_do(out, |engine, out| {
            if let Some(imitation) = engine.imitation_mut() {
                imitation.set_metadata_pass(now, runs, out);
            }
        });
    }

    /// Tells the engine that this many sectors of metadata go to a device.
    pub(super) fn tell_engine_of_metadata(&mut self, handle: Slot, count: Sectors) {
        let device = self.devices.get(&handle).filter(|_| self.imitates_md);
        if let Some(slot) = device.and_then(|device| device.place.slot())
            && let Some(imitation) = self.engine.imitation_mut()
        {
            imitation.metadata_written(slot, count);
        }
    }

    /// Calls the engine's [`Engine::sync_rest`](crate::Engine::sync_rest), for simulations.
    pub fn sync_rest(&mut self) -> Option<SpanSet> {
        self.engine.sync_rest()
    }

    /// Calls the engine's [`Engine::freeze_sync`](crate::Engine::freeze_sync), for simulations.
    pub fn freeze_sync(&mut self) {
        self.engine.freeze_sync();
    }

    /// Calls the engine's [`Engine::thaw_sync`](crate::Engine::thaw_sync), for simulations.
    pub fn thaw_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        self.with_engine_do(out, |engine, out| engine.thaw_sync(now, out));
        self.pump(out);
    }

    /// The passes of the bitmap's daemon that a leap goes over. A bit that nobody writes to is gone
    /// after two of them, the third writes its page, and the fourth finds nothing left.
    fn daemon_passes_until(&mut self, now: Nanos, out: &mut Outputs) {
        for _ in 0..4 {
            let due = self.daemon_at.filter(|_| self.pass.is_none());
            let Some(at) = due.filter(|at| *at <= now) else {
                return;
            };
            self.now = at;
            self.tick_life();
            self.pump(out);
        }
    }

    /// Calls the engine's [`Engine::leap_sync`](crate::Engine::leap_sync), for simulations.
    pub fn leap_sync(&mut self, now: Nanos, position: Sectors, out: &mut Outputs) {
        self.daemon_passes_until(now, out);
        self.now = now;
        self.with_engine_do(out, |engine, out| engine.leap_sync(now, position, out));
        self.pump(out);
    }

    /// Records that a leap has written these sectors of the array: bits of chunks that a missing
    /// member lacks stay.
    pub fn leap_write(&mut self, start: Sectors, count: Sectors) {
        let span = self.sync_span(Span::between(start, start + count));
        if let Some(intent) = self.intent.as_mut().filter(|_| self.degraded) {
            intent.need(span);
        }
    }
}
