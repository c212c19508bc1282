//! Every rule of the audit over every suite that the model can run, its jobs cut at
//! six seconds; `quick`, which syncs its arrays twice, on disks of 2 GB. Of `md-held`, whose
//! arrays are synced beside its jobs, each third array is judged, its jobs cut at two seconds.
//! What is found
//! stands in `docs/notes/audit-suites.md`, each finding with a verdict by somebody who
//! knows the system: a finding that nobody has looked at, or one that is no longer found,
//! fails here.
//!
//! `RAIDLAB_WRITE_DOCS=1 cargo test -p raidlab-bench-model --test bench audited_suites::` writes
//! the table anew; the verdicts of findings that there were before stay.

use crate::waits::small_disk;
use raidlab_audit::{Evidence, audit};
use raidlab_bench_model::ModelBench;
use raidlab_lab::built_in;
use raidlab_lab::{Bench, Choices, Experiment, Finish, Observer, PlannedStep, Suite, Work};
use raidlab_store::{CellResult, Measurement, Records, Severity};
use raidlab_units::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// How long a job of this suite runs at most.
fn longest(suite: &str) -> Nanos {
    Nanos::from_secs(if suite == "md-held" { 2 } else { 6 })
}

#[derive(Default)]
struct Kept {
    rows: Vec<Measurement>,
    records: Records,
}

impl Observer for Kept {
    fn record(&mut self, records: Records) {
        self.records.observations.extend(records.observations);
        self.records.events.extend(records.events);
    }
    fn cell(&mut self, result: CellResult) {
        self.record(result.records);
        self.rows.extend(result.rows);
    }
}

fn cut(experiment: &mut Experiment, longest: Nanos) {
    for step in Arc::make_mut(&mut experiment.steps) {
        let PlannedStep::Job(job) = step else {
            continue;
        };
        if let Work::Fio {
            group: Ok(group), ..
        } = &mut job.job.work
        {
            for spec in &mut group.jobs {
                spec.runtime = spec.runtime.map(|runtime| runtime.min(longest));
            }
        }
    }
}

/// What is found: suite, rule, severity in words, subjects, and how often.
type Found = BTreeMap<(String, String, &'static str, String), usize>;

fn judge(suite: &Suite) -> (Vec<Measurement>, Found) {
    let choices = Choices {
        fits: vec!["strict".to_owned()],
        seed: 1,
        ..Choices::default()
    };
    let bench = ModelBench::default();
    let experiments = suite.experiments(&suite.subjects, &choices);
    let first = experiments.into_iter().filter(|one| one.repetition == 0);
    let each = if suite.name == "md-held" { 3 } else { 1 };
    let modelled = first.filter(|one| bench.check(one).is_ok()).step_by(each);
    let runs = thread::scope(|scope| {
        let runs: Vec<_> = modelled
            .map(|mut experiment| {
                scope.spawn(move || {
                    cut(&mut experiment, longest(&suite.name));
                    let mut kept = Kept::default();
                    let finish = ModelBench::default().run(&experiment, &mut kept);
                    assert_eq!(finish.expect("it was checked"), Finish::Complete);
                    kept
                })
            })
            .collect();
        let runs = runs.into_iter().map(|run| run.join().expect("it runs"));
        runs.collect::<Vec<_>>()
    });
    let mut all = Kept::default();
    for mut run in runs {
        all.rows.append(&mut run.rows);
        all.record(run.records);
    }
    let audit = audit(&Evidence::new(&all.rows, &all.records));
    let mut subjects: BTreeMap<(String, &'static str), (BTreeSet<String>, usize)> = BTreeMap::new();
    for finding in audit.findings {
        let severity = match finding.severity {
            Severity::Fatal => "fatal",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let entry = subjects.entry((finding.rule, severity)).or_default();
        let subject = match finding.scope.subject {
            whole if whole.is_empty() => "all".to_owned(),
            subject => subject,
        };
        entry.0.insert(subject);
        entry.1 += 1;
    }
    let found = subjects.into_iter().map(|((rule, severity), (of, count))| {
        let of: Vec<String> = of.into_iter().collect();
        ((suite.name.clone(), rule, severity, of.join(", ")), count)
    });
    (all.rows, found.collect())
}

/// The verdicts in the document, by the cells before the last.
fn verdicts(document: &str) -> BTreeMap<String, String> {
    let rows = document.lines().filter(|line| line.starts_with("| `"));
    rows.filter_map(|line| {
        let (found, verdict) = line.trim_end_matches(" |").rsplit_once(" | ")?;
        // The count may change with the model; what is found does not.
        let (key, _) = found.rsplit_once(" | ")?;
        Some((key.to_owned(), verdict.to_owned()))
    })
    .collect()
}

#[test]
fn every_finding_in_the_model_s_suites_has_been_looked_at() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/notes/audit-suites.md");
    let document = std::fs::read_to_string(&path).expect("the document");
    let known = verdicts(&document);
    let mut table = String::new();
    let mut unseen = Vec::new();
    let folder = tempfile::tempdir().expect("a folder");
    let small = folder.path().join("small.toml");
    std::fs::write(&small, small_disk(2)).expect("a file");
    for mut suite in built_in::suites().expect("built in") {
        if suite.name == "quick" {
            let small = small.to_string_lossy().into_owned();
            suite.use_disks(vec![small; suite.disks.len()]);
        }
        let (rows, found) = judge(&suite);
        for ((suite, rule, severity, subjects), count) in found {
            let key = format!("| `{suite}` | {rule} | {severity} | {subjects}");
            let verdict = known.get(&key).map_or("?", String::as_str);
            if verdict == "?" {
                unseen.push(format!("{key} ({count})"));
            }
            table += &format!("{key} | {count} | {verdict} |\n");
        }
        // A suite of which nothing can be modelled has no rows.
        assert!(rows.iter().all(|row| row.suite == suite.name));
    }
    let heading = "|---|---|---|---|---|---|\n";
    let (before, rest) = document.split_once(heading).expect("a table");
    let after = rest.find("\n\n").map_or("", |end| &rest[end + 1..]);
    let renewed = format!("{before}{heading}{table}{after}");
    if std::env::var_os("RAIDLAB_WRITE_DOCS").is_some() {
        std::fs::write(&path, &renewed).expect("the document");
    }
    assert!(unseen.is_empty(), "nobody has looked at {unseen:#?}");
    // Counts may change with the model; what is found may not.
    let found = verdicts(&table);
    let gone: Vec<&String> = known
        .keys()
        .filter(|key| !found.contains_key(*key))
        .collect();
    assert!(gone.is_empty(), "no longer found: {gone:#?}");
}

/// Options that the model obeys are among what it tells the audit: which blocks are drawn, and that
/// a job ends when the depth for its latency is found.
#[test]
fn the_audit_knows_what_draws_blocks_and_what_ends_a_job() {
    let job = |name: &str, words: &str| {
        format!(
            "[[step]]\njob = \"{name}\"\ntitle = \"{name}\"\nclass = \"reads\"\nfio = \"--rw=randread \
             --bs=4k --iodepth=16 --time_based --direct=1 --norandommap {words}\"\n"
        )
    };
    let head = "schema = 1\nname = \"told\"\ntitle = \"Told\"\ndescription = \"Reads.\"\n\
                source = \"our own\"\ndisks = [\"wd4000fyyz\", \"wd4000fyyz\"]\n\
                subjects = [\"md-raid1-clean\"]\n";
    let target = "--latency_target=500ms --latency_window=500ms --latency_percentile=90";
    let jobs = [
        job("uniform", "--runtime=3"),
        job("zipf", "--runtime=3 --random_distribution=zipf:1.2"),
        job("pareto", "--runtime=3 --random_distribution=pareto:0.2"),
        job(
            "target",
            &format!("--runtime=6 --randseed=1 --randrepeat=0 {target}"),
        ),
    ];
    let suite = Suite::parse(
        "told.toml",
        &format!("{head}{}", jobs.concat()),
        Path::new(""),
    );
    let (rows, found) = judge(&suite.expect("a suite"));
    let last = rows.iter().find(|row| row.job == "target").expect("a row");
    assert!(last.runtime_ns < 5_000_000_000, "{last:?}");
    let rules: Vec<_> = found.keys().map(|(_, rule, ..)| rule.as_str()).collect();
    assert!(
        !rules.contains(&"T4") && !rules.contains(&"T6"),
        "{found:?}"
    );
}
