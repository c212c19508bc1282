//! A disk that can be computed by hand: first come, first served; a constant time
//! for every access that does not continue the one before, and a constant rate.
//!
//! For tests, and for questions in which the disk shall not have a character.

use raidlab_disk::{Command, CommandKind, Completion};
use raidlab_units::{Bytes, Nanos};
use std::collections::VecDeque;

/// The numbers of a simple disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimpleDiskParameters {
    /// Time of an access that begins elsewhere than the one before ended.
    pub access: Nanos,
    /// Bytes in a second, at least 1.
    pub bytes_per_second: u64,
}

/// A simple disk in virtual time; it speaks as [`raidlab_disk::Disk`] does.
#[derive(Debug)]
pub(crate) struct SimpleDisk {
    parameters: SimpleDiskParameters,
    /// When all that was submitted is done.
    free_at: u64,
    /// The sector after the last access.
    head: u64,
    done: VecDeque<(u64, u64)>,
}

impl SimpleDisk {
    pub(crate) fn new(parameters: SimpleDiskParameters) -> Self {
        Self {
            parameters,
            free_at: 0,
            head: 0,
            done: VecDeque::new(),
        }
    }

    pub(crate) fn submit(&mut self, now: Nanos, command: Command) {
        self.free_at = self.free_at.max(now.0);
        if command.kind != CommandKind::Flush {
            if command.start.0 != self.head {
                self.free_at += self.parameters.access.0;
            }
            self.head = command.end();
            self.free_at += self.transfer(command.count.to_bytes());
        }
        self.done.push_back((self.free_at, command.tag));
    }

    fn transfer(&self, bytes: Bytes) -> u64 {
        let nanos = u128::from(bytes.0) * 1_000_000_000;
        let rate = u128::from(self.parameters.bytes_per_second.max(1));
        u64::try_from(nanos / rate).unwrap_or(u64::MAX / 4)
    }

    pub(crate) fn next_event(&self) -> Option<Nanos> {
        self.done.front().map(|&(time, _)| Nanos(time))
    }

    pub(crate) fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        while let Some(&(time, tag)) = self.done.front() {
            if time > now.0 {
                break;
            }
            self.done.pop_front();
            completions.push(Completion { tag });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SimpleDisk, SimpleDiskParameters};
    use raidlab_disk::{Command, CommandKind};
    use raidlab_units::{Nanos, Sectors};

    fn completions(commands: &[(u64, CommandKind, u64, u64)]) -> Vec<(u64, u64)> {
        let mut disk = SimpleDisk::new(SimpleDiskParameters {
            access: Nanos(8_000_000),
            bytes_per_second: 170_000_000,
        });
        for (tag, &(at, kind, start, count)) in commands.iter().enumerate() {
            disk.submit(
                Nanos(at),
                Command {
                    tag: tag as u64,
                    kind,
                    start: Sectors(start),
                    count: Sectors(count),
                },
            );
        }
        let mut all = Vec::new();
        while let Some(time) = disk.next_event() {
            let mut done = Vec::new();
            disk.advance(time, &mut done);
            all.extend(done.iter().map(|one| (one.tag, time.0)));
        }
        all
    }

    #[test]
    fn times_by_hand() {
        use CommandKind::{Flush, Read, Write};
        // 4096 bytes at 170 MB/s: 24094 ns. The first continues at sector 0.
        let commands = [
            (100, Read, 0, 8),
            (200, Write, 8, 8),
            (300, Flush, 0, 0),
            (400, Read, 0, 8),
            (20_000_000, Read, 8, 16),
        ];
        assert_eq!(
            completions(&commands),
            [
                (0, 24_194),
                (1, 48_288),
                (2, 48_288),
                (3, 8_072_382),
                (4, 20_048_188),
            ]
        );
    }
}
