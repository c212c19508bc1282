//! What suites say for real machines: tools, file systems, matrices, rounds,
//! waits for a state, events within a job, subjects on some of the disks.

mod broken;

use super::{HEAD, JOB, parse};
use crate::catalogue::LoadError;
use crate::suite::{Condition, EventKind, Step, Suite, Wait, When, Work};
use proptest::prelude::*;
use raidlab_units::Nanos;
use std::fmt::Write;

const REAL: &str = r#"schema = 1
name = "real"
title = "Real"
description = "A test."
source = "here"
disks = ["wd4000fyyz", "a", "b", "c"]
filesystems = ["none", "ext4", { type = "xfs", name = "xfs-big", options = ["-s", "size=4096"], mount_options = ["noatime"] }]
repetitions = 3
subjects = [
    "md-raid1",
    { subject = "md-raid1", name = "md-of-two", members = [0, 2] },
    { subject = "md-raid6", title = "degraded", removed = [3], filesystems = ["none"] },
    { subject = "disk", members = [2] },
]

[rounds.cells]
at_most = 25
track = "write-4k"

[[step]]
job = "fill"
title = "fill three quarters"
class = "fill"
prepares = true
fio = "--rw=write --bs=1m --size={capacity*3/4} --direct=1"

[[step]]
job = "bonnie"
title = "bonnie++"
class = "bonnie"
tool = "bonnie++"
arguments = ["-d", "{target}", "-s", "{memory*2/1048576}"]
note = "slow"

[[step]]
round = "cells"
matrix = { rw = ["read", "write"], bs = ["4k", "1m"] }
job = "{rw}-{bs}"
title = "{rw} {bs}"
class = "{rw}"
fio = "--rw={rw} --bs={bs} --runtime=10"

[[step]]
round = "cells"
job = "both"
title = "both"
class = "mixed"
fio = "--rw=randwrite --bs=4k --runtime=10"

[[step]]
job = "watched"
title = "reads while a member goes and comes back"
class = "events"
fio = "--rw=randread --bs=4k --runtime=60"
events = [
    { at = "10s", event = "remove", member = 1 },
    { at = "20s", event = "re-add", member = 1 },
    { sync_percent = 45.5, event = "fail", member = 0 },
]

[[step]]
wait_sync_percent = 50
at_most = "1h"

[[step]]
wait = "sync-done"
at_most = "2h"

[[step]]
wait = "idle"
at_most = "5m"
"#;

fn real() -> Suite {
    parse(REAL).expect("valid")
}

#[test]
fn file_systems_and_repetitions_are_read() {
    let suite = real();
    let specs: Vec<_> = suite.filesystems.iter().flatten().collect();
    assert_eq!(suite.filesystems[0], None);
    assert_eq!(
        (specs[0].label(), specs[1].label()),
        ("ext4".to_owned(), "xfs-big".to_owned())
    );
    assert_eq!(specs[1].options, ["-s", "size=4096"]);
    assert_eq!(specs[1].mount_options, ["noatime"]);
    assert_eq!(suite.repetitions, 3);
    assert!(suite.remarks.is_empty(), "{:?}", suite.remarks);
}

#[test]
fn subjects_choose_their_disks() {
    let suite = real();
    let [all, two, degraded, disk] = suite.subjects.as_slice() else {
        panic!("four subjects");
    };
    assert_eq!(all.choose(&suite.disks), suite.disks);
    assert_eq!(
        (two.name.as_str(), two.title.as_str()),
        ("md-of-two", "md-of-two")
    );
    assert_eq!(two.choose(&suite.disks), ["wd4000fyyz", "b"]);
    assert_eq!(
        (degraded.name.as_str(), degraded.title.as_str()),
        ("md-raid6", "degraded")
    );
    assert_eq!(
        (&degraded.removed, &degraded.filesystems),
        (&vec![3], &Some(vec![None]))
    );
    assert_eq!(disk.choose(&suite.disks), ["b"]);
}

#[test]
fn tools_waits_and_events_are_read() {
    let suite = real();
    let bonnie = suite.jobs().nth(1).expect("bonnie++");
    let arguments = ["-d", "{target}", "-s", "{memory*2/1048576}"].map(str::to_owned);
    assert_eq!(
        bonnie.work,
        Work::Tool {
            name: "bonnie++".to_owned(),
            arguments: arguments.to_vec()
        }
    );
    assert_eq!((bonnie.prepares, bonnie.note.as_str()), (false, "slow"));
    let watched = suite.jobs().last().expect("the last");
    let events: Vec<_> = watched
        .events
        .iter()
        .map(|timed| (timed.when, timed.event.kind, timed.event.member))
        .collect();
    assert_eq!(
        events,
        [
            (When::After(Nanos::from_secs(10)), EventKind::Remove, 1),
            (When::After(Nanos::from_secs(20)), EventKind::ReAdd, 1),
            (When::SyncPercent(45.5), EventKind::Fail, 0),
        ]
    );
    let until = |condition, minutes: u64| {
        let at_most = Nanos::from_secs(minutes * 60);
        Step::Wait(Wait::Until { condition, at_most })
    };
    assert_eq!(
        suite.steps[4..],
        [
            until(Condition::SyncPercent(50.0), 60),
            until(Condition::SyncDone, 120),
            until(Condition::Idle, 5),
        ]
    );
}

#[test]
fn a_cache_can_be_waited_for() {
    let suite = Suite::load("cache").expect("built in");
    let wait = Wait::Until {
        condition: Condition::Clean,
        at_most: Nanos::from_secs(3600),
    };
    assert_eq!(suite.steps[2], Step::Wait(wait));
    let words = crate::words::wait_in_words(wait);
    assert!(words.contains("nothing is dirty in the cache"), "{words}");
}

#[test]
fn a_matrix_is_written_out_in_its_order_and_rounds_are_one_step() {
    let suite = real();
    let Step::Rounds(rounds) = &suite.steps[2] else {
        panic!("rounds");
    };
    assert_eq!(
        (rounds.name.as_str(), rounds.at_most, rounds.track.as_str()),
        ("cells", 25, "write-4k")
    );
    let jobs: Vec<_> = rounds
        .jobs
        .iter()
        .map(|job| (job.name.as_str(), job.title.as_str(), job.class.as_str()))
        .collect();
    assert_eq!(
        jobs,
        [
            ("read-4k", "read 4k", "read"),
            ("read-1m", "read 1m", "read"),
            ("write-4k", "write 4k", "write"),
            ("write-1m", "write 1m", "write"),
            ("both", "both", "mixed"),
        ]
    );
    let block = rounds.jobs[1].work.group().expect("modelled").jobs[0].block_size;
    assert_eq!(block.0, 1 << 20);
}

#[test]
fn a_matrix_reaches_arguments_job_files_and_notes() {
    let text = format!(
        "{HEAD}\n[[step]]\nmatrix = {{ n = [1, 2] }}\njob = \"dd-{{n}}\"\ntitle = \"t\"\nclass = \"c\"\n\
         tool = \"dd\"\narguments = [\"if=/dev/zero\", \"of={{file}}\", \"count={{n}}\"]\nnote = \"{{n}} blocks\"\n\
         \n[[step]]\nmatrix = {{ bs = [\"4k\"], rw = [\"read\"] }}\njob = \"{{rw}}\"\ntitle = \"t\"\nclass = \"c\"\n\
         fio_job = \"\"\"\n[a]\nrw={{rw}}\nbs={{bs}}\n\"\"\"\n"
    );
    let suite = parse(&text).expect("valid");
    let jobs: Vec<_> = suite.jobs().collect();
    assert!(matches!(&jobs[1].work, Work::Tool { arguments, .. } if arguments[2] == "count=2"));
    assert_eq!(jobs[1].note, "2 blocks");
    assert!(
        matches!(&jobs[2].work, Work::Fio { jobs, .. } if jobs.lines() == ["--rw=read --bs=4k"])
    );
}

/// The reason why the model cannot do the only job of a suite.
fn not_modelled(fio: &str) -> String {
    let text =
        format!("{HEAD}{JOB}").replace("--rw=randread --bs=4k --iodepth=4 --runtime=10", fio);
    let suite = parse(&text).expect(fio);
    let job = suite.jobs().next().expect("a job");
    job.work.group().expect_err(fio)
}

#[test]
fn what_only_a_real_fio_can_do_is_read_and_named() {
    let mut seen = String::new();
    for fio in [
        "--rw=read --size={capacity/8}",
        "--rw=randread --bs_is_seq_rand=1 --bs=4k",
        "--rw=read --max_latency 10ms --bs=4k",
        "--rw=write --zonemode=zbd",
    ] {
        let _ = writeln!(seen, "{fio}\n    {}", not_modelled(fio));
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn every_mistake_gets_file_line_field_and_remedy() {
    let mut seen = String::new();
    for (name, text) in broken::broken() {
        let error = parse(&text).expect_err(name);
        let _ = writeln!(seen, "{name}\n    {error}");
    }
    insta::assert_snapshot!(seen);
}

/// The remark on jobs `a` and then `b`, with something between.
fn remark(first: &str, between: &str, second: &str) -> Option<String> {
    let job = |name: &str, work: &str| {
        format!("\n[[step]]\njob = \"{name}\"\ntitle = \"t\"\nclass = \"c\"\n{work}\n")
    };
    let text = format!("{HEAD}{}{between}{}", job("a", first), job("b", second));
    let suite = parse(&text).expect("valid");
    assert!(suite.remarks.len() <= 1);
    suite.remarks.first().cloned()
}

#[test]
fn reads_of_what_was_just_written_are_remarked_on() {
    let fio = |options: &str| format!("fio = \"{options}\"");
    let write = fio("--rw=write --offset=1g --size=1g");
    let read = fio("--rw=randread --offset=1536m --size=1g --runtime=10");
    let found = remark(&write, "", &read).expect("a remark");
    assert!(found.starts_with("job `b` reads what"), "{found}");
    assert_eq!(remark(&write, "\n[[step]]\nwait = \"1s\"\n", &read), None);
    assert_eq!(remark(&write, "", &fio("--rw=read --size=1g")), None);
    assert_eq!(remark(&read, "", &read), None);
    let some = fio("--rw=randwrite --runtime=10");
    assert_eq!(remark(&some, "", &read), None);
    let placed = fio("--rw=write --size={capacity/2}");
    assert!(remark(&placed, "", &read).is_some());
    let other = fio("--name=other --rw=read");
    assert_eq!(remark(&write, "", &other), None);
    let dd = |input: &str, output: &str| {
        format!("tool = \"dd\"\narguments = [\"if={input}\", \"of={output}\"]")
    };
    let dd_write = dd("/dev/zero", "{file}");
    assert!(remark(&dd_write, "", &dd("{file}", "/dev/null")).is_some());
    assert_eq!(remark(&dd_write, "", &dd("/dev/zero", "/dev/null")), None);
}

proptest! {
    /// A matrix is as many jobs as its values allow, in the order of nested
    /// loops.
    #[test]
    fn a_matrix_is_nested_loops(
        sizes in proptest::collection::vec(1_usize..5, 1..4),
        names in Just(["z", "a", "m"]),
    ) {
        let mut expected = vec!["x".to_owned()];
        let mut matrix = Vec::new();
        let mut job = "x".to_owned();
        for (name, size) in names.iter().zip(&sizes) {
            expected = expected
                .iter()
                .flat_map(|before| (0..*size).map(move |value| format!("{before}-{value}")))
                .collect();
            let values: Vec<String> = (0..*size).map(|value| value.to_string()).collect();
            matrix.push(format!("{name} = [{}]", values.join(", ")));
            let _ = write!(job, "-{{{name}}}");
        }
        let text = format!("{HEAD}{JOB}")
            .replace("job = \"1\"", &format!("job = \"{job}\"\nmatrix = {{ {} }}", matrix.join(", ")));
        let suite = parse(&text).expect("valid");
        let found: Vec<String> = suite.jobs().map(|job| job.name.clone()).collect();
        prop_assert_eq!(found, expected);
    }

    /// However a suite is damaged, it is read or refused with a line that it
    /// has; it never panics.
    #[test]
    fn damaged_suites_are_refused_in_place(
        at in 0_usize..4000,
        length in 0_usize..40,
        with in "[a-z0-9=\\[\\]{}\"'\n #.,*/-]{0,8}",
    ) {
        let mut text = REAL.to_owned();
        let start = at % text.len();
        let end = (start + length).min(text.len());
        text.replace_range(start..end, &with);
        match parse(&text) {
            Err(LoadError::File(error)) => {
                prop_assert!(error.file != "own.toml" || error.line <= text.lines().count() + 1);
            }
            Err(_) => {}
            Ok(suite) => prop_assert!(suite.plan().starts_with(&suite.name)),
        }
    }
}
