//! The channels of disks: two disks on one cable, one PCI bus or one USB hub are slower together
//! than each alone, and an array of them measures the channel.

use crate::Disk;
use serde::{Deserialize, Serialize};

/// The channel of a disk, from its path below `/sys/devices`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Channel {
    /// The PCI function next to the disk: `0000:00:1f.2`.
    pub pci: Option<String>,
    /// The host adapter: `host2`. An AHCI controller has one for each port, a
    /// SAS controller one for all its disks, an IDE cable one for both.
    pub host: Option<String>,
    /// The USB port chain without its last step: disks with the same one are on the same hub.
    pub usb: Option<String>,
}

impl Channel {
    /// The channel of a disk; empty where its topology is not known.
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

/// Whether a part of a path is a USB port, `1-2` or `1-2.4`: bus, then ports; an interface
/// (`1-2:1.0`) is not.
fn is_usb_port(part: &str) -> bool {
    let Some((bus, ports)) = part.split_once('-') else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(bus) && ports.split('.').all(digits)
}

#[cfg(test)]
mod tests {
    use super::Channel;
    use crate::{Disk, DiskKind};

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

    proptest::proptest! {
        #[test]
        fn no_path_panics(path in "[0-9a-f:./é-]{0,40}") {
            let channel = Channel::of(&at("/dev/sda", &path));
            assert!(channel.usb.is_none() || path.contains('-'));
        }
    }
}
