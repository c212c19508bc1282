//! The argument of `--disk-fault`: a fault of a disk, and its time.

use raidlab_uml_calendar::{Fault, ScheduledFault};
use raidlab_units::{SECTOR_BYTES, Sectors, parse_bytes, parse_duration};

/// The error of a text that is no fault of a disk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no fault of a disk")]
pub struct WrongFault(pub String);

impl WrongFault {
    /// The form in which a fault of a disk is written, for people who wrote one wrongly.
    pub const REMEDY: &str = "say `1:40s:dies`, `1:40s:hangs` or `1:50s:returns`; for sectors \
        `1:40s:unreadable=1g+64k`, from where on and how much, in whole sectors of 512 bytes \
        (also `unreadable-for-good`, `unwritable`)";
}

/// Parses the disk's place among the members with its fault, such as
/// `1:40s:dies` or `1:40s:unreadable=1g+64k`.
///
/// # Errors
/// When the text is not of that form.
pub fn scheduled_fault(text: &str) -> Result<(usize, ScheduledFault), WrongFault> {
    read(text).ok_or_else(|| WrongFault(text.to_owned()))
}

/// The faults of a run, and the subjects that have not the disk of one, in words.
#[must_use]
pub fn faults_in_words(faults: &[String], spared: &[(String, usize)]) -> String {
    let spared: Vec<String> = spared
        .iter()
        .map(|(subject, disk)| format!("`{subject}` has no disk {disk} and is spared"))
        .collect();
    let mut words = format!("Something happens to disks: {}.", faults.join(", "));
    if !spared.is_empty() {
        words += &format!(" Subject {}.", spared.join(", "));
    }
    words
}

fn read(text: &str) -> Option<(usize, ScheduledFault)> {
    let mut words = text.splitn(3, ':');
    let disk = words.next()?.parse().ok()?;
    let at = parse_duration(words.next()?).ok()?;
    let fault = what(words.next()?)?;
    Some((disk, ScheduledFault { at, fault }))
}

fn what(text: &str) -> Option<Fault> {
    let unreadable = |range: &str, repaired_by_writing| {
        let (start, count) = sectors(range)?;
        Some(Fault::Unreadable {
            start,
            count,
            repaired_by_writing,
        })
    };
    match text.split_once('=') {
        None => match text {
            "dies" => Some(Fault::Dies),
            "hangs" => Some(Fault::Hangs),
            "returns" => Some(Fault::Returns),
            _ => None,
        },
        Some(("unreadable", range)) => unreadable(range, true),
        Some(("unreadable-for-good", range)) => unreadable(range, false),
        Some(("unwritable", range)) => {
            let (start, count) = sectors(range)?;
            Some(Fault::Unwritable { start, count })
        }
        Some(_) => None,
    }
}

/// Parses a range such as `1g+64k`: the first sector and the number of sectors.
fn sectors(range: &str) -> Option<(Sectors, Sectors)> {
    let (start, size) = range.split_once('+')?;
    let whole = |text: &str| {
        let bytes = parse_bytes(text).ok()?.0;
        bytes
            .is_multiple_of(SECTOR_BYTES)
            .then_some(Sectors(bytes / SECTOR_BYTES))
    };
    let (start, count) = (whole(start)?, whole(size)?);
    (count.0 > 0).then_some((start, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_units::Nanos;

    #[test]
    fn a_fault_is_of_the_disk_or_of_sectors() {
        let at = Nanos::from_secs(40);
        let (start, count) = (Sectors(2 << 20), Sectors(128));
        let unreadable = |repaired_by_writing| Fault::Unreadable {
            start,
            count,
            repaired_by_writing,
        };
        let cases = [
            ("dies", Fault::Dies),
            ("hangs", Fault::Hangs),
            ("returns", Fault::Returns),
            ("unreadable=1g+64k", unreadable(true)),
            ("unreadable-for-good=1g+64k", unreadable(false)),
            ("unwritable=1g+64k", Fault::Unwritable { start, count }),
        ];
        for (text, fault) in cases {
            let found = read(&format!("1:40s:{text}"));
            assert_eq!(found, Some((1, ScheduledFault { at, fault })), "{text}");
        }
    }

    #[test]
    fn other_words_are_refused_with_an_example() {
        for wrong in [
            "",
            "1:40s",
            "x:40s:dies",
            "1:soon:dies",
            "1:40s:sleeps",
            "1:40s:dies=1g+64k",
            "1:40s:unreadable",
            "1:40s:unreadable=1g",
            "1:40s:unreadable=1g+0",
            "1:40s:unreadable=100+64k",
            "1:40s:unwritable=1g+100",
        ] {
            assert!(scheduled_fault(wrong).is_err(), "{wrong}");
        }
    }
}
