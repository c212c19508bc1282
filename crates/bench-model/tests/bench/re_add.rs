//! A member that comes back gets what it missed, and no more, where there is a bitmap.

use crate::rows;
use raidlab_bench_model::ModelBench;
use raidlab_lab::{Bench, Choices, Experiment, Observer, Suite};
use raidlab_store::{CellResult, Measurement, Records};
use std::path::Path;

/// Superblock and bitmap lie below this sector of a member, and the data above it.
const METADATA_SECTORS: u64 = 1 << 18;

/// A subject of which member 1 is away while chunks of 64 MiB of each member are written. Others
/// than these were written `rest` seconds before, so that their bits are cleared by then or not.
fn experiment(subject: &str, rest: u32, writes: &[(&str, &str)]) -> Experiment {
    let mut text = format!(
        r#"schema = 1
name = "re-add"
title = "re-add"
description = "a member is away for a while"
source = "this test"
disks = ["pm883", "pm883", "pm883", "pm883"]
subjects = [{subject}]
"#
    );
    let mut job = |name: &str, options: &str| {
        text.push_str(&format!(
            "[[step]]\njob = \"{name}\"\ntitle = \"{name}\"\nclass = \"x\"\nqueue = \"fio\"\n\
             fio = \"--ioengine=libaio --direct=1 {options}\"\n"
        ));
        if name == "before" {
            text.push_str(&format!(
                "[[step]]\nwait = \"{rest}s\"\n[[step]]\nevent = \"remove\"\nmember = 1\n"
            ));
        }
    };
    job("before", "--rw=write --bs=1m --offset=40g --size=1g");
    for (index, (offset, size)) in writes.iter().enumerate() {
        let block = if size.ends_with('g') { "1m" } else { "4k" };
        let options =
            format!("--rw=write --bs={block} --iodepth=32 --offset={offset} --size={size}");
        job(&format!("away{index}"), &options);
    }
    text.push_str(
        "[[step]]\nwait = \"1m\"\n[[step]]\nevent = \"re-add\"\nmember = 1\n\
         [[step]]\njob = \"after\"\ntitle = \"after\"\nclass = \"x\"\nqueue = \"fio\"\n\
         fio = \"--rw=randread --bs=4k --rate_iops=1 --time_based --runtime=5m\"\n",
    );
    let suite = Suite::parse("re-add.toml", &text, Path::new("")).expect("a suite");
    let choices = Choices {
        fits: vec!["strict".to_owned()],
        seed: 1,
        ..Choices::default()
    };
    suite.experiments(&suite.subjects, &choices).remove(0)
}

/// What is written while the member is away, in chunks of the bitmap: three whole ones and one
/// of which 4 KiB are written. md's bitmap counts sectors of the members where there is parity,
/// and sectors of the array where there are copies, half of which belong to the member's pair.
#[test]
fn what_a_member_missed_is_copied_and_nothing_else() {
    const CHUNK: u64 = 64 << 20;
    for (name, members, writes, copied) in [
        (
            "md-raid1-clean-bitmap",
            "0, 1",
            [("1g", "192m"), ("20g", "4k")],
            4 * CHUNK,
        ),
        (
            "md-raid5-clean-bitmap",
            "0, 1, 2, 3",
            [("1536m", "576m"), ("30g", "4k")],
            4 * CHUNK,
        ),
        (
            "md-raid6-clean-bitmap",
            "0, 1, 2, 3",
            [("1g", "384m"), ("30g", "4k")],
            4 * CHUNK,
        ),
        (
            "md-raid10-clean-bitmap",
            "0, 1, 2, 3",
            [("1g", "192m"), ("20g", "4k")],
            2 * CHUNK,
        ),
    ] {
        let found = written_after(&experiment(&with_chunks(name, members), 30, &writes));
        assert_eq!(found, copied, "{name}");
    }
}

/// A subject's line whose bitmap has chunks of 64 MiB.
fn with_chunks(name: &str, members: &str) -> String {
    format!(
        "{{ subject = \"{name}\", members = [{members}], build = {{ bitmap_chunk = \"64m\" }} }}"
    )
}

/// Most of such a stream is passed over in one leap.
#[test]
fn what_a_leap_has_written_is_copied_too() {
    let subject = with_chunks("md-raid1-clean-bitmap", "0, 1");
    let experiment = experiment(&subject, 30, &[("64g", "48g")]);
    let mut seen = Seen::default();
    ModelBench::default()
        .run(&experiment, &mut seen)
        .expect("it runs");
    let stream = seen.rows.iter().find(|row| row.job == "away0");
    let stream = stream.expect("its row");
    assert!(stream.leaped_percent > 50.0, "{stream:?}");
    assert_eq!(written_after(&experiment), 48 << 30);
}

/// Bits of what all members have are cleared while one is away too. What is counted as cleared
/// then makes nobody too old, as md does not count it
/// (Linux drivers/md/md-bitmap.c, `bitmap_endwrite`).
#[test]
fn bits_that_are_cleared_meanwhile_do_not_make_a_member_too_old() {
    for (name, members) in [
        ("md-raid1-clean-bitmap", "0, 1"),
        ("md-raid5-clean-bitmap", "0, 1, 2, 3"),
    ] {
        let experiment = experiment(&with_chunks(name, members), 0, &[("1g", "4k")]);
        assert_eq!(written_after(&experiment), 64 << 20, "{name}");
    }
}

/// The rows of an experiment, and when member 1 came back.
#[derive(Default)]
struct Seen {
    rows: Vec<Measurement>,
    back: Option<u64>,
}

impl Observer for Seen {
    fn record(&mut self, records: Records) {
        let back = records.events.iter().find(|event| event.kind == "re-add");
        self.back = self.back.or(back.map(|event| event.at_ns));
    }

    fn cell(&mut self, result: CellResult) {
        self.rows.extend(result.rows);
    }
}

/// The bytes of data that member 1 is written from when it comes back; it is in sync in the end.
fn written_after(experiment: &Experiment) -> u64 {
    let folder = tempfile::tempdir().expect("a folder");
    let bench = ModelBench {
        commands: Some(folder.path().to_owned()),
        ..ModelBench::default()
    };
    let mut seen = Seen::default();
    bench.run(experiment, &mut seen).expect("it runs");
    let last = seen.rows.last().expect("the last job's row");
    assert!(!last.array_state_end.contains('_'), "{last:?}");
    let back = seen.back.expect("it came back");
    let file = std::fs::read_dir(folder.path()).expect("a folder").next();
    let file = file.expect("a file").expect("a file").path();
    let text = std::fs::read_to_string(file).expect("text");
    let written = text.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |field: usize| fields[field].parse::<u64>().expect("a number");
        let is_data = number(4) >= METADATA_SECTORS;
        (number(0) >= back && fields[2] == "1" && fields[3] == "write" && is_data)
            .then(|| number(5) * 512)
    });
    written.sum()
}

/// gmirror has no bitmap, and begins at the front; md without one takes no member back so.
#[test]
fn without_a_bitmap_everything_is_copied_or_nothing_is_done() {
    let writes = [("1g", "1m")];
    let subject = |name: &str| format!("{{ subject = \"{name}\", members = [0, 1] }}");
    let rows = rows::of(&experiment(&subject("gmirror"), 30, &writes)).expect("runs");
    let after = rows.last().expect("the last job's");
    let bytes = after.members[1].sync_bytes.expect("the model knows it");
    assert!(bytes > 10 << 30, "{bytes}");
    let refused = ModelBench::default().check(&experiment(&subject("md-raid1-clean"), 30, &writes));
    let refused = raidlab_units::in_one_line(&refused.expect_err("no bitmap"));
    assert!(refused.contains("re-add.toml:"), "{refused}");
    assert!(refused.contains("write `event = \"insert\"`"), "{refused}");
}
