use super::ArraySpec;
use serde::Deserialize;

/// What a subject's file has around it.
#[derive(Debug, Deserialize)]
struct File {
    build: ArraySpec,
}

fn refused(text: &str) -> String {
    let text = format!("name = 'x'\n{text}");
    match toml::from_str::<File>(&text) {
        Ok(file) => panic!("{} was read", file.build.title()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_system_is_a_table_in_build() {
    let cases = [
        ("[build.md]\nlevel = 'raid5'\nchunk = '512k'", "md raid5"),
        ("[build.btrfs]\ndata = 'raid1'", "btrfs raid1"),
        ("[build.lvm]\nlevel = 'raid10'", "LVM raid10"),
        ("[build.disk]", "disk"),
        ("[build.nbd]\nuri = 'nbd://h/'\nsize = '1g'", "NBD export"),
    ];
    for (text, title) in cases {
        let file: File = toml::from_str(text).expect(text);
        assert_eq!(file.build.title(), title);
    }
}

#[test]
fn what_is_wrong_is_shown_at_its_line() {
    let cases = [
        "[build.md]\nlevel = 'raid5'\nchunks = '512k'",
        "[build.md]\nlevel = 'raid5'\nchunk = '512q'",
        "[build.md]\nlevel = 'raid7'",
        "[build.md]\nchunk = '512k'",
        "[build.raid]\nlevel = 'raid5'",
        "[build]\nsystem = 'md'\nlevel = 'raid5'",
        "[build.disk]\nlevel = 'raid5'",
        "[build.md]\nlevel = 'raid1'\n[build.disk]",
    ];
    let messages: Vec<String> = cases.into_iter().map(refused).collect();
    insta::assert_snapshot!(messages.join("\n"));
}

/// What a system says of itself: its table in a file and how many members; its name and
/// level, what members write for each byte, data in a stripe, what the last member is
/// for, and `first` where members are made equal first, `cow` where it copies on write.
type Conforms = (
    &'static str,
    usize,
    (&'static str, Option<&'static str>),
    Option<f64>,
    Option<u64>,
    Option<&'static str>,
    &'static str,
);

const CONFORM: [Conforms; 29] = [
    (
        "md]\nlevel = 'raid0'",
        4,
        ("md", Some("raid0")),
        Some(1.0),
        Some(4),
        None,
        "",
    ),
    (
        "md]\nlevel = 'raid1'\nspares = 1",
        3,
        ("md", Some("raid1")),
        Some(2.0),
        None,
        Some("spare"),
        "first",
    ),
    (
        "md]\nlevel = 'raid5'",
        4,
        ("md", Some("raid5")),
        Some(4.0 / 3.0),
        Some(3),
        None,
        "first",
    ),
    (
        "md]\nlevel = 'raid6'\nassume_clean = true",
        4,
        ("md", Some("raid6")),
        Some(2.0),
        Some(2),
        None,
        "",
    ),
    (
        "md]\nlevel = 'raid10'\nlayout = 'n3'",
        6,
        ("md", Some("raid10")),
        Some(3.0),
        None,
        None,
        "first",
    ),
    (
        "btrfs]\ndata = 'single'",
        4,
        ("btrfs", Some("single")),
        Some(1.0),
        None,
        None,
        "cow",
    ),
    (
        "btrfs]\ndata = 'dup'",
        1,
        ("btrfs", Some("dup")),
        Some(2.0),
        None,
        None,
        "cow",
    ),
    (
        "btrfs]\ndata = 'raid1'",
        4,
        ("btrfs", Some("raid1")),
        Some(2.0),
        None,
        None,
        "cow",
    ),
    (
        "btrfs]\ndata = 'raid1c3'",
        4,
        ("btrfs", Some("raid1c3")),
        Some(3.0),
        None,
        None,
        "cow",
    ),
    (
        "btrfs]\ndata = 'raid1c4'",
        4,
        ("btrfs", Some("raid1c4")),
        Some(4.0),
        None,
        None,
        "cow",
    ),
    (
        "btrfs]\ndata = 'raid5'\nnodatacow = true",
        4,
        ("btrfs", Some("raid5")),
        Some(4.0 / 3.0),
        None,
        None,
        "",
    ),
    (
        "zfs]\ntopology = 'mirror'\nlog = 1",
        3,
        ("zfs", Some("mirror")),
        Some(2.0),
        None,
        Some("log"),
        "cow",
    ),
    (
        "zfs]\ntopology = 'striped-mirrors'\ncopies = 3",
        6,
        ("zfs", Some("mirrors")),
        Some(3.0),
        None,
        None,
        "cow",
    ),
    (
        "zfs]\ntopology = 'raidz2'\ncache = 1",
        7,
        ("zfs", Some("raidz2")),
        Some(1.5),
        None,
        Some("cache"),
        "cow",
    ),
    (
        "zfs]\ntopology = 'stripe'",
        2,
        ("zfs", Some("raid0")),
        Some(1.0),
        None,
        None,
        "cow",
    ),
    (
        "gmirror]",
        3,
        ("gmirror", Some("mirror")),
        Some(3.0),
        None,
        None,
        "",
    ),
    (
        "gflash]",
        2,
        ("gflash", Some("mirror")),
        Some(2.0),
        None,
        None,
        "",
    ),
    (
        "gstripe]",
        2,
        ("gstripe", Some("raid0")),
        Some(1.0),
        Some(2),
        None,
        "",
    ),
    (
        "graid3]",
        3,
        ("graid3", Some("raid3")),
        Some(1.5),
        None,
        None,
        "",
    ),
    (
        "lvm]\nlevel = 'linear'",
        2,
        ("lvm", Some("linear")),
        Some(1.0),
        None,
        None,
        "",
    ),
    (
        "lvm]\nlevel = 'striped'",
        2,
        ("lvm", Some("striped")),
        Some(1.0),
        Some(2),
        None,
        "",
    ),
    (
        "lvm]\nlevel = 'raid1'",
        2,
        ("lvm", Some("raid1")),
        Some(2.0),
        None,
        None,
        "first",
    ),
    (
        "lvm]\nlevel = 'raid10'\nnosync = true",
        4,
        ("lvm", Some("raid10")),
        Some(2.0),
        None,
        None,
        "",
    ),
    (
        "lvm]\nlevel = 'raid6'",
        5,
        ("lvm", Some("raid6")),
        Some(5.0 / 3.0),
        Some(3),
        None,
        "first",
    ),
    (
        "lvm]\nlevel = 'linear'\ncache = { mode = 'writeback' }",
        2,
        ("lvm", Some("linear")),
        None,
        None,
        Some("cache"),
        "",
    ),
    (
        "bcache]\nmode = 'writeback'",
        2,
        ("bcache", Some("single")),
        None,
        None,
        Some("cache"),
        "",
    ),
    (
        "bcache]\nmode = 'writeback'\nmd = { level = 'raid1' }",
        3,
        ("bcache", Some("raid1")),
        None,
        None,
        Some("cache"),
        "first",
    ),
    (
        "nbd]\nuri = 'nbd://h/'\nsize = '1g'",
        1,
        ("nbd", None),
        None,
        None,
        None,
        "",
    ),
    (
        "disk]",
        1,
        ("disk", Some("single")),
        Some(1.0),
        None,
        None,
        "",
    ),
];

#[test]
fn every_system_says_of_itself_what_others_must_know() {
    let mut names = std::collections::BTreeSet::new();
    for (text, count, (name, level), written, data, role, traits) in CONFORM {
        let file: File = toml::from_str(&format!("[build.{text}\n")).expect(text);
        let spec = file.build;
        assert_eq!((spec.name(), spec.level()), (name, level), "{text}");
        let found = spec.member_bytes_per_byte(count);
        let near = found.zip(written).is_none_or(|(a, b)| (a - b).abs() < 1e-9);
        assert!(
            found.is_some() == written.is_some() && near,
            "{text}: {found:?}"
        );
        assert_eq!(spec.data_members(count), data, "{text}");
        assert_eq!(spec.role(count, count - 1), role, "{text}");
        let mut said = Vec::new();
        said.extend(spec.has_first_sync().then_some("first"));
        said.extend(spec.copies_on_write().then_some("cow"));
        assert_eq!(said.join(" "), traits, "{text}");
        assert!(!spec.title().is_empty() && !spec.runs_on().is_empty());
        assert!(
            !spec.copies_on_write() || spec.has_own_file_system(),
            "{text}"
        );
        names.insert(name);
    }
    assert_eq!(names.len(), 11, "{names:?}");
}

#[test]
fn every_system_is_looked_for() {
    let all = ArraySpec::one_of_each();
    assert_eq!(all.len(), super::LEAST.len());
    for (spec, (name, _)) in all.iter().zip(super::LEAST) {
        assert_eq!(spec.name(), *name);
        assert!(
            !spec.title().is_empty() && !spec.runs_on().is_empty(),
            "{name}"
        );
    }
}
