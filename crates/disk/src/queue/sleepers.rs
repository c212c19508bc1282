//! Processes that sleep before a disk until they get a place, and when a place goes to a sleeper.
//!
//! A place is a tag, or a request where there is a scheduler. A process that finds none sleeps
//! (Linux block/blk-mq-tag.c, `blk_mq_get_tag`), and the end of a command wakes the one that has
//! slept for longest. But a process that does not sleep takes a free place regardless of sleepers.
//! On a host with one processor the process that gets an answer runs first, as it is woken before
//! the place is free (block/blk-mq.c, `blk_mq_end_request`), and it sends its next command before
//! the sleeper has the processor. So a process that keeps its commands in flight keeps its places,
//! and one that came later hardly gets any. Where each process has a processor of its own a sleeper
//! takes the place at once.

use super::Submitter;
use super::waiting::Waiting;
use raidlab_units::Nanos;
use std::collections::{BTreeMap, VecDeque};

/// The sleepers before a disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Sleepers {
    /// The commands that they have to send, in the order in which they fell asleep.
    pub(super) waiting: VecDeque<Waiting>,
    /// The time for which a process runs after it has got an answer, before a sleeper does; zero
    /// where each has a processor of its own.
    turn: Nanos,
    /// The time before which no sleeper has the processor.
    from: Nanos,
    /// The senders of the commands in flight, by their tags, where that matters.
    senders: BTreeMap<u64, u32>,
}

impl Sleepers {
    pub(super) fn new(turn: Nanos) -> Self {
        Self {
            turn,
            ..Self::default()
        }
    }

    /// Notes that a process sends a command.
    #[inline]
    pub(super) fn sends(&mut self, tag: u64, from: Submitter) {
        if self.turn > Nanos::ZERO {
            self.senders.insert(tag, from.process);
        }
    }

    /// Notes that a command has ended: its sender runs now, unless it sleeps itself.
    pub(super) fn ended(&mut self, now: Nanos, tag: u64) {
        if let Some(sender) = self.senders.remove(&tag)
            && self.waiting.iter().all(|one| one.from.process != sender)
        {
            self.from = self.from.max(now) + self.turn;
        }
    }

    /// Whether a sleeper may take a free place.
    pub(super) fn may_take(&self, now: Nanos) -> bool {
        now >= self.from
    }

    /// The time from which sleepers may take a place, if there are any that have to wait for it.
    pub(super) fn next_event(&self) -> Option<Nanos> {
        let waits = self.turn > Nanos::ZERO && !self.waiting.is_empty();
        waits.then_some(self.from)
    }
}

#[cfg(test)]
mod tests {
    use crate::medium::constant;
    use crate::queue::{Order, QueueRules, Submitter};
    use crate::shared::HostQueue;
    use crate::{Command, CommandKind, Disk, DiskParameters, MediumParameters};
    use raidlab_random::Stream;
    use raidlab_units::{BytesPerSecond, Nanos, Sectors};

    /// A process keeps two commands with a disk of two places that needs a millisecond, and sends
    /// the next ones `turnaround` after each answer, ten in all. Another one sleeps from the
    /// beginning. How many answers the first one has when the other gets its place.
    fn answers_before_the_sleeper(order: Order, turn: Nanos, turnaround: Nanos) -> u64 {
        let access = Nanos(1_000_000);
        let medium = MediumParameters::Constant(constant::Parameters { access });
        let parameters = DiskParameters::uniform(Sectors(1 << 30), BytesPerSecond(1e11), medium);
        let disk = Disk::new(parameters, Nanos::ZERO, Stream::new(0));
        let rules = QueueRules {
            tags: if order == Order::None { 2 } else { 1 },
            order,
            turn,
            ..QueueRules::SATA
        };
        let mut queue = HostQueue::new(disk.into(), rules);
        let send = |queue: &mut HostQueue, now, tag, process| {
            let command = Command {
                tag,
                kind: CommandKind::Read,
                start: Sectors(1000 * tag),
                count: Sectors(8),
            };
            let from = Submitter {
                process,
                sync: true,
                alone: false,
                first: false,
            };
            queue.submit_from(now, command, from);
        };
        send(&mut queue, Nanos::ZERO, 0, 0);
        send(&mut queue, Nanos::ZERO, 1, 0);
        send(&mut queue, Nanos::ZERO, 100, 1);
        let (mut sent, mut answers) = (2, 0);
        let mut due = Vec::new();
        loop {
            let next = due.iter().copied().chain(queue.next_event()).min();
            let Some(now) = next else {
                panic!("the sleeper never gets its place");
            };
            while due.first() == Some(&now) {
                due.remove(0);
                send(&mut queue, now, sent, 0);
                sent += 1;
            }
            let mut completions = Vec::new();
            queue.advance(now, &mut completions);
            for completion in completions {
                if completion.tag == 100 {
                    return answers;
                }
                answers += 1;
                if sent + (due.len() as u64) < 10 {
                    due.push(now + turnaround);
                }
            }
        }
    }

    #[test]
    fn who_has_an_answer_takes_the_place_before_a_sleeper() {
        let (turn, turnaround) = (Nanos(5000), Nanos(4000));
        for order in [Order::None, Order::MqDeadline] {
            let own = answers_before_the_sleeper(order, Nanos::ZERO, turnaround);
            let shared = answers_before_the_sleeper(order, turn, turnaround);
            let late = answers_before_the_sleeper(order, turn, Nanos(6000));
            assert!(own <= 3 && late <= 3, "{order:?}: {own} {late}");
            assert!(shared >= 8, "{order:?}: {shared}");
        }
    }
}
