//! Devices whose server was killed.
//!
//! When a server ends, the driver fails the requests under way and removes the block device; the
//! character device and its number stay until they are deleted. Our devices carry a mark in a field
//! that the driver keeps for servers, so that the next server can clean them up and leave others'
//! alone. A device that is just being added has no server yet either, but its character device
//! cannot be opened twice, and our servers wait for each other (`Control::take_turn`).

use super::control::{CommandError, Control};
use super::wire::{DeviceInformation, STATE_DEAD};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The mark of raidlab's devices in their information.
pub(super) const MARK: u64 = u64::from_le_bytes(*b"raidlab\0");

/// The longest time until a killed server is gone, and that of a deletion.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// The folder of the driver's devices.
const DEVICES: &str = "/sys/class/ublk-char";

/// Returns the path of the character device of a number.
pub(super) fn character_path(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/ublkc{number}"))
}

/// Returns the numbers of all devices, in order.
fn numbers(folder: &Path) -> Vec<u32> {
    let mut numbers: Vec<u32> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| number_of(entry.file_name().to_str()?))
        .collect();
    numbers.sort_unstable();
    numbers
}

fn number_of(name: &str) -> Option<u32> {
    name.strip_prefix("ublkc")?.parse().ok()
}

/// Deletes the devices that killed servers of ours have left. Returns the numbers of those that are
/// gone, and of those that could not be deleted, as their block devices are still open or mounted.
pub(super) fn sweep(control: &mut Control) -> Result<(Vec<u32>, Vec<u32>), CommandError> {
    let (mut gone, mut held) = (Vec::new(), Vec::new());
    for number in numbers(Path::new(DEVICES)) {
        if !is_left(control, number)? {
            continue;
        }
        match control.delete(number, PATIENCE) {
            Ok(()) | Err(CommandError::Refused(Errno::NODEV)) => gone.push(number),
            Err(CommandError::Slow | CommandError::Refused(Errno::INTR)) => {
                held.push(number);
                // The command that was given up blocks the ring.
                *control = control.again()?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok((gone, held))
}

/// Whether a device is ours and its server is gone; waits for a server that is just ending.
fn is_left(control: &mut Control, number: u32) -> Result<bool, CommandError> {
    let until = Instant::now() + PATIENCE;
    loop {
        let information = match control.information(number) {
            Ok(information) => information,
            // The device may belong to another program, or be deleted meanwhile.
            Err(CommandError::Refused(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        match judge(&information, process_lives, || open_character(number)) {
            Verdict::Left => return Ok(true),
            Verdict::Going if Instant::now() < until => std::thread::sleep(PAUSE),
            Verdict::Going | Verdict::InUse => return Ok(false),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The device belongs to another program, or a server serves it.
    InUse,
    /// The server is dead, and the kernel has not finished its end.
    Going,
    /// The device was raidlab's, and no server is left for it.
    Left,
}

fn judge(
    information: &DeviceInformation,
    lives: impl Fn(i32) -> bool,
    open: impl Fn() -> io::Result<File>,
) -> Verdict {
    if information.mark != MARK {
        return Verdict::InUse;
    }
    if information.state != STATE_DEAD {
        return match lives(information.process) {
            true => Verdict::InUse,
            false => Verdict::Going,
        };
    }
    match open() {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Verdict::InUse,
        _ => Verdict::Left,
    }
}

fn process_lives(process: i32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

/// Opens a character device, whose node may not exist yet.
pub(super) fn open_character(number: u32) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(character_path(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ublk::wire::ANY_NUMBER;

    fn ours(state: u16, process: i32) -> DeviceInformation {
        DeviceInformation {
            state,
            process,
            device: ANY_NUMBER,
            mark: MARK,
            ..DeviceInformation::default()
        }
    }

    fn opened() -> io::Result<File> {
        File::open("/dev/null")
    }

    fn busy() -> io::Result<File> {
        Err(io::ErrorKind::ResourceBusy.into())
    }

    #[test]
    fn only_names_of_character_devices_count() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["ublkc10", "ublkc2", "ublkb2", "ublkc", "ublkc-1", "ublkcx"] {
            std::fs::write(folder.path().join(name), "").expect("a file");
        }
        assert_eq!(numbers(folder.path()), [2, 10]);
        assert_eq!(numbers(&folder.path().join("nowhere")), [0_u32; 0]);
    }

    #[test]
    fn a_dead_device_of_ours_is_left() {
        let verdict = judge(&ours(STATE_DEAD, -1), |_| false, opened);
        assert_eq!(verdict, Verdict::Left);
    }

    #[test]
    fn others_devices_are_let_be() {
        let mut theirs = ours(STATE_DEAD, -1);
        theirs.mark = 0;
        assert_eq!(judge(&theirs, |_| false, opened), Verdict::InUse);
    }

    #[test]
    fn one_that_is_just_added_is_in_use() {
        let verdict = judge(&ours(STATE_DEAD, -1), |_| false, busy);
        assert_eq!(verdict, Verdict::InUse);
    }

    #[test]
    fn a_live_device_is_its_servers_while_that_lives() {
        let live = STATE_DEAD + 1;
        let of = |lives: bool| judge(&ours(live, 7), |process| process == 7 && lives, opened);
        assert_eq!(of(true), Verdict::InUse);
        assert_eq!(of(false), Verdict::Going);
    }
}
