//! What people are told of a facts file that is wrong.

use super::{Counted, Facts};
use raidlab_units::table;

const GOOD: &str = r#"schema = 1
disk = "some"

[[free]]
parameter = "seek_settle_ms"
start = 0.8
range = [0.2, 2.0]

[[prior]]
id = "average-seek"
quantity = "average_seek_ms"
value = 8.2
tolerance_percent = 10.0
sets = ["strict"]
source = "a data sheet"

[[fact]]
id = "read"
title = "random read"
fio = ["--rw=randread --bs=4k --iodepth=1"]
turnaround_us = 59
op = "read"
ios = 1000
runtime_ms = 10000
sets = ["strict"]
source = "a log"

[[fact]]
id = "write"
title = "random write"
fio = ["--rw=randwrite --bs=4k"]
turnaround_us = 59
op = "write"
ios = 1
runtime_ms = 1000
sets = ["joint", "strict"]
source = "a log"
"#;

fn complaint(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "`{from}` is not in the file");
    let text = GOOD.replacen(from, to, 1);
    let error = Facts::parse("facts.toml", &text).expect_err(to);
    raidlab_units::reasons(&error).join("\n  ")
}

#[test]
fn a_good_file_says_what_it_says() {
    let facts = Facts::parse("facts.toml", GOOD).expect("valid");
    assert_eq!(facts.sets(), ["joint", "strict"]);
    assert_eq!((facts.facts[0].iops, facts.facts[1].iops), (100.0, 1.0));
    let counted = facts.facts.iter().map(|fact| fact.counted);
    assert_eq!(
        counted.collect::<Vec<_>>(),
        [Counted::Reads, Counted::Writes]
    );
    assert!(facts.facts[0].group().stop_together);
    assert_eq!(facts.free[0].range, [0.2, 2.0]);
}

#[test]
fn every_job_of_a_fact_is_simulated() {
    let several = GOOD.replacen(
        "[\"--rw=randwrite --bs=4k\"]",
        "[\"--bs=4k --name=a --rw=randwrite --name=b --rw=read --numjobs=2\", \"--rw=write\"]",
        1,
    );
    let facts = Facts::parse("facts.toml", &several).expect("valid");
    let jobs = facts.facts[1].jobs.iter();
    let told: Vec<_> = jobs
        .map(|job| (job.pattern.name(), job.num_jobs, job.first_process))
        .collect();
    assert_eq!(
        told,
        [("randwrite", 1, 1), ("read", 2, 2), ("write", 1, 4)],
        "each job, with its place among the processes of one fio"
    );
}

#[test]
fn facts_that_contradict_each_other_are_named() {
    let again = |ios: u32| {
        let fact = GOOD.split("[[fact]]").nth(1).expect("the first fact");
        let fact = fact.replacen("\"read\"", "\"again\"", 1);
        let fact = fact.replacen("ios = 1000", &format!("ios = {ios}"), 1);
        let facts = Facts::parse("facts.toml", &format!("{GOOD}\n[[fact]]{fact}"));
        let facts = facts.expect("valid");
        let named = facts.contradictions("strict").into_iter();
        let named: Vec<_> = named.map(|pair| pair.map(|fact| fact.id.clone())).collect();
        assert!(facts.contradictions("joint").is_empty());
        named
    };
    assert_eq!(again(1040), Vec::<[String; 2]>::new());
    assert_eq!(again(1400), [["read", "again"]]);
    assert_eq!(again(700), [["read", "again"]]);
}

/// What is wrong, and the change that makes it so; `\n` is the end of a line.
const MISTAKES: &str = r#"
not TOML                      disk = "some"                                disk = some
another version               schema = 1                                   schema = 2
an unknown field              disk =                                       drive =
no facts                      [[fact]]\nid = "read"                        [[measured]]\nid = "read"
an unknown parameter          "seek_settle_ms"                             "settle"
a range that falls            [0.2, 2.0]                                   [2.0, 0.2]
a start outside               start = 0.8                                  start = 8.0
an unknown quantity           "average_seek_ms"                            "track_seek_ms"
a prior of nothing            value = 8.2                                  value = 0.0
a prior without tolerance     tolerance_percent = 10.0                     tolerance_percent = -1.0
a fact twice                  id = "write"                                 id = "read"
no requests                   ios = 1000\n                                 ios = 0\n
no time                       runtime_ms = 10000\n                         runtime_ms = 0\n
no jobs                       ["--rw=randwrite --bs=4k"]                   []
an unknown operation          op = "write"                                 op = "trim"
an unknown option             --rw=randwrite                               --rw=randwrite --speed=9
a wrong value                 --iodepth=1                                  --iodepth=many
jobs one after the other      --rw=randwrite --bs=4k                       --rw=randwrite --bs=4k --name=a --name=b --stonewall
nothing of what was measured  op = "write"                                 op = "read"
a parameter twice             [[prior]]                                    [[free]]\nparameter = "seek_settle_ms"\nstart = 1\nrange = [0, 2]\n\n[[prior]]
a prior of no set             tolerance_percent = 10.0\nsets = ["strict"]  tolerance_percent = 10.0\nsets = ["strikt"]
"#;

#[test]
fn every_mistake_is_named_with_its_place() {
    let told = table(MISTAKES, |[what, from, to]| {
        let [from, to] = [from, to].map(|text| text.replace("\\n", "\n"));
        Some(format!("{what}:\n  {}", complaint(&from, &to)))
    });
    insta::assert_snapshot!(told.join("\n"));
}
