//! SPDK RAID 1 (module/bdev/raid/raid1.c, `raid1_channel_next_read_base_bdev`):
//! the fewest read *blocks* outstanding, ties to the lowest index. Writes do
//! not count. (SPDK counts per channel, that is per thread; here there is one.)

use raidlab_array::{Choice, Io, IoKind, MemberView, Parameter, Read, ReadPolicy, Rule, Slot};
use raidlab_units::Nanos;

/// The rule of SPDK's RAID 1 module.
pub(crate) const RULE: Rule = Rule {
    name: "spdk",
    parameter: Parameter::None,
    build: |members, _| Box::new(Spdk::new(members)),
};

/// The policy described at the top of the file, with the read blocks outstanding per member.
#[derive(Debug)]
pub(crate) struct Spdk {
    outstanding: Vec<u64>,
}

impl Spdk {
    pub(crate) fn new(members: usize) -> Self {
        Self {
            outstanding: vec![0; members],
        }
    }
}

impl ReadPolicy for Spdk {
    fn choose(&mut self, _now: Nanos, read: &Read, _members: &[MemberView]) -> Option<Choice> {
        read.candidates
            .iter()
            .min_by_key(|slot| (self.outstanding[slot.index()], *slot))
            .map(|slot| read.all_from(slot))
    }

    fn issued(&mut self, io: &Io, _members: &[MemberView]) {
        if io.kind == IoKind::Read {
            self.outstanding[io.slot.index()] += io.count.0;
        }
    }

    fn completed(&mut self, io: &Io) {
        if io.kind == IoKind::Read {
            self.outstanding[io.slot.index()] -= io.count.0;
        }
    }

    fn member_added(&mut self, slot: Slot) {
        self.outstanding[slot.index()] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Spdk;
    use crate::testing::Bench;

    #[test]
    fn blocks_outstanding_decide_not_commands() {
        let mut bench = Bench::new(2, Box::new(Spdk::new(2)));
        assert_eq!(bench.read(0, 64), 0, "tie");
        assert_eq!(bench.read(0, 8), 1);
        assert_eq!(bench.read(0, 8), 1, "8 < 64");
        bench.write(1, 0, 1_000);
        assert_eq!(bench.read(0, 48), 1, "16 < 64; writes do not count");
        assert_eq!(bench.read(0, 8), 0, "64 = 64");
        bench.complete_read(0, 0, 64);
        assert_eq!(bench.read(0, 8), 0);
    }
}
