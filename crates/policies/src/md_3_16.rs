//! md RAID 1 as in Linux 3.13 to 4.9 (read in 3.18.8 drivers/md/raid1.c,
//! `read_balance`; 3.16.4 and later stable releases have the same text).
//!
//! The slots are looked at in ascending order, and each is tested completely
//! before the next one:
//! 1. A write-mostly member is noted as the choice if nothing is noted yet,
//!    and takes no part otherwise. (Noted, not ranked last: if no later slot
//!    is sequential or idle, the note stands. This is how 3.18.8 behaves; it
//!    is not so in later kernels.)
//! 2. If the read continues the slot (its last submitted read or its last
//!    completed request ended there), it is chosen and the search ends.
//!    Exception: if the slot is non-rotational and its run is longer than the
//!    optimal I/O size, it is noted, and only sequential or idle slots after
//!    it are still considered.
//! 3. If nothing is outstanding on the slot, it is chosen and the search ends.
//!    So an idle slot 0 is taken before a sequential match on slot 1 is seen.
//! 4. Otherwise the fewest outstanding and the shortest distance from the last
//!    completed position are kept (strictly less: ties to the lower slot).
//!
//! With nothing noted, the answer is the slot with the fewest outstanding if
//! a non-rotational member was seen, else the nearest.

use raidlab_array::parts::{Lowest, MdRaid1, Positions};
use raidlab_array::{MemberView, Parameter, Read, Rule, Slot};
use raidlab_units::Sectors;

/// The rule of md in Linux 3.13 to 4.9; its parameter is the optimal I/O size that non-rotational
/// members report, 0 if they report none.
pub(crate) const RULE: Rule = Rule {
    name: "md-3.16",
    parameter: Parameter::Size {
        usual: Sectors::ZERO,
        least: Sectors::ZERO,
    },
    build: |members, optimal_io| MdRaid1::boxed(members, optimal_io, choose, false),
};

/// Chooses by the rules at the head of the file.
#[inline]
fn choose(positions: &Positions, read: &Read, members: &[MemberView]) -> Option<Slot> {
    let mut noted = None;
    let mut quietest = Lowest::starting_at(u32::MAX);
    let mut nearest = Lowest::starting_at(u64::MAX);
    let mut any_solid_state = false;
    let mut want_idle = false;
    for slot in read.candidates.iter() {
        let member = &members[slot.index()];
        if member.write_mostly {
            noted = noted.or(Some(slot));
            continue;
        }
        any_solid_state |= !member.rotational;
        if positions.is_sequential(slot, read.start) {
            noted = Some(slot);
            if positions.run_is_long(slot, member) {
                want_idle = true;
                continue;
            }
            break;
        }
        if member.pending == 0 {
            noted = Some(slot);
            break;
        }
        if !want_idle {
            quietest.offer(member.pending, slot);
            nearest.offer(positions.distance(slot, read.start), slot);
        }
    }
    let ranked = if any_solid_state {
        quietest.slot
    } else {
        nearest.slot
    };
    noted.or(ranked)
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::testing::Bench;

    fn bench(members: usize) -> Bench {
        Bench::new(members, (RULE.build)(members, 0))
    }

    #[test]
    fn one_random_read_at_a_time_stays_on_slot_0() {
        let mut bench = bench(2);
        for start in [5_000, 100, 9_000, 70] {
            assert_eq!(bench.read(start, 8), 0);
            bench.complete_read(0, start, 8);
        }
    }

    #[test]
    fn two_at_a_time_take_the_idle_member_then_the_nearest_completed_head() {
        let mut bench = bench(2);
        assert_eq!(bench.read(1_000, 8), 0, "both idle");
        assert_eq!(bench.read(5_000, 8), 1, "slot 0 busy");
        // Both busy, both heads still at 0: the distances tie, slot 0 wins.
        assert_eq!(bench.read(5_100, 8), 0, "submitted reads do not move heads");
        bench.complete_read(1, 5_000, 8);
        bench.write(1, 7_000, 8);
        // Heads: slot 0 at 0, slot 1 at 5008.
        assert_eq!(bench.read(5_100, 8), 1);
        assert_eq!(bench.read(2_504, 8), 0, "equally far from 0 and 5008");
        assert_eq!(bench.read(2_505, 8), 1, "one sector nearer to 5008");
    }

    #[test]
    fn an_idle_lower_slot_wins_over_a_sequential_match_on_a_higher_one() {
        let mut bench = bench(2);
        assert_eq!(bench.read(100, 8), 0);
        assert_eq!(bench.read(5_000, 8), 1);
        bench.complete_read(0, 100, 8);
        assert_eq!(bench.read(5_008, 8), 0, "slot 1 would be sequential");
    }

    #[test]
    fn two_streams_meet_on_slot_0_and_stay() {
        let mut bench = bench(2);
        assert_eq!(bench.read(0, 256), 0, "stream A");
        assert_eq!(bench.read(1_000_000, 256), 1, "stream B");
        bench.complete_read(0, 0, 256);
        bench.complete_read(1, 1_000_000, 256);
        assert_eq!(bench.read(1_000_256, 256), 0, "B slips to the idle slot 0");
        assert_eq!(bench.read(256, 256), 0, "A matches the head of slot 0");
        for turn in 1..5 {
            let (a, b) = (256 * turn, 1_000_000 + 256 * turn);
            bench.complete_read(0, b, 256);
            assert_eq!(bench.read(b + 256, 256), 0, "B after its completion");
            bench.complete_read(0, a, 256);
            assert_eq!(bench.read(a + 256, 256), 0, "A after its completion");
        }
    }

    #[test]
    fn a_write_equalises_the_heads() {
        let mut bench = bench(2);
        for slot in 0..2 {
            bench.write(slot, 4_000, 8);
        }
        bench.complete_write(0, 4_000, 8);
        bench.complete_write(1, 4_000, 8);
        for slot in 0..2 {
            bench.write(slot, 9_000, 8);
        }
        assert_eq!(bench.read(6_000, 8), 0, "tie of heads at 4008");
        assert_eq!(bench.read(6_000, 8), 0, "pending does not matter on disks");
        assert_eq!(
            bench.read(4_008, 8),
            0,
            "both sequential by head: lower slot"
        );
    }

    #[test]
    fn a_solid_state_member_makes_fewest_outstanding_decide() {
        let mut bench = bench(3);
        bench.members[2].rotational = false;
        for (slot, pending) in [(0, 3), (1, 2), (2, 2)] {
            bench.members[slot].pending = pending;
        }
        assert_eq!(bench.read(10, 8), 1, "tie of 1 and 2 goes to the lower");
        assert_eq!(bench.read(10, 8), 2);
    }

    #[test]
    fn a_long_run_on_solid_state_moves_to_an_idle_member_only() {
        let mut bench = Bench::new(2, (RULE.build)(2, 16));
        for member in &mut bench.members {
            member.rotational = false;
        }
        bench.members[1].pending = 1;
        assert_eq!(bench.read(100, 8), 0, "run starts at 100");
        assert_eq!(
            bench.read(108, 8),
            0,
            "next 116 - 16 = 100: long from now on"
        );
        assert_eq!(bench.read(116, 8), 0, "slot 1 is busy: the note stands");
        bench.members[1].pending = 0;
        assert_eq!(bench.read(124, 8), 1, "idle");
    }

    #[test]
    fn a_write_mostly_note_stands_when_the_rest_is_busy() {
        let mut bench = bench(2);
        bench.members[0].write_mostly = true;
        assert_eq!(bench.read(500, 8), 1, "idle");
        assert_eq!(bench.read(900, 8), 0, "the quirk of 3.18.8");
    }

    #[test]
    fn only_candidates_are_chosen() {
        let mut bench = bench(3);
        bench.exclude(0);
        assert_eq!(bench.read(0, 8), 1, "slot 0 would be sequential");
        bench.exclude(1);
        bench.exclude(2);
        assert_eq!(bench.try_read(0, 8), None);
    }
}
