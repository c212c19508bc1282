//! The properties of disks that virtio has no word for: whether a disk turns, and whether it is
//! an NVMe drive.
//!
//! Linux takes each disk of virtio for a turning one with one hardware queue. The word
//! `raidlab_disks=nsr` on the kernel's command line has a letter for each disk, and reaches the
//! first program in its environment, without a system call. Where all disks turn there is no such
//! word, and nothing is done. The settings for the others (below `/sys/block`):
//!
//! - Flash does not turn: `rotational` is 0.
//! - An NVMe drive has no scheduler (`elevator_get_default` in `block/elevator.c`: one hardware
//!   queue gets mq-deadline, several get none).
//! - The guest has one queue depth for all its disks (`virtio_blk.queue_depth`), the largest of
//!   theirs. One beside an NVMe drive is held to the 32 commands of SATA, and its scheduler to
//!   twice as many requests, as it would have of itself (`blk_mq_init_sched`). Without a scheduler
//!   `nr_requests` is the number of tags, with one that of its requests, so it is written twice.

use std::env;
use std::fs;
use std::io;
use std::path::Path;

/// The name of the word on the kernel's command line, which `=` and the letters follow.
const WORD: &str = "raidlab_disks";

/// The number of commands that a SATA disk queues.
pub(crate) const SATA_TAGS: usize = 32;

/// The kind of a disk, as its host sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A mechanical disk, whose platters turn.
    Rotating,
    /// Flash behind SATA.
    Flash,
    /// Flash behind PCI Express.
    Nvme,
}

impl Kind {
    const LETTERS: [(char, Self); 3] =
        [('r', Self::Rotating), ('s', Self::Flash), ('n', Self::Nvme)];

    fn letter(self) -> char {
        let own = Self::LETTERS.iter().find(|(_, kind)| *kind == self);
        own.map_or('r', |(letter, _)| *letter)
    }

    fn of(letter: char) -> Option<Self> {
        let own = Self::LETTERS.iter().find(|(own, _)| *own == letter);
        own.map(|(_, kind)| *kind)
    }
}

/// Makes the word for a guest with these disks; none where all of them turn.
pub(crate) fn word(kinds: &[Kind]) -> Option<String> {
    let letters: String = kinds.iter().map(|kind| kind.letter()).collect();
    let all_turn = kinds.iter().all(|kind| *kind == Kind::Rotating);
    (!all_turn).then(|| format!("{WORD}={letters}"))
}

/// Tells the kernel the kinds of disks that the word gives.
pub(super) fn prepare() -> io::Result<()> {
    let letters = env::var(WORD).unwrap_or_default();
    write(Path::new("/sys/block"), &letters)
}

fn write(folder: &Path, letters: &str) -> io::Result<()> {
    for (disk, name, value) in settings(letters) {
        let queue = folder.join(super::device_name(disk)).join("queue");
        fs::write(queue.join(name), value)?;
    }
    Ok(())
}

/// The settings to be written, in order: a disk's number, a file of its queue, a value.
fn settings(letters: &str) -> Vec<(usize, &'static str, String)> {
    let kinds: Vec<Option<Kind>> = letters.chars().map(Kind::of).collect();
    let beside_nvme = kinds.contains(&Some(Kind::Nvme));
    let mut settings = Vec::new();
    for (disk, kind) in kinds.into_iter().enumerate() {
        let mut set = |name, value: &str| settings.push((disk, name, value.to_owned()));
        if kind != Some(Kind::Rotating) {
            set("rotational", "0");
        }
        if kind == Some(Kind::Nvme) {
            set("scheduler", "none");
        } else if beside_nvme {
            set("scheduler", "none");
            set("nr_requests", &SATA_TAGS.to_string());
            set("scheduler", "mq-deadline");
            set("nr_requests", &(2 * SATA_TAGS).to_string());
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kinds: &[Kind]) -> Vec<String> {
        let word = word(kinds).unwrap_or_default();
        let letters = word.strip_prefix("raidlab_disks=").unwrap_or_default();
        let settings = settings(letters).into_iter();
        let words = settings.map(|(disk, name, value)| format!("{disk} {name}={value}"));
        words.collect()
    }

    #[test]
    fn disks_that_turn_are_told_of_in_no_word() {
        assert_eq!(word(&[Kind::Rotating, Kind::Rotating]), None);
        assert_eq!(told(&[Kind::Rotating, Kind::Rotating]), [""; 0]);
    }

    #[test]
    fn flash_does_not_turn_and_nvme_has_no_scheduler() {
        assert_eq!(told(&[Kind::Flash]), ["0 rotational=0"]);
        let nvme = ["0 rotational=0", "0 scheduler=none"];
        assert_eq!(told(&[Kind::Nvme]), nvme);
    }

    #[test]
    fn beside_an_nvme_drive_a_disk_keeps_the_queue_of_its_own_kind() {
        let told = told(&[Kind::Rotating, Kind::Nvme]);
        let queue = [
            "0 scheduler=none",
            "0 nr_requests=32",
            "0 scheduler=mq-deadline",
            "0 nr_requests=64",
        ];
        assert_eq!(told[..4], queue);
        assert_eq!(told[4..], ["1 rotational=0", "1 scheduler=none"]);
    }

    #[test]
    fn each_disk_s_own_queue_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        for disk in ["vda", "vdb"] {
            fs::create_dir_all(folder.path().join(disk).join("queue")).expect("made");
        }
        write(folder.path(), "rn").expect("written");
        let read = |path: &str| fs::read_to_string(folder.path().join(path)).ok();
        assert_eq!(read("vda/queue/rotational"), None);
        assert_eq!(read("vda/queue/scheduler").as_deref(), Some("mq-deadline"));
        assert_eq!(read("vda/queue/nr_requests").as_deref(), Some("64"));
        assert_eq!(read("vdb/queue/rotational").as_deref(), Some("0"));
        assert_eq!(read("vdb/queue/scheduler").as_deref(), Some("none"));
    }
}
