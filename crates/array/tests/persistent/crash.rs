//! Power cuts after every single command of short scripts.
//!
//! The oracle: for each sector of the array the value that it had at the last
//! flush that was acknowledged, and all values written since; after a restart
//! it must hold one of them. Without a log, on the disks themselves, before
//! anything is assembled: where a chunk's bit is clear, or the array is called
//! clean, parity fits.

use crate::harness::{
    DATA_OFFSET, Disk, EXTERNAL, Landing, Make, SECTOR, USED, World, replayed_in_part, run_degraded,
};
use raidlab_array::{AssembleError, Operation, RequestId};
use raidlab_geometry::Level;
use raidlab_metadata::{Bitmap, Superblock};
use raidlab_random::Stream;
use raidlab_units::Nanos;
use std::collections::BTreeMap;

mod scripts;
mod twice;

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

/// Runs a script until so many commands were done; whether it came to its end. Its steps are:
///
/// * `write START COUNT`: from this sector so many, without waiting;
/// * `settle`: waits for what was submitted;
/// * `flush`: settles, then flushes and waits;
/// * `pause TIME`: lets time pass, in milliseconds;
/// * `kill DISK`: it is gone from now on;
/// * `fail DISK`, `replace DISK`, `stop`: by the administrator;
/// * `spoil DISK SECTOR`: it cannot read this sector of its data area.
fn run(
    world: &mut World,
    script: &str,
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
    for step in script.split("; ") {
        let words: Vec<&str> = step.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let disk = || words[1].parse::<u16>().unwrap();
        match words[0] {
            "write" => {
                let (start, count) = (number(1), number(2));
                value += 1;
                let id = world.submit(Operation::Write, start, count, value);
                for sector in start..start + count {
                    oracle.allowed[usize::try_from(sector).unwrap()].push(value);
                }
                oracle.open.push((id, start, count, value));
            }
            "settle" => {
                if !settle(world, oracle, random) {
                    return false;
                }
            }
            "flush" => {
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
            "pause" => {
                let deadline = Nanos(world.now.0 + number(1) * 1_000_000);
                loop {
                    while world.executed < cut && world.step(Some(random)) {}
                    if world.executed >= cut {
                        return false;
                    }
                    let next = world.array.next_tick().filter(|at| *at <= deadline);
                    let Some(next) = next else { break };
                    world.now = world.now.max(next);
                    world.tick();
                }
                world.now = deadline;
            }
            "kill" => world.disks.get_mut(&disk()).unwrap().dead = true,
            "fail" => {
                let _ = world.fail(disk());
            }
            "replace" => {
                let _ = world.replace(disk());
            }
            "spoil" => {
                let disk = world.disks.get_mut(&disk()).unwrap();
                disk.unreadable.insert(DATA_OFFSET + number(2));
            }
            "stop" => world.with(|array, now, out| array.stop(now, out)),
            other => panic!("no step of a script: {other}"),
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
fn cut_everywhere(make: Make, script: &str, seed: u64) -> usize {
    cut_each(make, script, seed, 1)
}

/// Cuts the power after every so many commands.
fn cut_each(make: Make, script: &str, seed: u64, step: usize) -> usize {
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
    let mut world = match World::assemble(disks, make.log, run_degraded) {
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
    assert_eq!(mismatches.0, 0, "{mismatches:?}: {context}");
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
