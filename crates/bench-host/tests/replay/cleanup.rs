//! What a killed run has left, taken down again.

use super::{TRANSCRIPT, machine, recorded};
use raidlab_bench_host::{Cleaned, Machine, Marks, Tunable, cleanup, forget_if_clean};
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

/// `raidlab create` calls an array `raidlab` unless told another name, and it may well lie on
/// disks that a run had before. What a run makes has a number.
#[test]
fn what_is_called_otherwise_is_no_run_s() {
    let mut marks = marks_of_both();
    marks.trial_files.clear();
    for label in ["raidlab", "raidlab-photos", "raidlab0a"] {
        let machine = || labelled(label, &marks, &inventory_lines()).file("/proc/self/mounts", "");
        let (recorded, cleaned) = clean(machine());
        assert_eq!(cleaned, Cleaned::default(), "{label}");
        let wiped = |command: &String| command.contains("wipefs --all");
        assert!(!recorded.commands().iter().any(wiped), "{label}");
        // Nor does it keep what was written down of a run that has ended.
        let recorded = Arc::new(machine());
        let target: Arc<dyn Target> = Arc::clone(&recorded) as Arc<dyn Target>;
        forget_if_clean(&Machine::behind(target).unwrap()).unwrap();
        let last = recorded.commands().pop().unwrap();
        assert_eq!(last, "rm -f -- /var/lib/raidlab-run.json", "{label}");
    }
}

/// Whoever has mounted it did so after the run.
#[test]
fn what_is_mounted_where_no_run_mounts_is_left_alone() {
    let mut marks = marks_of_both();
    marks.trial_files.clear();
    let first = r#""text":"25 24 0:23 "#;
    let mount = r#""text":"29 1 7:0 / /srv/photos rw - btrfs /dev/loop0 rw\n25 24 0:23 "#;
    let transcript = inventory_lines();
    assert!(transcript.contains(first));
    let machine = labelled("raidlab0", &marks, &transcript.replace(first, mount));
    let (recorded, cleaned) = clean(machine.file("/proc/self/mounts", ""));
    assert_eq!(
        cleaned.left_alone,
        [
            "btrfs raid1 raidlab0 on /dev/loop0, /dev/loop1: it is mounted on /srv/photos, where \
             no run mounts anything"
        ]
    );
    assert!(cleaned.removed.is_empty(), "{:?}", cleaned.removed);
    let takes_down = |one: &String| one.starts_with("umount") || one.contains("wipefs --all");
    assert!(!recorded.commands().iter().any(takes_down));
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
        let words = format!("the run's value in {path}, which is `mq-deadline` again");
        assert_eq!(cleaned.removed.contains(&words), written);
        written
    };
    marks.tunables = vec![tunable("mq-deadline", BOOT)];
    assert!(restored(&marks, "none mq-deadline [kyber]\n"));
    assert!(!restored(&marks, "none [mq-deadline] kyber\n"));
    marks.tunables = vec![tunable("mq-deadline", "another")];
    assert!(!restored(&marks, "none mq-deadline [kyber]\n"));
}

/// After a power cut the system has assembled the array by itself, as `/dev/md127`.
#[test]
fn cleanup_stops_an_array_by_the_name_that_it_has_now() {
    let array = r#"\"name\": \"md127\", \"kname\": \"md127\", \"type\": \"raid1\", \"size\": 1"#;
    let under = |disk: &str| {
        let own = format!(r#"\"name\": \"{disk}\","#);
        (
            own.clone(),
            format!(r#"{own} \"children\": [{{{array}}}],"#),
        )
    };
    let mut transcript = inventory_lines();
    for (from, to) in ["loop0", "loop1"].map(under) {
        assert!(transcript.contains(&from));
        transcript = transcript.replace(&from, &to);
    }
    let scan = Command::reads(
        "mdadm",
        ["--examine", "--scan", "--verbose", "--config=partitions"],
    );
    let found = "ARRAY /dev/md/raidlab0  level=raid1 metadata=1.2 num-devices=2 UUID=1:2:3:4 \
                 name=any:raidlab0\n   devices=/dev/loop0,/dev/loop1\n";
    let stop = Command::changes("mdadm", ["--stop", "/dev/md127"]);
    let disks = ["--all", "/dev/loop0", "/dev/loop1"];
    let mut marks = marks_of_both();
    marks.trial_files.clear();
    let marks = serde_json::to_string(&marks).unwrap();
    let mut machine = super::from(&transcript)
        .file("/var/lib/raidlab-run.json", marks)
        .file("/proc/self/mounts", "")
        .folder("/proc", &[])
        .folder("/sys/block", &[])
        .folder("/sys/class/block/md127/holders", &[])
        .folder("/sys/fs/bcache", &[])
        .says(&marked(), "")
        .says(&scan, found)
        .says(&scan, "")
        .says(&stop, "")
        .says(&Command::changes("wipefs", disks), "")
        .says(&forget(), "");
    for program in ["btrfs", "zpool", "zfs", "lvm", "vgs", "lvs", "pvs"] {
        machine = machine.lacks(program);
    }
    let (recorded, cleaned) = clean(machine);
    assert_eq!(cleaned.removed, ["md raid1 raidlab0"]);
    let commands = recorded.commands();
    let place = |words: &str| commands.iter().position(|one| one == words);
    assert!(place("mdadm --stop /dev/md127") < place("wipefs --all /dev/loop0 /dev/loop1"));
    assert!(place("mdadm --stop /dev/md127").is_some(), "{commands:?}");
}

/// What looks for processes of a run.
fn marked() -> Command {
    let script = "grep -lzxF -e \"$1\" /proc/[0-9]*/environ 2>/dev/null";
    Command::reads("sh", ["-c", script, "sh", "RAIDLAB_RUN=host"])
}

/// What removes the marks.
fn forget() -> Command {
    Command::changes("rm", ["-f", "--", "/var/lib/raidlab-run.json"])
}

/// A look at the machine, as when the run began.
fn inventory_lines() -> String {
    let lines: Vec<&str> = TRANSCRIPT.lines().take(INVENTORY_LINES).collect();
    lines.join("\n")
}

/// This start of the machine.
const BOOT: &str = "7d3f7c1e-0a58-4c7e-9f5e-1f1a4c0b9a11";

/// Lines of the transcript that are a look at the machine.
const INVENTORY_LINES: usize = 30;

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
    labelled("raidlab0", marks, &inventory_lines())
}

/// The same with another label on the file system, or on a machine that looks otherwise.
fn labelled(label: &str, marks: &Marks, transcript: &str) -> Recorded {
    let marks = serde_json::to_string(marks).unwrap();
    let show = "Label: 'LABEL'  uuid: 3d323ebd-70f5-4313-8541-5bfe4498ab18\n\
                \tTotal devices 2 FS bytes used 315375616\n\
                \tdevid    1 size 536870912 used 503316480 path /dev/loop0\n\
                \tdevid    2 size 536870912 used 337117184 path /dev/loop1\n\n";
    let find = Command::reads("btrfs", ["filesystem", "show", "--raw"]);
    let folder = "/run/raidlab/raidlab0";
    let file = "/srv/trial/raidlab-disk-0.img";
    let losetup = Command::reads(
        "losetup",
        ["--associated", file, "--noheadings", "--output", "NAME"],
    );
    let mut machine = super::from(transcript)
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
        .says(&marked(), "")
        .says(&find, show.replace("LABEL", label))
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
        .says(&forget(), "");
    for program in ["mdadm", "zpool", "zfs", "lvm", "vgs", "lvs", "pvs"] {
        machine = machine.lacks(program);
    }
    machine
}
