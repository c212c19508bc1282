//! md RAID 1 as in Linux 4.10 to 6.8 (drivers/md/raid1.c, `read_balance` after
//! commit 2e52d449bcec).
//!
//! As 3.16, except:
//! * The search no longer ends at an idle slot, so a sequential match on any
//!   slot wins over idleness of a lower one.
//! * At the end the slot with the fewest outstanding is taken if there is a
//!   non-rotational member or if it is idle, else the nearest.
//! * A sequential slot stays chosen however long its run; a run beyond the
//!   optimal I/O size only lets a sequential match on a later slot win.
//! * Write-mostly members are used only where nothing else can serve: then the
//!   lowest.

use raidlab_array::parts::{Lowest, MdRaid1, Positions};
use raidlab_array::{MemberView, Parameter, Read, Rule, Slot};
use raidlab_units::Sectors;

/// The rule of md in Linux 4.10 to 6.8; its parameter is that of the older one.
pub(crate) const RULE: Rule = Rule {
    name: "md-4.10",
    parameter: Parameter::Size {
        usual: Sectors::ZERO,
        least: Sectors::ZERO,
    },
    build: |members, optimal_io| MdRaid1::boxed(members, optimal_io, choose, false),
};

/// Chooses by the rules at the head of the file.
#[inline]
fn choose(positions: &Positions, read: &Read, members: &[MemberView]) -> Option<Slot> {
    let mut sequential = None;
    let mut last_resort = None;
    let mut quietest = Lowest::starting_at(u32::MAX);
    let mut nearest = Lowest::starting_at(u64::MAX);
    let mut any_solid_state = false;
    for slot in read.candidates.iter() {
        let member = &members[slot.index()];
        if member.write_mostly {
            last_resort = last_resort.or(Some(slot));
            continue;
        }
        any_solid_state |= !member.rotational;
        if positions.is_sequential(slot, read.start) {
            sequential = Some(slot);
            if positions.run_is_long(slot, member) {
                continue;
            }
            break;
        }
        quietest.offer(member.pending, slot);
        nearest.offer(positions.distance(slot, read.start), slot);
    }
    let ranked = if any_solid_state || quietest.value() == 0 {
        quietest.slot
    } else {
        nearest.slot
    };
    sequential.or(ranked).or(last_resort)
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::testing::Bench;

    fn bench(members: usize, optimal_io: u64) -> Bench {
        Bench::new(members, (RULE.build)(members, optimal_io))
    }

    #[test]
    fn a_sequential_match_on_a_higher_slot_wins_over_an_idle_lower_one() {
        let mut bench = bench(2, 0);
        assert_eq!(bench.read(100, 8), 0, "both idle: lowest");
        assert_eq!(bench.read(5_000, 8), 1, "slot 1 idle");
        bench.complete_read(0, 100, 8);
        assert_eq!(bench.read(5_008, 8), 1, "3.16 would take slot 0");
        assert_eq!(bench.read(9_000, 8), 0, "no match: the idle one");
        assert_eq!(bench.read(9_500, 8), 0, "all busy: head 108 beats head 0");
    }

    #[test]
    fn a_long_run_stays_on_its_slot() {
        let mut bench = bench(2, 16);
        for member in &mut bench.members {
            member.rotational = false;
        }
        for start in [100, 108, 116, 124] {
            assert_eq!(bench.read(start, 8), 0);
        }
    }

    #[test]
    fn write_mostly_members_are_the_last_resort() {
        let mut bench = bench(3, 0);
        bench.members[0].write_mostly = true;
        bench.members[1].write_mostly = true;
        assert_eq!(bench.read(0, 8), 2, "slot 0 would be sequential and idle");
        bench.exclude(2);
        bench.members[0].pending = 9;
        assert_eq!(bench.read(50, 8), 0, "the first write-mostly, busy or not");
    }
}
