//! Pitfalls of comparisons: other differences between the subjects, and chance.

use super::claims::claim;
use crate::case::Case;
use crate::devices::{reports_options, tool};
use crate::finding::Ruling;
use crate::rule::Check;
use raidlab_statistics::{Sample, outliers};
use raidlab_store::Severity::{Note, Warning};
use raidlab_store::{Measurement, Operation, Scope, fact, fact::claim_part};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("T23", Check::Whole(versions_differ)),
    ("T24", Check::Whole(filesystem_confounded)),
    ("T26", Check::Whole(half_of_mixed)),
    ("T39", Check::Whole(jobs_differ)),
    ("R1", Check::Whole(repetitions_disagree)),
];

fn versions_differ(case: &Case<'_>, ruling: &mut Ruling) {
    for rows in case.compared() {
        let mut tools: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut kernels: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for row in &rows {
            let name = tool(row);
            if !name.is_empty() && name != "bonnie++" {
                tools.entry(name).or_default().insert(&row.tool);
            }
            let release = case.text(row, fact::OS_RELEASE);
            if let (Some(kernel), Some(release)) = (case.text(row, fact::OS_KERNEL), release) {
                kernels.entry(kernel).or_default().insert(release);
            }
        }
        for (what, versions) in tools.iter().chain(&kernels) {
            ruling.judged();
            if versions.len() > 1 {
                let list: Vec<&str> = versions.iter().copied().collect();
                ruling.scope(
                    Note,
                    Scope::default(),
                    format!("{what}: {}", list.join(" and ")),
                );
            }
        }
    }
    let need = match case.compared().as_slice() {
        [] => "a second subject",
        _ => "the tool's version",
    };
    ruling.need(None::<()>, need);
}

/// Options of fio that say what its disks have to do; how many bytes a job moves is the last.
/// Rows of other block sizes, depths and numbers of clones are not compared in the first place.
const LOAD: [&str; 21] = [
    "direct",
    "buffered",
    "sync",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "end_fsync",
    "rwmixread",
    "rwmixwrite",
    "percentage_random",
    "random_distribution",
    "bssplit",
    "offset",
    "zonemode",
    "rate",
    "rate_iops",
    "thinktime",
    "buffer_compress_percentage",
    "dedupe_percentage",
    "size",
    "filesize",
];

/// Finds subjects whose imported jobs of one name were given other options.
fn jobs_differ(case: &Case<'_>, ruling: &mut Ruling) {
    let told = |row: &&&Measurement| {
        row.bench == "import" && tool(row) == "fio" && reports_options(case, row)
    };
    for rows in case.compared() {
        let rows: Vec<&Measurement> = rows.iter().filter(told).copied().collect();
        let subjects: BTreeSet<&str> = rows.iter().map(|row| row.subject.as_str()).collect();
        if subjects.len() < 2 {
            continue;
        }
        ruling.judged();
        let differences = LOAD.iter().filter_map(|option| {
            let mut given: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
            for row in &rows {
                // fio repeats every option that has a value, so the others have their defaults:
                // 0, but for the parts of a mix.
                let value = case.text(row, &fact::fio_option(option));
                let value = value.filter(|value| *value != "0" || option.starts_with("rwmix"));
                let subjects = given.entry(value.unwrap_or("not given")).or_default();
                subjects.insert(&row.subject);
            }
            let list = given.iter().map(|(value, subjects)| {
                let subjects: Vec<&str> = subjects.iter().copied().collect();
                format!("{value} on {}", subjects.join(" and "))
            });
            let list: Vec<String> = list.collect();
            (list.len() > 1).then(|| format!("{option}: {}", list.join(", ")))
        });
        let differences: Vec<String> = differences.collect();
        if !differences.is_empty() {
            ruling.job(Warning, rows[0], differences.join("; "));
        }
    }
    ruling.need(None::<()>, "a second subject, and the options of its fio");
}

fn filesystem_confounded(case: &Case<'_>, ruling: &mut Ruling) {
    let mut kinds: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for row in case.evidence.rows {
        let kind = case
            .text(row, fact::FILESYSTEM_TYPE)
            .unwrap_or(&row.filesystem);
        // A bare device has no file system. Results of others may not say on what they ran.
        let on_device = || {
            let file = case.text(row, &fact::fio_option("filename"));
            row.bench != "import" || file.is_some_and(|file| file.starts_with("/dev/"))
        };
        let kind = match kind {
            "none" => Some(""),
            "" => on_device().then_some(""),
            kind => Some(kind),
        };
        let Some(kind) = ruling.need(kind, fact::FILESYSTEM_TYPE) else {
            continue;
        };
        kinds
            .entry((&row.host, &row.subject))
            .or_default()
            .insert(kind);
    }
    if kinds.len() < 2 {
        ruling.need(None::<()>, "a second subject");
        return;
    }
    ruling.judged();
    let mut all = kinds.values();
    let first = all.next().cloned().unwrap_or_default();
    let common = all.fold(first, |common, kinds| &common & kinds);
    if common.is_empty() {
        let list: Vec<String> = kinds
            .iter()
            .map(|((_, subject), kinds)| {
                let kinds: Vec<&str> = kinds
                    .iter()
                    .map(|kind| if kind.is_empty() { "none" } else { kind })
                    .collect();
                format!("{subject}: {}", kinds.join(", "))
            })
            .collect();
        ruling.scope(Warning, Scope::default(), list.join("; "));
    }
}

fn half_of_mixed(case: &Case<'_>, ruling: &mut Ruling) {
    let mut cells: BTreeMap<_, Vec<&Measurement>> = BTreeMap::new();
    for row in case.evidence.rows.iter().filter(|row| tool(row) == "fio") {
        cells
            .entry((row.cell(), row.part.as_str()))
            .or_default()
            .push(row);
    }
    for rows in cells.values() {
        let of = |op| rows.iter().find(|row| row.op == op && row.total_ios > 0);
        let (Some(reads), Some(writes)) = (of(Operation::Read), of(Operation::Write)) else {
            continue;
        };
        ruling.judged();
        let ranked = [reads, writes]
            .iter()
            .any(|row| claim(case, row, claim_part::PERCENT).is_some());
        if ranked {
            let sum = reads.iops + writes.iops;
            let scope = Scope::of(reads);
            let (reads, writes) = (reads.iops, writes.iops);
            let text =
                format!("{reads:.0} reads and {writes:.0} writes per second, together {sum:.0}");
            ruling.scope(Note, scope, text);
        }
    }
    ruling.need(None::<()>, "a mixed job");
}

fn repetitions_disagree(case: &Case<'_>, ruling: &mut Ruling) {
    for rows in case.repeated() {
        let values: Vec<f64> = rows.iter().map(|row| row.value()).collect();
        let Some(sample) = Sample::new(&values).ok().filter(|sample| sample.len() >= 3) else {
            continue;
        };
        ruling.judged();
        let spread = sample.coefficient_of_variation().unwrap_or(0.0);
        let scope = Scope {
            repetition: None,
            ..Scope::of(rows[0])
        };
        if spread > 0.1 {
            let text = format!(
                "{}: {} values spread by {:.0} %",
                rows[0].op,
                sample.len(),
                spread * 100.0
            );
            ruling.scope(Note, scope, text);
        }
        // Three or four close values make any other look far.
        for place in outliers(&sample).into_iter().filter(|_| sample.len() >= 5) {
            let away = sample.values()[place] / sample.median() - 1.0;
            if away.abs() > 0.05 {
                let text = format!("{:+.0} % from the median of {}", away * 100.0, sample.len());
                ruling.row(Note, rows[place], text);
            }
        }
    }
    ruling.need(None::<()>, "three repetitions");
}
