//! What md did otherwise in Linux 6.1, beside what it does in 6.12.

use crate::harness::{Make, World, as_md};
use raidlab_array::{Level, MdRules, MdThreads, MemberCommand, Operation};
use raidlab_units::Nanos;

/// An array of md's, by the rules of 6.1 or of 6.12.
fn md(level: Level, members: usize, is_6_1: bool) -> World {
    md_with(level, members, is_6_1, Nanos::ZERO)
}

/// The same; a process submits its next request this long after an answer.
fn md_with(level: Level, members: usize, is_6_1: bool, turnaround: Nanos) -> World {
    let disks = Make::new(level, members).disks();
    let rules = match is_6_1 {
        true => MdRules::LINUX_6_1,
        false => MdRules::LINUX_6_12,
    };
    let world = World::assemble_with(
        disks,
        false,
        |_| (),
        |engine| {
            engine.recovery.threads = as_md(rules).map(|threads| MdThreads {
                turnaround,
                ..threads
            });
        },
    );
    world.unwrap()
}

/// A write leaves the missing member 1 out, and another one goes to members 2 and 3 alone: its
/// bit goes in 6.1 (`R10BIO_Degraded`).
#[test]
fn bits_stay_of_writes_that_left_a_member_out() {
    for is_6_1 in [false, true] {
        let mut world = md(Level::Raid10, 4, is_6_1);
        world.write(256, 8, 1);
        world.disks.get_mut(&1).unwrap().dead = true;
        world.write(0, 8, 2);
        world.write(144, 8, 3);
        world.run_for(Nanos::from_secs(20));
        let bitmap = world.disks[&0].metadata().bitmap.unwrap();
        assert!(bitmap.test(0), "members 0 and 1");
        assert_eq!(bitmap.test(2), !is_6_1, "members 2 and 3");
    }
}

/// In 6.1 one flush is on its way at a time, and the next one is for all who came meanwhile.
#[test]
fn a_flush_is_for_all_who_wait() {
    for is_6_1 in [false, true] {
        let mut world = md(Level::Raid1, 2, is_6_1);
        world.write(0, 8, 1);
        world.finished.clear();
        for _ in 0..3 {
            world.submit(Operation::Flush, 0, 0, 0);
            world.now += Nanos::from_micros(10);
        }
        let at_first = if is_6_1 { 2 } else { 6 };
        assert_eq!(world.queue.len(), at_first, "one for each member");
        let before = world.executed;
        while world.step(None) {
            world.now += Nanos::from_micros(10);
        }
        assert_eq!(world.executed - before, if is_6_1 { 4 } else { 6 });
        assert_eq!(world.finished.len(), 3);
    }
}

/// The next flush is sent by a worker, behind the process that the last one has answered: what
/// this process writes is on its way before.
#[test]
fn the_next_flush_covers_what_the_last_one_s_process_writes() {
    let turnaround = Nanos::from_micros(20);
    let mut world = md_with(Level::Raid1, 2, true, turnaround);
    world.write(0, 8, 1);
    for _ in 0..2 {
        world.submit(Operation::Flush, 0, 0, 0);
        world.now += Nanos::from_micros(10);
    }
    while world.step(None) {}
    assert_eq!(world.finished.len(), 2, "the write and the first flush");
    world.run_until(world.now + turnaround);
    world.submit(Operation::Write, 8, 8, 2);
    let is_write = |it: &MemberCommand| it.operation == Operation::Write;
    assert!(world.queue.len() == 2 && world.queue.iter().all(is_write));
    world.run_until(world.now + turnaround);
    assert_eq!(world.finished.len(), 4);
}
