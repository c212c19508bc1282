//! The state of a file system over several devices.
//!
//! None of the commands reads from the disks: `filesystem show` of a mounted folder,
//! `replace status` and `device stats` query the kernel, `scrub status` also the file in which a
//! running scrub keeps its counts.
//!
//! btrfs goes on with a device whatever its errors are, and only counts them. What a failed write
//! or flush should have left on the device is old there, so such a device has been given up as md
//! gives up a member. Failed reads do not count, as in md: btrfs mends them from another copy by
//! a write, and a device that is dead fails that write, too. Nor do wrong checksums count: they
//! are what a scrub finds and mends.

use super::BtrfsSpec;
use crate::array::{
    ArrayStatus, Built, Health, Member, MemberState, ReadBack, ReadState, Result, SyncKind,
    SyncStatus, SystemError,
};
use crate::mounts::parse_mounts;
use raidlab_shell::{Command, Target, Watched};
use raidlab_units::Bytes;

const SHOW: &str = "btrfs filesystem show";
const REPLACE: &str = "btrfs replace status";
const SCRUB: &str = "btrfs scrub status";
const STATISTICS: &str = "btrfs device stats";

/// A file system in the output of `btrfs filesystem show --raw`.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    label: String,
    devices: Vec<ShownDevice>,
}

#[derive(Debug, PartialEq, Eq)]
struct ShownDevice {
    /// The number of the device, from 1; 0 is the target of a replacement.
    number: u64,
    size: u64,
    /// The path; empty where the device is missing.
    path: String,
}

fn unreadable(source: &str, line: usize, problem: String) -> SystemError {
    SystemError::unreadable(source, line, problem)
}

/// Parses all file systems in the output of `btrfs filesystem show --raw`.
fn parse_show(text: &str) -> Result<Vec<Shown>> {
    let mut found: Vec<Shown> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("Label: ") {
            let quoted = rest.strip_prefix('\'');
            let label = quoted.and_then(|rest| rest.split_once('\''));
            found.push(Shown {
                label: label.map_or("", |(label, _)| label).to_owned(),
                devices: Vec::new(),
            });
        } else if line.starts_with("devid ") {
            let problem = || unreadable(SHOW, index + 1, format!("`{line}` is no device"));
            let device = parse_device(line).ok_or_else(problem)?;
            found.last_mut().ok_or_else(problem)?.devices.push(device);
        }
    }
    Ok(found)
}

/// Parses `devid 2 size 536870912 used 1048576 path /dev/loop1`; a missing device has no path and
/// ends in `MISSING`.
fn parse_device(line: &str) -> Option<ShownDevice> {
    let mut words = line.split_whitespace().skip(1);
    let number = words.next()?.parse().ok()?;
    let size = words.nth(1)?.parse().ok()?;
    let rest: Vec<&str> = words.skip(2).collect();
    let path = match rest.as_slice() {
        ["path", path] if *path != "MISSING" => (*path).to_owned(),
        ["path", .., "MISSING"] | ["path"] => String::new(),
        _ => return None,
    };
    Some(ShownDevice { number, size, path })
}

impl ReadState for BtrfsSpec {
    fn sources(&self, array: &Built) -> Vec<Watched> {
        let folder = array.folder.as_str();
        [
            &["filesystem", "show", "--raw", folder][..],
            &["replace", "status", "-1", folder],
            &["scrub", "status", "--raw", folder],
            &["device", "stats", folder],
        ]
        .into_iter()
        .map(|words| Watched::Command(Command::reads("btrfs", words.iter().copied())))
        .collect()
    }

    fn interpret(&self, array: &Built, contents: &[Option<String>]) -> Result<ArrayStatus> {
        let text = |place: usize| contents.get(place).and_then(Option::as_deref);
        let no_array = || SystemError::no_array(&array.name);
        let shown = parse_show(text(0).ok_or_else(no_array)?)?;
        let shown = shown.first().ok_or_else(no_array)?;
        let replacing = text(1).map(replace_percent).transpose()?.flatten();
        let scrub = text(2).map(scrub_status).transpose()?.flatten();
        let sync = replacing.map_or(scrub, |percent| {
            Some(SyncStatus::of(SyncKind::Recovery, Some(percent)))
        });

        let lost_writes = text(3).map(devices_that_lost_writes).transpose()?;
        let lost_writes = lost_writes.unwrap_or_default();
        let members: Vec<MemberState> = (1..=array.members.len() as u64)
            .map(|number| member(&shown.devices, number, replacing.is_some(), &lost_writes))
            .collect();
        let away = members
            .iter()
            .filter(|state| **state != MemberState::InSync);
        let away = away.count();
        let health = match away {
            0 => Health::Optimal,
            away if away <= self.tolerates() => Health::Degraded,
            _ => Health::Failed,
        };
        Ok(ArrayStatus {
            health,
            members,
            sync,
        })
    }

    fn settings(&self, target: &dyn Target, array: &Built) -> Result<Vec<ReadBack>> {
        super::settings::settings(self, target, array)
    }

    fn find(&self, target: &dyn Target, prefix: &str) -> Result<Vec<Built>> {
        let show = Command::reads("btrfs", ["filesystem", "show", "--raw"]);
        let shown = parse_show(&target.run(&show)?.stdout)?;
        let mounts = parse_mounts(&target.read("/proc/mounts")?);
        let mut found = Vec::new();
        for shown in shown {
            if !shown.label.starts_with(prefix) {
                continue;
            }
            let members: Vec<Member> = shown
                .devices
                .into_iter()
                .filter(|device| !device.path.is_empty())
                .map(|device| Member::found(device.path, Bytes(device.size)))
                .collect();
            let mount = mounts
                .iter()
                .find(|mount| members.iter().any(|member| member.device == mount.device));
            found.push(Built {
                name: shown.label,
                folder: mount.map_or_else(String::new, |mount| mount.folder.clone()),
                members,
            });
        }
        found.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(found)
    }
}

fn member(
    devices: &[ShownDevice],
    number: u64,
    replacing: bool,
    lost_writes: &[&str],
) -> MemberState {
    let there = |number: u64| {
        let mut devices = devices.iter();
        devices.find(|device| device.number == number && !device.path.is_empty())
    };
    match there(number) {
        Some(device) if lost_writes.contains(&device.path.as_str()) => MemberState::Faulty,
        Some(_) => MemberState::InSync,
        None if replacing && there(0).is_some() => MemberState::Recovering,
        None => MemberState::Missing,
    }
}

/// The paths of the devices that failed a write or a flush since their counters were reset, in
/// lines like `[/dev/loop0].write_io_errs    61`. A missing device has `devid:2` for a path.
fn devices_that_lost_writes(text: &str) -> Result<Vec<&str>> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let counter = line
            .strip_prefix('[')
            .and_then(|rest| rest.rsplit_once("]."));
        let Some((path, counter)) = counter else {
            continue;
        };
        let Some((name, count)) = counter.split_once(char::is_whitespace) else {
            continue;
        };
        let problem = || unreadable(STATISTICS, index + 1, format!("`{line}` has no number"));
        let count: u64 = count.trim().parse().map_err(|_| problem())?;
        if count > 0 && matches!(name, "write_io_errs" | "flush_io_errs") {
            found.push(path);
        }
    }
    Ok(found)
}

/// The progress of a replacement, `15.5% done, 0 write errs, 0 uncorr. read errs` while it runs;
/// other lines when there was none, it has ended or was given up.
fn replace_percent(text: &str) -> Result<Option<f64>> {
    let line = text.trim();
    let Some((percent, _)) = line.split_once("% done") else {
        return Ok(None);
    };
    percent
        .parse()
        .map(Some)
        .map_err(|_| unreadable(REPLACE, 1, format!("`{line}` has no percentage")))
}

/// The state of a scrub: a running one has `Bytes scrubbed: 735821824 (12.34%)` and no `Duration`
/// of an ended one; before its first report the percentage is 0.
fn scrub_status(text: &str) -> Result<Option<SyncStatus>> {
    let field = |name: &str| {
        text.lines().enumerate().find_map(|(index, line)| {
            let (found, value) = line.trim().split_once(':')?;
            (found == name).then(|| (index + 1, value.trim()))
        })
    };
    let running = match field("Status") {
        Some((_, status)) => status == "running",
        None => field("Bytes scrubbed").is_some(),
    };
    if !running {
        return Ok(None);
    }
    let percent = match field("Bytes scrubbed") {
        None => None,
        Some((line, value)) => {
            let number = value
                .split_once('(')
                .and_then(|(_, rest)| rest.split_once('%'));
            let problem = || unreadable(SCRUB, line, format!("`{value}` has no percentage"));
            let (number, _) = number.ok_or_else(problem)?;
            Some(number.parse().map_err(|_| problem())?)
        }
    };
    Ok(Some(SyncStatus::of(SyncKind::Check, percent)))
}

#[cfg(test)]
mod tests {
    use super::{
        ShownDevice, devices_that_lost_writes, member, parse_show, replace_percent, scrub_status,
    };
    use crate::array::MemberState;
    use proptest::prelude::*;

    /// btrfs-progs 6.2, a file system with a member away.
    const MISSING: &str = "\
Label: 'raidlab0'  uuid: 3d323ebd-70f5-4313-8541-5bfe4498ab18
\tTotal devices 3 FS bytes used 315375616
\tdevid    1 size 536870912 used 503316480 path /dev/loop0
\tdevid    2 size 0 used 0 path  MISSING
\tdevid    3 size 536870912 used 337117184 path /dev/loop2

";

    #[test]
    fn a_missing_device_has_no_path() {
        let shown = parse_show(MISSING).expect("text of btrfs");
        assert_eq!(shown.len(), 1);
        assert_eq!(shown[0].label, "raidlab0");
        let missing = ShownDevice {
            number: 2,
            size: 0,
            path: String::new(),
        };
        assert_eq!(shown[0].devices[1], missing);
        assert_eq!(shown[0].devices[2].path, "/dev/loop2");
    }

    /// btrfs-progs 6.2, as a device failed writes, in the same file system mounted without another.
    #[test]
    fn a_device_that_failed_writes_is_faulty() {
        let counted = "\
[/dev/loop0].write_io_errs    61
[/dev/loop0].read_io_errs     0
[/dev/loop0].flush_io_errs    2
[/dev/loop0].corruption_errs  0
[/dev/loop0].generation_errs  0
[devid:2].write_io_errs    7
[/dev/loop2].write_io_errs    0
[/dev/loop2].read_io_errs     12
[/dev/loop2].flush_io_errs    0
[/dev/loop2].corruption_errs  9
[/dev/loop2].generation_errs  1
";
        let lost = devices_that_lost_writes(counted).expect("text of btrfs");
        let shown = parse_show(MISSING).expect("text of btrfs");
        let states = [1, 2, 3].map(|number| member(&shown[0].devices, number, false, &lost));
        let expected = [
            MemberState::Faulty,
            MemberState::Missing,
            MemberState::InSync,
        ];
        assert_eq!(states, expected);
        let error = devices_that_lost_writes("[/dev/sda].write_io_errs -\n").expect_err("no count");
        assert_eq!(
            error.to_string(),
            "cannot understand btrfs device stats, line 1: `[/dev/sda].write_io_errs -` has no number"
        );
    }

    #[test]
    fn a_wrong_line_is_named() {
        let error = parse_show("Label: none  uuid: 1\n\tdevid x\n").expect_err("no number");
        assert_eq!(
            error.to_string(),
            "cannot understand btrfs filesystem show, line 2: `devid x` is no device"
        );
        assert!(parse_show("devid 1 size 2 used 3 path /dev/sda").is_err());
    }

    #[test]
    fn a_replacement_given_up_is_none() {
        let running = "15.5% done, 0 write errs, 0 uncorr. read errs\n";
        let given_up = "Started on 21.Nov 05:50:41, canceled on 21.Nov 05:50:41 at 0.0%, \
                        0 write errs, 0 uncorr. read errs\n";
        assert_eq!(replace_percent(running).expect("running"), Some(15.5));
        assert_eq!(replace_percent(given_up).expect("given up"), None);
        assert_eq!(replace_percent("Never started\n").expect("never"), None);
        assert!(replace_percent("x% done").is_err());
    }

    #[test]
    fn a_scrub_runs_from_its_start_to_its_status() {
        let begun = "\
UUID:             3d323ebd-70f5-4313-8541-5bfe4498ab18
\tno stats available
Time left:        0:00:00
ETA:              Sat Nov 21 05:50:36 2026
Total to scrub:   735821824
Bytes scrubbed:   0  (0.00%)
Rate:             0/s
Error summary:    no errors found
";
        let ended = "\
UUID:             3d323ebd-70f5-4313-8541-5bfe4498ab18
Scrub started:    Sat Nov 21 05:50:36 2026
Status:           finished
Duration:         0:00:01
Total to scrub:   735838208
Rate:             735805440/s
Error summary:    super=2 verify=32 csum=12800
  Corrected:      12832
  Uncorrectable:  0
  Unverified:     0
";
        let never = "\
UUID:             3d323ebd-70f5-4313-8541-5bfe4498ab18
\tno stats available
Total to scrub:   294912
Rate:             0/s
Error summary:    no errors found
";
        let begun = scrub_status(begun).expect("begun").expect("runs");
        assert_eq!(begun.percent, Some(0.0));
        assert_eq!(scrub_status(ended).expect("ended"), None);
        assert_eq!(scrub_status(never).expect("never"), None);
        let running = "Status: running\nBytes scrubbed: 81920  (55.67%)\nRate: 4096/s\n";
        let running = scrub_status(running).expect("running").expect("runs");
        assert_eq!(running.percent, Some(55.67));
    }

    proptest! {
        #[test]
        fn nothing_makes_them_panic(
            text in "(Label: |'|devid |size |used |path |MISSING|% done|Status:|Bytes scrubbed:|\\(|%|\\[|\\]\\.|write_io_errs|[ -~\n]){0,40}"
        ) {
            let _ = (parse_show(&text), replace_percent(&text), scrub_status(&text));
            let _ = devices_that_lost_writes(&text);
        }
    }
}
