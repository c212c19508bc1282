//! An array with its outputs, for stories told step by step.

use super::{ALL, config, member, request};
use crate::admission::Admission;
use crate::array::Array;
use crate::config::{AdminError, ArrayConfig, MemberConfig};
use crate::engine::{Engine, SyncAction, SyncRequest};
use crate::recovery::{CheckpointRule, RecoveryConfig, Throttle, WriteBarrier};
use crate::request::{
    CommandId, Event, MemberCommand, MemberError, Operation, Outputs, RequestError, Slot,
};
use raidlab_units::{Bytes, Nanos, Span};

pub(super) const READ: Operation = Operation::Read;
pub(super) const WRITE: Operation = Operation::Write;

/// An array with its outputs, and shorthands.
pub(super) struct Story {
    pub(super) array: Array,
    pub(super) out: Outputs,
    pub(super) now: Nanos,
}

impl Story {
    pub(super) fn new(config: ArrayConfig) -> Self {
        Self {
            array: Array::new(config).expect("a sound configuration"),
            out: Outputs::default(),
            now: Nanos::ZERO,
        }
    }

    /// The commands since the last look.
    pub(super) fn commands(&mut self) -> Vec<MemberCommand> {
        std::mem::take(&mut self.out.commands)
    }

    /// The commands since the last look as (slot, operation, start, count).
    pub(super) fn sent(commands: &[MemberCommand]) -> Vec<(u16, Operation, u64, u64)> {
        let sent = commands.iter();
        sent.map(|command| {
            let (start, count) = (command.start.0, command.count.0);
            (command.slot.0, command.operation, start, count)
        })
        .collect()
    }

    pub(super) fn submit(
        &mut self,
        id: u64,
        operation: Operation,
        start: u64,
        count: u64,
    ) -> Vec<MemberCommand> {
        let request = request(id, operation, start, count);
        self.array.submit(self.now, request, &mut self.out);
        self.commands()
    }

    pub(super) fn complete(&mut self, command: &MemberCommand) -> Vec<MemberCommand> {
        self.answer(command.id, Ok(()))
    }

    pub(super) fn answer(
        &mut self,
        id: CommandId,
        result: Result<(), MemberError>,
    ) -> Vec<MemberCommand> {
        self.array.complete(self.now, id, result, &mut self.out);
        self.commands()
    }

    pub(super) fn fail(&mut self, slot: u16) -> Result<(), AdminError> {
        self.array.fail(self.now, Slot(slot), &mut self.out)
    }

    pub(super) fn sync(
        &mut self,
        action: SyncAction,
        ranges: Option<&[(u64, u64)]>,
    ) -> Result<(), AdminError> {
        let spans = |ranges: &[(u64, u64)]| {
            let spans = ranges.iter().map(|&(start, end)| Span::new(start, end));
            spans.collect()
        };
        let request = SyncRequest {
            action,
            ranges: ranges.map(spans),
        };
        self.array.start_sync(self.now, request, &mut self.out)
    }

    /// Replaces a member; gives the first sync commands.
    pub(super) fn replace(&mut self, slot: u16) -> Vec<MemberCommand> {
        let new = member(self.array.size().0, 0);
        self.replace_with(slot, new, ALL)
    }

    pub(super) fn replace_with(
        &mut self,
        slot: u16,
        new: MemberConfig,
        admission: Admission,
    ) -> Vec<MemberCommand> {
        let slot = Slot(slot);
        self.array
            .remove(self.now, slot, &mut self.out)
            .expect("not the last one");
        self.array
            .add(self.now, slot, new, admission, &mut self.out)
            .expect("the slot is empty");
        self.commands()
    }

    pub(super) fn finished(&mut self) -> Vec<(u64, Result<(), RequestError>)> {
        let finished = self.out.finished.drain(..);
        finished
            .map(|finished| (finished.id.0, finished.result))
            .collect()
    }

    pub(super) fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.out.events)
    }

    /// Completes everything, in order, until nothing is in flight.
    pub(super) fn drain(&mut self, mut commands: Vec<MemberCommand>) {
        while !commands.is_empty() {
            for command in std::mem::take(&mut commands) {
                commands.extend(self.complete(&command));
            }
        }
    }
}

/// Blocks of 10 sectors, two at a time, no checkpoints on the way.
pub(super) fn recovery(barrier: WriteBarrier) -> RecoveryConfig {
    RecoveryConfig {
        block: Bytes(10 * 512),
        depth: 2,
        barrier,
        throttle: Throttle::None,
        checkpoint: Some(CheckpointRule {
            parts: 1,
            interval: Nanos::from_secs(300),
            interval_of_recovery: Nanos::from_secs(300),
        }),
        ..RecoveryConfig::md_3_16()
    }
}

pub(super) fn mirror(members: usize) -> Story {
    Story::new(config(members, 100, recovery(WriteBarrier::Overlap)))
}
