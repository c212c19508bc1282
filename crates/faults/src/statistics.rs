//! The counts of runs, added up.

use crate::reach::Reach;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Counts over one run or many.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    /// The number of seeds that were run.
    pub runs: u64,
    /// Nanoseconds of virtual time.
    pub virtual_ns: u128,
    /// The number of requests to the array.
    pub requests: u64,
    /// The number of commands to members.
    pub commands: u64,
    /// The number of events in virtual time.
    pub events: u64,
    /// The number of times that the array was assembled.
    pub assemblies: u64,
    /// The number of times that all members were compared with each other and the oracle.
    pub verifications: u64,
    /// The actions on the array and its disks, by the states that they met.
    pub reach: Reach,
    /// The number of runs of each level.
    pub levels: BTreeMap<String, u64>,
}

impl Statistics {
    /// Adds the counts of others.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.virtual_ns += other.virtual_ns;
        self.requests += other.requests;
        self.commands += other.commands;
        self.events += other.events;
        self.assemblies += other.assemblies;
        self.verifications += other.verifications;
        self.reach.add(&other.reach);
        for (level, count) in &other.levels {
            *self.levels.entry(level.clone()).or_default() += count;
        }
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = self.virtual_ns as f64 / 3.6e12;
        writeln!(
            formatter,
            "{} runs, {hours:.1} hours of virtual time, {} requests, {} member commands, {} events",
            self.runs, self.requests, self.commands, self.events
        )?;
        writeln!(
            formatter,
            "{} assemblies, {} whole verifications",
            self.assemblies, self.verifications
        )?;
        let list = |counts: &mut dyn Iterator<Item = (String, u64)>| {
            let words: Vec<String> = counts
                .map(|(what, count)| format!("{what} {count}"))
                .collect();
            words.join(", ")
        };
        let mut levels = self
            .levels
            .iter()
            .map(|(level, count)| (level.clone(), *count));
        writeln!(formatter, "levels: {}", list(&mut levels))?;
        let deeds = self.reach.deeds();
        let mut deeds = deeds.map(|(deed, met)| (deed.to_owned(), met.times));
        write!(formatter, "deeds: {}", list(&mut deeds))
    }
}
