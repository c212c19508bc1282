//! Recovery and resync: when the next block may be copied.
//!
//! One sync runs at a time. *Recovery* fills the members that were put in
//! (those put in later wait for the next one); *resync* makes the other members
//! of a dirty mirror equal to the lowest one. The range is walked upwards in
//! blocks of a fixed size, up to `depth` at a time: read from one member in
//! sync, then write to every target. *Check* and *repair* walk likewise, and
//! read all copies. This file decides; the array executes.
//!
//! Positions are array sectors, but for the recovery of a RAID 10, which fills
//! one member at a time and walks the sectors of its data area: what is at a
//! position is asked of the array (`Placement`). What holds nothing, and what a
//! sync by ranges leaves out, is skipped at no cost.
//!
//! Before each block, in md's order (Linux drivers/md/md.c, `md_do_sync`):
//! 1. After 128 KiB of sync I/O the throttle is asked; it may order to sleep
//!    and ask again, or to let the blocks in flight finish.
//! 2. If a checkpoint is due, the blocks in flight finish, then it is taken.
//! 3. The write barrier must admit the block (see `barrier`).
//!
//! Where blocks are merged, all that pass these in the same instant and lie side
//! by side are one command, as the plug of md's sync thread has it.
//!
//! A member that fails leaves the targets; with none left the sync is aborted
//! once its blocks in flight have finished. A block that no member can read
//! fails the targets. The new member is marked in sync only after every block
//! was written to it.

mod barrier;
mod block;
pub(crate) mod config;
mod leap;
mod plan;
mod status;
mod sync;
mod throttle;
mod waits;

pub use config::{
    CheckpointRule, MdThreads, ReadRecovered, RecoveringWrites, RecoveryConfig,
    RecoveryConfigError, SyncSource, Throttle, WriteBarrier,
};

pub use status::{SyncKind, SyncStatus};

pub(crate) use barrier::{Barrier, WriteTicket};
pub(crate) use block::{Block, NewBlock, is_part, part};
pub(crate) use plan::{Placement, Plan};

use crate::member::Members;
use crate::request::ScratchId;
use barrier::{Courtesy, Front};
use raidlab_geometry::SlotSet;
use raidlab_units::{Nanos, Sectors, Span};
use sync::Sync;
pub use throttle::{Governor, Pause};

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing until something happens.
    Wait,
    /// Copy or compare this block.
    Start(NewBlock),
    /// Everything below is safe to rely on.
    Checkpoint(Sectors),
    /// All copied.
    Finish,
    /// Stopped short.
    Abort,
}

/// The engine.
#[derive(Debug)]
pub(crate) struct Recovery {
    config: RecoveryConfig,
    block: Sectors,
    sync: Option<Sync>,
    frozen: Option<Nanos>,
    blocks: Vec<Option<Block>>,
    in_flight: u32,
    /// Blocks that the commands in flight were merged of.
    units_in_flight: u64,
    in_flight_sectors: u64,
    /// Who submits comes first until then.
    yields_until: Option<Nanos>,
    barrier: Barrier,
}

impl Recovery {
    pub(crate) fn new(config: RecoveryConfig) -> Self {
        let block = config.block.to_sectors();
        Self {
            block,
            sync: None,
            frozen: None,
            blocks: vec![None; config.depth as usize],
            in_flight: 0,
            units_in_flight: 0,
            in_flight_sectors: 0,
            yields_until: None,
            barrier: Barrier::new(config.barrier, block, config.depth),
            config,
        }
    }

    pub(crate) const fn config(&self) -> &RecoveryConfig {
        &self.config
    }

    pub(crate) const fn is_running(&self) -> bool {
        self.sync.is_some()
    }

    pub(crate) fn kind(&self) -> Option<SyncKind> {
        self.sync.as_ref().map(|sync| sync.kind)
    }

    pub(crate) fn targets(&self) -> SlotSet {
        self.sync
            .as_ref()
            .map_or(SlotSet::EMPTY, |sync| sync.targets)
    }

    /// The first sector that no block was started for.
    pub(crate) fn next(&self) -> Sectors {
        self.sync.as_ref().map_or(Sectors::ZERO, |sync| sync.next)
    }

    /// Everything below is copied.
    pub(crate) fn position(&self) -> Sectors {
        let started = self.blocks.iter().flatten().map(|block| block.start).min();
        started.unwrap_or_else(|| self.next())
    }

    /// Reads may rely on the sync below this sector.
    pub(crate) fn readable_below(&self) -> Sectors {
        let Some(sync) = &self.sync else {
            return Sectors::ZERO;
        };
        match self.config.read_recovered {
            ReadRecovered::AtEnd => Sectors::ZERO,
            ReadRecovered::BelowCheckpoint => sync.completed,
            ReadRecovered::BelowPosition => self.position(),
        }
    }

    pub(crate) fn status(&self) -> Option<SyncStatus> {
        let sync = self.sync.as_ref()?;
        Some(SyncStatus {
            kind: sync.kind,
            position: self.position(),
            readable_below: self.readable_below(),
            total: sync.total,
            in_flight: self.in_flight + u32::from(self.barrier.raised().is_some()),
            mismatches: Sectors(sync.mismatches),
        })
    }

    /// When the engine wants to be asked again even if nothing happens.
    pub(crate) fn wake_at(&self) -> Option<Nanos> {
        let sync = self.sync.as_ref()?;
        match sync.pause {
            Pause::Until(time) if self.frozen.is_none() && !sync.aborted => Some(time),
            _ => None,
        }
    }

    pub(crate) fn begin(&mut self, now: Nanos, plan: Plan, members: &Members) {
        debug_assert!(self.sync.is_none() && self.in_flight == 0);
        self.sync = Some(Sync {
            kind: plan.kind,
            targets: plan.targets,
            next: plan.start,
            total: plan.total,
            ranges: plan.ranges,
            mismatches: 0,
            completed: plan.start,
            checkpointed_at: now,
            pause: Pause::None,
            was_courteous: false,
            throttle_due: false,
            aborted: false,
            governor: Governor::new(self.config.throttle, now, members),
        });
        // A sync that begins while frozen is leapt over from here.
        self.frozen = self.frozen.map(|_| now);
    }

    /// Ends the sync as soon as the blocks in flight have.
    pub(crate) fn stop(&mut self) {
        if let Some(sync) = &mut self.sync {
            sync.aborted = true;
            self.barrier.lower();
        }
    }

    pub(crate) fn add_mismatches(&mut self, sectors: u64) {
        if let Some(sync) = &mut self.sync {
            sync.mismatches += sectors;
        }
    }

    pub(crate) fn set_throttle(&mut self, throttle: Throttle) {
        self.config.throttle = throttle;
        if let Some(sync) = &mut self.sync {
            sync.governor.set_rule(throttle);
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

    /// The array sectors of the blocks in flight.
    pub(crate) fn ranges_in_flight(&self) -> impl Iterator<Item = Span> {
        self.blocks.iter().flatten().map(|block| block.range)
    }

    pub(crate) fn end(&mut self) {
        self.sync = None;
        self.barrier.sync_ended();
    }

    /// A member no longer takes part; `left` is what remains for the sync.
    pub(crate) fn retarget(&mut self, left: SlotSet) {
        if let Some(sync) = &mut self.sync {
            sync.targets = left;
            if left.is_empty() {
                sync.aborted = true;
                self.barrier.lower();
            }
        }
    }

    /// Somebody who waited at the barrier goes on, or an answer was given: who submits
    /// comes before the sync ([`MdThreads`]).
    pub(crate) fn yield_to_submitters(&mut self, now: Nanos) {
        if let Some(threads) = self.config.threads
            && self.sync.is_some()
            && self.config.barrier == WriteBarrier::MdArray
        {
            self.yields_until = Some(now + threads.turnaround);
        }
    }

    /// Until when the sync leaves the processor to those who submit.
    pub(crate) const fn yields_until(&self) -> Option<Nanos> {
        self.yields_until
    }

    /// Time has passed.
    pub(crate) fn end_yield(&mut self, now: Nanos) {
        self.yields_until = self.yields_until.filter(|until| now < *until);
    }

    /// What to do next; called until it answers `Wait`. `writes` gives the
    /// ranges of the writes in flight, `place` what is at a position.
    pub(crate) fn step(
        &mut self,
        now: Nanos,
        members: &Members,
        writes: impl Iterator<Item = Span>,
        place: &dyn Fn(Sectors) -> Placement,
    ) -> Step {
        if self.yields_until.is_some() {
            return Step::Wait;
        }
        // A block that has raised the barrier goes through even when frozen:
        // writes wait for it.
        if self.barrier.raised().is_none()
            && let Some(step) = self.before_block(now, members, place)
        {
            return step;
        }
        let raises_first = self.follows_threads();
        let is_full =
            self.units_in_flight >= u64::from(self.config.depth) || self.lacks_requests(members);
        let Some(sync) = &mut self.sync else {
            return Step::Wait;
        };
        if is_full && !raises_first {
            return Step::Wait;
        }
        let Some((start, contiguous)) = sync.wanted(place(sync.next)) else {
            return Step::Wait;
        };
        let contiguous = contiguous.min(Sectors(sync.total.0 - sync.next.0));
        let mut range = self.barrier.clip(Span {
            start,
            end: start + self.block.min(contiguous),
        });
        if !self.barrier.admit_sync(range, is_full, writes) {
            return Step::Wait;
        }
        let at = sync.next;
        sync.advance(range.count());
        if let Some(merged) = self.config.merged
            && !self.plugs()
            && self.barrier.counts_io()
            && self.frozen.is_none()
        {
            let end = start + contiguous.min(merged.to_sectors());
            let end = self.barrier.clip(Span { start, end }).end;
            self.grow(now, members, &mut range, end);
        }
        Step::Start(NewBlock { start: at, range })
    }

    /// Whether blocks are merged when they are sent.
    pub(crate) fn plugs(&self) -> bool {
        let threads = self.config.threads;
        self.follows_threads() && threads.is_some_and(|threads| threads.plugs)
    }

    /// The longest command that blocks are merged into when they are sent.
    pub(crate) fn plugged_command(&self) -> Option<Sectors> {
        let merged = self.config.merged.filter(|_| self.plugs())?;
        Some(merged.to_sectors())
    }

    /// Whether the sync's thread raises barriers, looks and plugs as that of a recent md
    /// ([`MdThreads`]): Linux 4.11 and later.
    fn follows_threads(&self) -> bool {
        self.config.threads.is_some() && self.barrier.counts_io()
    }

    /// Whether a member has all the requests that the host lets wait and run there.
    fn lacks_requests(&self, members: &Members) -> bool {
        self.config.threads.is_some_and(|threads| {
            let mut views = members.views().iter();
            views.any(|view| view.pending >= threads.requests)
        })
    }

    /// Merges the blocks that follow, up to `end`, into one that starts: as long
    /// as each could start in this instant.
    fn grow(&mut self, now: Nanos, members: &Members, range: &mut Span, end: Sectors) {
        let Some(sync) = &mut self.sync else { return };
        let block = self.block;
        let most = u64::from(self.config.depth) - self.units_in_flight;
        let end = end.min(range.start + Sectors(block.0 * most));
        while range.end < end {
            let in_flight = self.in_flight_sectors + range.count().0;
            let fast = sync.governor.is_fast();
            if sync.asked_to_pause(now, in_flight, members)
                || self.barrier.courtesy(sync.next, fast).is_some()
            {
                return;
            }
            let count = block.min(Sectors(end.0 - range.end.0));
            range.end += count;
            sync.advance(count);
        }
    }

    /// Everything that comes before the barrier; `None` lets the block go on.
    fn before_block(
        &mut self,
        now: Nanos,
        members: &Members,
        place: &dyn Fn(Sectors) -> Placement,
    ) -> Option<Step> {
        let drained = self.in_flight == 0;
        let Some(sync) = &mut self.sync else {
            return Some(Step::Wait);
        };
        if sync.aborted {
            return Some(if drained { Step::Abort } else { Step::Wait });
        }
        if self.frozen.is_some() {
            return Some(Step::Wait);
        }
        match sync.pause {
            Pause::Until(time) if now < time => return Some(Step::Wait),
            Pause::Drain if !drained => return Some(Step::Wait),
            _ => sync.pause = Pause::None,
        }
        sync.skip_unwanted(place);
        if sync.asked_to_pause(now, self.in_flight_sectors, members) {
            return Some(Step::Wait);
        }
        if sync.next >= sync.total {
            return Some(if drained { Step::Finish } else { Step::Wait });
        }
        let fills = sync.kind == SyncKind::Recovery;
        if let Some(rule) = self.config.checkpoint.map(|rule| rule.of(fills))
            && rule.is_due(
                sync.next,
                sync.completed,
                sync.total,
                now,
                sync.checkpointed_at,
            )
        {
            if !drained {
                return Some(Step::Wait);
            }
            sync.completed = sync.next;
            sync.checkpointed_at = now;
            return Some(Step::Checkpoint(sync.completed));
        }
        let follows_threads = self.follows_threads();
        if follows_threads && self.lacks_requests(members) {
            // It sleeps with the block before this one.
            return Some(Step::Wait);
        }
        let Some(sync) = &mut self.sync else {
            return Some(Step::Wait);
        };
        let courtesy = self.barrier.courtesy(sync.next, sync.governor.is_fast());
        // md's thread looks once for each block, as it comes to it.
        let looks = !sync.was_courteous;
        sync.was_courteous |= courtesy.is_some() || follows_threads;
        if let Some(sleep) = courtesy.filter(|_| looks) {
            sync.pause = Pause::Until(match sleep {
                Courtesy::For(time) => now + time,
                Courtesy::Tick => self.config.after_a_tick(now),
            });
            return Some(Step::Wait);
        }
        None
    }

    /// Takes a place for a block; gives its number.
    pub(crate) fn block_started(&mut self, new: NewBlock, scratch: ScratchId) -> u32 {
        let NewBlock { start, range } = new;
        let count = Sectors(range.end.0 - range.start.0);
        let place = self.blocks.iter().position(Option::is_none);
        let place = place.expect("no more blocks than the depth are started");
        self.blocks[place] = Some(Block::new(new, scratch));
        self.in_flight += 1;
        self.units_in_flight += count.0.div_ceil(self.block.0);
        self.in_flight_sectors += count.0;
        self.barrier.sync_started(start);
        u32::try_from(place).expect("the depth is 32 bits")
    }

    pub(crate) fn block(&mut self, number: u32) -> &mut Block {
        self.blocks[number as usize]
            .as_mut()
            .expect("a command in flight names a block in flight")
    }

    /// Whether a block of a resync that overlaps a range is being written to members,
    /// while the one that it was read from has left these.
    pub(crate) fn is_orphaned(&self, range: &Span, in_sync: SlotSet) -> bool {
        let is_resync = self.kind() == Some(SyncKind::Resync);
        let mut blocks = self.blocks.iter().flatten();
        is_resync
            && blocks.any(|block| {
                let source = block.source.filter(|_| block.writes > 0);
                source.is_some_and(|source| !in_sync.contains(source))
                    && block.range.overlaps(range)
            })
    }

    pub(crate) fn block_finished(&mut self, number: u32) {
        if let Some(block) = self.blocks[number as usize].take() {
            self.in_flight -= 1;
            self.units_in_flight -= block.count.0.div_ceil(self.block.0);
            self.in_flight_sectors -= block.count.0;
            self.barrier.sync_finished(block.start);
        }
    }

    /// Where a write or a sync block must be cut.
    pub(crate) fn boundary(&self, start: Sectors) -> Option<Sectors> {
        self.barrier.boundary(start)
    }

    /// Whether a write must wait for sync blocks.
    pub(crate) fn write_waits(&self, range: Span) -> bool {
        let Some(sync) = &self.sync else {
            return false;
        };
        let front = Front {
            completed: sync.completed,
            blocks: &self.blocks,
            in_flight: self.in_flight,
        };
        self.barrier.write_waits(range, &front)
    }

    /// Whether reads must wait for sync blocks.
    pub(crate) fn read_waits(&self) -> bool {
        self.sync.is_some() && self.barrier.read_waits()
    }

    /// Whether a write that waits must go on waiting.
    pub(crate) fn write_keeps_waiting(&self, range: Span) -> bool {
        self.barrier.keeps_waiting(self.in_flight > 0) || self.write_waits(range)
    }

    /// Whether the barrier counts all I/O: no block goes while any is in its unit.
    pub(crate) const fn counts_io(&self) -> bool {
        self.barrier.counts_io()
    }

    pub(crate) const fn barrier_mut(&mut self) -> &mut Barrier {
        &mut self.barrier
    }

    /// For the window rule: what md has checkpointed.
    pub(crate) fn completed(&self) -> Sectors {
        self.sync
            .as_ref()
            .map_or(Sectors::ZERO, |sync| sync.completed)
    }
}
