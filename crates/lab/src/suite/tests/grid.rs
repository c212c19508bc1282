//! Suites that describe more than a run takes: draws, and steps for some subjects.

use super::{JOB, parse};
use crate::catalogue::LoadError;
use crate::edited::edited;
use crate::experiment::{Choices, Experiment, PlannedStep};
use crate::files::Files;
use crate::subject::Subject;
use crate::suite::{Begin, Suite};
use raidlab_systems::array::md::MdSpec;
use raidlab_systems::{ArraySpec, Member};
use raidlab_units::{Bytes, Nanos, table};
use std::collections::BTreeSet;
use std::fmt::Write;

const GRID: &str = r#"schema = 1
name = "grid"
title = "Grid"
description = "A test."
source = "here"
disks = ["a", "b", "c", "d", "e"]

[[subjects]]
subject = "md-raid5-clean"
name = "raid5-{members}-{chunk}-{state}"
members = "{members}"
build = { chunk = "{chunk}", stripe_cache_size = "{stripes}" }
matrix = { state = ["whole", "degraded"], members = [3, 4, 5], chunk = ["16k", "64k", "512k"], stripes = [512] }
draw = 4

[[subjects]]
subject = "md-raid1-clean"
name = "raid1-{state}"
members = 2
matrix = { state = ["whole", "degraded"] }

[[step]]
event = "remove"
member = 1
for = { state = "degraded" }

[[step]]
matrix = { state = ["whole", "degraded"], bs = ["4k", "8k", "64k"], depth = [1, 2, 4, 8] }
for = { state = "{state}" }
draw = 3
job = "{state}-{bs}-{depth}"
title = "read {bs}"
class = "{state}"
fio = "--rw=randread --bs={bs} --iodepth={depth} --runtime=10"

[[step]]
job = "last"
title = "read"
class = "all"
fio = "--rw=read --bs=1m --runtime=10"
"#;

fn draw(text: &str, number: u64) -> Suite {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("grid.toml");
    std::fs::write(&path, text).expect("written");
    let path = path.to_str().expect("utf-8");
    Suite::load_draw(&Files::default(), path, number).expect("valid")
}

fn experiments(suite: &Suite) -> Vec<Experiment> {
    suite.experiments(&suite.subjects, &Choices::default())
}

/// Every array with its jobs.
fn cells(suite: &Suite) -> BTreeSet<(String, String)> {
    let jobs = |one: &Experiment| {
        let own = one.subject.name.clone();
        let jobs = one.jobs().map(move |job| (own.clone(), job.name.clone()));
        jobs.collect::<Vec<_>>()
    };
    experiments(suite).iter().flat_map(jobs).collect()
}

fn md(subject: &Subject) -> &MdSpec {
    match &subject.build {
        Some(ArraySpec::Md(spec)) => spec,
        other => panic!("{other:?}"),
    }
}

/// A suite of one disk that is a subject twice, with either value of a setting.
fn disks_with(setting: &str, values: [&str; 2]) -> Result<Suite, LoadError> {
    parse(&format!(
        "schema = 1\nname = \"s\"\ntitle = \"S\"\ndescription = \"A test.\"\nsource = \"here\"\n\
         disks = [\"a\"]\n[[subjects]]\nsubject = \"disk\"\nname = \"disk-{{it}}\"\n\
         {setting} = \"{{it}}\"\nmatrix = {{ it = {values:?} }}\n{JOB}"
    ))
}

#[test]
fn a_suite_gives_its_subjects_schedulers() {
    let suite = |value: &str| disks_with("scheduler", ["none", value]);
    let found = suite("kyber").expect("a suite");
    let all = found.experiments(&found.subjects, &Choices::default());
    let said = all.iter().map(|one| {
        let own = one.subject.queue_settings().next();
        let own = own.map(|it| (it.value.as_str(), it.source.as_str()));
        (
            one.subject.name.as_str(),
            one.subject.scheduler.as_deref(),
            own,
        )
    });
    let expected = [("disk-none", "none"), ("disk-kyber", "kyber")]
        .map(|(name, value)| (name, Some(value), Some((value, "suite s"))));
    assert_eq!(said.collect::<Vec<_>>(), expected);
    assert!(
        all[1].plan().contains("scheduler  kyber"),
        "{}",
        all[1].plan()
    );
    let error = suite("kybr").expect_err("there is none").to_string();
    assert!(error.contains("kybr") && error.contains("kyber"), "{error}");
}

#[test]
fn a_suite_says_for_which_reads_writes_are_held_back() {
    let suite = |value: &str| disks_with("write_throttling", ["off", value]);
    let found = suite("75ms").expect("a suite");
    let all = found.experiments(&found.subjects, &Choices::default());
    let latencies = all.iter().map(|one| one.subject.write_throttling);
    let expected = [Nanos::ZERO, Nanos::from_millis(75)].map(Some);
    assert_eq!(latencies.collect::<Vec<_>>(), expected);
    let (off, on) = (all[0].plan(), all[1].plan());
    assert!(off.contains("writes     not held back"), "{off}");
    assert!(
        on.contains("writes     held back for reads over 75ms"),
        "{on}"
    );
    for (wrong, why) in [
        ("500ns", "no whole number of microseconds"),
        ("75000", "`75000` has no unit"),
        ("soon", "write a time, as `75ms`, or `off`"),
    ] {
        let error = suite(wrong).expect_err(wrong).to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_draw_takes_as_many_as_it_says_and_each_number_others() {
    let first = draw(GRID, 7);
    assert_eq!(
        (first.draw, first.title.as_str()),
        (Some(7), "Grid, draw 7")
    );
    assert_eq!(first.subjects.len(), 4 + 2);
    let mut again = draw(GRID, 7);
    // Each is read from a file of its own.
    again.places.clone_from(&first.places);
    assert_eq!(first, again);
    for experiment in experiments(&first) {
        let jobs: Vec<_> = experiment.jobs().map(|job| job.name.as_str()).collect();
        assert_eq!(jobs.len(), 3 + 1, "{jobs:?}");
        let state = experiment.subject.name.rsplit('-').next().expect("a state");
        assert!(
            jobs[..3].iter().all(|job| job.starts_with(state)),
            "{jobs:?}"
        );
        let events = experiment.steps.iter();
        let events = events
            .filter(|step| matches!(step, PlannedStep::Event(_)))
            .count();
        assert_eq!(events, usize::from(state == "degraded"));
        assert_eq!(experiment.left_out, 0);
    }
    let draws: BTreeSet<_> = (0..40).map(|number| cells(&draw(GRID, number))).collect();
    assert_eq!(draws.len(), 40);
    // Of 18 and 2 arrays with 12 jobs and the last one each.
    let all: BTreeSet<_> = draws.into_iter().flatten().collect();
    assert!((200..=20 * 13).contains(&all.len()), "{}", all.len());
    let arrays: BTreeSet<_> = all.iter().map(|(array, _)| array).collect();
    assert_eq!(arrays.len(), 20, "some array is never drawn");
}

#[test]
fn a_job_is_the_same_one_in_every_draw_and_for_every_subject() {
    let known = draw(GRID, 0);
    let known: Vec<String> = known.jobs().map(|job| job.name.clone()).collect();
    for number in 1..5 {
        for experiment in experiments(&draw(GRID, number)) {
            for job in experiment.jobs() {
                assert_eq!(known[job.sequence as usize], job.name);
            }
        }
    }
}

#[test]
fn one_more_entry_changes_nothing_of_what_the_others_draw() {
    let more = GRID.replacen(
        "[[subjects]]",
        "[[subjects]]\nsubject = \"md-raid6-clean\"\nname = \"raid6-{members}\"\nmembers = \"{members}\"\n\
         matrix = { state = [\"whole\"], members = [4, 5] }\ndraw = 1\n\n[[subjects]]",
        1,
    );
    let before = cells(&draw(GRID, 3));
    let after = cells(&draw(&more, 3));
    assert!(before.is_subset(&after));
    assert_eq!(after.len(), before.len() + 4);
}

#[test]
fn what_is_built_is_as_the_combination_says() {
    for subject in &draw(GRID, 2).subjects[..4] {
        let words: Vec<&str> = subject.name.split('-').collect();
        let spec = md(subject);
        let chunk = raidlab_units::parse_bytes(words[2]).expect("a size");
        assert_eq!(
            (spec.chunk, spec.stripe_cache_size),
            (Some(chunk), Some(512))
        );
        assert!(spec.assume_clean, "the subject's own");
        let members = words[1].parse().expect("a number");
        assert_eq!(subject.members, Some((0..members).collect()));
        let chunk = subject
            .settings
            .iter()
            .find(|one| one.name == "build.md.chunk");
        let chunk = chunk.expect("a setting");
        assert_eq!(
            (chunk.value.as_str(), chunk.source.as_str()),
            (words[2], "suite grid")
        );
    }
}

/// The changes that are mistakes.
const MISTAKES: &str = r#"
for = { state = "degraded" }                for = { stat = "degraded" }
for = { state = "degraded" }                for = { state = ["whole", "broken"] }
draw = 3                                    draw = 0
draw = 3                                    draw = 99
draw = 4                                    draw = 19
members = 2\n                               members = 6\n
members = 2\n                               members = 2\ndraw = 1\nbuild = { chunk = 3 }\n
members = 2\n                               members = 2\nbuild = { chunks = "4k" }\n
chunk = "{chunk}"                           chunk = "{chunk}k"
-{chunk}-{state}                            -{state}
matrix = { state = ["whole", "degraded"] }  matrix = { state = ["whole/ext4", "degraded"] }
member = 1                                  member = 2
job = "last"\n                              job = "last"\ndraw = 1\n
job = "last"\n                              job = "last"\nround = "r"\nfor = { state = "whole" }\n
"#;

#[test]
fn mistakes_of_a_grid_are_told_at_their_places() {
    let plain = format!("{}{JOB}", super::HEAD);
    let mut seen = String::new();
    for [from, to] in table(MISTAKES, Some) {
        let [from, to] = [from, to].map(|text| text.replace("\\n", "\n"));
        let found = match parse(&edited(GRID, &from, &to)) {
            Ok(_) => "nothing is wrong".to_owned(),
            Err(error) => error.to_string(),
        };
        let _ = writeln!(seen, "{from} -> {to}\n    {found}");
    }
    assert_eq!(parse(&plain).expect("valid").draw, None);
    insta::assert_snapshot!(seen);
}

#[test]
fn every_draw_of_cells_held_back_can_be_built_and_is_large_enough() {
    let files = Files::default();
    let mut all = BTreeSet::new();
    for number in 0..6 {
        let suite = Suite::load_draw(&files, "md-held", number).expect("built in");
        assert_eq!(suite.begin, Begin::AsCreated);
        let members: Vec<Member> = (0..suite.disks.len())
            .map(|disk| Member {
                device: format!("/dev/disk{disk}"),
                size: Bytes(4_000_787_030_016),
                backing: None,
                away: false,
            })
            .collect();
        for subject in &suite.subjects {
            let checked = subject
                .build
                .as_ref()
                .expect("md")
                .check(&subject.choose(&members));
            assert!(checked.is_ok(), "{}: {checked:?}", subject.name);
        }
        let drawn = cells(&suite);
        assert!(drawn.len() >= 300, "{}", drawn.len());
        all.extend(drawn);
    }
    assert!(all.len() > 1500, "{}", all.len());
}
