//! One walk for every sync: resync, recovery, check and repair, at all levels.
//!
//! An engine that syncs keeps one [`SyncWalk`]. It passes in a [`Plan`] and then asks for the next
//! [`Step`] until the answer is to wait; it reads, compares and writes the block that it is told to
//! begin, and reports when that has ended. The common part of all syncs is here:
//!
//! * *The blocks to do* are a set of positions; blocks are taken from its lower end. *The blocks
//!   in work* are those begun and not ended. Everything below the lowest of both is
//!   done: that is the sync's position. A block that has to be done again in smaller ones,
//!   as a part of it cannot be read, is given back; below its end all blocks are small from
//!   then on.
//! * *Ending.* With nothing to do and nothing in work a sync has finished. One that is
//!   stopped, or has lost its last target, begins no block and is aborted once nothing is
//!   in work.
//! * *Freezing and leaping* are for simulations: see `leap`.
//! * *Checkpoints*: positions below which everything is reported as done, at the intervals of a
//!   [`CheckpointRule`]. Where md's copies are imitated nothing is in work at that time.
//! * *Throttle*: a [`Governor`] is asked between blocks, and may order a pause.
//!
//! The order of these is md's (Linux drivers/md/md.c, `md_do_sync`). Positions are the engine's
//! own: array sectors, or sectors of the members' data areas. A reshape would be one more kind of
//! sync, whose blocks are read at one place and written at another.

mod leap;

use super::{CheckpointRule, Governor, Pause, SyncKind, SyncStatus, Throttle};
use crate::member::Members;
use raidlab_geometry::SlotSet;
use raidlab_units::{Nanos, Sectors, Span, SpanSet};
use std::collections::BTreeMap;

/// The plan of a sync that begins.
#[derive(Debug)]
pub struct Plan {
    /// The kind of the sync.
    pub kind: SyncKind,
    /// The members that are filled, or that are compared; without parity the sync ends when
    /// none is left.
    pub targets: SlotSet,
    /// The positions to be walked.
    pub todo: SpanSet,
    /// The position at which the sync ends.
    pub total: Sectors,
}

/// The next step of a walk. A block is a position, or the engine's own type made from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<Block = Sectors> {
    /// No block can begin until something else has happened.
    Wait,
    /// A block may begin here.
    Block(Block),
    /// Everything below this position is done, which is to be reported.
    Checkpoint(Sectors),
    /// All is done, and nothing is in work any more.
    Finish,
    /// The sync stopped early, and nothing is in work any more.
    Abort,
}

impl Step {
    /// Returns the step with the block that is made from the position; without one, the step waits.
    pub(super) fn with_block<Block>(self, made: impl FnOnce() -> Option<Block>) -> Step<Block> {
        match self {
            Self::Wait => Step::Wait,
            Self::Block(_) => made().map_or(Step::Wait, Step::Block),
            Self::Checkpoint(position) => Step::Checkpoint(position),
            Self::Finish => Step::Finish,
            Self::Abort => Step::Abort,
        }
    }
}

/// A sync under way, with its plan and the blocks in work.
#[derive(Debug)]
struct Running {
    plan: Plan,
    /// Blocks begun and not ended, from start to end.
    in_work: BTreeMap<Sectors, Sectors>,
    sectors_in_work: u64,
    /// The position below which blocks are as small as possible.
    careful_below: Sectors,
    /// The position of the last checkpoint; md calls it `curr_resync_completed`.
    checkpoint: Sectors,
    checkpoint_at: Nanos,
    pause: Pause,
    throttle_due: bool,
    is_stopping: bool,
    governor: Governor,
}

/// The syncs of an array, of which one runs at a time.
#[derive(Debug)]
pub struct SyncWalk {
    throttle: Throttle,
    checkpoints: Option<CheckpointRule>,
    /// Whether checkpoints are taken with nothing in work.
    drains: bool,
    running: Option<Running>,
    frozen: Option<Nanos>,
    /// Whether a recovery was stopped by hand: it begins when a sync is started or a member added.
    pub is_held: bool,
}

impl Running {
    /// Returns the lowest position where no block has begun.
    fn next(&self) -> Sectors {
        self.plan
            .todo
            .first()
            .map_or(self.plan.total, |span| span.start)
    }

    fn position(&self) -> Sectors {
        let begun = self.in_work.first_key_value();
        begun.map_or(self.next(), |(start, _)| self.next().min(*start))
    }

    /// Whether a checkpoint is due with everything below `position` done.
    fn owes_checkpoint(&self, rule: Option<CheckpointRule>, position: Sectors, now: Nanos) -> bool {
        let fills = self.plan.kind == SyncKind::Recovery;
        position > self.checkpoint
            && rule.is_some_and(|rule| {
                let (last, at) = (self.checkpoint, self.checkpoint_at);
                rule.of(fills)
                    .is_due(position, last, self.plan.total, now, at)
            })
    }

    fn checkpoint(&mut self, position: Sectors, now: Nanos) -> Step {
        self.checkpoint = position;
        self.checkpoint_at = now;
        Step::Checkpoint(position)
    }

    /// Asks the throttle if that is due; returns whether there is to be a pause.
    fn asked_to_pause(&mut self, now: Nanos, members: &Members) -> bool {
        let due = &mut self.throttle_due;
        self.pause = self.governor.pause(due, now, self.sectors_in_work, members);
        self.pause != Pause::None
    }
}

impl SyncWalk {
    /// A walk without a sync, with the throttle and the checkpoint rule of later ones; `drains`:
    /// whether checkpoints wait until nothing is in work.
    #[must_use]
    pub const fn new(
        throttle: Throttle,
        checkpoints: Option<CheckpointRule>,
        drains: bool,
    ) -> Self {
        Self {
            throttle,
            checkpoints,
            drains,
            running: None,
            frozen: None,
            is_held: false,
        }
    }

    /// Begins a sync; none may be running. Returns the first position.
    pub fn begin(&mut self, now: Nanos, plan: Plan, members: &Members) -> Sectors {
        debug_assert!(self.running.is_none(), "one sync at a time");
        let mut running = Running {
            in_work: BTreeMap::new(),
            sectors_in_work: 0,
            careful_below: Sectors::ZERO,
            checkpoint: Sectors::ZERO,
            checkpoint_at: now,
            pause: Pause::None,
            throttle_due: false,
            is_stopping: false,
            governor: Governor::new(self.throttle, now, members),
            plan,
        };
        let start = running.next();
        running.checkpoint = start;
        self.running = Some(running);
        // A sync that begins while frozen is leapt over from here.
        self.frozen = self.frozen.map(|_| now);
        start
    }

    /// Ends the sync, with nothing in work. Returns the lowest position that was not begun.
    pub fn end(&mut self) -> Sectors {
        let ended = self.running.take();
        ended.map_or(Sectors::ZERO, |sync| sync.next())
    }

    /// Whether a sync runs.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Whether members need recovery, no sync runs, and none was stopped by hand.
    #[must_use]
    pub fn owes_recovery(&self, members: &Members) -> bool {
        !(self.is_running() || self.is_held || members.recovering().is_empty())
    }

    /// Returns the kind of the sync.
    #[must_use]
    pub fn kind(&self) -> Option<SyncKind> {
        self.running.as_ref().map(|sync| sync.plan.kind)
    }

    /// Whether the sync was stopped, and only blocks in work go on.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.running.as_ref().is_some_and(|sync| sync.is_stopping)
    }

    /// Returns the members that the sync fills or compares.
    #[must_use]
    pub fn targets(&self) -> SlotSet {
        let running = self.running.as_ref();
        running.map_or(SlotSet::EMPTY, |sync| sync.plan.targets)
    }

    /// Returns the lowest position where no block has begun.
    #[must_use]
    pub fn next(&self) -> Sectors {
        self.running.as_ref().map_or(Sectors::ZERO, Running::next)
    }

    /// Returns [`Self::next`], unless everything has begun.
    #[must_use]
    pub fn todo(&self) -> Option<Sectors> {
        let first = self.running.as_ref()?.plan.todo.first();
        first.map(|span| span.start)
    }

    /// Returns the position at which the sync ends.
    #[must_use]
    pub fn total(&self) -> Sectors {
        let running = self.running.as_ref();
        running.map_or(Sectors::ZERO, |sync| sync.plan.total)
    }

    /// Returns the position below which the sync is done.
    #[must_use]
    pub fn position(&self) -> Sectors {
        let running = self.running.as_ref();
        running.map_or(Sectors::ZERO, Running::position)
    }

    /// Returns the position of the last checkpoint.
    #[must_use]
    pub fn checkpoint(&self) -> Sectors {
        let running = self.running.as_ref();
        running.map_or(Sectors::ZERO, |sync| sync.checkpoint)
    }

    /// Returns the number of blocks in work.
    #[must_use]
    pub fn in_work(&self) -> usize {
        self.running.as_ref().map_or(0, |sync| sync.in_work.len())
    }

    /// Returns the progress of the sync. `readable_below` is the engine's: below it members under
    /// recovery serve reads.
    #[must_use]
    pub fn status(&self, readable_below: Sectors) -> Option<SyncStatus> {
        let sync = self.running.as_ref()?;
        Some(SyncStatus {
            kind: sync.plan.kind,
            position: sync.position(),
            readable_below,
            total: sync.plan.total,
            in_flight: u32::try_from(sync.in_work.len()).unwrap_or(u32::MAX),
            sleeps: sync.governor.sleeps,
            fastest: sync.governor.fastest(),
        })
    }

    /// Returns the next step; to be called until it is to wait.
    pub fn step(&mut self, now: Nanos, members: &Members) -> Step {
        let is_frozen = self.frozen.is_some();
        let Some(sync) = &mut self.running else {
            return Step::Wait;
        };
        let is_drained = sync.in_work.is_empty();
        if sync.is_stopping || sync.plan.todo.is_empty() {
            return match is_drained {
                false => Step::Wait,
                true if sync.is_stopping => Step::Abort,
                true => Step::Finish,
            };
        }
        if is_frozen {
            return Step::Wait;
        }
        let position = sync.position();
        if !self.drains && sync.owes_checkpoint(self.checkpoints, position, now) {
            return sync.checkpoint(position, now);
        }
        match sync.pause {
            Pause::Until(time) if now < time => return Step::Wait,
            Pause::Drain if !is_drained => return Step::Wait,
            _ => sync.pause = Pause::None,
        }
        if sync.asked_to_pause(now, members) {
            return Step::Wait;
        }
        let next = sync.next();
        if self.drains && sync.owes_checkpoint(self.checkpoints, next, now) {
            return match is_drained {
                true => sync.checkpoint(next, now),
                false => Step::Wait,
            };
        }
        Step::Block(next)
    }

    /// Begins a block where [`Self::step`] said, or goes on there.
    pub fn take(&mut self, block: Span) {
        if let Some(sync) = &mut self.running {
            sync.plan.todo.remove(block);
            sync.in_work.insert(block.start, block.end);
            sync.sectors_in_work += block.count().0;
            let is_due = sync.governor.issued(block.count());
            sync.throttle_due = is_due && !sync.plan.todo.is_empty();
        }
    }

    /// Ends a block, or several side by side.
    pub fn ended(&mut self, block: Span) {
        if let Some(sync) = &mut self.running {
            let within = sync.in_work.extract_if(block.start..block.end, |_, _| true);
            within.for_each(drop);
            sync.sectors_in_work -= block.count().0;
        }
    }

    /// Ends a pause that lasts until no block is in work, if none is; returns whether it did.
    pub(super) fn is_drained(&mut self) -> bool {
        let waited = |sync: &&mut Running| sync.pause == Pause::Drain && sync.in_work.is_empty();
        let running = self.running.as_mut().filter(waited);
        running.map(|sync| sync.pause = Pause::None).is_some()
    }

    /// Ends a block that is to be done again in the smallest blocks.
    pub fn give_back(&mut self, block: Span) {
        self.ended(block);
        if let Some(sync) = &mut self.running {
            sync.plan.todo.insert(block);
            sync.careful_below = sync.careful_below.max(block.end);
        }
    }

    /// Returns the positions that the walk permits as one block from `next` on: at most `unit`
    /// sectors, or `smallest` where a part could not be read.
    #[must_use]
    pub fn block_at(&self, next: Sectors, unit: u64, smallest: u64) -> Span {
        let mut block = Span::new(next.0, next.0 + smallest);
        if let Some(sync) = &self.running
            && next >= sync.careful_below
            && let Some(rest) = sync.plan.todo.first()
        {
            block.end = rest.end.min(next + Sectors(unit));
        }
        block
    }

    /// Skips everything below this position, where nothing has begun.
    pub fn pass_over(&mut self, until: Sectors) {
        if let Some(sync) = &mut self.running {
            let until = until.min(sync.plan.total);
            sync.plan.todo.remove(Span::new(0, until.0));
            sync.throttle_due &= !sync.plan.todo.is_empty();
        }
    }

    /// Asks the throttle, where a block may continue as if another one began; returns whether there
    /// is to be a pause.
    pub(super) fn asked_to_pause(&mut self, now: Nanos, members: &Members) -> bool {
        let sync = self.running.as_mut();
        sync.is_some_and(|sync| sync.asked_to_pause(now, members))
    }

    /// Lets no block begin before this time.
    pub(super) fn sleep(&mut self, until: Nanos) {
        if let Some(sync) = &mut self.running {
            sync.pause = Pause::Until(until);
        }
    }

    /// Returns the reason why no block begins.
    pub(super) fn pause(&self) -> Pause {
        self.running.as_ref().map_or(Pause::None, |sync| sync.pause)
    }

    /// Whether the last speed that the throttle knew was at its minimum or above.
    pub(super) fn is_fast(&self) -> bool {
        let running = self.running.as_ref();
        running.is_none_or(|sync| sync.governor.is_fast())
    }

    /// Ends the sync as soon as nothing is in work.
    pub fn stop(&mut self) {
        if let Some(sync) = &mut self.running {
            sync.is_stopping = true;
        }
    }

    /// Ends the sync like [`Self::stop`]; a recovery does not begin again by itself.
    pub fn cancel(&mut self) {
        self.is_held |= self.kind() == Some(SyncKind::Recovery);
        self.stop();
    }

    /// Reduces the targets to those that are `left`, as a member no longer takes part. Where none
    /// is, the sync is aborted.
    pub fn retarget(&mut self, left: SlotSet) {
        if let Some(sync) = &mut self.running {
            sync.plan.targets = left;
            sync.is_stopping |= left.is_empty();
        }
    }

    /// Sets other speeds, in KiB/s. A pause ends: the sync goes on with the next tick, not with the
    /// next request, which may never come.
    pub fn set_speeds(&mut self, now: Nanos, minimum: u64, maximum: u64, members: &Members) {
        self.throttle = self.throttle.with_speeds(minimum, maximum);
        if let Some(sync) = &mut self.running {
            sync.governor = Governor::new(self.throttle, now, members);
            // Blocks in work will be reported as finished.
            sync.throttle_due = sync.governor.issued(Sectors(sync.sectors_in_work));
            if sync.pause != Pause::None {
                sync.pause = Pause::Until(now);
            }
        }
    }

    /// Returns the time when the sync is to be asked again even if nothing happens.
    #[must_use]
    pub fn wakes_at(&self) -> Option<Nanos> {
        let sync = self.running.as_ref()?;
        let is_over = sync.is_stopping || sync.plan.todo.is_empty();
        match sync.pause {
            Pause::Until(time) if self.frozen.is_none() && !is_over => Some(time),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
