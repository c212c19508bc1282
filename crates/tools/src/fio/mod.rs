//! fio: its formats of output, the facts about its jobs, and whether it accepted the options that
//! it was given.

mod consistency;
mod facts;
pub mod human;
mod jobs;
mod json;
mod json_latency;
mod json_node;
mod json_runs;
mod options;
mod several;
mod terse;
mod terse_runs;
mod under_way;

pub use json::parse as parse_json;
pub use options::{asked_options, check_options};
use raidlab_units::distinct;
use raidlab_workload::shapes_load;
pub use raidlab_workload::{canonical_name, fio_options};
pub use terse::parse as parse_terse;

use crate::asked::{AskedOption, Difference};
use crate::facts::Facts;
use crate::result::{Part, Reported, ReportedValue, ToolResult};
use crate::title::Title;
use crate::tool::{Benchmark, Call, Format, Place, Tool};
use crate::words::Wrong;

/// fio, the flexible I/O tester.
pub const TOOL: Tool = Tool(&Fio);

/// fio `--output-format=json` and `json+`.
pub const JSON: Format = Format {
    name: "fio-json",
    tool: TOOL,
    looseness: 0,
    is_in: |text| {
        let is_fios = text.contains("\"jobs\"") || text.contains("\"client_stats\"");
        is_fios && json::next_document(text).is_some()
    },
    parse: parse_json,
};

/// fio `--minimal`, `--output-format=terse`.
pub const TERSE: Format = Format {
    name: "fio-terse",
    tool: TOOL,
    looseness: 1,
    is_in: |text| text.lines().any(terse::is_line),
    parse: parse_terse,
};

/// fio's text for people.
pub const HUMAN: Format = Format {
    name: "fio-human",
    tool: TOOL,
    looseness: 2,
    is_in: human::is_in,
    parse: human::parse,
};

#[derive(Debug)]
struct Fio;

impl Benchmark for Fio {
    fn name(&self) -> &'static str {
        "fio"
    }

    fn apt(&self) -> &'static str {
        "apt-get install fio"
    }

    fn pkg(&self) -> &'static str {
        "pkg install fio"
    }

    fn formats(&self) -> &'static [Format] {
        &[TERSE, HUMAN, JSON]
    }

    fn has_jobs(&self) -> bool {
        true
    }

    fn check(&self, _words: &[String]) -> Result<(), (usize, Wrong)> {
        Ok(())
    }

    fn call(&self, _arguments: Vec<String>, _place: &Place<'_>) -> Result<Call, String> {
        Err("fio's jobs are written with `fio`".to_owned())
    }

    fn runs(&self, format: &Format, text: &str) -> (Vec<String>, Vec<String>) {
        match format {
            json if *json == JSON => (json_runs::runs(text), Vec::new()),
            terse if *terse == TERSE => terse_runs::runs(text),
            _ => (vec![text.to_owned()], Vec::new()),
        }
    }

    /// The arguments come before any job's name, and so hold for all jobs. Beside the clock they
    /// request the times of whole requests: by default fio leaves out what a request waits before
    /// it is submitted, as at md's barriers, at a full stripe cache or at a full queue of a disk,
    /// which is a tick or a fifth of a second.
    fn clock(&self, source: &str) -> Vec<String> {
        vec![
            format!("--clocksource={source}"),
            "--lat_percentiles=1".to_owned(),
            "--clat_percentiles=0".to_owned(),
        ]
    }

    fn gave_up<'text>(&self, error: &'text str) -> Option<&'text str> {
        given_up(error)
    }

    fn asked(&self, arguments: &[String]) -> Vec<AskedOption> {
        asked_options(arguments)
    }

    fn differences(&self, asked: &[AskedOption], result: &ToolResult) -> Vec<Difference> {
        check_options(asked, result)
    }

    /// Repetitions may have other names and other random numbers.
    fn load_option<'fact>(&self, fact: &'fact str) -> Option<&'fact str> {
        const OF_A_REPETITION: [&str; 6] = [
            "name",
            "description",
            "group_reporting",
            "randseed",
            "randrepeat",
            "allrandrepeat",
        ];
        let option = fact.strip_prefix("fio.option.")?;
        let shapes = !OF_A_REPETITION.contains(&option) && shapes_load(option);
        shapes.then_some(option)
    }

    /// fio gives a part for each direction.
    fn is_row(&self, part: &Part) -> bool {
        let some = |count: Option<u64>| count.is_some_and(|count| count > 0);
        some(part.total_ios) || some(part.total_bytes)
    }

    /// Jobs without a group form groups of their own.
    fn group(&self, result: &ToolResult, part: &Part) -> u64 {
        let group = result.fact(Some(part.job), "groupid");
        match group.map(|fact| &fact.value) {
            Some(ReportedValue::Count(group)) => *group,
            _ => u64::from(part.job),
        }
    }

    /// The names of all jobs of a group; of many jobs the first name and the number of the others.
    fn label(&self, result: &ToolResult) -> Option<String> {
        const SHOWN: usize = 3;
        let labels = distinct(result.parts.iter().map(|part| part.label.as_str()));
        let label = match labels.len() {
            0..=SHOWN => labels.join("+"),
            many => format!("{} and {} others", labels[0], many - 1),
        };
        (!label.is_empty()).then_some(label)
    }

    fn title(&self, result: &ToolResult) -> Title {
        facts::title(result)
    }

    fn first_facts(&self, result: &ToolResult, facts: &mut Facts) {
        facts::of_options(result, facts);
    }

    fn fact(&self, said: &Reported, _part: Option<&Part>, facts: &mut Facts) -> bool {
        facts::one(said, facts)
    }
}

/// The first two numbers of a version: (2, 1) of `fio-2.1.11`, (3, 36) of
/// `fio-3.36-112-gabcdef`.
pub(crate) fn version_numbers(version: &str) -> Option<(u32, u32)> {
    let digits = version.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let mut numbers = digits.split(['.', '-']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The line on standard error with which fio abandons a job that does not end: five minutes after
/// its time it stops waiting (`FIO_REAP_TIMEOUT` of backend.c), and goes on to report it, with
/// success, as if it had ended.
fn given_up(stderr: &str) -> Option<&str> {
    let mut lines = stderr.lines().map(str::trim);
    lines.find(|line| line.starts_with("fio: job '") && line.contains("appears to be stuck"))
}

/// The version in `fio-3.33` or `fio 2.0.10`, without the name.
pub(crate) fn version_text(text: &str) -> String {
    let text = text.trim();
    let text = text.strip_prefix("fio").unwrap_or(text);
    text.trim_start_matches(['-', ' ']).to_owned()
}
