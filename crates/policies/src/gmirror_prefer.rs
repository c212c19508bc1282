//! gmirror `prefer` (FreeBSD 10.4 sys/geom/mirror/g_mirror.c): the first disk
//! of the list that can serve, that is the one with the highest priority.

use crate::gmirror_list::ByList;
use raidlab_array::{Parameter, Rule};

/// The rule of gmirror `prefer`: reads go to the disk of the highest priority.
pub(crate) const RULE: Rule = Rule {
    name: "gmirror-prefer",
    parameter: Parameter::None,
    build: |members, _| {
        ByList::boxed(members, |list, candidates| {
            list.iter().find(|slot| candidates.contains(*slot))
        })
    },
};

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::testing::Bench;

    #[test]
    fn the_last_named_serves_until_it_cannot() {
        let mut bench = Bench::new(2, (RULE.build)(2, 0));
        assert_eq!([bench.read(0, 8), bench.read(9, 8)], [1, 1]);
        bench.exclude(1);
        assert_eq!(bench.read(0, 8), 0);
    }

    #[test]
    fn a_newcomer_has_the_lowest_priority_but_precedes_its_equals() {
        let mut bench = Bench::new(3, (RULE.build)(3, 0));
        bench.add_member(2);
        assert_eq!(bench.read(0, 8), 1, "list 1, 2, 0");
        bench.exclude(1);
        assert_eq!(bench.read(0, 8), 2);
    }
}
