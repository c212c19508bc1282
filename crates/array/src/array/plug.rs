//! The plugs of the threads that send a sync's commands: the sync's own sends the reads,
//! the array's the writes.
//!
//! A command that continues one for its member becomes part of it, up to what a disk takes,
//! and all parts end together. The newest command in the plug is tried if it is for that
//! member, else the oldest one for it (Linux 6.12.117 block/blk-merge.c,
//! `blk_attempt_plug_merge`). Before a new one goes in, the plug is emptied if its oldest
//! has 128 KiB and more, or if it has 64 (block/blk-mq.c, `blk_add_rq_to_plug`).

use super::Command;
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
        let open = match command.operation {
            Operation::Read => &mut self.reads,
            _ => &mut self.writes,
        };
        let plugged = out.commands.iter_mut();
        let mut plugged: Vec<_> = plugged.filter(|it| open.contains(&it.id)).collect();
        let is_long = plugged.first().is_some_and(|oldest| oldest.count >= LONG);
        let is_full = plugged.len() >= MOST;
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
        if plugged.is_empty() || is_long || is_full {
            open.clear();
        }
        open.push(command.id);
        false
    }

    /// What was part of a command that has ended.
    pub(super) fn parts(&mut self, id: CommandId) -> Vec<Command> {
        self.parts.remove(&id).unwrap_or_default()
    }
}
