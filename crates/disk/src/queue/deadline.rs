//! The orders by place: mq-deadline of Linux 6.12, and the sweep of other systems.

use super::waiting::Waiting;
use crate::command::{Command, CommandKind};
use raidlab_units::Nanos;

/// The number of commands of one direction in a batch (`fifo_batch`).
const BATCH: u32 = 16;
/// The number of batches of reads that may go before waiting writes (`writes_starved`).
const STARVED: u32 = 2;
/// The longest wait of a read, and of a write, before it begins a
/// batch (`read_expire`, `write_expire`).
const EXPIRE: [Nanos; 2] = [Nanos::from_millis(500), Nanos::from_secs(5)];

/// The state of mq-deadline: its sweeps and its batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Deadline {
    /// The first sector of the last command of each direction.
    latest: [u64; 2],
    /// The batch's direction, and the number of its commands so far.
    direction: usize,
    batch: u32,
    /// The number of batches of reads that went before waiting writes.
    starved: u32,
}

/// The next command of a sweep that has reached sector `from`.
pub(super) fn sweep(waiting: &[Waiting], from: u64) -> Option<usize> {
    // Commands before the sweep's place wrap around, beyond all that are ahead.
    let ahead = |index: &usize| waiting[*index].command.start.0.wrapping_sub(from);
    (0..waiting.len()).min_by_key(ahead)
}

impl Deadline {
    /// Notes a command that goes to the disk.
    #[inline]
    pub(super) fn sent(&mut self, command: &Command) {
        if command.kind != CommandKind::Flush {
            self.latest[usize::from(command.kind != CommandKind::Read)] = command.start.0;
        }
    }

    /// Notes a command that goes to the disk without having waited, which counts in
    /// batches as well.
    #[inline]
    pub(super) fn pass(&mut self, command: &Command) {
        let direction = usize::from(command.kind != CommandKind::Read);
        let goes_on = direction == self.direction && command.start.0 >= self.latest[direction];
        if goes_on && self.batch < BATCH {
            self.batch += 1;
        } else if command.kind != CommandKind::Flush {
            self.direction = direction;
            self.batch = 1;
            self.starved *= u32::from(direction == 0);
        }
    }

    /// The next command of mq-deadline.
    pub(super) fn next(&mut self, waiting: &[Waiting], now: Nanos) -> Option<usize> {
        let oldest = |direction| {
            let mut all = waiting.iter();
            all.position(|one| one.direction() == direction)
        };
        if self.batch < BATCH
            && let Some(next) = self.beyond(waiting, self.direction)
        {
            self.batch += 1;
            return Some(next);
        }
        let (read, write) = (oldest(0), oldest(1));
        let starving = read.is_some() && write.is_some() && {
            self.starved += 1;
            self.starved > STARVED
        };
        let direction = usize::from(read.is_none() || starving);
        if direction == 1 {
            self.starved = 0;
        }
        let first = if direction == 1 { write } else { read }?;
        let expired = now - waiting[first].arrived >= EXPIRE[direction];
        self.direction = direction;
        self.batch = 1;
        match self.beyond(waiting, direction) {
            Some(next) if !expired => Some(next),
            _ => Some(first),
        }
    }

    /// The next command of a direction in ascending order.
    fn beyond(&self, waiting: &[Waiting], direction: usize) -> Option<usize> {
        let from = self.latest[direction];
        let all = waiting.iter().enumerate();
        let ahead =
            all.filter(|(_, one)| one.direction() == direction && one.command.start.0 >= from);
        let next = ahead.min_by_key(|(_, one)| one.command.start);
        next.map(|(index, _)| index)
    }
}
