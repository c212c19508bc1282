//! Arrays of every level against what theory says of them.
//!
//! The bounds are wide, as theory knows neither queues that stand unevenly full
//! nor stripes that wait for each other; counts of commands are exact but for
//! the few that are in flight at a job's ends and for the bitmap.

use crate::rows;
use crate::waits::small_disk;
use raidlab_bench_model::ModelBench;
use raidlab_lab::{Bench, BenchError, Choices, Files, Suite};
use raidlab_store::Measurement;
use std::fmt::Write;

/// Rows of these steps on so many disks, named or in a file.
fn try_run(
    name: &str,
    subject: &str,
    (disk, disks): (&str, usize),
    steps: &str,
) -> Result<Vec<Measurement>, BenchError> {
    let disks = vec![format!("{disk:?}"); disks].join(", ");
    let mut text = format!(
        "schema = 1\nname = \"levels\"\ntitle = \"levels\"\ndescription = \"\"\n\
         source = \"this test\"\ndisks = [{disks}]\nsubjects = [\"{subject}\"]\n"
    );
    text.push_str(steps);
    let path = format!("{}/levels-{name}.toml", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, text).expect("a file");
    let suite = Suite::load(&path).expect("a suite");
    let choices = Choices {
        fits: vec!["strict".to_owned()],
        seed: 1,
        ..Choices::default()
    };
    let experiments = suite.experiments(&suite.subjects, &choices);
    rows::of(&experiments[0])
}

/// Rows of these steps on so many disks of 4 TB.
fn run(name: &str, subject: &str, disks: usize, steps: &str) -> Vec<Measurement> {
    try_run(name, subject, ("wd4000fyyz", disks), steps).expect("runs")
}

fn job(name: &str, fio: &str) -> String {
    let mut text = String::new();
    let _ = write!(
        text,
        "[[step]]\njob = \"{name}\"\ntitle = \"{name}\"\nclass = \"any\"\nfio = \"{fio} --direct=1\"\n"
    );
    text
}

const IN_SYNC: &str = "[[step]]\nwait = \"sync-done\"\nat_most = \"24h\"\n";

/// `size`: over how much of the array, in fio's words.
fn random(name: &str, rw: &str, depth: u32, size: &str) -> String {
    let fio = format!(
        "--rw={rw} --bs=4k --iodepth={depth} --filesize={size} --time_based --runtime=20 \
         --norandommap"
    );
    job(name, &fio)
}

/// Commands to all members for each request.
fn per_request(row: &Measurement) -> (f64, f64) {
    let reads: u64 = row.members.iter().map(|member| member.read_ios).sum();
    let writes: u64 = row.members.iter().map(|member| member.write_ios).sum();
    let requests = row.total_ios as f64;
    (reads as f64 / requests, writes as f64 / requests)
}

/// Four disks with eight requests each serve not quite four times what one of
/// them does, as now one queue is short and now another. The arm of each has
/// 3 TB to cross.
#[test]
fn random_reads_are_as_many_as_the_disks_serve() {
    let one = run("one", "disk", 1, &random("r", "randread", 8, "3t"));
    for (subject, size) in [
        ("md-raid0", "12t"),
        ("md-raid10-clean", "6t"),
        ("md-raid5", "9t"),
    ] {
        let steps = format!("{IN_SYNC}{}", random("r", "randread", 32, size));
        let all = run(&format!("reads-{subject}"), subject, 4, &steps);
        let factor = all.last().expect("a row").iops / one[0].iops;
        assert!((3.0..4.6).contains(&factor), "{subject}: {factor}");
    }
}

/// A small write on six disks: RAID 5 reads and writes data and P; RAID 6 reads
/// three blocks (either way) and writes data, P and Q; RAID 10 writes twice.
#[test]
fn small_writes_cost_what_their_level_says() {
    let mut rates = Vec::new();
    for (subject, reads, writes) in [
        ("md-raid0", 0.0, 1.0),
        ("md-raid10-clean", 0.0, 2.0),
        ("md-raid5", 2.0, 2.0),
        ("md-raid6-clean", 3.0, 3.0),
    ] {
        let steps = format!("{IN_SYNC}{}", random("w", "randwrite", 64, "3t"));
        let rows = run(&format!("writes-{subject}"), subject, 6, &steps);
        let row = rows.last().expect("a row");
        let found = per_request(row);
        // The bitmap of `md-raid5` writes a page of bits for nearly every one.
        let bitmap = if subject == "md-raid5" { 6.5 } else { 0.0 };
        let slack = 0.08;
        assert!((found.0 - reads).abs() < slack, "{subject}: {found:?}");
        let range = writes - slack..writes + slack + bitmap;
        assert!(range.contains(&found.1), "{subject}: {found:?}");
        rates.push(row.iops);
    }
    // Commands to a disk are not all alike: those of a read-modify-write hit the
    // same place twice, one revolution apart. Only the order is theory's.
    assert!(rates[0] > 1.5 * rates[1], "{rates:?}");
    assert!(rates[1] > 1.5 * rates[3], "{rates:?}");
}

/// A stream over a RAID 5 of six runs at the pace of five disks at most, and not
/// far below: the platters pass over the parity.
#[test]
fn a_stream_is_as_fast_as_the_data_disks() {
    let one = run(
        "stream-one",
        "disk",
        1,
        &job(
            "s",
            "--rw=read --bs=1m --iodepth=4 --filesize=1t --time_based --runtime=10",
        ),
    );
    let steps = format!(
        "{IN_SYNC}{}",
        job(
            "s",
            "--rw=read --bs=1m --iodepth=4 --filesize=1t --time_based --runtime=10"
        )
    );
    let all = run("stream-raid5", "md-raid5", 6, &steps);
    let factor = all.last().expect("a row").bytes_per_second / one[0].bytes_per_second;
    assert!((4.5..5.05).contains(&factor), "{factor}");
}

/// 6 GB cannot be filled at more than the outer zone's 171 MB/s, 35 seconds, nor
/// should they take much more than twice the mean zone's 43 seconds, though a job of 20
/// seconds takes its part. Meanwhile the array serves.
#[test]
fn a_member_comes_back_in_the_time_that_its_disk_takes() {
    let steps = |limit: &str| {
        format!(
            "[[step]]\nevent = \"remove\"\nmember = 1\n{}\
             [[step]]\nevent = \"insert\"\nmember = 1\n{}\
             [[step]]\nwait = \"sync-done\"\nat_most = \"{limit}\"\n{}",
            random("degraded", "randread", 16, "9g"),
            random("rebuilding", "randread", 16, "9g"),
            random("whole", "randread", 16, "9g")
        )
    };
    let disk = format!("{}/levels-small.toml", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&disk, small_disk(6)).expect("a file");
    let subjects = ["md-raid6-clean", "md-raid10-clean"];
    for subject in subjects {
        let name = format!("recovery-{subject}");
        let early = try_run(&name, subject, (&disk, 4), &steps("15s"));
        assert!(early.is_err(), "{subject} is whole after 35 seconds");
        let rows = try_run(&name, subject, (&disk, 4), &steps("90s")).expect("runs");
        let health: Vec<&str> = rows
            .iter()
            .map(|row| row.array_state_start.as_str())
            .collect();
        assert_eq!(health, ["[U_UU]", "[U_UU]", "[UUUU]"], "{subject}");
        assert!(rows[1].sync_percent_start.is_some(), "{subject}");
        assert!(
            rows[1].iops < rows[2].iops,
            "{subject}: the rebuild takes its part"
        );
        assert!(rows[2].sync_percent_start.is_none(), "{subject}");
    }
}

/// A check reads all members as fast as they go while nothing else does, and steps
/// aside for jobs; it changes nothing.
#[test]
fn a_check_reads_all_members_and_leaves_jobs_their_part() {
    let wait = "[[step]]\nwait = \"5s\"\n";
    let steps = format!(
        "{}[[step]]\nevent = \"check\"\n{wait}{}",
        random("alone", "randread", 8, "3t"),
        random("beside", "randread", 8, "3t")
    );
    for subject in [
        "md-raid1-clean",
        "md-raid5-clean",
        "md-raid6-clean",
        "md-raid10-clean",
    ] {
        let rows = run(&format!("check-{subject}"), subject, 4, &steps);
        assert!(rows[0].sync_percent_start.is_none(), "{subject}");
        let percent = rows[1].sync_percent_start.expect("a check runs");
        assert!((0.005..0.1).contains(&percent), "{subject}: {percent}");
        let kept = rows[1].iops / rows[0].iops;
        assert!((0.2..0.97).contains(&kept), "{subject}: {kept}");
        for member in &rows[1].members {
            assert!(member.read_ios > 0 && member.write_ios == 0, "{subject}");
        }
    }
}

#[test]
fn every_cell_held_back_can_be_modelled() {
    let files = Files::default();
    for draw in 0..4 {
        let suite = Suite::load_draw(&files, "md-held", draw).expect("built in");
        let choices = Choices {
            fits: vec!["strict".to_owned()],
            seed: 1,
            ..Choices::default()
        };
        for experiment in suite.experiments(&suite.subjects, &choices) {
            let checked = ModelBench::default().check(&experiment);
            checked.unwrap_or_else(|error| panic!("{}: {error:?}", experiment.subject.name));
        }
    }
}
