//! A FreeBSD machine's disks.
//!
//! `geom disk list` describes the disks and how often each is open; `sysctl -n kern.geom.conftxt`
//! prints GEOM's tree of providers in one line each, children below their parents: level, class,
//! name, size, sector size, then pairs of attribute and value. The tests run on the
//! `geom disk list` of a FreeBSD 10.1 log and on trees put together after published ones; no
//! FreeBSD machine was at hand.

use super::Inventory;
use super::linux::pools;
use crate::text::optional_output;
use crate::{Disk, DiskKind, InventoryError, System, Use};
use raidlab_shell::{Command, Target};
use raidlab_units::SECTOR_BYTES;

/// Takes the inventory of a FreeBSD machine.
pub fn inventory(target: &dyn Target) -> Result<Inventory, InventoryError> {
    let geom = Command::reads("geom", ["disk", "list"]);
    let tree = Command::reads("sysctl", ["-n", "kern.geom.conftxt"]);
    let (mut disks, mut uses) = parse_disks(&target.run(&geom)?.stdout);
    add_tree(&mut disks, &target.run(&tree)?.stdout);
    disks.retain(|disk| disk.size_bytes > 0);
    let mut inventory = Inventory {
        machine: target.name().to_owned(),
        system: System::FreeBsd,
        disks,
        uses: Vec::new(),
        root: Vec::new(),
    };
    uses.extend(built(&inventory.disks));
    let mounts = target.run(&Command::reads("mount", ["-p"]))?.stdout;
    let teams = imported(target)?;
    let mut root = Vec::new();
    for mount in mounts.lines() {
        let mut words = mount.split_whitespace();
        let (Some(source), Some(at), Some(filesystem)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let device = inventory.named(source).map(|disk| disk.device.clone());
        if at == "/" {
            root = match &device {
                Some(device) => vec![device.clone()],
                None if filesystem == "zfs" => root_pool(target, &inventory, &teams, source)?,
                None => Vec::new(),
            };
        }
        if let Some(device) = device {
            uses.push(Use::Mounted {
                device,
                at: at.to_owned(),
                filesystem: filesystem.to_owned(),
            });
        }
    }
    let swap = optional_output(target, &Command::reads("swapctl", ["-l"]))?.unwrap_or_default();
    for line in swap.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        if let Some(disk) = inventory.named(name) {
            uses.push(Use::Swap {
                device: disk.device.clone(),
            });
        }
    }
    for (pool, names) in &teams {
        for disk in names.iter().filter_map(|name| inventory.named(name)) {
            uses.push(Use::Member {
                device: disk.device.clone(),
                of: format!("ZFS pool {pool}"),
            });
        }
    }
    inventory.uses = uses;
    inventory.set_root(root);
    Ok(inventory)
}

/// Parses the disks of `geom disk list`, and those of them that are open.
fn parse_disks(text: &str) -> (Vec<Disk>, Vec<Use>) {
    let mut disks: Vec<Disk> = Vec::new();
    let mut uses = Vec::new();
    for line in text.lines() {
        let Some((key, value)) = line.trim().split_once(':') else {
            continue;
        };
        let value = value.trim();
        if key == "Geom name" {
            let device = format!("/dev/{value}");
            let kind = if value.starts_with("cd") {
                DiskKind::Other
            } else {
                DiskKind::Disk
            };
            disks.push(Disk::new(device, kind, 0));
            continue;
        }
        let Some(disk) = disks.last_mut() else {
            continue;
        };
        let number = || value.split_whitespace().next()?.parse::<u64>().ok();
        let text = || Some(value.to_owned()).filter(|text| !text.is_empty() && text != "(null)");
        match key {
            "Mediasize" => disk.size_bytes = number().unwrap_or(0),
            "Sectorsize" => {
                let bytes = number().filter(|&bytes| bytes > 0).unwrap_or(SECTOR_BYTES);
                disk.logical_sector_bytes = bytes;
                disk.physical_sector_bytes = disk.physical_sector_bytes.max(bytes);
            }
            // GEOM reports a drive's physical sector as its stripe.
            "Stripesize" => {
                let bytes = number().unwrap_or(0);
                disk.physical_sector_bytes = disk.physical_sector_bytes.max(bytes);
            }
            "Stripeoffset" => {
                disk.alignment_offset_bytes = number()
                    .and_then(|bytes| bytes.try_into().ok())
                    .unwrap_or(0);
            }
            "descr" => disk.model = text(),
            "ident" => disk.serial = text(),
            "lunid" => disk.wwn = text(),
            // 0 means that the disk does not rotate.
            "rotationrate" => disk.rotational = number().map(|rate| rate > 0),
            "Mode" if value != "r0w0e0" => uses.push(Use::Open {
                device: disk.device.clone(),
                mode: value.to_owned(),
            }),
            _ => {}
        }
    }
    (disks, uses)
}

/// Adds partitions, labels and devices built of disks, from `kern.geom.conftxt`.
fn add_tree(disks: &mut Vec<Disk>, text: &str) {
    // The last provider on each level, which is the parent of the next level's.
    let mut path: Vec<String> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [level, class, name, size, sector, attributes @ ..] = words.as_slice() else {
            continue;
        };
        let (Ok(level), Ok(size)) = (level.parse::<usize>(), size.parse()) else {
            continue;
        };
        if level > path.len() {
            continue;
        }
        path.truncate(level);
        let device = format!("/dev/{name}");
        let parent = path.last().cloned();
        path.push(device.clone());
        if *class == "LABEL" {
            let labelled =
                parent.and_then(|parent| disks.iter_mut().find(|disk| disk.device == parent));
            if let Some(disk) = labelled {
                disk.stable_ids.push(device.clone());
                disk.stable_ids
                    .sort_by_key(|path| !path.starts_with("/dev/diskid/"));
                // A layer that rests on the label rests on the device.
                path.pop();
                path.push(disk.device.clone());
            }
            continue;
        }
        if !disks.iter().any(|disk| disk.device == device) {
            let mut disk = Disk::new(device.clone(), kind(class, name), size);
            disk.logical_sector_bytes = sector.parse().unwrap_or(SECTOR_BYTES);
            disk.physical_sector_bytes = disk.logical_sector_bytes;
            describe(&mut disk, attributes);
            disks.push(disk);
        }
        let Some(parent) = parent else {
            continue;
        };
        let physical = disks
            .iter()
            .find(|disk| disk.device == parent)
            .map_or(SECTOR_BYTES, |disk| disk.physical_sector_bytes);
        if let Some(disk) = disks.iter_mut().find(|disk| disk.device == device)
            && !disk.on.contains(&parent)
        {
            disk.physical_sector_bytes = disk.physical_sector_bytes.max(physical);
            disk.on.push(parent);
        }
    }
}

fn kind(class: &str, name: &str) -> DiskKind {
    match class {
        "DISK" if name.starts_with("cd") => DiskKind::Other,
        "DISK" => DiskKind::Disk,
        "PART" => DiskKind::Partition,
        "MD" => DiskKind::Loop,
        _ => DiskKind::Built,
    }
}

/// Reads attributes: `o 1048576` is the start of a partition; `file /disk.img` a vnode's file.
fn describe(disk: &mut Disk, attributes: &[&str]) {
    for pair in attributes.chunks_exact(2) {
        match (disk.kind, pair[0]) {
            (DiskKind::Partition, "o") => {
                disk.start_sector = pair[1]
                    .parse::<u64>()
                    .ok()
                    .map(|bytes| bytes / SECTOR_BYTES);
            }
            (DiskKind::Loop, "file") => disk.backing_file = Some(pair[1].to_owned()),
            _ => {}
        }
    }
}

/// The uses of a device by others that rest on it, besides its partitions.
fn built(disks: &[Disk]) -> Vec<Use> {
    let uppers = disks.iter().filter(|disk| disk.kind == DiskKind::Built);
    uppers
        .flat_map(|upper| {
            upper.on.iter().map(|lower| Use::Held {
                device: lower.clone(),
                by: upper.device.clone(),
            })
        })
        .collect()
}

/// The imported pools. The module is checked first, as `zpool` would load it.
fn imported(target: &dyn Target) -> Result<Vec<(String, Vec<String>)>, InventoryError> {
    let module = Command::reads("kldstat", ["-q", "-m", "zfs"]);
    if optional_output(target, &module)?.is_none() {
        return Ok(Vec::new());
    }
    let list = Command::reads("zpool", ["list", "-v", "-H", "-P", "-L"]);
    Ok(pools(&optional_output(target, &list)?.unwrap_or_default()))
}

/// The devices of the pool with the root file system.
fn root_pool(
    target: &dyn Target,
    inventory: &Inventory,
    teams: &[(String, Vec<String>)],
    source: &str,
) -> Result<Vec<String>, InventoryError> {
    let pool = source.split('/').next().unwrap_or_default();
    let names = teams
        .iter()
        .find(|(name, _)| name == pool)
        .map(|(_, names)| names);
    let devices: Vec<String> = names
        .into_iter()
        .flatten()
        .filter_map(|name| inventory.named(name))
        .map(|disk| disk.device.clone())
        .collect();
    if devices.is_empty() {
        return Err(super::root_unknown(target, pool));
    }
    Ok(devices)
}

#[cfg(test)]
mod tests {
    use super::{add_tree, parse_disks};
    use crate::choose::{Consent, Wanted, choose};
    use crate::testing::Machine;
    use crate::{DiskKind, Inventory};

    /// geomflash/geomflash on GitHub, commit 53edd63,
    /// test_raid1/test_raid1_gmirror.log; ada0 added after it.
    const DISKS: &str = "Geom name: ada0\nProviders:\n1. Name: ada0\n   \
        Mediasize: 16013942784 (15G)\n   Sectorsize: 512\n   Mode: r2w2e3\n   descr: SanDisk SSD\n   \
        ident: (null)\n   rotationrate: 0\n\nGeom name: ada2\nProviders:\n1. Name: ada2\n   \
        Mediasize: 4000787030016 (3.6T)\n   Sectorsize: 512\n   Mode: r0w0e0\n   \
        descr: WDC WD4000FYYZ-01UL1B2\n   lunid: 50014ee2b5659216\n   ident: WD-WCC133L4Y9LH\n   \
        fwsectors: 63\n   fwheads: 16\n\nGeom name: ada3\nProviders:\n1. Name: ada3\n   \
        Mediasize: 4000787030016 (3.6T)\n   Sectorsize: 512\n   Stripesize: 4096\n   Stripeoffset: 0\n   \
        Mode: r1w1e1\n   descr: WDC WD4000FYYZ-01UL1B2\n   lunid: 50014ee2600f6cff\n   \
        ident: WD-WCC133L4YFU8\n   rotationrate: 7200\n";

    /// In the form of trees published with FreeBSD 10 to 14.
    const TREE: &str = "0 DISK ada3 4000787030016 512 hd 16 sc 63\n\
        1 MIRROR mirror/m0 4000787029504 512\n\
        0 DISK ada2 4000787030016 512 hd 16 sc 63\n\
        1 LABEL diskid/DISK-WD-WCC133L4Y9LH 4000787030016 512 i 0 o 0\n\
        0 DISK ada0 16013942784 512 hd 16 sc 63\n\
        1 PART ada0p3 801112064 512 i 3 o 15032406016 ty freebsd-swap xs GPT xt 516e7cb5\n\
        1 PART ada0p2 15031566336 512 i 2 o 839680 ty freebsd-ufs xs GPT xt 516e7cb6\n\
        2 LABEL gpt/root 15031566336 512 i 0 o 0\n\
        0 MD md0 268435456 512 u 0 s 512 f 0 fs 0 l 268435456 t vnode file /srv/a.img\n";

    fn machine() -> Machine {
        Machine::default()
            .command("uname -s", 0, "FreeBSD\n")
            .command("geom disk list", 0, DISKS)
            .command("sysctl -n kern.geom.conftxt", 0, TREE)
            .command(
                "mount -p",
                0,
                "/dev/gpt/root\t/\tufs\trw\t1 1\ndevfs /dev devfs rw 0 0\n",
            )
            .command(
                "swapctl -l",
                0,
                "Device:       1024-blocks     Used:\n/dev/ada0p3 782336 0\n",
            )
            .command("kldstat -q -m zfs", 1, "")
            .command("gpart show -p ada2", 1, "")
            .command("fstyp -u /dev/ada2", 1, "")
            .command("geom mirror dump ada2", 1, "")
            .command("geom stripe dump ada2", 1, "")
            .command("geom raid3 dump ada2", 1, "")
            .command("geom concat dump ada2", 1, "")
    }

    #[test]
    fn disks_partitions_labels_and_files_are_found() {
        let inventory = Inventory::of(&machine()).unwrap();
        let disk = inventory.find("/dev/ada2").unwrap();
        assert_eq!(disk.serial.as_deref(), Some("WD-WCC133L4Y9LH"));
        assert_eq!(disk.stable_ids, ["/dev/diskid/DISK-WD-WCC133L4Y9LH"]);
        assert_eq!(
            inventory.find("/dev/ada3").unwrap().physical_sector_bytes,
            4096
        );
        assert_eq!(
            inventory.find("/dev/ada0p2").unwrap().start_sector,
            Some(1640)
        );
        let file = inventory.find("/dev/md0").unwrap();
        assert_eq!(
            (file.kind, file.backing_file.as_deref()),
            (DiskKind::Loop, Some("/srv/a.img"))
        );
        assert_eq!(inventory.root, ["/dev/ada0p2", "/dev/ada0"]);
        assert_eq!(inventory.find("/dev/mirror/m0").unwrap().on, ["/dev/ada3"]);
    }

    #[test]
    fn only_the_free_disk_is_given() {
        let inventory = Inventory::of(&machine()).unwrap();
        let refused = |name: &str| -> Vec<String> {
            let choice = choose(
                &machine(),
                &inventory,
                &[Wanted::named(name)],
                Consent::default(),
            );
            choice
                .unwrap()
                .refusals
                .iter()
                .map(ToString::to_string)
                .collect()
        };
        assert!(refused("WD-WCC133L4Y9LH").is_empty());
        let old = machine().command(
            "geom mirror dump ada2",
            0,
            "Metadata on ada2:\n     magic: GEOM::MIRROR\n",
        );
        let choice = choose(
            &old,
            &inventory,
            &[Wanted::named("/dev/ada2")],
            Consent::default(),
        );
        assert_eq!(choice.unwrap().refusals.len(), 1);
        insta::assert_snapshot!(refused("/dev/ada3").join("\n"), @r"
        /dev/ada3: somebody has it open (/dev/ada3, mode r1w1e1); end the program that uses it, or use another disk
        /dev/ada3: another device rests on it (/dev/mirror/m0 on /dev/ada3); take /dev/mirror/m0 down, or use another disk
        ");
        insta::assert_snapshot!(refused("/dev/ada0p3").join("\n"), @r"
        /dev/ada0p3: the root file system lies on this disk (/dev/ada0p3; / is on /dev/ada0p2, /dev/ada0); use another disk: this one is never given out
        /dev/ada0p3: somebody has it open (/dev/ada0, mode r2w2e3); end the program that uses it, or use another disk
        /dev/ada0p3: used for swap (/dev/ada0p3); swapoff /dev/ada0p3, or use another disk
        ");
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(?s).*", numbers in "([0-3] [A-Z]{2,6} [a-z0-9/]{1,6} [0-9]{1,20} [0-9]{1,4}( [a-z] [0-9]{1,20})*\n)*") {
            let (mut disks, _) = parse_disks(&text);
            add_tree(&mut disks, &text);
            add_tree(&mut disks, &numbers);
        }
    }
}
