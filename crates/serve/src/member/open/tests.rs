use super::{Access, MemberFile, OpenError, OpenOptions};
use raidlab_units::Sectors;
use rustix::io::{Errno, ReadWriteFlags, pwritev2};
use std::io::{IoSlice, Write};
use std::path::Path;

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
        access: Access::Look,
        ..OpenOptions::default()
    };
    MemberFile::open(file.path(), examine).expect("looking is free");
    drop(first);
    MemberFile::open(file.path(), OpenOptions::default()).expect("opens again");
}

#[test]
fn who_reads_a_file_shares_it_with_readers_alone() {
    let file = file(4096);
    let open = |access| {
        let options = OpenOptions {
            access,
            ..OpenOptions::default()
        };
        MemberFile::open(file.path(), options)
    };
    let in_use = |opened: Result<_, _>| matches!(opened, Err(OpenError::InUse { .. }));
    let writer = open(Access::Write).expect("opens");
    assert!(in_use(open(Access::Read)));
    drop(writer);
    let readers = [open(Access::Read), open(Access::Read)].map(|one| one.expect("opens"));
    assert!(readers.iter().all(MemberFile::is_read_only));
    assert!(in_use(open(Access::Write)));
    assert!(super::claim::is_locked(file.path()));
}

#[test]
fn what_holds_no_sectors_is_refused() {
    let directory = MemberFile::open(
        Path::new("/"),
        OpenOptions {
            access: Access::Look,
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

/// The kernel's own answer to a write that is to be tried, where the member's
/// was found by a read.
#[test]
fn what_can_be_tried_is_known() {
    for folder in [Path::new("/dev/shm"), &std::env::temp_dir()] {
        let mut file = tempfile::NamedTempFile::new_in(folder).expect("a temporary file");
        file.write_all(&[0; 4096]).expect("room");
        let member = MemberFile::open(file.path(), OpenOptions::default()).expect("opens");
        if !member.direct() {
            // Past the page cache reads and writes are tried alike; else not.
            continue;
        }
        let tried = pwritev2(
            member.file(),
            &[IoSlice::new(&[0])],
            0,
            ReadWriteFlags::NOWAIT,
        );
        let refused = tried == Err(Errno::OPNOTSUPP);
        assert_eq!(member.nowait(), !refused, "{}", folder.display());
    }
}
