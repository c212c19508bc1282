//! Checks whether fio accepted the options that it was given.
//!
//! fio silently drops what it does not understand: its reader of switches is `sscanf("%u")`, so
//! `--end_fsync=1--time_based=1`, with a lost space, is on and the rest is gone. It repeats the
//! options that it accepted in its JSON under `global options` and `job options`, as text. So the
//! two are compared, value by value, whatever the spelling: `4k` is `4096`, `blocksize` is `bs`.
//!
//! Two habits of fio (seen with 3.33) matter: a switch without a value, `--time_based`, is obeyed
//! but not repeated, so it cannot be checked; and an option that needs a value takes the next
//! argument for it, even one that begins with dashes. So raidlab gives every option its value.

use crate::asked::{AskedOption, Difference, Verdict};
use crate::result::{ReportedOption, ReportedValue, ToolResult};
use raidlab_units::{parse_bytes, parse_duration};
use raidlab_workload::{Unit, canonical_name, is_program_option, unit};

/// Splits an argument vector as fio does: options before the first `--name` are for all jobs, each
/// `--name` begins a job; `--name value` is `--name=value`. fio's own options and files of jobs
/// are left out.
#[must_use]
pub fn asked_options<S: AsRef<str>>(arguments: &[S]) -> Vec<AskedOption> {
    let mut asked = Vec::new();
    let mut job: Option<String> = None;
    let mut arguments = arguments.iter().map(AsRef::as_ref).peekable();
    while let Some(argument) = arguments.next() {
        let Some(option) = argument.strip_prefix('-') else {
            continue;
        };
        let option = option.strip_prefix('-').unwrap_or(option);
        let (name, mut value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        if value.is_none() {
            value = arguments.next_if(|next| !next.starts_with('-'));
        }
        if is_program_option(name) {
            continue;
        }
        if name == "name" {
            job = value
                .filter(|name| !name.starts_with("global"))
                .map(str::to_owned);
        }
        asked.push(AskedOption {
            job: job.clone(),
            name: name.to_owned(),
            value: value.map(str::to_owned),
        });
    }
    asked
}

/// Compares the given options with those that `result` reports. Empty when every option is in force
/// as given, and no other.
#[must_use]
pub fn check_options(asked: &[AskedOption], result: &ToolResult) -> Vec<Difference> {
    let mut differences = Vec::new();
    for option in asked {
        differences.extend(check_one(option, asked, result));
    }
    for option in &result.options {
        let job = option.job.map(|job| job_name(result, job));
        let was_asked = |asked: &AskedOption| {
            same_option(&asked.name, &option.name) && (asked.job.is_none() || asked.job == job)
        };
        // In a job file the sections give the jobs their names.
        if option.name != "name" && !asked.iter().any(was_asked) {
            differences.push(Difference {
                job,
                name: option.name.clone(),
                asked: None,
                reported: Some(option.value.clone()),
                verdict: Verdict::Unasked,
            });
        }
    }
    differences
}

fn check_one(
    option: &AskedOption,
    asked: &[AskedOption],
    result: &ToolResult,
) -> Option<Difference> {
    let overruled = asked
        .iter()
        .rfind(|other| other.job == option.job && same_option(&other.name, &option.name))
        .is_some_and(|last| !std::ptr::eq(last, option));
    if overruled {
        return None;
    }
    let of = |job: Option<u32>| {
        result
            .options
            .iter()
            .find(|reported| reported.job == job && same_option(&reported.name, &option.name))
            .map(|reported| reported.value.as_str())
    };
    let jobs = match &option.job {
        None => Vec::new(),
        Some(name) => jobs_called(result, name),
    };
    let own = jobs.iter().find_map(|&job| of(Some(job)));
    let reported = own.or_else(|| of(None));
    let verdict = match (reported, &option.value) {
        (Some(reported), value) => {
            let asked = value.as_deref().unwrap_or_default();
            if same_value(&option.name, asked, reported) {
                return None;
            }
            Verdict::Changed
        }
        (None, None) => Verdict::Untold,
        (None, Some(_)) if result.options.is_empty() => Verdict::Untold,
        (None, Some(_)) if option.job.is_some() && jobs.is_empty() => Verdict::Untold,
        (None, Some(_)) => Verdict::Missing,
    };
    Some(Difference {
        job: option.job.clone(),
        name: option.name.clone(),
        asked: option.value.clone(),
        reported: reported.map(str::to_owned),
        verdict,
    })
}

/// The numbers of the jobs of this name; several where clones are reported one by one. With
/// `group_reporting` fio adds up all jobs of a group under the first one's name and repeats the
/// options of the last: such a job has no name of its own.
fn jobs_called(result: &ToolResult, name: &str) -> Vec<u32> {
    let is_name =
        |value: &ReportedValue| matches!(value, ReportedValue::Text(text) if text == name);
    result
        .facts
        .iter()
        .filter(|fact| fact.name == "jobname" && is_name(&fact.value))
        .filter_map(|fact| fact.job)
        .filter(|&job| {
            let is_other = |option: &ReportedOption| {
                option.job == Some(job) && option.name == "name" && option.value != name
            };
            !result.options.iter().any(is_other)
        })
        .collect()
}

fn job_name(result: &ToolResult, job: u32) -> String {
    result
        .fact(Some(job), "jobname")
        .map(|fact| fact.value.to_string())
        .unwrap_or_default()
}

fn same_option(one: &str, other: &str) -> bool {
    canonical_name(one) == canonical_name(other)
}

/// Whether two texts mean the same value, item by item of a list.
fn same_value(name: &str, one: &str, other: &str) -> bool {
    let one: Vec<&str> = one.split([',', ':']).collect();
    let other: Vec<&str> = other.split([',', ':']).collect();
    let is_time = unit(name) == Unit::Time;
    one.len() == other.len()
        && one
            .iter()
            .zip(&other)
            .all(|(one, other)| same_item(is_time, one.trim(), other.trim()))
}

fn same_item(is_time: bool, one: &str, other: &str) -> bool {
    let (one, other) = (on_if_empty(one), on_if_empty(other));
    if one == other {
        return true;
    }
    if is_time {
        return matches!((parse_duration(one), parse_duration(other)), (Ok(one), Ok(other)) if one == other);
    }
    matches!((parse_bytes(one), parse_bytes(other)), (Ok(one), Ok(other)) if one == other)
}

/// A switch without a value is on.
const fn on_if_empty(text: &str) -> &str {
    if text.is_empty() { "1" } else { text }
}

#[cfg(test)]
mod tests {
    use super::{asked_options, check_options};
    use crate::asked::{AskedOption, Verdict};
    use crate::fio::parse_json;

    const GLUED: &str = include_str!("data/fio-3.33-glued.json");
    const GLOBAL: &str = include_str!("data/fio-3.33-global-options.json");

    fn differences(arguments: &[&str], json: &str) -> Vec<(String, Verdict)> {
        let result = parse_json(json).expect("fio's own output");
        check_options(&asked_options(arguments), &result)
            .into_iter()
            .map(|difference| (difference.to_string(), difference.verdict))
            .collect()
    }

    #[test]
    fn a_lost_space_is_found() {
        // What a script meant to say, and what fio made of it.
        let meant = [
            "--name=bad",
            "--filename=t2.fio",
            "--size=4096k",
            "--blocksize=4096",
            "--readwrite=randread",
            "--end_fsync=1",
            "--time_based=1",
            "--output-format=json",
        ];
        assert_eq!(
            differences(&meant, GLUED),
            [
                (
                    String::from(
                        "job `bad`: `end_fsync` was asked to be `1`, fio took `1--time_based=1`"
                    ),
                    Verdict::Changed
                ),
                (
                    String::from("job `bad`: `time_based=1` was asked, fio did not take it"),
                    Verdict::Missing
                ),
            ]
        );
    }

    #[test]
    fn global_options_count_for_every_job() {
        let asked = [
            "--bs=4k",
            "--group_reporting=1",
            "--time_based=1",
            "--runtime=1000ms",
            "--clocksource=clock_gettime",
            "--name=a",
            "--filename=t2.fio",
            "--size=4m",
            "--rw=randread",
            "--thread=1",
            "--direct=0",
            "--norandommap=1",
            "--stonewall=1",
            "--exitall=1",
            "--end_fsync=1",
            "--log_avg_msec=500",
            "--gtod_reduce=1",
        ];
        assert_eq!(differences(&asked, GLOBAL), []);
        let fewer = differences(&asked[..asked.len() - 1], GLOBAL);
        assert_eq!(
            fewer,
            [(
                String::from("job `a`: fio took `gtod_reduce=1`, nobody asked for it"),
                Verdict::Unasked
            )]
        );
    }

    #[test]
    fn jobs_added_up_are_not_told() {
        // What fio 3.33 prints for jobs `a` and `c` with `group_reporting`.
        let json = r#"{"jobs":[{"jobname":"a","job options":{"name":"c","rw":"write"}}]}"#;
        let asked = ["--name=a", "--rw=read", "--name=c", "--rw=write"];
        let verdicts: Vec<_> = differences(&asked, json)
            .into_iter()
            .map(|(_, verdict)| verdict)
            .collect();
        assert_eq!(verdicts[..4], [Verdict::Untold; 4]);
    }

    #[test]
    fn a_bare_switch_is_not_told() {
        let asked = [AskedOption {
            job: Some(String::from("bad")),
            name: String::from("group_reporting"),
            value: None,
        }];
        let result = parse_json(GLUED).expect("fio's own output");
        let verdicts: Vec<_> = check_options(&asked, &result)
            .iter()
            .filter(|difference| difference.name == "group_reporting")
            .map(|difference| difference.verdict)
            .collect();
        assert_eq!(verdicts, [Verdict::Untold]);
    }

    #[test]
    fn arguments_are_taken_apart_as_fio_does() {
        let asked = asked_options(&["--bs", "8k", "-rw=read", "--name=a", "--thread", "x.fio"]);
        let texts: Vec<_> = asked
            .iter()
            .map(|option| format!("{:?} {} {:?}", option.job, option.name, option.value))
            .collect();
        assert_eq!(
            texts,
            [
                "None bs Some(\"8k\")",
                "None rw Some(\"read\")",
                "Some(\"a\") name Some(\"a\")",
                "Some(\"a\") thread Some(\"x.fio\")",
            ]
        );
    }
}
