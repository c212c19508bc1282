//! Facts about a job beside its rows, in the scope of its cell, in the store's vocabulary, which
//! the audit reads.

use crate::arguments::Invocation;
use crate::place::Place;
use raidlab_inventory::counters::Snapshot;
use raidlab_lab::{Asked, PlannedJob, Work};
use raidlab_shell::Frame;
use raidlab_store::{Observation, Scope, fact};
use raidlab_systems::CacheState;
use raidlab_units::Bytes;
use raidlab_workload::JobGroup;

/// The fact with the number of a job's events that never came due. No rule reads it: the time
/// line shows which.
pub(crate) const EVENTS_MISSED: &str = "job.events_missed";

/// A list of observations of one scope.
pub struct Facts {
    /// The scope that the observations are about.
    pub scope: Scope,
    /// The observations made so far, in their order.
    pub all: Vec<Observation>,
}

impl Facts {
    /// Creates an empty list for `scope`.
    pub const fn new(scope: Scope) -> Self {
        Self {
            scope,
            all: Vec::new(),
        }
    }

    /// Adds a fact; `unit` is empty where the value has none.
    pub fn add(&mut self, name: impl Into<String>, value: impl ToString, unit: &str, source: &str) {
        let one = Observation::new(&self.scope, name, value, unit, source);
        self.all.push(one);
    }

    /// Adds a fact, if its value is known.
    pub fn maybe(
        &mut self,
        name: impl Into<String>,
        value: Option<impl ToString>,
        unit: &str,
        source: &str,
    ) {
        if let Some(value) = value {
            self.add(name, value, unit, source);
        }
    }

    /// Adds a fact that holds or does not.
    pub fn flag(&mut self, name: impl Into<String>, holds: bool, source: &str) {
        let value = if holds { fact::TRUE } else { fact::FALSE };
        self.add(name, value, "", source);
    }
}

/// Adds what a job was asked to do: its time, amount, region and data.
pub fn asked(facts: &mut Facts, job: &PlannedJob, invocation: &Invocation, place: &Place) {
    match &job.work {
        Work::Fio { .. } => {
            if let Ok(group) = job.work.group() {
                of_group(facts, group, invocation, place);
            }
            fio_data(facts, invocation);
        }
        Work::Tool { name, .. } => {
            let mut told = raidlab_tools::Facts::default();
            let arguments = &invocation.command.arguments;
            invocation.tool.job_facts(arguments, &mut told);
            for one in told.all {
                facts.add(
                    one.name,
                    one.value,
                    &one.unit,
                    &format!("{name}'s arguments"),
                );
            }
        }
    }
}

/// Adds what the suite's reader understands of fio's options.
fn of_group(facts: &mut Facts, group: &JobGroup, invocation: &Invocation, place: &Place) {
    // In a folder each clone has a file of its own, unless a file is named.
    let arguments = &invocation.command.arguments;
    let named = arguments.iter().any(|word| word.starts_with("--filename="));
    let own_files = place.is_folder && !named;
    let asked = Asked::of(group, Bytes(place.capacity_bytes), own_files);
    for (name, value, unit) in asked.facts() {
        facts.add(name, value, unit, "suite");
    }
}

/// Adds the pattern of fio's data: random, with small changes for each write (`scramble_buffers`),
/// unless options say otherwise.
fn fio_data(facts: &mut Facts, invocation: &Invocation) {
    let arguments = &invocation.command.arguments;
    let is = |name: &str| {
        let given = arguments
            .iter()
            .rev()
            .find_map(|word| word.strip_prefix(&format!("--{name}=")));
        given.is_some_and(|value| value != "0")
    };
    let pattern = if is("zero_buffers") {
        "zero"
    } else if is("buffer_pattern") || is("dedupe_percentage") || is("buffer_compress_percentage") {
        "repeated"
    } else {
        "random"
    };
    facts.add(fact::JOB_DATA_PATTERN, pattern, "", "fio's options");
}

/// Adds the members' temperatures, degrees Celsius.
pub(crate) fn temperatures(facts: &mut Facts, members: &[String], snapshot: &Snapshot) {
    for member in members {
        if let Some(degrees) = snapshot.temperatures_millicelsius.get(member) {
            let name = fact::disk(member, fact::disk_property::TEMPERATURE_CELSIUS);
            facts.add(name, degrees.div_euclid(1000), "°C", "hwmon");
        }
    }
}

/// Adds what else the machine's counters show between two frames: the ARC's hits and misses, and
/// whether the wall clock was set.
pub fn between(facts: &mut Facts, before: &Frame, after: &Frame) {
    let passed = |name: &str| {
        let (then, now) = (arc(before, name)?, arc(after, name)?);
        now.checked_sub(then)
    };
    let none = |name: &str| passed(name).unwrap_or(0);
    // Blocks that prefetch had fetched came from the disks all the same, and so do those it is
    // still fetching (since OpenZFS 2.2 a count of its own).
    let hits = passed("demand_data_hits")
        .map(|hits| hits.saturating_sub(none("demand_hit_predictive_prefetch")));
    let misses = passed("demand_data_misses").map(|misses| {
        misses
            .saturating_add(none("demand_data_iohits"))
            .saturating_add(none("demand_hit_predictive_prefetch"))
    });
    let source = "/proc/spl/kstat/zfs/arcstats";
    facts.maybe(fact::ARC_HITS, hits, "", source);
    facts.maybe(fact::ARC_MISSES, misses, "", source);
    // Linux computes the time of boot from the difference of the two clocks: it moves when the wall
    // clock is set (fs/proc/stat.c, `getboottime64`).
    if let (Some(then), Some(now)) = (boot_time(before), boot_time(after)) {
        let step = now.abs_diff(then).saturating_mul(1_000_000_000);
        let source = "/proc/stat, btime: whole seconds";
        facts.add(fact::CLOCK_STEP_NS, step, "ns", source);
    }
}

/// Adds what a cache on disks of its own did between two moments.
pub fn cache(facts: &mut Facts, before: &CacheState, after: &CacheState) {
    let source = "the cache's state";
    for (moment, state) in [(fact::moment::BEFORE, before), (fact::moment::AFTER, after)] {
        let name = fact::cache_dirty_bytes(moment);
        facts.add(name, state.dirty.0, "bytes", source);
    }
    let (Some(then), Some(now)) = (before.counts, after.counts) else {
        return;
    };
    for (name, then, now) in [
        (fact::CACHE_READ_HITS, then.read_hits, now.read_hits),
        (fact::CACHE_READ_MISSES, then.read_misses, now.read_misses),
        (fact::CACHE_WRITE_HITS, then.write_hits, now.write_hits),
        (
            fact::CACHE_WRITE_MISSES,
            then.write_misses,
            now.write_misses,
        ),
        (fact::CACHE_PROMOTIONS, then.promotions, now.promotions),
        (fact::CACHE_DEMOTIONS, then.demotions, now.demotions),
    ] {
        facts.maybe(name, now.checked_sub(then), "", source);
    }
}

/// The value of a counter of `arcstats`: `hits 4 123`.
fn arc(frame: &Frame, name: &str) -> Option<u64> {
    let texts = frame.contents.iter().flatten();
    let mut arcs = texts.filter(|text| text.lines().any(|line| line.starts_with("arc_")));
    let line = arcs
        .next()?
        .lines()
        .find(|line| line.split_whitespace().next() == Some(name))?;
    line.split_whitespace().nth(2)?.parse().ok()
}

fn boot_time(frame: &Frame) -> Option<u64> {
    let mut lines = frame
        .contents
        .iter()
        .flatten()
        .flat_map(|text| text.lines());
    let seconds = lines.find_map(|line| line.strip_prefix("btime "))?;
    seconds.trim().parse().ok()
}

#[cfg(test)]
mod tests;
