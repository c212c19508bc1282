//! In which order md, as the model has it, writes bits and data.

use crate::harness::{Make, World, as_md, slot, with_fine_bitmaps};
use crate::more_life::ours_and_mds;
use raidlab_array::{
    EngineOptions, Level, MdRules, MdThreads, MemberCommand, Operation, Purpose, RequestId,
};
use raidlab_md::Raid5d;
use raidlab_units::Nanos;

/// An array as md has it, with a bit for each sector.
fn md(level: Level, members: usize, change: impl FnOnce(&mut EngineOptions)) -> World {
    let disks = with_fine_bitmaps(Make::new(level, members).disks());
    let world = World::assemble_with(
        disks,
        false,
        |_| (),
        |engine| {
            engine.recovery.threads = as_md(MdRules::LINUX_6_12);
            change(engine);
        },
    );
    world.unwrap()
}

fn mirror() -> World {
    let mut world = md(Level::Raid1, 2, |_| ());
    world.write(0, 8, 1);
    world
}

fn has_finished(world: &World, id: RequestId) -> bool {
    world.finished.iter().any(|finished| finished.id == id)
}

/// Writes of 8 sectors, each at another moment.
fn writes(world: &mut World, starts: &[u64]) -> Vec<RequestId> {
    let submit = |start: &u64| {
        world.now.0 += 1;
        world.submit(Operation::Write, *start, 8, 2)
    };
    starts.iter().map(submit).collect()
}

/// Linux drivers/md/md.c, `md_super_write`: each page and each superblock is preceded by a flush
/// of that member alone, where an array of our own flushes all members once.
#[test]
fn each_write_of_metadata_has_a_flush_before_it() {
    for (imitates_md, mut world) in ours_and_mds() {
        world.write(0, 8, 1);
        world.run_for(Nanos::from_millis(1));
        world.now += Nanos::from_secs(1);
        world.tick();
        let mut sent = Vec::new();
        while let Some(command) = world.queue.front() {
            if command.slot == slot(0) {
                sent.push(command.operation);
            }
            world.step(None);
        }
        let (flush, write) = (Operation::Flush, Operation::Write);
        match imitates_md {
            true => assert_eq!(sent, [flush, write, flush, write]),
            false => assert_eq!(sent, [flush, write, write]),
        }
    }
}

/// Linux drivers/md/md-bitmap.c, `__bitmap_unplug`: who has set a bit while a pass runs has
/// one of its own after it, though an array of our own has one for all.
#[test]
fn each_writer_has_a_pass_of_its_own() {
    for (imitates_md, mut world) in ours_and_mds() {
        world.write(0, 8, 1);
        let writes = writes(&mut world, &[64, 128, 192]);
        let executed = world.executed;
        for write in writes {
            world.wait(write).unwrap();
        }
        let passes = if imitates_md { 3 } else { 2 };
        assert_eq!(world.executed - executed, (passes * 2 + 3) * 2);
    }
}

/// Who comes while a pass runs lies down last and is woken first: the one whose pages have
/// arrived waits for the next pass too. Then its data go before the pages of the third.
#[test]
fn data_go_after_the_next_pages_and_before_those_after_these() {
    let mut world = mirror();
    writes(&mut world, &[8, 16, 24]);
    let is_data = |command: &MemberCommand| {
        command.operation == Operation::Write && command.purpose != Purpose::Metadata
    };
    // Twice two members are flushed and get a page.
    for _ in 0..8 {
        assert!(!world.queue.iter().any(is_data));
        world.step(None);
    }
    let queue: Vec<bool> = world.queue.iter().map(is_data).collect();
    assert_eq!(queue, [true, true, false, false]);
}

/// Of two who set their bits in one moment the second waits for a pass every other time.
#[test]
fn the_second_of_a_moment_waits_every_other_time() {
    let mut world = mirror();
    world.strict = false;
    let mut waited = Vec::new();
    for moment in 0..4 {
        world.now.0 += 1;
        let [first, second] =
            [8, 16].map(|at| world.submit(Operation::Write, 16 * moment + at, 8, 3));
        world.wait(second).unwrap();
        waited.push(has_finished(&world, first));
        world.wait(first).unwrap();
    }
    assert_eq!(waited, [false, true, false, true]);
}

/// Each of a moment's writers runs before the worker of the one before it, or after it, in turns
/// (Linux 6.12 drivers/md/md-bitmap.c, `bitmap_unplug_async`). In Linux 6.1 each writes its bits
/// before the next one runs (drivers/md/raid1.c, `raid1_unplug`).
#[test]
fn of_four_writers_of_a_moment_two_have_passes_and_in_linux_6_1_all() {
    for (rules, passes) in [(MdRules::LINUX_6_12, 2), (MdRules::LINUX_6_1, 4)] {
        let threads = |engine: &mut EngineOptions| engine.recovery.threads = as_md(rules);
        let mut world = md(Level::Raid1, 2, threads);
        world.write(0, 8, 1);
        world.strict = false;
        world.now.0 += 1;
        let executed = world.executed;
        let writes = [64, 96, 128, 192].map(|at| world.submit(Operation::Write, at, 8, 3));
        for write in writes {
            world.wait(write).unwrap();
        }
        // A flush and a page for each pass, and the data of all, on both members.
        assert_eq!(world.executed - executed, (passes * 2 + 4) * 2);
    }
}

/// Those who are woken together set their bits one after the other where all share one
/// processor: that is one moment too.
#[test]
fn a_moment_lasts_as_long_as_processes_compute() {
    let turnaround = Nanos::from_micros(20);
    for (one_processor, wait) in [(true, [false, true]), (false, [true, true])] {
        let mut world = md(Level::Raid1, 2, |engine| {
            engine.recovery.threads = as_md(MdRules::LINUX_6_12).map(|threads| MdThreads {
                turnaround,
                one_processor,
                ..threads
            });
        });
        world.write(0, 8, 1);
        world.strict = false;
        let mut waited = Vec::new();
        for moment in 0..2 {
            world.now += turnaround * 10;
            let first = world.submit(Operation::Write, 16 * moment + 8, 8, 3);
            world.now += turnaround;
            let second = world.submit(Operation::Write, 16 * moment + 16, 8, 3);
            world.wait(second).unwrap();
            waited.push(has_finished(&world, first));
            world.wait(first).unwrap();
        }
        assert_eq!(waited, wait, "{one_processor}");
    }
}

/// A bit that another one has set is not waited for, though its page has not arrived.
#[test]
fn who_finds_its_bits_set_goes_on() {
    let mut world = mirror();
    world.strict = false;
    let writes = writes(&mut world, &[8, 8]);
    world.wait(writes[1]).unwrap();
    assert!(!has_finished(&world, writes[0]));
    world.wait(writes[0]).unwrap();
}

/// Linux drivers/md/raid5.c, `raid5d`: between two passes over the bitmap the thread handles
/// stripes, so what the first one was for is read for before the second one.
#[test]
fn with_parity_stripes_are_handled_between_two_passes() {
    let mut world = md(Level::Raid5, 3, |engine| engine.parity = Raid5d::build);
    let tick = |world: &mut World| {
        while world.array.next_tick().is_some_and(|at| at <= world.now) {
            world.tick();
        }
    };
    // There are no bytes in it.
    let answer = |world: &mut World| {
        let command = world.queue.pop_front().unwrap();
        world.with(|array, now, out| array.complete(now, command.id, Ok(()), out));
    };
    world.submit(Operation::Write, 0, 8, 1);
    tick(&mut world);
    while !world.queue.is_empty() {
        answer(&mut world);
        tick(&mut world);
    }
    for start in [64, 128] {
        world.now.0 += 1;
        world.submit(Operation::Write, start, 8, 2);
        tick(&mut world);
    }
    let is_read = |command: &MemberCommand| command.operation == Operation::Read;
    // Three members are flushed and get a page.
    for _ in 0..6 {
        assert!(!world.queue.iter().any(is_read));
        answer(&mut world);
    }
    tick(&mut world);
    assert!(world.queue.iter().any(is_read));
    let flushes = world.queue.iter();
    let flushes = flushes.filter(|command| command.operation == Operation::Flush);
    assert_eq!(flushes.count(), 3);
}
