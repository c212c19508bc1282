//! Disks that share a channel.
//!
//! Two disks on one cable, one PCI bus or one USB hub are slower together than
//! each alone, and an array of them measures the channel. The topology says
//! who hangs on what; whether it matters is measured: each disk is read alone,
//! then each pair together, for the same time. A pair that together reads less
//! than 85 % of what both read alone shares a channel that is too narrow. (The
//! 2008 comparison of 17 arrays had two disks on one IDE cable, that of 2010
//! four on a PCI card; both show it.)

use crate::Disk;
use raidlab_shell::Command;
use raidlab_units::BytesPerSecond;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a disk hangs on, from its path below `/sys/devices`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Channel {
    /// The PCI function next to it: `0000:00:1f.2`.
    pub pci: Option<String>,
    /// The host adapter: `host2`. An AHCI controller has one for each port, a
    /// SAS controller one for all its disks, an IDE cable one for both.
    pub host: Option<String>,
    /// The USB port chain without its last step: disks with the same one hang
    /// on the same hub.
    pub usb: Option<String>,
}

impl Channel {
    /// A disk's; empty where its topology is not known.
    #[must_use]
    pub fn of(disk: &Disk) -> Self {
        let parts: Vec<&str> = disk
            .topology
            .as_deref()
            .unwrap_or_default()
            .split('/')
            .collect();
        let last = |matches: fn(&str) -> bool| {
            parts
                .iter()
                .rfind(|part| matches(part))
                .map(|part| (*part).to_owned())
        };
        let usb = last(is_usb_port).map(|port| {
            let hub = port.rsplit_once('.').or_else(|| port.rsplit_once('-'));
            hub.map_or(port.clone(), |(hub, _)| hub.to_owned())
        });
        Self {
            pci: last(is_pci_function),
            host: last(|part| {
                let number = part.strip_prefix("host").unwrap_or_default();
                !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
            }),
            usb,
        }
    }
}

/// Whether a part of a path is an address such as `0000:00:1f.2`.
fn is_pci_function(part: &str) -> bool {
    let bytes = part.as_bytes();
    part.len() >= 12
        && part.matches(':').count() == 2
        && bytes[part.len() - 2] == b'.'
        && part
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte))
}

/// `1-2` or `1-2.4`: bus, then ports; an interface (`1-2:1.0`) is none.
fn is_usb_port(part: &str) -> bool {
    let Some((bus, ports)) = part.split_once('-') else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(bus) && ports.split('.').all(digits)
}

/// Disks that hang on the same thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// `PCI function 0000:00:1f.2`, `host adapter host0`, `USB hub 1-2`.
    pub what: String,
    /// The disks, two at least.
    pub devices: Vec<String>,
}

/// What several of the disks hang on together, by kind and name.
#[must_use]
pub fn shared(disks: &[Disk]) -> Vec<Shared> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for disk in disks {
        let channel = Channel::of(disk);
        for (kind, name) in [
            ("PCI function", channel.pci),
            ("host adapter", channel.host),
            ("USB hub", channel.usb),
        ] {
            if let Some(name) = name {
                groups
                    .entry(format!("{kind} {name}"))
                    .or_default()
                    .push(disk.device.clone());
            }
        }
    }
    groups
        .into_iter()
        .filter(|(_, devices)| devices.len() > 1)
        .map(|(what, devices)| Shared { what, devices })
        .collect()
}

/// Disks to be read at the same time, one command each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// The names of the disks on it.
    pub devices: Vec<String>,
    /// What reads each, in the same order; their JSON tells the rate.
    pub commands: Vec<Command>,
}

/// The trials for some disks: each alone, then each pair, `seconds` each.
/// Nothing is written: fio is called with `--readonly`. The disks are read by
/// time and not by amount, so that a slow one is not alone at the end.
#[must_use]
pub fn trials(devices: &[String], seconds: u64) -> Vec<Trial> {
    let trial = |devices: &[&String]| Trial {
        devices: devices.iter().map(|&device| device.clone()).collect(),
        commands: devices.iter().map(|device| read(device, seconds)).collect(),
    };
    let alone = devices.iter().map(|device| trial(&[device]));
    let pairs = devices.iter().enumerate().flat_map(|(place, first)| {
        devices[place + 1..]
            .iter()
            .map(move |second| trial(&[first, second]))
    });
    alone.chain(pairs).collect()
}

fn read(device: &str, seconds: u64) -> Command {
    Command::reads(
        "fio",
        [
            "--readonly".to_owned(),
            "--name=channel".to_owned(),
            format!("--filename={device}"),
            "--rw=read".to_owned(),
            "--bs=1M".to_owned(),
            "--direct=1".to_owned(),
            "--ioengine=psync".to_owned(),
            format!("--runtime={seconds}"),
            "--time_based".to_owned(),
            "--output-format=json".to_owned(),
        ],
    )
}

/// Below this part of what both read alone, a pair shares its channel.
pub const SHARED_BELOW: f64 = 0.85;

/// A pair of disks read together.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// The first of the two disks' names.
    pub first: String,
    /// The second of the two disks' names.
    pub second: String,
    /// Sum of both when each is read alone.
    pub alone: BytesPerSecond,
    /// Sum of both when they are read together.
    pub together: BytesPerSecond,
}

impl Pair {
    /// Together over alone: 1 for disks that do not touch each other.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.together.0 / self.alone.0
    }

    /// Whether the channel is too narrow for both.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.ratio() < SHARED_BELOW
    }
}

/// The pairs of all trials that two disks were read in, where each of them was
/// also read alone at a rate above 0. A trial is its disks and their rates.
#[must_use]
pub fn pairs(measured: &[Vec<(String, BytesPerSecond)>]) -> Vec<Pair> {
    let alone: BTreeMap<&String, BytesPerSecond> = measured
        .iter()
        .filter_map(|trial| match trial.as_slice() {
            [(device, rate)] if rate.0 > 0.0 => Some((device, *rate)),
            _ => None,
        })
        .collect();
    measured
        .iter()
        .filter_map(|trial| match trial.as_slice() {
            [(first, one), (second, other)] => Some(Pair {
                alone: BytesPerSecond(alone.get(first)?.0 + alone.get(second)?.0),
                together: BytesPerSecond(one.0 + other.0),
                first: first.clone(),
                second: second.clone(),
            }),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Channel, pairs, shared, trials};
    use crate::{Disk, DiskKind};
    use raidlab_shell::Effect;
    use raidlab_units::BytesPerSecond;

    fn at(device: &str, topology: &str) -> Disk {
        let mut disk = Disk::new(device, DiskKind::Disk, 1);
        disk.topology = Some(topology.to_owned());
        disk
    }

    #[test]
    fn a_path_tells_what_a_disk_hangs_on() {
        let ahci = "/sys/devices/pci0000:00/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0/block/sdc";
        let channel = Channel::of(&at("/dev/sdc", ahci));
        assert_eq!(channel.pci.as_deref(), Some("0000:00:1f.2"));
        assert_eq!(channel.host.as_deref(), Some("host2"));
        assert_eq!(channel.usb, None);
        let usb = "/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1.4/2-1.4:1.0/host6/target6:0:0/6:0:0:0/block/sdd";
        assert_eq!(
            Channel::of(&at("/dev/sdd", usb)).usb.as_deref(),
            Some("2-1")
        );
        let virtio = "/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda";
        assert_eq!(Channel::of(&at("/dev/vda", virtio)).host, None);
        assert_eq!(
            Channel::of(&Disk::new("/dev/sdb", DiskKind::Disk, 1)),
            Channel::default()
        );
    }

    #[test]
    fn two_disks_on_one_ide_cable_are_found() {
        let cable = "/sys/devices/pci0000:00/0000:00:02.5/ata1/host0/target0:0";
        let disks = [
            at("/dev/sda", &format!("{cable}:0/0:0:0:0/block/sda")),
            at("/dev/sdb", &format!("{cable}:1/0:0:1:0/block/sdb")),
            at(
                "/dev/sdc",
                "/sys/devices/pci0000:00/0000:00:02.5/ata2/host1/target1:0:0/1:0:0:0/block/sdc",
            ),
        ];
        let found = shared(&disks);
        let whats: Vec<&str> = found.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(whats, ["PCI function 0000:00:02.5", "host adapter host0"]);
        assert_eq!(found[0].devices.len(), 3);
        assert_eq!(found[1].devices, ["/dev/sda", "/dev/sdb"]);
    }

    #[test]
    fn trials_only_read_each_disk_alone_and_each_pair() {
        let devices = ["a", "b", "c"].map(|name| format!("/dev/sd{name}"));
        let trials = trials(&devices, 10);
        assert_eq!(trials.len(), 6);
        let commands = || trials.iter().flat_map(|trial| &trial.commands);
        assert!(commands().all(|command| command.effect == Effect::Reads));
        assert!(commands().all(|command| command.arguments[0] == "--readonly"));
        assert_eq!(trials[4].devices, ["/dev/sda", "/dev/sdc"]);
    }

    #[test]
    fn a_pair_that_slows_each_other_down_is_found() {
        let rate = |name: &str, megabytes: f64| (name.to_owned(), BytesPerSecond(megabytes * 1e6));
        // Read rates of the 2008 comparison alone; a+b on one cable as RAID0
        // 30.77 MB/s, a+c on two 103.78 MB/s, here halved on both disks.
        let measured = [
            vec![rate("a", 44.0)],
            vec![rate("b", 40.56)],
            vec![rate("c", 56.19)],
            vec![rate("a", 15.385), rate("b", 15.385)],
            vec![rate("a", 51.89), rate("c", 51.89)],
            vec![rate("a", 1.0), rate("unknown", 1.0)],
        ];
        let found = pairs(&measured);
        assert_eq!(found.len(), 2);
        assert!(found[0].is_shared() && (found[0].ratio() - 0.364).abs() < 0.001);
        assert!(!found[1].is_shared());
    }

    proptest::proptest! {
        #[test]
        fn no_path_panics(path in "[0-9a-f:./é-]{0,40}") {
            let channel = Channel::of(&at("/dev/sda", &path));
            assert!(channel.usb.is_none() || path.contains('-'));
        }
    }
}
