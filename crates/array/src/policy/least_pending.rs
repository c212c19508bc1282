//! A synthetic policy: the fewest outstanding commands; on a tie the nearest to the end of the last
//! command issued to the member (any kind, sync I/O too), then the lowest slot. Models have a
//! variant that ignores outstanding commands.

use super::{Choice, Io, MemberView, Parameter, Read, ReadPolicy, Rule};
use crate::request::Slot;
use raidlab_units::{Nanos, Sectors};

/// The rule of the fewest outstanding commands, with the nearest member on a tie.
pub(super) const RULE: Rule = Rule {
    name: "least-pending",
    parameter: Parameter::None,
    build: |members, _| Box::new(Nearest::new(members, true)),
};

/// The policy described at the head of the file.
#[derive(Debug)]
pub struct Nearest {
    last: Vec<Sectors>,
    looks_at_pending: bool,
}

impl Nearest {
    /// The policy for this number of members, without history; `looks_at_pending`: whether
    /// outstanding commands are compared first.
    #[must_use]
    pub fn new(members: usize, looks_at_pending: bool) -> Self {
        Self {
            last: vec![Sectors::ZERO; members],
            looks_at_pending,
        }
    }
}

impl ReadPolicy for Nearest {
    fn choose(&mut self, _now: Nanos, read: &Read, members: &[MemberView]) -> Option<Choice> {
        read.preferred(members)
            .iter()
            .min_by_key(|&slot| {
                let distance = self.last[slot.index()].0.abs_diff(read.start.0);
                let pending = members[slot.index()].pending * u32::from(self.looks_at_pending);
                (pending, distance, slot)
            })
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
    use super::Nearest;
    use crate::policy::testing::Bench;

    #[test]
    fn queues_decide_then_distance_then_the_slot() {
        let mut bench = Bench::new(2, Box::new(Nearest::new(2, true)));
        assert_eq!(bench.read(1_000, 8), 0, "tie of both");
        assert_eq!(bench.read(1_008, 8), 1, "fewer outstanding");
        assert_eq!(
            bench.read(1_020, 8),
            1,
            "one each: 1016 is nearer than 1008"
        );
        bench.members[0].write_mostly = true;
        assert_eq!(bench.read(0, 8), 1, "write-mostly is avoided");
    }
}
