//! The rules, each by hand.

use super::{Class, Io, LeafQueue, Owner};
use crate::config::QueueConfig;
use raidlab_units::Nanos;

fn queue() -> LeafQueue {
    LeafQueue::new(QueueConfig::of_2014())
}

const fn io(start: u64, count: u64, owner: u32) -> Io {
    Io {
        start,
        count,
        owner: Owner::Read(owner),
    }
}

fn issued(queue: &mut LeafQueue, writes: u32) -> Vec<(u64, u64)> {
    std::iter::from_fn(|| queue.next(writes))
        .map(|(_, issue)| (issue.start, issue.count))
        .collect()
}

#[test]
fn ten_synchronous_reads_in_order_of_arrival() {
    let mut queue = queue();
    for index in 0..12 {
        queue.push(Nanos::ZERO, Class::SyncRead, io((50 - index) * 1000, 16, 0));
    }
    let starts: Vec<u64> = issued(&mut queue, 10).iter().map(|run| run.0).collect();
    let expected: Vec<u64> = (0..10).map(|index| (50 - index) * 1000).collect();
    assert_eq!(starts, expected);
    assert_eq!(queue.active(), 10);
    queue.completed(Class::SyncRead);
    assert_eq!(issued(&mut queue, 10), [(40_000, 16)]);
}

/// Minima first in class order, then maxima in class order.
#[test]
fn classes_compete_by_minimum_then_maximum() {
    let mut queue = queue();
    for index in 0..4 {
        queue.push(Nanos::ZERO, Class::Scrub, io(100_000 + index * 1000, 16, 0));
        queue.push(
            Nanos::ZERO,
            Class::AsyncWrite,
            io(200_000 + index * 1000, 16, 0),
        );
        queue.push(
            Nanos::ZERO,
            Class::AsyncRead,
            io(300_000 + index * 1000, 16, 0),
        );
    }
    let order: Vec<Class> = std::iter::from_fn(|| queue.next(2))
        .map(|(class, _)| class)
        .collect();
    use Class::{AsyncRead, AsyncWrite, Scrub};
    assert_eq!(
        order,
        [
            AsyncRead, AsyncWrite, Scrub, AsyncRead, AsyncRead, AsyncWrite, Scrub
        ]
    );
}

#[test]
fn asynchronous_classes_go_up_and_wrap() {
    let mut queue = queue();
    for start in [5000, 1000, 9000] {
        queue.push(Nanos::ZERO, Class::AsyncWrite, io(start, 16, 0));
    }
    queue.last_start = 5000;
    assert_eq!(issued(&mut queue, 10), [(9000, 16), (1000, 16), (5000, 16)]);
}

/// 256 sectors at most, both ways; writes only without a gap, reads over
/// 64 sectors of it.
#[test]
fn neighbours_are_merged_up_to_the_limit() {
    let mut queue = queue();
    for index in 0..20 {
        queue.push(Nanos::ZERO, Class::AsyncWrite, io(index * 16, 16, 0));
    }
    queue.push(Nanos::ZERO, Class::AsyncWrite, io(328, 16, 0));
    queue.last_start = 150;
    assert_eq!(issued(&mut queue, 10), [(0, 256), (256, 64), (328, 16)]);
    for start in [0, 80, 180] {
        queue.push(Nanos::ZERO, Class::SyncRead, io(start, 16, 7));
    }
    let (_, issue) = queue.next(10).expect("reads wait");
    assert_eq!((issue.start, issue.count), (0, 96));
    assert_eq!(
        (issue.owner, issue.others),
        (Owner::Read(7), vec![Owner::Read(7)])
    );
    assert_eq!(issued(&mut queue, 10), [(180, 16)]);
}

/// By hand from the rules of 2021.
#[test]
fn scrub_lives_on_credit_while_others_are_served() {
    let mut queue = LeafQueue::new(QueueConfig::of_2_3());
    for index in 0..20 {
        queue.push(Nanos::ZERO, Class::Scrub, io(index * 100_000, 16, 0));
    }
    // Alone: one at a time, until five have completed; then three.
    for _ in 0..5 {
        assert_eq!(issued(&mut queue, 10).len(), 1);
        queue.completed(Class::Scrub);
    }
    assert_eq!(issued(&mut queue, 10).len(), 3);
    for _ in 0..3 {
        queue.completed(Class::Scrub);
    }
    // With a read in the disk: one, and none until a read has completed while
    // another was there.
    for start in [3_000_000, 5_000_000] {
        queue.push(Nanos::ZERO, Class::SyncRead, io(start, 16, 1));
    }
    let order: Vec<Class> = std::iter::from_fn(|| queue.next(10))
        .map(|(class, _)| class)
        .collect();
    assert_eq!(order, [Class::SyncRead, Class::Scrub, Class::SyncRead]);
    queue.completed(Class::Scrub);
    assert!(queue.next(10).is_none(), "the credit is used up");
    queue.completed(Class::SyncRead);
    for _ in 0..5 {
        assert_eq!(queue.next(10).map(|(class, _)| class), Some(Class::Scrub));
        assert!(queue.next(10).is_none(), "one at a time");
        queue.completed(Class::Scrub);
    }
    assert!(queue.next(10).is_none(), "five for each");
}

#[test]
fn half_seconds_are_served_one_after_the_other() {
    let mut queue = LeafQueue::new(QueueConfig::of_2_3());
    queue.push(Nanos::from_secs(1), Class::AsyncWrite, io(100_000, 16, 0));
    queue.push(Nanos::ZERO, Class::AsyncWrite, io(900_000, 16, 0));
    queue.push(Nanos::ZERO, Class::AsyncWrite, io(500_000, 16, 0));
    // Merged with its neighbour, whenever that came.
    queue.push(Nanos::from_secs(1), Class::AsyncWrite, io(500_016, 16, 0));
    queue.last_end = 600_000;
    let starts = issued(&mut queue, 10);
    assert_eq!(starts, [(900_000, 16), (500_000, 32), (100_000, 16)]);
}

/// Block 48 is wanted; in 2014 it goes alone, since 2.3 with what lies beside it,
/// but not with what scrub reads there.
#[test]
fn what_somebody_waits_for_takes_prefetch_along() {
    for (config, expected) in [
        (QueueConfig::of_2014(), (48, 16)),
        (QueueConfig::of_2_3(), (0, 80)),
    ] {
        let mut queue = LeafQueue::new(config);
        for (class, start) in [
            (Class::AsyncRead, 0),
            (Class::AsyncRead, 64),
            (Class::AsyncRead, 32),
            (Class::AsyncRead, 16),
            (Class::Scrub, 80),
            (Class::AsyncRead, 160),
            (Class::SyncRead, 48),
        ] {
            queue.push(Nanos::ZERO, class, io(start, 16, 1));
        }
        queue.last_class = Class::Scrub.index();
        let (class, issue) = queue.next(10).expect("reads wait");
        assert_eq!(class, Class::SyncRead);
        assert_eq!((issue.start, issue.count), expected);
    }
}

/// Three ordered ahead are in the disk, two wait; one of those is wanted now.
#[test]
fn a_read_ordered_ahead_that_is_wanted_need_not_wait_for_others() {
    let mut queue = LeafQueue::new(QueueConfig::of_2_3());
    for index in 0..5 {
        let ahead = io(u64::from(index) * 1000, 16, index);
        queue.push(Nanos::ZERO, Class::AsyncRead, ahead);
    }
    assert_eq!(issued(&mut queue, 10).len(), 3);
    queue.raise(1000, Owner::Read(1));
    assert!(queue.next(10).is_none(), "the disk has it");
    queue.raise(4000, Owner::Read(9));
    assert!(queue.next(10).is_none(), "another's");
    queue.raise(4000, Owner::Read(4));
    let (class, issue) = queue.next(10).expect("one is wanted");
    assert_eq!((class, issue.start), (Class::SyncRead, 4000));
    assert!(queue.next(10).is_none());
    queue.completed(Class::AsyncRead);
    assert_eq!(issued(&mut queue, 10), [(3000, 16)]);
}

#[test]
fn a_drained_queue_names_everyone_who_waits() {
    let mut queue = queue();
    queue.push(Nanos::ZERO, Class::SyncRead, io(0, 8, 1));
    queue.push(Nanos::ZERO, Class::Scrub, io(0, 8, 2));
    assert_eq!(queue.drain(), [Owner::Read(1), Owner::Read(2)]);
    assert!(queue.next(10).is_none());
}
