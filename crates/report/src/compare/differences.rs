//! What is not the same in all runs: the runs' heads, tools, facts, settings.

use super::Difference;
use crate::compute::environment::tools;
use crate::data::RunData;
use raidlab_store::fact::disk_property;
use raidlab_store::{Observation, Scope};
use std::collections::BTreeMap;

/// Properties of disks that change from reading to reading and are no
/// difference between runs.
const READINGS: [&str; 1] = [disk_property::TEMPERATURE_CELSIUS];

/// A thing's place and name.
type Name = (&'static str, String, String);

/// Every difference: heads first, then tools, environment and settings.
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
    ]
}

/// Facts of machines and subjects, and settings; those of single cells are
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
    use super::differences;
    use crate::sample;
    use raidlab_store::{Observation, Scope};

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
