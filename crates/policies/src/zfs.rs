//! The choice of a mirror's child in ZFS. Both forms count the I/Os that are *active* (issued to
//! the device by the leaf queue); put that number into [`MemberView::pending`] when using them
//! without an array.
//!
//! FreeBSD 10, and OpenZFS since 0.7 (vdev_mirror.c, `vdev_mirror_load` and
//! `vdev_mirror_preferred_child_randomize`): load = active, plus 0 if the read starts where the
//! child's last one ended; else, on a rotating child, plus 2 within 1 MiB of it and plus 5 further
//! off; on a non-rotating child plus 1. Of several smallest loads the read's 2 MiB stripe decides:
//! the (offset / 2 MiB) mod count -th of them. In FreeBSD 10 the last offset is set when a read is
//! sent to the child; writes do not touch it. In OpenZFS 2.3 it is the end of the last command,
//! read or write, that the child's queue handed to the disk (vdev_queue.c,
//! `vdev_queue_io_to_issue`): a model of it reports those commands as reads, and not the choices.
//!
//! ZFS on Linux 0.6.3 and 0.6.4 (vdev_mirror.c): the fewest active; of several the (time / 10 ms)
//! mod count -th. Positions play no part.

use raidlab_array::{Choice, Io, IoKind, MemberView, Parameter, Read, ReadPolicy, Rule, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::{Nanos, Sectors};

/// The rule of ZFS in FreeBSD 10, and of OpenZFS since 0.7.
pub(crate) const FREEBSD_10: Rule = Rule {
    name: "zfs-freebsd-10",
    parameter: Parameter::None,
    build: |members, _| Box::new(ZfsFreebsd10::new(members)),
};

/// The rule of ZFS on Linux 0.6.
pub(crate) const ZOL_0_6: Rule = Rule {
    name: "zol-0.6",
    parameter: Parameter::None,
    build: |_, _| Box::new(Zol06),
};

/// `zfs_vdev_mirror_rotating_seek_offset` in sectors: 1 MiB.
const SEEK_OFFSET: u64 = 2048;
/// The load of a long seek, `zfs_vdev_mirror_rotating_seek_inc`; half of it for a short one.
const ROTATING_SEEK: u32 = 5;
/// The load of a seek on a non-rotating disk (`zfs_vdev_mirror_non_rotating_seek_inc`).
const NON_ROTATING_SEEK: u32 = 1;
/// Sectors of a stripe, 2 MiB (`vdev_mirror_shift` 21).
const STRIPE: u64 = 4096;
/// The time slice of ZFS on Linux 0.6.
const TIME_SLICE: Nanos = Nanos::from_millis(10);

/// The mirror of FreeBSD 10's ZFS.
#[derive(Debug)]
pub struct ZfsFreebsd10 {
    last: Vec<Sectors>,
}

impl ZfsFreebsd10 {
    /// The policy for a mirror of `members` children, without history.
    #[must_use]
    pub fn new(members: usize) -> Self {
        Self {
            last: vec![Sectors::ZERO; members],
        }
    }

    fn load(&self, slot: Slot, start: Sectors, member: &MemberView) -> u32 {
        let distance = self.last[slot.index()].0.abs_diff(start.0);
        let penalty = match (distance, member.rotational) {
            (0, _) => 0,
            (1..SEEK_OFFSET, true) => ROTATING_SEEK / 2,
            (_, true) => ROTATING_SEEK,
            (_, false) => NON_ROTATING_SEEK,
        };
        member.pending + penalty
    }
}

impl ReadPolicy for ZfsFreebsd10 {
    fn choose(&mut self, _now: Nanos, read: &Read, members: &[MemberView]) -> Option<Choice> {
        let smallest = smallest(read.candidates, |slot| {
            self.load(slot, read.start, &members[slot.index()])
        });
        nth(smallest, read.start.0 / STRIPE).map(|slot| read.all_from(slot))
    }

    fn issued(&mut self, io: &Io, _members: &[MemberView]) {
        if io.kind == IoKind::Read {
            self.last[io.slot.index()] = io.end();
        }
    }

    fn member_added(&mut self, slot: Slot) {
        self.last[slot.index()] = Sectors::ZERO;
    }
}

/// The mirror of ZFS on Linux 0.6.3 and 0.6.4.
#[derive(Debug, Default)]
pub struct Zol06;

impl ReadPolicy for Zol06 {
    fn choose(&mut self, now: Nanos, read: &Read, members: &[MemberView]) -> Option<Choice> {
        let smallest = smallest(read.candidates, |slot| members[slot.index()].pending);
        nth(smallest, now.0 / TIME_SLICE.0).map(|slot| read.all_from(slot))
    }
}

/// Returns the slots of the smallest load.
fn smallest(candidates: SlotSet, load: impl Fn(Slot) -> u32) -> SlotSet {
    let mut lowest = u32::MAX;
    let mut slots = SlotSet::EMPTY;
    for slot in candidates.iter() {
        let load = load(slot);
        if load < lowest {
            lowest = load;
            slots = SlotSet::EMPTY;
        }
        if load == lowest {
            slots = slots.with(slot);
        }
    }
    slots
}

/// Returns the slot numbered `turn`, counted cyclically through the set.
fn nth(slots: SlotSet, turn: u64) -> Option<Slot> {
    let count = u64::try_from(slots.len()).ok()?;
    let turn = turn.checked_rem(count)?;
    slots.iter().nth(usize::try_from(turn).ok()?)
}

#[cfg(test)]
mod tests {
    use super::{ZfsFreebsd10, Zol06};
    use crate::testing::Bench;
    use raidlab_array::IoKind;
    use raidlab_units::Nanos;

    fn freebsd(members: usize) -> Bench {
        Bench::new(members, Box::new(ZfsFreebsd10::new(members)))
    }

    #[test]
    fn ties_follow_two_mebibyte_stripes() {
        let mut bench = freebsd(2);
        for (start, slot) in [(40_960, 0), (45_056, 1), (49_151, 1), (8_192 * 10, 0)] {
            assert_eq!(bench.read(start, 8), slot, "{start}");
            bench.members[usize::from(slot)].pending = 0;
        }
    }

    #[test]
    fn an_active_read_weighs_as_the_penalties_do() {
        let mut bench = freebsd(2);
        // Stripe 10 of 2 MiB: tie goes to child 0, whose last becomes 40968.
        assert_eq!(bench.read(40_960, 8), 0);
        assert_eq!(bench.read(40_968, 8), 0, "1 + 0 < 0 + 5");
        assert_eq!(bench.read(41_000, 8), 0, "2 + 2 < 0 + 5");
        assert_eq!(bench.read(41_100, 8), 0, "3 + 2 = 0 + 5: stripe 10 says 0");
        assert_eq!(bench.read(41_200, 8), 1, "4 + 2 > 0 + 5");
    }

    #[test]
    fn writes_move_no_position() {
        let mut bench = freebsd(2);
        bench.issue(IoKind::Write, 1, 81_912, 8);
        bench.issue(IoKind::Write, 0, 500_000, 8);
        assert_eq!(bench.read(81_920, 8), 0, "1 + 5 each: stripe 20 says 0");
    }

    #[test]
    fn non_rotating_children_pay_one_for_a_seek() {
        let mut bench = freebsd(2);
        bench.members[1].rotational = false;
        bench.members[1].pending = 3;
        assert_eq!(bench.read(40_960, 8), 1, "0 + 5 > 3 + 1");
        assert_eq!(bench.read(90_000, 8), 1, "5 each: stripe 21 says 1");
    }

    #[test]
    fn linux_0_6_ties_follow_the_clock() {
        let mut bench = Bench::new(2, Box::new(Zol06));
        let mut at = |millis: u64| {
            bench.now = Nanos::from_millis(millis);
            let slot = bench.read(0, 8);
            bench.members[usize::from(slot)].pending = 0;
            slot
        };
        assert_eq!([at(0), at(9), at(10), at(19), at(20)], [0, 0, 1, 1, 0]);
        bench.members[1].pending = 2;
        bench.now = Nanos::from_millis(10);
        assert_eq!(
            [bench.read(0, 8), bench.read(0, 8)],
            [0, 0],
            "fewest active"
        );
        assert_eq!(bench.read(0, 8), 1, "two each, and the slice says 1");
    }
}
