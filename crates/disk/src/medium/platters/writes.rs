//! Writes: into the cache, through it, or waiting at its door; flushes.
//!
//! The cache has each sector once. A write of sectors that still wait in it replaces them, also
//! where the cache is full, and the platters get the sectors once. Sectors of an incomplete write
//! that another one covers are not written with the former any more. A flush that waits for the
//! older data waits for those that replaced them.

use super::reads::share;
use super::scheduling::{Candidate, Pool};
use super::{Arm, Platters, Work};
use crate::command::{Command, CommandKind};

impl Platters {
    pub(super) fn submit_write(&mut self, now: u64, command: Command) {
        self.note_streaming_progress(now);
        let partial = self.covers_in_part(&command);
        if self.read_ahead_on() {
            let (start, end) = self.surface.positions(command.start.0, command.end());
            self.invalidate(start, end);
        }
        if !self.overwrite(now, &command) {
            if self.has_room(&command) && !self.is_behind(&command) {
                self.accept_write(now, &command, partial);
            } else {
                self.door.push_back((command, partial));
            }
        }
        self.wake(now);
    }

    /// Removes from the segments what a write made stale.
    pub(super) fn invalidate(&mut self, start: u64, end: u64) {
        let filling = match self.arm {
            Arm::Streaming { segment, .. } => segment,
            Arm::Idle | Arm::Busy { .. } => None,
        };
        self.segments.invalidate(start, end, filling);
    }

    /// Whether the write cache and, for writes that go there, a shingled disk's own cache have room
    /// for a write.
    fn has_room(&self, command: &Command) -> bool {
        self.dirty.len() < self.write_window.max(1) && !self.must_wait(command)
    }

    /// Whether others wait for the room in a shingled disk's own cache that a write needs too.
    fn is_behind(&self, command: &Command) -> bool {
        let shingles = self.shingles.as_ref();
        !self.door.is_empty() && shingles.is_some_and(|shingles| shingles.takes(command.start.0))
    }

    /// Admits a write that waits at the door, after a write has reached the medium or a band is
    /// clean, unless it must go to a shingled disk's own cache and that is full; and those after it
    /// that need no room.
    pub(super) fn admit(&mut self, now: u64) {
        let mut is_room = true;
        while let Some((command, partial)) = self.door.front().copied() {
            if !self.overwrite(now, &command) {
                if !is_room || self.must_wait(&command) {
                    return;
                }
                is_room = false;
                self.accept_write(now, &command, partial);
            }
            self.door.pop_front();
        }
    }

    /// The tag of a write that is complete only when it is on the medium.
    fn waits_for_medium(&self, command: &Command) -> Option<u64> {
        let through = command.kind == CommandKind::WriteThrough || self.write_window == 0;
        through.then_some(command.tag)
    }

    /// Merges a write into a waiting one in the cache that covers it completely. Returns whether it
    /// did: a write that is complete only on the medium is kept separate.
    fn overwrite(&mut self, now: u64, command: &Command) -> bool {
        if self.dirty.is_empty() || self.waits_for_medium(command).is_some() {
            return false;
        }
        let mut write = self.candidate(now, command, None);
        self.locate(&mut write, command);
        let holds = |old: &Candidate| old.start <= write.start && write.end <= old.end;
        let held = write.detour == 0
            && self.dirty.touching(write.start, write.end).any(|(_, old)| holds(old));
        if held {
            self.take(now, &write, command);
        }
        held
    }

    fn accept_write(&mut self, now: u64, command: &Command, partial: [bool; 2]) {
        let mut write = self.candidate(now, command, self.waits_for_medium(command));
        write.partial = partial;
        self.place_write(&mut write, command);
        self.replace(&mut write);
        self.dirty.insert(write);
        self.take(now, &write, command);
    }

    /// Removes from older writes in the cache the sectors that a write covers. The write becomes as
    /// old as the oldest of them.
    fn replace(&mut self, write: &mut Candidate) {
        let (start, end) = (write.start, write.end);
        let overlaps = |old: &Candidate| old.tag.is_none() && old.start < end && start < old.end;
        let first_of = |pool: &Pool| {
            let near = pool.touching(start, end);
            near.filter(|(_, old)| overlaps(old)).map(|(index, _)| index).min()
        };
        while let Some(index) = first_of(&self.dirty) {
            let old = self.dirty.remove(index);
            write.sequence = write.sequence.min(old.sequence);
            let [first, last] = old.partial;
            let before = (old.start, old.end.min(start), [first, false]);
            let behind = (old.start.max(end), old.end, [false, last]);
            for (start, end, partial) in [before, behind] {
                if start < end {
                    let bytes = share(old.bytes, end - start, old.end - old.start);
                    self.dirty.insert(Candidate { start, end, bytes, partial, ..old });
                }
            }
        }
    }

    /// Takes a write into the cache: it is complete, unless the host waits until it is
    /// on the medium.
    fn take(&mut self, now: u64, write: &Candidate, command: &Command) {
        if write.tag.is_some() {
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
