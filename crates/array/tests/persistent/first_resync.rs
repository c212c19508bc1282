//! A member is lost while an array that has just been made is in its first resync:
//! what was written is read, more can be written, and a new member can be filled.
//! After a crash without a log nothing of that holds for what a resync has not
//! reached.

use crate::harness::{DATA_OFFSET, Landing, Make, SECTOR, USED, World, run_degraded};
use raidlab_array::{AssembleError, NewDevice, Operation, RequestError, SyncKind};
use raidlab_geometry::Level;
use raidlab_metadata::Superblock;
use raidlab_metadata::Uuid;
use raidlab_metadata::create::InitialSync;
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};
use std::collections::BTreeMap;

fn make(level: Level, members: usize) -> Make {
    Make {
        initial: InitialSync::Resync,
        ..Make::new(level, members)
    }
}

fn arrays() -> Vec<Make> {
    let levels = [
        (Level::Raid4, 4),
        (Level::Raid5, 4),
        (Level::Raid6, 5),
        (Level::Raid1, 2),
        (Level::Raid1, 3),
        (Level::Raid10, 4),
    ];
    let logged = |make: Make| [false, true].map(|log| Make { log, ..make });
    let mended = |make: Make| [false, true].map(|bitmap| Make { bitmap, ..make });
    let all = levels.map(|(level, members)| make(level, members));
    let all = all.into_iter().flat_map(mended);
    // Copies need no log.
    all.flat_map(logged)
        .filter(|make| !make.log || make.level.parity_count() > 0)
        .collect()
}

/// What the array must hold: the value of each sector that was written.
struct Story {
    make: Make,
    world: World,
    written: BTreeMap<u64, u8>,
    random: Stream,
}

impl Story {
    /// A new array on members that hold rubbish, whose resync has not come far.
    fn new(make: Make, seed: u64) -> Self {
        let mut random = Stream::new(seed);
        let mut disks = make.disks();
        for disk in disks.values_mut() {
            for sector in DATA_OFFSET..DATA_OFFSET + USED {
                disk.land(sector, &[random.below(256) as u8; SECTOR]);
            }
        }
        let mut world = World::assemble_frozen(disks, make.log, |_| ()).unwrap();
        world.strict = false;
        let mut story = Self {
            make,
            world,
            written: BTreeMap::new(),
            random,
        };
        story.pass(1);
        story.world.sync_for(30);
        story.write_some(8);
        let sync = story.world.array.status().sync.unwrap();
        assert_eq!(sync.kind, SyncKind::Resync);
        story
    }

    fn pass(&mut self, millis: u64) {
        self.world.run_for(Nanos::from_millis(millis));
    }

    fn size(&self) -> u64 {
        self.world.array.size().0
    }

    fn write_some(&mut self, count: u32) {
        for _ in 0..count {
            let (size, value) = (self.size(), 1 + self.random.below(250) as u8);
            let length = [1, 3, 8, 16, 40][self.random.below(5) as usize];
            let start = self.random.below(size - length);
            self.world.write(start, length, value);
            self.written
                .extend((start..start + length).map(|at| (at, value)));
        }
    }

    /// Everything can be read, what was written holds it, and the rest stays what it
    /// is.
    fn read_all(&mut self, when: &str) {
        let size = self.size();
        let first = self.world.read(0, size);
        let again = self.world.read(0, size);
        assert_eq!(first, again, "{when}: {:?}", self.make);
        for (sector, value) in &self.written {
            let at = usize::try_from(*sector).unwrap() * SECTOR;
            let found = &first[at..at + SECTOR];
            assert_eq!(found, [*value; SECTOR], "{when}: {sector} {:?}", self.make);
        }
    }

    fn lose(&mut self, handle: u16) {
        self.world.disks.get_mut(&handle).unwrap().dead = true;
        self.world.fail(handle).unwrap();
        // The failure is recorded, and what was in flight has ended.
        self.pass(1);
    }

    fn add(&mut self, handle: u16) {
        self.world
            .disks
            .insert(handle, crate::harness::Disk::new(DATA_OFFSET + USED));
        let new = NewDevice {
            name: handle.to_string(),
            size: Sectors(DATA_OFFSET + USED),
            rotational: false,
            write_mostly: false,
            uuid: Uuid([100 + u8::try_from(handle).unwrap(); 16]),
        };
        self.world.add(handle, new).unwrap();
    }

    /// To the end; everything agrees then.
    fn heal(&mut self) {
        self.world.with(|array, now, out| array.thaw_sync(now, out));
        self.world.run_for(Nanos::from_secs(100));
        let status = self.world.array.status();
        assert!(!status.health.contains('_'), "{:?}: {status:?}", self.make);
        assert_eq!(status.sync, None);
        for device in &status.devices {
            assert_eq!(device.bad_sectors, Sectors(0), "{:?}", self.make);
        }
        self.read_all("healed");
        self.world
            .with(|array, now, out| array.check(now, out))
            .unwrap();
        self.world.run_for(Nanos::from_secs(100));
        let found = self.world.array.status().mismatches;
        assert_eq!(found, Sectors(0), "{:?}: {found:?}", self.make);
        assert_eq!(self.superblock().resync_offset, Superblock::IN_SYNC);
    }

    fn superblock(&self) -> Superblock {
        let served = self.world.array.served()[usize::from(self.make.members as u16) - 1];
        self.world.superblock(served.unwrap().0)
    }

    /// Every other member that can be missed too, one after the other.
    fn miss_each(mut self) {
        self.world.run_for(Nanos::from_secs(1));
        self.world.stop();
        for missing in 0..u16::try_from(self.make.members).unwrap() {
            let handle = self.world.array.served()[usize::from(missing)].unwrap().0;
            let mut disks = self.world.disks.clone();
            disks.retain(|other, disk| *other != handle && !disk.dead);
            let world = World::assemble(disks, self.make.log, run_degraded);
            let mut again = Self {
                world: world.unwrap(),
                written: self.written.clone(),
                random: self.random.clone(),
                make: self.make,
            };
            again.read_all("without another member");
        }
    }

    fn restart(mut self, landing: &mut Landing) -> Result<Self, AssembleError> {
        let disks = self.world.cut(landing);
        self.world = World::assemble_frozen(disks, self.make.log, run_degraded)?;
        self.world.strict = false;
        Ok(self)
    }
}

#[test]
fn a_member_lost_in_the_first_resync_leaves_an_array_that_reads_writes_and_rebuilds() {
    for make in arrays() {
        for lost in 0..u16::try_from(make.members).unwrap() {
            let mut story = Story::new(make, u64::from(lost));
            story.lose(lost);
            story.read_all("degraded");
            story.write_some(12);
            story.read_all("degraded and written");
            story.add(40);
            story.pass(1);
            story.world.sync_for(30);
            story.write_some(4);
            story.heal();
            story.miss_each();
        }
    }
}

#[test]
fn a_raid_6_bears_two() {
    for log in [false, true] {
        for (first, second) in [(0, 1), (1, 3), (4, 2), (3, 4)] {
            // The second one is lost before, while or after the first is replaced.
            for when in 0..3 {
                let make = Make {
                    log,
                    ..make(Level::Raid6, 5)
                };
                let mut story = Story::new(make, u64::from(first * 5 + second));
                story.lose(first);
                story.write_some(6);
                if when > 0 {
                    story.add(40);
                    story.pass(1);
                    story.world.sync_for([0, 60, 1000][when]);
                    story.write_some(6);
                }
                story.lose(second);
                story.read_all("two lost");
                story.write_some(12);
                story.read_all("two lost and written");
                if when == 0 {
                    story.add(40);
                }
                story.add(41);
                story.pass(1);
                story.world.sync_for(60);
                story.write_some(6);
                story.heal();
                story.miss_each();
            }
        }
    }
}

#[test]
fn what_a_medium_refuses_in_the_first_resync_is_computed_and_written_again() {
    for level in [Level::Raid5, Level::Raid6] {
        let mut story = Story::new(make(level, 5), 7);
        let disk = story.world.disks.get_mut(&2).unwrap();
        disk.unreadable
            .extend((DATA_OFFSET..DATA_OFFSET + USED).step_by(24));
        story.read_all("with read errors");
        story.write_some(8);
        story.heal();
        assert!(story.world.disks[&2].unreadable.is_empty());
        story.miss_each();
    }
}

#[test]
fn a_crash_in_the_first_resync_is_survived_with_the_log_as_one_elsewhere() {
    for make in arrays().into_iter().filter(|make| make.log) {
        for seed in 0..4 {
            for mut landing in Landing::kinds(seed) {
                let mut story = Story::new(make, seed);
                story.lose(1);
                story.write_some(3);
                story.world.flush();
                // One more is on its way to the members, and may arrive or not.
                let at = story.random.below(story.size() - 8);
                story
                    .written
                    .retain(|sector, _| !(at..at + 8).contains(sector));
                story.world.submit(Operation::Write, at, 8, 99);
                for _ in 0..story.random.below(12) {
                    story.world.step(None);
                }
                let mut again = story.restart(&mut landing).unwrap();
                again.read_all("after the crash");
                again.write_some(6);
                again.read_all("after the crash, written");
                again.add(40);
                again.heal();
                again.miss_each();
            }
        }
    }
}

#[test]
fn the_first_resync_is_known_after_a_clean_stop() {
    for make in arrays().into_iter().filter(|make| make.log) {
        let mut story = Story::new(make, 3);
        story.world.with(|array, now, out| array.stop(now, out));
        story.pass(1000);
        let offset = story.superblock().resync_offset;
        assert_ne!(offset, Superblock::IN_SYNC);
        story.world.disks.get_mut(&2).unwrap().dead = true;
        let mut again = story.restart(&mut Landing::None).unwrap();
        again.read_all("without a member");
        again.write_some(8);
        again.add(40);
        again.heal();
        again.miss_each();
    }
}

#[test]
fn what_a_crash_may_have_torn_stays_refused() {
    for (level, members) in [(Level::Raid5, 4), (Level::Raid6, 5)] {
        // Whole after the crash: what the resync has not reached is not computed.
        let mut story = Story::new(make(level, members), 5);
        story.write_some(1);
        let mut again = story.restart(&mut Landing::All).unwrap();
        again.pass(1);
        again.lose(1);
        let size = again.size();
        let ids: Vec<_> = (0..size)
            .step_by(8)
            .map(|start| again.world.submit(Operation::Read, start, 8, 0))
            .collect();
        let failed = ids
            .into_iter()
            .filter(|id| again.world.wait(*id) == Err(RequestError::NoMember));
        assert!(failed.count() > 4, "{level:?}");
        // Degraded: not started.
        let mut story = Story::new(make(level, members), 5);
        story.write_some(1);
        story.world.disks.get_mut(&1).unwrap().dead = true;
        let refused = story.restart(&mut Landing::All).map(|_| ());
        assert!(
            matches!(refused, Err(AssembleError::DirtyDegraded { .. })),
            "{refused:?}"
        );
    }
}
