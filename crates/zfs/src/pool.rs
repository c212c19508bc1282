//! The pool: the path of a request, and the driver's interface.
//!
//! A request touches volume blocks one after the other. For each, the indirect blocks above it are
//! needed: where one is neither in memory nor a hole it is read, and the walk waits for it
//! (`dbuf_findbp` reads the parent and waits), level 2 before level 1. A read then orders the data
//! block and continues with the next without waiting; when all blocks are in memory the request is
//! copied out. A write needs the old content of the first and the last block where it covers them
//! only in part (`dmu_tx_count_write`), and the indirect blocks of all (the transaction's holds
//! look up every block); then it passes the write throttle, and its blocks are dirty in the open
//! transaction group. Two requests for one block share its read.
//!
//! Reads of indirect and data blocks go to one child of the mirror and try the
//! others if it fails. Of a metadata block's copies on one disk always the
//! first is read, because ditto copies on the same top-level device "prefer
//! the lowest index" (`vdev_mirror_dva_select`).
//!
//! A flush waits until everything written before it is on disk, in the intent log or by the
//! sync of a transaction group; so does a write that is to be durable (see `log`).
//!
//! A discard frees the blocks that it covers completely (`zvol_discard`): they are holes from then
//! on, and those of the open group are never written. It costs the host the time of a write without
//! its blocks, and the disks nothing: the indirect blocks that it changes are written with the next
//! write to their neighbours, and a pool passes no discards on to its disks unless `autotrim` is
//! on, which it is not by default.

mod admin;
mod ahead;
mod data;
mod io;
mod log;
mod scan;
#[cfg(test)]
mod tests;
mod txg;
mod walk;

use crate::cache::{Cache, IndirectId};
use crate::config::{ChildSelection, ConfigError, PoolConfig};
use crate::map::BlockMap;
use crate::prefetch::Prefetch;
use crate::slab::Slab;
use raidlab_array::{
    CommandId, Finished, MemberError, MemberView, Operation, Outputs, ReadPolicy, Request,
    RequestError, RequestId,
};
use raidlab_policies::{ZfsFreebsd10, Zol06};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;

pub use scan::SyncStatus;

/// A request in progress.
#[derive(Debug)]
struct Job {
    request: Request,
    /// The next block to visit, and the end.
    next: u64,
    end: u64,
    /// The blocks to prefetch for it; `None` until they are known.
    ahead: Option<Range<u64>>,
    /// The number of indirect blocks and runs of data being read for it.
    pending: u32,
    /// Whether some of its data was not in memory.
    missed: bool,
    failed: bool,
}

impl Job {
    /// Whether it is a write that ends only when it is durable.
    fn is_durable(&self) -> bool {
        self.request.operation == Operation::Write && self.request.force_unit_access
    }
}

/// What is waiting for an indirect block to be in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiter {
    Job(u32),
    Scan,
    /// No request waits: the block is read for later use.
    Nobody,
    /// These blocks under it are to be prefetched.
    Ahead(u64, u64),
}

/// The waiters for an indirect block that is being read.
#[derive(Debug, Default)]
struct Fetch {
    read: Option<u32>,
    jobs: Vec<u32>,
    scan: bool,
    /// The blocks under it to be prefetched.
    ahead: Vec<Range<u64>>,
}

/// The action of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A delayed write continues.
    Admit(u32),
    /// The host time of a request ends.
    Finish(u32),
    /// The syncing thread emits the next run.
    Emit,
    /// The scanning thread orders the next block.
    Scan,
    /// The open log block is sent.
    Log,
}

/// A mirror pool with one volume. See the crate's and the file's head.
///
/// The driver calls [`submit`](Self::submit), [`complete`](Self::complete) and
/// [`tick`](Self::tick) with a clock that never goes back, sends
/// [`Outputs::commands`] to the members, and ticks no later than
/// [`next_tick`](Self::next_tick).
#[derive(Debug)]
pub struct Pool {
    config: PoolConfig,
    leaves: Vec<io::Leaf>,
    /// The policy that chooses the child for a read, with `views` as its input.
    selection: Box<dyn ReadPolicy>,
    views: Vec<MemberView>,
    map: BlockMap,
    cache: Cache,
    fetches: BTreeMap<IndirectId, Fetch>,
    flights: data::Flights,
    prefetch: Prefetch,
    jobs: Slab<Job>,
    /// The requests for which the volume has no thread yet.
    waiting: VecDeque<Request>,
    /// The requests that ended in this call, where a processor is charged.
    ended: Vec<Finished>,
    reads: Slab<io::Read>,
    writes: Slab<io::Write>,
    commands: Slab<io::Command>,
    timers: BinaryHeap<Reverse<(Nanos, u64, Timer)>>,
    timer_count: u64,
    txg: txg::Groups,
    log: log::Log,
    scan: scan::Scan,
    /// The last sequential write: its end, and the number of blocks written up to there
    /// without a gap.
    stream: (u64, u64),
    /// The start of the last read or write other than the resilver's: the resilver is slowed while
    /// this is recent.
    last_foreground: Option<Nanos>,
}

impl Pool {
    /// Creates a pool with all members in sync and an empty volume. `random` gives the age of the
    /// first transaction group.
    ///
    /// # Errors
    /// The errors of [`PoolConfig::check`].
    pub fn new(config: PoolConfig, mut random: Stream) -> Result<Self, ConfigError> {
        config.check()?;
        let map = BlockMap::new(&config);
        let blocks = map.volume_blocks();
        let first_deadline = Nanos(random.below(config.txg_timeout.0));
        let selection: Box<dyn ReadPolicy> = match config.selection {
            ChildSelection::FreeBsd10 | ChildSelection::OpenZfs2 => {
                Box::new(ZfsFreebsd10::new(config.members.len()))
            }
            ChildSelection::Zol06 => Box::new(Zol06),
        };
        let views = config.members.iter().map(|member| MemberView {
            readable_below: Sectors(u64::MAX),
            pending: 0,
            rotational: member.rotational,
            write_mostly: false,
        });
        Ok(Self {
            selection,
            views: views.collect(),
            leaves: config
                .members
                .iter()
                .map(|member| io::Leaf::new(config.queue.of(member)))
                .collect(),
            cache: Cache::new(&config, [map.indirect_blocks(1), map.indirect_blocks(2)]),
            map,
            fetches: BTreeMap::new(),
            flights: data::Flights::new(),
            prefetch: Prefetch::new(config.prefetch, blocks, config.volume_block),
            jobs: Slab::new(),
            waiting: VecDeque::new(),
            ended: Vec::new(),
            reads: Slab::new(),
            writes: Slab::new(),
            commands: Slab::new(),
            timers: BinaryHeap::new(),
            timer_count: 0,
            txg: txg::Groups::new(first_deadline),
            log: log::Log::default(),
            scan: scan::Scan::default(),
            stream: (0, 0),
            last_foreground: None,
            config,
        })
    }

    /// The volume's size, in sectors of 512 bytes.
    #[must_use]
    pub const fn size(&self) -> Sectors {
        self.config.volume_size
    }

    /// The distance of a volume's sector from the start on the disks after a sequential fill,
    /// without metadata, which add less than a percent.
    #[must_use]
    pub const fn placed(&self, sector: Sectors) -> Sectors {
        let block = self.map.block_sectors();
        Sectors(sector.0 / block * self.map.placed_sectors() + sector.0 % block)
    }

    /// The members' states in mdstat's letters: `U` in sync, `_` otherwise.
    #[must_use]
    pub fn health(&self) -> String {
        let letter = |leaf: &io::Leaf| if leaf.is_readable() { 'U' } else { '_' };
        self.leaves.iter().map(letter).collect()
    }

    /// Whether the pool is idle: no request or command in flight and nothing dirty. A running
    /// resilver is not idle unless it is frozen.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty()
            && self.waiting.is_empty()
            && self.commands.is_empty()
            && self.txg.is_clean()
            && self.log.is_quiet()
            && self.scan.is_quiet()
    }

    /// Takes a new request, which finishes in this or a later call.
    pub fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs) {
        let end = request.start.0.checked_add(request.count.0);
        let in_range = end.is_some_and(|end| end <= self.size().0) && request.count.0 > 0;
        match request.operation {
            Operation::Flush => {
                self.commit(now, vec![request.id], out);
                self.issue(out);
            }
            _ if !in_range => finish(request.id, Err(RequestError::OutOfRange), out),
            _ => {
                self.waiting.push_back(request);
                self.begin_waiting(now, out);
                self.issue(out);
            }
        }
        out.finished.append(&mut self.ended);
    }

    /// Begins with the requests for which the volume has a thread.
    fn begin_waiting(&mut self, now: Nanos, out: &mut Outputs) {
        let threads = self.config.volume_threads.unwrap_or(usize::MAX);
        while self.jobs.len() + self.log.commits() < threads
            && let Some(request) = self.waiting.pop_front()
        {
            if request.operation == Operation::Discard {
                self.discard(now, request);
                continue;
            }
            let block = self.map.block_sectors();
            let job = self.jobs.insert(Job {
                request,
                next: request.start.0 / block,
                end: (request.start.0 + request.count.0).div_ceil(block),
                ahead: None,
                pending: 0,
                missed: false,
                failed: false,
            });
            self.step_job(now, job, out);
        }
    }

    fn discard(&mut self, now: Nanos, request: Request) {
        let block = self.map.block_sectors();
        let first = request.start.0.div_ceil(block);
        let end = (request.start.0 + request.count.0) / block;
        if first < end {
            self.free(first, end);
        }
        let job = self.jobs.insert(Job {
            request,
            next: end,
            end,
            ahead: None,
            pending: 0,
            missed: false,
            failed: false,
        });
        let time = self.config.write_time.request;
        self.finish_at(now + time, job);
    }

    /// Handles the completion of a member's command.
    pub fn complete(
        &mut self,
        now: Nanos,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        self.command_done(now, command, result, out);
        self.begin_waiting(now, out);
        self.issue(out);
        out.finished.append(&mut self.ended);
    }

    /// Does everything due at `now`: called at or after [`next_tick`](Self::next_tick).
    pub fn tick(&mut self, now: Nanos, out: &mut Outputs) {
        while let Some(&Reverse((at, _, timer))) = self.timers.peek() {
            if at > now {
                break;
            }
            self.timers.pop();
            match timer {
                Timer::Admit(job) => self.admitted(now, job),
                Timer::Finish(job) => self.finish_job(now, job, out),
                Timer::Emit => self.emit(now, out),
                Timer::Scan => self.scan_step(now, out),
                Timer::Log => self.send_open_block(now, out),
            }
        }
        self.begin_waiting(now, out);
        self.start_sync_if_due(now, out);
        self.issue(out);
        out.finished.append(&mut self.ended);
    }

    /// The time at which [`tick`](Self::tick) is next needed; `None` if not before the next
    /// request or completion.
    #[must_use]
    pub fn next_tick(&self) -> Option<Nanos> {
        let timer = self.timers.peek().map(|Reverse((at, _, _))| *at);
        match (timer, self.sync_due()) {
            (Some(timer), Some(sync)) => Some(timer.min(sync)),
            (timer, sync) => timer.or(sync),
        }
    }

    /// Takes `[start, start + count)` as written sequentially from the current allocation position:
    /// the driver's way past hours of sequential writing. The caches hold the latest data. An empty
    /// range changes nothing. Only while the pool [is idle](Self::is_idle).
    pub fn leap_write(&mut self, start: Sectors, count: Sectors) {
        let block = self.map.block_sectors();
        let (first, end) = (start.0 / block, (start.0 + count.0).div_ceil(block));
        if count == Sectors::ZERO {
            return;
        }
        // The stream displaces the earlier contents of the cache.
        if end - first >= self.cache.capacity() {
            self.cache.forget_data();
        }
        self.map.write_interleaved(first, end);
        self.note_stream(first, end);
        let kept = self.cache.indirect_limit() * self.map.pointers();
        let kept = first.max(end.saturating_sub(kept));
        for level in [2, 1] {
            let low = self.map.indirect_index(level, kept);
            for index in low..=self.map.indirect_index(level, end - 1) {
                self.cache.insert_indirect(IndirectId { level, index });
            }
        }
        let kept = first.max(end.saturating_sub(self.cache.capacity()));
        self.cache.insert_data(kept, end);
    }

    /// Whether one sequential write has continued for so long that nothing else is left in the
    /// cache, so that it is steady.
    #[must_use]
    pub const fn streams_evenly(&self) -> bool {
        self.stream.1 >= self.cache.capacity()
    }

    /// Drops the host's caches: data beyond what the cache always keeps are evicted, where the
    /// configuration says so.
    pub fn drop_caches(&mut self) {
        if let Some(kept) = self.config.kept_when_dropped {
            self.cache.keep_data(kept.0 / self.config.volume_block.0);
        }
    }

    /// The capacity of the cache.
    #[must_use]
    pub const fn cache_size(&self) -> Bytes {
        self.config.cache
    }

    fn note_stream(&mut self, first: u64, end: u64) {
        let before = if self.stream.0 == first {
            self.stream.1
        } else {
            0
        };
        self.stream = (end, before + (end - first));
    }

    fn set_timer(&mut self, at: Nanos, timer: Timer) {
        self.timer_count += 1;
        self.timers.push(Reverse((at, self.timer_count, timer)));
    }

    /// The bytes of a number of volume blocks.
    const fn block_bytes(&self, blocks: u64) -> Bytes {
        Bytes(self.config.volume_block.0 * blocks)
    }
}

fn finish(id: RequestId, result: Result<(), RequestError>, out: &mut Outputs) {
    out.finished.push(Finished { id, result });
}
