//! RAID 4, 5 and 6 as Linux 6.12 does them (drivers/md/raid5.c), for arrays without
//! bytes: what the real md sends to which disk, and when.
//!
//! raidlab's own arrays are [`StripeArray`](raidlab_array::StripeArray). This engine is for
//! predicting md, whose figures come as much from how it goes about its work as from
//! what it has to do:
//!
//! * **The stripe cache.** A stripe is a block of 4 KiB of each member. Everything
//!   but the reads of an array that is whole goes through a cache of 256 of them
//!   (`cache`). What a stripe has read or written stays in it until its place is
//!   taken, so a stream of small writes reads each old block once, and writes that
//!   come while a stripe reads for another one are taken along.
//! * **Who finds no stripe, sleeps** (`walk`): a writer in the middle of its request,
//!   a reader of a degraded array, the sync. What the sleeper has put together by then
//!   is let go as it is, and read for.
//! * **One thread** does all work on stripes (`handle`), in turns of eight
//!   (`MAX_STRIPE_BATCH`), in the order in which they were let go. Between two turns
//!   those may submit whose requests have ended; who slept for a stripe goes on when
//!   the thread has nothing left. What the thread sends leaves at the end of its run,
//!   merged (`commands`). While it writes bitmap pages or superblocks nothing else goes
//!   on.
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

/// The process of what a thread does for itself: nobody sleeps for it.
const NOBODY: u32 = u32::MAX;

/// Stripes of a turn (drivers/md/raid5.h, `MAX_STRIPE_BATCH`).
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
    /// From here on parity may not fit (`resync_offset`); `None`: it fits everywhere.
    parity_fits_below: Option<u64>,
    requests: Requests,
    commands: Slab<Command>,
    commands_in_flight: usize,
    /// Further chunks of reads past the cache that are one command.
    further: BTreeMap<CommandId, Vec<(u64, u64)>>,
    cache: Cache,
    /// What the thread has sent in this run.
    plugged: Vec<Plugged>,
    senders: Senders,
    /// The thread is in a run that is not over.
    is_running: bool,
    /// Whose turn the next tick is, if threads take their time.
    turn_of: Option<usize>,
    /// What threads have that took their time and are not done.
    turns: BTreeMap<usize, Vec<u64>>,
    /// The thread writes metadata, and does nothing else meanwhile.
    is_stalled: bool,
    asleep: VecDeque<RequestWalk>,
    /// Requests on their way; `None`: that takes no time.
    walkers: Option<Walkers>,
    sync_thread: SyncThread,
    walk: SyncWalk,
}

impl Raid5d {
    /// An array whose members hold what the configuration says. Of it, the limit of
    /// windows, the write log and the rule for prereads are not looked at. Where it has
    /// to be resynced, parity may not fit, and writes there rebuild it.
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
            senders: Senders::new(
                config
                    .sync
                    .threads
                    .map(|it| (it.requests, longest.to_sectors())),
            ),
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

    /// The same for [`EngineOptions::parity`](raidlab_array::EngineOptions::parity).
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn build(
        config: StripeConfig,
        resync: Option<&NeededSync>,
    ) -> Result<Box<dyn Engine>, StripeConfigError> {
        Ok(Box::new(Self::new(config, resync)?))
    }

    /// More members lost than the level can bear.
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

    /// Hands over what was done to stripes since the last time.
    fn tell_work(&mut self, out: &mut Outputs) {
        out.work.add(std::mem::take(&mut self.cache.work));
    }

    /// A request's part is done.
    fn settle(&mut self, id: RequestId, result: Result<(), RequestError>, out: &mut Outputs) {
        self.requests.settle(id, result, &self.members, out);
    }

    /// The chunks of a read, as sectors of the array and how many, in the order in which
    /// they leave. The block layer first cuts a piece of 1 MiB off the read and puts what is
    /// left of it on a list (`max_hw_sectors`, which is `RAID5_MAX_REQ_STRIPES`); then md
    /// cuts a chunk off the piece and puts what is left of that behind
    /// (`raid5_read_one_chunk`). What comes off the list is cut likewise, and what it
    /// leaves goes before all that was there (block/blk-core.c, `__submit_bio_noacct`). So the
    /// first chunk of each piece leaves, then the rest of the last piece, and that of the first
    /// one at the end.
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

    /// Reads a range through the cache, for a request that goes on.
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

    /// Brings a request as far into the cache as there are stripes; one behind another
    /// of the same process that sleeps is not submitted yet.
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

    /// A request has been at a stripe, and goes on. Without a plug it lets go of it, but of one
    /// that may head a batch only when it has been at the next such stripe (`batch_last` in
    /// `raid5_make_request`).
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

    /// A stripe that is written wholly joins the batch of the one before.
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

    /// A process sleeps with a request: its plug is emptied (kernel/sched/core.c,
    /// `sched_submit_work`). Others of its requests may be on their way with what it has there,
    /// as what waited for the bitmap's pages comes all at once.
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

    /// A thread handles the next few stripes, and has them until its turn is over.
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

    /// A turn is over: its stripes go where they belong, and who finds no more ends.
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

    /// Those go on who slept for a stripe that is free now.
    fn wake(&mut self, out: &mut Outputs) {
        for mut walk in std::mem::take(&mut self.asleep) {
            let number = walk.next(&self.map).map_or(0, |stop| stop.number);
            if !self.cache.wakes(number) {
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

/// What a virtio disk takes in one command: 254 pages.
const LONGEST_COMMAND: raidlab_units::Bytes = raidlab_units::Bytes(1016 << 10);
