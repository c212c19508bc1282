use super::*;
use crate::edited::edited;
use crate::suite::Suite;
use raidlab_units::table;
use std::collections::BTreeSet;

const FILE: &str = r#"
schema = 1
name = "own"
title = "Own"
source = "here"
suites = ["s"]
commands = ["raidlab run s"]

[[claim]]
id = "A"
says = "striped is faster than both together"
tests = [{ of = "both j read", to = ["one j read", "two j read"], at_least = 1.0 }]

[[claim]]
id = "B"
says = "as fast in both jobs"
jobs = ["j", "k"]
tests = [{ of = "one {job} read", to = ["two {job} read"], at_least = 0.9, at_most = 1.1 }]

[[claim]]
id = "C"
says = "nobody has measured this"
tests = [{ of = "one/xfs j read", to = ["two/xfs j read"], at_least = 1.0 }]

[[claim]]
id = "D"
says = "blue is nicer"
untestable = "raidlab has no taste"
"#;

fn claims(text: &str) -> Result<Claims, FileError> {
    let (file, text) = ("own.toml".to_owned(), text.to_owned());
    Claims::read(&Document { file, text })
}

fn row(subject: &str, job: &str, megabytes: f64) -> Measurement {
    Measurement {
        suite: "s".to_owned(),
        subject: subject.to_owned(),
        job: job.to_owned(),
        op: Operation::Read,
        block_size_bytes: 1 << 20,
        bytes_per_second: megabytes * 1e6,
        ..Measurement::blank("kernel")
    }
}

#[test]
fn verdicts_are_of_the_newest_rows() {
    let claims = claims(FILE).expect("valid");
    let newest = vec![
        row("one", "j", 40.0),
        row("two", "j", 60.0),
        row("both", "j", 89.0),
        // A second repetition: 91 on average.
        row("both", "j", 93.0),
    ];
    let older = vec![
        row("both", "j", 400.0),
        row("one", "k", 52.0),
        row("two", "k", 50.0),
    ];
    let judged = claims.judge(&[newest, older]);
    let verdicts: Vec<Verdict> = judged.iter().map(|one| one.verdict).collect();
    use Verdict::{InPart, NotReproduced, NotRun, NotTestable};
    let in_part = InPart { holds: 1, of: 2 };
    assert_eq!(verdicts, [NotReproduced, in_part, NotRun, NotTestable]);
    assert!((judged[0].outcomes[0].ratio - 0.91).abs() < 1e-9);
    assert_eq!(
        judged[0].outcomes[0].words,
        "j read: both 91.0 ± 2.0 MB/s : one 40.0 MB/s + two 60.0 MB/s"
    );
    assert_eq!(judged[3].claim.reason(), "raidlab has no taste");
}

#[test]
fn a_verdict_that_rests_on_struck_rows_is_marked() {
    let claims = claims(FILE).expect("valid");
    let rows = || {
        vec![
            row("one", "j", 40.0),
            row("two", "j", 60.0),
            row("both", "j", 99.0),
        ]
    };
    let marks = |kept: Vec<Measurement>| {
        let judged = claims.judge_audited(&[rows()], &[kept]);
        judged.iter().any(|one| one.rests_on_struck)
    };
    assert!(!marks(rows()));
    assert!(marks(rows()[..2].to_vec()));
}

#[test]
fn a_comparison_is_close_where_other_repetitions_would_have_turned_it() {
    let claims = claims(FILE).expect("valid");
    let judge = |first: f64, second: f64, other: f64| {
        let rows = vec![
            row("both", "j", first),
            row("both", "j", second),
            row("one", "j", other),
            row("one", "j", 40.0),
            row("two", "j", 60.0),
        ];
        let outcome = claims.judge(&[rows])[0].outcomes[0].clone();
        (outcome.holds, outcome.is_close)
    };
    assert_eq!(judge(95.0, 107.0, 40.0), (true, true));
    assert_eq!(judge(93.0, 105.0, 40.0), (false, true));
    assert_eq!(judge(101.0, 107.0, 40.0), (true, false));
    assert_eq!(judge(93.0, 99.0, 40.0), (false, false));
    // What it is compared with lies apart too: 38 and 2 of 36 to 40, and 60.
    assert_eq!(judge(99.0, 99.0, 36.0), (true, true));
    assert_eq!(judge(110.0, 110.0, 36.0), (true, false));
}

/// Three repetitions alike and one far off: the mean has half of the range on one side only.
#[test]
fn what_other_repetitions_would_have_said_is_asked_of_the_rows_themselves() {
    let claims = claims(&FILE.replace("at_least = 1.0", "at_most = 1.5")).expect("valid");
    let both = [100.0, 100.0, 100.0, 160.0].map(|rate| row("both", "j", rate));
    let others = [row("one", "j", 40.0), row("two", "j", 60.0)];
    let rows = both.into_iter().chain(others).collect();
    let outcome = claims.judge(&[rows])[0].outcomes[0].clone();
    assert!((outcome.ratio - 1.15).abs() < 1e-9, "{}", outcome.ratio);
    assert!(outcome.is_close, "one of them gave 1.6");
}

/// A test that names none of the jobs counts once, however many there are.
#[test]
fn a_test_of_no_job_is_done_once() {
    let more = "tests = [{ of = \"one j read\", to = [\"two j read\"], at_most = 9.0 }, \
                { of = \"one {job}";
    let claims = claims(&FILE.replace("tests = [{ of = \"one {job}", more)).expect("valid");
    assert_eq!(claims.claims[1].tests.len(), 3);
}

/// What one half of a claim says is not the whole of it.
#[test]
fn a_test_without_rows_leaves_a_claim_open() {
    let claims = claims(FILE).expect("valid");
    let judged = claims.judge(&[vec![row("one", "j", 60.0), row("two", "j", 60.0)]]);
    assert_eq!(judged[1].verdict, Verdict::InPart { holds: 1, of: 2 });
    assert_eq!((judged[1].outcomes.len(), judged[1].not_run), (1, 1));
}

/// A row of a recovery whose size nobody knows has no rate, and one that iozone did not
/// run has none either.
#[test]
fn rows_without_the_figure_are_no_rows() {
    let claims = claims(FILE).expect("valid");
    let rows = |both: &[f64]| {
        let both = both.iter().map(|rate| row("both", "j", *rate));
        let others = [row("one", "j", 40.0), row("two", "j", 60.0)];
        vec![both.chain(others).collect::<Vec<_>>()]
    };
    assert_eq!(claims.judge(&rows(&[0.0]))[0].verdict, Verdict::NotRun);
    let judged = claims.judge(&rows(&[0.0, 120.0]));
    assert!((judged[0].outcomes[0].ratio - 1.2).abs() < 1e-9);
}

#[test]
fn blocks_of_different_sizes_are_compared_by_bytes() {
    let claims = claims(FILE).expect("valid");
    let small = Measurement {
        block_size_bytes: 4096,
        iops: 10_000.0,
        ..row("both", "j", 40.96)
    };
    let rows = vec![small, row("one", "j", 20.0), row("two", "j", 20.0)];
    let judged = claims.judge(&[rows]);
    assert_eq!(judged[0].verdict, Verdict::Reproduced);
    assert!((judged[0].outcomes[0].ratio - 1.024).abs() < 1e-9);
}

#[test]
fn claims_speak_of_rebuilds() {
    let recovery = |subject: &str, seconds: u64, percent: f64| Measurement {
        op: Operation::Recovery,
        job: "background".to_owned(),
        runtime_ns: seconds * 1_000_000_000,
        sync_percent_end: Some(percent),
        iops: 0.0,
        ..row(subject, "background", 100.0)
    };
    let text = |cell: &str| FILE.replace(" j read", &format!(" background {cell}"));
    let of = |cell: &str, percent: f64| {
        let claims = claims(&text(cell)).expect("valid");
        let rows = [("both", 200), ("one", 100), ("two", 100)];
        let rows = rows.map(|(subject, seconds)| recovery(subject, seconds, percent));
        let judged = claims.judge(&[rows.to_vec()]);
        let outcome = judged[0].outcomes.first();
        (
            judged[0].verdict,
            outcome.map(|outcome| outcome.words.clone()),
        )
    };
    let words = |words: &str| Some(words.to_owned());
    assert_eq!(
        of("recovery", 100.0),
        (
            Verdict::Reproduced,
            words("background recovery: both 200 s : one 100 s + two 100 s")
        )
    );
    assert_eq!(
        of("recovery rate", 100.0).1,
        words("background recovery: both 100 MB/s : one 100 MB/s + two 100 MB/s")
    );
    // Nobody knows how long it would have taken.
    assert_eq!(of("recovery", 40.0), (Verdict::NotRun, None));
}

/// md makes a RAID 5 by a recovery, which is no repetition of a later one.
#[test]
fn the_recovery_that_makes_an_array_is_no_rebuild() {
    let claims = claims(&FILE.replace(" j read", " background degraded")).expect("valid");
    let degraded = |subject: &str, part: &str, seconds: u64| Measurement {
        op: Operation::Degraded,
        part: part.to_owned(),
        runtime_ns: seconds * 1_000_000_000,
        array_state_end: "[UUU]".to_owned(),
        ..row(subject, "background", 0.0)
    };
    let rows = vec![
        degraded("both", "first", 100),
        degraded("both", "", 300),
        degraded("one", "", 100),
        degraded("two", "", 100),
    ];
    let judged = claims.judge(&[rows]);
    let outcome = &judged[0].outcomes[0];
    assert_eq!((outcome.ratio, outcome.is_close), (1.5, false));
    let made = ["both", "one", "two"].map(|subject| degraded(subject, "first", 100));
    assert_eq!(claims.judge(&[made.to_vec()])[0].verdict, Verdict::NotRun);
}

/// What is said of a mistake, and the change that makes it.
const MISTAKES: &str = r#"
twice                id = "B"                             id = "A"
tested or it is not  untestable = "raidlab has no taste"  NOTHING
two to four words    both j read"                         both"
two to four words    both j read"                         both j read fast"
several operations   both j read"                         both background"
did you mean `read`  both j read"                         both j raed"
nothing can hold     at_least = 0.9                       at_least = 9
anything would hold  at_least = 0.9, at_most = 1.1        at_least = 0.0
takes the place      jobs = ["j", "k"]                    NOTHING
no test is of        one {job} read", to = ["two {job}    one j read", to = ["two j
did you mean `says`  says = "blue                         say = "blue
"#;

#[test]
fn mistakes_are_refused_with_their_lines() {
    for [expected, from, to] in table(MISTAKES, Some) {
        let error = claims(&edited(FILE, from, to)).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.line > 1, "{error}");
    }
}

/// Every cell that a built-in claim names is one of its suites.
#[test]
fn built_in_claims_name_cells_that_there_are() {
    for entry in Kind::Claims.entries() {
        let claims = Claims::load(entry.name).expect(entry.name);
        assert_eq!(claims.name, entry.name);
        let suites = claims
            .suites
            .iter()
            .map(|name| Suite::load(name).expect("a suite"));
        let mut cells = BTreeSet::new();
        for suite in suites {
            for subject in &suite.subjects {
                for job in suite.jobs() {
                    cells.insert((subject.name.clone(), job.name.clone()));
                }
            }
        }
        let tests = claims.claims.iter().flat_map(|claim| &claim.tests);
        for cell in tests.flat_map(|test| test.to.iter().chain([&test.of])) {
            let known = cells.contains(&(cell.subject.clone(), cell.job.clone()));
            assert!(known, "{}: {cell:?}", claims.name);
            let operation = cell.operation.as_ref();
            assert!(operation.is_none_or(|name| name.parse::<Operation>().is_ok()));
        }
    }
}

/// The rows of a parameter set that only widens the band are no repetitions.
#[test]
fn of_several_parameter_sets_one_is_judged() {
    let claims = claims(FILE).expect("valid");
    let of = |fit: &str, megabytes| Measurement {
        fit: fit.to_owned(),
        ..row("one", "j", megabytes)
    };
    let rows = vec![
        of("joint", 40.0),
        of("strict", 96.0),
        row("two", "j", 100.0),
    ];
    let judged = claims.judge(&[rows]);
    let outcome = &judged[1].outcomes[0];
    assert_eq!((outcome.ratio, outcome.is_close), (0.96, false));
}
