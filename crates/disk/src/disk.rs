//! The life of a command in a disk.
//!
//! A read that the segments hold is answered from there. One that the running
//! read-ahead is about to reach is answered when the head has passed it. Any
//! other waits in the read pool. A write is complete when it is in the cache;
//! while the cache's window is full, writes wait at the door. Cached writes
//! wait in the destage pool.
//!
//! Whenever the arm is free it takes, in this order: a destage if a write
//! waits at the door, a flush waits, or somebody waits for that very write
//! (but not a run of neighbours while reads wait: a resync would starve
//! them); a read; a destage. Within a pool the scheduler chooses. With nothing to do
//! the arm reads ahead where the last read ended.
//!
//! One mechanical operation runs at a time; its end is one event. Everything
//! is integer nanoseconds.

use crate::command::{Command, CommandKind, Completion};
use crate::parameters::DiskParameters;
use crate::scheduling::{Candidate, Departure, Mechanics, Pool};
use crate::segments::Segments;
use crate::surface::Surface;
use raidlab_random::Stream;
use raidlab_units::{Nanos, SECTOR_BYTES, Sectors};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What the arm is doing.
#[derive(Debug, Clone, Copy)]
enum Arm {
    Idle,
    /// Reading on, from `from` at time `since`, up to `limit` (positions),
    /// until something else is to be done or `decide_at` has come.
    Streaming {
        segment: Option<usize>,
        from: u64,
        since: u64,
        limit: u64,
        decide_at: u64,
    },
    Busy {
        until: u64,
        what: Work,
    },
}

#[derive(Debug, Clone, Copy)]
enum Work {
    Read(Candidate),
    Destage(Candidate),
}

impl Work {
    /// A read that begins where the head is already; a write does not.
    fn from(self, head: u64) -> Self {
        match self {
            Self::Read(read) => Self::Read(Candidate {
                start: head.min(read.start),
                ..read
            }),
            Self::Destage(_) => self,
        }
    }
}

/// How far a stream's own commands lie apart at most: the visit budget, as a
/// distance of positions at the disk's mean rate.
fn neighbourhood(parameters: &DiskParameters, surface: &Surface) -> u64 {
    let Some(budget) = parameters.stream.visit_budget else {
        return 0;
    };
    let whole = u128::from(surface.position(u64::MAX)) * u128::from(budget.0);
    u64::try_from(whole / u128::from(parameters.capacity.to_bytes().0.max(1))).unwrap_or(u64::MAX)
}

/// A modelled disk.
#[derive(Debug, Clone)]
pub struct Disk {
    parameters: DiskParameters,
    surface: Surface,
    phase: u64,
    random: Stream,
    segments: Segments,
    arm: Arm,
    /// Position under the head when it last moved data.
    head: u64,
    reads: Pool,
    dirty: Pool,
    door: VecDeque<Command>,
    flushes: Vec<(u64, u64)>,
    sequence: u64,
    /// Dirty entries somebody waits for (write-through).
    awaited: usize,
    /// Bytes read in this visit: since the head last moved further than
    /// `neighbourhood`, a distance of positions.
    visit_bytes: u64,
    neighbourhood: u64,
    visit_is_stream: bool,
    /// A run of destages has gone before the reads: one of them comes next.
    read_owed: bool,
    bus_free: u64,
    done: BinaryHeap<Reverse<(u64, u64, u64)>>,
}

impl Disk {
    /// A disk at rest with its head at sector 0. `phase` is the platter's
    /// angle at time zero: two disks of an array should differ in it. The
    /// parameters must be valid (see [`DiskParameters::validate`]).
    #[must_use]
    pub fn new(parameters: DiskParameters, phase: Nanos, random: Stream) -> Self {
        let surface = Surface::new(parameters.capacity, &parameters.rate_curve);
        let segments = Segments::new(parameters.segments);
        Self {
            phase: phase.0 % parameters.revolution.0,
            random,
            segments,
            arm: Arm::Idle,
            head: 0,
            reads: Pool::default(),
            dirty: Pool::default(),
            door: VecDeque::new(),
            flushes: Vec::new(),
            sequence: 0,
            awaited: 0,
            visit_bytes: 0,
            neighbourhood: neighbourhood(&parameters, &surface),
            visit_is_stream: false,
            read_owed: false,
            bus_free: 0,
            done: BinaryHeap::new(),
            surface,
            parameters,
        }
    }

    /// The numbers in force.
    #[must_use]
    pub fn parameters(&self) -> &DiskParameters {
        &self.parameters
    }

    /// The platters.
    #[must_use]
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// Nothing waits, nothing is dirty, nothing is under way.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.reads.is_empty()
            && self.dirty.is_empty()
            && self.door.is_empty()
            && self.flushes.is_empty()
            && self.done.is_empty()
            && !matches!(self.arm, Arm::Busy { .. })
    }

    /// Hours have passed that nobody simulated, with the head ending at
    /// `sector`; what was cached for reading is forgotten. Only while quiet.
    pub fn leap(&mut self, sector: Sectors) {
        debug_assert!(self.is_quiet(), "a leap over work in progress");
        self.arm = Arm::Idle;
        self.head = self.surface.position(sector.0);
        self.segments = Segments::new(self.parameters.segments);
    }

    /// Takes a command at time `now`, which must not be earlier than that of
    /// any call before.
    pub fn submit(&mut self, now: Nanos, command: Command) {
        match command.kind {
            CommandKind::Read => self.submit_read(now.0, &command),
            CommandKind::Write | CommandKind::WriteThrough => self.submit_write(now.0, command),
            CommandKind::Flush => self.submit_flush(now.0, command.tag),
        }
    }

    /// When [`Self::advance`] next has something to do.
    #[inline]
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        let arm = match self.arm {
            Arm::Busy { until, .. } => until,
            Arm::Streaming { decide_at, .. } => decide_at,
            Arm::Idle => u64::MAX,
        };
        let done = self.done.peek().map_or(u64::MAX, |entry| entry.0.0);
        let next = arm.min(done);
        (next != u64::MAX).then_some(Nanos(next))
    }

    /// Does what is due at `now` and appends the commands that completed.
    pub fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        while let Some(next) = self.next_event().filter(|&next| next <= now) {
            let at = next.0;
            while let Some(&Reverse((time, _, tag))) = self.done.peek() {
                if time > at {
                    break;
                }
                self.done.pop();
                completions.push(Completion { tag });
            }
            match self.arm {
                Arm::Busy { until, what } if until <= at => self.finish(until, what, completions),
                Arm::Streaming { decide_at, .. } if decide_at <= at => {
                    let streaming = self.stop_streaming(at);
                    self.dispatch(at, streaming);
                }
                _ => {}
            }
        }
    }

    fn candidate(&mut self, now: u64, command: &Command, tag: Option<u64>) -> Candidate {
        self.sequence += 1;
        Candidate {
            tag,
            start: self.surface.position(command.start.0),
            end: self.surface.position(command.end()),
            bytes: command.count.0 * SECTOR_BYTES,
            arrived: now,
            sequence: self.sequence,
            follows: false,
        }
    }

    /// Completes `tag` over the interface, the data being ready at `ready`.
    fn transfer(&mut self, ready: u64, bytes: u64, tag: u64) {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a transfer takes well under a second"
        )]
        let duration = (bytes as f64 / self.parameters.interface.0 * 1e9) as u64;
        let end = self.bus_free.max(ready) + duration;
        self.bus_free = end;
        self.complete_at(end, tag);
    }

    fn complete_at(&mut self, time: u64, tag: u64) {
        self.sequence += 1;
        self.done.push(Reverse((time, self.sequence, tag)));
    }

    fn read_ahead_on(&self) -> bool {
        self.parameters.segments > 0
    }

    fn submit_read(&mut self, now: u64, command: &Command) {
        let mut read = self.candidate(now, command, Some(command.tag));
        if self.read_from_write_cache(now, &read, command.tag) {
            return;
        }
        if self.read_ahead_on() {
            self.note_streaming_progress(now);
            if let Some(index) = self.segments.find(read.start) {
                let segment_end = self.segments.get(index).end;
                if read.end <= segment_end {
                    let span = self.read_ahead_distance(&read, true);
                    self.segments.read(read.start, read.end, span);
                    self.extend_streaming(index, &read);
                    let ready = now + self.parameters.overhead_cached.0;
                    self.transfer(ready, read.bytes, command.tag);
                    return;
                }
                if self.serve_from_stream(index, &read) {
                    return;
                }
                // Only what the segment lacks is read from the medium.
                let start = segment_end.max(read.start);
                read.bytes = read.bytes * (read.end - start) / (read.end - read.start);
                read.start = start;
            }
        }
        self.reads.insert(read);
        self.wake(now);
    }

    /// A read wholly inside one dirty write is answered from the cache.
    fn read_from_write_cache(&mut self, now: u64, read: &Candidate, tag: u64) -> bool {
        let held = self
            .dirty
            .candidates()
            .iter()
            .any(|write| write.start <= read.start && read.end <= write.end);
        if held {
            self.transfer(now + self.parameters.overhead_cached.0, read.bytes, tag);
        }
        held
    }

    /// Writes what the running read-ahead has reached into its segment.
    fn note_streaming_progress(&mut self, now: u64) {
        if let Arm::Streaming {
            segment: Some(segment),
            from,
            since,
            limit,
            ..
        } = self.arm
        {
            let reached = (from + now.saturating_sub(since)).min(limit);
            self.segments.extend(segment, reached);
        }
    }

    /// A hit in the stream under the head lets the read-ahead run further,
    /// restarting it where it had stopped at its limit.
    fn extend_streaming(&mut self, index: usize, read: &Candidate) {
        let ahead = self.read_ahead_distance(read, true);
        if let Arm::Streaming {
            segment,
            limit,
            decide_at,
            ..
        } = &mut self.arm
            && *segment == Some(index)
            && *decide_at == u64::MAX
            // A stopped read-ahead would have to wait for the platter again:
            // restarting it at the limit is left to the next miss.
            && self.segments.get(index).end < *limit
        {
            *limit = (*limit).max(read.end + ahead);
        }
    }

    /// The head is in this read's stream and will pass its end: wait for it.
    fn serve_from_stream(&mut self, index: usize, read: &Candidate) -> bool {
        let Arm::Streaming {
            segment,
            from,
            since,
            limit,
            ..
        } = self.arm
        else {
            return false;
        };
        let running = self.segments.get(index).end < limit;
        let others = self.reads.len() + usize::from(!self.door.is_empty());
        if segment != Some(index)
            || !running
            || !self.parameters.stream.budget_left(self.visit_bytes, others)
        {
            return false;
        }
        self.arm = Arm::Busy {
            until: since + (read.end - from),
            what: Work::Read(*read),
        };
        true
    }

    fn submit_write(&mut self, now: u64, command: Command) {
        if self.read_ahead_on() {
            let start = self.surface.position(command.start.0);
            let end = self.surface.position(command.end());
            self.segments.invalidate(start, end);
        }
        if self.dirty.len() < self.parameters.write_window.max(1) {
            self.accept_write(now, &command);
        } else {
            self.door.push_back(command);
        }
        self.wake(now);
    }

    fn accept_write(&mut self, now: u64, command: &Command) {
        let through =
            command.kind == CommandKind::WriteThrough || self.parameters.write_window == 0;
        let write = self.candidate(now, command, through.then_some(command.tag));
        self.dirty.insert(write);
        if through {
            self.awaited += 1;
        } else {
            let ready = now + self.parameters.overhead_cached.0;
            self.transfer(ready, write.bytes, command.tag);
        }
    }

    fn submit_flush(&mut self, now: u64, tag: u64) {
        let destaging = matches!(
            self.arm,
            Arm::Busy {
                what: Work::Destage(_),
                ..
            }
        );
        if self.dirty.is_empty() && self.door.is_empty() && !destaging {
            self.complete_at(now + self.parameters.overhead_cached.0, tag);
            return;
        }
        self.sequence += 1;
        self.flushes.push((tag, self.sequence));
        self.wake(now);
    }

    /// New work has come: the arm takes it if it is free.
    fn wake(&mut self, now: u64) {
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

    /// Ends read-ahead at `at`; true if the head is still over its position.
    fn stop_streaming(&mut self, at: u64) -> bool {
        self.note_streaming_progress(at);
        let Arm::Streaming {
            from, since, limit, ..
        } = self.arm
        else {
            return false;
        };
        let reached = from + at.saturating_sub(since);
        self.head = reached.min(limit);
        self.arm = Arm::Idle;
        reached <= limit && at >= since
    }

    fn finish(&mut self, now: u64, what: Work, completions: &mut Vec<Completion>) {
        self.arm = Arm::Idle;
        match what {
            Work::Read(read) => {
                self.head = read.end;
                self.visit_bytes += read.bytes;
                if let Some(tag) = read.tag {
                    completions.push(Completion { tag });
                }
                self.after_read(now, &read);
            }
            Work::Destage(write) => {
                self.head = write.end;
                self.visit_bytes += write.bytes;
                self.visit_is_stream = false;
                if let Some(tag) = write.tag {
                    self.awaited -= 1;
                    completions.push(Completion { tag });
                }
                if let Some(command) = self.door.pop_front() {
                    self.accept_write(now, &command);
                }
                self.finish_flushes(now);
                self.dispatch(now, true);
            }
        }
    }

    fn finish_flushes(&mut self, now: u64) {
        if self.flushes.is_empty() {
            return;
        }
        let oldest = self
            .dirty
            .candidates()
            .iter()
            .map(|write| write.sequence)
            .min()
            .unwrap_or(u64::MAX);
        let flushes = std::mem::take(&mut self.flushes);
        for (tag, sequence) in flushes {
            if oldest > sequence {
                self.complete_at(now, tag);
            } else {
                self.flushes.push((tag, sequence));
            }
        }
    }

    /// How far to read ahead after `read`, as a distance in positions: bytes
    /// become time at the rate of the read itself.
    fn read_ahead_distance(&self, read: &Candidate, sequential: bool) -> u64 {
        let stream = &self.parameters.stream;
        let ahead = if sequential {
            stream.sequential_read_ahead
        } else {
            stream.random_read_ahead
        };
        (read.end - read.start).max(1) * ahead.0 / read.bytes.max(1)
    }

    /// A read has ended: stay for the stream, read ahead, or go on.
    fn after_read(&mut self, now: u64, read: &Candidate) {
        if !self.read_ahead_on() {
            self.dispatch(now, true);
            return;
        }
        let span = self.read_ahead_distance(read, true);
        let segment = self.segments.read(read.start, read.end, span);
        let sequential = self.segments.get(segment).sequential;
        self.visit_is_stream = sequential;
        if sequential {
            self.answer_from_segment(now, segment);
        }
        let stream = &self.parameters.stream;
        let others = self.reads.len() + usize::from(!self.door.is_empty());
        let idle = others == 0 && self.dirty.is_empty() && self.flushes.is_empty();
        let waits_already = |other: &Candidate| other.start == read.end;
        let decide_at = if idle {
            u64::MAX
        } else if sequential
            && stream.follow_on_wait > Nanos::ZERO
            && !self.reads.candidates().iter().any(waits_already)
            && stream.budget_left(self.visit_bytes, others)
        {
            now + stream.follow_on_wait.0
        } else {
            self.dispatch(now, true);
            return;
        };
        self.arm = Arm::Streaming {
            segment: Some(segment),
            from: read.end,
            since: now,
            limit: read.end + self.read_ahead_distance(read, sequential),
            decide_at,
        };
    }

    /// Reads that came while the head was on its way past them.
    fn answer_from_segment(&mut self, now: u64, segment: usize) {
        let held = *self.segments.get(segment);
        let inside = |read: &Candidate| held.start <= read.start && read.end <= held.end;
        while let Some(index) = self.reads.candidates().iter().position(inside) {
            let read = self.reads.remove(index);
            if let Some(tag) = read.tag {
                self.transfer(now, read.bytes, tag);
            }
        }
    }

    /// The arm is free at `at`: chooses and starts the next operation.
    fn dispatch(&mut self, at: u64, streaming: bool) {
        let must_destage = !self.dirty.is_empty()
            && !self.read_owed
            && (!self.door.is_empty() || !self.flushes.is_empty() || self.awaited > 0);
        if self.parameters.scheduling.single_pool && !self.reads.is_empty() {
            self.dispatch_single_pool(at, streaming);
        } else if !self.dirty.is_empty() && (must_destage || self.reads.is_empty()) {
            self.start_destage(at, streaming);
        } else if !self.reads.is_empty() {
            self.start_read(at, streaming);
        } else {
            self.arm = Arm::Idle;
        }
    }

    fn departure(&self, at: u64, streaming: bool, settle: Nanos) -> Departure {
        #[expect(clippy::cast_precision_loss, reason = "a settle is below a second")]
        Departure {
            head: self.head,
            at: at + self.parameters.overhead_queued.0,
            free: at,
            streaming,
            extra_settle_ns: settle.0 as f64,
        }
    }

    fn mechanics(&self) -> Mechanics<'_> {
        Mechanics {
            surface: &self.surface,
            seek: &self.parameters.seek,
            revolution: self.parameters.revolution.0,
            phase: self.phase,
        }
    }

    fn start_read(&mut self, at: u64, streaming: bool) {
        let departure = self.departure(at, streaming, Nanos::ZERO);
        let others = self.reads.len() - 1;
        let spent = others > 0 && !self.parameters.stream.budget_left(self.visit_bytes, others);
        let leave = if spent { self.neighbourhood } else { 0 };
        let scheduling = self.parameters.scheduling;
        let chosen = scheduling
            .choose(
                self.reads.candidates(),
                &self.mechanics(),
                &departure,
                leave,
            )
            .or_else(|| {
                scheduling.choose(self.reads.candidates(), &self.mechanics(), &departure, 0)
            });
        if let Some(index) = chosen {
            let read = self.reads.remove(index);
            self.read_owed = false;
            self.start(departure, Work::Read(read), &read);
        }
    }

    fn start_destage(&mut self, at: u64, streaming: bool) {
        let departure = self.departure(at, streaming, self.parameters.write_settle);
        let chosen = self.parameters.scheduling.choose(
            self.dirty.candidates(),
            &self.mechanics(),
            &departure,
            0,
        );
        if let Some(index) = chosen {
            let write = self.dirty.remove(index);
            let limited = self.parameters.stream.visit_budget.is_some();
            self.read_owed = limited && streaming && write.start == self.head;
            self.start(departure, Work::Destage(write), &write);
        }
    }

    /// The ablation: whichever pool's best is nearer in time.
    fn dispatch_single_pool(&mut self, at: u64, streaming: bool) {
        let departure = self.departure(at, streaming, Nanos::ZERO);
        let mut pool = self.reads.candidates().to_vec();
        pool.extend_from_slice(self.dirty.candidates());
        let chosen = self
            .parameters
            .scheduling
            .choose(&pool, &self.mechanics(), &departure, 0);
        match chosen {
            Some(index) if index < self.reads.len() => {
                let read = self.reads.remove(index);
                self.start(departure, Work::Read(read), &read);
            }
            Some(index) => {
                let write = self.dirty.remove(index - self.reads.len());
                self.start(departure, Work::Destage(write), &write);
            }
            None => self.arm = Arm::Idle,
        }
    }

    fn start(&mut self, departure: Departure, what: Work, target: &Candidate) {
        let jitter = self.random.below(self.parameters.scheduling.jitter_ns);
        let (positioning, seek) =
            self.mechanics()
                .positioning(&departure, target.start, jitter);
        let (reached, what) = if let Some(seek) = seek {
            self.use_slack(departure.streaming, seek, positioning - seek);
            if target.start.abs_diff(self.head) >= self.neighbourhood {
                self.visit_bytes = 0;
            }
            (departure.at + positioning, what)
        } else {
            // The head stays on its track and the formatter runs on by
            // itself: no overhead before what lies ahead, and what passes
            // under the head meanwhile is read too.
            (departure.free + positioning, what.from(self.head))
        };
        self.arm = Arm::Busy {
            until: reached + (target.end - target.start),
            what,
        };
    }

    /// The just-in-time seek: the arm leaves a stream as late as the platter
    /// allows, and reads ahead until then.
    fn use_slack(&mut self, streaming: bool, seek: u64, wait: u64) {
        let stream = &self.parameters.stream;
        let slack = wait.min(stream.slack_limit.0);
        if !(streaming && self.visit_is_stream && self.read_ahead_on())
            || seek >= stream.slack_seek_limit.0
            || slack == 0
        {
            return;
        }
        if let Some(index) = self.segments.find(self.head) {
            self.segments.extend(index, self.head + slack);
        }
    }
}
