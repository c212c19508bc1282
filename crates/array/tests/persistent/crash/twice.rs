//! A power cut in the first moments of the start after a power cut.

use super::*;

/// Cuts the power after each command of a script, then again after each
/// command of a start without one member: the rest must still be enough, and if
/// the member comes back, it must not be taken for one that has missed nothing.
/// Gives the number of second cuts.
fn cut_twice(make: &Make, script: &str, missing: u16, seed: u64) -> usize {
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
        let away = disks.remove(&missing).unwrap();
        for second in 0.. {
            let context = format!("cuts {first} and {second}, seed {seed}");
            let mut world = match World::assemble(disks.clone(), make.log, run_degraded) {
                Ok(world) => world,
                Err(error) => panic!("{error}: {context}"),
            };
            while world.executed < second && world.step(Some(&mut random)) {}
            let is_whole = world.executed < second;
            let mut rest = world.cut(&mut landing);
            restart(make, rest.clone(), &oracle, &[], &context);
            rest.insert(missing, away.clone());
            let context = format!("{context}, disk {missing} is back");
            restart(make, rest, &oracle, &[], &context);
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
        let cuts = cut_twice(&make, "write 0 4; settle", 1, 12);
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
    let cuts = cut_twice(&make, "write 0 4; settle; write 8 4; settle", 1, 13);
    assert!(cuts > 50, "{cuts}");
}
