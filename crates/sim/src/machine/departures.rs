//! The departures of the commands of a subject's threads, where a thread computes for them.
//!
//! On the kernel bench a reading of the clock takes time, and Linux 6.1 reads it for each bio that
//! a thread sends (block/blk-core.c, `submit_bio_noacct_nocheck`: `blkcg_bio_issue_init`), and once more
//! for each request that they become (block/blk-mq.c, `blk_mq_rq_ctx_init`). Linux 6.12 reads it
//! once for all that is under a plug (block/blk.h, `blk_time_get_ns`).
//!
//! The thread of an array with parity sends a bio for each block of a stripe, and goes from stripe
//! to stripe, so the commands of its members are complete together. A block of another sync is a
//! bio of 64 KiB (drivers/md/raid1-10.c, `RESYNC_BLOCK_SIZE`), and commands of such blocks leave
//! one after the other. Metadata are few, and are sent before the commands of a sync.

use super::Machine;
use raidlab_array::{MemberCommand, Operation, Purpose, Sender};
use raidlab_units::{Nanos, Sectors};
use std::collections::VecDeque;

/// The size of a bio of an array with parity: a block of a stripe.
const STRIPE_BIO: Sectors = Sectors(8);
/// The size of a bio of another sync.
const SYNC_BIO: Sectors = Sectors(128);

/// Commands that a thread computes for.
#[derive(Debug, Default)]
pub(super) struct Departures {
    /// The time at which each command leaves, and its disk, in this order.
    waiting: VecDeque<(Nanos, usize, MemberCommand)>,
}

impl Departures {
    /// The time at which the next command leaves; `u64::MAX`: none does.
    pub(super) fn next(&self) -> u64 {
        self.waiting.front().map_or(u64::MAX, |(time, ..)| time.0)
    }
}

impl Machine {
    /// Sends the commands that the subject ordered, or has them leave later.
    pub(super) fn send(&mut self) {
        let now = self.now;
        let mut commands = std::mem::take(&mut self.outputs.commands);
        if !self.turns.has_clock() {
            for command in commands.drain(..) {
                let disk = self.subject.disk_of(command.slot);
                match self.takes(disk, command.operation) {
                    true => self.drives[disk].submit(now, &command),
                    false => self.refused.push(command.id),
                }
            }
            self.outputs.commands = commands;
            return;
        }
        let has_stripes = self.subject.threads_go_first();
        let all_leave = match has_stripes {
            true => self.turns.computes_for(now, &commands, STRIPE_BIO),
            false => None,
        };
        for command in commands.drain(..) {
            let disk = self.subject.disk_of(command.slot);
            let leaves = match has_stripes {
                true => all_leave,
                false => self.turns.computes_for(now, &[command], SYNC_BIO),
            };
            let at_once = matches!(command.sender, Sender::Process(_))
                || command.purpose == Purpose::Metadata
                || self.processor.is_some();
            match leaves.filter(|_| !at_once) {
                _ if !self.takes(disk, command.operation) => self.refused.push(command.id),
                Some(time) => self.departures.waiting.push_back((time, disk, command)),
                None => self.drives[disk].submit(now, &command),
            }
        }
        self.outputs.commands = commands;
    }

    /// Whether such a command goes to a disk; else it has ended at once.
    pub(super) fn takes(&self, disk: usize, operation: Operation) -> bool {
        match operation {
            Operation::Discard => self.drives[disk].takes_discards(),
            Operation::Flush => !self.drives[disk].keeps_nothing(),
            Operation::Read | Operation::Write => true,
        }
    }

    /// Sends the commands for which the computing has ended by now.
    pub(super) fn depart(&mut self) {
        let now = self.now;
        let waiting = &mut self.departures.waiting;
        while let Some((_, disk, command)) = waiting.pop_front_if(|(time, ..)| *time <= now) {
            self.drives[disk].submit(now, &command);
        }
    }
}
