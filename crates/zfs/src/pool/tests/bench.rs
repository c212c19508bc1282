//! fio-like threads over a pool over crude disks.
//!
//! The disk: `min(depth, 10)` random reads overlap in its queue, which is
//! taken to shorten each; a seek curve over 4 TB, half a rotation, a media
//! rate by thirds; a read that begins within 4 MiB behind one of the last 16
//! streams costs its transfer only; writes are acknowledged from the cache at
//! interface speed while the media keeps up. Rough on purpose: the pool's
//! rules are under test, not the disk.

use crate::{MemberConfig, Pool, PoolConfig};
use raidlab_array::{Event, MemberCommand, Operation, Outputs, Request, RequestId};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(super) const TERABYTE: u64 = 1 << 31;

/// One crude disk: serves one command at a time.
#[derive(Debug)]
pub(super) struct Disk {
    size: u64,
    waiting: Vec<MemberCommand>,
    busy: Option<MemberCommand>,
    head: u64,
    streams: Vec<u64>,
    random: Stream,
    pub(super) reads: u64,
    pub(super) read_sectors: u64,
    pub(super) writes: u64,
    pub(super) written_sectors: u64,
}

const FAST_BEHIND: u64 = 8192;

impl Disk {
    fn new(size: u64, random: Stream) -> Self {
        Self {
            size,
            waiting: Vec::new(),
            busy: None,
            head: 0,
            streams: Vec::new(),
            random,
            reads: 0,
            read_sectors: 0,
            writes: 0,
            written_sectors: 0,
        }
    }

    fn seconds_per_sector(&self, at: u64) -> f64 {
        let third = at * 3 / self.size;
        512.0 / [174e6, 158e6, 120e6][usize::try_from(third.min(2)).expect("small")]
    }

    fn seek(&self, to: u64) -> f64 {
        let distance = self.head.abs_diff(to) as f64 / self.size as f64;
        let seek = if distance < 0.123 {
            0.9e-3 + 15.84e-3 * distance.sqrt()
        } else {
            6.45e-3 + 9.06e-3 * (distance - 0.123)
        };
        if self.head == to { 0.0 } else { seek }
    }

    /// Starts the cheapest waiting command: its service time.
    fn start(&mut self) -> Option<f64> {
        if self.busy.is_some() || self.waiting.is_empty() {
            return None;
        }
        let depth = self.waiting.len();
        let near = (0..depth).min_by_key(|&index| {
            let start = self.waiting[index].start.0;
            (!self.is_stream(start), self.head.abs_diff(start))
        })?;
        // Oldest first now and then, so that nothing starves.
        let chosen = if self.random.percent(25) { 0 } else { near };
        let command = self.waiting.remove(chosen);
        let time = self.service(&command, depth);
        self.busy = Some(command);
        Some(time)
    }

    fn is_stream(&self, start: u64) -> bool {
        let behind = |end: &u64| start >= *end && start - end <= FAST_BEHIND;
        self.streams.iter().any(behind)
    }

    fn service(&mut self, command: &MemberCommand, depth: usize) -> f64 {
        let (start, count) = (command.start.0, command.count.0);
        let transfer = count as f64 * self.seconds_per_sector(start);
        if command.operation == Operation::Flush {
            return 5e-3;
        }
        let stream = self.is_stream(start);
        let position = if stream && command.operation == Operation::Read {
            0.06e-3
        } else if stream {
            self.seek(start) * f64::from(u8::from(self.head.abs_diff(start) > FAST_BEHIND))
        } else {
            let rotation = self.random.below(8_333_333) as f64 / 1e9;
            self.seek(start) + rotation / (depth.min(10) as f64).sqrt()
        };
        self.streams
            .retain(|&end| !(start >= end && start - end <= FAST_BEHIND));
        if self.streams.len() == 16 {
            self.streams.remove(0);
        }
        self.streams.push(start + count);
        self.head = start + count;
        match command.operation {
            Operation::Read => {
                self.reads += 1;
                self.read_sectors += count;
            }
            _ => {
                self.writes += 1;
                self.written_sectors += count;
            }
        }
        position + transfer
    }
}

/// What a thread of a job does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) threads: u32,
    pub(super) random: bool,
    /// Percentage of reads.
    pub(super) reads: u32,
    pub(super) block: u64,
    pub(super) offset: u64,
    pub(super) end: u64,
    pub(super) seconds: u64,
}

struct Thread {
    stream: Stream,
    next: u64,
}

pub(super) struct Bench {
    pub(super) pool: Pool,
    pub(super) disks: Vec<Disk>,
    pub(super) now: Nanos,
    out: Outputs,
    events: BinaryHeap<Reverse<(Nanos, u64, Happening)>>,
    count: u64,
    finished: Vec<u64>,
    pub(super) happened: Vec<Event>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Disk(usize),
    Thread(u64),
}

impl Bench {
    /// The log's pool: two 4 TB disks, a 3 TiB volume, 16 GB.
    pub(super) fn of_2015() -> Self {
        let member = MemberConfig {
            size: Bytes(4_000_787_030_016).to_sectors(),
            rotational: true,
        };
        Self::new(PoolConfig::freebsd_10_1(
            vec![member; 2],
            Sectors(3 * TERABYTE),
            Bytes(16 << 30),
        ))
    }

    pub(super) fn new(config: PoolConfig) -> Self {
        let root = Stream::new(1);
        let disks = (0..).zip(&config.members);
        Self {
            disks: disks
                .map(|(index, member)| Disk::new(member.size.0, root.fork("disk", index)))
                .collect(),
            pool: Pool::new(config, root.fork("pool", 0)).expect("a good configuration"),
            now: Nanos::ZERO,
            out: Outputs::default(),
            events: BinaryHeap::new(),
            count: 0,
            finished: Vec::new(),
            happened: Vec::new(),
        }
    }

    fn schedule(&mut self, at: Nanos, happening: Happening) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, happening)));
    }

    fn deliver(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        for command in out.commands.drain(..) {
            self.disks[command.slot.index()].waiting.push(command);
        }
        for finished in out.finished.drain(..) {
            assert_eq!(finished.result, Ok(()));
            self.finished.push(finished.id.0);
        }
        self.happened.append(&mut out.events);
        self.out = out;
        for index in 0..self.disks.len() {
            if let Some(time) = self.disks[index].start() {
                self.schedule(
                    self.now + Nanos::from_secs_f64(time),
                    Happening::Disk(index),
                );
            }
        }
    }

    pub(super) fn call<T>(&mut self, verb: impl FnOnce(&mut Pool, Nanos, &mut Outputs) -> T) -> T {
        let answer = verb(&mut self.pool, self.now, &mut self.out);
        self.deliver();
        answer
    }

    /// The next thing that happens, if before `end`; a thread's number if it
    /// is a thread's turn.
    fn step(&mut self, end: Nanos) -> Option<Option<u64>> {
        let event = self.events.peek().map(|Reverse((at, _, _))| *at);
        let tick = self.pool.next_tick().map(|at| at.max(self.now));
        let at = event.into_iter().chain(tick).min()?;
        if at > end {
            return None;
        }
        self.now = at;
        if tick == Some(at) && event.is_none_or(|event| event > at) {
            self.call(Pool::tick);
            return Some(None);
        }
        let Reverse((_, _, happening)) = self.events.pop()?;
        match happening {
            Happening::Thread(thread) => Some(Some(thread)),
            Happening::Disk(index) => {
                let command = self.disks[index].busy.take().expect("a busy disk");
                self.call(|pool, now, out| pool.complete(now, command.id, Ok(()), out));
                Some(None)
            }
        }
    }

    /// Until nothing happens any more, or `seconds` have passed.
    pub(super) fn run(&mut self, seconds: u64) {
        let end = self.now + Nanos::from_secs(seconds);
        while self.step(end).is_some() {}
        self.now = end;
    }

    pub(super) fn drain(&mut self) {
        while !self.pool.is_idle() && self.step(Nanos::MAX).is_some() {}
        assert!(self.pool.is_idle());
    }

    /// Requests per second of a job. Threads of the same number draw the same
    /// sequence in every job, as fio's do.
    pub(super) fn job(&mut self, job: Job) -> f64 {
        let root = Stream::new(9);
        let mut threads: Vec<Thread> = (0..u64::from(job.threads))
            .map(|index| Thread {
                stream: root.fork("thread", index),
                next: job.offset,
            })
            .collect();
        let begin = self.now;
        let end = begin + Nanos::from_secs(job.seconds);
        for index in 0..u64::from(job.threads) {
            self.schedule(begin, Happening::Thread(index));
        }
        let (mut done, mut running) = (0_u64, u64::from(job.threads));
        while running > 0 {
            let turn = self.step(Nanos::MAX).expect("a job under way");
            if let Some(index) = turn {
                if self.now >= end {
                    running -= 1;
                } else {
                    let thread = &mut threads[usize::try_from(index).expect("small")];
                    self.submit(index, thread, &job);
                }
            }
            for id in std::mem::take(&mut self.finished) {
                done += 1;
                self.schedule(self.now + Nanos::from_micros(11), Happening::Thread(id));
            }
        }
        done as f64 / (self.now - begin).as_secs_f64()
    }

    fn submit(&mut self, index: u64, thread: &mut Thread, job: &Job) {
        let start = if job.random {
            let blocks = (job.end - job.offset) / job.block;
            // A fraction, so that the sequence scales with the range.
            let fraction = thread.stream.below(1 << 32);
            job.offset + (blocks * fraction >> 32) * job.block
        } else {
            thread.next
        };
        thread.next = start + job.block;
        let read = job.reads == 100 || thread.stream.percent(job.reads);
        let request = Request {
            id: RequestId(index),
            operation: if read {
                Operation::Read
            } else {
                Operation::Write
            },
            start: Sectors(start),
            count: Sectors(job.block),
            force_unit_access: false,
            process: 0,
        };
        self.call(|pool, now, out| pool.submit(now, request, out));
    }
}
