use super::{Storage, StorageError};
use raidlab_units::Bytes;
use rustix::fs::statvfs;
use std::env;
use std::path::Path;
use std::process::Command;

const SLAB: u64 = 2 << 20;

/// Set for the test below when it runs on a file system of its own.
const SMALL: &str = "RAIDLAB_TEST_SMALL_FILE_SYSTEM";

#[test]
fn a_folder_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("none");
    let error = Storage::new(Bytes(0), &inner)
        .file()
        .expect_err("no folder");
    assert!(error.to_string().contains("none"), "{error}");
    assert!(matches!(error, StorageError::File { doing: "make", .. }));
}

#[test]
fn some_of_the_file_system_stays_free() {
    let folder = tempfile::tempdir().unwrap();
    let storage = Storage::new(Bytes(0), folder.path()).sparing(Bytes(1 << 60));
    let error = storage
        .file()
        .unwrap()
        .extend(SLAB)
        .expect_err("too little");
    assert!(matches!(error, StorageError::NoRoom { .. }), "{error}");
    assert!(error.to_string().contains("1024 PiB"), "{error}");
}

/// Runs itself on a file system of 6 MiB, if this machine lets users have one.
#[test]
fn a_full_disk_is_an_error() {
    if let Some(folder) = env::var_os(SMALL) {
        return fill(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=6m none \"$0\"";
    let own = ["--user", "--map-root-user", "--mount", "sh", "-c"];
    let alone = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(own).arg(script).arg(folder.path());
        command
    };
    if !alone(mount).status().is_ok_and(|status| status.success()) {
        eprintln!("left out: no file system of its own on this machine");
        return;
    }
    let test = "storage::tests::a_full_disk_is_an_error";
    let status = alone(&format!("{mount} && exec \"$1\" --exact {test}"))
        .arg(env::current_exe().unwrap())
        .env(SMALL, folder.path())
        .status();
    assert!(status.unwrap().success());
}

fn fill(folder: &Path) {
    let before = statvfs(folder).unwrap().f_bavail;
    let storage = Storage::new(Bytes(0), folder).sparing(Bytes(0));
    let mut file = storage.file().unwrap();
    for slab in 0..3 {
        assert_eq!(file.extend(SLAB).unwrap(), slab * SLAB);
    }
    // Its space is there, though nothing has been written.
    assert_eq!(statvfs(folder).unwrap().f_bavail, 0);
    file.write(3 * SLAB - 4096, &[7; 4096]).unwrap();
    let error = file.extend(SLAB).expect_err("it is full");
    assert!(matches!(error, StorageError::NoRoom { .. }), "{error}");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    drop(file);
    assert_eq!(statvfs(folder).unwrap().f_bavail, before);
}
