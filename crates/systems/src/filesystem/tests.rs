use super::FileSystemSpec;
use raidlab_shell::{Command, Output, Recorded};

fn spec(text: &str) -> FileSystemSpec {
    toml::from_str(text).expect("a spec")
}

fn made(text: &str) -> String {
    let commands = spec(text).make("/dev/md100", None).expect("a plan");
    commands.last().expect("a command").to_string()
}

#[test]
fn each_is_made_in_its_own_way() {
    insta::assert_snapshot!(made("type = 'ext4'"), @"mkfs.ext4 -F -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/md100");
    insta::assert_snapshot!(made("type = 'ext3'\noptions = ['-m', '0']"), @"mkfs.ext3 -F -q -E lazy_itable_init=0,lazy_journal_init=0 -m 0 /dev/md100");
    insta::assert_snapshot!(made("type = 'xfs'\nstripe = { chunk = '64k', data_members = 3 }"), @"mkfs.xfs -f -q -d su=64k,sw=3 /dev/md100");
    insta::assert_snapshot!(made("type = 'btrfs'\noptions = ['--csum', 'xxhash']"), @"mkfs.btrfs --force --quiet --csum xxhash /dev/md100");
    insta::assert_snapshot!(made("type = 'ufs'\noptions = ['-b', '65536']"), @"newfs -U -b 65536 /dev/md100");
}

#[test]
fn a_label_of_its_own_is_kept() {
    let label = |text: &str| {
        let commands = spec(text)
            .make("/dev/sdb", Some("raidlab0"))
            .expect("a plan");
        commands.last().expect("a command").to_string()
    };
    insta::assert_snapshot!(label("type = 'xfs'"), @"mkfs.xfs -L raidlab0 -f -q /dev/sdb");
    insta::assert_snapshot!(label("type = 'ext4'\noptions = ['-L', 'mine']"), @"mkfs.ext4 -F -q -E lazy_itable_init=0,lazy_journal_init=0 -L mine /dev/sdb");
}

#[test]
fn extended_options_are_one_word_and_the_files_come_last() {
    let text = "type = 'ext4'\noptions = ['-E', 'discard', '-O', '^has_journal', '-Elazy_itable_init=1']\nstripe = { chunk = '64k', data_members = 3 }";
    insta::assert_snapshot!(made(text));
}

/// `getopt` takes letters together, so mke2fs would take a second `-E`, which does away
/// with the first.
#[test]
fn options_may_be_joined() {
    let text = "type = 'ext4'\noptions = ['-jqE', 'discard', '-Dm0']";
    insta::assert_snapshot!(made(text), @"mkfs.ext4 -F -q -E lazy_itable_init=0,lazy_journal_init=0,discard -j -q -D -m 0 /dev/md100");
    let text = "type = 'ext4'\noptions = ['-qb1024']\nstripe = { chunk = '64k', data_members = 3 }";
    spec(text)
        .make("/dev/md100", None)
        .expect_err("another block");
}

/// More than 64 bits count, until a chunk was held to what others are.
#[test]
fn a_stripe_without_end_is_refused() {
    let text = |chunk: &str| {
        format!("type = 'xfs'\nstripe = {{ chunk = '{chunk}', data_members = 4294967295 }}")
    };
    let error = toml::from_str::<FileSystemSpec>(&text("512p")).expect_err("no such chunk");
    assert!(error.to_string().contains("more than 1 GiB"), "{error}");
    for kind in ["ext4", "xfs"] {
        made(&text("1g").replace("xfs", kind));
    }
}

#[test]
fn a_stripe_must_fit() {
    let cases = [
        (
            "type = 'btrfs'\nstripe = { chunk = '64k', data_members = 3 }",
            "btrfs cannot be made: it cannot be told of stripes",
        ),
        (
            "type = 'xfs'\nstripe = { chunk = '1k', data_members = 3 }",
            "xfs cannot be made: chunk 1 KiB is no multiple of 4 KiB",
        ),
        (
            "type = 'xfs'\nstripe = { chunk = '4k', data_members = 0 }",
            "xfs cannot be made: a stripe needs a member for data",
        ),
        (
            "type = 'ext4'\noptions = ['-b', '1024']\nstripe = { chunk = '64k', data_members = 3 }",
            "ext4 cannot be made: `stripe` counts in blocks of 4 KiB: leave `-b` out",
        ),
    ];
    for (text, message) in cases {
        let error = spec(text).make("/dev/md100", None).expect_err(text);
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_wrong_value_is_refused_at_its_line() {
    let error = toml::from_str::<FileSystemSpec>("type = 'ext4'\noption = ['-F']\n");
    insta::assert_snapshot!(error.expect_err("no such field"));
}

fn settings(spec: &FileSystemSpec, machine: &Recorded, device: &str) -> String {
    let settings = spec.settings(machine, device, "/mnt/measured");
    let rows = settings.expect("settings").into_iter().map(|row| {
        let verdict = if row.applied { "" } else { " NOT APPLIED" };
        let asked = row.asked.unwrap_or_else(|| "-".to_owned());
        format!(
            "{}: {asked} / {} ({}){verdict}\n",
            row.name, row.found, row.source
        )
    });
    rows.collect()
}

#[test]
fn settings_of_ext4_are_read_back() {
    let machine = Recorded::new("recorded")
        .file(
            "/proc/mounts",
            "/dev/loop0 /mnt/measured ext4 rw,noatime,stripe=48 0 0\n",
        )
        .says(
            &Command::reads("dumpe2fs", ["-h", "/dev/loop0"]),
            include_str!("data/dumpe2fs.txt"),
        );
    let spec = spec(
        "type = 'ext4'\nmount_options = ['noatime', 'data=journal']\nstripe = { chunk = '64k', data_members = 4 }",
    );
    insta::assert_snapshot!(settings(&spec, &machine, "/dev/loop0"));
}

#[test]
fn settings_of_xfs_are_read_back() {
    let machine = Recorded::new("recorded")
        .file(
            "/proc/mounts",
            "/dev/loop0 /mnt/measured xfs rw,noatime,inode64,logbufs=8,logbsize=64k,sunit=128,swidth=384,noquota 0 0\n",
        )
        .says(
            &Command::reads("xfs_info", ["/mnt/measured"]),
            include_str!("data/xfs_info.txt"),
        );
    let spec = spec("type = 'xfs'\nstripe = { chunk = '64k', data_members = 3 }");
    insta::assert_snapshot!(settings(&spec, &machine, "/dev/loop0"));
}

/// Constructed after FreeBSD 14's tunefs.c, not recorded.
#[test]
fn settings_of_ufs_are_read_back() {
    let said = "\
tunefs: POSIX.1e ACLs: (-a)                                disabled
tunefs: soft updates: (-n)                                 disabled
tunefs: soft update journaling: (-j)                       disabled
tunefs: gjournal: (-J)                                     disabled
tunefs: trim: (-t)                                         enabled
";
    let machine = Recorded::new("recorded")
        .says(
            &Command::reads("mount", ["-p"]),
            "/dev/mirror/m0\t\t/mnt/measured\tufs\trw,noatime\t2 2\n",
        )
        .answers(
            &Command::reads("tunefs", ["-p", "/dev/mirror/m0"]),
            Output {
                code: Some(0),
                stderr: said.to_owned(),
                ..Output::default()
            },
        );
    let spec = spec("type = 'ufs'\nmount_options = ['noatime']");
    insta::assert_snapshot!(settings(&spec, &machine, "/dev/mirror/m0"));
}
