//! The mutation table: how many seeds it takes to find each seeded bug.
//!
//! A bug counts as found by a seed that passes without it and breaks a promise
//! with it. Bugs of the write log are looked for in arrays that have one, and
//! whose faults stay within the budget; bugs of the driver where faults strike that
//! only the driver sees.

use raidlab_array::mutation::{self, Mutation};
use raidlab_faults::{Filter, Violation, run_seed};
use rayon::prelude::*;
use std::fmt;

/// What became of one bug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunted {
    /// The bug.
    pub mutation: Mutation,
    /// How many seeds were run, the one that found it included.
    pub seeds: u64,
    /// The seed that found it, and what it broke.
    pub found: Option<(u64, Violation)>,
}

/// Runs a seed with a bug in the core or the driver.
fn run_with_mutation(filter: &Filter, mutation: Mutation, seed: u64) -> Option<Violation> {
    let before = mutation::choose(Some(mutation));
    let outcome = run_seed(filter, seed, false);
    mutation::choose(before);
    outcome.violation
}

/// The runs in which a bug can show.
pub fn filter_for(mutation: Mutation) -> Filter {
    let is_of_log = matches!(
        mutation,
        Mutation::LogSkipped
            | Mutation::LogVolatile
            | Mutation::LogReusedEarly
            | Mutation::ArrivalUnmarked
            | Mutation::AbsenceUnnamed
            | Mutation::ReplayIncomplete
            | Mutation::ReplayReversed
            | Mutation::ReplayMarkIgnored
            | Mutation::ReplayVoidCounts
            | Mutation::ReplayUnfilledTrusted
            | Mutation::ArrivalNotWiped
            | Mutation::RingFreedUnannounced
            | Mutation::LogUnfilledLeftOut
            | Mutation::AbsenceIgnored
            | Mutation::OldSessionBelieved
            | Mutation::NeverInSyncForgotten
            | Mutation::ReplacementLogUncopied
            | Mutation::LogBeforeSession
            | Mutation::UnreplayedParityTrusted
    );
    Filter {
        log: is_of_log.then_some(true),
        over_budget: is_of_log.then_some(false),
        driver: mutation.is_of_driver(),
        ..Filter::default()
    }
}

/// Looks for a bug with the seeds from `from` on, at most so many.
pub fn hunt(filter: &Filter, mutation: Mutation, from: u64, most: u64) -> Hunted {
    let found = (from..from + most).into_par_iter().find_map_first(|seed| {
        let violation = run_with_mutation(filter, mutation, seed)?;
        let sound = run_seed(filter, seed, false).violation.is_none();
        sound.then_some((seed, violation))
    });
    Hunted {
        mutation,
        seeds: found.as_ref().map_or(most, |(seed, _)| seed - from + 1),
        found,
    }
}

impl fmt::Display for Hunted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, what) = (self.mutation.name(), self.mutation.what());
        match &self.found {
            Some((_, violation)) => {
                write!(
                    formatter,
                    "| {name} | {what} | {} | {} |",
                    self.seeds, violation.kind
                )
            }
            None => write!(formatter, "| {name} | {what} | not in {} | |", self.seeds),
        }
    }
}
