//! A synthetic policy: the member whose last *issued* command (any kind, sync
//! I/O too) ended nearest to the read; ties to the lowest slot. Queues play no
//! part.

use raidlab_array::{Choice, Io, MemberView, Parameter, Read, ReadPolicy, Rule, Slot};
use raidlab_units::{Nanos, Sectors};

/// Nearest to the last issued position.
pub(crate) const RULE: Rule = Rule {
    name: "nearest-head",
    describe: "synthetic: nearest to the last issued position",
    parameter: Parameter::None,
    build: |members, _| Box::new(NearestHead::new(members)),
};

/// See the file's head.
#[derive(Debug)]
pub(crate) struct NearestHead {
    last: Vec<Sectors>,
}

impl NearestHead {
    pub(crate) fn new(members: usize) -> Self {
        Self {
            last: vec![Sectors::ZERO; members],
        }
    }
}

impl ReadPolicy for NearestHead {
    fn choose(&mut self, _now: Nanos, read: &Read, members: &[MemberView]) -> Option<Choice> {
        read.preferred(members)
            .iter()
            .min_by_key(|&slot| (self.last[slot.index()].0.abs_diff(read.start.0), slot))
            .map(|slot| read.all_from(slot))
    }

    fn issued(&mut self, io: &Io, _members: &[MemberView]) {
        self.last[io.slot.index()] = io.end();
    }

    fn member_added(&mut self, slot: Slot) {
        self.last[slot.index()] = Sectors::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::NearestHead;
    use crate::testing::Bench;
    use raidlab_array::IoKind;

    #[test]
    fn only_the_distance_counts() {
        let mut bench = Bench::new(2, Box::new(NearestHead::new(2)));
        assert_eq!(bench.read(1_000, 8), 0, "tie at 0");
        assert_eq!(bench.read(1_100, 8), 0, "busy, but nearer");
        bench.issue(IoKind::SyncWrite, 1, 1_500, 8);
        assert_eq!(bench.read(1_308, 8), 0, "200 from 1108 and from 1508: tie");
        assert_eq!(bench.read(1_500, 8), 1, "8 from 1508, 184 from 1316");
    }
}
