//! A member that is being replaced fails, and the array is stopped or made read-only in that
//! moment, with writes on their way.

use crate::harness::{Landing, Make, SECTOR, World, run_degraded, slot};
use raidlab_array::{Event, Operation};
use raidlab_geometry::Level;
use raidlab_units::{Nanos, Sectors};

const CASES: [(Level, usize, bool); 4] = [
    (Level::Raid1, 2, false),
    (Level::Raid10, 4, false),
    (Level::Raid5, 3, false),
    (Level::Raid5, 3, true),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Stop,
    ReadOnly,
    /// Read-only, and read-write again at once.
    ReadWriteAgain,
}

/// The first member has failed while it was replaced, so many steps after that had begun; a
/// write came then, and after it the array was told to end.
fn ended(make: Make, steps: usize, end: End) -> Option<World> {
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
    if world.array.served()[0] != Some(slot(0)) {
        return None;
    }
    world.disks.get_mut(&0).unwrap().dead = true;
    world.submit(Operation::Write, 10, 20, 6);
    while !world.events.contains(&Event::MemberFailed(slot(0))) {
        if !world.step(None) {
            return None;
        }
    }
    let late = world.submit(Operation::Write, 0, 160, 7);
    match end {
        End::Stop => world.with(|array, now, out| array.stop(now, out)),
        End::ReadOnly | End::ReadWriteAgain => {
            world.read_only().unwrap();
        }
    }
    world.wait(late).unwrap();
    if end == End::ReadWriteAgain {
        world.read_write().unwrap();
        world.write(100, 60, 8);
    }
    world.flush();
    Some(world)
}

/// The new device is not taken for filled where it missed what was written at the end.
#[test]
fn what_is_written_at_the_end_is_on_every_member() {
    for (level, members, log) in CASES {
        let make = Make {
            spares: 1,
            log,
            ..Make::new(level, members)
        };
        for end in [End::Stop, End::ReadOnly, End::ReadWriteAgain] {
            let mut judged = 0;
            for steps in 0.. {
                let Some(mut world) = ended(make, steps, end) else {
                    break;
                };
                if end == End::Stop {
                    world.run_for(Nanos::from_secs(60));
                    assert!(world.array.is_stopped());
                }
                let mut disks = world.cut(&mut Landing::All);
                disks.remove(&0);
                let Ok(mut again) = World::assemble(disks, log, run_degraded) else {
                    // Without a log parity may be torn.
                    assert!(level == Level::Raid5 && !log && end != End::Stop);
                    break;
                };
                again.run_for(Nanos::from_secs(60));
                let what = format!("{level:?} {log}: {end:?} after {steps} steps");
                assert_eq!(again.read(0, 100), [7; 100 * SECTOR], "{what}");
                let last = if end == End::ReadWriteAgain { 8 } else { 7 };
                assert_eq!(again.read(100, 60), vec![last; 60 * SECTOR], "{what}");
                again.with(|array, now, out| array.check(now, out)).unwrap();
                again.run_for(Nanos::from_secs(60));
                assert_eq!(again.array.status().mismatches, Sectors(0), "{what}");
                judged += 1;
            }
            let may_be_torn = level == Level::Raid5 && !log && end != End::Stop;
            assert!(
                may_be_torn || judged > 5,
                "{level:?} {log}: {end:?}: {judged}"
            );
        }
    }
}
