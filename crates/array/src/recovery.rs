//! Recovery and resync of levels with copies: when the next block may be copied.
//!
//! One sync runs at a time, as a walk ([`SyncWalk`]). *Recovery* fills the members that were added
//! (those added later wait for the next one); *resync* makes the other members of a dirty mirror
//! equal to the lowest one. The range is walked upwards in blocks of a fixed size, up to `depth` at
//! a time: read from one member in sync, then write to every target. *Check* and *repair* walk
//! likewise, and read all copies. This file decides; the array executes.
//!
//! Positions are array sectors, except in the recovery of a RAID 10, which fills one member at a
//! time and walks the sectors of its data area: the array maps positions to sectors (`Placement`).
//! Positions without content, and those that a sync by ranges leaves out, are skipped at no cost.
//!
//! A block that the walk would begin must be admitted by the write barrier (see `barrier`), before
//! which it may have to sleep to let writes pass. Where blocks are merged, all that pass in the
//! same instant and lie side by side are one command, as in the plug of md's sync thread.
//!
//! A member that fails leaves the targets; with none left the sync is aborted once its blocks in
//! flight have finished. A block that no member can read fails the targets. The new member is
//! marked in sync only after every block was written to it.

mod barrier;
mod block;
pub(crate) mod config;
mod data_areas;
mod md_rules;
mod plug_rule;
mod status;
mod throttle;
mod waits;
mod walk;

pub use config::{
    CheckpointRule, MdThreads, ReadRecovered, RecoveringWrites, RecoveryConfig,
    RecoveryConfigError, SyncSource, Throttle, WriteBarrier,
};
pub use md_rules::MdRules;
pub use plug_rule::{is_plug_full, tried_in_plug};
pub use status::{SyncKind, SyncStatus};
pub use throttle::{Governor, Pause};
pub use walk::{Plan, Step, SyncWalk};

pub(crate) use barrier::{Barrier, WriteTicket};
pub(crate) use block::{Block, NewBlock, is_part, part};

use crate::member::Members;
use crate::mutation::{self, Mutation};
use crate::request::ScratchId;
use barrier::{Courtesy, Front};
use raidlab_geometry::SlotSet;
use raidlab_units::{Nanos, Sectors, Span, SpanSet};

/// The content of a position of a sync.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    /// The array sector that lies at the position; `None` where no array sector does.
    pub(crate) array: Option<Sectors>,
    /// The number of sectors for which that is so.
    pub(crate) contiguous: Sectors,
}

impl Placement {
    /// Returns the placement without content where a sync is restricted to other array sectors.
    fn within(mut self, ranges: Option<&SpanSet>) -> Self {
        if let (Some(start), Some(ranges)) = (self.array, ranges) {
            let (is_inside, until) = ranges.at(start);
            self.array = self.array.filter(|_| is_inside);
            self.contiguous = self.contiguous.min(until - start);
        }
        self
    }
}

/// The syncs of an array of copies.
#[derive(Debug)]
pub(crate) struct Recovery {
    config: RecoveryConfig,
    block: Sectors,
    pub(crate) walk: SyncWalk,
    /// The array sectors to which the sync is restricted.
    ranges: Option<SpanSet>,
    blocks: Vec<Option<Block>>,
    in_flight: u32,
    /// Whether the sleep that lets writes pass was taken before this block, or was not owed.
    was_courteous: bool,
    /// The time until which processes that submit requests run before the sync.
    yields_until: Option<Nanos>,
    /// Whether the sync's thread sleeps until a disk has a request for it.
    pub(crate) is_asleep: bool,
    barrier: Barrier,
}

impl Recovery {
    pub(crate) fn new(config: RecoveryConfig) -> Self {
        let block = config.block.to_sectors();
        Self {
            block,
            walk: SyncWalk::new(config.throttle, config.checkpoint, true),
            ranges: None,
            blocks: vec![None; config.depth as usize],
            in_flight: 0,
            was_courteous: false,
            yields_until: None,
            is_asleep: false,
            barrier: Barrier::new(config.barrier, block, config.depth),
            config,
        }
    }

    pub(crate) const fn config(&self) -> &RecoveryConfig {
        &self.config
    }

    /// Returns the sector below which reads may rely on the sync.
    pub(crate) fn readable_below(&self) -> Sectors {
        match self.config.read_recovered {
            ReadRecovered::AtEnd => Sectors::ZERO,
            ReadRecovered::BelowCheckpoint => self.walk.checkpoint(),
            ReadRecovered::BelowPosition => self.walk.position(),
        }
    }

    pub(crate) fn status(&self) -> Option<SyncStatus> {
        let status = self.walk.status(self.readable_below())?;
        Some(SyncStatus {
            in_flight: self.in_flight + u32::from(self.barrier.raised().is_some()),
            ..status
        })
    }

    /// Begins a sync, restricted to some array sectors.
    pub(crate) fn begin(
        &mut self,
        now: Nanos,
        plan: Plan,
        ranges: Option<SpanSet>,
        members: &Members,
    ) {
        self.ranges = ranges;
        self.was_courteous = false;
        self.walk.begin(now, plan, members);
    }

    /// Ends the sync as soon as the blocks in flight have ended ([`SyncWalk::cancel`]).
    pub(crate) fn cancel(&mut self) {
        self.walk.cancel();
        if self.walk.is_running() {
            self.barrier.lower();
        }
    }

    /// Whether a resync reads all copies and writes only those that differ, as md's
    /// RAID 10 does.
    pub(crate) fn resync_compares(&self) -> bool {
        self.config.threads.is_some() && self.config.barrier == WriteBarrier::MdArray
    }

    pub(crate) const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns the array sectors of the blocks in flight.
    pub(crate) fn ranges_in_flight(&self) -> impl Iterator<Item = Span> {
        self.blocks.iter().flatten().map(|block| block.range)
    }

    /// Ends the sync; returns the lowest position that was not begun.
    pub(crate) fn end(&mut self) -> Sectors {
        self.barrier.sync_ended();
        self.walk.end()
    }

    /// Removes a member that no longer takes part; `left` is the rest of the sync's members.
    pub(crate) fn retarget(&mut self, left: SlotSet) {
        self.walk.retarget(left);
        if left.is_empty() && self.walk.is_running() {
            self.barrier.lower();
        }
    }

    /// Returns the positions to be copied or compared, of a mirror.
    pub(crate) fn rest(&self) -> SpanSet {
        let rest = self.walk.rest();
        let wanted = self.ranges.as_ref();
        wanted.map_or_else(|| rest.clone(), |ranges| rest.common(ranges))
    }

    /// Skips part of the sync for the driver: time passed and everything below `position` was
    /// copied, of these positions if they are known. Returns false where that is impossible.
    pub(crate) fn leap(&mut self, now: Nanos, position: Sectors, wanted: Option<SpanSet>) -> bool {
        if self.barrier.raised().is_some() {
            return false;
        }
        if let Some(wanted) = wanted {
            self.walk.restrict(wanted);
        }
        let position = position.max(self.walk.next());
        self.walk.leap(now, position).is_some()
    }

    /// Lets submitting processes run before the sync, as a process that waited at the barrier goes
    /// on, or an answer was given ([`MdThreads`]).
    pub(crate) fn yield_to_submitters(&mut self, now: Nanos) {
        if let Some(threads) = self.config.threads
            && self.walk.is_running()
            && self.config.barrier == WriteBarrier::MdArray
        {
            self.yields_until = Some(now + threads.turnaround);
        }
    }

    /// Returns the time until which the sync leaves the processor to submitting processes.
    pub(crate) const fn yields_until(&self) -> Option<Nanos> {
        self.yields_until
    }

    /// Ends the precedence of submitting processes when its time has passed.
    pub(crate) fn end_yield(&mut self, now: Nanos) {
        self.yields_until = self.yields_until.filter(|until| now < *until);
    }

    /// Returns the next step; called until it returns `Wait`. `writes` gives the ranges of the
    /// writes in flight, `place` the content of a position.
    pub(crate) fn step(
        &mut self,
        now: Nanos,
        members: &Members,
        writes: impl Iterator<Item = Span>,
        place: &dyn Fn(Sectors) -> Placement,
    ) -> Step<NewBlock> {
        if self.yields_until.is_some() || self.is_asleep {
            return Step::Wait;
        }
        // A block that has raised the barrier goes through even when frozen:
        // writes wait for it.
        let mut step = Step::Block(self.walk.next());
        if self.barrier.raised().is_none() {
            self.skip_unwanted(place);
            step = self.walk.step(now, members);
            if matches!(step, Step::Block(_)) && self.sleeps_first(now) {
                return Step::Wait;
            }
        }
        step.with_block(|| self.admit(now, members, writes, place))
    }

    /// Skips positions that have no content or are not wanted.
    fn skip_unwanted(&mut self, place: &dyn Fn(Sectors) -> Placement) {
        while let Some(next) = self.walk.todo().filter(|_| !self.walk.is_stopping()) {
            let placement = place(next).within(self.ranges.as_ref());
            if placement.array.is_some() {
                return;
            }
            // Straight to the end where no content follows.
            let until = next.0.saturating_add(placement.contiguous.0);
            self.walk.pass_over(Sectors(until));
        }
    }

    /// Handles the end of a block whose copies are alike, or one while a process waits at the
    /// barrier that runs after the sync's thread. Where this thread waited for the end of all
    /// blocks, it checks for waiters before those at the barrier go on ([`MdThreads`]).
    pub(crate) fn looks_first(&mut self, now: Nanos) {
        if self.resync_compares() && self.walk.is_drained() {
            self.sleeps_first(now);
        }
    }

    /// Whether the sync's thread sleeps before it comes to the barrier.
    fn sleeps_first(&mut self, now: Nanos) -> bool {
        let courtesy = self.barrier.courtesy(self.walk.next(), self.walk.is_fast());
        // md's thread checks for waiters once for each block, as it comes to it.
        let looks = !self.was_courteous;
        self.was_courteous |= courtesy.is_some() || self.follows_threads();
        let sleep = courtesy.filter(|_| looks);
        if let Some(sleep) = sleep {
            self.walk.sleep(match sleep {
                Courtesy::For(time) => now + time,
                Courtesy::Tick => self.config.after_a_tick(now),
            });
        }
        sleep.is_some()
    }

    /// Returns the block to begin, if the barrier admits it.
    fn admit(
        &mut self,
        now: Nanos,
        members: &Members,
        writes: impl Iterator<Item = Span>,
        place: &dyn Fn(Sectors) -> Placement,
    ) -> Option<NewBlock> {
        let is_full = self.walk.in_work() >= self.config.depth as usize;
        if is_full && !self.follows_threads() {
            return None;
        }
        let at = self.walk.todo()?;
        let Placement { array, contiguous } = place(at).within(self.ranges.as_ref());
        let start = array?;
        let contiguous = contiguous.min(self.walk.total() - at);
        let mut range = self
            .barrier
            .clip(Span::between(start, start + self.block.min(contiguous)));
        if !self.barrier.admit_sync(range, is_full, writes) {
            return None;
        }
        self.take(at, range.count());
        if let Some(merged) = self.config.merged
            && !self.plugs()
            && self.barrier.counts_io()
            && !self.walk.is_frozen()
        {
            let end = start + contiguous.min(merged.to_sectors());
            let end = self.barrier.clip(Span { start, end }).end;
            self.grow(now, members, &mut range, end);
        }
        Some(NewBlock { start: at, range })
    }

    fn take(&mut self, start: Sectors, count: Sectors) {
        self.was_courteous = false;
        let end = start + count;
        self.walk.take(Span { start, end });
    }

    /// Whether blocks are merged when they are sent.
    pub(crate) fn plugs(&self) -> bool {
        let threads = self.config.threads;
        self.follows_threads() && threads.is_some_and(|threads| threads.plugs)
    }

    /// Returns the longest command that blocks are merged into when they are sent.
    pub(crate) fn plugged_command(&self) -> Option<Sectors> {
        let merged = self.config.merged.filter(|_| self.plugs())?;
        Some(merged.to_sectors())
    }

    /// Whether the sync's thread raises barriers, checks for waiters and plugs like that of a
    /// recent md ([`MdThreads`]): Linux 4.11 and later.
    fn follows_threads(&self) -> bool {
        self.config.threads.is_some() && self.barrier.counts_io()
    }

    /// Merges the blocks that follow, up to `end`, into one that starts, as long as each could
    /// start in this instant.
    fn grow(&mut self, now: Nanos, members: &Members, range: &mut Span, end: Sectors) {
        let most = u64::from(self.config.depth) - self.walk.in_work() as u64 + 1;
        let end = end.min(range.start + Sectors(self.block.0 * most));
        while range.end < end {
            let fast = self.walk.is_fast();
            if self.walk.asked_to_pause(now, members)
                || self.barrier.courtesy(self.walk.next(), fast).is_some()
            {
                return;
            }
            let count = self.block.min(end - range.end);
            range.end += count;
            self.take(self.walk.next(), count);
        }
    }

    /// Stores a block that starts; returns its number.
    pub(crate) fn block_started(&mut self, new: NewBlock, scratch: ScratchId) -> u32 {
        let place = self.blocks.iter().position(Option::is_none);
        let place = place.expect("no more blocks than the depth are started");
        self.blocks[place] = Some(Block::new(new, scratch));
        self.in_flight += 1;
        self.barrier.sync_started(new.start);
        u32::try_from(place).expect("the depth is 32 bits")
    }

    pub(crate) fn block(&mut self, number: u32) -> &mut Block {
        self.blocks[number as usize]
            .as_mut()
            .expect("a command in flight names a block in flight")
    }

    /// Whether a block of a resync or repair that overlaps a range is being written to
    /// members in sync, while the one that it was read from has left these.
    pub(crate) fn is_orphaned(&self, range: &Span, in_sync: SlotSet) -> bool {
        let fills = self.walk.kind() == Some(SyncKind::Recovery);
        let mut blocks = self.blocks.iter().flatten();
        !fills
            && blocks.any(|block| {
                let source = block.source.filter(|_| block.writes > 0);
                source.is_some_and(|source| !in_sync.contains(source))
                    && block.range.overlaps(range)
            })
    }

    pub(crate) fn block_finished(&mut self, number: u32) {
        if let Some(block) = self.blocks[number as usize].take() {
            self.in_flight -= 1;
            match self.walk.targets().is_empty() && !mutation::is(Mutation::GivenUpCountsAsDone) {
                // No member was left to receive its content.
                true => self.walk.give_back(block.positions),
                false => self.walk.ended(block.positions),
            }
            self.barrier.sync_finished(block.positions.start);
        }
    }

    /// Returns the sector where a write or a sync block must be cut.
    pub(crate) fn boundary(&self, start: Sectors) -> Option<Sectors> {
        self.barrier.boundary(start)
    }

    /// Whether a write must wait for sync blocks.
    pub(crate) fn write_waits(&self, range: Span) -> bool {
        if !self.walk.is_running() {
            return false;
        }
        let front = Front {
            completed: self.walk.checkpoint(),
            blocks: &self.blocks,
            in_flight: self.in_flight,
        };
        self.barrier.write_waits(range, &front)
    }

    /// Whether reads must wait for sync blocks.
    pub(crate) fn read_waits(&self) -> bool {
        self.walk.is_running() && self.barrier.read_waits()
    }

    /// Whether a write that waits must go on waiting.
    pub(crate) fn write_keeps_waiting(&self, range: Span) -> bool {
        self.barrier.keeps_waiting(self.in_flight > 0) || self.write_waits(range)
    }

    /// Whether the barrier counts all I/O: no block goes while any is in its unit.
    pub(crate) const fn counts_io(&self) -> bool {
        self.barrier.counts_io()
    }

    /// Whether requests are in flight that a barrier of the whole array waits for.
    pub(crate) fn has_io(&self) -> bool {
        self.barrier.has_io()
    }

    pub(crate) const fn barrier_mut(&mut self) -> &mut Barrier {
        &mut self.barrier
    }
}
