//! gflash (FreeBSD, binary module of May 2015): our reading of a closed driver.
//! Its author says only that reads go where the heads move least. These rules
//! reproduce its published random and sync figures within a few percent:
//!
//! 1. An idle member wins over a busy one,
//! 2. unless the read starts within 16 GiB of some member's last position:
//!    then idleness does not count (near streams stay together).
//! 3. Among those left, the smallest distance between the read and the end of
//!    the last command *issued* to the member; ties to the fewest outstanding,
//!    then to the lowest slot.
//! 4. A write goes to all members and so sets all last positions to its end.
//!
//! Sync I/O moves no position: that is our choice, nothing is known.

use raidlab_array::{Choice, Io, IoKind, MemberView, Parameter, Read, ReadPolicy, Rule, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::{Nanos, Sectors};

/// The rule of gflash as we read it; its parameter is the distance from a last position within
/// which idleness does not count.
pub(crate) const RULE: Rule = Rule {
    name: "gflash",
    parameter: Parameter::Size {
        // 16 GiB; fitted to its figures for three and four streams.
        usual: Sectors(1 << 25),
        least: Sectors::ZERO,
    },
    build: |members, near| Box::new(Gflash::new(members, Sectors(near))),
};

/// The policy described at the top of the file, with the end of each member's last read or write.
#[derive(Debug)]
pub(crate) struct Gflash {
    last: Vec<Sectors>,
    near: Sectors,
}

impl Gflash {
    pub(crate) fn new(members: usize, near: Sectors) -> Self {
        Self {
            last: vec![Sectors::ZERO; members],
            near,
        }
    }
}

impl ReadPolicy for Gflash {
    fn choose(&mut self, _now: Nanos, read: &Read, members: &[MemberView]) -> Option<Choice> {
        let distance = |slot: Slot| self.last[slot.index()].0.abs_diff(read.start.0);
        let pending = |slot: Slot| members[slot.index()].pending;
        let idle: SlotSet = read
            .candidates
            .iter()
            .filter(|&slot| pending(slot) == 0)
            .collect();
        let is_near = read
            .candidates
            .iter()
            .any(|slot| distance(slot) <= self.near.0);
        let eligible = if is_near || idle.is_empty() {
            read.candidates
        } else {
            idle
        };
        eligible
            .iter()
            .min_by_key(|&slot| (distance(slot), pending(slot), slot))
            .map(|slot| read.all_from(slot))
    }

    fn issued(&mut self, io: &Io, _members: &[MemberView]) {
        if matches!(io.kind, IoKind::Read | IoKind::Write) {
            self.last[io.slot.index()] = io.end();
        }
    }

    fn member_added(&mut self, slot: Slot) {
        self.last[slot.index()] = Sectors::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::Gflash;
    use crate::testing::Bench;
    use raidlab_array::IoKind;
    use raidlab_units::Sectors;

    fn bench() -> Bench {
        Bench::new(2, Box::new(Gflash::new(2, Sectors(1_000))))
    }

    #[test]
    fn an_idle_member_wins_over_a_nearer_busy_one() {
        let mut bench = bench();
        assert_eq!(bench.read(50_000, 8), 0, "tie of positions: lowest slot");
        assert_eq!(bench.read(52_000, 8), 1, "slot 0 is nearer but busy");
    }

    #[test]
    fn close_to_a_last_position_the_nearest_wins_busy_or_not() {
        let mut bench = bench();
        assert_eq!(bench.read(50_000, 8), 0);
        assert_eq!(bench.read(51_008, 8), 0, "1000 sectors from slot 0's end");
        assert_eq!(bench.read(52_017, 8), 1, "1001 sectors: slot 1 is idle");
    }

    #[test]
    fn all_busy_the_nearest_issued_end_wins_and_ties_go_to_the_quieter() {
        let mut bench = bench();
        bench.write(0, 10_000, 8);
        bench.write(1, 10_000, 8);
        bench.write(1, 9_000, 1_008);
        // Both last positions are 10008; outstanding 1 and 2.
        assert_eq!(
            bench.read(30_000, 8),
            0,
            "tie of positions: fewer outstanding"
        );
        // Last positions 30008 and 10008, outstanding 2 and 2.
        assert_eq!(bench.read(20_007, 8), 1);
        assert_eq!(bench.read(20_015, 8), 1, "exactly on its end");
    }

    #[test]
    fn sync_moves_no_position() {
        let mut bench = bench();
        bench.issue(IoKind::SyncRead, 0, 40_000, 8);
        bench.issue(IoKind::SyncWrite, 1, 40_000, 8);
        bench.write(1, 45_000, 8);
        assert_eq!(bench.read(20_000, 8), 0, "20000 from 0, 25008 from 45008");
    }
}
