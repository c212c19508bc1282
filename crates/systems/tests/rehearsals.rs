//! Plays what `examples/rehearse` once did on real machines against what they
//! said: every command of a plan must be one that was run then, and every
//! answer is understood as it was then.
//!
//! The transcripts under `data` were recorded on Linux 6.18 with btrfs-progs
//! 6.2 (btrfs).

#[path = "../examples/rehearse/play.rs"]
mod play;

use play::Rehearsal;
use raidlab_shell::Recorded;
use raidlab_systems::{ArraySpec, Built, Member};
use raidlab_units::Bytes;

fn replay(spec: &str, transcript: &str, folder: &str, devices: &[&str], size: u64) -> String {
    let spec: ArraySpec = toml::from_str(spec).expect("a spec");
    let machine = Recorded::from_transcript("recorded", transcript).expect("a transcript");
    let array = Built {
        name: format!("{}7", play::PREFIX),
        members: devices
            .iter()
            .map(|device| Member {
                device: (*device).to_owned(),
                size: Bytes(size),
                backing: None,
            })
            .collect(),
        folder: folder.to_owned(),
    };
    let mut rehearsal = Rehearsal {
        system: spec.system(),
        machine: &machine,
        array: &array,
        pause: || (),
        seen: String::new(),
    };
    rehearsal.play().expect("plays to the end");
    rehearsal.seen
}

#[test]
fn btrfs_raid1_of_three() {
    let seen = replay(
        include_str!("data/btrfs-raid1.toml"),
        include_str!("data/btrfs-raid1.jsonl"),
        "/mnt/rehearsal",
        &["/dev/loop0", "/dev/loop1", "/dev/loop2"],
        2 << 30,
    );
    insta::assert_snapshot!("btrfs-raid1", seen);
}
