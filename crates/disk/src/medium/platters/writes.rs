//! Writes: into the cache, through it, or waiting at its door; flushes.

use super::{Arm, Platters, Work};
use crate::command::{Command, CommandKind};

impl Platters {
    pub(super) fn submit_write(&mut self, now: u64, command: Command) {
        self.note_streaming_progress(now);
        let partial = self.covers_in_part(&command);
        if self.read_ahead_on() {
            let start = self.surface.position(command.start.0);
            let end = self.surface.position(command.end());
            self.invalidate(start, end);
        }
        if self.has_room(&command) {
            self.accept_write(now, &command, partial);
        } else {
            self.door.push_back((command, partial));
        }
        self.wake(now);
    }

    /// What a write made stale is in no segment any more.
    pub(super) fn invalidate(&mut self, start: u64, end: u64) {
        let filling = match self.arm {
            Arm::Streaming { segment, .. } => segment,
            Arm::Idle | Arm::Busy { .. } => None,
        };
        self.segments.invalidate(start, end, filling);
    }

    /// Whether the write cache, and where it goes there a shingled disk's own, take a
    /// write.
    fn has_room(&self, command: &Command) -> bool {
        self.dirty.len() < self.write_window.max(1) && !self.must_wait(command)
    }

    /// A write is on the medium, or a band is clean: one that waits at the door comes
    /// in, unless it must go to a shingled disk's own cache and that is full.
    pub(super) fn admit(&mut self, now: u64) {
        let waits = |command: &Command| self.must_wait(command);
        if self.door.front().is_some_and(|first| !waits(&first.0))
            && let Some((command, partial)) = self.door.pop_front()
        {
            self.accept_write(now, &command, partial);
        }
    }

    pub(super) fn accept_write(&mut self, now: u64, command: &Command, partial: [bool; 2]) {
        let through = command.kind == CommandKind::WriteThrough || self.write_window == 0;
        let mut write = self.candidate(now, command, through.then_some(command.tag));
        write.partial = partial;
        self.place_write(&mut write, command);
        self.dirty.insert(write);
        if through {
            self.awaited += 1;
        } else {
            let ready = now + self.interface.overhead;
            self.interface.transfer(ready, write.bytes, command.tag);
        }
    }

    pub(super) fn submit_flush(&mut self, now: u64, tag: u64) {
        let destaging = matches!(
            self.arm,
            Arm::Busy {
                what: Work::Destage(_),
                ..
            }
        );
        if self.dirty.is_empty() && self.door.is_empty() && !destaging {
            self.interface.complete(now + self.interface.overhead, tag);
            return;
        }
        self.sequence += 1;
        self.flushes.push((tag, self.sequence));
        self.wake(now);
    }

    pub(super) fn finish_flushes(&mut self, now: u64) {
        if self.flushes.is_empty() {
            return;
        }
        let oldest = self
            .dirty
            .candidates()
            .iter()
            .map(|write| write.sequence)
            .min()
            .unwrap_or(u64::MAX);
        let flushes = std::mem::take(&mut self.flushes);
        for (tag, sequence) in flushes {
            if oldest > sequence {
                self.interface.complete(now, tag);
            } else {
                self.flushes.push((tag, sequence));
            }
        }
    }
}
