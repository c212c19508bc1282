//! What the model does as the kernel bench's machine does it: the pauses around jobs, and
//! md's superblocks while a sync runs on an array with a bitmap.

use crate::rows;
use raidlab_bench_model::ModelBench;
use raidlab_lab::{Bench, Choices, Experiment, Files, Finish, Observer, Suite, catalogue};
use raidlab_store::{CellResult, Records};
use raidlab_units::Nanos;
use std::path::Path;

/// A mirror with such a bitmap that does these steps on the kernel bench's host.
fn experiment(folder: &Path, bitmap: &str, steps: &str) -> Experiment {
    let text = format!(
        r#"schema = 1
name = "beside"
title = "beside a sync"
description = "writes beside a rebuild"
source = "this test"
disks = ["wd4000fyyz", "wd4000fyyz"]

[[subjects]]
subject = "md-raid1-clean"
name = "mirror"
build = {{ bitmap = "{bitmap}" }}

{steps}"#
    );
    let path = folder.join("beside.toml");
    std::fs::write(&path, text).expect("a file");
    let suite = Suite::load(&path.to_string_lossy()).expect("a suite");
    let mut subjects = suite.subjects.clone();
    let host = catalogue::host(&Files::default(), "kernel-bench").expect("a built-in host");
    for subject in &mut subjects {
        subject.move_to(&host);
    }
    let choices = Choices {
        fits: vec!["strict".to_owned()],
        seed: 1,
        ..Choices::default()
    };
    suite.experiments(&subjects, &choices).remove(0)
}

fn job(name: &str, seconds: u32) -> String {
    format!(
        r#"[[step]]
job = "{name}"
title = "sequential write 64 KiB"
class = "sequential-write"
fio = "--rw=write --bs=64k --offset=500g --filesize=2t --time_based --runtime={seconds} --direct=1"

"#
    )
}

const REBUILD: &str = r#"[[step]]
event = "remove"
member = 1

[[step]]
event = "insert"
member = 1

"#;

/// Of whom only the disks' commands are wanted.
struct Unseen;

impl Observer for Unseen {
    fn record(&mut self, _: Records) {}
    fn cell(&mut self, _: CellResult) {}
}

/// When member 0's superblock was written, in seconds.
fn superblocks(bitmap: &str) -> Vec<f64> {
    let folder = tempfile::tempdir().expect("a folder");
    let steps = format!("{REBUILD}{}", job("beside", 14));
    let experiment = experiment(folder.path(), bitmap, &steps);
    let commands = folder.path().join("commands");
    std::fs::create_dir(&commands).expect("a folder");
    let bench = ModelBench {
        commands: Some(commands.clone()),
        ..ModelBench::default()
    };
    let finish = bench.run(&experiment, &mut Unseen).expect("it runs");
    assert_eq!(finish, Finish::Complete);
    let file = std::fs::read_dir(commands)
        .expect("the folder")
        .next()
        .expect("one file")
        .expect("an entry");
    let text = std::fs::read_to_string(file.path()).expect("the commands");
    let when = text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        let is_it = fields[2..5] == ["0", "write", "8"];
        is_it.then(|| fields[0].parse::<f64>().expect("a time") / 1e9)
    });
    when.collect()
}

/// Linux drivers/md/md-bitmap.c, `bitmap_cond_end_sync`, counts the five seconds from the end of
/// a rest. There the page with the bitmap's head and the superblock are written, each behind a
/// flush of its member: some 0.2 s beside a job.
#[test]
fn with_a_bitmap_a_sync_has_the_superblocks_written_every_five_seconds() {
    let later = |bitmap| {
        let times = superblocks(bitmap);
        times.into_iter().filter(|&at| at > 2.0).collect::<Vec<_>>()
    };
    let with = later("internal");
    assert_eq!(with.len(), 2, "{with:?}");
    assert!((5.0..5.6).contains(&(with[1] - with[0])), "{with:?}");
    assert_eq!(later("none"), Vec::<f64>::new());
}

#[test]
fn pauses_before_jobs_are_the_host_bench_s() {
    let folder = tempfile::tempdir().expect("a folder");
    let pause = |steps: &str| {
        let experiment = experiment(folder.path(), "none", steps);
        let rows = rows::of(&experiment).expect("it runs");
        let row = |name| rows.iter().find(|row| row.job == name).expect(name);
        let (first, second) = (row("first"), row("second"));
        Nanos(second.started_ns - (first.started_ns + first.runtime_ns))
    };
    let jobs = format!("{}{}", job("first", 1), job("second", 1));
    // In the first second md writes its superblocks, as the array is clean again.
    assert_eq!(pause(&jobs), Nanos::from_millis(2200));
    // A member is filled, for which nobody waits.
    assert_eq!(pause(&format!("{REBUILD}{jobs}")), Nanos::from_millis(200));
    let idle = "[[step]]\nwait = \"idle\"\nat_most = \"1m\"\n\n";
    let waiting = format!("{}{idle}{}", job("first", 1), job("second", 1));
    let waited = pause(&waiting);
    // One second with writes, three without, and one before the job.
    assert_eq!(waited, Nanos::from_millis(5200));
}
