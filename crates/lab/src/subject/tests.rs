//! Subjects that are right, and what users see of those that are not.

use super::{
    Checkpoint, ReadRecovered, RecoveringWrites, Recovery, Subject, SubjectKind, SyncSource,
    Throttle, WriteBarrier,
};
use crate::catalogue::{Kind, hosts};
use crate::document::Document;
use crate::edited::edited;
use crate::files::Files;
use raidlab_units::{Bytes, Nanos, table};
use std::fmt::Write;

fn text_of(name: &str) -> String {
    let text = raidlab_data::text(Kind::Subject.folder(), name);
    text.expect(name).to_owned()
}

#[test]
fn md_is_read_as_it_was_created_in_2015() {
    let md = Subject::load("md").expect("built in");
    assert_eq!(md.kind, SubjectKind::Mirror);
    let host = md.host.as_ref().unwrap();
    assert_eq!(host.name, "linux-3.16");
    assert_eq!(host.turnaround, Nanos::from_micros(59));
    assert_eq!(md.read_policy.as_deref(), Some("md-3.16"));
    let expected = Recovery {
        block: Bytes(512 * 1024),
        depth: 4,
        merged: None,
        tick: None,
        source: SyncSource::LowestInSync,
        barrier: WriteBarrier::MdWindow,
        recovering_writes: RecoveringWrites::Everywhere,
        throttle: Throttle::MdSleep {
            minimum: Bytes(1000 * 1024),
            maximum: Bytes(200_000 * 1024),
        },
        read_recovered: ReadRecovered::BelowCheckpoint,
        checkpoint: Some(Checkpoint {
            parts: 16,
            interval: Nanos::from_secs(300),
        }),
    };
    assert_eq!(md.recovery, Some(expected));
    let setting = md
        .settings
        .iter()
        .find(|setting| setting.name == "recovery.block");
    let setting = setting.expect("a setting");
    assert_eq!(
        (setting.scope.as_str(), setting.value.as_str()),
        ("subject md", "512k")
    );
    assert!(setting.source.contains("RESYNC_BLOCK_SIZE"));
}

/// The arrays' sizes as mdstat, `gmirror list`, `gflash list` and `zfs list`
/// printed them for disks of 4 000 787 030 016 bytes.
#[test]
fn capacities_are_those_of_the_logs() {
    let cases = [
        ("disk", 4_000_787_030_016),
        ("md", 3_907_017_472 * 1024),
        ("gmirror", 4_000_787_029_504),
        ("gflash", 4_000_783_007_744),
        ("zfs", 3 << 40),
    ];
    for (name, bytes) in cases {
        let subject = Subject::load(name).expect(name);
        assert_eq!(
            subject.capacity(Bytes(4_000_787_030_016)),
            Some(Bytes(bytes)),
            "{name}"
        );
    }
    let zfs = Subject::load("zfs").expect("built in");
    assert_eq!(zfs.capacity(Bytes(1 << 40)), None);
    let md = Subject::load("md").expect("built in");
    assert_eq!(md.capacity(Bytes(1 << 20)), None);
    assert_eq!(md.capacity(Bytes(1000)), None);
}

/// The rows of real systems must not change by a model of them.
#[test]
fn an_array_shows_real_systems_only_what_they_build() {
    let array = Subject::load("md-raid6").expect("built in");
    assert_eq!(array.kind, SubjectKind::Array);
    let built = array.settings_on(false, "");
    assert!(built.iter().all(|it| it.name.starts_with("build.md.")));
    assert_eq!(built.len(), 5);
    let modelled = array.settings_on(true, "");
    let names: Vec<&str> = modelled.iter().map(|it| it.name.as_str()).collect();
    for name in ["build.md.chunk", "recovery.block", "turnaround"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert_eq!(array.capacity(Bytes(1 << 40)), None);
}

#[test]
fn an_array_is_md_with_what_its_level_needs() {
    let raid5 = |more: &str| text_of("md-raid5").replacen("host =", &format!("{more}\nhost ="), 1);
    let cases = [
        (
            text_of("btrfs-raid1").replacen("\"system\"", "\"array\"", 1),
            "build.md",
        ),
        (raid5("data_offset = \"1m\""), "where mdadm puts them"),
        (raid5("read_policy = \"md-6.9\""), "no use for this"),
        (
            text_of("md-raid10").replacen("read_policy = \"md-raid10-5.4\"\n", "", 1),
            "read_policy",
        ),
    ];
    let hosts = hosts().expect("built in");
    for (text, words) in cases {
        let document = Document {
            file: "mine.toml".to_owned(),
            text,
        };
        let error = Subject::read(&document, &hosts).expect_err(words);
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
}

/// What is wrong, the built-in subject, and the change that makes it so.
const MISTAKES: &str = r#"
host                         md    "linux-3.16"               "linux-3.17"
a policy of no pool          zfs   "zfs-freebsd-10"           "md-6.9"
a policy of another release  zfs   "zfs-freebsd-10"           "zol-0.6"
an offset of a pool          zfs   host =                     data_offset = "1m"\nhost =
metadata of a pool           zfs   host =                     metadata = "1.2"\nhost =
host unlike any              md    "linux-3.16"               "plan9"
kind                         md    "mirror"                   "miror"
policy                       md    "md-3.16"                  "md-3.15"
policy's parameter           md    "md-3.16"                  "gmirror-split:1x"
no policy                    md    read_policy = "md-3.16"\n  NOTHING
policy on a disk             disk  host =                     read_policy = "md-3.16"\nhost =
size                         md    "512k"                     "512q"
half sectors                 md    "512k"                     "700"
depth                        md    depth = 4                  depth = 0
checkpoint                   md    checkpoint_parts = 16\n    NOTHING
no checkpoints               md    checkpoint_parts = 16      checkpoint_parts = 0
throttle                     md    throttle = "md-sleep"      throttle = "md-9"
throttle's limit             md    minimum = "1000k"\n        NOTHING
limits of no throttle        md    throttle = "md-sleep"      throttle = "none"
limits the wrong way round   md    minimum = "1000k"          minimum = "400000k"
a rate of nothing            md    maximum = "200000k"        maximum = "1"
tick                         md    depth = 4                  depth = 4\ntick = "0s"
data within a sector         md    data_offset = "1m"         data_offset = "1000"
source                       md    \nhost = "geomflash        \nhost = 5 # "
source without setting       md    "recovery.depth" =         "recovery.deph" =
volume block                 zfs   "8k"                       "9k"
half blocks                  zfs   "3t"                       "10000001"
ashift                       zfs   ashift = 9                 ashift = 3
checksum                     zfs   ashift = 9                 ashift = 9\nchecksum = "crc"
compression                  zfs   ashift = 9                 ashift = 9\ncompression = "zstd-20"
nothing to compress by       zfs   ashift = 9                 ashift = 9\ncompression_ratio = 2.0
ratio                        zfs   ashift = 9                 ashift = 9\ncompression = "lz4"\ncompression_ratio = 0.5
later: chunk                 md    metadata =                 chunk = "64k"\nmetadata =
later: level                 md    kind =                     level = 5\nkind =
later: file system           zfs   kind =                     filesystem = "ext4"\nkind =
"#;

/// By hand, in sectors of 4 KiB: 64 KiB by 3 are 21.3, so 24 KiB; by 1.1 they are 58.2, so
/// 60 KiB, which saves less than an eighth; 8 KiB by 1.5 are two sectors again.
#[test]
fn compressed_blocks_take_whole_sectors_or_are_left_as_they_are() {
    let mut zfs = Subject::load("openzfs-2.3")
        .expect("built in")
        .zfs
        .expect("a pool");
    assert_eq!(zfs.placed_block(), Bytes(8 << 10));
    for (block, ratio, placed) in [(64, 3.0, 24), (64, 1.1, 64), (8, 1.5, 8), (8, 2.0, 4)] {
        zfs.volume_block = Bytes(block << 10);
        zfs.compression_ratio = ratio;
        assert_eq!(
            zfs.placed_block(),
            Bytes(placed << 10),
            "{block}k by {ratio}"
        );
    }
}

#[test]
fn every_mistake_gets_file_line_field_and_remedy() {
    let hosts = hosts().expect("built in");
    let mut seen = String::new();
    for [name, subject, from, to] in table(MISTAKES, Some) {
        let document = Document {
            file: "mine.toml".to_owned(),
            text: edited(&text_of(subject), from, to),
        };
        let error = Subject::read(&document, &hosts).expect_err(name);
        let _ = writeln!(seen, "{name}\n    {error}");
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn settings_that_the_system_does_not_take_are_refused_on_every_bench() {
    for (subject, settings, said) in [
        (
            "md-raid5-clean",
            "stripe_cache_size = 1",
            "`stripe_cache_size` must be from 17",
        ),
        (
            "md-raid5-clean",
            "group_thread_count = 9000",
            "must be from 0 to 8192",
        ),
        (
            "md-raid5-clean",
            "bitmap = 'none'\nbitmap_chunk = '64m'",
            "there is no bitmap",
        ),
        (
            "md-raid0",
            "bitmap = 'internal'",
            "a bitmap means nothing without redundancy",
        ),
        (
            "md-raid0",
            "sync_speed_max = '1m'",
            "there is no resync without redundancy",
        ),
        (
            "md-raid10-clean",
            "stripe_cache_size = 256",
            "a stripe cache and its threads",
        ),
        ("gflash", "ram = '3k'", "gflash cannot be built: `ram`"),
        (
            "openzfs-2.3",
            "ashift = 30",
            "`ashift` must be from 9 to 16",
        ),
    ] {
        let table: toml::Table = toml::from_str(settings).expect(settings);
        let loaded = Subject::load_built(&Files::default(), subject, table, "own");
        let error = loaded.map(drop).map_err(|error| error.to_string());
        let error = error.expect_err(subject);
        assert!(error.contains(": build") && error.contains(said), "{error}");
    }
}
