//! A synthetic policy: stripes of the address space take turns; the
//! (start / stripe) mod count -th of the members that can serve.

use super::{Choice, MemberView, Parameter, Read, ReadPolicy, Rule};
use raidlab_units::{Nanos, Sectors};

/// The rule of address stripes in turn; its parameter is the size of a stripe.
pub(super) const RULE: Rule = Rule {
    name: "round-robin",
    parameter: Parameter::Size {
        usual: Sectors(128),
        least: Sectors(1),
    },
    build: |_, stripe| Box::new(RoundRobin::new(Sectors(stripe))),
};

/// The policy described at the top of the file: neighbouring stripes go to the members in turn.
#[derive(Debug)]
pub(super) struct RoundRobin {
    stripe: Sectors,
}

impl RoundRobin {
    pub(super) const fn new(stripe: Sectors) -> Self {
        Self { stripe }
    }
}

impl ReadPolicy for RoundRobin {
    fn choose(&mut self, _now: Nanos, read: &Read, members: &[MemberView]) -> Option<Choice> {
        let slots = read.preferred(members);
        let count = u64::try_from(slots.len()).ok()?;
        let turn = (read.start.0 / self.stripe.0).checked_rem(count)?;
        let slot = slots.iter().nth(usize::try_from(turn).ok()?)?;
        Some(read.all_from(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::RoundRobin;
    use crate::policy::testing::Bench;
    use raidlab_units::Sectors;

    #[test]
    fn stripes_take_turns_among_those_that_can_serve() {
        let mut bench = Bench::new(3, Box::new(RoundRobin::new(Sectors(128))));
        let slots = [0, 127, 128, 256, 384].map(|start| bench.read(start, 8));
        assert_eq!(slots, [0, 0, 1, 2, 0]);
        bench.exclude(1);
        assert_eq!([bench.read(128, 8), bench.read(256, 8)], [2, 0]);
    }
}
