//! The environment: facts of machines, arrays and tools side by side, settings as requested and as
//! found, and every command.

use super::column::Column;
use super::view::View;
use crate::data::RunData;
use crate::format::by_thousands;
use raidlab_store::fact::{self, outcome};
use raidlab_store::{CommandRecord, Observation, Scope};
use raidlab_units::{count, grouped};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The number of bytes shown of each output of a command.
const SHOWN_BYTES: usize = 2048;
/// The number of bytes shown of all outputs of a page together.
const ALL_SHOWN_BYTES: usize = 300 * 1024;

/// A table of facts: a row for each name, a column for each machine, disk or subject.
#[derive(Debug, Serialize)]
pub(crate) struct FactTable {
    pub title: &'static str,
    pub heads: Vec<String>,
    pub rows: Vec<FactRow>,
}

/// One fact, with its value for each column.
#[derive(Debug, Serialize)]
pub(crate) struct FactRow {
    pub name: String,
    /// The values, in the order of the columns; an empty text where one is not known.
    pub values: Vec<String>,
    /// Whether the known values differ.
    pub differs: bool,
}

/// A setting or option as requested and as found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct AskedRow {
    /// Whether it was applied; `false` sorts first, so these rows are on top.
    pub applied: Option<bool>,
    pub name: String,
    pub asked: String,
    pub found: String,
    pub source: String,
    /// The machines, subjects and jobs with this setting, in words.
    pub places: String,
}

/// An experiment's commands.
#[derive(Debug, Serialize)]
pub(crate) struct CommandGroup {
    pub title: String,
    /// The number of commands, and of those that failed: `3 commands, 1 failed`.
    pub words: String,
    pub failed: bool,
    pub commands: Vec<CommandRow>,
}

/// A command that ran, as the page shows it.
#[derive(Debug, Serialize)]
pub(crate) struct CommandRow {
    /// The seconds since the experiment began.
    pub at: String,
    pub command: String,
    /// The outcome: `exit 0`, `killed by a signal`.
    pub code: String,
    pub failed: bool,
    pub took: String,
    pub stdout: String,
    pub stderr: String,
}

/// The tables of machines, their disks, and the subjects.
pub(crate) fn fact_tables(data: &RunData, view: &View<'_>) -> Vec<FactTable> {
    let asked = |name: &str| outcome_of(name).is_some();
    let plain = || data.observations.iter().filter(move |o| !asked(&o.name));
    let machine = |o: &&Observation| {
        let scope = &o.scope;
        scope.subject.is_empty() && scope.filesystem.is_empty() && scope.sequence.is_none()
    };
    let machines = plain()
        .filter(machine)
        .filter(|o| !o.name.starts_with("disk."));
    let machines = table(
        "Machines",
        machines.map(|o| (host_words(&o.scope.host), o.name.as_str(), o)),
    );
    let disks = plain().filter(machine).filter_map(|o| {
        let (device, property) = o.name.strip_prefix("disk.")?.rsplit_once('.')?;
        Some((
            format!("{device} of {}", host_words(&o.scope.host)),
            property,
            o,
        ))
    });
    let disks = table("Disks", disks);
    let subjects = plain().filter(|o| !o.scope.subject.is_empty() && o.scope.sequence.is_none());
    let named = subjects.flat_map(|o| {
        let columns = view.columns.iter().zip(&view.names);
        let covered = columns.filter(|(column, _)| {
            let part = |mine: &str, theirs: &str| mine.is_empty() || mine == theirs;
            part(&o.scope.host, column.host)
                && part(&o.scope.subject, column.subject)
                && part(&o.scope.filesystem, column.filesystem)
        });
        covered
            .map(|(_, name)| (name.clone(), o.name.as_str(), o))
            .collect::<Vec<_>>()
    });
    let subjects = table("Subjects", named);
    [machines, disks, subjects]
        .into_iter()
        .filter(|table| !table.rows.is_empty())
        .collect()
}

fn host_words(host: &str) -> String {
    if host.is_empty() {
        "this machine".to_owned()
    } else {
        host.to_owned()
    }
}

/// Arranges facts into a table; of several values all different ones are kept, in
/// order of appearance.
fn table<'a>(
    title: &'static str,
    facts: impl Iterator<Item = (String, &'a str, &'a Observation)>,
) -> FactTable {
    let mut heads: Vec<String> = Vec::new();
    let mut rows: BTreeMap<&str, BTreeMap<usize, Vec<String>>> = BTreeMap::new();
    for (head, name, observation) in facts {
        let place = heads
            .iter()
            .position(|own| *own == head)
            .unwrap_or_else(|| {
                heads.push(head);
                heads.len() - 1
            });
        let values = rows.entry(name).or_default().entry(place).or_default();
        let value = value_words(observation);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let row = |(name, values): (&str, BTreeMap<usize, Vec<String>>)| {
        let known: BTreeSet<&Vec<String>> = values.values().collect();
        FactRow {
            name: name.to_owned(),
            differs: known.len() > 1,
            values: (0..heads.len())
                .map(|place| {
                    values
                        .get(&place)
                        .map_or_else(String::new, |all| all.join(", "))
                })
                .collect(),
        }
    };
    FactTable {
        title,
        rows: rows.into_iter().map(row).collect(),
        heads,
    }
}

/// The endings of names of facts that are amounts.
const COUNTING: [&str; 3] = ["bytes", "_ns", "_per_second"];

/// A value with its unit; large amounts with gaps between thousands. Other digits may be a serial
/// number or the date of a firmware, and are left as they are.
fn value_words(observation: &Observation) -> String {
    let Observation {
        name, value, unit, ..
    } = observation;
    let counts = !unit.is_empty() || COUNTING.iter().any(|end| name.ends_with(end));
    let is_whole = value.bytes().all(|byte| byte.is_ascii_digit()) && !value.starts_with('0');
    let value = match value.len() {
        6.. if counts && is_whole => by_thousands(value),
        _ => value.clone(),
    };
    if unit.is_empty() {
        value
    } else {
        format!("{value}\u{a0}{unit}")
    }
}

/// The name and the outcome in `setting.NAME.asked` or `option.NAME.found`.
fn outcome_of(name: &str) -> Option<(&str, &str)> {
    let rest = name
        .strip_prefix("setting.")
        .or_else(|| name.strip_prefix("option."))?;
    let (name, what) = rest.rsplit_once('.')?;
    let known = [outcome::ASKED, outcome::FOUND, outcome::APPLIED];
    known.contains(&what).then_some((name, what))
}

/// Settings and options, those that were not applied first.
pub(crate) fn asked_rows(data: &RunData, view: &View<'_>) -> Vec<AskedRow> {
    type Place<'a> = (&'a Scope, &'a str);
    let mut found: BTreeMap<Place<'_>, AskedRow> = BTreeMap::new();
    for observation in &data.observations {
        let Some((name, what)) = outcome_of(&observation.name) else {
            continue;
        };
        let row = found
            .entry((&observation.scope, name))
            .or_insert_with(|| AskedRow {
                applied: None,
                name: name.to_owned(),
                asked: String::new(),
                found: String::new(),
                source: String::new(),
                places: String::new(),
            });
        match what {
            outcome::ASKED => row.asked = value_words(observation),
            outcome::FOUND => {
                row.found = value_words(observation);
                row.source.clone_from(&observation.source);
            }
            _ => row.applied = Some(observation.value == fact::TRUE),
        }
    }
    // The same outcome in many places is merged into one row.
    let mut merged: BTreeMap<AskedRow, Vec<&Scope>> = BTreeMap::new();
    for ((scope, _), row) in found {
        merged.entry(row).or_default().push(scope);
    }
    let mut rows: Vec<AskedRow> = merged
        .into_iter()
        .map(|(mut row, scopes)| {
            row.places = places(&scopes, view);
            row
        })
        .collect();
    rows.sort_by_key(|row| row.applied.unwrap_or(true));
    rows
}

/// The places of a setting: few by name, many by number.
fn places(scopes: &[&Scope], view: &View<'_>) -> String {
    match scopes {
        [a] => scope_words(a, view),
        [a, b] => format!("{} and {}", scope_words(a, view), scope_words(b, view)),
        many => format!("{} places", many.len()),
    }
}

/// A scope in words: `md/ext4@one, job 3, repetition 1`.
pub(crate) fn scope_words(scope: &Scope, view: &View<'_>) -> String {
    let mut columns = view.columns.iter().zip(&view.names);
    let whole = Column::of_scope(scope);
    let column = columns.find(|(column, _)| **column == whole);
    let mut words = Vec::new();
    match column {
        Some((_, name)) => words.push(name.clone()),
        None => {
            let parts = [&scope.subject, &scope.filesystem, &scope.host];
            words.extend(parts.into_iter().filter(|part| !part.is_empty()).cloned());
        }
    }
    if let Some(sequence) = scope.sequence {
        let mut rows = view.rows.iter().map(|row| row.head);
        let job = rows.find(|m| m.sequence == sequence);
        words.push(format!(
            "job {}",
            job.map_or_else(|| (sequence + 1).to_string(), |m| m.job.clone())
        ));
    }
    if let Some(repetition) = scope.repetition {
        words.push(format!("repetition {}", repetition + 1));
    }
    if words.is_empty() {
        return "the whole run".to_owned();
    }
    words.join(", ")
}

/// All tools with their versions, as the measurements name them.
pub(crate) fn tools(data: &RunData) -> Vec<&str> {
    let tools: BTreeSet<&str> = data.measurements.iter().map(|m| m.tool.as_str()).collect();
    tools.into_iter().filter(|tool| !tool.is_empty()).collect()
}

/// All commands by experiment, in the order in which they began.
pub(crate) fn command_groups(data: &RunData, view: &View<'_>) -> Vec<CommandGroup> {
    let mut left = ALL_SHOWN_BYTES;
    let commands = data.commands.iter().map(|command| {
        let scope = Scope {
            sequence: None,
            ..command.scope.clone()
        };
        (scope, command)
    });
    let groups = grouped(commands).into_iter().map(|(scope, commands)| {
        let failed = commands
            .iter()
            .filter(|command| command.code != Some(0))
            .count();
        let mut words = count(commands.len(), "command", "commands");
        if failed > 0 {
            words.push_str(&format!(", {failed} failed"));
        }
        CommandGroup {
            title: scope_words(&scope, view),
            words,
            failed: failed > 0,
            commands: commands
                .into_iter()
                .map(|command| command_row(command, &mut left))
                .collect(),
        }
    });
    groups.collect()
}

fn command_row(command: &CommandRecord, left: &mut usize) -> CommandRow {
    CommandRow {
        at: format!("{:.1}\u{a0}s", command.at_ns as f64 / 1e9),
        command: command.command.clone(),
        code: match command.code {
            Some(code) => format!("exit {code}"),
            None => "ended by a signal".to_owned(),
        },
        failed: command.code != Some(0),
        took: format!("{:.2}\u{a0}s", command.took_ns as f64 / 1e9),
        stdout: shortened(&command.stdout, left),
        stderr: shortened(&command.stderr, left),
    }
}

/// The beginning of an output, with a note on what is left out.
fn shortened(text: &str, left: &mut usize) -> String {
    let text = text.trim_end();
    let mut end = SHOWN_BYTES.min(*left).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    *left -= end;
    if end == text.len() {
        return text.to_owned();
    }
    format!(
        "{}\n(the first {end} of {} bytes)",
        &text[..end],
        text.len()
    )
}

#[cfg(test)]
mod tests {
    use super::{asked_rows, command_groups, fact_tables, shortened, tools, value_words};
    use crate::compute::view::View;
    use crate::sample;
    use raidlab_store::{Observation, Scope};

    #[test]
    fn what_was_not_applied_comes_first() {
        let data = sample::bench();
        let rows = asked_rows(&data, &View::new(&data));
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.name.as_str(), row.applied))
            .collect();
        assert_eq!(
            found,
            [("primarycache", Some(false)), ("recordsize", Some(true))]
        );
        assert_eq!(rows[0].places, "zfs-mirror/zfs@alpha");
        assert_eq!(
            (rows[0].asked.as_str(), rows[0].found.as_str()),
            ("metadata", "all")
        );
    }

    #[test]
    fn facts_stand_side_by_side_and_differences_show() {
        let data = sample::bench();
        let tables = fact_tables(&data, &View::new(&data));
        let titles: Vec<_> = tables.iter().map(|table| table.title).collect();
        assert_eq!(titles, ["Machines", "Disks", "Subjects"]);
        assert_eq!(tables[0].heads, ["alpha", "beta"]);
        let differing = tables[0].rows.iter().filter(|row| row.differs);
        let names: Vec<_> = differing.map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["memory.total_bytes", "os.release"]);
        assert_eq!(tables[1].heads[0], "sdb of alpha");
        assert_eq!(tools(&data), ["bonnie++ 2.00", "fio 3.33", "iozone 3.489"]);
    }

    #[test]
    fn digits_that_count_nothing_stand_as_they_are() {
        let words = |name: &str, value: &str, unit: &str| {
            let one = Observation::new(&Scope::default(), name, value, unit, "");
            value_words(&one).replace('\u{a0}', " ")
        };
        assert_eq!(words("disk.sdb.serial", "000123456", ""), "000123456");
        assert_eq!(words("disk.sdb.firmware", "20150101", ""), "20150101");
        assert_eq!(
            words("disk.sdb.size_bytes", "4000787030016", ""),
            "4 000 787 030 016"
        );
        assert_eq!(
            words("memory.total_bytes", "8589934592", "bytes"),
            "8 589 934 592 bytes"
        );
        assert_eq!(words("monitor.period_ns", "99999", "ns"), "99999 ns");
    }

    #[test]
    fn failed_commands_are_counted_and_long_outputs_cut() {
        let data = sample::bench();
        let groups = command_groups(&data, &View::new(&data));
        assert_eq!(groups[0].words, "4 commands, 2 failed");
        let codes: Vec<_> = groups[0]
            .commands
            .iter()
            .map(|one| one.code.as_str())
            .collect();
        assert_eq!(codes, ["exit 0", "exit 2", "exit 0", "ended by a signal"]);
        let whole = data.commands[2].stdout.trim_end().len();
        let note = format!("\n(the first 2048 of {whole} bytes)");
        assert!(groups[0].commands[2].stdout.ends_with(&note));
    }

    #[test]
    fn cuts_fall_between_letters() {
        let mut left = 3;
        assert_eq!(shortened("aéö", &mut left), "aé\n(the first 3 of 5 bytes)");
        assert_eq!(
            (left, shortened("x", &mut left).as_str()),
            (0, "\n(the first 0 of 1 bytes)")
        );
    }
}
