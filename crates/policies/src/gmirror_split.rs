//! gmirror `split` (FreeBSD 10.4 sys/geom/mirror/g_mirror.c,
//! `g_mirror_request_split`).
//!
//! A read up to the slice size (4096 bytes unless set) goes round-robin. A
//! longer one is cut into as many pieces as there are disks that can serve,
//! each the length divided by their number and rounded up to a sector; the
//! pieces go to the disks in list order, all at once, the last one may be
//! shorter.
//!
//! A sync read goes whole to the member that would get its first piece.

use crate::gmirror_list::List;
use raidlab_array::{Choice, MemberView, Parameter, Read, ReadPolicy, Rule, Slot};
use raidlab_units::{Nanos, Sectors};

/// The rule of gmirror `split`: one read over all disks; reads up to the size that is its parameter
/// are not split.
pub(crate) const RULE: Rule = Rule {
    name: "gmirror-split",
    parameter: Parameter::Size {
        // 4096 bytes, the default of `gmirror configure -s`.
        usual: Sectors(8),
        least: Sectors::ZERO,
    },
    build: |members, slice| Box::new(GmirrorSplit::new(members, Sectors(slice))),
};

/// The policy described at the top of the file, with the largest size that is not split.
#[derive(Debug)]
pub(crate) struct GmirrorSplit {
    list: List,
    slice: Sectors,
}

impl GmirrorSplit {
    pub(crate) fn new(members: usize, slice: Sectors) -> Self {
        Self {
            list: List::new(members),
            slice,
        }
    }
}

impl ReadPolicy for GmirrorSplit {
    fn choose(&mut self, _now: Nanos, read: &Read, _members: &[MemberView]) -> Option<Choice> {
        if read.whole_count <= self.slice {
            let slot = self.list.next_in_turn(read.candidates)?;
            return Some(read.all_from(slot));
        }
        let disks = u64::try_from(read.candidates.len()).ok()?;
        if disks == 0 {
            return None;
        }
        let piece = read.whole_count.0.div_ceil(disks);
        let turn = (read.start.0 - read.whole_start.0) / piece;
        let slot = self
            .list
            .iter()
            .filter(|&slot| read.candidates.contains(slot))
            .nth(usize::try_from(turn).ok()?)?;
        Some(Choice {
            slot,
            count: Sectors(piece.min(read.count.0)),
        })
    }

    fn member_added(&mut self, slot: Slot) {
        self.list.member_added(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::GmirrorSplit;
    use crate::testing::Bench;
    use raidlab_units::Sectors;

    fn bench(members: usize) -> Bench {
        Bench::new(members, Box::new(GmirrorSplit::new(members, Sectors(8))))
    }

    #[test]
    fn small_reads_take_turns() {
        let mut bench = bench(2);
        assert_eq!([bench.read(0, 8), bench.read(0, 8)], [1, 0]);
    }

    #[test]
    fn large_reads_are_cut_in_list_order() {
        let mut bench = bench(3);
        assert_eq!(bench.pieces(100, 9), [(2, 3), (1, 3), (0, 3)]);
        assert_eq!(bench.pieces(100, 256), [(2, 86), (1, 86), (0, 84)]);
        bench.exclude(1);
        assert_eq!(bench.pieces(7, 256), [(2, 128), (0, 128)]);
        bench.exclude(2);
        assert_eq!(bench.pieces(7, 256), [(0, 256)]);
    }
}
