use super::{exported_by, mount_point};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

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
    for (numbers, point) in cases {
        let found = mount_point(mounts, numbers);
        assert_eq!(found, point.map(PathBuf::from), "{numbers:?}");
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

#[test]
fn a_device_that_other_machines_have_is_known_while_they_have_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let space = folder.path().join("home/namespaces/1");
    fs::create_dir_all(&space).expect("made");
    fs::write(space.join("device_path"), "/dev/null\n").expect("written");
    let device = fs::metadata("/dev/null").expect("there").rdev();
    for (enabled, by) in [("0\n", None), ("1\n", Some("home"))] {
        fs::write(space.join("enable"), enabled).expect("written");
        let found = exported_by(folder.path(), device);
        assert_eq!(found.as_deref(), by, "{enabled:?}");
        assert_eq!(exported_by(folder.path(), device + 1), None);
    }
}
