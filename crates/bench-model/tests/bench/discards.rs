//! Discards, and jobs that end by themselves, from a suite to its rows and facts.

use raidlab_bench_model::ModelBench;
use raidlab_lab::{Bench, Choices, Experiment, Finish, Observer, Suite};
use raidlab_store::{CellResult, Observation, Operation, Records};
use std::path::Path;

/// A suite of one job on two disks of a kind.
fn experiment(folder: &Path, subject: &str, disk: &str, members: usize, fio: &str) -> Experiment {
    let disks = vec![format!("{disk:?}"); members].join(", ");
    let text = format!(
        r#"schema = 1
name = "discards"
title = "discards"
description = "one job"
source = "this test"
disks = [{disks}]
subjects = ["{subject}"]

[[step]]
job = "discard"
title = "one job"
class = "trim"
queue = "fio"
fio = "{fio}"
"#
    );
    let path = folder.join("discards.toml");
    std::fs::write(&path, text).expect("a file");
    let suite = Suite::load(&path.to_string_lossy()).expect("a suite");
    let fit = if disk == "ssd950pro" {
        "rated"
    } else {
        "strict"
    };
    let choices = Choices {
        fits: vec![fit.to_owned()],
        seed: 1,
        ..Choices::default()
    };
    suite.experiments(&suite.subjects, &choices).remove(0)
}

/// What a run told.
#[derive(Default)]
struct Told(Option<CellResult>);

impl Observer for Told {
    fn record(&mut self, _: Records) {}
    fn cell(&mut self, cell: CellResult) {
        self.0 = Some(cell);
    }
}

fn run(subject: &str, disk: &str, members: usize, fio: &str) -> Result<CellResult, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let experiment = experiment(folder.path(), subject, disk, members, fio);
    let mut told = Told::default();
    match ModelBench::default().run(&experiment, &mut told) {
        Ok(finish) => assert_eq!(finish, Finish::Complete),
        Err(error) => return Err(raidlab_units::in_one_line(&error)),
    }
    Ok(told.0.expect("the job's cell"))
}

/// Requests of each operation that has a row.
fn counts(cell: &CellResult) -> Vec<(Operation, u64)> {
    let rows = cell.rows.iter();
    rows.map(|row| (row.op, row.total_ios)).collect()
}

fn fact<'a>(observations: &'a [Observation], name: &str) -> Option<&'a str> {
    let found = observations.iter().find(|fact| fact.name == name);
    found.map(|fact| fact.value.as_str())
}

const TRIMS: &str = "--rw=randtrim --bs=64k --size=64m";

#[test]
fn discards_have_rows_where_somebody_takes_them() {
    for subject in ["md", "md-raid1-clean", "md-raid0"] {
        let cell = run(subject, "ssd950pro", 2, TRIMS).expect("runs");
        assert_eq!(counts(&cell), [(Operation::Trim, 1024)], "{subject}");
        let mean = cell.rows[0].latency.mean_ns;
        // The overhead of a command and nothing else, as its file says.
        assert!((20_000.0..25_000.0).contains(&mean), "{subject}: {mean}");
    }
    let both = "--rw=trimwrite --bs=64k --size=64m";
    let cell = run("md", "ssd950pro", 2, both).expect("runs");
    let expected = [(Operation::Write, 1024), (Operation::Trim, 1024)];
    assert_eq!(counts(&cell), expected);
    // A volume frees its own blocks, whatever its disks take.
    let cell = run("openzfs-2.3", "wd4000fyyz", 2, TRIMS).expect("runs");
    assert_eq!(counts(&cell), [(Operation::Trim, 1024)]);
    let members = &cell.rows[0].members;
    assert!(members.iter().all(|member| member.read_ios == 0));
}

/// Linux block/blk-merge.c, `bio_split_discard`: a discard is not cut where reads and writes are.
#[test]
fn a_long_discard_is_one_command_on_a_disk_as_in_an_array() {
    for (subject, members) in [
        ("disk", 1),
        ("md", 2),
        ("md-raid1-clean", 2),
        ("md-raid0", 2),
    ] {
        let long = "--rw=trim --bs=16m --size=16g";
        let cell = run(subject, "ssd950pro", members, long).expect("runs");
        let mean = cell.rows[0].latency.mean_ns;
        // The first one waits for the array's superblock.
        assert!((20_000.0..26_000.0).contains(&mean), "{subject}: {mean}");
        assert_eq!(cell.rows[0].tag_overflows, Some(0), "{subject}");
    }
}

#[test]
fn where_nobody_takes_discards_a_job_is_refused_before_it_runs() {
    let refused = run("md", "wd4000fyyz", 2, TRIMS).expect_err("hard disks");
    assert!(
        refused.contains("job `discard` discards blocks, and none of the disks takes discards"),
        "{refused}"
    );
    let refused = run("md-raid5-clean", "ssd950pro", 3, TRIMS).expect_err("parity");
    assert!(
        refused.contains("`devices_handle_discard_safely`"),
        "{refused}"
    );
    // Emulated zones are emptied without the device, which the null engine has not.
    for fio in [
        "--rw=randtrim --bs=1m --zonemode=zbd --zonesize=1m --size=64m",
        "--ioengine=null --rw=trim --bs=64k --size=1m",
    ] {
        run("md", "wd4000fyyz", 2, fio).expect("nothing reaches a disk");
    }
}

#[test]
fn what_a_job_found_out_of_itself_is_a_fact() {
    let steady = "--rw=randread --bs=4k --ioengine=libaio --iodepth=8 --time_based --runtime=300 \
                  --ss=iops:20% --ss_dur=5s";
    let cell = run("md", "wd4000fyyz", 2, steady).expect("runs");
    let facts = &cell.records.observations;
    assert_eq!(fact(facts, "tool.steadystate attained"), Some("1"));
    let criterion = fact(facts, "tool.steadystate criterion").expect("a value");
    assert!(criterion.ends_with('%'), "{criterion}");
    assert!(cell.rows[0].runtime_ns < 300_000_000_000);

    let kept = "--rw=randread --bs=4k --ioengine=libaio --iodepth=32 --latency_target=60ms \
                --latency_window=2s --latency_percentile=95";
    let cell = run("md", "wd4000fyyz", 2, kept).expect("runs");
    let facts = &cell.records.observations;
    let depth = fact(facts, "tool.latency_depth").expect("a depth");
    assert!((2..32).contains(&depth.parse::<u32>().expect("a number")));
    assert_eq!(fact(facts, "tool.latency_depth settled"), Some("1"));

    let zones = "--rw=randwrite --bs=64k --zonemode=zbd --zonesize=1m --size=8z --io_size=16m";
    let cell = run("md", "wd4000fyyz", 2, zones).expect("runs");
    let facts = &cell.records.observations;
    let resets = fact(facts, "tool.zone_resets").expect("a count");
    assert!((1..16).contains(&resets.parse::<u32>().expect("a number")));
}
