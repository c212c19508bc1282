//! The interface between a disk's medium and the host: the overhead of a command, the transfer of
//! its data one after the other, and the completions in the order of their times.

use crate::command::Completion;
use crate::medium::parameters::DiskParameters;
use raidlab_units::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The controller and the wire of one disk.
#[derive(Debug, Clone)]
pub(crate) struct Interface {
    /// The overhead of a command that the cache answers, nanoseconds.
    pub(crate) overhead: u64,
    bytes_per_second: f64,
    /// The last transfer that was timed: its bytes and its duration. The next one is mostly of
    /// the same size.
    timed: (u64, u64),
    discard: u64,
    /// The time at which the interface is free for data to the host.
    free: u64,
    /// The time, order and tag of each command that will be complete.
    done: BinaryHeap<Reverse<(u64, u64, u64)>>,
    order: u64,
}

impl Interface {
    pub(crate) fn new(parameters: &DiskParameters) -> Self {
        Self {
            overhead: parameters.overhead_cached.0,
            bytes_per_second: parameters.interface.0,
            timed: (0, 0),
            discard: parameters.discard.unwrap_or(Nanos::ZERO).0,
            free: 0,
            done: BinaryHeap::new(),
            order: 0,
        }
    }

    /// The duration of a transfer of so many bytes, in nanoseconds.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a transfer takes well under a second"
    )]
    pub(crate) fn transfer_time(&mut self, bytes: u64) -> u64 {
        if self.timed.0 != bytes {
            let time = (bytes as f64 / self.bytes_per_second * 1e9) as u64;
            self.timed = (bytes, time);
        }
        self.timed.1
    }

    /// Completes `tag` after a transfer of so many bytes to the host, which are ready at `ready`.
    pub(crate) fn transfer(&mut self, ready: u64, bytes: u64, tag: u64) {
        self.free = self.free.max(ready) + self.transfer_time(bytes);
        self.complete(self.free, tag);
    }

    /// Completes `tag` at `time`.
    pub(crate) fn complete(&mut self, time: u64, tag: u64) {
        self.order += 1;
        self.done.push(Reverse((time, self.order, tag)));
    }

    /// Completes a discard that arrived at `now`: it needs neither arm nor dies, only the time
    /// given in the preset.
    pub(crate) fn discard(&mut self, now: u64, tag: u64) {
        self.complete(now + self.overhead + self.discard, tag);
    }

    /// The time at which the next command is complete; `u64::MAX` for never.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.done.peek().map_or(u64::MAX, |entry| entry.0.0)
    }

    /// Appends the commands that are complete at `now`.
    pub(crate) fn hand_over(&mut self, now: u64, completions: &mut Vec<Completion>) {
        while let Some(&Reverse((time, _, tag))) = self.done.peek() {
            if time > now {
                break;
            }
            self.done.pop();
            completions.push(Completion { tag });
        }
    }

    /// Whether no completion or transfer to the host is in progress.
    pub(crate) fn is_quiet(&self) -> bool {
        self.done.is_empty()
    }
}
