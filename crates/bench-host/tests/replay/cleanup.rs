//! What a killed run has left, taken down again.

use super::{TRANSCRIPT, machine, recorded};
use raidlab_bench_host::{Cleaned, Machine, Marks, Tunable, cleanup};
use raidlab_shell::{Command, Recorded, Target};
use std::sync::Arc;

#[test]
fn cleanup_takes_down_what_it_finds_from_the_top() {
    let (recorded, cleaned) = cleaned(&marks_of_both());
    assert_eq!(
        cleaned.removed,
        [
            "mount /run/raidlab/raidlab0",
            "btrfs raid1 raidlab0",
            "/dev/loop0 on /srv/trial/raidlab-disk-0.img",
            "/srv/trial/raidlab-disk-0.img",
        ]
    );
    assert!(cleaned.left_alone.is_empty());
    let last = recorded.commands().pop().unwrap();
    assert_eq!(last, "rm -f -- /var/lib/raidlab-run.json");
}

#[test]
fn cleanup_leaves_alone_what_only_has_a_name_like_ours() {
    // Loop device 1 was not to be lost by any run.
    let mut marks = marks_of_both();
    marks.disks.truncate(1);
    let (recorded, cleaned) = cleaned(&marks);
    assert_eq!(
        cleaned.left_alone,
        ["btrfs raid1 raidlab0 on /dev/loop0, /dev/loop1: no run here was to use these disks"]
    );
    let wiped = |command: &String| command.contains("wipefs --all");
    assert!(!recorded.commands().iter().any(wiped));
    // Nothing is written down: nothing is ours, not even the files.
    let (recorded, cleaned) = self::cleaned(&Marks::default());
    assert_eq!(cleaned.removed, ["mount /run/raidlab/raidlab0"]);
    assert!(!recorded.commands().iter().any(wiped));
    assert!(!recorded.commands().iter().any(|one| one.starts_with("rm ")));
}

/// A run that was killed has left `kyber` in force: what was there before is put back, but
/// not after another start, when the name may be another disk's, and not twice.
#[test]
fn cleanup_puts_a_scheduler_back() {
    let path = "/sys/block/loop0/queue/scheduler";
    let mut marks = marks_of_both();
    let tunable = |before: &str, boot: &str| Tunable {
        path: path.to_owned(),
        before: before.to_owned(),
        boot: boot.to_owned(),
    };
    let restored = |marks: &Marks, listed: &str| {
        let tee = Command::changes("tee", [path]).input("mq-deadline\n");
        let machine = left_behind(marks).file(path, listed).says(&tee, "");
        let (recorded, cleaned) = clean(machine);
        let written = recorded.commands().contains(&format!("tee {path}"));
        let words = format!("what was in {path}: mq-deadline again");
        assert_eq!(cleaned.removed.contains(&words), written);
        written
    };
    marks.tunables = vec![tunable("mq-deadline", BOOT)];
    assert!(restored(&marks, "none mq-deadline [kyber]\n"));
    assert!(!restored(&marks, "none [mq-deadline] kyber\n"));
    marks.tunables = vec![tunable("mq-deadline", "another")];
    assert!(!restored(&marks, "none mq-deadline [kyber]\n"));
}

/// This start of the machine.
const BOOT: &str = "7d3f7c1e-0a58-4c7e-9f5e-1f1a4c0b9a11";

/// Lines of the transcript that are a look at the machine.
const INVENTORY_LINES: usize = 29;

/// What a run on both trial disks writes down; it made the first one's file.
fn marks_of_both() -> Marks {
    let machine = machine(&recorded());
    let disks = machine.disks().iter();
    Marks {
        disks: disks.map(|chosen| chosen.identity.clone()).collect(),
        trial_files: vec!["/srv/trial/raidlab-disk-0.img".to_owned()],
        tunables: Vec::new(),
    }
}

/// A machine with what a run has left, cleaned up.
fn cleaned(marks: &Marks) -> (Arc<Recorded>, Cleaned) {
    clean(left_behind(marks))
}

fn clean(machine: Recorded) -> (Arc<Recorded>, Cleaned) {
    let recorded = Arc::new(machine);
    let target: Arc<dyn Target> = Arc::clone(&recorded) as Arc<dyn Target>;
    let machine = Machine::behind(target).unwrap();
    let cleaned = cleanup(&machine).unwrap();
    (recorded, cleaned)
}

/// A machine with what a run has left.
fn left_behind(marks: &Marks) -> Recorded {
    let marks = serde_json::to_string(marks).unwrap();
    let show = "Label: 'raidlab0'  uuid: 3d323ebd-70f5-4313-8541-5bfe4498ab18\n\
                \tTotal devices 2 FS bytes used 315375616\n\
                \tdevid    1 size 536870912 used 503316480 path /dev/loop0\n\
                \tdevid    2 size 536870912 used 337117184 path /dev/loop1\n\n";
    let find = Command::reads("btrfs", ["filesystem", "show", "--raw"]);
    let marked = Command::reads(
        "sh",
        [
            "-c",
            "grep -lzxF -e \"$1\" /proc/[0-9]*/environ 2>/dev/null",
            "sh",
            "RAIDLAB_RUN=host",
        ],
    );
    let folder = "/run/raidlab/raidlab0";
    let file = "/srv/trial/raidlab-disk-0.img";
    let losetup = Command::reads(
        "losetup",
        ["--associated", file, "--noheadings", "--output", "NAME"],
    );
    // As the machine was looked at when the run began.
    let inventory: Vec<&str> = TRANSCRIPT.lines().take(INVENTORY_LINES).collect();
    let mut machine = Recorded::from_transcript("localhost", &inventory.join("\n"))
        .unwrap()
        .file("/var/lib/raidlab-run.json", marks)
        .file("/proc/sys/kernel/random/boot_id", format!("{BOOT}\n"))
        .file(
            "/proc/self/mounts",
            format!("/dev/loop0 {folder} btrfs rw 0 0\n"),
        )
        .file(
            "/proc/mounts",
            format!("/dev/loop0 {folder} btrfs rw 0 0\n"),
        )
        .folder("/proc", &[])
        .folder("/sys/block", &[])
        .folder("/sys/fs/bcache", &[])
        .folder("/srv/trial", &["raidlab-disk-0.img", "raidlab-disk-7.img"])
        .says(&marked, "")
        .says(&find, show)
        .says(&find, "")
        .says(&Command::changes("umount", [folder]), "")
        .says(
            &Command::changes("wipefs", ["--all", "/dev/loop0", "/dev/loop1"]),
            "",
        )
        .says(&losetup, "/dev/loop0\n")
        .says(&losetup, "")
        .says(&Command::changes("losetup", ["--detach", "/dev/loop0"]), "")
        .says(&Command::changes("rm", ["-f", "--", file]), "")
        .says(
            &Command::changes("rm", ["-f", "--", "/var/lib/raidlab-run.json"]),
            "",
        );
    for program in ["mdadm", "zpool", "zfs", "lvm", "vgs", "lvs", "pvs"] {
        machine = machine.lacks(program);
    }
    machine
}
