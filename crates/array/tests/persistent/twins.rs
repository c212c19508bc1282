//! A member and the device that replaces it, near the change of place: one of the two misses a
//! write that was acknowledged, comes back after a power cut, and finds the other one gone.

use crate::harness::{Landing, Make, SECTOR, World, run_degraded, slot};
use raidlab_array::{Event, Operation};
use raidlab_geometry::Level;
use raidlab_units::Nanos;

const CASES: [(Level, usize, bool); 3] = [
    (Level::Raid1, 2, false),
    (Level::Raid10, 4, false),
    (Level::Raid5, 3, true),
];

/// A world in which so many steps were taken since the first member began to be replaced;
/// `None` when the change of place is over by then.
fn replacing(make: Make, steps: usize) -> Option<World> {
    let mut world = make.start();
    world.write(0, 200, 5);
    world.flush();
    world.replace(0).unwrap();
    for _ in 0..steps {
        if !world.step(None) {
            let next = world.array.next_tick()?;
            world.now = world.now.max(next);
            world.tick();
        }
    }
    let is_over = !world.array.is_syncing() && world.queue.is_empty();
    (!is_over).then_some(world)
}

/// Submits what the device does not do, and says whether it was acknowledged by the power cut.
fn is_acknowledged(world: &mut World, fails: u16, missed: Missed) -> bool {
    if missed == Missed::Flush {
        world.write(10, 20, 6);
    }
    match missed {
        Missed::WriteSince => {
            world.fail(fails).unwrap();
        }
        Missed::Write | Missed::Flush => world.disks.get_mut(&fails).unwrap().dead = true,
    }
    let id = match missed {
        Missed::Write | Missed::WriteSince => world.submit(Operation::Write, 10, 20, 6),
        Missed::Flush => world.submit(Operation::Flush, 0, 0, 0),
    };
    let is_done = |world: &World| world.finished.iter().any(|it| it.id == id);
    while !is_done(world) && world.step(None) {}
    world
        .finished
        .iter()
        .any(|it| it.id == id && it.result.is_ok())
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Missed {
    Write,
    /// A write after an administrator has called the device failed.
    WriteSince,
    Flush,
}

/// Whoever of the two answers no longer, the write is acknowledged only when the superblocks
/// would no longer let that device take the slot.
#[test]
fn what_one_of_two_missed_is_acknowledged_when_that_one_is_out() {
    for (level, members, log) in CASES {
        let make = Make {
            spares: 1,
            log,
            ..Make::new(level, members)
        };
        let new = u16::try_from(members).unwrap();
        for (fails, other, missed) in [
            (0, new, Missed::Write),
            (new, 0, Missed::Write),
            (new, 0, Missed::WriteSince),
            (0, new, Missed::Flush),
            (new, 0, Missed::Flush),
        ] {
            let mut judged = 0;
            for steps in 0.. {
                let Some(mut world) = replacing(make, steps) else {
                    break;
                };
                let is_seated = world.array.served()[0] == Some(slot(new));
                if missed == Missed::WriteSince && is_seated {
                    continue;
                }
                if !is_acknowledged(&mut world, fails, missed) {
                    continue;
                }
                let mut disks = world.cut(&mut match missed {
                    Missed::Write | Missed::WriteSince => Landing::All,
                    Missed::Flush => Landing::None,
                });
                disks.get_mut(&fails).unwrap().dead = false;
                disks.remove(&other);
                let mut again = World::assemble(disks, log, run_degraded).unwrap();
                again.run_for(Nanos::from_secs(60));
                let is_there = again.read(10, 20) == [6; 20 * SECTOR];
                assert!(is_there, "{level:?}: {missed:?} of {fails}, {steps} steps");
                judged += 1;
            }
            assert!(judged > 5, "{level:?}: {missed:?} of {fails}: {judged}");
        }
    }
}

/// Both fail, the old one first. What is written since is acknowledged when neither of them would
/// take the slot.
#[test]
fn what_both_missed_is_acknowledged_when_both_are_out() {
    for (level, members, log) in CASES {
        let make = Make {
            spares: 1,
            log,
            ..Make::new(level, members)
        };
        let new = u16::try_from(members).unwrap();
        let mut judged = 0;
        for (steps, more) in (0..480).map(|at| (at / 12, at % 12)) {
            let Some(mut world) = replacing(make, steps) else {
                break;
            };
            if world.array.served()[0] != Some(slot(0)) {
                break;
            }
            world.disks.get_mut(&0).unwrap().dead = true;
            world.submit(Operation::Write, 10, 20, 6);
            while !world.events.contains(&Event::MemberFailed(slot(0))) && world.step(None) {}
            for _ in 0..more {
                world.step(None);
            }
            world.disks.get_mut(&new).unwrap().dead = true;
            let id = world.submit(Operation::Write, 40, 20, 7);
            let is_done = |world: &World| world.finished.iter().any(|it| it.id == id);
            while !is_done(&world) && world.step(None) {}
            let mut disks = world.cut(&mut Landing::All);
            disks.get_mut(&new).unwrap().dead = false;
            disks.remove(&0);
            let mut again = World::assemble(disks, log, run_degraded).unwrap();
            again.run_for(Nanos::from_secs(60));
            let is_there = again.read(40, 20) == [7; 20 * SECTOR];
            assert!(is_there, "{level:?}: {steps} steps and {more}");
            judged += 1;
        }
        assert!(judged > 5, "{level:?}: {judged}");
    }
}

/// A member is replaced by another device in the moment in which the first one fails, while what
/// that one missed is not recorded yet.
#[test]
fn a_device_that_fails_can_be_followed_by_another_at_once() {
    let make = Make {
        spares: 2,
        ..Make::new(Level::Raid1, 2)
    };
    let failure = Event::MemberFailed(slot(2));
    let mut judged = 0;
    for steps in 0..60 {
        let Some(mut world) = replacing(make, steps) else {
            break;
        };
        if world.array.served()[0] != Some(slot(0)) {
            break;
        }
        world.disks.get_mut(&2).unwrap().dead = true;
        world.submit(Operation::Write, 10, 20, 6);
        while !world.events.contains(&failure) && world.step(None) {}
        world.replace(0).unwrap();
        world.write(100, 20, 7);
        world.run_for(Nanos::from_secs(60));
        assert_eq!(world.array.served()[0], Some(slot(3)), "{steps} steps");
        assert!(!world.array.is_syncing(), "{steps} steps");
        assert_eq!(world.read(10, 20), [6; 20 * SECTOR]);
        assert_eq!(world.read(100, 20), [7; 20 * SECTOR]);
        judged += 1;
    }
    assert!(judged > 5, "{judged}");
}
