//! Plays what `examples/rehearse` once did on real machines against what they
//! said: every command of a plan must be one that was run then, and every
//! answer is understood as it was then.
//!
//! The transcripts under `data` were recorded there: btrfs on Linux 6.18 with
//! btrfs-progs 6.2 over loop devices; md and LVM on Debian's 6.1.192 in QEMU
//! with mdadm 4.2 and LVM 2.03.16 over RAM disks, without udev. The first line
//! of a spec names the devices. A command of mdadm has a word in it that it lacked
//! then, `--config=partitions`, and a member that is added again was not made
//! write-mostly then: that command was put in. `/proc/mdstat` was not read then, and
//! is empty here.

#[path = "../examples/rehearse/play.rs"]
mod play;

use play::Rehearsal;
use raidlab_shell::Recorded;
use raidlab_systems::{ArraySpec, Built, Member};
use raidlab_units::Bytes;

fn replay(spec: &str, transcript: &str, size: u64) -> String {
    let devices = spec.lines().next().expect("a line of devices");
    let members = devices.split_whitespace().skip(1).map(|device| Member {
        device: device.to_owned(),
        size: Bytes(size),
        backing: None,
        away: false,
    });
    let array = Built {
        name: format!("{}7", play::PREFIX),
        members: members.collect(),
        folder: "/mnt/rehearsal".to_owned(),
    };
    let spec: ArraySpec = toml::from_str(spec).expect("a spec");
    let machine = Recorded::from_transcript("recorded", transcript).expect("a transcript");
    let machine = machine.file("/proc/mdstat", "");
    let mut rehearsal = Rehearsal {
        system: &*spec,
        machine: &machine,
        array: &array,
        pause: || (),
        seen: String::new(),
    };
    let outcome = rehearsal.play();
    assert!(outcome.is_ok(), "{}", rehearsal.seen);
    rehearsal.seen
}

macro_rules! rehearsals {
    ($($test:ident $name:literal $size:expr;)*) => {$(
        #[test]
        fn $test() {
            let seen = replay(
                include_str!(concat!("data/", $name, ".toml")),
                include_str!(concat!("data/", $name, ".jsonl")),
                $size,
            );
            insta::assert_snapshot!($name, seen);
        }
    )*};
}

rehearsals! {
    btrfs_raid1 "btrfs-raid1" 2 << 30;
    md_raid0 "md-raid0" 192 << 20;
    md_raid1 "md-raid1" 192 << 20;
    md_raid5_with_a_spare "md-raid5" 192 << 20;
    md_raid10 "md-raid10" 192 << 20;
    lvm_striped "lvm-striped" 192 << 20;
    lvm_raid1 "lvm-raid1" 192 << 20;
    lvm_raid5 "lvm-raid5" 192 << 20;
}
