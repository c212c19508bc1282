//! Inventory of a Linux machine's disks.

use super::Inventory;
use super::lsblk::{self, Listed};
use super::mounts::{Mount, parse_members, parse_mounts, parse_swap_files, parse_swaps};
use crate::text::{decimal, optional, optional_number, optional_output};
use crate::{Disk, DiskKind, InventoryError, System, Use};
use raidlab_shell::{Command, Target, TargetError};
use std::collections::BTreeMap;

/// Takes the inventory of a Linux machine.
pub fn inventory(target: &dyn Target) -> Result<Inventory, InventoryError> {
    let answer = target.run(&lsblk::command())?.stdout;
    let mut listed = lsblk::parse(&answer).map_err(|problem| InventoryError::Format {
        machine: target.name().to_owned(),
        origin: lsblk::command().to_string(),
        problem,
    })?;
    // A loop device without a file has no size.
    listed.retain(|one| one.disk.size_bytes > 0);
    let mut ids = stable_ids(target)?;
    for one in &mut listed {
        one.disk.stable_ids = ids.remove(&one.disk.device).unwrap_or_default();
        describe(target, &mut one.disk)?;
    }
    tell_files_apart(target, &mut listed)?;
    let mounts = parse_mounts(&target.read("/proc/self/mountinfo")?);
    let teams = teams(target, &mounts)?;
    let uses = uses(target, &listed, &mounts, &teams)?;
    let root_starts = root_devices(target, &listed, &mounts, &teams)?;
    let mut inventory = Inventory {
        machine: target.name().to_owned(),
        system: System::Linux,
        disks: listed.into_iter().map(|one| one.disk).collect(),
        uses,
        root: Vec::new(),
    };
    inventory.set_root(root_starts);
    Ok(inventory)
}

/// Adds the properties of a device that `lsblk` does not report.
fn describe(target: &dyn Target, disk: &mut Disk) -> Result<(), InventoryError> {
    let name = disk.kernel_name().replace('/', "!");
    let folder = format!("/sys/class/block/{name}");
    if disk.kind == DiskKind::Partition {
        disk.start_sector = optional_number(target, &format!("{folder}/start"))?;
        return Ok(());
    }
    if !matches!(disk.kind, DiskKind::Disk | DiskKind::Loop) {
        return Ok(());
    }
    let folder = format!("/sys/block/{name}");
    disk.write_cache = optional(target, &format!("{folder}/queue/write_cache"))?;
    disk.zoned = optional(target, &format!("{folder}/queue/zoned"))?;
    if disk.kind == DiskKind::Loop {
        disk.backing_file = optional(target, &format!("{folder}/loop/backing_file"))?;
        // A loop device on a device is that device under another name.
        if let Some(file) = disk
            .backing_file
            .as_ref()
            .filter(|file| file.starts_with("/dev/"))
        {
            disk.on
                .push(target.resolve(file).unwrap_or_else(|_| file.clone()));
        }
        return Ok(());
    }
    disk.queue_depth = optional_number(target, &format!("{folder}/device/queue_depth"))?;
    if disk.firmware.is_none() {
        disk.firmware = optional(target, &format!("{folder}/device/firmware_rev"))?;
    }
    if let Ok(path) = target.resolve(&folder) {
        disk.link_bits_per_second = link_rate(target, &path)?;
        disk.topology = Some(path);
    }
    Ok(())
}

/// Adds which files are behind loop devices where there are several: one file can have several
/// paths, by hard links or bind mounts.
fn tell_files_apart(target: &dyn Target, listed: &mut [Listed]) -> Result<(), InventoryError> {
    let has_file = |one: &&Listed| one.disk.backing_file.is_some();
    if listed.iter().filter(has_file).count() < 2 {
        return Ok(());
    }
    let words = [
        "--list",
        "--noheadings",
        "--output",
        "NAME,BACK-INO,BACK-MAJ:MIN",
    ];
    let files = optional_output(target, &Command::reads("losetup", words))?.unwrap_or_default();
    for line in files.lines() {
        let mut words = line.split_whitespace();
        let device = words.next().unwrap_or_default();
        if let Some(one) = listed.iter_mut().find(|one| one.disk.device == device) {
            one.disk.backing_inode = Some(words.collect::<Vec<_>>().join(" "));
        }
    }
    Ok(())
}

/// The negotiated rate of the disk's link: an ATA link's `sata_spd`, an NVMe function's PCI link
/// (rate of a lane times lanes), or a USB device's `speed`.
fn link_rate(target: &dyn Target, topology: &str) -> Result<Option<u64>, InventoryError> {
    let parts: Vec<&str> = topology.split('/').collect();
    let port = parts.iter().find_map(|part| part.strip_prefix("ata"));
    if let Some(port) = port.filter(|port| port.parse::<u32>().is_ok()) {
        let speed = optional(target, &format!("/sys/class/ata_link/link{port}/sata_spd"))?;
        return Ok(speed.and_then(|text| rate(&text, "Gbps", 1_000_000_000)));
    }
    if let Some(place) = parts.iter().position(|&part| part == "nvme") {
        let function = parts[..place].join("/");
        let lane = optional(target, &format!("{function}/current_link_speed"))?;
        let lanes = optional_number(target, &format!("{function}/current_link_width"))?;
        let lane = lane.and_then(|text| rate(&text, "GT/s", 1_000_000_000));
        return Ok(lane
            .zip(lanes)
            .and_then(|(lane, lanes)| lane.checked_mul(lanes)));
    }
    let usb = |part: &&str| {
        part.contains('-') && !part.contains(':') && part.starts_with(|c: char| c.is_ascii_digit())
    };
    if parts.iter().any(|part| part.starts_with("usb"))
        && let Some(place) = parts.iter().rposition(usb)
    {
        let speed = optional(target, &format!("{}/speed", parts[..=place].join("/")))?;
        return Ok(speed.and_then(|text| rate(&text, "", 1_000_000)));
    }
    Ok(None)
}

/// Parses `6.0 Gbps` into bits per second; in tenths, so that no float is needed.
fn rate(text: &str, unit: &str, factor: u64) -> Option<u64> {
    let number = text.split_once(unit).filter(|_| !unit.is_empty());
    let number = number.map_or(text, |(number, _)| number).trim();
    decimal(number, 1)?.checked_mul(factor / 10)
}

/// The stable names of each device, best first.
fn stable_ids(target: &dyn Target) -> Result<BTreeMap<String, Vec<String>>, InventoryError> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in target.list("/dev/disk/by-id")? {
        let path = format!("/dev/disk/by-id/{name}");
        if let Ok(device) = target.resolve(&path) {
            found.entry(device).or_default().push(path);
        }
    }
    for names in found.values_mut() {
        names.sort_by_key(|path| (rank(path), path.clone()));
    }
    Ok(found)
}

/// The rank of a stable name: one with model and serial number is better than a number alone; names
/// of LVM, md and file systems vanish with what they name.
fn rank(path: &str) -> u8 {
    let name = path.trim_start_matches("/dev/disk/by-id/");
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    if begins(&["wwn-", "nvme-eui.", "nvme-nvme.", "nvme-uuid.", "scsi-3"]) {
        1
    } else if begins(&["lvm-", "md-", "dm-"]) {
        2
    } else {
        0
    }
}

/// The file system whose mounts list all their devices, separated by colons, and have no device
/// number of their own.
const BCACHEFS: &str = "bcachefs";

/// The folder of the kernel's exports by NVMe over Fabrics.
const SUBSYSTEMS: &str = "/sys/kernel/config/nvmet/subsystems";

/// A file system or pool that spreads over several devices.
struct Team {
    /// The name: `btrfs <uuid>` or `ZFS pool tank`.
    name: String,
    /// The devices of which it consists.
    devices: Vec<String>,
}

/// The mounted btrfs and bcachefs file systems and the imported pools.
fn teams(target: &dyn Target, mounts: &[Mount]) -> Result<Vec<Team>, InventoryError> {
    let mut found = Vec::new();
    for mount in mounts.iter().filter(|mount| mount.filesystem == BCACHEFS) {
        let devices = mount.source.split(':').map(|device| {
            let resolved = target.resolve(device);
            resolved.unwrap_or_else(|_| device.to_owned())
        });
        found.push(Team {
            name: format!("{BCACHEFS} at {}", mount.at),
            devices: devices.collect(),
        });
    }
    for uuid in target.list("/sys/fs/btrfs")? {
        let names = target.list(&format!("/sys/fs/btrfs/{uuid}/devices"))?;
        if names.is_empty() {
            continue;
        }
        found.push(Team {
            name: format!("btrfs {uuid}"),
            devices: names.iter().map(|name| device_of(name)).collect(),
        });
    }
    // The module has a folder for each imported pool; the program is not called on the many
    // machines without one.
    if !target.list("/proc/spl/kstat/zfs")?.is_empty() {
        let list = Command::reads("zpool", ["list", "-v", "-H", "-P", "-L"]);
        let text = optional_output(target, &list)?.unwrap_or_default();
        found.extend(pools(&text).into_iter().map(|(pool, devices)| Team {
            name: format!("ZFS pool {pool}"),
            devices,
        }));
    }
    Ok(found)
}

/// Parses the pools of `zpool list -vHPL` with their devices: a pool's line begins with its name,
/// those of its vdevs with a tab.
pub(super) fn pools(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines() {
        let first = line.trim_start().split('\t').next().unwrap_or_default();
        if !line.starts_with(['\t', ' ']) {
            found.push((first.to_owned(), Vec::new()));
        } else if let Some((_, devices)) = found.last_mut()
            && first.starts_with("/dev/")
        {
            devices.push(first.to_owned());
        }
    }
    found
}

fn device_of(name: &str) -> String {
    format!("/dev/{}", name.replace('!', "/"))
}

/// The device of a mount, where it has one.
fn device_mounted(
    target: &dyn Target,
    listed: &[Listed],
    mount: &Mount,
) -> Result<Option<String>, InventoryError> {
    let by_number = listed
        .iter()
        .find(|one| one.device_number == mount.device_number);
    if let Some(one) = by_number {
        return Ok(Some(one.disk.device.clone()));
    }
    // btrfs has no device number of its own: the source of the mount tells the device.
    if !mount.source.starts_with("/dev/") {
        return Ok(None);
    }
    let source = match mount.filesystem.as_str() {
        BCACHEFS => mount.source.split(':').next().unwrap_or_default(),
        _ => &mount.source,
    };
    match target.resolve(source) {
        Ok(device) => Ok(Some(device)),
        Err(TargetError::Io { .. }) => Ok(Some(source.to_owned())),
        Err(error) => Err(error.into()),
    }
}

fn uses(
    target: &dyn Target,
    listed: &[Listed],
    mounts: &[Mount],
    teams: &[Team],
) -> Result<Vec<Use>, InventoryError> {
    let mut uses = Vec::new();
    for mount in mounts {
        if let Some(device) = device_mounted(target, listed, mount)? {
            uses.push(Use::Mounted {
                device,
                at: mount.at.clone(),
                filesystem: mount.filesystem.clone(),
            });
        }
    }
    mounted_elsewhere(target, listed, &mut uses)?;
    let swaps = optional(target, "/proc/swaps")?.unwrap_or_default();
    for device in parse_swaps(&swaps) {
        let device = target.resolve(&device).unwrap_or(device);
        uses.push(Use::Swap { device });
    }
    uses.extend(swap_files(&swaps, listed));
    for (name, of) in parse_members(&optional(target, "/proc/mdstat")?.unwrap_or_default()) {
        uses.push(Use::Member {
            device: device_of(&name),
            of: format!("/dev/{of}"),
        });
    }
    for team in teams {
        for device in &team.devices {
            uses.push(Use::Member {
                device: device.clone(),
                of: team.name.clone(),
            });
        }
    }
    uses.extend(held(target, listed)?);
    uses.extend(exported(target)?);
    Ok(uses)
}

/// The loop devices on files that are swapped to: the kernel writes into such a file past the loop
/// device, and reads back what the loop device wrote.
fn swap_files(swaps: &str, listed: &[Listed]) -> Vec<Use> {
    let mut uses = Vec::new();
    for file in parse_swap_files(swaps) {
        for Listed { disk, .. } in listed {
            if disk.backing_file.as_ref() == Some(&file) {
                uses.push(Use::SwapFile {
                    device: disk.device.clone(),
                    file: file.clone(),
                });
            }
        }
    }
    uses
}

/// The exports by NVMe over Fabrics. The kernel's target opens none of its devices exclusively, so
/// other programs could open them (drivers/nvme/target/io-cmd-bdev.c, `nvmet_bdev_ns_enable`).
fn exported(target: &dyn Target) -> Result<Vec<Use>, InventoryError> {
    let mut uses = Vec::new();
    for subsystem in target.list(SUBSYSTEMS)? {
        let folder = format!("{SUBSYSTEMS}/{subsystem}/namespaces");
        for number in target.list(&folder)? {
            let says = |what: &str| optional(target, &format!("{folder}/{number}/{what}"));
            let device = says("device_path")?.filter(|path| path.starts_with("/dev/"));
            if let Some(device) = device
                && says("enable")?.is_some_and(|enabled| enabled == "1")
            {
                let device = target.resolve(&device).unwrap_or(device);
                let subsystem = subsystem.clone();
                uses.push(Use::Exported { device, subsystem });
            }
        }
    }
    Ok(uses)
}

/// The devices that are mounted in other namespaces: ext4 and XFS list every device that the kernel
/// has mounted, whichever namespace sees it.
fn mounted_elsewhere(
    target: &dyn Target,
    listed: &[Listed],
    uses: &mut Vec<Use>,
) -> Result<(), InventoryError> {
    for filesystem in ["ext4", "xfs", "f2fs"] {
        for name in target.list(&format!("/sys/fs/{filesystem}"))? {
            let device = device_of(&name);
            let known = listed.iter().any(|one| one.disk.device == device);
            let seen = uses
                .iter()
                .any(|used| matches!(used, Use::Mounted { device: at, .. } if *at == device));
            if known && !seen {
                uses.push(Use::MountedElsewhere {
                    device,
                    filesystem: filesystem.to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// The uses of devices by others that rest on them: those built of them, and loop devices whose
/// file is a device.
fn held(target: &dyn Target, listed: &[Listed]) -> Result<Vec<Use>, InventoryError> {
    let mut uses = Vec::new();
    for one in listed {
        let disk = &one.disk;
        if matches!(disk.kind, DiskKind::Built | DiskKind::Loop) {
            uses.extend(disk.on.iter().map(|lower| Use::Held {
                device: lower.clone(),
                by: disk.device.clone(),
            }));
        }
    }
    for one in listed {
        let name = one.disk.kernel_name().replace('/', "!");
        for holder in target.list(&format!("/sys/class/block/{name}/holders"))? {
            let held = Use::Held {
                device: one.disk.device.clone(),
                by: device_of(&holder),
            };
            if !uses.contains(&held) {
                uses.push(held);
            }
        }
    }
    Ok(uses)
}

/// The devices that `/` is mounted from, all members where there are several.
fn root_devices(
    target: &dyn Target,
    listed: &[Listed],
    mounts: &[Mount],
    teams: &[Team],
) -> Result<Vec<String>, InventoryError> {
    // Later mounts hide earlier ones at the same place.
    let Some(root) = mounts.iter().rfind(|mount| mount.at == "/") else {
        return Ok(Vec::new());
    };
    let pool = root.source.split('/').next().unwrap_or_default();
    if root.filesystem == "zfs" {
        let name = format!("ZFS pool {pool}");
        let team = teams.iter().find(|team| team.name == name);
        return team
            .filter(|team| !team.devices.is_empty())
            .map(|team| team.devices.clone())
            .ok_or_else(|| super::root_unknown(target, pool));
    }
    let Some(device) = device_mounted(target, listed, root)? else {
        return Ok(Vec::new());
    };
    let team = teams.iter().find(|team| team.devices.contains(&device));
    Ok(team.map_or_else(|| vec![device], |team| team.devices.clone()))
}

#[cfg(test)]
mod tests {
    use crate::testing::Machine;
    use crate::{Inventory, Use};

    #[test]
    fn a_loop_device_on_a_swap_file_is_in_use() {
        let swaps = "Filename\tType\tSize\tUsed\tPriority\n/srv/swapfile file 102396 0 -2\n";
        let machine = Machine::loops()
            .file("/proc/swaps", swaps)
            .file("/sys/block/loop4/loop/backing_file", "/srv/swapfile\n");
        let inventory = Inventory::of(&machine).unwrap();
        let expected = Use::SwapFile {
            device: "/dev/loop4".to_owned(),
            file: "/srv/swapfile".to_owned(),
        };
        assert!(inventory.uses_of("/dev/loop4").contains(&&expected));
        assert!(inventory.uses_of("/dev/loop3").is_empty());
    }

    /// One file has two hard links, each behind a loop device.
    #[test]
    fn loop_devices_on_one_file_are_twins_whatever_its_paths() {
        let asked = "losetup --list --noheadings --output NAME,BACK-INO,BACK-MAJ:MIN";
        let files = "/dev/loop3 261      254:0  \n/dev/loop4 260      254:0  \n\
                     /dev/loop5 260      254:0  \n";
        let machine = Machine::loops()
            .file("/sys/block/loop3/loop/backing_file", "/srv/c.img\n")
            .file("/sys/block/loop4/loop/backing_file", "/srv/a.img\n")
            .file("/sys/block/loop5/loop/backing_file", "/srv/b.img\n")
            .command(asked, 0, files);
        let inventory = Inventory::of(&machine).unwrap();
        let twins = |device: &str| {
            let disk = inventory.find(device).unwrap();
            let twins = inventory.twins(disk).into_iter();
            twins.map(|twin| twin.device.clone()).collect::<Vec<_>>()
        };
        assert_eq!(twins("/dev/loop4"), ["/dev/loop5"]);
        assert_eq!(twins("/dev/loop3"), [""; 0]);
    }
}
