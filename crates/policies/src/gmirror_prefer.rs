//! gmirror `prefer` (FreeBSD 10.4 sys/geom/mirror/g_mirror.c): the first disk
//! of the list that can serve, that is the one with the highest priority.

use crate::gmirror_list::List;
use raidlab_array::{Choice, MemberView, Parameter, Read, ReadPolicy, Rule, Slot};
use raidlab_units::Nanos;

/// gmirror, the disk of the highest priority.
pub(crate) const RULE: Rule = Rule {
    name: "gmirror-prefer",
    describe: "gmirror: the disk of the highest priority",
    parameter: Parameter::None,
    build: |members, _| Box::new(GmirrorPrefer::new(members)),
};

/// See the file's head.
#[derive(Debug)]
pub(crate) struct GmirrorPrefer {
    list: List,
}

impl GmirrorPrefer {
    pub(crate) fn new(members: usize) -> Self {
        Self {
            list: List::new(members),
        }
    }
}

impl ReadPolicy for GmirrorPrefer {
    fn choose(&mut self, _now: Nanos, read: &Read, _members: &[MemberView]) -> Option<Choice> {
        let slot = self
            .list
            .iter()
            .find(|&slot| read.candidates.contains(slot))?;
        Some(read.all_from(slot))
    }

    fn member_added(&mut self, slot: Slot) {
        self.list.member_added(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::GmirrorPrefer;
    use crate::testing::Bench;

    #[test]
    fn the_last_named_serves_until_it_cannot() {
        let mut bench = Bench::new(2, Box::new(GmirrorPrefer::new(2)));
        assert_eq!([bench.read(0, 8), bench.read(9, 8)], [1, 1]);
        bench.exclude(1);
        assert_eq!(bench.read(0, 8), 0);
    }

    #[test]
    fn a_newcomer_has_the_lowest_priority_but_precedes_its_equals() {
        let mut bench = Bench::new(3, Box::new(GmirrorPrefer::new(3)));
        bench.add_member(2);
        assert_eq!(bench.read(0, 8), 1, "list 1, 2, 0");
        bench.exclude(1);
        assert_eq!(bench.read(0, 8), 2);
    }
}
