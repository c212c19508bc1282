//! The shipped facts, the shipped sets against them, and fits with a known
//! answer.

use raidlab_disk::{DiskParameters, Preset};
use raidlab_fit::{Facts, FitError, FitOutcome, check, fit};
use std::cell::Cell;

const SHIPPED: &str = include_str!("../../../../data/facts/wd4000fyyz.toml");

fn shipped() -> Facts {
    Facts::parse("facts/wd4000fyyz.toml", SHIPPED).expect("the shipped facts are valid")
}

fn parameters(set: &str) -> DiskParameters {
    let text = include_str!("../../../../data/disks/wd4000fyyz.toml");
    Preset::parse("wd4000fyyz.toml", text)
        .expect("the shipped preset is valid")
        .parameters(set)
        .expect("a shipped set")
        .clone()
}

#[test]
fn the_shipped_facts_are_what_the_documentation_says() {
    let facts = shipped();
    assert_eq!(
        (facts.disk.as_str(), facts.sets()),
        ("wd4000fyyz", vec!["joint".to_owned(), "strict".to_owned()])
    );
    // Nothing that an array did is in the strict set.
    for fact in &facts.facts {
        let strict = fact.sets.iter().any(|set| set == "strict");
        assert_eq!(strict, fact.subject.is_none(), "{}", fact.id);
        assert!(!fact.source.is_empty() && fact.iops > 0.0, "{}", fact.id);
    }
    // Issued over run time: 262144 in 1522.774 s.
    assert_eq!(facts.facts[0].iops.round(), 172.0);
}

#[test]
fn the_strict_set_is_within_three_percent_of_its_facts() {
    let facts = shipped();
    let rows = check(&facts, "strict", &parameters("strict"), 20, 1).expect("simulates");
    assert_eq!(rows.len(), facts.facts.len() + facts.priors.len());
    let used: Vec<_> = rows
        .iter()
        .filter(|row| row.used && row.unit == "iops")
        .collect();
    assert_eq!(used.len(), 9);
    for row in used {
        let error = (row.fitted / row.measured - 1.0) * 100.0;
        assert_eq!(row.error_percent, error);
        assert!(error.abs() <= 3.0, "{}: {error:+.2} %", row.id);
    }
    // The prior is held within its tolerance.
    let prior = rows.last().expect("a prior");
    assert!(prior.unit == "ms" && prior.error_percent.abs() <= 10.0);
}

/// Facts that the simulator itself produced with known parameters.
fn synthetic(truth: &DiskParameters, seconds: u64, seed: u64) -> Facts {
    const FACTS: &str = r#"
schema = 1
disk = "known"
[[free]]
parameter = "seek_settle_ms"
start = 1.3
range = [0.2, 2.0]
[[free]]
parameter = "overhead_idle_ms"
start = 0.6
range = [0.0, 1.0]
[[fact]]
id = "near"
title = "short seeks: settle and overhead"
fio = ["--ioengine=libaio --rw=randread --bs=4k --iodepth=1 --filesize=1g --norandommap"]
turnaround_us = 59
op = "read"
ios = 1
runtime_ms = 1
sets = ["known"]
source = "the simulator"
[[fact]]
id = "deep"
title = "a deep queue: settle, overhead hidden"
fio = ["--ioengine=libaio --rw=randread --bs=4k --iodepth=32 --filesize=8g --norandommap"]
turnaround_us = 59
op = "read"
ios = 1
runtime_ms = 1
sets = ["known"]
source = "the simulator"
"#;
    let mut facts = Facts::parse("known.toml", FACTS).expect("valid");
    let rows = check(&facts, "known", truth, seconds, seed).expect("simulates");
    for (fact, row) in facts.facts.iter_mut().zip(&rows) {
        fact.iops = row.fitted;
    }
    facts
}

fn fit_known(facts: &Facts, base: &DiskParameters) -> FitOutcome {
    fit(facts, "known", base, 10, 1, &|_| {}).expect("fits")
}

#[test]
fn a_fit_finds_the_parameters_that_made_the_facts() {
    let truth = parameters("strict");
    let facts = synthetic(&truth, 10, 1);
    // The base knows nothing of them: both are set from the first step on.
    let outcome = fit_known(&facts, &parameters("joint").clone());
    assert_eq!(outcome.parameters.len(), 2);
    assert!(outcome.evaluations > 50);
    for row in &outcome.rows {
        assert!(row.error_percent.abs() < 2.0, "{row:?}");
    }
}

#[test]
fn known_parameters_come_back() {
    let truth = parameters("strict");
    let facts = synthetic(&truth, 10, 1);
    let last = Cell::new(None);
    let outcome = fit(&facts, "known", &truth, 10, 1, &|progress| {
        last.set(Some(progress));
    })
    .expect("fits");
    let found = |name: &str| {
        let entry = outcome.parameters.iter().find(|entry| entry.0 == name);
        entry.expect("it was free").1
    };
    let platters = truth.medium.platters().expect("it has platters");
    let settle = platters.seek.settle_ns / 1e6;
    let error = found("seek_settle_ms") / settle - 1.0;
    assert!(error.abs() < 0.05, "settle {:+.1} %", error * 100.0);
    let overhead = platters.overhead_idle.as_secs_f64() * 1e3;
    let error = found("overhead_idle_ms") / overhead - 1.0;
    assert!(error.abs() < 0.1, "overhead {:+.1} %", error * 100.0);
    assert!(outcome.cost < 0.5, "{}", outcome.cost);
    // Progress was told to the end, with the cost that was reached.
    let last = last.get().expect("progress");
    assert_eq!(last.evaluations, outcome.evaluations);
    assert!(last.best <= outcome.cost + 0.5);
    assert_eq!(outcome.at_ends, [""; 0]);
    // Again: the same to the last digit.
    assert_eq!(fit_known(&facts, &truth), outcome);
}

/// A range that does not hold what made the facts ends the search at its end, which is said.
#[test]
fn an_end_of_a_range_is_named() {
    let truth = parameters("strict");
    let mut facts = synthetic(&truth, 20, 1);
    facts.free.truncate(1);
    facts.free[0].range = [1.2, 12.0];
    facts.free[0].start = 3.0;
    let outcome = fit(&facts, "known", &truth, 20, 1, &|_| {}).expect("fits");
    assert_eq!(outcome.at_ends, ["seek_settle_ms"]);
    let (_, settle) = outcome.parameters[0];
    assert!((1.2..1.308).contains(&settle), "{settle}");
}

#[test]
fn a_set_without_facts_is_refused() {
    let error =
        fit(&shipped(), "loose", &parameters("strict"), 1, 1, &|_| {}).expect_err("no such set");
    assert!(matches!(error, FitError::NoFacts { .. }));
    insta::assert_snapshot!(error, @"no fact belongs to set `loose`; there are: joint, strict");
}

/// Ends of ranges that no disk has, and parameters that this one has not, are refused before
/// anything is simulated.
#[test]
fn a_range_beyond_all_disks_is_refused() {
    let base = parameters("strict");
    let refused = |parameter: &str, range: [f64; 2], base: &DiskParameters| {
        let mut facts = shipped();
        facts.free[0].parameter = parameter.to_owned();
        facts.free[0].start = range[0];
        facts.free[0].range = range;
        fit(&facts, "strict", base, 1, 1, &|_| {}).expect_err("no such disk")
    };
    let turn = refused("revolution_us", [8333.0, 1e9], &base);
    insta::assert_snapshot!(turn, @"`revolution_us` cannot be 1000000000");
    let text = include_str!("../../../../data/disks/pm9a3.toml");
    let flash = Preset::parse("pm9a3.toml", text).expect("it is valid");
    let flash = flash.parameters("rated").expect("its only set");
    let settle = refused("seek_settle_ms", [0.5, 1.0], flash);
    insta::assert_snapshot!(settle, @"`seek_settle_ms` cannot be fitted: this disk has no such parameter");
}

#[test]
fn a_fact_that_cannot_be_simulated_is_named() {
    let mut facts = shipped();
    facts.facts[0].subject = Some("md-9".to_owned());
    let error = check(&facts, "strict", &parameters("strict"), 1, 1).expect_err("no such policy");
    insta::assert_snapshot!(error, @"fact `read-8g-qd1-linux` names an unknown subject");
    let mut facts = shipped();
    facts.facts[1].jobs[0].offset = raidlab_units::Bytes(1 << 50);
    let error = check(&facts, "strict", &parameters("strict"), 1, 1).expect_err("no such place");
    insta::assert_snapshot!(error, @"fact `read-8g-qd1-freebsd` cannot be simulated");
    let mut facts = shipped();
    // Its other job ends both.
    facts.facts[8].jobs[0].start_delay = raidlab_units::Nanos::from_secs(9);
    let error = check(&facts, "strict", &parameters("strict"), 1, 1).expect_err("it never begins");
    insta::assert_snapshot!(error, @"the first job of fact `read-3t-qd32-resync` does nothing within 1 s: simulate it for longer");
}
