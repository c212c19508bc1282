//! A synthetic policy: the member whose last *issued* command (any kind, sync
//! I/O too) ended nearest to the read; ties to the lowest slot. Queues play no
//! part.

use raidlab_array::parts::Nearest;
use raidlab_array::{Parameter, Rule};

/// The rule of the nearest last issued position.
pub(crate) const RULE: Rule = Rule {
    name: "nearest-head",
    parameter: Parameter::None,
    build: |members, _| Box::new(Nearest::new(members, false)),
};

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::testing::Bench;
    use raidlab_array::IoKind;

    #[test]
    fn only_the_distance_counts() {
        let mut bench = Bench::new(2, (RULE.build)(2, 0));
        assert_eq!(bench.read(1_000, 8), 0, "tie at 0");
        assert_eq!(bench.read(1_100, 8), 0, "busy, but nearer");
        bench.issue(IoKind::SyncWrite, 1, 1_500, 8);
        assert_eq!(bench.read(1_308, 8), 0, "200 from 1108 and from 1508: tie");
        assert_eq!(bench.read(1_500, 8), 1, "8 from 1508, 184 from 1316");
    }
}
