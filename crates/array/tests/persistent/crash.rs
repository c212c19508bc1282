//! Power cuts after every single command of short scripts.
//!
//! The oracle: for each sector of the array the value that it had at the last
//! flush that was acknowledged, and all values written since; after a restart
//! it must hold one of them. Without a log, on the disks themselves, before
//! anything is assembled: where a chunk's bit is clear, or the array is called
//! clean, parity fits.

use crate::harness::{
    DATA_OFFSET, Disk, EXTERNAL, Landing, Make, SECTOR, USED, World, replayed_in_part, slot,
};
use raidlab_array::{AssembleError, Operation, RequestId};
use raidlab_geometry::Level;
use raidlab_metadata::{Bitmap, Superblock};
use raidlab_random::Stream;
use raidlab_units::Nanos;
use std::collections::BTreeMap;

#[derive(Clone, Copy)]
enum Do {
    /// From this sector so many, without waiting.
    Write(u64, u64),
    /// Waits for what was submitted, then flushes and waits.
    Flush,
    /// Waits for what was submitted.
    Settle,
    /// Lets time pass, in milliseconds.
    Pause(u64),
    /// The disk is gone from now on.
    Kill(u16),
    /// By the administrator.
    Fail(u16),
    Replace(u16),
    /// The disk cannot read this sector of its data area.
    Spoil(u16, u64),
    Stop,
}

struct Oracle {
    /// For each sector: the durable value first, later ones behind it.
    allowed: Vec<Vec<u8>>,
    /// Submitted and not acknowledged: request, range, value.
    open: Vec<(RequestId, u64, u64, u8)>,
}

impl Oracle {
    fn flushed(&mut self) {
        for (sector, values) in (0..).zip(&mut self.allowed) {
            let open = self
                .open
                .iter()
                .any(|(_, start, count, _)| (*start..start + count).contains(&sector));
            if !open && values.len() > 1 {
                values.drain(..values.len() - 1);
            }
        }
    }
}

/// Runs a script until so many commands were done; whether it came to its end.
fn run(
    world: &mut World,
    script: &[Do],
    oracle: &mut Oracle,
    cut: usize,
    random: &mut Stream,
) -> bool {
    let mut value = 0;
    let settle = |world: &mut World, oracle: &mut Oracle, random: &mut Stream| loop {
        oracle
            .open
            .retain(|(id, ..)| !world.finished.iter().any(|done| done.id == *id));
        if oracle.open.is_empty() {
            return true;
        }
        if world.executed >= cut {
            return false;
        }
        if !world.step(Some(random)) {
            panic!("requests wait for nothing");
        }
    };
    for action in script {
        match *action {
            Do::Write(start, count) => {
                value += 1;
                let id = world.submit(Operation::Write, start, count, value);
                for sector in start..start + count {
                    oracle.allowed[usize::try_from(sector).unwrap()].push(value);
                }
                oracle.open.push((id, start, count, value));
            }
            Do::Settle => {
                if !settle(world, oracle, random) {
                    return false;
                }
            }
            Do::Flush => {
                if !settle(world, oracle, random) {
                    return false;
                }
                let id = world.submit(Operation::Flush, 0, 0, 0);
                while !world.finished.iter().any(|done| done.id == id) {
                    if world.executed >= cut {
                        return false;
                    }
                    assert!(world.step(Some(random)), "the flush waits for nothing");
                }
                oracle.flushed();
            }
            Do::Pause(milliseconds) => {
                let deadline = Nanos(world.now.0 + milliseconds * 1_000_000);
                loop {
                    while world.executed < cut && world.step(Some(random)) {}
                    if world.executed >= cut {
                        return false;
                    }
                    let next = world.array.next_tick().filter(|at| *at <= deadline);
                    let Some(next) = next else { break };
                    world.now = world.now.max(next);
                    world.with(|array, now, out| array.tick(now, out));
                }
                world.now = deadline;
            }
            Do::Kill(handle) => world.disks.get_mut(&handle).unwrap().dead = true,
            Do::Fail(handle) => {
                let _ = world.with(|array, now, out| array.fail(now, slot(handle), out));
            }
            Do::Replace(handle) => {
                let _ = world.with(|array, now, out| array.replace(now, slot(handle), None, out));
            }
            Do::Spoil(handle, sector) => {
                let disk = world.disks.get_mut(&handle).unwrap();
                disk.unreadable.insert(DATA_OFFSET + sector);
            }
            Do::Stop => world.with(|array, now, out| array.stop(now, out)),
        }
    }
    true
}

/// Copies are the same and parity fits on the disks wherever they say so
/// themselves.
fn check_sound(make: &Make, disks: &BTreeMap<u16, Disk>, context: &str) {
    let newest = members_of(disks)
        .map(|disk| disk.metadata().superblock)
        .max_by_key(|superblock| superblock.events)
        .unwrap();
    let members = newest.roles.iter().filter(|role| is_slot(role)).count();
    let is_plain = matches!(make.level, Level::Raid1 | Level::Raid5) && make.spares == 0;
    if !is_plain || members < make.members {
        return;
    }
    let bitmaps: Vec<_> = match disks.get(&EXTERNAL) {
        Some(file) => vec![Bitmap::decode(&file.durable).ok()],
        None => members_of(disks)
            .map(|disk| disk.metadata().bitmap)
            .collect(),
    };
    let is_clean = newest.resync_offset == Superblock::IN_SYNC;
    for sector in 0..USED {
        let is_marked = bitmaps.iter().any(|bitmap| {
            bitmap
                .as_ref()
                .is_none_or(|bitmap| bitmap.test(sector / 64))
        });
        if is_marked && !is_clean {
            continue;
        }
        let at = usize::try_from(DATA_OFFSET + sector).unwrap() * SECTOR;
        let mut bytes = members_of(disks).map(|disk| disk.durable[at]);
        let fits = match make.level {
            Level::Raid1 => {
                let first = bytes.next();
                bytes.all(|byte| Some(byte) == first)
            }
            _ => bytes.fold(0, |sum, byte| sum ^ byte) == 0,
        };
        assert!(
            fits,
            "sector {sector} of the members does not fit: {context}"
        );
    }
}

fn members_of(disks: &BTreeMap<u16, Disk>) -> impl Iterator<Item = &Disk> {
    let members = disks.iter().filter(|(handle, _)| **handle != EXTERNAL);
    members.map(|(_, disk)| disk)
}

fn is_slot(role: &raidlab_metadata::Role) -> bool {
    matches!(role, raidlab_metadata::Role::Slot(_))
}

/// Cuts the power after each command and restarts; gives the number of cuts.
fn cut_everywhere(make: Make, script: &[Do], seed: u64) -> usize {
    cut_each(make, script, seed, 1)
}

/// Cuts the power after every so many commands.
fn cut_each(make: Make, script: &[Do], seed: u64, step: usize) -> usize {
    let made = make.disks();
    for cut in (0..).step_by(step) {
        let mut random = Stream::new(seed);
        let mut world = World::assemble(made.clone(), make.log, |_| ()).unwrap();
        let mut oracle = Oracle {
            allowed: vec![vec![0]; usize::try_from(world.array.size().0).unwrap()],
            open: Vec::new(),
        };
        let ended = run(&mut world, script, &mut oracle, cut, &mut random);
        for (number, mut landing) in Landing::kinds(seed + cut as u64).into_iter().enumerate() {
            let context = format!("cut {cut}, landing {number}, seed {seed}");
            let mut disks = world.cut(&mut landing);
            if !make.log {
                check_sound(&make, &disks, &context);
            }
            // Disks that died are there again.
            let died: Vec<u16> = disks
                .iter_mut()
                .filter_map(|(handle, disk)| std::mem::take(&mut disk.dead).then_some(*handle))
                .collect();
            // The power goes again in the middle of the replay.
            if let Some(half) = replayed_in_part(&disks, &mut random) {
                restart(&make, half, &oracle, &died, &context);
            }
            restart(&make, disks, &oracle, &died, &context);
        }
        if ended {
            return cut;
        }
    }
    unreachable!()
}

/// Assembles after a cut and checks that nothing is lost, then that the array
/// becomes whole.
fn restart(make: &Make, disks: BTreeMap<u16, Disk>, oracle: &Oracle, died: &[u16], context: &str) {
    let run = |options: &mut raidlab_array::AssembleOptions| options.run_degraded = true;
    let mut world = match World::assemble(disks, make.log, run) {
        Ok(world) => world,
        Err(AssembleError::DirtyDegraded { .. }) if !make.log && !died.is_empty() => return,
        Err(error) => panic!("{error}: {context}"),
    };
    // A block that could not be read is written anew with what it held: for
    // that no bit has to be set.
    world.strict = world.disks.values().all(|disk| disk.unreadable.is_empty());
    check_content(&mut world, oracle, context);
    world.run_for(Nanos::from_secs(600));
    assert!(!world.array.is_syncing(), "{context}");
    world.with(|array, now, out| array.check(now, out)).unwrap();
    world.run_for(Nanos::from_secs(600));
    let mismatches = world.array.status().mismatches;
    assert_eq!(mismatches.count.0, 0, "{mismatches:?}: {context}");
    check_content(&mut world, oracle, context);
}

fn check_content(world: &mut World, oracle: &Oracle, context: &str) {
    let bytes = world.read(0, world.array.size().0);
    for (sector, (bytes, allowed)) in bytes.chunks(SECTOR).zip(&oracle.allowed).enumerate() {
        let value = bytes[0];
        assert!(
            bytes.iter().all(|byte| *byte == value) && allowed.contains(&value),
            "sector {sector} holds {value}, allowed are {allowed:?}: {context}"
        );
    }
}

const WRITES: [Do; 12] = [
    Do::Write(0, 4),
    Do::Write(40, 32),
    Do::Flush,
    Do::Pause(300),
    Do::Write(2, 10),
    Do::Settle,
    Do::Write(400, 16),
    Do::Flush,
    Do::Pause(11_000),
    Do::Write(404, 2),
    Do::Settle,
    Do::Stop,
];

#[test]
fn bitmap_and_dirty_mark_are_sound_at_every_cut() {
    let cuts = cut_everywhere(Make::new(Level::Raid5, 3), &WRITES, 1);
    assert!(cuts > 80, "{cuts}");
}

#[test]
fn without_a_bitmap_everything_is_resynced() {
    let make = Make {
        bitmap: false,
        ..Make::new(Level::Raid5, 3)
    };
    cut_everywhere(make, &WRITES, 2);
}

#[test]
fn the_log_closes_the_write_hole_at_every_cut() {
    let make = Make {
        log: true,
        ..Make::new(Level::Raid5, 3)
    };
    cut_everywhere(make, &WRITES, 3);
}

const FAILURE: [Do; 8] = [
    Do::Write(0, 40),
    Do::Flush,
    Do::Kill(1),
    Do::Write(8, 20),
    Do::Settle,
    Do::Flush,
    Do::Write(100, 4),
    Do::Flush,
];

#[test]
fn a_failed_member_never_comes_back_as_current() {
    for log in [false, true] {
        let make = Make {
            log,
            ..Make::new(Level::Raid5, 3)
        };
        cut_everywhere(make, &FAILURE, 4);
    }
}

#[test]
fn two_failures_in_the_middle_of_a_superblock_update() {
    let script = [
        Do::Write(0, 40),
        Do::Flush,
        Do::Fail(1),
        Do::Kill(2),
        Do::Write(8, 20),
        Do::Flush,
        Do::Pause(300),
    ];
    for log in [false, true] {
        let make = Make {
            log,
            ..Make::new(Level::Raid6, 4)
        };
        cut_everywhere(make, &script, 5);
    }
}

#[test]
fn recovery_onto_a_spare_survives_cuts() {
    let script = [
        Do::Write(0, 100),
        Do::Flush,
        Do::Fail(0),
        Do::Pause(100),
        Do::Write(20, 60),
        Do::Flush,
        Do::Pause(1000),
    ];
    let make = Make {
        spares: 1,
        log: true,
        ..Make::new(Level::Raid5, 3)
    };
    cut_everywhere(make, &script, 6);
}

/// The same for copies; half as many sectors.
const COPIES: [Do; 10] = [
    Do::Write(0, 4),
    Do::Write(40, 32),
    Do::Flush,
    Do::Pause(300),
    Do::Write(2, 10),
    Do::Flush,
    Do::Pause(11_000),
    Do::Write(200, 3),
    Do::Settle,
    Do::Stop,
];

#[test]
fn mirrors_are_sound_at_every_cut() {
    for (number, level, members) in [
        (7, Level::Raid1, 2),
        (8, Level::Raid1, 3),
        (9, Level::Raid10, 3),
    ] {
        cut_everywhere(Make::new(level, members), &COPIES, number);
    }
}

#[test]
fn a_failed_copy_never_comes_back_as_current() {
    for (level, members, lost) in [
        (Level::Raid1, 2, 0),
        (Level::Raid1, 2, 1),
        (Level::Raid10, 4, 2),
    ] {
        let script = FAILURE.map(|action| match action {
            Do::Kill(_) => Do::Kill(lost),
            action => action,
        });
        cut_everywhere(Make::new(level, members), &script, 10);
    }
}

#[test]
fn recovery_of_a_mirror_survives_cuts() {
    let make = Make {
        spares: 1,
        ..Make::new(Level::Raid1, 2)
    };
    let script = [
        Do::Write(0, 100),
        Do::Flush,
        Do::Fail(0),
        Do::Pause(100),
        Do::Write(20, 60),
        Do::Flush,
        Do::Pause(1000),
    ];
    cut_everywhere(make, &script, 11);
}

#[test]
fn the_two_halves_of_a_mirror_do_not_meet_again() {
    let disks = Make::new(Level::Raid1, 2).disks();
    let halves: Vec<BTreeMap<u16, Disk>> = [0, 1]
        .map(|half| {
            let mut alone = disks.clone();
            alone.retain(|handle, _| *handle == half);
            let run = |options: &mut raidlab_array::AssembleOptions| options.run_degraded = true;
            let mut world = World::assemble(alone, false, run).unwrap();
            world.write(0, 8, u8::try_from(half).unwrap() + 1);
            world.flush();
            world.run_for(Nanos::from_secs(1));
            world.disks
        })
        .into();
    let both: BTreeMap<u16, Disk> = halves.into_iter().flatten().collect();
    let refused = World::assemble(both, false, |options| options.run_degraded = true);
    assert!(matches!(
        refused.err(),
        Some(AssembleError::SplitBrain { .. })
    ));
}

#[test]
fn an_external_bitmap_is_sound_at_every_cut() {
    for (number, level, members) in [(12, Level::Raid5, 3), (13, Level::Raid1, 2)] {
        let make = Make {
            external: true,
            ..Make::new(level, members)
        };
        let script = if level == Level::Raid5 {
            &WRITES[..]
        } else {
            &COPIES
        };
        cut_everywhere(make, script, number);
    }
}

/// A write is under way while a member is filled: above and below what is
/// filled already.
#[test]
fn what_was_written_during_a_recovery_is_the_same_on_all_copies() {
    let script = [
        Do::Write(0, 100),
        Do::Flush,
        Do::Fail(0),
        Do::Write(0, 8),
        Do::Write(240, 8),
        Do::Write(100, 30),
        Do::Settle,
        Do::Write(4, 2),
        Do::Flush,
    ];
    for (seed, level, members) in [
        (14, Level::Raid1, 2),
        (15, Level::Raid1, 3),
        (16, Level::Raid10, 4),
    ] {
        let make = Make {
            spares: 1,
            ..Make::new(level, members)
        };
        for seed in [seed, seed + 100] {
            cut_each(make, &script, seed, 2);
        }
    }
}

#[test]
fn a_replacement_survives_cuts() {
    // Where a block cannot be read, copying goes block by block.
    let script = [
        Do::Write(0, 100),
        Do::Flush,
        Do::Spoil(1, 90),
        Do::Replace(1),
        Do::Write(20, 60),
        Do::Settle,
        Do::Pause(2),
        Do::Write(0, 9),
        Do::Write(90, 9),
        Do::Flush,
        Do::Pause(600),
        Do::Write(3, 60),
        Do::Flush,
        Do::Pause(1000),
    ];
    for (seed, level, members, log) in [
        (17, Level::Raid1, 2, false),
        (18, Level::Raid10, 4, false),
        (19, Level::Raid5, 3, false),
        (20, Level::Raid5, 3, true),
    ] {
        let make = Make {
            spares: 1,
            log,
            ..Make::new(level, members)
        };
        cut_each(make, &script, seed, 5);
    }
}

#[test]
fn the_loss_of_a_member_that_is_being_replaced_survives_cuts() {
    let script = [
        Do::Write(0, 100),
        Do::Flush,
        Do::Replace(1),
        Do::Write(20, 60),
        Do::Settle,
        Do::Kill(1),
        Do::Write(0, 30),
        Do::Write(90, 9),
        Do::Flush,
        Do::Pause(1000),
    ];
    for (seed, level, members, log) in [
        (21, Level::Raid1, 2, false),
        (22, Level::Raid10, 4, false),
        (23, Level::Raid5, 3, true),
    ] {
        let make = Make {
            spares: 1,
            log,
            ..Make::new(level, members)
        };
        cut_each(make, &script, seed, 5);
    }
}

/// Cuts the power after each command of a script, then again after each
/// command of a start without one member: the rest must still be enough. Gives
/// the number of second cuts.
fn cut_twice(make: &Make, script: &[Do], missing: u16, seed: u64) -> usize {
    let made = make.disks();
    let mut cuts = 0;
    for first in 0.. {
        let mut random = Stream::new(seed);
        let mut world = World::assemble(made.clone(), make.log, |_| ()).unwrap();
        let mut oracle = Oracle {
            allowed: vec![vec![0]; usize::try_from(world.array.size().0).unwrap()],
            open: Vec::new(),
        };
        let ended = run(&mut world, script, &mut oracle, first, &mut random);
        let [_, _, mut landing, _] = Landing::kinds(seed + first as u64);
        let mut disks = world.cut(&mut landing);
        disks.remove(&missing);
        for second in 0.. {
            let context = format!("cuts {first} and {second}, seed {seed}");
            let run = |options: &mut raidlab_array::AssembleOptions| options.run_degraded = true;
            let mut world = match World::assemble(disks.clone(), make.log, run) {
                Ok(world) => world,
                Err(error) => panic!("{error}: {context}"),
            };
            while world.executed < second && world.step(Some(&mut random)) {}
            let is_whole = world.executed < second;
            restart(make, world.cut(&mut landing), &oracle, &[], &context);
            cuts += 1;
            if is_whole {
                break;
            }
        }
        if ended {
            return cuts;
        }
    }
    unreachable!()
}

#[test]
fn a_second_crash_at_the_start_makes_no_member_stale() {
    for level in [Level::Raid1, Level::Raid10] {
        let make = Make {
            bitmap: false,
            ..Make::new(level, 3)
        };
        let cuts = cut_twice(&make, &[Do::Write(0, 4), Do::Settle], 1, 12);
        assert!(cuts > 50, "{cuts}");
    }
}

#[test]
fn a_second_crash_at_the_start_leaves_the_log_in_force() {
    let make = Make {
        bitmap: false,
        log: true,
        ..Make::new(Level::Raid6, 4)
    };
    let cuts = cut_twice(
        &make,
        &[Do::Write(0, 4), Do::Settle, Do::Write(8, 4), Do::Settle],
        1,
        13,
    );
    assert!(cuts > 50, "{cuts}");
}
