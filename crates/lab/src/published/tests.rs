//! The published figures against the logs, and how they reach a row.

use super::{Cell, Log, Published};
use crate::document::Document;
use crate::edited::edited;
use crate::experiment::{Choices, PlannedStep};
use crate::suite::Suite;
use raidlab_store::{Measurement, Operation, Role};
use raidlab_units::table;
use std::fmt::Write;

fn figures() -> Published {
    Published::load("mirror-2015").expect("built in")
}

fn cell<'a>(published: &'a Published, subject: &str, job: &str, op: Operation) -> &'a Cell {
    let is_it = |cell: &&Cell| cell.subject == subject && cell.job == job && cell.op == op;
    let found = published.cells.iter().find(is_it);
    found.unwrap_or_else(|| panic!("no figures for {subject} {job} {op}"))
}

/// What the model claims for a cell: the first accuracy of the job's class that names the
/// subject and the job, or names neither.
fn percent(published: &Published, subject: &str, job: &str) -> Option<f64> {
    let names = |list: &[String], name: &str| list.is_empty() || list.iter().any(|own| own == name);
    let mut all = published.class_of(job)?.accuracy.iter();
    all.find(|one| names(&one.subjects, subject) && names(&one.jobs, job))
        .map(|accuracy| accuracy.percent)
}

/// The figures of an article stand beside the rows of the suite that names them, with
/// what they were used for.
#[test]
fn an_article_s_figures_stand_beside_the_rows_of_its_suite() {
    for (suite, subject, job, op, part, first) in [
        (
            "unequal-2008",
            "raid1-a+c",
            "bonnie",
            Operation::Write,
            "",
            33.08e6,
        ),
        ("unequal-2008", "hda3", "bonnie", Operation::Read, "", 44e6),
        (
            "gmirror-md-2010",
            "gmirror",
            "dd-write-4k",
            Operation::Write,
            "",
            51.4e6,
        ),
        (
            "gmirror-md-2010-small",
            "md",
            "dd-write-64k",
            Operation::Write,
            "",
            38.04e6,
        ),
    ] {
        let suite = Suite::load(suite).expect("built in");
        let published = suite.published.as_ref().expect("named");
        assert_eq!(published.disks, suite.disks, "{}", suite.name);
        let mut row = Measurement::blank("kernel");
        (row.subject, row.job) = (subject.to_owned(), job.to_owned());
        (row.op, row.part) = (op, part.to_owned());
        row.filesystem = match subject {
            "gmirror" => "ufs".to_owned(),
            _ => "ext3".to_owned(),
        };
        (row.role, row.fit) = (Role::Predicted, "strict".to_owned());
        published.attach(&mut row);
        let figure = row.published.first().expect("a figure");
        let bytes = figure.bytes_per_second.expect("a rate in bytes");
        assert!(
            (bytes / first - 1.0).abs() < 0.01,
            "{subject} {job}: {bytes}"
        );
        // They say nothing of another file system.
        let mut other = Measurement {
            filesystem: "xfs".to_owned(),
            published: Vec::new(),
            ..row.clone()
        };
        published.attach(&mut other);
        assert_eq!(other.published, []);
        // The presets' media rates are the reads of single disks.
        let was_fitted = job == "bonnie" && op == Operation::Read;
        assert_eq!(row.role == Role::Fitted, was_fitted, "{subject} {job}");
    }
}

/// Every cell of an article's figures is one of the suite's, or is known to be none.
#[test]
fn an_article_s_figures_are_of_the_suite_s_subjects_and_jobs() {
    for (name, others) in [
        ("unequal-2008", &[][..]),
        ("freebsd-zfs-2021", &["raidz1-cache-log"]),
        (
            "gmirror-md-2010",
            &["iozone-16m", "iozone-128m", "iozone-1g"],
        ),
    ] {
        let suite = Suite::load(name).expect("built in");
        let jobs: Vec<&str> = suite.jobs().map(|job| job.name.as_str()).collect();
        let published = suite.published.as_ref().expect("named");
        assert!(!published.cells.is_empty(), "{name}");
        for cell in &published.cells {
            let known = suite.subjects.iter().any(|one| one.name == cell.subject)
                && jobs.contains(&cell.job.as_str());
            let other =
                others.contains(&cell.job.as_str()) || others.contains(&cell.subject.as_str());
            assert!(known != other, "{name}: {} {}", cell.subject, cell.job);
        }
    }
}

/// Copied by hand out of the raw logs.
#[test]
fn figures_are_the_logs() {
    let published = figures();
    let cases = [
        ("md", "1", Operation::Write, 10814, 60057),
        ("md", "16", Operation::Read, 9633, 60644),
        ("md", "16", Operation::Write, 4701, 60644),
        ("md", "18", Operation::Read, 65536, 891_347),
        ("md", "28", Operation::Read, 6270, 20243),
        ("gflash", "15", Operation::Read, 22016, 64148),
        ("gflash", "29", Operation::Read, 7936, 23836),
        ("gmirror", "19", Operation::Read, 49152, 52748),
        ("gmirror", "21", Operation::Read, 11264, 68042),
        ("zfs", "1", Operation::Write, 576_766, 60029),
        ("zfs", "24", Operation::Read, 4032, 88005),
    ];
    for (subject, job, op, ios, runtime_ms) in cases {
        let cell = cell(&published, subject, job, op);
        assert_eq!(cell.log, Some(Log { ios, runtime_ms }), "{subject} {job}");
    }
    let zfs = cell(&published, "zfs", "29", Operation::Read);
    assert_eq!(zfs.sync_percent.log, Some(62.22));
    let md = cell(&published, "md", "19", Operation::Read);
    let reads: Vec<u64> = md.members.iter().map(|member| member.read_ios).collect();
    assert_eq!(reads, [32768, 16384]);
}

#[test]
fn every_cell_of_the_suite_has_figures_and_nothing_else_has() {
    let published = figures();
    let suite = Suite::load("mirror-2015").expect("built in");
    let mut wanted = 0;
    for experiment in suite.experiments(&suite.subjects, &Choices::default()) {
        for step in experiment.steps.iter() {
            let PlannedStep::Job(job) = step else {
                continue;
            };
            for op in job.operations() {
                let subject = &experiment.subject.name;
                let cell = cell(&published, subject, &job.name, op);
                assert!(cell.log.is_some() && cell.article_iops.is_some());
                assert!(percent(&published, subject, &job.name).is_some());
                wanted += 1;
            }
        }
    }
    assert_eq!((wanted, published.cells.len()), (120, 120));
}

/// What the disk was fitted on, as the fitting program's facts say, is marked
/// here, with the same counts.
#[test]
fn cells_that_the_disk_was_fitted_on_are_marked() {
    let facts: toml::Table = include_str!("../../../../data/facts/wd4000fyyz.toml")
        .parse()
        .expect("facts");
    let published = figures();
    let mut checked = 0;
    for fact in facts["fact"].as_array().expect("facts") {
        let source = fact["source"].as_str().expect("a source");
        let Some(rest) = source.strip_prefix("test_raid1_md.log, job ") else {
            continue;
        };
        let job = rest.split(':').next().expect("a number");
        let cell = cell(&published, "md", job, Operation::Read);
        let log = cell.log.expect(job);
        assert_eq!(fact["ios"].as_integer(), i64::try_from(log.ios).ok());
        assert_eq!(
            fact["runtime_ms"].as_integer(),
            i64::try_from(log.runtime_ms).ok()
        );
        let sets = fact["sets"].as_array().expect("sets").iter();
        let sets: Vec<&str> = sets.filter_map(toml::Value::as_str).collect();
        assert_eq!(sets, cell.fitted, "{job}");
        checked += 1;
    }
    assert_eq!(checked, 11);
}

/// The article cuts to whole numbers; where it does not agree with the log to
/// less than one it must be marked.
#[test]
fn printed_figures_are_the_logs_cut_or_marked_as_disputed() {
    for cell in figures().cells {
        let (log, article) = (
            cell.log.expect("a log").iops(),
            cell.article_iops.expect("an article"),
        );
        let cut = log >= article && log < article + 1.0;
        let disputed = cell.article_reliability == "disputed";
        assert!(
            cut || disputed,
            "{} {}: {log} {article}",
            cell.subject,
            cell.job
        );
        let other_run =
            cell.subject == "gflash" && cell.job.parse::<u32>().expect("a number") >= 21;
        assert_eq!(disputed, other_run, "{} {}", cell.subject, cell.job);
    }
}

#[test]
fn a_row_gets_its_figures_and_its_role() {
    let published = figures();
    let suite = Suite::load("mirror-2015").expect("built in");
    let choices = Choices {
        fits: vec!["strict".to_owned(), "joint".to_owned()],
        ..Choices::default()
    };
    let roles = |subject: &str, job: &str| -> Vec<Role> {
        let experiments = suite.experiments(&suite.subjects, &choices);
        let own = experiments
            .iter()
            .filter(|experiment| experiment.subject.name == subject);
        own.map(|experiment| {
            let planned = experiment.steps.iter().find_map(|step| match step {
                PlannedStep::Job(planned) if planned.name == job => Some(planned),
                _ => None,
            });
            let mut row = planned
                .expect("a job")
                .row(experiment, "model", Operation::Read);
            published.attach(&mut row);
            assert_eq!(row.published.len(), 2);
            assert_eq!(row.published[0].source, "log");
            row.role
        })
        .collect()
    };
    assert_eq!(roles("md", "6"), [Role::Fitted, Role::Fitted]);
    assert_eq!(roles("md", "9"), [Role::Predicted, Role::Fitted]);
    assert_eq!(roles("gmirror", "9"), [Role::Predicted, Role::Predicted]);
    assert_eq!(roles("gflash", "20"), [Role::Fitted, Role::Fitted]);
    let experiment = &suite.experiments(&suite.subjects, &choices)[2];
    let PlannedStep::Job(first) = &experiment.steps[0] else {
        panic!("a job")
    };
    let mut row = first.row(experiment, "host", Operation::Write);
    row.role = Role::Measured;
    published.attach(&mut row);
    assert_eq!(row.role, Role::Measured);
    assert_eq!(row.published[1].bytes_per_second, Some(179.0 * 4096.0));
}

#[test]
fn accuracy_is_the_first_that_fits() {
    let published = figures();
    let percent = |subject: &str, job: &str| percent(&published, subject, job);
    assert_eq!(percent("md", "9"), Some(8.0));
    assert_eq!(percent("gflash", "9"), Some(9.0));
    assert_eq!(percent("zfs", "9"), Some(30.0));
    assert_eq!(percent("gmirror", "18"), Some(25.0));
    assert_eq!(percent("gmirror", "19"), Some(100.0));
    assert_eq!(percent("md", "99"), None);
}

const SMALL: &str = r#"schema = 1
name = "own"
title = "Own"
source = "here"
disks = ["wd4000fyyz"]

[[class]]
id = "write"
title = "Writes"
jobs = ["1"]
fitted_on = "nothing"
better = "more"
accuracy = [{ percent = 4.0 }]

[[class]]
id = "read"
title = "Reads"
jobs = ["8", "9"]
fitted_on = "nothing"
better = "more"
accuracy = [{ subjects = ["md"], percent = 5.0 }]

[[figures]]
subject = "md"
cell = [
    { job = "1", op = "write", log = { ios = 10, runtime_ms = 60057 }, article = 180 },
    { job = "8", op = "read", article = 180, reliability = "disputed" },
    { job = "9", op = "read", article = 180 },
]
"#;

/// Ticks of centuries are more than 64 bits of nanoseconds hold.
#[test]
fn ticks_without_end_are_kept() {
    let members = "members = [{ reads = 1, writes = 1, read_ticks_ms = 9223372036854775807, \
                   write_ticks_ms = 1 }], article = 180 },";
    let text = SMALL.replacen("article = 180 },", members, 1);
    let file = "figures.toml".to_owned();
    let read = Published::of(&Document { file, text }).expect("sound");
    assert_eq!(read.cells[0].members[0].read_ticks_ns, u64::MAX);
    assert_eq!(read.cells[0].members[0].write_ticks_ns, 1_000_000);
}

/// What is wrong, and the change that makes it so.
const MISTAKES: &str = r#"
class misspelt                   accuracy =                           acuracy =
less is better                   better = "more"                      better = "less"
class twice                      id = "read"                          id = "write"
job in two classes               ["8"                                 ["1", "8"
accuracy of nothing              percent = 4.0                        percent = 0.0
no accuracy                      [{ percent = 4.0 }]                  []
job of no class                  { job = "9"                          { job = "99"
cell twice                       { job = "9"                          { job = "8"
cell without figures             "read", article = 180 }              "read" }
no runtime                       runtime_ms = 60057                   runtime_ms = 0
operation                        op = "write"                         op = "erase"
reliability                      "disputed"                           "doubtful"
accuracy of another class's job  percent = 5.0                        jobs = ["1"], percent = 5.0
no I/O                           ios = 10                             ios = 0
a rate below 0                   "8", op = "read", article = 180      "8", op = "read", article = -180
reliability of nothing printed   runtime_ms = 60057 }, article = 180  runtime_ms = 60057 }, reliability = "rounded"
more than whole                  disputed"                            disputed", sync_percent = { article = 400 }
progress of no figure            disputed"                            disputed", sync_percent = { log = 40 }
"#;

#[test]
fn every_mistake_gets_file_line_field_and_remedy() {
    let mut seen = String::new();
    for [name, from, to] in table(MISTAKES, Some) {
        let document = Document {
            file: "figures.toml".to_owned(),
            text: edited(SMALL, from, to),
        };
        let error = Published::of(&document).expect_err(name);
        let _ = writeln!(seen, "{name}\n    {error}");
    }
    insta::assert_snapshot!(seen);
}
