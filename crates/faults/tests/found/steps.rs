//! The words of the scripts.

use raidlab_faults::disk::TearRates;
use raidlab_faults::script::{Action, Restart, Step, Verb};
use raidlab_geometry::{Copies, FarSets, Layout};

/// Two copies, the second in the next chunk of the next member: md's `o2`.
pub(super) const OFFSET: Layout = Layout::Copies(Copies {
    near: 1,
    far: 2,
    offset: true,
    far_sets: FarSets::None,
});

pub(super) const fn after(after_ns: u64, action: Action) -> Step {
    Step { after_ns, action }
}

pub(super) const fn read(start: u64, count: u64) -> Action {
    Action::Read { start, count }
}

pub(super) const fn write(start: u64, count: u64) -> Action {
    Action::Write {
        start,
        count,
        force_unit_access: false,
    }
}

pub(super) const fn durable(start: u64, count: u64) -> Action {
    Action::Write {
        start,
        count,
        force_unit_access: true,
    }
}

pub(super) const fn transient(member: usize, commands: u32) -> Action {
    Action::Transient { member, commands }
}

pub(super) const fn unreadable(member: usize, sector: u64, count: u64) -> Action {
    Action::Unreadable {
        member,
        sector,
        count,
    }
}

pub(super) const fn unreadable_metadata(member: usize, sector: u64) -> Action {
    Action::UnreadableMetadata { member, sector }
}

pub(super) const fn noted(member: usize, sector: u64, count: u64) -> Action {
    Action::NoteBad {
        member,
        sector,
        count,
    }
}

pub(super) const fn mend(fresh: bool, healed: bool) -> Action {
    Action::Mend { fresh, healed }
}

pub(super) const fn replace(member: usize) -> Action {
    Action::Administer(Verb::Replace { member })
}

const fn restart(seed: u64, missing: Option<usize>, stale: bool, again: Option<u64>) -> Restart {
    Restart {
        seed,
        missing,
        stale,
        again,
    }
}

pub(super) const fn cut(
    seed: u64,
    missing: Option<usize>,
    stale: bool,
    again: Option<u64>,
) -> Action {
    Action::PowerCut(restart(seed, missing, stale, again))
}

pub(super) const fn kill(
    seed: u64,
    missing: Option<usize>,
    stale: bool,
    again: Option<u64>,
) -> Action {
    Action::Kill(restart(seed, missing, stale, again))
}

pub(super) const fn stop(
    seed: u64,
    missing: Option<usize>,
    stale: bool,
    again: Option<u64>,
) -> Action {
    Action::Stop(restart(seed, missing, stale, again))
}

pub(super) const fn tear(prefix: u32, subset: u32, whole: u32) -> TearRates {
    TearRates {
        prefix,
        subset,
        whole,
    }
}
