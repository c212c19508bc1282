//! Suites that are right, and what users see of those that are not.

mod grid;
mod option_notes;
mod real;
mod redundancy;

use super::{QueueRule, Step, Suite, Wait};
use crate::catalogue::LoadError;
use crate::edited::edited;
use crate::experiment::{Choices, option_notes};
use crate::files::Files;
use crate::subject::Subject;
use proptest::prelude::*;
use raidlab_units::{Bytes, Nanos, table};
use raidlab_workload::Permission;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = r#"schema = 1
name = "own"
title = "Own"
description = "A test."
source = "here"
disks = ["wd4000fyyz", "wd4000fyyz"]
subjects = ["md"]
"#;
const JOB: &str = r#"
[[step]]
job = "1"
title = "a read"
class = "random-read"
fio = "--rw=randread --bs=4k --iodepth=4 --runtime=10"
"#;

fn parse(text: &str) -> Result<Suite, LoadError> {
    Suite::parse("own.toml", text, Path::new(""))
}

#[test]
fn what_a_job_does_is_said_by_fio_where_its_author_does_not() {
    let fio = "fio = \"--rw=randrw --rwmixread=70 --bs=4k --iodepth=4 --runtime=10\"";
    let disks = "disks = [\"wd4000fyyz\", \"wd4000fyyz\"]\nsubjects = [\"md\"]";
    let bare = format!("schema = 1\nname = \"own\"\n{disks}\n[[step]]\njob = \"1\"\n{fio}\n");
    let suite = parse(&bare).expect("nothing that it needs is missing");
    assert_eq!(suite.title, "own", "its name");
    let job = suite.jobs().next().expect("one");
    assert_eq!(
        (job.title.as_str(), job.class.as_str()),
        (
            "random read and write, 70 % reads, 4 KiB, 4 in flight, from 0 B to the end, 10 s",
            "mixed"
        )
    );
}

#[test]
fn the_2015_comparison_has_its_29_jobs() {
    let suite = Suite::load("mirror-2015").expect("built in");
    let names: Vec<String> = suite.jobs().map(|job| job.name.clone()).collect();
    let expected: Vec<String> = (1..=29).map(|job| job.to_string()).collect();
    assert_eq!(names, expected);
    assert!(suite.jobs().all(|job| job.work.group().is_ok()));
    assert!(suite.remarks.is_empty());
    let subjects: Vec<&str> = suite
        .subjects
        .iter()
        .map(|subject| subject.name.as_str())
        .collect();
    assert_eq!(subjects, ["md", "gflash", "gmirror", "zfs"]);
    let streams: Vec<usize> = suite
        .jobs()
        .filter(|job| job.queue == QueueRule::Threads)
        .map(|job| job.work.group().unwrap().jobs.len())
        .collect();
    assert_eq!(streams, [2, 3, 4]);
    let hours = suite
        .steps
        .iter()
        .filter(|step| **step == Step::Wait(Wait::Time(Nanos::from_secs(3600))));
    assert_eq!(hours.count(), 8);
}

#[test]
fn the_plan_reads_like_the_original_procedure() {
    insta::assert_snapshot!(Suite::load("mirror-2015").expect("built in").plan());
}

#[test]
fn the_other_articles_plans_read_like_their_procedures() {
    for name in [
        "mirror-2015-small",
        "zfs-volume",
        "unequal-2008",
        "gmirror-md-2010",
        "gmirror-md-2010-small",
        "ars-md-zfs-2020",
        "ars-md-zfs-2020-small",
        "freebsd-zfs-2021",
    ] {
        let plan = Suite::load(name).expect("built in").plan();
        insta::assert_snapshot!(name, plan);
    }
}

#[test]
fn our_own_suites_plans() {
    for name in ["quick", "snia-steady-state"] {
        let plan = Suite::load(name).expect("built in").plan();
        insta::assert_snapshot!(name, plan);
    }
}

/// A suite of two parts of one drive.
fn parts(fields: &[&str; 2]) -> String {
    let [first, second] =
        fields.map(|fields| format!("{{ disk = \"wd4000fyyz\", drive = \"a\", {fields} }}"));
    let plain = "\"wd4000fyyz\", \"wd4000fyyz\"";
    format!("{HEAD}{JOB}").replace(plain, &format!("{first}, {second}"))
}

#[test]
fn members_may_be_parts_of_drives_on_channels() {
    let fields = [
        "channel = \"ide0\", size = \"8g\"",
        "channel = \"ide0\", start = \"8g\", size = \"1m\"",
    ];
    let suite = parse(&parts(&fields)).expect("two parts of a drive");
    assert_eq!(suite.disks, ["wd4000fyyz", "wd4000fyyz"]);
    let sizes: Vec<_> = suite
        .regions
        .iter()
        .map(|one| (one.start.0, one.size))
        .collect();
    assert_eq!(
        sizes,
        [(0, Some(Bytes(8 << 30))), (8 << 30, Some(Bytes(1 << 20)))]
    );
    assert!(
        suite
            .regions
            .iter()
            .all(|one| one.drive == "a" && one.channel == "ide0")
    );
    let plain = parse(&format!("{HEAD}{JOB}")).expect("two disks");
    assert_eq!(plain.regions, vec![super::Region::default(); 2]);
}

/// What is wrong, and the change that makes it so. `PARTS` are two parts of one drive in place of
/// the disks, and `HEAD` is a suite without its job.
const MISTAKES: &str = r#"
not toml                       schema = 1                  schema = = 1
other schema                   schema = 1                  schema = 2
field missing                  name = "own"\n              NOTHING
field misspelt                 subjects                    subject
field unlike any               END                         \n[extra]\nx = 1\n
step field misspelt            class                       clas
wrong type                     disks = [                   disks = [1,
steps that are no list         [[step]]                    [step]\nwait = "1s"\n\n[step]
subject misspelt               "md"                        "gmiror"
subject twice                  "md"                        "md", "md"
no subjects                    "md"                        NOTHING
subject's file missing         "md"                        "./none.toml"
figures misspelt               subjects                    published = "mirror-2016"\nsubjects
no disks                       "wd4000fyyz", "wd4000fyyz"  NOTHING
parts that overlap             PARTS                       start = "0", size = "8g" | start = "7g", size = "8g"
a part without an end          PARTS                       start = "0" | start = "7g", size = "8g"
a drive on two channels        PARTS                       size = "4k" | start = "4k", size = "4k", channel = "ide1"
a drive in two states          PARTS                       size = "4k", state = "fresh" | start = "4k", size = "4k"
a bus told in two ways         PARTS                       bus = { name = "pci", bytes_per_second = "100m" }, size = "4k" | bus = { name = "pci", bytes_per_second = "90m" }, start = "4k", size = "4k"
a bus and a channel            PARTS                       bus = { name = "pci", bytes_per_second = "100m" }, channel = "ide1" | size = "4k"
a bus that carries nothing     PARTS                       bus = { name = "pci", bytes_per_second = "0" } | size = "4k"
a part between pages           PARTS                       size = "512" | start = "4k", size = "4k"
a part of nothing              PARTS                       size = "0" | start = "4k", size = "4k"
a part misspelt                PARTS                       from = "0" | size = "4k"
no steps                       HEAD                        step = []\n
two things in a step           STEP                        job = "2"\nwait = "1s"
nothing in a step              STEP                        note = "hm"
job without fio                fio =                       note =
tool without title             STEP                        job = "2"\ntool = "dd"\narguments = ["if={target}", "of=/dev/null", "bs=1M"]
job with two texts             fio =                       fio_job = ""\nfio =
job twice                      STEP                        job = "1"\ntitle = "a read"\nclass = "random-read"\nfio = "--rw=randread --bs=4k --iodepth=4 --runtime=10"
job in other letters           STEP                        job = "a"\ntitle = "a read"\nclass = "random-read"\nfio = "--rw=read"\n\n[[step]]\njob = "A"\ntitle = "a read"\nclass = "random-read"\nfio = "--rw=read"
class in other letters         STEP                        job = "2"\ntitle = "a read"\nclass = "Random-Read"\nfio = "--rw=read"
subject in other letters       "md"                        "md", { subject = "gmirror", name = "MD" }
filesystem in other letters    disks                       filesystems = [{ type = "ext4", name = "a" }, { type = "xfs", name = "A" }]\ndisks
job with member                class                       member = 1\nclass
wait with member               STEP                        wait = "1s"\nmember = 1
event with fio                 STEP                        event = "remove"\nmember = 1\nfio = "--rw=read"
event without member           STEP                        event = "remove"
check of one member            STEP                        event = "check"\nmember = 1
event unknown                  STEP                        event = "pull"\nmember = 1
member unknown                 STEP                        event = "remove"\nmember = 2
insert too early               STEP                        event = "insert"\nmember = 1
removed twice                  STEP                        event = "remove"\nmember = 1\n\n[[step]]\nevent = "remove"\nmember = 1
last member                    STEP                        event = "remove"\nmember = 1\n\n[[step]]\nevent = "fail"\nmember = 0
time without unit              STEP                        wait = "1 fortnight"
fio option misspelt            --iodepth                   --iodeph
fio value wrong                --bs=4k                     --bs=4q
fio value impossible           --bs=4k                     --bs=0
fio stonewall                  fio = "--rw=randread        fio = "--name=a --rw=read --name=b --stonewall
job file line                  STEP                        job = "2"\ntitle = "t"\nclass = "c"\nfio_job = """\n[global]\nbs=4k\n[a]\nrw=red\n"""
job file line in other quotes  STEP                        job = "2"\ntitle = "t"\nclass = "c"\nfio_job = '''\n[global]\nbs=4k\n[a]\nrw=red\n'''
filesystem                     disks                       filesystem = "ext4"\ndisks
repeat                         disks                       repeat = 3\ndisks
at                             STEP                        event = "remove"\nmember = 1\nat = "5s"
job file missing               STEP                        job = "2"\ntitle = "t"\nclass = "c"\nfio_file = "none.fio"
class against figures          subjects                    published = "mirror-2015"\nsubjects
matrix of a suite              END                         \n[matrix]\nbs = ["4k"]\n
tool and fio                   class                       tool = "bonnie++"\nclass
sync percent without limit     STEP                        wait_sync_percent = 50
queue rule                     class                       queue = "thread"\nclass
"#;

/// Suites with one mistake each.
fn broken() -> Vec<(&'static str, String)> {
    table(MISTAKES, |[what, from, to]| {
        let text = match (from, to.split_once(" | ")) {
            ("PARTS", Some((first, second))) => parts(&[first, second]),
            ("HEAD", _) => edited(HEAD, "END", to),
            _ => edited(&format!("{HEAD}{JOB}"), from, to),
        };
        Some((what, text))
    })
}

/// The wait ended the run: "members are written to again and again".
#[test]
fn a_wait_for_idle_members_has_the_time_that_it_takes() {
    let wait = |limit: &str| {
        let step = format!("\n[[step]]\nwait = \"idle\"\nat_most = \"{limit}\"\n");
        parse(&format!("{HEAD}{step}{JOB}"))
    };
    assert!(wait("3s").is_ok());
    let error = wait("2s").expect_err("it cannot come about").to_string();
    assert!(error.contains("idle after 3 s without a write"), "{error}");
}

/// It said that the title is missing, which needs none.
#[test]
fn why_a_job_needs_a_title_is_said() {
    let job = "\n[[step]]\njob = \"2\"\nfio = \"--rw=read --max_latency=5ms\"\n";
    let error = parse(&format!("{HEAD}{JOB}{job}")).expect_err("nobody says what it does");
    let error = error.to_string();
    assert!(
        error.contains("`title` is missing") && error.contains("max_latency"),
        "{error}"
    );
}

#[test]
fn every_mistake_gets_file_line_field_and_remedy() {
    let mut seen = String::new();
    for (name, text) in broken() {
        let error = parse(&text).expect_err(name);
        let _ = writeln!(seen, "{name}\n    {error}");
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn a_suite_finds_its_neighbours_by_relative_path() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect(name);
    std::fs::create_dir(folder.path().join("inner")).expect("room");
    let md = raidlab_data::text("subjects", "md").expect("built in");
    write("mine.toml", &md.replace("name = \"md\"", "name = \"mine\""));
    write("jobs.fio", "[a]\nrw=read\nbs=64k\nsize=1g\n");
    let suite = format!("{HEAD}{JOB}")
        .replace("\"md\"", "\"./mine.toml\"")
        .replace("\"wd4000fyyz\", ", "\"own-disk.toml\", ")
        .replace(
            "fio = \"--rw=randread --bs=4k --iodepth=4 --runtime=10\"",
            "fio_file = \"jobs.fio\"",
        );
    write("own.toml", &suite);
    let path = folder.path().join("own.toml");
    let suite = Suite::load(path.to_str().expect("utf-8")).expect("valid");
    assert_eq!(suite.subjects[0].name, "mine");
    assert_eq!(
        suite.disks[0],
        folder.path().join("own-disk.toml").display().to_string()
    );
    assert_eq!(suite.disks[1], "wd4000fyyz");
    let job = suite.jobs().next().expect("a job");
    assert_eq!(job.work.group().unwrap().jobs[0].block_size.0, 65536);
    // What a job file includes lies beside it, also where a matrix names its folder.
    write("inner/jobs.fio", "include more.fio\n");
    write("inner/more.fio", "[a]\nrw=read\nbs=32k\nsize=1g\n");
    let text = std::fs::read_to_string(&path).expect("written");
    let text = text.replace(
        "\"jobs.fio\"",
        "\"{place}/jobs.fio\"\nmatrix = { place = [\"inner\"] }",
    );
    write("own.toml", &text);
    let mut permission = Permission::default();
    permission.allow("include", |_| None).expect("an option");
    let files = Files::default().allowing(permission);
    let other = Suite::load_from(&files, path.to_str().expect("utf-8")).expect("valid");
    let job = other.jobs().next().expect("a job");
    assert_eq!(job.work.group().unwrap().jobs[0].block_size.0, 32768);
    assert_eq!(suite.subject("mine").expect("own").name, "mine");
    assert_eq!(suite.subject("gmirror").expect("built in").name, "gmirror");
}

#[test]
fn titles_tell_shares_of_the_device_and_sizes_that_differ() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("titles.fio");
    let text = "[a]\nrw=randread\nsize=20%\noffset=80%\n\
        [b]\nstonewall\nrw=randrw\nsize=100%\nbssplit=4k/50:64k/50,8k\n\
        [c]\nstonewall\nrw=read\nsize=1g\nbsrange=4k-16k,1k-2k\n";
    std::fs::write(&path, text).expect("written");
    let subject = Subject::load("disk").expect("built in");
    let disks = vec!["wd4000fyyz".to_owned()];
    let suite = Suite::from_job_file(&Files::default(), &path, disks, vec![subject]);
    let suite = suite.expect("valid");
    let titles: Vec<&str> = suite.jobs().map(|job| job.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "a: random read 4 KiB, 1 thread, 20 % from 80 %",
            "b: random read and write, 50 % reads, 4 KiB to 64 KiB reads and 8 KiB writes, \
             1 thread, from 0 B to the end",
            "c: sequential read 4 KiB to 16 KiB, 1 thread, 1 GiB from 0 B",
        ]
    );
}

#[test]
fn a_job_file_is_a_suite_of_its_groups() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("two.fio");
    std::fs::write(
        &path,
        "[global]\nrandrepeat=0\n[a]\nrw=randread\nsize=1g\n[b]\nstonewall\nrw=write\nbs=1m\nsize=1g\n",
    )
    .expect("written");
    let subject = Subject::load("disk").expect("built in");
    let suite = Suite::from_job_file(
        &Files::default(),
        &path,
        vec!["wd4000fyyz".to_owned()],
        vec![subject],
    )
    .expect("valid");
    let jobs: Vec<(&str, &str, QueueRule)> = suite
        .jobs()
        .map(|job| (job.title.as_str(), job.class.as_str(), job.queue))
        .collect();
    assert_eq!(
        jobs,
        [
            (
                "a: random read 4 KiB, 1 thread, 1 GiB from 0 B",
                "random-read",
                QueueRule::Fio
            ),
            (
                "b: sequential write 1 MiB, 1 thread, 1 GiB from 0 B",
                "sequential-write",
                QueueRule::Fio
            ),
        ]
    );
    let file = path.display();
    let places = [
        format!("{file}, line 3: [a]"),
        format!("{file}, line 6: [b]"),
    ];
    assert_eq!(suite.places.steps, places);
    // An option of `[global]` is one of both jobs.
    let remark = format!(
        "{}, line 2: `randrepeat`: a modelled run always repeats itself; `randseed` asks for another sequence",
        path.display()
    );
    let experiments = suite.experiments(&suite.subjects, &Choices::default());
    assert_eq!(option_notes(&experiments, true), [remark]);
    assert!(option_notes(&experiments, false).is_empty());
    std::fs::write(&path, "[a]\nrw=rundread\n").expect("written");
    let error = Suite::from_job_file(&Files::default(), &path, Vec::new(), Vec::new())
        .expect_err("no such pattern");
    assert!(error.to_string().contains("two.fio, line 2"), "{error}");
}

proptest! {
    /// However a suite is damaged, it is read or refused with a line that it
    /// has; it never panics.
    #[test]
    fn damaged_suites_are_refused_in_place(
        at in 0_usize..2000,
        length in 0_usize..40,
        with in "[a-z0-9=\\[\\]\"'\n #.]{0,6}",
    ) {
        let mut text = format!("{HEAD}{JOB}\n[[step]]\nevent = \"remove\"\nmember = 1\n{}", JOB.replace("\"1\"", "\"2\""));
        let start = at % text.len();
        let end = (start + length).min(text.len());
        text.replace_range(start..end, &with);
        if let Err(LoadError::File(error)) = parse(&text) {
            prop_assert!(error.file != "own.toml" || error.line <= text.lines().count() + 1);
        }
    }
}
