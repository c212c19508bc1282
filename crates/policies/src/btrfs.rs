//! btrfs RAID 1 (Linux fs/btrfs/volumes.c, `find_live_mirror`; round-robin and
//! devid are experimental policies of 2025). A copy that cannot serve is
//! replaced by the lowest that can.
//!
//! * pid: the copy number process id mod copies.
//! * round-robin: the copy number (sectors read so far / 256 KiB) mod copies;
//!   what counts is reads issued, of any process.
//! * devid: always the named device.

use raidlab_array::{Choice, Io, IoKind, MemberView, Parameter, Read, ReadPolicy, Rule, Slot};
use raidlab_units::{Nanos, Sectors};

/// The rule of btrfs `pid`: the number of the reading process chooses the copy.
pub(crate) const PID: Rule = Rule {
    name: "btrfs-pid",
    parameter: Parameter::None,
    build: |_, _| Box::new(BtrfsPid),
};

/// The rule of btrfs `round-robin`; its parameter is the amount that one copy serves before the
/// next one does.
pub(crate) const ROUND_ROBIN: Rule = Rule {
    name: "btrfs-round-robin",
    parameter: Parameter::Size {
        usual: Sectors(512),
        least: Sectors(1),
    },
    build: |_, contiguous| Box::new(BtrfsRoundRobin::new(Sectors(contiguous))),
};

/// The rule of btrfs `devid`: reads go to the device that its parameter names.
pub(crate) const DEVID: Rule = Rule {
    name: "btrfs-devid",
    parameter: Parameter::Slot,
    build: |_, slot| {
        Box::new(BtrfsDevid::new(Slot(
            u16::try_from(slot).unwrap_or(u16::MAX),
        )))
    },
};

/// The `pid` policy.
#[derive(Debug)]
pub(crate) struct BtrfsPid;

/// The `round-robin` policy.
#[derive(Debug)]
pub(crate) struct BtrfsRoundRobin {
    contiguous: Sectors,
    issued: Sectors,
}

/// The `devid` policy.
#[derive(Debug)]
pub(crate) struct BtrfsDevid {
    slot: Slot,
}

impl BtrfsRoundRobin {
    pub(crate) const fn new(contiguous: Sectors) -> Self {
        Self {
            contiguous,
            issued: Sectors::ZERO,
        }
    }
}

impl BtrfsDevid {
    pub(crate) const fn new(slot: Slot) -> Self {
        Self { slot }
    }
}

impl ReadPolicy for BtrfsPid {
    fn choose(&mut self, _now: Nanos, read: &Read, members: &[MemberView]) -> Option<Choice> {
        copy(read, u64::from(read.process), members)
    }
}

impl ReadPolicy for BtrfsRoundRobin {
    fn choose(&mut self, _now: Nanos, read: &Read, members: &[MemberView]) -> Option<Choice> {
        copy(read, self.issued.0 / self.contiguous.0, members)
    }

    fn issued(&mut self, io: &Io, _members: &[MemberView]) {
        if io.kind == IoKind::Read {
            self.issued += io.count;
        }
    }
}

impl ReadPolicy for BtrfsDevid {
    fn choose(&mut self, _now: Nanos, read: &Read, _members: &[MemberView]) -> Option<Choice> {
        this_or_lowest(read, self.slot)
    }
}

/// Chooses the copy numbered `turn` mod copies.
fn copy(read: &Read, turn: u64, members: &[MemberView]) -> Option<Choice> {
    let copies = u64::try_from(members.len()).ok()?;
    let slot = u16::try_from(turn.checked_rem(copies)?).ok()?;
    this_or_lowest(read, Slot(slot))
}

fn this_or_lowest(read: &Read, slot: Slot) -> Option<Choice> {
    let slot = if read.candidates.contains(slot) {
        slot
    } else {
        read.candidates.lowest()?
    };
    Some(read.all_from(slot))
}

#[cfg(test)]
mod tests {
    use super::{BtrfsDevid, BtrfsPid, BtrfsRoundRobin};
    use crate::testing::Bench;
    use raidlab_array::Slot;
    use raidlab_units::Sectors;

    #[test]
    fn a_process_keeps_its_copy() {
        let mut bench = Bench::new(2, Box::new(BtrfsPid));
        let mut slots = Vec::new();
        for process in [4, 4, 7] {
            bench.process = process;
            slots.push(bench.read(123, 8));
        }
        assert_eq!(slots, [0, 0, 1]);
        bench.exclude(1);
        assert_eq!(bench.read(123, 8), 0, "its copy is gone");
    }

    #[test]
    fn every_256_kib_read_move_on() {
        let mut bench = Bench::new(2, Box::new(BtrfsRoundRobin::new(Sectors(512))));
        let slots = [256, 255, 1, 511, 1, 8].map(|count| bench.read(9_999, count));
        assert_eq!(
            slots,
            [0, 0, 0, 1, 1, 0],
            "512 and 1024 sectors are the turns"
        );
    }

    #[test]
    fn the_named_device_serves_if_it_can() {
        let mut bench = Bench::new(3, Box::new(BtrfsDevid::new(Slot(2))));
        assert_eq!(bench.read(0, 8), 2);
        bench.exclude(2);
        assert_eq!(bench.read(0, 8), 0);
    }
}
