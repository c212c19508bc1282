//! The differences between the runs' surroundings: heads, tools, facts, settings.

use super::Difference;
use crate::compute::environment::tools;
use crate::data::RunData;
use raidlab_store::fact::{self, disk_property};
use raidlab_store::{Observation, Scope};
use std::collections::{BTreeMap, BTreeSet};

/// Properties of disks that change from reading to reading and do not count as differences.
const READINGS: [&str; 1] = [disk_property::TEMPERATURE_CELSIUS];

/// The kind, place and name of a fact or setting.
type Name = (&'static str, String, String);

/// All differences: heads first, then tools, environment and settings.
pub(super) fn differences(runs: &[RunData], by_host: bool) -> Vec<Difference> {
    let mut values: Vec<(Name, Vec<String>)> = heads(runs);
    values.push((
        ("tool", String::new(), "measured with".to_owned()),
        runs.iter().map(|data| tools(data).join(", ")).collect(),
    ));
    let facts: Vec<BTreeMap<Name, String>> = runs.iter().map(|data| facts(data, by_host)).collect();
    let mut names: Vec<&Name> = facts.iter().flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    values.extend(names.into_iter().map(|name| {
        let all = facts
            .iter()
            .map(|own| own.get(name).cloned().unwrap_or_default());
        (name.clone(), all.collect())
    }));
    let differs =
        |(_, values): &(Name, Vec<String>)| values.iter().any(|value| *value != values[0]);
    values
        .into_iter()
        .filter(differs)
        .map(|((kind, place, name), values)| Difference {
            kind,
            place,
            name,
            values,
        })
        .collect()
}

fn heads(runs: &[RunData]) -> Vec<(Name, Vec<String>)> {
    let hosts = |data: &RunData| {
        let mut hosts: Vec<&str> = data.measurements.iter().map(|m| m.host.as_str()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.join(", ")
    };
    let head = |name: &str, value: &dyn Fn(&RunData) -> String| {
        let values = runs.iter().map(value).collect();
        (("run", String::new(), name.to_owned()), values)
    };
    vec![
        head("suite", &|data| data.run.suite.clone()),
        head("bench", &|data| data.run.bench.clone()),
        head("hosts", &hosts),
        head("seed", &|data| data.run.seed.to_string()),
        head("raidlab", &|data| data.run.raidlab_version.clone()),
        head("plan", &|data| data.run.plan_hash.clone()),
        // One that was interrupted has fewer rows, and no audit.
        head("came to its end", &|data| match data.run.finished {
            Some(_) => "yes".to_owned(),
            None => "no".to_owned(),
        }),
    ]
}

/// The differences between options of jobs, for jobs whose options all runs report: each with the
/// jobs that have it. `load_option`: returns the option behind a fact of a job, if it shapes the
/// load. Different benches report different options, and spell them differently.
pub(super) fn options(runs: &[RunData], load_option: fn(&str) -> Option<&str>) -> Vec<Difference> {
    if runs.iter().any(|data| data.run.bench != runs[0].run.bench) {
        return Vec::new();
    }
    let told: Vec<_> = runs.iter().map(|data| asked(data, load_option)).collect();
    let mut jobs_by_difference: BTreeMap<(&str, Vec<String>), Vec<&str>> = BTreeMap::new();
    for job in told[0].keys() {
        let own: Option<Vec<_>> = told.iter().map(|run| run.get(job)).collect();
        let own = own.unwrap_or_default();
        let names: BTreeSet<&str> = own.iter().flat_map(|run| run.keys().copied()).collect();
        for name in names {
            let words = |values: &BTreeSet<&str>| Vec::from_iter(values.iter().copied()).join(", ");
            let value = |run: &&Asked<'_>| run.get(name).map(words).unwrap_or_default();
            let values: Vec<String> = own.iter().map(value).collect();
            if values.iter().any(|value| *value != values[0]) {
                jobs_by_difference
                    .entry((name, values))
                    .or_default()
                    .push(job);
            }
        }
    }
    let difference = |((name, values), jobs): ((&str, Vec<String>), Vec<&str>)| Difference {
        kind: "option",
        place: match jobs.len() {
            count @ 4.. => format!("{count} jobs"),
            _ => jobs.join(", "),
        },
        name: name.to_owned(),
        values,
    };
    jobs_by_difference.into_iter().map(difference).collect()
}

/// The options of a job with their values, several where its cells had several.
type Asked<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The options of each job of a run; without jobs whose options are not all known.
fn asked(data: &RunData, load_option: fn(&str) -> Option<&str>) -> BTreeMap<&str, Asked<'_>> {
    let rows = data.measurements.iter();
    let jobs: BTreeMap<Scope, &str> = rows.map(|m| (Scope::of(m), m.job.as_str())).collect();
    let mut all: BTreeMap<&str, Asked<'_>> = BTreeMap::new();
    let mut untold = BTreeSet::new();
    for observation in &data.observations {
        let Some(job) = jobs.get(&observation.scope) else {
            continue;
        };
        if observation.name == fact::FIO_OPTIONS_UNTOLD {
            untold.insert(*job);
        }
        if let Some(option) = load_option(&observation.name) {
            let own = all.entry(job).or_default();
            own.entry(option).or_default().insert(&observation.value);
        }
    }
    all.retain(|job, _| !untold.contains(job));
    all
}

/// The facts of machines and subjects, and the settings; facts of single cells are
/// readings, not surroundings.
fn facts(data: &RunData, by_host: bool) -> BTreeMap<Name, String> {
    let mut all: BTreeMap<Name, Vec<String>> = BTreeMap::new();
    let mut add = |name: Name, value: String| {
        let own = all.entry(name).or_default();
        if !own.contains(&value) {
            own.push(value);
        }
    };
    for setting in &data.settings {
        add(
            ("setting", setting.scope.clone(), setting.name.clone()),
            setting.value.clone(),
        );
    }
    let reading = |o: &Observation| READINGS.iter().any(|name| o.name.ends_with(name));
    for observation in &data.observations {
        if observation.scope.sequence.is_some() || reading(observation) {
            continue;
        }
        let place = place(&observation.scope, by_host);
        let kind = if observation.name.starts_with("setting.") {
            "setting"
        } else {
            "environment"
        };
        let value = if observation.unit.is_empty() {
            observation.value.clone()
        } else {
            format!("{} {}", observation.value, observation.unit)
        };
        add((kind, place, observation.name.clone()), value);
    }
    let joined = |(name, values): (Name, Vec<String>)| (name, values.join(", "));
    all.into_iter().map(joined).collect()
}

fn place(scope: &Scope, by_host: bool) -> String {
    let host = if by_host { scope.host.as_str() } else { "" };
    let parts = [scope.subject.as_str(), &scope.filesystem, host];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{differences, options};
    use crate::sample;
    use raidlab_store::{Observation, Scope};

    /// Runs of unlike options were compared without a word. Of jobs that only one run has, and of
    /// those that do not tell all, nothing is said.
    #[test]
    fn options_of_jobs_that_differ_are_told_with_their_jobs() {
        let run = |values: &[(usize, &str, &str)]| {
            let mut data = sample::data();
            data.observations = (values.iter())
                .map(|(row, name, value)| {
                    let scope = Scope::of(&data.measurements[*row]);
                    Observation::new(&scope, *name, *value, "", "")
                })
                .collect();
            data
        };
        fn option(fact: &str) -> Option<&str> {
            fact.strip_prefix("fio.option.")
        }
        let one = run(&[
            (0, "fio.option.fsync", "1"),
            (0, "fio.option.rw", "read"),
            (0, "x", "1"),
        ]);
        let other = run(&[(0, "fio.option.rw", "read"), (0, "x", "2")]);
        let found = options(&[one.clone(), other], option);
        let job = &sample::data().measurements[0].job;
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].kind, &found[0].place, &*found[0].name),
            ("option", job, "fsync")
        );
        assert_eq!(found[0].values, ["1", ""]);
        assert_eq!(options(&[one.clone(), one.clone()], option), []);
        let untold = run(&[
            (0, "fio.option.rw", "read"),
            (0, "fio.options_untold", "true"),
        ]);
        assert_eq!(options(&[one, untold], option), []);
    }

    /// A value may have a comma in it, and be told by every repetition.
    #[test]
    fn what_is_told_twice_is_no_difference() {
        let told = |repetitions: u32| {
            let mut data = sample::data();
            data.observations = (0..repetitions)
                .map(|repetition| {
                    let scope = Scope {
                        repetition: Some(repetition),
                        ..Scope::host("one")
                    };
                    Observation::new(&scope, "mount.options", "rw, noatime", "", "")
                })
                .collect();
            data
        };
        assert_eq!(differences(&[told(1), told(3)], true), []);
    }
}
