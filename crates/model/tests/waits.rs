//! A wait that is leapt over ends as the simulated one does.

mod rows;

use raidlab_lab::{Choices, Suite};
use raidlab_store::Measurement;

/// A disk of 12 GB with the whole rate curve of a large one, so that a rebuild takes a
/// minute and a half.
fn small_disk() -> String {
    let large = include_str!("../../../disks/wd4000fyyz.toml");
    let capacity = large
        .lines()
        .find(|line| line.starts_with("capacity_sectors"))
        .expect("a capacity");
    let name = large
        .lines()
        .find(|line| line.starts_with("name"))
        .expect("a name");
    let small = "capacity_sectors = { value = 24000000, source = \"this test\" }";
    large.replace(capacity, small).replace(name, "name = \"small\"")
}

/// The rows of a subject that waits so while member 1 is rebuilt, with leaps and without.
fn both(subject: &str, members: usize, wait: &str) -> [Vec<Measurement>; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("small.toml"), small_disk()).expect("a file");
    let disks = vec!["\"./small.toml\""; members].join(", ");
    let text = format!(
        r#"schema = 1
name = "waits"
title = "waits"
description = "a rebuild without load, and then a job"
source = "this test"
disks = [{disks}]
subjects = ["{subject}"]

[[step]]
event = "remove"
member = 1

[[step]]
event = "insert"
member = 1

[[step]]
{wait}

[[step]]
job = "after"
title = "random read 4 KiB"
class = "random-read"
fio = "--rw=randread --bs=4k --iodepth=1 --size=8m --direct=1"
"#
    );
    let path = folder.path().join("waits.toml");
    std::fs::write(&path, text).expect("a file");
    let suite = Suite::load(&path.to_string_lossy()).expect("a suite");
    [&[][..], &["leaps"]].map(|without| {
        let choices = Choices {
            fits: vec!["strict".to_owned()],
            seed: 1,
            without: without.iter().map(ToString::to_string).collect(),
            ..Choices::default()
        };
        let experiments = suite.experiments(&suite.subjects, &choices);
        rows::of(&experiments[0]).expect("runs")
    })
}

fn within(one: f64, other: f64, share: f64) -> bool {
    (one / other - 1.0).abs() <= share
}

#[test]
fn half_a_rebuild_is_where_the_simulated_one_is() {
    for (subject, members) in [
        ("md-raid1-clean", 2),
        ("md-raid5-clean", 4),
        ("md-raid6-clean", 4),
        ("md-raid10-clean", 4),
    ] {
        let [leapt, slow] = both(subject, members, "wait = \"40s\"");
        let percent = |rows: &[Measurement]| rows[0].sync_percent_start.expect("it goes on");
        let (leapt, slow) = (percent(&leapt), percent(&slow));
        assert!((20.0..80.0).contains(&slow), "{subject}: {slow} %");
        assert!(within(leapt, slow, 0.01), "{subject}: {leapt} and {slow} %");
    }
}
