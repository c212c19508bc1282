//! md RAID 10 (Linux drivers/md/raid10.c, `read_balance`), in two versions.
//!
//! The copies in md's order. Each has a distance: its own address if there are far copies, so that
//! the outer one wins; else the distance of its address from the end of the last command that
//! *completed* on the member, of any kind, in sectors of the member. The shortest distance wins,
//! ties go to the earlier copy. Sequential reads get no special treatment.
//!
//! * 3.18 (and 3.13 on): where there are near copies, the first member without
//!   commands outstanding is taken at once.
//! * 5.4 and later: where there are near copies, such a member counts as being at
//!   distance 0; but as soon as the copies have a non-rotational member among
//!   them, the non-rotational one with the fewest outstanding is taken.
//!
//! Linux compares addresses on the device, data offset included; here it is left out, as it is the
//! same for all members but in odd arrays.

use super::md::Lowest;
use super::{Choice, Io, MemberView, Parameter, Places, Read, ReadPolicy, Rule};
use crate::request::Slot;
use raidlab_geometry::Copies;
use raidlab_units::{Nanos, Sectors};

/// The rule of md's RAID 10 in Linux 5.4 and later.
pub(super) const RULE: Rule = Rule {
    name: "md-raid10-5.4",
    parameter: Parameter::None,
    build: |members, _| Box::new(MdRaid10::new(members, true)),
};

/// The policy of md's RAID 10 that is described at the head of the file.
#[derive(Debug)]
pub struct MdRaid10 {
    heads: Vec<Sectors>,
    /// Whether it is the version of 5.4 and later, which prefers non-rotational members.
    knows_solid_state: bool,
}

impl MdRaid10 {
    /// The policy for this number of members; since Linux 5.4 it `knows_solid_state`.
    #[must_use]
    pub fn new(members: usize, knows_solid_state: bool) -> Self {
        Self {
            heads: vec![Sectors::ZERO; members],
            knows_solid_state,
        }
    }

    fn among(
        &self,
        candidates: impl Iterator<Item = (Slot, Sectors)>,
        copies: Copies,
        members: &[MemberView],
    ) -> Option<Slot> {
        let mut nearest = Lowest::starting_at(u64::MAX);
        let mut quietest = Lowest::starting_at(u32::MAX);
        for (slot, address) in candidates {
            let member = &members[slot.index()];
            let is_idle_near = copies.near > 1 && member.pending == 0;
            if is_idle_near && !self.knows_solid_state {
                return Some(slot);
            }
            if self.knows_solid_state && !member.rotational {
                quietest.offer(member.pending, slot);
            }
            let distance = if is_idle_near {
                0
            } else if copies.far > 1 {
                address.0
            } else {
                self.heads[slot.index()].0.abs_diff(address.0)
            };
            nearest.offer(distance, slot);
        }
        quietest.slot.or(nearest.slot)
    }
}

impl ReadPolicy for MdRaid10 {
    /// A mirror is a RAID 10 of near copies only.
    fn choose(&mut self, _now: Nanos, read: &Read, members: &[MemberView]) -> Option<Choice> {
        let candidates = read.candidates.iter().map(|slot| (slot, read.start));
        let slot = self.among(candidates, Copies::near(2), members)?;
        Some(read.all_from(slot))
    }

    fn choose_place(
        &mut self,
        _now: Nanos,
        read: &Read,
        places: &Places<'_>,
        members: &[MemberView],
    ) -> Option<Choice> {
        let copies = places.extent.copies();
        let candidates = copies.filter(|(slot, _)| read.candidates.contains(*slot));
        let slot = self.among(candidates, places.copies, members)?;
        Some(read.all_from(slot))
    }

    fn completed(&mut self, io: &Io) {
        self.heads[io.slot.index()] = io.address + io.count;
    }

    fn member_added(&mut self, slot: Slot) {
        self.heads[slot.index()] = Sectors::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::MdRaid10;
    use crate::policy::{Io, IoKind, MemberView, Places, Read, ReadPolicy};
    use crate::request::Slot;
    use raidlab_geometry::{Copies, CopyMap, Layout, Level, Shape};
    use raidlab_units::{Nanos, Sectors};

    struct Bench {
        map: CopyMap,
        copies: Copies,
        policy: MdRaid10,
        members: Vec<MemberView>,
    }

    impl Bench {
        /// Four members of 16 chunks of 8 sectors.
        fn new(copies: Copies, knows_solid_state: bool) -> Self {
            let layout = Layout::Copies(copies);
            let shape = Shape::uniform(Level::Raid10, layout, Sectors(8), 4, Sectors(128));
            let view = MemberView {
                readable_below: Sectors(u64::MAX),
                pending: 0,
                rotational: true,
                write_mostly: false,
            };
            Self {
                map: CopyMap::new(&shape).expect("sound"),
                copies,
                policy: MdRaid10::new(4, knows_solid_state),
                members: vec![view; 4],
            }
        }

        fn read(&mut self, start: u64) -> u16 {
            let extent = self.map.extent(Sectors(start));
            let read = Read {
                start: Sectors(start),
                count: Sectors(4),
                whole_start: Sectors(start),
                whole_count: Sectors(4),
                process: 0,
                candidates: extent.slots(),
            };
            let places = Places {
                extent,
                copies: self.copies,
            };
            let choice = self
                .policy
                .choose_place(Nanos::ZERO, &read, &places, &self.members);
            choice.expect("there are copies").slot.0
        }

        fn head(&mut self, slot: u16, end: u64) {
            self.policy.completed(&Io {
                kind: IoKind::Write,
                slot: Slot(slot),
                start: Sectors(1000),
                count: Sectors(1),
                address: Sectors(end - 1),
            });
        }
    }

    #[test]
    fn near_copies_take_the_first_idle_member_then_the_nearest_address() {
        let mut bench = Bench::new(Copies::near(2), false);
        bench.head(0, 90);
        assert_eq!(bench.read(16), 0, "idle, though slot 1 is at the place");
        bench.members[0].pending = 1;
        assert_eq!(bench.read(16), 1, "idle");
        bench.members[1].pending = 3;
        assert_eq!(bench.read(16), 1, "its head is nearer to sector 8");
        bench.head(1, 100);
        assert_eq!(bench.read(16), 0);
    }

    #[test]
    fn far_copies_are_read_from_the_outer_half() {
        for knows_solid_state in [false, true] {
            let mut bench = Bench::new(Copies::far(2), knows_solid_state);
            bench.members[0].pending = 9;
            bench.head(1, 64);
            assert_eq!(bench.read(0), 0);
        }
    }

    #[test]
    fn later_an_idle_member_is_near_and_solid_state_comes_first() {
        let mut bench = Bench::new(Copies::near(2), true);
        bench.members[0].pending = 1;
        bench.head(0, 9);
        assert_eq!(bench.read(17), 0, "at distance 0 too, and earlier");
        assert_eq!(bench.read(16), 1, "idle");
        bench.members[0].rotational = false;
        assert_eq!(bench.read(16), 0, "solid state");
        bench.members[1].rotational = false;
        assert_eq!(bench.read(16), 1, "fewer outstanding");
    }
}
