use super::{MemberFile, OpenError, OpenOptions, mount_point};
use raidlab_units::Sectors;
use std::io::Write;
use std::path::{Path, PathBuf};

fn file(bytes: usize) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(&vec![0; bytes]).expect("room");
    file
}

#[test]
fn a_file_is_measured_in_whole_sectors() {
    let file = file(5000);
    let member = MemberFile::open(file.path(), OpenOptions::default()).expect("opens");
    assert_eq!(member.size(), Sectors(9));
    assert_eq!(member.logical_block_bytes(), 512);
    assert_eq!(member.path(), file.path());
}

#[test]
fn two_cannot_claim_a_file() {
    let file = file(4096);
    let first = MemberFile::open(file.path(), OpenOptions::default()).expect("opens");
    let second = MemberFile::open(file.path(), OpenOptions::default());
    assert!(matches!(second, Err(OpenError::InUse { .. })), "{second:?}");
    let examine = OpenOptions {
        read_only: true,
        ..OpenOptions::default()
    };
    MemberFile::open(file.path(), examine).expect("looking is free");
    drop(first);
    MemberFile::open(file.path(), OpenOptions::default()).expect("opens again");
}

#[test]
fn what_holds_no_sectors_is_refused() {
    let directory = MemberFile::open(
        Path::new("/"),
        OpenOptions {
            read_only: true,
            ..OpenOptions::default()
        },
    );
    assert!(
        matches!(directory, Err(OpenError::Kind { .. })),
        "{directory:?}"
    );
    let null = MemberFile::open(Path::new("/dev/null"), OpenOptions::default());
    assert!(matches!(null, Err(OpenError::Kind { .. })), "{null:?}");
    let nothing = MemberFile::open(Path::new("/nothing/here"), OpenOptions::default());
    assert_eq!(
        nothing.expect_err("no such file").to_string(),
        "cannot open /nothing/here"
    );
}

#[test]
fn buffered_means_buffered() {
    let file = file(4096);
    let options = OpenOptions {
        buffered: true,
        ..OpenOptions::default()
    };
    let member = MemberFile::open(file.path(), options).expect("opens");
    assert!(!member.direct());
}

#[test]
fn a_mount_is_found_by_its_numbers() {
    let mounts = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw
31 22 8:17 / /mnt/my\\040disk rw,relatime shared:2 - xfs /dev/sdb1 rw
";
    let cases = [
        ((254, 0), Some("/")),
        ((8, 17), Some("/mnt/my disk")),
        ((8, 1), None),
    ];
    for ((major, minor), point) in cases {
        assert_eq!(
            mount_point(mounts, major, minor),
            point.map(PathBuf::from),
            "{major}:{minor}"
        );
    }
}

#[test]
fn holders_of_locks_are_told_from_those_that_are_gone() {
    let line = "3: FLOCK  ADVISORY  WRITE 1234 08:01:131090 0 EOF";
    assert_eq!(super::holder(line, 131_090), Some(1234));
    assert_eq!(super::holder(line, 1310), None);
    let waiting = "3: -> FLOCK  ADVISORY  WRITE 77 08:01:5 0 EOF";
    assert_eq!(super::holder(waiting, 5), Some(77));
    assert_eq!(
        super::holder("1: POSIX  ADVISORY  WRITE 9 08:01:5 0 EOF", 5),
        None
    );
    assert_eq!(super::holder("1: FLOCK  ADVISORY", 5), None);
    assert!(super::runs(std::process::id()));
    assert!(!super::runs(0));
}
