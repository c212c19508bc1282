//! Each reason with a machine that triggers it and one that does not.

use super::{Choice, Consent, Identity, Planned, Reason, Wanted, choose, open_by_others};
use crate::Inventory;
use crate::testing::Machine;

const WIPE: Consent = Consent {
    wipe_signatures: true,
};
const KEEP: Consent = Consent {
    wipe_signatures: false,
};

fn asked(machine: &Machine, wishes: &[Wanted], consent: Consent) -> Choice {
    let inventory = Inventory::of(machine).unwrap();
    choose(machine, &inventory, wishes, consent).unwrap()
}

fn refusals(machine: &Machine, name: &str, consent: Consent) -> String {
    let lines: Vec<String> = asked(machine, &[Wanted::named(name)], consent)
        .refusals
        .iter()
        .map(ToString::to_string)
        .collect();
    lines.join("\n")
}

#[test]
fn a_blank_loop_device_is_given() {
    let choice = asked(&Machine::loops(), &[Wanted::named("/dev/loop4")], KEEP);
    assert!(choice.is_accepted(), "{:?}", choice.refusals);
    assert!(choice.warnings.is_empty());
    assert_eq!(choice.disks[0].disk.size_bytes, 256 << 20);
    assert!(choice.disks[0].signatures.is_empty());
}

#[test]
fn a_mounted_disk_is_refused_whatever_the_consent() {
    insta::assert_snapshot!(refusals(&Machine::loops(), "/dev/loop0", WIPE), @"/dev/loop0: mounted (/dev/loop0 at /srv/inventory/mnt, ext4); umount /srv/inventory/mnt, or use another disk");
}

#[test]
fn both_members_of_a_mounted_btrfs_are_refused() {
    insta::assert_snapshot!(refusals(&Machine::loops(), "/dev/loop1", WIPE), @r"
    /dev/loop1: mounted (/dev/loop1 at /srv/inventory/bmnt, btrfs); umount /srv/inventory/bmnt, or use another disk
    /dev/loop1: a member of something that runs (/dev/loop1 in btrfs 1c8c9655-38a7-4039-b189-a93951d120dc); take btrfs 1c8c9655-38a7-4039-b189-a93951d120dc down, or use another disk
    ");
    insta::assert_snapshot!(refusals(&Machine::loops(), "/dev/loop2", WIPE), @"/dev/loop2: a member of something that runs (/dev/loop2 in btrfs 1c8c9655-38a7-4039-b189-a93951d120dc); take btrfs 1c8c9655-38a7-4039-b189-a93951d120dc down, or use another disk");
}

#[test]
fn swap_is_refused() {
    insta::assert_snapshot!(refusals(&Machine::loops(), "/dev/loop6", WIPE), @"/dev/loop6: used for swap (/dev/loop6); swapoff /dev/loop6, or use another disk");
}

#[test]
fn a_signature_needs_consent() {
    let machine = Machine::loops();
    insta::assert_snapshot!(refusals(&machine, "/dev/loop3", KEEP), @r#"/dev/loop3: somebody's data lie on it (ext4 on /dev/loop3 labelled "foreign" with UUID 9d2eaa83-1ba6-4e3f-9843-5471237d828b); if nobody needs the data, agree to their loss with --wipe-signatures"#);
    assert_eq!(refusals(&machine, "/dev/loop3", WIPE), "");
    insta::assert_snapshot!(refusals(&machine, "/dev/loop5", KEEP), @"/dev/loop5: somebody's data lie on it (dos on /dev/loop5); if nobody needs the data, agree to their loss with --wipe-signatures");
    assert_eq!(refusals(&machine, "/dev/loop5", WIPE), "");
}

#[test]
fn without_wipefs_no_disk_is_given() {
    let machine = Machine::loops().command("wipefs --no-act --json /dev/loop4", 1, "");
    insta::assert_snapshot!(refusals(&machine, "/dev/loop4", WIPE), @"/dev/loop4: what lies on it cannot be told (on localhost, `wipefs --no-act --json /dev/loop4` ended with exit code 1); run as root, with wipefs of util-linux 2.33 or later");
}

#[test]
fn the_root_disk_is_never_given() {
    insta::assert_snapshot!(refusals(&Machine::loops(), "/dev/vda", WIPE), @"/dev/vda: the root file system lies on this disk (/dev/vda; / is on /dev/vda); use another disk: this one is never given out");
}

#[test]
fn a_mount_that_only_the_kernel_sees_is_refused() {
    let machine = Machine::loops().folder("/sys/fs/ext4", &["features", "loop3", "vda"]);
    insta::assert_snapshot!(refusals(&machine, "/dev/loop3", WIPE), @"/dev/loop3: mounted in another mount namespace (/dev/loop3, ext4, listed in /sys/fs/ext4); stop the container or unit that mounted it");
}

#[test]
fn a_member_of_an_array_is_refused_active_or_not() {
    let machine = Machine::loops().file(
        "/proc/mdstat",
        "Personalities : [raid1]\nmd7 : active raid1 loop4[0] loop3[1]\n      1 blocks\n",
    );
    insta::assert_snapshot!(refusals(&machine, "/dev/loop4", WIPE), @"/dev/loop4: a member of something that runs (/dev/loop4 in /dev/md7 (md raid1)); take /dev/md7 (md raid1) down, or use another disk");
}

#[test]
fn a_member_of_an_imported_pool_is_refused() {
    let machine = Machine::loops()
        .folder("/proc/spl/kstat/zfs", &["tank"])
        .command(
            "zpool list -v -H -P -L",
            0,
            "tank\t240M\t1M\n\tmirror-0\t240M\n\t/dev/loop4\t-\n",
        );
    insta::assert_snapshot!(refusals(&machine, "/dev/loop4", WIPE), @"/dev/loop4: a member of something that runs (/dev/loop4 in ZFS pool tank); take ZFS pool tank down, or use another disk");
    assert_eq!(refusals(&machine, "/dev/loop3", WIPE), "");
}

#[test]
fn a_device_under_another_loop_is_refused() {
    let machine = Machine::loops().file("/sys/block/loop5/loop/backing_file", "/dev/loop4\n");
    assert_eq!(refusals(&machine, "/dev/loop5", WIPE), "");
    let both = ["/dev/loop5", "/dev/loop4"].map(Wanted::named);
    let choice = asked(&machine, &both, WIPE);
    assert!(matches!(
        choice.refusals[0].reason,
        Reason::InUse { .. } | Reason::GivenTwice { .. }
    ));
    let root = Machine::loops().file("/sys/block/loop5/loop/backing_file", "/dev/vda\n");
    let choice = asked(&root, &[Wanted::named("/dev/loop5")], WIPE);
    assert!(matches!(choice.refusals[0].reason, Reason::Root { .. }));
    insta::assert_snapshot!(refusals(&machine, "/dev/loop4", WIPE), @"/dev/loop4: another device rests on it (/dev/loop5 on /dev/loop4); take /dev/loop5 down, or use another disk");
}

#[test]
fn a_disk_that_other_machines_have_by_nvme_over_fabrics_is_refused() {
    let spaces = "/sys/kernel/config/nvmet/subsystems/home/namespaces";
    let machine = Machine::loops()
        .folder(spaces.trim_end_matches("/home/namespaces"), &["home"])
        .folder(spaces, &["1", "2"])
        .file(&format!("{spaces}/1/device_path"), "/dev/loop4\n")
        .file(&format!("{spaces}/1/enable"), "1\n")
        .file(&format!("{spaces}/2/device_path"), "/dev/loop3\n")
        .file(&format!("{spaces}/2/enable"), "0\n");
    insta::assert_snapshot!(refusals(&machine, "/dev/loop4", WIPE), @"/dev/loop4: given to other machines by NVMe over Fabrics (/dev/loop4 in the subsystem home); take the subsystem home down, or use another disk");
    assert_eq!(refusals(&machine, "/dev/loop3", WIPE), "");
}

#[test]
fn a_read_only_disk_is_refused() {
    let machine = Machine::loops().edit_command(
        "lsblk",
        "\"maj:min\": \"7:4\",\n         \"size\": 268435456,\n         \"ro\": false",
        "\"maj:min\": \"7:4\",\n         \"size\": 268435456,\n         \"ro\": true",
    );
    insta::assert_snapshot!(refusals(&machine, "/dev/loop4", WIPE), @"/dev/loop4: read-only (/dev/loop4); lift its write protection (`blockdev --setrw`)");
}

#[test]
fn one_disk_under_two_names_is_refused() {
    let by_id = "/dev/disk/by-id/virtio-four";
    let machine = Machine::loops()
        .folder("/dev/disk/by-id", &["virtio-four"])
        .link(by_id, "/dev/loop4");
    let twice = [Wanted::named(by_id), Wanted::named("/dev/loop4")];
    let choice = asked(&machine, &twice, KEEP);
    insta::assert_snapshot!(choice.refusals[0], @"/dev/loop4: the same disk is given twice (/dev/loop4, and /dev/loop4 as /dev/disk/by-id/virtio-four); give each disk once");
    let different = [Wanted::named(by_id), Wanted::named("/dev/loop3")];
    assert!(asked(&machine, &different, WIPE).is_accepted());
}

#[test]
fn two_loop_devices_on_one_file_are_one_disk() {
    let file = "/srv/one.img\n";
    let machine = Machine::loops()
        .file("/sys/block/loop3/loop/backing_file", file)
        .file("/sys/block/loop4/loop/backing_file", file);
    let both = [Wanted::named("/dev/loop3"), Wanted::named("/dev/loop4")];
    let choice = asked(&machine, &both, WIPE);
    insta::assert_snapshot!(choice.refusals[0], @"/dev/loop4: the same disk is given twice (/dev/loop4, and /dev/loop3 as /dev/loop3); give each disk once");
}

#[test]
fn a_disk_that_changed_since_the_plan_is_refused() {
    let machine = Machine::loops();
    let inventory = Inventory::of(&machine).unwrap();
    let identity = Identity::of(&inventory, inventory.find("/dev/loop4").unwrap());
    let planned = Planned {
        asked: "/dev/loop4".to_owned(),
        device: Some("/dev/loop4".to_owned()),
        identity: identity.clone(),
        signatures: Vec::new(),
    };
    let mut wanted = Wanted::named("/dev/loop4");
    wanted.planned = Some(planned.clone());
    assert!(asked(&machine, &[wanted.clone()], KEEP).is_accepted());
    wanted.planned = Some(Planned {
        identity: Identity {
            serial: Some("WD-WCC130234567".to_owned()),
            ..identity
        },
        ..planned.clone()
    });
    let choice = asked(&machine, &[wanted], KEEP);
    insta::assert_snapshot!(choice.refusals[0], @"/dev/loop4: not the disk that the plan was made for (serial: was WD-WCC130234567, is none); put the planned disk back, or begin a new run");
}

#[test]
fn a_name_that_leads_to_another_device_since_the_plan_is_refused() {
    let by_id = "/dev/disk/by-id/virtio-four";
    let to = |device: &str| Machine::loops().link(by_id, device);
    let choice = asked(&to("/dev/loop4"), &[Wanted::named(by_id)], WIPE);
    let mut wanted = Wanted::named(by_id);
    wanted.planned = Some(Planned::of(&choice.disks[0]));
    assert!(asked(&to("/dev/loop4"), &[wanted.clone()], WIPE).is_accepted());
    let choice = asked(&to("/dev/loop3"), &[wanted], WIPE);
    let refused = choice.refusals[0].to_string();
    assert!(
        refused.contains("device: was /dev/loop4, is /dev/loop3"),
        "{refused}"
    );
}

#[test]
fn what_has_come_onto_a_disk_since_the_plan_is_no_one_s_to_wipe() {
    let machine = Machine::loops();
    let mut choice = asked(&machine, &[Wanted::named("/dev/loop3")], WIPE);
    let mut wanted = Wanted::named("/dev/loop3");
    // What was agreed to may be lost.
    let agreed = Planned::of(&choice.disks[0]);
    assert!(!agreed.signatures.is_empty());
    wanted.planned = Some(agreed.clone());
    assert!(asked(&machine, &[wanted.clone()], WIPE).is_accepted());
    // The same, had the disk been blank, or another file system's.
    for signature in [None, Some("another")] {
        let mut planned = agreed.clone();
        match signature {
            None => planned.signatures.clear(),
            Some(uuid) => planned.signatures[0].uuid = Some(uuid.to_owned()),
        }
        wanted.planned = Some(planned);
        choice = asked(&machine, &[wanted.clone()], WIPE);
        let refused = choice.refusals[0].to_string();
        assert!(
            refused.contains("have come onto it since the plan"),
            "{refused}"
        );
    }
}

#[test]
fn names_that_mean_no_disk_are_refused() {
    let machine = Machine::loops().link("/etc/passwd", "/etc/passwd");
    insta::assert_snapshot!(refusals(&machine, "/dev/sdz", WIPE), @"/dev/sdz: no such disk on localhost (neither a path nor a serial number there); `lsblk -o NAME,SIZE,MODEL,SERIAL` shows the disks of a machine, on FreeBSD `geom disk list`");
    insta::assert_snapshot!(refusals(&machine, "/etc/passwd", WIPE), @"/etc/passwd: no block device, or one of no size (it leads to /etc/passwd); give a disk, or make a loop device of the file");
    insta::assert_snapshot!(refusals(&machine, "WD-NOSUCH", WIPE), @"WD-NOSUCH: no such disk on localhost (neither a path nor a serial number there); `lsblk -o NAME,SIZE,MODEL,SERIAL` shows the disks of a machine, on FreeBSD `geom disk list`");
}

/// A storage server, put together by hand in the form of real answers: the
/// root on an md mirror of the first partitions of sda and sdb; sdc free but
/// shingled, its partition at sector 63; sdd and sde two paths to one drive.
fn server() -> Machine {
    let disk = |name: &str, number: u32, model: &str, serial: &str, children: &str| {
        format!(
            r#"{{"kname":"{name}","type":"disk","maj:min":"8:{number}","size":4000787030016,"ro":false,
                "phy-sec":4096,"log-sec":512,"model":"{model}","serial":"{serial}",
                "children":[{children}]}}"#
        )
    };
    let part = |name: &str, number: u32, children: &str| {
        format!(
            r#"{{"kname":"{name}","type":"part","maj:min":"8:{number}","size":1000,"ro":false,
                "phy-sec":4096,"log-sec":512,"children":[{children}]}}"#
        )
    };
    let array = r#"{"kname":"md0","type":"raid1","maj:min":"9:0","size":1000}"#;
    let free = part("sda2", 2, "");
    let devices = [
        disk(
            "sda",
            0,
            "WDC WD4000FYYZ-01UL1B2",
            "A",
            &format!("{},{free}", part("sda1", 1, array)),
        ),
        disk(
            "sdb",
            16,
            "WDC WD4000FYYZ-01UL1B2",
            "B",
            &part("sdb1", 17, array),
        ),
        disk("sdc", 32, "ST4000DM004-2CV104", "C", &part("sdc1", 33, "")),
        disk("sdd", 48, "WDC WD4000FYYZ-01UL1B2", "D", ""),
        disk("sde", 64, "WDC WD4000FYYZ-01UL1B2", "D", ""),
    ];
    let listing = format!(r#"{{"blockdevices":[{}]}}"#, devices.join(","));
    let mut machine = Machine::default()
        .command("uname -s", 0, "Linux\n")
        .command(&crate::disks::lsblk_command().to_string(), 0, &listing)
        .file(
            "/proc/self/mountinfo",
            "27 1 9:0 / / rw - ext4 /dev/root rw\n",
        )
        .file("/sys/class/block/sdc1/start", "63\n")
        .folder(
            "/dev/disk/by-id",
            &["ata-ST4000DM004_C", "wwn-0x5000c", "ata-WDC_B"],
        )
        .link("/dev/disk/by-id/ata-ST4000DM004_C", "/dev/sdc")
        .link("/dev/disk/by-id/wwn-0x5000c", "/dev/sdc")
        .link("/dev/disk/by-id/ata-WDC_B", "/dev/sdb");
    for name in ["sda2", "sdc", "sdc1", "sdd", "sde"] {
        machine = machine.command(&format!("wipefs --no-act --json /dev/{name}"), 0, "");
    }
    machine
}

#[test]
fn every_disk_below_the_root_is_refused_and_its_free_partition_too() {
    for name in ["A", "/dev/sda2", "/dev/disk/by-id/ata-WDC_B"] {
        let choice = asked(&server(), &[Wanted::named(name)], WIPE);
        assert!(
            matches!(choice.refusals[0].reason, Reason::Root { .. }),
            "{name}: {:?}",
            choice.refusals
        );
    }
}

#[test]
fn a_disk_is_refused_for_what_its_partition_carries() {
    let mountinfo = "27 1 9:0 / / rw - ext4 /dev/root rw\n\
        28 27 8:33 / /srv rw - xfs /dev/sdc1 rw\n";
    let mounted = server().file("/proc/self/mountinfo", mountinfo);
    insta::assert_snapshot!(refusals(&mounted, "/dev/sdc", WIPE), @"/dev/sdc: mounted (/dev/sdc1 at /srv, xfs); umount /srv, or use another disk");
    let mapped = server().folder("/sys/class/block/sdc1/holders", &["dm-0"]);
    insta::assert_snapshot!(refusals(&mapped, "/dev/sdc", WIPE), @"/dev/sdc: another device rests on it (/dev/dm-0 on /dev/sdc1); take /dev/dm-0 down, or use another disk");
    let ext4 = r#"{"signatures":[{"device":"sdc1","type":"ext4","uuid":"u","label":null}]}"#;
    let data = server().command("wipefs --no-act --json /dev/sdc1", 0, ext4);
    insta::assert_snapshot!(refusals(&data, "/dev/sdc", KEEP), @"/dev/sdc: somebody's data lie on it (ext4 on /dev/sdc1 with UUID u); if nobody needs the data, agree to their loss with --wipe-signatures");
    assert_eq!(refusals(&data, "/dev/sdc", WIPE), "");
    assert_eq!(refusals(&server(), "/dev/sdc", KEEP), "");
}

#[test]
fn a_disk_is_known_by_its_stable_name_or_serial_number() {
    let machine = server();
    for name in [
        "C",
        "/dev/disk/by-id/ata-ST4000DM004_C",
        "/dev/disk/by-id/wwn-0x5000c",
    ] {
        let choice = asked(&machine, &[Wanted::named(name)], KEEP);
        assert!(choice.is_accepted(), "{:?}", choice.refusals);
        let disk = &choice.disks[0].disk;
        assert_eq!(disk.stable_name(), "/dev/disk/by-id/ata-ST4000DM004_C");
    }
    insta::assert_snapshot!(refusals(&machine, "D", KEEP), @"D: several disks have this serial number (/dev/sdd, /dev/sde); name it by its path below /dev/disk/by-id");
}

#[test]
fn two_paths_to_one_drive_are_one_disk() {
    let both = ["/dev/sdd", "/dev/sde"].map(Wanted::named);
    let choice = asked(&server(), &both, KEEP);
    assert!(matches!(
        choice.refusals[0].reason,
        Reason::GivenTwice { .. }
    ));
    let different = ["/dev/sdd", "/dev/sdc"].map(Wanted::named);
    assert!(asked(&server(), &different, KEEP).is_accepted());
}

/// Bridges of one make have one serial number.
#[test]
fn disks_behind_bridges_of_one_make_are_told_apart_by_their_ports() {
    let bridges = |first: &str, second: &str| {
        server()
            .edit_command("lsblk", r#""serial":"D","#, r#""serial":"D","tran":"usb","#)
            .link("/sys/block/sdd", &format!("/sys/devices/usb1/{first}/sdd"))
            .link("/sys/block/sde", &format!("/sys/devices/usb1/{second}/sde"))
    };
    let machine = bridges("1-1", "1-2");
    let both = ["/dev/sdd", "/dev/sde"].map(Wanted::named);
    let choice = asked(&machine, &both, KEEP);
    assert!(choice.is_accepted(), "{:?}", choice.refusals);
    // They were put into each other's ports.
    let mut wanted = Wanted::named("/dev/sdd");
    wanted.planned = Some(Planned::of(&choice.disks[0]));
    assert!(asked(&machine, &[wanted.clone()], KEEP).is_accepted());
    let choice = asked(&bridges("1-2", "1-1"), &[wanted], KEEP);
    let refused = choice.refusals[0].to_string();
    assert!(refused.contains("connection: was "), "{refused}");
}

#[test]
fn unstable_names_shingles_and_misalignment_are_warned_of() {
    let warnings = |name: &str| -> Vec<String> {
        let choice = asked(&server(), &[Wanted::named(name)], KEEP);
        choice.warnings.iter().map(ToString::to_string).collect()
    };
    insta::assert_snapshot!(warnings("/dev/sdc").join("\n"), @r#"
    /dev/sdc may be another disk after a reboot; name it /dev/disk/by-id/ata-ST4000DM004_C
    /dev/sdc is a ST4000DM004-2CV104, which hides shingled tracks (Seagate, "CMR and SMR Hard Drives", product list): long writes and rebuilds collapse, compare it with none but its like
    "#);
    insta::assert_snapshot!(warnings("/dev/sdc1").join("\n"), @r#"
    /dev/sdc1 may be another disk after a reboot, and has no name that stays
    /dev/sdc1 is a ST4000DM004-2CV104, which hides shingled tracks (Seagate, "CMR and SMR Hard Drives", product list): long writes and rebuilds collapse, compare it with none but its like
    /dev/sdc1 begins 3584 bytes into a physical sector of 4096: small writes become reads and writes
    "#);
    insta::assert_snapshot!(warnings("/dev/sdd").join("\n"), @"/dev/sdd may be another disk after a reboot, and has no name that stays");
    assert_eq!(warnings("/dev/disk/by-id/wwn-0x5000c").len(), 1);
}

#[test]
fn a_file_that_another_loop_device_uses_is_refused() {
    // loop0 is mounted.
    let file = "/srv/one.img\n";
    let machine = Machine::loops()
        .file("/sys/block/loop0/loop/backing_file", file)
        .file("/sys/block/loop4/loop/backing_file", file);
    insta::assert_snapshot!(refusals(&machine, "/dev/loop4", WIPE), @"/dev/loop4: the same as /dev/loop0, which is in use: mounted (/dev/loop0 at /srv/inventory/mnt, ext4); umount /srv/inventory/mnt, or use another disk");
    assert_eq!(refusals(&machine, "/dev/loop3", WIPE), "");
}

#[test]
fn a_drive_that_is_in_use_by_another_path_is_refused() {
    let mountinfo = "27 1 9:0 / / rw - ext4 /dev/root rw\n\
        28 27 8:64 / /srv rw - xfs /dev/sde rw\n";
    let mounted = server().file("/proc/self/mountinfo", mountinfo);
    insta::assert_snapshot!(refusals(&mounted, "/dev/sdd", WIPE), @"/dev/sdd: the same as /dev/sde, which is in use: mounted (/dev/sde at /srv, xfs); umount /srv, or use another disk");
    let root = server().file(
        "/proc/self/mountinfo",
        "27 1 8:64 / / rw - ext4 /dev/root rw\n",
    );
    insta::assert_snapshot!(refusals(&root, "/dev/sdd", WIPE), @"/dev/sdd: the root file system lies on this disk (/dev/sde; / is on /dev/sde); use another disk: this one is never given out");
    assert_eq!(refusals(&server(), "/dev/sdd", KEEP), "");
}

#[test]
fn partitions_are_told_apart_by_their_drives() {
    let machine = server().file("/sys/class/block/sda2/start", "63\n");
    let inventory = Inventory::of(&machine).unwrap();
    let of = |device: &str| Identity::of(&inventory, inventory.find(device).unwrap());
    let changes = of("/dev/sdc1").changes(&of("/dev/sda2"));
    assert_eq!(
        changes,
        [
            "serial: was C, is A",
            "model: was ST4000DM004-2CV104, is WDC WD4000FYYZ-01UL1B2"
        ]
    );
    assert_eq!(of("/dev/sdc1").size_bytes, 1000);
}

/// A virtual machine opens its disk like any file.
#[test]
fn a_disk_that_a_program_has_open_is_refused() {
    let script = r#"find /proc/[0-9]*/fd -maxdepth 1 -lname '/*' -printf '%p %l\n'"#;
    let command = raidlab_shell::Command::reads("sh", ["-c", script]);
    let own = std::process::id();
    let open = format!(
        "/proc/1/fd/0 /dev/null\n/proc/4242/fd/11 /dev/loop4\n/proc/4242/fd/12 /dev/loop4\n\
         /proc/{own}/fd/3 /dev/loop3\n"
    );
    let machine = Machine::loops()
        .command(&command.to_string(), 1, &open)
        .file("/proc/4242/comm", "qemu-system-x86\n");
    let inventory = Inventory::of(&machine).unwrap();
    let opened = |name: &str| {
        let choice = asked(&machine, &[Wanted::named(name)], WIPE);
        let refused = open_by_others(&machine, &inventory, &choice.disks).unwrap();
        let lines: Vec<String> = refused.iter().map(ToString::to_string).collect();
        lines.join("\n")
    };
    insta::assert_snapshot!(opened("/dev/loop4"), @"/dev/loop4: somebody has it open (/dev/loop4 by qemu-system-x86, process 4242); end the program that uses it, or use another disk");
    assert_eq!(opened("/dev/loop3"), "");
}

/// One that has the file behind a loop device has all that is on the device.
#[test]
fn a_loop_device_whose_file_a_program_has_open_is_refused() {
    let command = super::openers::open_files();
    let open = "/proc/4242/fd/11 /srv/inventory/other.img\n/proc/4242/fd/12 FILE\n";
    let inventory = Inventory::of(&Machine::loops()).unwrap();
    let chosen = asked(&Machine::loops(), &[Wanted::named("/dev/loop4")], WIPE).disks;
    let file = chosen[0].disk.backing_file.as_deref().unwrap();
    let machine = Machine::loops()
        .command(&command.to_string(), 0, &open.replace("FILE", file))
        .file("/proc/4242/comm", "qemu-system-x86\n");
    let refused = open_by_others(&machine, &inventory, &chosen).unwrap();
    let lines: Vec<String> = refused.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @"/dev/loop4: somebody has it open (/srv/inventory/clean.img by qemu-system-x86, process 4242); end the program that uses it, or use another disk");
}

#[test]
fn all_devices_of_a_mounted_bcachefs_are_refused() {
    let with = |at: &str| {
        let line = format!("27 1 0:40 / {at} rw - bcachefs /dev/loop3:/dev/loop4 rw\n");
        Machine::loops().file("/proc/self/mountinfo", &line)
    };
    insta::assert_snapshot!(refusals(&with("/srv"), "/dev/loop4", WIPE), @"/dev/loop4: a member of something that runs (/dev/loop4 in bcachefs at /srv); take bcachefs at /srv down, or use another disk");
    let root = asked(&with("/"), &[Wanted::named("/dev/loop4")], WIPE);
    assert!(matches!(root.refusals[0].reason, Reason::Root { .. }));
}
