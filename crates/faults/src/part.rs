//! A part of a simulation: the seeds that one of many machines runs, and their results so far.
//! Parts of one simulation add up to the counts of a single machine.

use crate::run::Summary;
use crate::statistics::Statistics;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// The schema version of parts as data.
pub const PART_SCHEMA: u32 = 1;

/// The identity of a simulation: everything that determines its results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simulation {
    /// The commit that the program was built from.
    pub commit: String,
    /// The options that change what a seed does, as they are typed.
    pub options: String,
    /// The first seed.
    pub from: u64,
    /// The number of seeds.
    pub seeds: u64,
}

/// A part of a simulation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The schema of this file, [`PART_SCHEMA`].
    pub simulation_part: u32,
    /// The simulation that it is a part of.
    pub of: Simulation,
    /// The part's number, from 0.
    pub index: u32,
    /// The number of parts, at least 1.
    pub count: u32,
    /// The next seed to run; equal to the end of the part's seeds when all were run.
    pub at: u64,
    /// The counts so far.
    pub statistics: Statistics,
    /// The seeds that broke a promise, ascending, with the broken promise.
    pub broken: Vec<(u64, String)>,
}

/// The reason why parts do not form a simulation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// The part's numbers contradict each other.
    #[error("{0} is damaged: its numbers do not go together")]
    Damaged(String),
    /// The part belongs to another simulation.
    #[error("{0} is a part of another simulation than {1}: {2}")]
    Other(String, String, &'static str),
    /// The part was stopped before its end.
    #[error("{0} was stopped before its end, at seed {1}")]
    Unfinished(String, u64),
    /// Another file of the same part has other results.
    #[error("{0} and {1} are the same part, and differ")]
    Differ(String, String),
    /// A part is missing, so the simulation is not whole.
    #[error("of {0} parts there is no whole one of {1}")]
    Missing(u32, String),
    /// No part was given.
    #[error("there are no parts")]
    None,
}

impl Part {
    /// One part of `count`, of which no seed has run yet.
    #[must_use]
    pub fn new(of: Simulation, index: u32, count: u32) -> Self {
        let mut part = Self {
            simulation_part: PART_SCHEMA,
            of,
            index,
            count,
            at: 0,
            statistics: Statistics::default(),
            broken: Vec::new(),
        };
        part.at = part.seeds().start;
        part
    }

    /// Returns the part's seeds: parts follow each other, and their lengths differ by one at most.
    #[must_use]
    pub fn seeds(&self) -> Range<u64> {
        let bound = |index: u32| {
            let (seeds, count) = (u128::from(self.of.seeds), u128::from(self.count.max(1)));
            let before = seeds * u128::from(index.min(self.count)) / count;
            let before = u64::try_from(before).unwrap_or(u64::MAX);
            self.of.from.saturating_add(before)
        };
        bound(self.index)..bound(self.index.saturating_add(1))
    }

    /// Whether all seeds of the part were run.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.at == self.seeds().end
    }

    /// Adds the results of the seeds up to `next`.
    pub fn add(&mut self, summary: Summary, next: u64) {
        self.statistics.add(&summary.statistics);
        let failures = summary.failures.into_iter();
        self.broken
            .extend(failures.map(|(seed, violation)| (seed, violation.to_string())));
        self.at = next;
    }

    /// Whether the part's numbers are consistent.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let seeds = self.seeds();
        let ran = self.at.checked_sub(seeds.start);
        // An array that cannot even be made breaks a promise, and is not counted as a run.
        let told = self.statistics.runs..=self.statistics.runs + self.broken.len() as u64;
        self.simulation_part == PART_SCHEMA
            && self.index < self.count
            && self.at <= seeds.end
            && ran.is_some_and(|ran| told.contains(&ran))
    }

    /// Combines all parts, in the order of their seeds; each comes with its name.
    ///
    /// # Errors
    /// With the first that does not belong to the others, or the missing one.
    pub fn together(parts: impl IntoIterator<Item = (String, Self)>) -> Result<Self, PartError> {
        let mut all: BTreeMap<u32, (String, Self)> = BTreeMap::new();
        let mut first: Option<(String, Simulation, u32)> = None;
        for (name, part) in parts {
            if !part.is_sound() {
                return Err(PartError::Damaged(name));
            }
            let (own, of, count) =
                first.get_or_insert_with(|| (name.clone(), part.of.clone(), part.count));
            if let Some(why) = differs(of, *count, &part) {
                return Err(PartError::Other(name, own.clone(), why));
            }
            if !part.is_whole() {
                return Err(PartError::Unfinished(name, part.at));
            }
            match all.get(&part.index) {
                Some((_, known)) if *known == part => {}
                Some((known, _)) => return Err(PartError::Differ(known.clone(), name)),
                None => {
                    all.insert(part.index, (name, part));
                }
            }
        }
        let (_, of, count) = first.ok_or(PartError::None)?;
        let missing = (0..count).filter(|index| !all.contains_key(index));
        let missing: Vec<String> = missing.map(|index| format!("{index}/{count}")).collect();
        if !missing.is_empty() {
            return Err(PartError::Missing(count, missing.join(", ")));
        }
        let mut whole = Self::new(of, 0, 1);
        for (_, part) in all.into_values() {
            whole.statistics.add(&part.statistics);
            whole.broken.extend(part.broken);
            whole.at = part.at;
        }
        Ok(whole)
    }
}

/// Returns in what a part differs from a simulation, if it belongs to another one.
fn differs(of: &Simulation, count: u32, part: &Part) -> Option<&'static str> {
    [
        (of.commit != part.of.commit, "another commit"),
        (of.options != part.of.options, "other options"),
        (
            (of.from, of.seeds) != (part.of.from, part.of.seeds),
            "other seeds",
        ),
        (count != part.count, "another number of parts"),
    ]
    .into_iter()
    .find_map(|(differs, why)| differs.then_some(why))
}

#[cfg(test)]
mod tests {
    use super::{Part, PartError, Simulation};
    use crate::{Filter, run_seeds};

    const SEEDS: u64 = 10;

    fn simulation() -> Simulation {
        Simulation {
            commit: "c".to_owned(),
            options: String::new(),
            from: 1000,
            seeds: SEEDS,
        }
    }

    /// A part, run in steps of so many seeds.
    fn part(index: u32, count: u32, step: usize) -> (String, Part) {
        let mut part = Part::new(simulation(), index, count);
        for from in part.seeds().step_by(step) {
            let next = part.seeds().end.min(from + step as u64);
            part.add(run_seeds(&Filter::default(), from..next), next);
        }
        (index.to_string(), part)
    }

    #[test]
    fn parts_add_up_to_what_one_machine_counts() {
        let (_, whole) = part(0, 1, 1000);
        assert!(whole.is_whole());
        assert_eq!(whole.statistics.runs, SEEDS);
        for count in [2, 3, 7, 64] {
            let parts = (0..count).rev().map(|index| part(index, count, 4));
            assert_eq!(Part::together(parts).as_ref(), Ok(&whole), "{count}");
        }
    }

    #[test]
    fn what_does_not_belong_together_is_refused_by_name() {
        let (zero, one) = (part(0, 2, 100), part(1, 2, 100));
        let refused = |change: fn(&mut Part)| {
            let mut other = one.clone();
            change(&mut other.1);
            let both = Part::together([zero.clone(), other]);
            both.expect_err("refused").to_string()
        };
        let other = |why| format!("1 is a part of another simulation than 0: {why}");
        assert_eq!(
            refused(|it| it.of.commit.push('d')),
            other("another commit")
        );
        assert_eq!(
            refused(|it| it.of.options.push('d')),
            other("other options")
        );
        assert_eq!(
            refused(|it| *it = Part {
                count: 3,
                ..part(1, 3, 100).1
            }),
            other("another number of parts")
        );
        assert_eq!(
            refused(|it| it.statistics.runs += 1),
            "1 is damaged: its numbers do not go together"
        );
        let unfinished = ("2".to_owned(), Part::new(simulation(), 1, 2));
        let both = Part::together([zero.clone(), unfinished]);
        assert_eq!(both, Err(PartError::Unfinished("2".to_owned(), 1005)));
        let mut changed = zero.clone();
        changed.0 = "3".to_owned();
        changed.1.statistics.requests += 1;
        let twice = Part::together([zero.clone(), changed, one.clone()]);
        assert_eq!(
            twice,
            Err(PartError::Differ("0".to_owned(), "3".to_owned()))
        );
        assert!(Part::together([zero.clone(), zero.clone(), one.clone()]).is_ok());
        let gap = Part::together([one]);
        assert_eq!(gap, Err(PartError::Missing(2, "0/2".to_owned())));
        assert_eq!(Part::together([]), Err(PartError::None));
    }
}
