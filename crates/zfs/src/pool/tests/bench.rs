//! fio-like threads over a pool over modelled disks, in a small event loop.

use crate::{MemberConfig, Pool, PoolConfig};
use raidlab_array::{CommandId, Event, MemberCommand, Operation, Outputs, Request, RequestId};
use raidlab_disk::{Command, CommandKind, Completion, Preset};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(super) const TERABYTE: u64 = 1 << 31;

/// A modelled disk, and counts of what it did.
#[derive(Debug)]
pub(super) struct Disk {
    disk: raidlab_disk::Disk,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) written_sectors: u64,
}

impl Disk {
    fn new(index: u64, random: Stream) -> Self {
        const PRESET: &str = include_str!("../../../../../data/disks/wd4000fyyz.toml");
        let preset = Preset::parse("wd4000fyyz.toml", PRESET).expect("a good preset");
        let parameters = preset.parameters("strict").expect("a fit").clone();
        Self {
            disk: raidlab_disk::Disk::new(parameters, Nanos(index * 3_000_000), random),
            reads: 0,
            writes: 0,
            written_sectors: 0,
        }
    }

    fn submit(&mut self, now: Nanos, command: &MemberCommand) {
        let kind = match command.operation {
            Operation::Read => CommandKind::Read,
            Operation::Write => CommandKind::Write,
            Operation::Flush => CommandKind::Flush,
            Operation::Discard => unreachable!("the pool discards nothing"),
        };
        match kind {
            CommandKind::Read => self.reads += 1,
            CommandKind::Write => {
                self.writes += 1;
                self.written_sectors += command.count.0;
            }
            _ => {}
        }
        let (tag, start, count) = (command.id.0, command.start, command.count);
        self.disk.submit(
            now,
            Command {
                tag,
                kind,
                start,
                count,
            },
        );
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
    threads: BinaryHeap<Reverse<(Nanos, u64, u64)>>,
    completions: Vec<Completion>,
    count: u64,
    finished: Vec<u64>,
    pub(super) happened: Vec<Event>,
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
                .map(|(index, _)| Disk::new(index, root.fork("disk", index)))
                .collect(),
            pool: Pool::new(config, root.fork("pool", 0)).expect("a good configuration"),
            now: Nanos::ZERO,
            out: Outputs::default(),
            threads: BinaryHeap::new(),
            completions: Vec::new(),
            count: 0,
            finished: Vec::new(),
            happened: Vec::new(),
        }
    }

    fn schedule(&mut self, at: Nanos, thread: u64) {
        self.count += 1;
        self.threads.push(Reverse((at, self.count, thread)));
    }

    fn deliver(&mut self) {
        for command in self.out.commands.drain(..) {
            self.disks[command.slot.index()].submit(self.now, &command);
        }
        for finished in self.out.finished.drain(..) {
            assert_eq!(finished.result, Ok(()));
            self.finished.push(finished.id.0);
        }
        self.happened.append(&mut self.out.events);
    }

    pub(super) fn call<T>(&mut self, verb: impl FnOnce(&mut Pool, Nanos, &mut Outputs) -> T) -> T {
        let answer = verb(&mut self.pool, self.now, &mut self.out);
        self.deliver();
        answer
    }

    /// The next thing that happens, if before `end`; a thread's number if it
    /// is a thread's turn.
    fn step(&mut self, end: Nanos) -> Option<Option<u64>> {
        let thread = self.threads.peek().map(|Reverse((at, _, _))| *at);
        let tick = self.pool.next_tick().map(|at| at.max(self.now));
        let disks = self.disks.iter().map(|disk| disk.disk.next_event());
        let at = disks.chain([thread, tick]).flatten().min()?;
        if at > end {
            return None;
        }
        self.now = at;
        for index in 0..self.disks.len() {
            if self.disks[index].disk.next_event() == Some(at) {
                let mut done = std::mem::take(&mut self.completions);
                self.disks[index].disk.advance(at, &mut done);
                for completion in done.drain(..) {
                    let id = CommandId(completion.tag);
                    self.call(|pool, now, out| pool.complete(now, id, Ok(()), out));
                }
                self.completions = done;
                return Some(None);
            }
        }
        if tick == Some(at) {
            self.call(Pool::tick);
            return Some(None);
        }
        let Reverse((_, _, thread)) = self.threads.pop()?;
        Some(Some(thread))
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
            self.schedule(begin, index);
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
                self.schedule(self.now + Nanos::from_micros(11), id);
            }
        }
        done as f64 / (self.now - begin).as_secs_f64()
    }

    fn submit(&mut self, index: u64, thread: &mut Thread, job: &Job) {
        let start = if job.random {
            let blocks = (job.end - job.offset) / job.block;
            // A fraction, so that the sequence scales with the range.
            let fraction = thread.stream.below(1 << 32);
            job.offset + ((blocks * fraction) >> 32) * job.block
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
