//! The arm: its next operation, and the end of an operation.
//!
//! A free arm cleans a band where a shingled disk has to. Else it destages if the host waits for
//! that (a flush, a write that found no room, a write without cache), but one read goes first after
//! a destage that continues the one before, and after twice as many others as writes wait. While a
//! flush waits, no read goes before destages. Else it reads if a read waits, and destages if none
//! does. The command of a pool is chosen by `scheduling`. While it reads ahead on a stream it
//! leaves as late as the platter allows for the next command, and reads on until then.

use super::scheduling::{Candidate, Choice, Departure, Mechanics, Pool};
use super::{Arm, Platters, Work};
use crate::command::Completion;
use raidlab_units::Nanos;
use std::ops::Range;

/// The number of destages per waiting write that go before a read, by the only such fact of a
/// single disk: the drive of 2015 did 309.3 reads and 152.1 writes of 8 KiB a second at queue depth
/// 32 (`mixed-8g-qd32` in `data/facts/wd4000fyyz.toml`). With 1 the model is 2.2 % below, with 2 by
/// 0.5 %, and from 3 on it is 0.2 to 0.4 % above.
const DESTAGES_FOR_EACH_WAITING_WRITE: usize = 2;

impl Platters {
    /// Gives new work to the arm if it is free.
    pub(super) fn wake(&mut self, now: u64) {
        let ready = now + self.parameters.overhead_idle.0;
        match self.arm {
            Arm::Busy { .. } => {}
            Arm::Streaming { decide_at, .. } if decide_at != u64::MAX => {}
            Arm::Idle => self.dispatch(ready, false),
            Arm::Streaming { .. } => {
                let streaming = self.stop_streaming(ready);
                self.dispatch(ready, streaming);
            }
        }
    }

    pub(super) fn finish(&mut self, now: u64, what: Work, completions: &mut Vec<Completion>) {
        self.arm = Arm::Idle;
        match what {
            Work::Read(read) => {
                self.head = read.end;
                self.visit_bytes += read.bytes;
                let from = now.saturating_sub(read.end - read.start);
                self.complete(now, from, &read, completions);
                self.after_read(now, &read);
            }
            Work::Clean(band) => self.finish_cleaning(now, &band),
            Work::Destage(write) => {
                self.head = write.end;
                self.visit_bytes += write.bytes;
                self.visit_is_stream = false;
                self.awaited -= usize::from(write.tag.is_some());
                self.complete(now, write.arrived, &write, completions);
                self.admit(now);
                self.finish_flushes(now);
                self.dispatch(now, true);
            }
        }
    }

    /// Completes a command that the host waits for, when the medium is done with it, and also the
    /// interface, which its data cross from `from` on, where that is slower than the platters.
    fn complete(&mut self, now: u64, from: u64, done: &Candidate, out: &mut Vec<Completion>) {
        let Some(tag) = done.tag else { return };
        let time = self.interface.transfer_time(done.bytes);
        if time <= done.end - done.start {
            out.push(Completion { tag });
        } else {
            self.interface.transfer(from.max(now.saturating_sub(time)), done.bytes, tag);
        }
    }

    /// Chooses and starts the arm's next operation at `at`, when it is free.
    pub(super) fn dispatch(&mut self, at: u64, streaming: bool) {
        let must_destage = !self.dirty.is_empty()
            && !self.read_owed
            && (!self.door.is_empty() || !self.flushes.is_empty() || self.awaited > 0);
        if self.must_clean() {
            self.begin_cleaning(at);
            return;
        }
        if self.parameters.scheduling.single_pool && !self.reads.is_empty() {
            self.dispatch_single_pool(at, streaming);
        } else if !self.dirty.is_empty() && (must_destage || self.reads.is_empty()) {
            self.start_destage(at, streaming);
        } else if !self.reads.is_empty() {
            self.start_read(at, streaming);
        } else {
            self.arm = Arm::Idle;
            self.rest(at);
        }
    }

    pub(super) fn departure(&self, at: u64, streaming: bool, settle: Nanos) -> Departure {
        #[expect(clippy::cast_precision_loss, reason = "a settle is below a second")]
        Departure {
            head: self.head,
            at: at + self.parameters.overhead_queued.0,
            free: at,
            streaming,
            extra_settle_ns: settle.0 as f64,
        }
    }

    pub(super) fn mechanics(&self) -> Mechanics<'_> {
        Mechanics {
            surface: &self.surface,
            seek: &self.parameters.seek,
            revolution: self.revolution,
            phase: self.phase,
        }
    }

    pub(super) fn start_read(&mut self, at: u64, streaming: bool) {
        let departure = self.departure(at, streaming, Nanos::ZERO);
        let others = self.reads.len() - 1;
        let spent = others > 0 && !self.parameters.stream.budget_left(self.visit_bytes, others);
        let reach = if spent { self.neighbourhood } else { 0 };
        let stream = self.reads.chain(departure.head, reach);
        let choose = |leave: &Range<u64>| {
            let excluded = |read: &Candidate| read.follows || leave.contains(&read.start);
            let scheduling = &self.parameters.scheduling;
            scheduling.choose(&self.reads, &self.mechanics(), &departure, excluded)
        };
        let chosen = choose(&stream).or_else(|| choose(&(0..0)));
        if let Some(Choice { index, .. }) = chosen {
            let read = self.reads.remove(index);
            self.read_owed = false;
            self.destages_since_read = 0;
            self.start(departure, Work::Read(read), &read);
        }
    }

    pub(super) fn start_destage(&mut self, at: u64, streaming: bool) {
        let departure = self.departure(at, streaming, self.parameters.write_settle);
        // While a flush waits, only the writes that it waits for are destaged: newer writes,
        // however near, could delay it for ever. A run's start may be newer, and is not waited for.
        let before = self.flushes.first().map(|&(_, before)| before);
        let excluded = |write: &Candidate| match before {
            Some(before) => write.sequence >= before,
            None => write.follows,
        };
        let scheduling = &self.parameters.scheduling;
        let chosen = scheduling.choose(&self.dirty, &self.mechanics(), &departure, excluded);
        if let Some(Choice { index, .. }) = chosen {
            let mut write = self.dirty.remove(index);
            write.detour += self.turns_for_parts(&write);
            self.destages_since_read += usize::from(!self.reads.is_empty());
            self.read_owed = if streaming && write.start == self.head {
                self.parameters.stream.visit_budget.is_some()
            } else {
                // Otherwise two alternating writers would keep the reads out for ever.
                let waiting = self.door.len() + self.awaited;
                self.flushes.is_empty()
                    && self.destages_since_read >= DESTAGES_FOR_EACH_WAITING_WRITE * waiting
            };
            self.start(departure, Work::Destage(write), &write);
        }
    }

    /// Chooses for the ablation of the separate pools: the best command of both pools.
    pub(super) fn dispatch_single_pool(&mut self, at: u64, streaming: bool) {
        let departure = self.departure(at, streaming, Nanos::ZERO);
        let choose = |pool: &Pool| {
            let scheduling = &self.parameters.scheduling;
            scheduling.choose(pool, &self.mechanics(), &departure, |it| it.follows)
        };
        match (choose(&self.reads), choose(&self.dirty)) {
            (Some(read), write) if write.is_none_or(|write| read.cost <= write.cost) => {
                let read = self.reads.remove(read.index);
                self.start(departure, Work::Read(read), &read);
            }
            (_, Some(write)) => {
                let mut write = self.dirty.remove(write.index);
                write.detour += self.turns_for_parts(&write);
                self.start(departure, Work::Destage(write), &write);
            }
            (_, None) => self.arm = Arm::Idle,
        }
    }

    pub(super) fn start(&mut self, departure: Departure, what: Work, target: &Candidate) {
        let jitter = self.random.below(self.parameters.scheduling.jitter_ns);
        let (positioning, seek) = self
            .mechanics()
            .positioning(&departure, target.start, jitter);
        let (reached, what) = if let Some(seek) = seek {
            self.use_slack(&departure, seek, positioning - seek);
            if target.start.abs_diff(self.head) >= self.neighbourhood {
                self.visit_bytes = 0;
            }
            (departure.at + positioning, what)
        } else {
            // The head stays on its track and the formatter runs on by itself: there is no overhead
            // before what lies ahead, and data that pass under the head meanwhile are read too.
            (departure.free + positioning, what.from(self.head))
        };
        self.arm = Arm::Busy {
            until: reached + (target.end - target.start) + target.detour,
            what,
        };
    }

    /// The just-in-time seek: the arm leaves a stream as late as the platter allows, and reads
    /// ahead until then. `passed_at` gives the times of these reads.
    fn use_slack(&mut self, departure: &Departure, seek: u64, wait: u64) {
        let stream = &self.parameters.stream;
        let slack = wait.min(stream.slack_limit.0);
        if !(departure.streaming && self.visit_is_stream && self.read_ahead_on())
            || seek >= stream.slack_seek_limit.0
            || slack == 0
        {
            return;
        }
        if let Some(index) = self.segments.find(self.head) {
            let end = self.head + slack;
            self.stayed = (self.head, departure.free, end);
            self.segments.extend(index, end);
        }
    }
}
