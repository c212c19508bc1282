use super::*;
use crate::array::ChangeMembers;
use crate::array::geom::fixtures::{array, plan};
use raidlab_shell::{Output, Recorded};

mod status;

fn spec(toml: &str) -> ZfsSpec {
    toml::from_str(toml).unwrap()
}

fn in_folder(devices: &[&str]) -> Built {
    Built {
        folder: "/mnt/raidlab0".to_owned(),
        ..array("raidlab0", devices)
    }
}

/// The plan without the labels and blanks of each member.
fn short_plan(commands: &[Command]) -> String {
    let kept = commands.iter().filter(|command| {
        command.program != "dd" && command.arguments.first().is_none_or(|a| a != "labelclear")
    });
    plan(&kept.cloned().collect::<Vec<_>>())
}

#[test]
fn the_volume_of_2015_with_its_settings_really_asked_for() {
    let spec = spec(
        "topology = \"mirror\"\nashift = 9\ncompression = \"off\"\ndedup = \"off\"\n\
         checksum = \"off\"\nprimarycache = \"metadata\"\n\
         [volume]\nsize = \"3t\"\nvolblocksize = \"8k\"\n",
    );
    let pool = array("tpool", &["ada2", "ada3"]);
    insta::assert_snapshot!(plan(&spec.create(&pool).unwrap()), @r#"
    Destroys: zpool labelclear -f ada2  [0, 1]
    Destroys: zpool labelclear -f ada3  [0, 1]
    Destroys: zpool create -f -o ashift=9 -m none tpool mirror /dev/ada2 /dev/ada3
    Changes: zfs create -V 3298534883328 -b 8192 -o compression=off -o checksum=off -o dedup=off -o primarycache=metadata tpool/vol
    "#);
    assert_eq!(
        spec.access(&pool),
        Access::Device("/dev/zvol/tpool/vol".to_owned())
    );
    assert_eq!(spec.capacity(&pool.members), Bytes(3 << 40));
    insta::assert_snapshot!(plan(&spec.destroy(&pool)), @r#"
    Destroys: zpool destroy -f tpool
    Destroys: zpool labelclear -f ada2  [0, 1]
    Destroys: wipefs --all /dev/ada2
    Destroys: zpool labelclear -f ada3  [0, 1]
    Destroys: wipefs --all /dev/ada3
    "#);
}

#[test]
fn a_build_table_names_its_system() {
    use crate::array::spec::ArraySpec;
    let titles: Vec<String> = [
        "[zfs]\ntopology = \"raidz1\"",
        "[gmirror]\nbalance = \"prefer\"",
        "[gstripe]\nstripesize = \"64k\"",
        "[graid3]\nverify = true",
        "[gflash]\ncache = true",
    ]
    .iter()
    .map(|text| toml::from_str::<ArraySpec>(text).unwrap().title())
    .collect();
    let expected = [
        "ZFS raidz1",
        "gmirror prefer",
        "gstripe",
        "graid3",
        "gflash with cache",
    ];
    assert_eq!(titles, expected);
}

#[test]
fn members_are_data_then_log_then_cache() {
    let spec = spec(
        "topology = \"striped-mirrors\"\nlog = 2\nlog_mirror = true\ncache = 1\natime = false\n\
         recordsize = \"1m\"\n[pool_options]\nfailmode = \"continue\"\n\
         [options]\nxattr = \"sa\"\n",
    );
    let pool = in_folder(&["sdb", "sdc", "sdd", "sde", "nvme0n1", "nvme1n1", "nvme2n1"]);
    insta::assert_snapshot!(short_plan(&spec.create(&pool).unwrap()), @r#"
    Destroys: zpool create -f -o failmode=continue -m none raidlab0 mirror /dev/sdb /dev/sdc mirror /dev/sdd /dev/sde log mirror /dev/nvme0n1 /dev/nvme1n1 cache /dev/nvme2n1
    Changes: zfs create -o mountpoint=/mnt/raidlab0 -o recordsize=1048576 -o atime=off -o xattr=sa raidlab0/data
    "#);
    assert_eq!(spec.title(), "ZFS striped mirrors + log + cache");
    assert_eq!(
        spec.access(&pool),
        Access::Folder("/mnt/raidlab0".to_owned())
    );
    let verbs = |slot: usize| {
        let mut text = String::new();
        let verbs = [
            ("fail", spec.fail(&pool, slot)),
            ("remove", spec.remove(&pool, slot)),
            ("add", spec.add(&pool, slot)),
            ("re-add", spec.re_add(&pool, slot)),
        ];
        for (verb, commands) in verbs {
            let commands = commands.map_or_else(|error| error.to_string(), |c| short_plan(&c));
            text.push_str(&format!("{verb}: {}\n", commands.trim_end()));
        }
        text
    };
    insta::assert_snapshot!(verbs(2), @r#"
    fail: Changes: zpool offline -f raidlab0 /dev/sdd
    remove: Changes: zpool detach raidlab0 /dev/sdd
    add: Destroys: zpool attach -f raidlab0 /dev/sde /dev/sdd
    re-add: Changes: zpool online raidlab0 /dev/sdd  [0, 1]
    Changes: zpool clear raidlab0 /dev/sdd
    "#);
    insta::assert_snapshot!(verbs(4), @r#"
    fail: Changes: zpool offline -f raidlab0 /dev/nvme0n1
    remove: Changes: zpool detach raidlab0 /dev/nvme0n1
    add: Destroys: zpool attach -f raidlab0 /dev/nvme1n1 /dev/nvme0n1
    re-add: Changes: zpool online raidlab0 /dev/nvme0n1  [0, 1]
    Changes: zpool clear raidlab0 /dev/nvme0n1
    "#);
    insta::assert_snapshot!(verbs(6), @r#"
    fail: ZFS striped mirrors + log + cache cannot fail a cache device: remove it instead
    remove: Changes: zpool remove raidlab0 /dev/nvme2n1
    add: Destroys: zpool add -f raidlab0 cache /dev/nvme2n1
    re-add: Destroys: zpool add -f raidlab0 cache /dev/nvme2n1
    "#);
}

#[test]
fn a_member_of_raidz_is_taken_offline_and_replaced_by_itself() {
    let spec = spec("topology = \"raidz2\"\nlog = 1");
    let pool = in_folder(&["sdb", "sdc", "sdd", "sde", "sdf"]);
    insta::assert_snapshot!(short_plan(&spec.create(&pool).unwrap()), @r#"
    Destroys: zpool create -f -m none raidlab0 raidz2 /dev/sdb /dev/sdc /dev/sdd /dev/sde log /dev/sdf
    Changes: zfs create -o mountpoint=/mnt/raidlab0 raidlab0/data
    "#);
    insta::assert_snapshot!(plan(&spec.remove(&pool, 3).unwrap()), @"Changes: zpool offline raidlab0 /dev/sde");
    insta::assert_snapshot!(plan(&spec.add(&pool, 3).unwrap()), @r#"
    Destroys: zpool labelclear -f sde  [0, 1]
    Destroys: dd if=/dev/zero of=/dev/sde bs=1048576 seek=0 count=16
    Destroys: dd if=/dev/zero of=/dev/sde bs=4096 seek=976750550 count=4096
    Destroys: zpool replace -f raidlab0 /dev/sde
    "#);
    insta::assert_snapshot!(plan(&spec.remove(&pool, 4).unwrap()), @"Changes: zpool remove raidlab0 /dev/sdf");
    insta::assert_snapshot!(short_plan(&spec.add(&pool, 4).unwrap()), @"Destroys: zpool add -f raidlab0 log /dev/sdf");
}

#[test]
fn a_mirror_can_be_rebuilt_in_the_order_of_the_disk() {
    let spec = spec("topology = \"mirror\"\nsequential = true");
    let pool = in_folder(&["sdb", "sdc"]);
    insta::assert_snapshot!(short_plan(&spec.add(&pool, 0).unwrap()), @"Destroys: zpool attach -f -s raidlab0 /dev/sdc /dev/sdb");
}

#[test]
fn what_cannot_be_built_or_done_is_refused() {
    let refusals = [
        ("topology = \"single\"", 2),
        ("topology = \"mirror\"", 1),
        ("topology = \"mirror\"\ncache = 2", 2),
        ("topology = \"striped-mirrors\"\ncopies = 3", 4),
        ("topology = \"striped-mirrors\"", 2),
        ("topology = \"raidz2\"", 2),
        ("topology = \"mirror\"\ncopies = 2", 2),
        ("topology = \"mirror\"\nlog = 1\nlog_mirror = true", 3),
        ("topology = \"raidz1\"\nsequential = true", 3),
        ("topology = \"mirror\"\natime = false\n[volume]", 2),
        ("topology = \"mirror\"\nrecordsize = \"96k\"", 2),
        (
            "topology = \"mirror\"\nsync = \"always\"\n[options]\nsync = \"disabled\"",
            2,
        ),
        ("topology = \"mirror\"\n[pool_options]\nashift = \"12\"", 2),
        ("topology = \"mirror\"\nashift = 17", 2),
    ];
    let devices = ["sdb", "sdc", "sdd", "sde"];
    let mut text = String::new();
    for (toml, count) in refusals {
        let pool = in_folder(&devices[..count]);
        let error = spec(toml).create(&pool).unwrap_err();
        text.push_str(&format!("{error}\n"));
    }
    insta::assert_snapshot!(text, @r#"
    ZFS single cannot be built: it is one disk and there are 2
    ZFS mirror cannot be built: it takes 2 disks or more and there are 1
    ZFS mirror + cache cannot be built: 2 members leave none for data beside 0 log and 2 cache devices
    ZFS striped mirrors cannot be built: 4 disks do not make two or more mirrors of 3
    ZFS striped mirrors cannot be built: 2 disks do not make two or more mirrors of 2
    ZFS raidz2 cannot be built: it takes 3 disks or more and there are 2
    ZFS mirror cannot be built: `copies` is for striped mirrors
    ZFS mirror + log cannot be built: `log_mirror` takes 2 log devices or more
    ZFS raidz1 cannot be built: `sequential` is for mirrors
    ZFS mirror cannot be built: a volume has no `atime`
    ZFS mirror cannot be built: `recordsize` must be a power of two from 512
    ZFS mirror cannot be built: `sync` is given twice
    ZFS mirror cannot be built: `ashift` is a field of its own
    ZFS mirror cannot be built: `ashift` must be from 9 to 16
    "#);
    let stripe = spec("topology = \"stripe\"");
    insta::assert_snapshot!(stripe.fail(&in_folder(&["sdb", "sdc"]), 0).unwrap_err(), @"ZFS stripe cannot fail a member: the pool has no second copy of its data");
    assert!(stripe.remove(&in_folder(&["sdb", "sdc"]), 0).is_err());
    assert!(stripe.add(&in_folder(&["sdb", "sdc"]), 2).is_err());
    assert!(toml::from_str::<ZfsSpec>("topology = \"raidz4\"").is_err());
    assert!(toml::from_str::<ZfsSpec>("topology = \"mirror\"\nashif = 12").is_err());
}

#[test]
fn a_pool_holds_less_than_its_disks() {
    let disks = in_folder(&["a", "b", "c", "d"]).members;
    let each = 4_000_787_030_016_u64;
    let holds = |topology: &str| {
        spec(&format!("topology = \"{topology}\""))
            .capacity(&disks)
            .0
    };
    let slop = 128 << 30;
    assert_eq!(holds("mirror"), each - each / 32);
    assert_eq!(holds("striped-mirrors"), 2 * each - slop);
    // 32 sectors of 4 KiB in 11 rows: 43 with parity, of which raidz1 makes 44.
    assert_eq!(holds("raidz1"), 4 * each * 32 / 44 - slop);
    // Each sector has three of parity beside it.
    assert_eq!(holds("raidz3"), each - each / 32);
    let of = |more: &str| spec(&format!("topology = \"raidz2\"\n{more}"));
    let [small, large] = ["4k", "1m"].map(|size| {
        let disks = in_folder(&["a", "b", "c", "d", "e", "f", "g", "h"]).members;
        let spec = of(&format!("recordsize = \"{size}\""));
        spec.capacity(&disks).0 as f64 / (8.0 * each as f64)
    });
    assert!((small - 1.0 / 3.0).abs() < 0.02, "two of three are parity");
    assert!((large - 0.75).abs() < 0.02, "{large}");
    let nines = of("ashift = 9\n[volume]\nvolblocksize = \"8k\"")
        .capacity(&disks)
        .0;
    let twelves = of("[volume]").capacity(&disks).0;
    assert!(nines > twelves);
    assert_eq!(holds("stripe"), 4 * each - slop);
    // Of unequal disks: all of a stripe, and the smaller of each mirror.
    let mut unequal = disks.clone();
    (unequal[1].size, unequal[3].size) = (Bytes(2 * each), Bytes(3 * each));
    let of_unequal = |topology: &str| spec(topology).capacity(&unequal).0;
    assert_eq!(of_unequal("topology = \"stripe\""), 7 * each - slop);
    (unequal[0].size, unequal[1].size) = (Bytes(2 * each), Bytes(2 * each));
    let two = spec("topology = \"striped-mirrors\"").capacity(&unequal).0;
    assert_eq!(two, 3 * each - slop);
    let volume = spec("topology = \"mirror\"\n[volume]").capacity(&disks).0;
    assert!(volume < each / 32 * 31 / 5 * 4 + 1 && volume.is_multiple_of(16 << 20));
}

const ZFS_GET: &str = include_str!("data/zfs-get-2015.txt");
const ZPOOL_GET: &str = include_str!("data/zpool-get-2015.txt");

fn get(program: &str, how: &[&str], owner: &str) -> Command {
    Command::reads(program, [&["get"], how, &["all", owner]].concat())
}

fn failed() -> Output {
    Output {
        code: Some(2),
        ..Output::default()
    }
}

fn module_files() -> Command {
    let module = "/sys/module/zfs";
    let files = [format!("{module}/parameters"), format!("{module}/version")];
    Command::reads(
        "grep",
        ["-rH".to_owned(), String::new()].into_iter().chain(files),
    )
}

/// FreeBSD 10.1 as it was in 2015, but for the volume's name.
fn freebsd_10() -> Recorded {
    Recorded::new("bsd")
        .answers(&get("zpool", &["-Hp"], "tpool"), failed())
        .says(&get("zpool", &[], "tpool"), ZPOOL_GET)
        .answers(&get("zfs", &["-Hp"], "tpool/vol"), failed())
        .says(
            &get("zfs", &[], "tpool/vol"),
            ZFS_GET.replace("tpool/tvol", "tpool/vol "),
        )
        .says(
            &Command::reads("zdb", ["-C", "tpool"]),
            include_str!("data/zdb.txt"),
        )
        .answers(
            &module_files(),
            failed(),
        )
        .says(
            &Command::reads("sysctl", ["vfs.zfs"]),
            "vfs.zfs.prefetch_disable: 0\nvfs.zfs.arc_max: 15902920704\nvfs.zfs.version.spa: 5000\n",
        )
}

#[test]
fn the_setting_that_was_not_applied_in_2015_is_seen() {
    let spec = spec(
        "topology = \"mirror\"\nchecksum = \"off\"\nprimarycache = \"metadata\"\nashift = 12\n\
         direct = \"always\"\n",
    );
    // Checked apart from `create`, which would refuse `direct` for a volume.
    let spec = ZfsSpec {
        volume: Some(VolumeSpec {
            size: Some(Bytes(3 << 40)),
            volblocksize: Some(Bytes(8 << 10)),
            sparse: true,
        }),
        ..spec
    };
    let pool = array("tpool", &["ada2", "ada3"]);
    let all = spec.settings(&freebsd_10(), &pool).unwrap();
    let text: String = all
        .iter()
        .map(|s| {
            let asked = s.asked.as_deref().unwrap_or("-");
            let mark = if s.applied { "" } else { "  NOT APPLIED" };
            format!("{}: {asked} / {} [{}]{mark}\n", s.name, s.found, s.source)
        })
        .collect();
    insta::assert_snapshot!(text, @r#"
    ashift: 12 / 12, 9 [zdb -C]  NOT APPLIED
    size: - / 3.62T [zpool get]
    capacity: - / 0% [zpool get]
    health: - / ONLINE [zpool get]
    failmode: - / wait [zpool get]
    checksum: off / off [zfs get]
    primarycache: metadata / all [zfs get]  NOT APPLIED
    direct: always / no such property [zfs get]  NOT APPLIED
    volsize: 3298534883328 / 3T [zfs get]
    volblocksize: 8192 / 8K [zfs get]
    refreservation: none / 3.09T [zfs get]  NOT APPLIED
    used: - / 3.09T [zfs get]
    usedbydataset: - / 8K [zfs get]
    referenced: - / 8K [zfs get]
    available: - / 3.51T [zfs get]
    compressratio: - / 1.00x [zfs get]
    logicalused: - / 4K [zfs get]
    compression: - / off [zfs get]
    dedup: - / off [zfs get]
    copies: - / 1 [zfs get]
    sync: - / standard [zfs get]
    logbias: - / latency [zfs get]
    secondarycache: - / all [zfs get]
    redundant_metadata: - / all [zfs get]
    volmode: - / default [zfs get]
    vfs.zfs.arc_max: - / 15902920704 [sysctl vfs.zfs]
    vfs.zfs.prefetch_disable: - / 0 [sysctl vfs.zfs]
    "#);
}

#[test]
fn linux_parameters_are_read_by_one_command() {
    let exact =
        "tpool/data\tprimarycache\tmetadata\tlocal\ntpool/data\trecordsize\t131072\tlocal\n";
    let target = Recorded::new("linux")
        .says(
            &get("zpool", &["-Hp"], "tpool"),
            "tpool\tashift\t0\tdefault\n",
        )
        .says(&get("zfs", &["-Hp"], "tpool/data"), exact)
        .lacks("zdb")
        .says(
            &module_files(),
            "/sys/module/zfs/parameters/zfs_resilver_min_time_ms:3000\n\
             /sys/module/zfs/parameters/zfs_arc_max:0\n\
             /sys/module/zfs/parameters/zfs_flags:0\n\
             /sys/module/zfs/version:2.2.7-1\n",
        );
    let spec = spec("topology = \"mirror\"\nprimarycache = \"metadata\"\nrecordsize = \"128k\"");
    let all = spec
        .settings(&target, &array("tpool", &["sdb", "sdc"]))
        .unwrap();
    let names: Vec<(&str, &str, bool)> = all
        .iter()
        .map(|s| (s.name.as_str(), s.found.as_str(), s.applied))
        .collect();
    assert_eq!(
        names,
        [
            ("ashift", "0", true),
            ("recordsize", "131072", true),
            ("primarycache", "metadata", true),
            ("version", "2.2.7-1", true),
            ("zfs_arc_max", "0", true),
            ("zfs_resilver_min_time_ms", "3000", true),
        ]
    );
}

#[test]
fn values_with_blanks_are_whole() {
    let all = properties::parse_properties("zfs get", ZFS_GET).unwrap();
    let creation = all.iter().find(|p| p.name == "creation").unwrap();
    assert_eq!(creation.value, "Wed Apr  8  6:37 2015");
    assert_eq!(creation.owner, "tpool");
    let error = properties::parse_properties("zfs get", "tank\tcompression\n").unwrap_err();
    insta::assert_snapshot!(error, @"cannot understand zfs get, line 1: expected name, property, value and source: `tank	compression`");
    assert!(properties::parse_properties("zfs get", "tank compression off -\n").is_err());
}

#[test]
fn what_a_crash_left_is_found_with_all_its_members() {
    let target = Recorded::new("linux")
        .says(
            &Command::reads("zpool", ["list", "-H", "-o", "name"]).timeout(PATIENCE),
            "rpool\nraidlabz0\n",
        )
        .says(
            &Command::reads("zpool", ["status", "raidlabz0"]).timeout(PATIENCE),
            include_str!("data/status-raidz-fuse.txt"),
        )
        .link("/dev/loop0", "/dev/loop0")
        .link("/dev/disk/by-id/loop5", "/dev/loop5");
    let found = spec("topology = \"mirror\"").find(&target, "raidlab");
    let found = found.unwrap();
    assert_eq!(found.len(), 1);
    let devices: Vec<&str> = found[0].members.iter().map(|m| m.device.as_str()).collect();
    assert_eq!(
        devices,
        [
            "/dev/loop0",
            "/dev/disk/by-id/loop5",
            "/dev/loop2",
            "/dev/loop3",
            "/dev/loop4"
        ]
    );
    let without = Recorded::new("linux").lacks("zpool");
    assert_eq!(
        spec("topology = \"single\"").find(&without, "r").unwrap(),
        []
    );
}
