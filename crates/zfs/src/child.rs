//! Which child of the mirror serves a read (`vdev_mirror.c`).
//!
//! FreeBSD 10: the load of a child is the number of commands that its queue
//! has in the disk plus a penalty: nothing where the read begins exactly
//! where the last one chosen for that child ended, else for a mechanical disk
//! 2 within 1 MiB of it and 5 beyond, for others 1. Among the least loaded
//! the read's address decides, in stripes of 2 MiB.
//!
//! ZFS on Linux 0.6.3 and 0.6.4: fewest commands in the disk; among equals a
//! time slice of 10 ms decides.

use crate::config::ChildSelection;
use raidlab_units::Nanos;

/// What the choice looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Child {
    /// Which leaf.
    pub(crate) leaf: usize,
    /// Commands in the disk.
    pub(crate) active: u32,
    /// Where the last read chosen for it ended, sectors.
    pub(crate) last_end: u64,
    /// Whether it seeks.
    pub(crate) rotational: bool,
}

impl Child {
    /// Fills tables of children.
    pub(crate) const NONE: Self = Self {
        leaf: 0,
        active: 0,
        last_end: 0,
        rotational: false,
    };
}

const STRIPE_SHIFT: u32 = 21 - 9;
const NEAR_SECTORS: u64 = 1 << 11;

/// The leaf for a read at `start`, `None` without children.
pub(crate) fn select(
    selection: ChildSelection,
    now: Nanos,
    start: u64,
    children: &[Child],
) -> Option<usize> {
    let load = |child: &Child| match selection {
        ChildSelection::Zol06 => child.active,
        ChildSelection::FreeBsd10 => child.active + penalty(child, start),
    };
    let least = children.iter().map(load).min()?;
    let mut tied = children.iter().filter(|child| load(child) == least);
    let ties = tied.clone().count() as u64;
    let turn = match selection {
        ChildSelection::FreeBsd10 => start >> STRIPE_SHIFT,
        ChildSelection::Zol06 => now.0 / 10_000_000,
    };
    let index = usize::try_from(turn % ties).ok()?;
    tied.nth(index).map(|child| child.leaf)
}

const fn penalty(child: &Child, start: u64) -> u32 {
    if child.last_end == start {
        return 0;
    }
    match (
        child.rotational,
        child.last_end.abs_diff(start) < NEAR_SECTORS,
    ) {
        (false, _) => 1,
        (true, true) => 2,
        (true, false) => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::{Child, select};
    use crate::config::ChildSelection::{FreeBsd10, Zol06};
    use raidlab_units::Nanos;

    const fn child(leaf: usize, active: u32, last_end: u64) -> Child {
        Child {
            leaf,
            active,
            last_end,
            rotational: true,
        }
    }

    /// Sector 1 000 000 lies in stripe 244 (even), 1 003 520 in 245 (odd).
    #[test]
    fn freebsd_adds_the_penalty_and_breaks_ties_by_stripe() {
        let now = Nanos::ZERO;
        let cases = [
            // Both far: 5 and 5, the stripe decides.
            ([child(0, 0, 0), child(1, 0, 0)], 1_000_000, 0),
            ([child(0, 0, 0), child(1, 0, 0)], 1_003_520, 1),
            // Continuing costs 0: four more commands are accepted ...
            ([child(0, 4, 1_003_520), child(1, 0, 0)], 1_003_520, 0),
            // ... with five it is a tie, with six the other one.
            ([child(0, 5, 1_003_520), child(1, 0, 0)], 1_003_520, 1),
            ([child(0, 6, 1_000_000), child(1, 0, 0)], 1_000_000, 1),
            // Within 1 MiB: 2 against 5.
            ([child(0, 2, 1_000_100), child(1, 0, 0)], 1_000_000, 0),
        ];
        for (children, start, leaf) in cases {
            assert_eq!(select(FreeBsd10, now, start, &children), Some(leaf));
        }
        assert_eq!(select(FreeBsd10, now, 0, &[]), None);
    }

    #[test]
    fn linux_counts_only_active_commands_and_ties_by_time() {
        let children = [child(0, 1, 500), child(1, 1, 0), child(2, 2, 0)];
        let at = |milliseconds| select(Zol06, Nanos::from_millis(milliseconds), 500, &children);
        assert_eq!((at(0), at(10), at(20)), (Some(0), Some(1), Some(0)));
    }
}
