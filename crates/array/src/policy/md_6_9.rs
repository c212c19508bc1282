//! md RAID 1 as in Linux 6.9 and later (drivers/md/raid1.c, `read_balance`,
//! `choose_best_rdev`, `choose_first_rdev`, `choose_slow_rdev` after the
//! refactoring of 2024).
//!
//! 1. Among the candidates that are not write-mostly, in ascending order: a
//!    slot that the read continues is chosen at once, unless it is
//!    non-rotational and its run is longer than the optimal I/O size; then one
//!    is added to its outstanding count and it is remembered (the last such).
//!    The fewest outstanding and the shortest distance from the last completed
//!    position are kept (strictly less: ties to the lower slot).
//! 2. A remembered sequential slot is chosen if no slot is idle.
//! 3. Otherwise the slot with the fewest outstanding, if the array has a
//!    non-rotational member or if that slot is idle; else the nearest.
//! 4. With no such candidate: the lowest write-mostly one.
//!
//! Beyond the resync position of a dirty array the lowest candidate is taken,
//! write-mostly or not.

use super::md::{Lowest, MdRaid1, Positions};
use super::{MemberView, Parameter, Read, Rule};
use crate::request::Slot;
use raidlab_units::Sectors;

/// The rule of md in Linux 6.9 and later; its parameter is the optimal I/O size that non-rotational
/// members report, 0 if they report none.
pub(super) const RULE: Rule = Rule {
    name: "md-6.9",
    parameter: Parameter::Size {
        usual: Sectors::ZERO,
        least: Sectors::ZERO,
    },
    build: |members, optimal_io| MdRaid1::boxed(members, optimal_io, choose, true),
};

/// Chooses by the rules at the head of the file.
#[inline]
fn choose(positions: &Positions, read: &Read, members: &[MemberView]) -> Option<Slot> {
    let mut sequential = None;
    let mut quietest = Lowest::starting_at(u32::MAX);
    let mut nearest = Lowest::starting_at(u64::MAX);
    for slot in read.candidates.iter() {
        let member = &members[slot.index()];
        if member.write_mostly {
            continue;
        }
        let mut pending = member.pending;
        if positions.is_sequential(slot, read.start) {
            if !positions.run_is_long(slot, member) {
                return Some(slot);
            }
            pending += 1;
            sequential = Some(slot);
        }
        quietest.offer(pending, slot);
        nearest.offer(positions.distance(slot, read.start), slot);
    }
    let any_idle = quietest.value() == 0;
    let chosen = if sequential.is_some() && !any_idle {
        sequential
    } else if any_idle || members.iter().any(|member| !member.rotational) {
        quietest.slot
    } else {
        nearest.slot
    };
    chosen.or_else(|| read.candidates.lowest())
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::policy::testing::Bench;

    fn bench(members: usize, optimal_io: u64) -> Bench {
        Bench::new(members, (RULE.build)(members, optimal_io))
    }

    #[test]
    fn one_random_read_at_a_time_stays_on_slot_0() {
        let mut bench = bench(2, 0);
        for start in [5_000, 100, 9_000] {
            assert_eq!(bench.read(start, 8), 0);
            bench.complete_read(0, start, 8);
        }
    }

    #[test]
    fn sequential_then_idle_then_nearest() {
        let mut bench = bench(2, 0);
        assert_eq!(bench.read(1_000, 8), 0);
        assert_eq!(bench.read(5_000, 8), 1, "idle");
        bench.complete_read(0, 1_000, 8);
        assert_eq!(bench.read(5_008, 8), 1, "sequential wins over idle slot 0");
        assert_eq!(bench.read(40, 8), 0, "idle wins over nearest head 0");
        assert_eq!(bench.read(400, 8), 1, "busy: 400 from 0, 608 from 1008");
        assert_eq!(bench.read(504, 8), 0, "504 from both: lower slot");
    }

    #[test]
    fn a_long_run_on_solid_state_moves_to_an_idle_member() {
        let mut bench = bench(2, 16);
        for member in &mut bench.members {
            member.rotational = false;
        }
        bench.members[1].pending = 1;
        assert_eq!(bench.read(100, 8), 0);
        assert_eq!(
            bench.read(108, 8),
            0,
            "outstanding 1, sequential, short run"
        );
        assert_eq!(bench.read(116, 8), 0, "long run, but nobody is idle");
        bench.members[1].pending = 0;
        assert_eq!(bench.read(124, 8), 1);
    }

    #[test]
    fn one_solid_state_member_makes_fewest_outstanding_decide() {
        let mut bench = bench(3, 0);
        bench.members[0].rotational = false;
        bench.exclude(0);
        for (slot, pending) in [(1, 4), (2, 3)] {
            bench.members[slot].pending = pending;
        }
        bench.write(1, 499, 1);
        bench.complete_write(1, 499, 1);
        assert_eq!(bench.read(501, 8), 2, "slot 1 is nearer");
    }

    #[test]
    fn the_head_of_a_new_member_is_at_the_start() {
        let mut bench = bench(2, 0);
        for slot in [0, 1] {
            bench.write(slot, 992, 8);
            bench.complete_write(slot, 992, 8);
            bench.members[usize::from(slot)].pending = 1;
        }
        bench.add_member(1);
        assert_eq!(bench.read(100, 8), 1, "at 0, where the other is at 1000");
    }

    #[test]
    fn write_mostly_members_are_the_last_resort() {
        let mut bench = bench(2, 0);
        bench.members[0].write_mostly = true;
        bench.members[1].pending = 9;
        assert_eq!(bench.read(77, 8), 1);
        bench.exclude(1);
        assert_eq!(bench.read(77, 8), 0);
    }
}
