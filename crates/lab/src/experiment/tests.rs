//! What a suite becomes for one subject.

use super::{
    CapacityError, Choices, Experiment, HostChoice, IN_SYNC, PlannedJob, PlannedStep, by_steps,
};
use crate::host::QueueStyle;
use crate::subject::Subject;
use crate::suite::{Begin, Suite, Work};
use raidlab_store::Operation;
use raidlab_units::{Bytes, in_one_line};
use raidlab_workload::Engine;
use std::path::Path;
use std::sync::Arc;

const DISK: Bytes = Bytes(4_000_787_030_016);

fn experiment(subject: &str) -> Experiment {
    let suite = Suite::load("mirror-2015").expect("built in");
    let subject = Subject::load(subject).expect("built in");
    suite.experiments(&[subject], &Choices::default()).remove(0)
}

fn job<'a>(experiment: &'a Experiment, name: &str) -> &'a PlannedJob {
    let find = |step: &'a PlannedStep| match step {
        PlannedStep::Job(job) if job.name == name => Some(job),
        _ => None,
    };
    experiment.steps.iter().find_map(find).expect("a job")
}

#[test]
fn a_queue_is_asynchronous_on_linux_and_threads_on_freebsd() {
    for (subject, engine, depth, clones) in [
        ("md", Engine::Libaio, 32, 1),
        ("gmirror", Engine::Sync, 1, 32),
    ] {
        let experiment = experiment(subject);
        let planned = job(&experiment, "15");
        let spec = &planned.work.group().unwrap().jobs[0];
        assert_eq!(
            (spec.engine, spec.io_depth, spec.num_jobs),
            (engine, depth, clones)
        );
        assert_eq!((planned.queue_depth(), planned.streams()), (32, 1));
        let streams = job(&experiment, "20");
        assert_eq!((streams.queue_depth(), streams.streams()), (4, 4));
        assert!(
            streams
                .work
                .group()
                .unwrap()
                .jobs
                .iter()
                .all(|spec| spec.engine == Engine::Sync)
        );
        assert_eq!(
            job(&experiment, "16").operations(),
            [Operation::Read, Operation::Write]
        );
    }
}

/// A row of reads had the size of the writer before it.
#[test]
fn a_row_has_the_size_of_its_own_operation() {
    let sizes = |fio: &str| {
        let text = format!(
            r#"schema = 1
name = "own"
title = "One of one's own"
description = ""
source = "here"
disks = ["a"]
subjects = ["disk"]

[[step]]
job = "sizes"
title = "sizes"
class = "sizes"
fio = [{fio}]
"#
        );
        let suite = Suite::parse("own.toml", &text, Path::new("")).expect("valid");
        let experiment = suite.experiments(&suite.subjects, &Choices::default());
        let job = job(&experiment[0], "sizes");
        let rows = job.operations().into_iter();
        rows.map(|op| job.row(&experiment[0], "model", op).block_size_bytes >> 10)
            .collect::<Vec<_>>()
    };
    let beside = r#""--rw=randwrite --bs=4k --fsync=1", "--rw=randread --bs=64k""#;
    assert_eq!(sizes(beside), [64, 4, 4]);
    assert_eq!(sizes(r#""--rw=randrw --bs=16k,32k""#), [16, 32]);
    assert_eq!(sizes(r#""--rw=randtrimwrite --bs=4k,8k,16k""#), [8, 16]);
    let read_back = r#""--rw=write --bs=4k,8k --verify=crc32c""#;
    assert_eq!(sizes(read_back), [8, 8]);
}

#[test]
fn a_single_disk_stops_before_the_first_event() {
    let disk = experiment("disk");
    assert_eq!(disk.disks.len(), 1);
    assert_eq!((disk.steps.len(), disk.left_out), (20, 21));
    assert!(disk.plan().contains("last 21 steps are left out"));
    assert_eq!(experiment("md").left_out, 0);
}

#[test]
fn plans_say_what_the_host_makes_of_a_job() {
    insta::assert_snapshot!(experiment("gmirror").plan());
}

#[test]
fn jobs_fit_on_the_arrays_of_the_comparison() {
    for subject in ["md", "gflash", "gmirror", "zfs", "disk"] {
        let experiment = experiment(subject);
        let capacity = experiment.check_capacity(&[DISK, DISK]);
        assert_eq!(
            capacity.ok(),
            experiment.subject.capacity(DISK),
            "{subject}"
        );
    }
}

#[test]
fn jobs_that_do_not_fit_are_refused_before_anything_runs() {
    let experiment = experiment("gmirror");
    let error = |bytes| {
        experiment
            .check_capacity(&[DISK, Bytes(bytes)])
            .expect_err("too small")
    };
    assert_eq!(
        error(2 << 40).to_string(),
        "job `1` asks `gmirror` for bytes up to 3 TiB, but it holds 2.00 TiB; ask for less (`size`, \
         `filesize`, `offset`), or take larger disks"
    );
    assert_eq!(
        error(100),
        CapacityError::Members {
            subject: "gmirror".to_owned(),
            member: Bytes(100)
        }
    );
    // A volume has the size that its file says, whatever the disks have.
    let mut pool = self::experiment("zfs");
    pool.subject.zfs.as_mut().expect("a pool").volume_size = Bytes(1 << 40);
    let error = pool.check_capacity(&[DISK, DISK]).expect_err("too small");
    assert!(
        error
            .to_string()
            .ends_with("or give the volume more (`volume_size` in the subject's file)")
    );
    let mut shifted = experiment.clone();
    let PlannedStep::Job(first) = &mut Arc::make_mut(&mut shifted.steps)[0] else {
        panic!("a job")
    };
    let Work::Fio {
        group: Ok(group), ..
    } = &mut first.job.work
    else {
        panic!("a job of fio's");
    };
    group.jobs[0].offset = Bytes(5 << 40);
    let mut without_room = shifted.clone();
    assert!(matches!(
        shifted.check_capacity(&[DISK]),
        Err(CapacityError::Job { .. })
    ));
    // A file of 1 MiB from 4 KiB on has no room for a block of 1 MiB.
    let PlannedStep::Job(first) = &mut Arc::make_mut(&mut without_room.steps)[0] else {
        panic!("a job")
    };
    let Work::Fio {
        group: Ok(group), ..
    } = &mut first.job.work
    else {
        panic!("a job of fio's");
    };
    let job = &mut group.jobs[0];
    (job.block_size, job.offset, job.size) = (Bytes(1 << 20), Bytes(4096), None);
    job.file_size = Some(Bytes(1 << 20));
    let error = without_room.check_capacity(&[DISK]);
    let error = error.expect_err("before it runs");
    assert!(
        in_one_line(&error).contains("no block of 1 MiB fits"),
        "{error}"
    );
}

#[test]
fn experiments_come_subject_by_subject_and_fit_by_fit() {
    let suite = Suite::load("mirror-2015").expect("built in");
    let choices = Choices {
        fits: vec!["strict".to_owned(), "joint".to_owned()],
        seed: 7,
        without: vec!["rpo".to_owned()],
        ..Choices::default()
    };
    let experiments = suite.experiments(&suite.subjects[..2], &choices);
    let order: Vec<(&str, &str)> = experiments
        .iter()
        .map(|experiment| (experiment.subject.name.as_str(), experiment.fit.as_str()))
        .collect();
    assert_eq!(
        order,
        [
            ("md", "strict"),
            ("md", "joint"),
            ("gflash", "strict"),
            ("gflash", "joint")
        ]
    );
    assert!(
        experiments
            .iter()
            .all(|experiment| experiment.seed == 7 && experiment.without == ["rpo"])
    );
}

/// A run of many repetitions would not fit into memory otherwise, nor be planned in time.
#[test]
fn experiments_share_the_steps_that_they_have_in_common() {
    let all = selected(3);
    let once = std::cell::Cell::new(0);
    let count = |steps: &[PlannedStep]| {
        once.set(once.get() + 1);
        steps.len()
    };
    let of_steps = |experiment: &Experiment, steps: &usize| (experiment.label(3), *steps);
    let told = by_steps(&all, count, of_steps);
    let expected = all.iter().map(|one| (one.label(3), one.steps.len()));
    assert_eq!(told, expected.collect::<Vec<_>>(), "in their order");
    let mut names: Vec<&str> = all.iter().map(|one| one.subject.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert!(all.len() > 3 * names.len());
    assert_eq!(
        once.get(),
        names.len(),
        "one list of steps for each subject"
    );
}

/// The experiments of a small suite of real subjects.
fn selected(repetitions: u32) -> Vec<Experiment> {
    let text = format!(
        r#"schema = 1
name = "selected"
title = "Selected"
description = ""
source = "here"
disks = ["a", "b", "c", "d"]
filesystems = ["none", "ext4"]
repetitions = {repetitions}
subjects = [
    {{ subject = "md-raid1", name = "two", members = [3, 1] }},
    {{ subject = "md-raid6", removed = [2], filesystems = ["xfs"] }},
    {{ subject = "disk", members = [2], filesystems = ["none"] }},
]

[[step]]
job = "read"
title = "read"
class = "read"
fio = "--rw=read --runtime=1"

[[step]]
job = "watched"
title = "read without a member"
class = "read"
fio = "--rw=read --runtime=10"
events = [{{ at = "5s", event = "remove", member = 1 }}]
"#
    );
    let suite = Suite::parse("selected.toml", &text, Path::new("")).expect("valid");
    suite.experiments(&suite.subjects, &Choices::default())
}

#[test]
fn subjects_run_on_their_own_disks_and_file_systems() {
    let experiments = selected(2);
    let cells: Vec<(u32, &str, String, String)> = experiments
        .iter()
        .map(|experiment| {
            (
                experiment.repetition,
                experiment.subject.name.as_str(),
                experiment.filesystem_label(),
                experiment.disks.join(" "),
            )
        })
        .collect();
    let once = |repetition| {
        [
            ("two", "", "d b"),
            ("two", "ext4", "d b"),
            ("md-raid6", "xfs", "a b c d"),
            ("disk", "", "c"),
        ]
        .map(|(name, on, disks)| (repetition, name, on.to_owned(), disks.to_owned()))
    };
    assert_eq!(cells, [once(0), once(1)].concat());
}

#[test]
fn removed_members_are_taken_out_before_the_first_step() {
    let experiments = selected(1);
    insta::assert_snapshot!(experiments[2].plan());
    assert_eq!(experiments[2].left_out, 0);
}

#[test]
fn a_single_disk_stops_before_a_job_that_takes_a_member_out() {
    let disk = &selected(1)[3];
    assert_eq!((disk.steps.len(), disk.left_out), (1, 1));
}

#[test]
fn settings_are_those_of_what_runs() {
    let suite = Suite::load("mirror-2015").expect("built in");
    let built = |choices: &Choices| {
        let experiment = &suite.experiments(&suite.subjects[..1], choices)[0];
        let settings = experiment.subject.settings.iter();
        let (build, model): (Vec<_>, Vec<_>) =
            settings.partition(|setting| setting.name.starts_with("build."));
        (build.len(), model.len())
    };
    let modelled = built(&Choices::default());
    assert_eq!(modelled.0, 0);
    assert!(modelled.1 > 10);
    let hosts = vec![HostChoice {
        name: "here".to_owned(),
        queue: QueueStyle::Libaio,
        disks: vec!["/dev/loop0".to_owned(), "/dev/loop1".to_owned()],
    }];
    let real = built(&Choices {
        hosts,
        ..Choices::default()
    });
    assert_eq!(real, (4, 0));
}

/// The experiment of one subject under a suite that says this of its beginning.
fn begun(subject: &str, begin: &str, choices: &Choices) -> Experiment {
    let text = format!(
        r#"schema = 1
name = "own"
title = "One of one's own"
description = ""
source = "here"
{begin}
disks = ["a", "b", "c", "d"]
subjects = ["{subject}"]

[[step]]
job = "read"
title = "read"
class = "read"
fio = "--rw=read --runtime=1"
"#
    );
    let suite = Suite::parse("own.toml", &text, Path::new("")).expect("valid");
    suite.experiments(&suite.subjects, choices).remove(0)
}

#[test]
fn a_suite_begins_with_members_in_sync_unless_it_asks_otherwise() {
    let syncs_first = |experiment: &Experiment| {
        let build = experiment.subject.build.as_ref();
        build.expect("an array").has_first_sync()
    };
    let waits = |experiment: &Experiment| {
        let first = &experiment.steps[0];
        matches!(first, PlannedStep::Wait(wait) if *wait == IN_SYNC)
    };
    let modelled = Choices::default();
    let real = Choices {
        hosts: vec![HostChoice {
            name: "here".to_owned(),
            queue: QueueStyle::Libaio,
            disks: Vec::new(),
        }],
        ..Choices::default()
    };
    let blank = Choices {
        blank_disks: true,
        ..real.clone()
    };
    // Zeros are equal as they are; what is on real disks is not known.
    for (choices, created_clean) in [(&modelled, true), (&blank, true), (&real, false)] {
        let own = begun("md-raid6", "", choices);
        assert_eq!(
            (syncs_first(&own), waits(&own)),
            (!created_clean, !created_clean)
        );
        let asked = begun("md-raid6", "begin = \"as-created\"", choices);
        assert!(syncs_first(&asked) && !waits(&asked));
        let clean = begun("md-raid6-clean", "", choices);
        assert!(!syncs_first(&clean) && !waits(&clean));
    }
    let lvm = begun("lvm-raid1", "", &blank);
    assert!(syncs_first(&lvm) && waits(&lvm), "LVM has to wait");
}

/// Each suite that comes with raidlab has the rows that it always had.
#[test]
fn built_in_suites_say_how_they_begin_where_it_matters() {
    for suite in crate::built_in::suites().expect("built in") {
        let mut builds = suite
            .subjects
            .iter()
            .filter_map(|subject| subject.build.as_ref());
        let matters = builds.any(|build| build.has_first_sync());
        assert_eq!(suite.begin == Begin::AsCreated, matters, "{}", suite.name);
    }
}
