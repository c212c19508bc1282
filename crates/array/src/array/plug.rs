//! The plugs of the threads that send a sync's commands: the sync's own sends the reads,
//! the array's the writes.
//!
//! A command that continues one for its member becomes part of it, up to what a disk takes,
//! and all parts end together. The newest command in the plug is tried if it is for that
//! member, else the oldest one for it (Linux 6.12.117 block/blk-merge.c,
//! `blk_attempt_plug_merge`). Before a new one goes in, the plug is emptied if its oldest
//! has 128 KiB and more, or if it has 64 (block/blk-mq.c, `blk_add_rq_to_plug`). What
//! leaves together goes into the disks' schedulers before any of it goes to a disk: there it
//! is sorted, and what continues another command is merged with it (block/mq-deadline.c,
//! `dd_insert_requests`; block/elevator.c, `elv_attempt_insert_merge`).

use super::{Array, Command};
use crate::request::{CommandId, MemberCommand, Operation, Outputs};
use raidlab_units::Sectors;
use std::collections::BTreeMap;

/// The length from which on a command empties the plug (`BLK_PLUG_FLUSH_SIZE`).
const LONG: Sectors = Sectors(256);

/// Twice `BLK_MAX_REQUEST_COUNT`, as there are several disks.
const MOST: usize = 64;

/// What was merged, and into what the next command may be.
#[derive(Debug, Default)]
pub(super) struct Plug {
    /// Commands in it, as far as they have not left, oldest first.
    reads: Vec<CommandId>,
    writes: Vec<CommandId>,
    /// By the command that they are part of.
    parts: BTreeMap<CommandId, Vec<Command>>,
}

impl Plug {
    /// Merges a command into one that has not left; false: it goes by itself.
    pub(super) fn takes(
        &mut self,
        command: &MemberCommand,
        part: Command,
        longest: Sectors,
        out: &mut Outputs,
    ) -> bool {
        let open = self.open(command.operation);
        let plugged = out.commands.iter_mut();
        let mut plugged: Vec<_> = plugged.filter(|it| open.contains(&it.id)).collect();
        let newest = plugged.len().checked_sub(1);
        let newest = newest.filter(|at| plugged[*at].slot == command.slot);
        let oldest = || plugged.iter().position(|it| it.slot == command.slot);
        if let Some(at) = newest.or_else(oldest) {
            let other = &mut plugged[at];
            if other.start + other.count == command.start && other.count + command.count <= longest
            {
                other.count += command.count;
                self.parts.entry(other.id).or_default().push(part);
                return true;
            }
        }
        false
    }

    /// Whether it is to be emptied before another command of this kind.
    pub(super) fn is_full(&self, operation: Operation, out: &Outputs) -> bool {
        let open = self.open(operation);
        let plugged = out.commands.iter().filter(|it| open.contains(&it.id));
        let oldest = plugged.clone().next();
        oldest.is_some_and(|it| it.count >= LONG) || plugged.count() >= MOST
    }

    fn open(&self, operation: Operation) -> &[CommandId] {
        match operation {
            Operation::Read => &self.reads,
            _ => &self.writes,
        }
    }

    fn open_mut(&mut self, operation: Operation) -> &mut Vec<CommandId> {
        match operation {
            Operation::Read => &mut self.reads,
            _ => &mut self.writes,
        }
    }

    /// A command goes in that was part of none.
    pub(super) fn holds(&mut self, command: &MemberCommand) {
        self.open_mut(command.operation).push(command.id);
    }

    /// It is emptied of commands of a kind; those that have not left.
    fn empty(&mut self, operation: Operation, out: &mut Outputs) -> Vec<MemberCommand> {
        let open = std::mem::take(self.open_mut(operation));
        out.commands
            .extract_if(.., |command| open.contains(&command.id))
            .collect()
    }

    /// A command that was in it became part of another one, with all that was part of it.
    fn joins(&mut self, id: CommandId, other: CommandId, part: Command) {
        let further = self.parts.remove(&id).unwrap_or_default();
        let parts = self.parts.entry(other).or_default();
        parts.push(part);
        parts.extend(further);
    }

    /// What was part of a command that has ended.
    pub(super) fn parts(&mut self, id: CommandId) -> Vec<Command> {
        self.parts.remove(&id).unwrap_or_default()
    }
}

impl Array {
    /// Empties the plug of commands of a kind.
    pub(super) fn unplug(&mut self, operation: Operation, longest: Sectors, out: &mut Outputs) {
        let mut leaving = self.plug.empty(operation, out);
        leaving.sort_by_key(|command| (command.slot, command.start));
        let mut leaving = leaving.into_iter();
        let Some(mut last) = leaving.next() else {
            return;
        };
        for next in leaving {
            let continues = last.slot == next.slot && last.start + last.count == next.start;
            if continues
                && last.count + next.count <= longest
                && let Some(part) = self.commands.take_key(next.id.0)
            {
                last.count += next.count;
                self.plug.joins(next.id, last.id, part);
                self.members.became_part(next.slot);
                self.senders.ended(next.id, next.slot, out);
            } else {
                out.commands.push(std::mem::replace(&mut last, next));
            }
        }
        out.commands.push(last);
    }
}
