//! RAID 4, 5 and 6 as Linux 6.12 does them (drivers/md/raid5.c), for arrays without bytes: the
//! commands that the real md sends to each disk, and when.
//!
//! raidlab's own arrays are [`StripeArray`](raidlab_array::StripeArray). This engine is for
//! predicting md, whose figures depend as much on the order of its work as on the amount of it:
//!
//! * **The stripe cache.** A stripe is a block of 4 KiB of each member. Everything
//!   but the reads of an array that is whole goes through a cache of 256 of them
//!   (`cache`). Blocks that a stripe has read or written stay in it until its place is
//!   taken, so a stream of small writes reads each old block once, and writes that
//!   come while a stripe reads for another one are included.
//! * **A process that finds no stripe sleeps** (`walk`): a writer in the middle of its request,
//!   a reader of a degraded array, the sync. The stripes that the sleeper has gathered by then
//!   are handled as they are, which may need reads.
//! * **One thread** does all work on stripes (`handle`), in turns of eight (`MAX_STRIPE_BATCH`), in
//!   the order in which they were released. Between two turns processes whose requests have ended
//!   may submit; one that slept for a stripe goes on when the thread has nothing left, and with a
//!   processor as soon as a stripe is free. What the thread sends leaves at the end of its run,
//!   merged (`commands`). While it writes bitmap pages or superblocks it does nothing else.
//!
//! Left out: a write error fails the member.

mod cache;
mod commands;
mod engine;
mod handle;
mod members;
mod stripe;
mod sync;
#[cfg(test)]
mod tests;
mod waits;
mod walk;

use cache::Cache;
use commands::{Command, DirectRead, Plugged};
use raidlab_array::parts::{MemberRules, Members, Requests, Senders, Slab, SyncWalk};
use raidlab_array::{
    CommandId, Engine, Imitation, NeededSync, Operation, Outputs, RecoveryConfig, Request,
    RequestError, RequestId, RmwLevel, Sender, StripeConfig, StripeConfigError, WritePolicy,
};
use raidlab_geometry::StripeMap;
use raidlab_units::{Nanos, Sectors, Span};
use std::collections::{BTreeMap, VecDeque};
use sync::SyncThread;
use walk::{PIECE, RequestWalk, Walkers};

/// Sectors of a stripe's block.
const BLOCK: u64 = 8;

/// The process number of the thread's own work: no process sleeps for it.
const NOBODY: u32 = u32::MAX;

/// The number of stripes of a turn (drivers/md/raid5.h, `MAX_STRIPE_BATCH`).
const TURN: usize = 8;

/// A RAID 4, 5 or 6 as md runs it, without I/O, clock or bytes.
#[derive(Debug)]
pub struct Raid5d {
    map: StripeMap,
    write_policy: WritePolicy,
    recovery: RecoveryConfig,
    /// Sectors of the longest command.
    longest_command: u64,
    now: Nanos,
    members: Members,
    /// The sector of the data areas from which on parity may not fit (`resync_offset`); `None`:
    /// it fits everywhere.
    parity_fits_below: Option<u64>,
    requests: Requests,
    commands: Slab<Command>,
    commands_in_flight: usize,
    /// The further chunks of commands that read several chunks past the cache.
    further: BTreeMap<CommandId, Vec<(u64, u64)>>,
    cache: Cache,
    /// The blocks that the thread has sent in this run.
    plugged: Vec<Plugged>,
    senders: Senders,
    /// Whether the thread is in a run that is not over.
    is_running: bool,
    /// The thread whose turn the next tick is, if threads take their time.
    turn_of: Option<usize>,
    /// The stripes of each thread that takes its time and is not done.
    turns: BTreeMap<usize, Vec<u64>>,
    /// Whether the thread is writing metadata, during which it does nothing else.
    is_stalled: bool,
    asleep: VecDeque<RequestWalk>,
    /// The requests on their way to stripes; `None` if that takes no time.
    walkers: Option<Walkers>,
    sync_thread: SyncThread,
    walk: SyncWalk,
}

impl Raid5d {
    /// An array whose members contain what the configuration says. The limit of windows, the write
    /// log and the rule for prereads in it are ignored. Where the array has to be resynced, parity
    /// may not fit, and writes there rebuild it.
    ///
    /// # Errors
    /// When there is no such array or a member cannot be part of it.
    pub fn new(
        config: StripeConfig,
        resync: Option<&NeededSync>,
    ) -> Result<Self, StripeConfigError> {
        if config.stripes < cache::LISTS {
            return Err(StripeConfigError::Stripes {
                stripes: config.stripes,
                least: cache::LISTS,
            });
        }
        let (map, _) = config.check()?;
        let rules = MemberRules {
            blocks: Some((map.member_size(), BLOCK)),
            reads_filled: true,
            record_failures: true,
        };
        let longest = config.sync.merged.unwrap_or(LONGEST_COMMAND);
        let limits = config.sync.threads.map(|it| (it.requests, it.others));
        Ok(Self {
            map,
            write_policy: config.write_policy,
            longest_command: longest.to_sectors().0.max(BLOCK),
            now: Nanos::ZERO,
            members: Members::new(config.members, rules),
            parity_fits_below: resync.map(|resync| resync.from.0),
            requests: Requests::default(),
            commands: Slab::new(),
            commands_in_flight: 0,
            further: BTreeMap::new(),
            cache: Cache::new(config.stripes),
            plugged: Vec::new(),
            senders: Senders::with_limits(limits, longest.to_sectors()),
            is_running: false,
            turn_of: None,
            turns: BTreeMap::new(),
            is_stalled: false,
            asleep: VecDeque::new(),
            walkers: None,
            sync_thread: SyncThread::default(),
            walk: SyncWalk::new(config.sync.throttle, config.sync.checkpoint, true),
            recovery: config.sync,
        })
    }

    /// A boxed array, for [`EngineOptions::parity`](raidlab_array::EngineOptions::parity).
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn build(
        config: StripeConfig,
        resync: Option<&NeededSync>,
    ) -> Result<Box<dyn Engine>, StripeConfigError> {
        Ok(Box::new(Self::new(config, resync)?))
    }

    /// Whether more members are lost than the level tolerates.
    fn is_broken(&self) -> bool {
        self.members.in_sync().len() < self.map.data_count()
    }

    fn is_whole(&self) -> bool {
        self.members.in_sync().len() == self.map.members()
    }

    fn parity_is_due(&self, number: u64) -> bool {
        self.parity_fits_below
            .is_some_and(|below| number * BLOCK >= below)
    }

    fn may_modify(&self) -> bool {
        self.write_policy != WritePolicy::Md4_1(RmwLevel::Disabled)
    }

    /// Reports the work done on stripes since the last report.
    fn tell_work(&mut self, out: &mut Outputs) {
        out.work.add(std::mem::take(&mut self.cache.work));
    }

    /// Records that one part of a request is done.
    fn settle(&mut self, id: RequestId, result: Result<(), RequestError>, out: &mut Outputs) {
        self.requests.settle(id, result, &self.members, out);
    }

    /// Returns the chunks of a read, as the first sector of the array and the number of sectors, in
    /// the order in which they leave. The block layer first cuts a piece of 1 MiB off the read and
    /// puts the rest of it on a list (`max_hw_sectors`, which is `RAID5_MAX_REQ_STRIPES`); then md
    /// cuts a chunk off the piece and puts the rest of that behind (`raid5_read_one_chunk`). What
    /// comes off the list is cut likewise, and its rest goes before all earlier entries
    /// (block/blk-core.c, `__submit_bio_noacct`). So the first chunk of each piece leaves, then the
    /// rest of the last piece, and that of the first one at the end.
    fn chunks_of(&self, request: &Request) -> Vec<(u64, u64)> {
        let (start, end) = (request.start.0, request.start.0 + request.count.0);
        let chunk = self.map.chunk().0;
        let step = usize::try_from(PIECE).unwrap_or(usize::MAX);
        let cut = |piece: u64| {
            let end = end.min(piece + PIECE);
            let next = move |at: &u64| Some((at / chunk + 1) * chunk).filter(|next| *next < end);
            let starts = std::iter::successors(Some(piece), next);
            starts.map(move |at| (at, ((at / chunk + 1) * chunk).min(end) - at))
        };
        let pieces: Vec<u64> = (start..end).step_by(step).collect();
        let firsts = pieces.iter().filter_map(|piece| cut(*piece).next());
        let rests = pieces.iter().rev().flat_map(|piece| cut(*piece).skip(1));
        firsts.chain(rests).collect()
    }

    /// Reads an array that is whole: each chunk from its member
    /// (`chunk_aligned_read`).
    fn read_directly(&mut self, request: &Request, out: &mut Outputs) {
        let mut reads = Vec::new();
        for (at, count) in self.chunks_of(request) {
            let place = self.map.locate(Sectors(at));
            let start = self.map.member_sector(place.row, place.offset).0;
            let slot = self.map.row(place.row).data_slot(place.index);
            if self.members.is_bad(slot, Span::new(start, start + count)) {
                self.read_by_stripes(request.id, at, count, out);
            } else {
                self.requests.add_part(request.id);
                let chunks = vec![(at, count)];
                reads.push(DirectRead {
                    slot,
                    start,
                    count,
                    chunks,
                });
            }
        }
        self.send_directly(request.id, reads, out);
    }

    /// Reads a range through the cache, for a request that is not answered before.
    fn read_by_stripes(&mut self, id: RequestId, start: u64, count: u64, out: &mut Outputs) {
        self.requests.add_part(id);
        let request = Request {
            id,
            operation: Operation::Read,
            start: Sectors(start),
            count: Sectors(count),
            force_unit_access: false,
            process: NOBODY,
        };
        self.walk(RequestWalk::new(&request), out);
    }

    /// Takes a request as far into the cache as there are stripes; one behind another of the same
    /// process that sleeps is not submitted yet.
    fn walk(&mut self, mut walk: RequestWalk, out: &mut Outputs) {
        if self.holds_submitter(walk.process) {
            self.sleep(walk);
            return;
        }
        while let Some(stop) = walk.next(&self.map) {
            let number = stop.number;
            if !self.cache.acquire(number) {
                if self.cache.wakes(number) {
                    self.cache.unblock();
                    continue;
                }
                self.sleep(walk);
                return;
            }
            if !walk.reads && !self.cache.stripe(number).takes(walk.parts()) {
                // The process sleeps, its plug is emptied, and it comes back when the thread has
                // taken over what is there (`make_stripe_request`, `STRIPE_SCHEDULE_AND_RETRY`).
                self.cache.release(number);
                self.sleep(walk);
                return;
            }
            let parts = walk.pass().map(|stop| stop.parts).unwrap_or_default();
            for _ in &parts {
                self.requests.add_part(walk.request);
            }
            let stripe = self.cache.stripe(number);
            stripe.wants_handling = true;
            if walk.reads {
                let reads = parts.iter().map(|part| (part.slot, walk.request));
                stripe.reads.extend(reads);
            } else {
                stripe.writes.extend(parts);
            }
            walk.plugged.push(number);
            self.join_batch(number);
            if let Some(walkers) = &mut self.walkers
                && walk.process != NOBODY
            {
                out.on_their_way.push(walk.process);
                walkers.walks.push_back(walk);
                return;
            }
        }
        self.unplug(&mut walk);
        self.settle(walk.request, Ok(()), out);
    }

    /// Moves a request on from the stripe that it reached. Without any plug it releases the
    /// stripe, but one that may head a batch only when it has reached the next such stripe
    /// (`batch_last` in `raid5_make_request`).
    fn walk_on(&mut self, process: u32, out: &mut Outputs) {
        let Some(walkers) = &mut self.walkers else {
            return;
        };
        let mut walks = walkers.walks.iter();
        let at = walks.position(|walk| walk.process == process);
        let Some(mut walk) = at.and_then(|at| walkers.walks.remove(at)) else {
            return;
        };
        if !walkers.has_plug
            && !walk.has_own_plug
            && let Some(last) = walk.plugged.pop()
        {
            if self.cache.stripe(last).can_batch(self.map.data_count()) {
                self.unplug(&mut walk);
                walk.plugged.push(last);
            } else {
                self.cache.release(last);
            }
        }
        self.walk(walk, out);
    }

    /// Adds a stripe that is written wholly to the batch of the one before.
    fn join_batch(&mut self, number: u64) {
        let data = self.map.data_count();
        let chunk = self.map.chunk().0 / BLOCK;
        if number.is_multiple_of(chunk) || !self.cache.stripe(number).can_batch(data) {
            return;
        }
        let Some(before) = self.cache.find(number - 1) else {
            return;
        };
        if !before.is_active || !before.can_batch(data) {
            return;
        }
        let head = before.head.unwrap_or(number - 1);
        let stripe = self.cache.stripe(number);
        if stripe.head.is_some() || !stripe.batch.is_empty() {
            return;
        }
        stripe.head = Some(head);
        stripe.references += 1;
        self.cache.stripe(head).batch.push(number);
    }

    /// Puts a process with a request to sleep: its plug is emptied (kernel/sched/core.c,
    /// `sched_submit_work`). Others of its requests may be under way with stripes of that plug, as
    /// those that waited for the bitmap's pages are submitted all at once.
    fn sleep(&mut self, mut walk: RequestWalk) {
        self.unplug(&mut walk);
        let all = self.walkers.iter_mut().flat_map(|it| &mut it.walks);
        for other in all.filter(|other| other.process == walk.process) {
            for number in other.plugged.drain(..) {
                self.cache.release(number);
            }
        }
        self.asleep.push_back(walk);
    }

    fn unplug(&mut self, walk: &mut RequestWalk) {
        for number in walk.plugged.drain(..) {
            self.cache.release(number);
        }
    }

    /// Whether the thread may run, and has something to do.
    fn wants_turn(&self) -> bool {
        !self.is_stalled
            && !self.senders.is_asleep(Sender::Thread)
            && self.members.unrecorded().is_empty()
            && (self.is_running || self.cache.has_ready())
    }

    /// Starts a thread's turn: it handles the next few stripes, and keeps them until the turn ends.
    fn take_turn(&mut self, thread: Option<usize>, out: &mut Outputs) {
        let next = std::iter::from_fn(|| self.cache.next_ready());
        let turn: Vec<_> = next.take(TURN).collect();
        self.cache.work.taken += u32::try_from(turn.len()).unwrap_or(u32::MAX);
        for number in &turn {
            self.handle(*number, out);
        }
        match thread {
            Some(thread) => {
                self.turns.insert(thread, turn);
            }
            None => {
                self.is_running = true;
                self.let_go(turn, out);
            }
        }
    }

    /// Ends a turn: its stripes are released, and a thread without further stripes ends.
    fn let_go(&mut self, turn: Vec<u64>, out: &mut Outputs) {
        for number in turn {
            self.cache.release(number);
        }
        if !self.cache.has_ready() {
            self.is_running = false;
            self.cache.grow_if_wanted();
            self.unplug_members(out);
            self.wake(out);
        } else if self.walkers.is_some() {
            // As soon as there are free ones (`release_inactive_stripe_list`): a thread that takes
            // its time may not come to an end for long.
            self.wake(out);
        }
    }

    /// Resumes the requests that slept for a stripe that is free now, and writes whose place no other
    /// write waits for any more.
    fn wake(&mut self, out: &mut Outputs) {
        for mut walk in std::mem::take(&mut self.asleep) {
            let number = walk.next(&self.map).map_or(0, |stop| stop.number);
            let stripe = self.cache.find(number).filter(|_| !walk.reads);
            let overlaps = stripe.is_some_and(|stripe| !stripe.takes(walk.parts()));
            if overlaps || !self.cache.wakes(number) {
                self.asleep.push_back(walk);
            } else if let Some(walkers) = &mut self.walkers
                && walk.process != NOBODY
            {
                out.on_their_way.push(walk.process);
                walkers.walks.push_back(walk);
            } else {
                self.cache.unblock();
                self.walk(walk, out);
            }
        }
    }
}

/// The longest command of a virtio disk: 254 pages.
const LONGEST_COMMAND: raidlab_units::Bytes = raidlab_units::Bytes(1016 << 10);
