//! The coverage of a simulation: the actions that met the array in each of its states.
//!
//! A fault that never came during a recovery says nothing about arrays under recovery. So every
//! action of a run (a request, a fault, an administrator's verb, a crash) is counted once for each
//! state that the array was in at that moment, and a pair that was never counted is a gap in the
//! simulation, to be closed or to be justified.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A state of the array when an action meets it; several hold at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Every slot's member is in sync, and no sync runs.
    Whole,
    /// A slot is vacant, or its member has failed.
    Degraded,
    /// A member is under recovery.
    Filling,
    /// A spare gets the content of a member in service, to replace it.
    Replacing,
    /// The first resync after the creation is not over.
    FirstSync,
    /// A resync after a crash or a failed write runs or is due.
    Resync,
    /// A check or repair runs.
    Check,
    /// The superblocks call the array dirty, or soon will.
    Active,
    /// A bit of the write-intent bitmap is set.
    Marked,
    /// Writes go through a write log.
    Logged,
    /// Requests are in flight.
    Busy,
    /// A request waits for superblocks or bitmap.
    Held,
    /// A member has bad blocks in its log.
    BadBlocks,
    /// A member's disk has unreadable sectors.
    Unreadable,
    /// A disk is slow, does not answer, or fails commands now and then.
    Ailing,
    /// A disk that was removed waits to come back.
    Retired,
    /// The array is read-only, so writes are refused.
    ReadOnly,
    /// More was lost than the level tolerates.
    Beyond,
}

impl State {
    /// All states, in the order of the table.
    pub const ALL: [Self; 18] = [
        Self::Whole,
        Self::Degraded,
        Self::Filling,
        Self::Replacing,
        Self::FirstSync,
        Self::Resync,
        Self::Check,
        Self::Active,
        Self::Marked,
        Self::Logged,
        Self::Busy,
        Self::Held,
        Self::BadBlocks,
        Self::Unreadable,
        Self::Ailing,
        Self::Retired,
        Self::ReadOnly,
        Self::Beyond,
    ];

    /// Returns the state's name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Degraded => "degraded",
            Self::Filling => "filling",
            Self::Replacing => "replacing",
            Self::FirstSync => "first sync",
            Self::Resync => "resync",
            Self::Check => "check",
            Self::Active => "active",
            Self::Marked => "bits set",
            Self::Logged => "log",
            Self::Busy => "busy",
            Self::Held => "held",
            Self::BadBlocks => "bad blocks",
            Self::Unreadable => "unreadable",
            Self::Ailing => "ailing",
            Self::Retired => "retired",
            Self::ReadOnly => "read-only",
            Self::Beyond => "beyond",
        }
    }
}

/// The number of times that each action met each state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    deeds: BTreeMap<Cow<'static, str>, Met>,
}

/// The counts of one action, in total and by state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Met {
    /// The number of times that the action was done.
    pub times: u64,
    states: [u64; State::ALL.len()],
}

impl Met {
    /// Returns the number of times that it was done in this state.
    #[must_use]
    pub const fn states(&self, state: State) -> u64 {
        self.states[state as usize]
    }
}

impl Reach {
    /// Counts an action on the array, once for each state that the array was in.
    pub fn did(&mut self, deed: &'static str, states: impl IntoIterator<Item = State>) {
        let met = self.deeds.entry(Cow::Borrowed(deed)).or_default();
        met.times += 1;
        for state in states {
            met.states[state as usize] += 1;
        }
    }

    /// Adds the counts of another simulation.
    pub fn add(&mut self, other: &Self) {
        for (deed, theirs) in &other.deeds {
            let met = self.deeds.entry(deed.clone()).or_default();
            met.times += theirs.times;
            for (mine, theirs) in met.states.iter_mut().zip(theirs.states) {
                *mine += theirs;
            }
        }
    }

    /// Returns every action that was done, by name.
    pub fn deeds(&self) -> impl Iterator<Item = (&str, &Met)> {
        self.deeds.iter().map(|(deed, met)| (deed.as_ref(), met))
    }
}

#[cfg(test)]
mod tests {
    use super::{Reach, State};

    #[test]
    fn pairs_are_counted_and_added_up() {
        let mut reach = Reach::default();
        reach.did("stop", [State::Whole, State::Marked]);
        let mut other = Reach::default();
        other.did("stop", [State::Whole]);
        other.did("kill", State::ALL);
        reach.add(&other);
        let counts: Vec<_> = reach
            .deeds()
            .map(|(deed, met)| (deed, met.times, met.states(State::Whole)))
            .collect();
        assert_eq!(counts, [("kill", 1, 1), ("stop", 2, 2)]);
        let stop = reach.deeds().last().map(|(_, met)| met.clone());
        let stop = stop.expect("it was done");
        let met = State::ALL.into_iter().filter(|it| stop.states(*it) > 0);
        assert_eq!(met.collect::<Vec<_>>(), [State::Whole, State::Marked]);
        for (at, state) in State::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, at);
        }
    }
}
