use super::ArraySpec;
use raidlab_units::table;
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

/// A system in a subject's file, and how many members it has; what it says of itself: its level,
/// what members write for each byte, data in a stripe, what the last member is for, and `first`
/// where members are made equal first, `cow` where it copies on write.
const CONFORM: &str = "\
md = { level = 'raid0' }                                    4  raid0    1    4  -      -
md = { level = 'raid1', spares = 1 }                        3  raid1    2    -  spare  first
md = { level = 'raid5' }                                    4  raid5    4/3  3  -      first
md = { level = 'raid6', assume_clean = true }               4  raid6    2    2  -      -
md = { level = 'raid10', layout = 'n3' }                    6  raid10   3    -  -      first
btrfs = { data = 'single' }                                 4  single   1    -  -      cow
btrfs = { data = 'dup' }                                    1  dup      2    -  -      cow
btrfs = { data = 'raid1' }                                  4  raid1    2    -  -      cow
btrfs = { data = 'raid1c3' }                                4  raid1c3  3    -  -      cow
btrfs = { data = 'raid1c4' }                                4  raid1c4  4    -  -      cow
btrfs = { data = 'raid5', nodatacow = true }                4  raid5    4/3  -  -      -
zfs = { topology = 'mirror', log = 1 }                      3  mirror   2    -  log    cow
zfs = { topology = 'striped-mirrors', copies = 3 }          6  mirrors  3    -  -      cow
zfs = { topology = 'raidz2', cache = 1 }                    7  raidz2   3/2  -  cache  cow
zfs = { topology = 'stripe' }                               2  raid0    1    -  -      cow
gmirror = {}                                                3  mirror   3    -  -      -
gflash = {}                                                 2  mirror   2    -  -      -
gstripe = {}                                                2  raid0    1    2  -      -
graid3 = {}                                                 3  raid3    3/2  -  -      -
lvm = { level = 'linear' }                                  2  linear   1    -  -      -
lvm = { level = 'striped' }                                 2  striped  1    2  -      -
lvm = { level = 'raid1' }                                   2  raid1    2    -  -      first
lvm = { level = 'raid10', nosync = true }                   4  raid10   2    -  -      -
lvm = { level = 'raid6' }                                   5  raid6    5/3  3  -      first
lvm = { level = 'linear', cache = { mode = 'writeback' } }  2  linear   -    -  cache  -
bcache = { mode = 'writeback' }                             2  single   -    -  cache  -
bcache = { mode = 'writeback', md = { level = 'raid1' } }   3  raid1    -    -  cache  first
nbd = { uri = 'nbd://h/', size = '1g' }                     1  -        -    -  -      -
disk = {}                                                   1  single   1    -  -      -
";

#[test]
fn every_system_says_of_itself_what_others_must_know() {
    let mut names = std::collections::BTreeSet::new();
    for [text, count, level, written, data, role, traits] in table(CONFORM, Some) {
        let file: File = toml::from_str(&format!("[build]\n{text}\n")).expect(text);
        let spec = file.build;
        let name = text.split(' ').next();
        assert_eq!(Some(spec.name()), name);
        assert_eq!(spec.level().unwrap_or("-"), level, "{text}");
        let count = count.parse().expect("a number");
        let found = spec.member_bytes_per_byte(count);
        let near = match (found, written.split_once('/').unwrap_or((written, "1"))) {
            (None, told) => told.0 == "-",
            (Some(found), (bytes, of)) => {
                let [bytes, of] = [bytes, of].map(|number| number.parse::<f64>().expect(text));
                (found - bytes / of).abs() < 1e-9
            }
        };
        assert!(near, "{text}: {found:?}");
        let found = spec.data_members(count).map(|data| data.to_string());
        assert_eq!(found.as_deref().unwrap_or("-"), data, "{text}");
        assert_eq!(spec.role(count, count - 1).unwrap_or("-"), role, "{text}");
        let said = match (spec.has_first_sync(), spec.copies_on_write()) {
            (true, true) => "first cow",
            (true, false) => "first",
            (false, true) => "cow",
            (false, false) => "-",
        };
        assert_eq!(said, traits, "{text}");
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
