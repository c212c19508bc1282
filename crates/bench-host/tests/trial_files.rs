//! Trial disks of this machine, made and removed. Needs root, losetup, mkfs.ext4 and free
//! loop devices; without them it says that nothing was tested.

use raidlab_bench_host::trial;
use raidlab_shell::Local;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

fn said(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

/// A file of a trial in a folder, and the loop device on it.
fn trial_disk(folder: &Path) -> Option<(String, String)> {
    let file = trial::files(&folder.display().to_string(), 1).remove(0);
    let made = File::create(&file).expect("a file");
    made.set_len(64 << 20).expect("its size");
    let device = said("losetup", &["--find", "--show", &file]);
    if device.is_none() {
        eprintln!("nothing was tested: no loop devices here");
    }
    Some((file, device?))
}

/// The device and number of the file behind a loop device. Once it is detached, another test's
/// file may be behind it.
fn behind(device: &str) -> Option<String> {
    let line = said("losetup", &[device])?;
    line.split(" (").next().map(str::to_owned)
}

#[test]
fn loop_devices_in_a_folder_with_blanks_behind_a_link_are_detached() {
    let folder = tempfile::tempdir().expect("a folder");
    let real = folder.path().join("of two words");
    fs::create_dir(&real).expect("a folder");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&real, &link).expect("a link");
    for folder in [&real, &link] {
        let Some((file, device)) = trial_disk(folder) else {
            return;
        };
        let before = behind(&device);
        let removed = trial::remove(&Local::new(), std::slice::from_ref(&file));
        let still = behind(&device) == before;
        if still {
            said("losetup", &["--detach", &device]);
        }
        assert!(!still, "{device} stays, and its file is gone");
        let expected = [format!("{device} on {file}"), file];
        assert_eq!(removed.expect("removed"), expected);
    }
}

/// Without its file nobody could take down what lies on a loop device.
#[test]
fn the_file_of_a_loop_device_in_use_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((file, device)) = trial_disk(folder.path()) else {
        return;
    };
    said("mkfs.ext4", &["-q", &device]).expect("mkfs.ext4");
    let at = tempfile::tempdir().expect("a folder");
    let at = at.path().display().to_string();
    said("mount", &[&device, &at]).expect("mounted");
    let files = [file.clone()];
    let before = behind(&device);
    let refused = trial::remove(&Local::new(), &files);
    let stays = Path::new(&file).exists();
    said("umount", &[&at]).expect("unmounted");
    let error = refused.expect_err("it is in use").to_string();
    let words = format!("localhost still has {device} on {file}, which something uses");
    assert!(error.starts_with(&words), "{error}");
    assert!(stays);
    trial::remove(&Local::new(), &files).expect("nobody uses it now");
    assert!(!Path::new(&file).exists());
    assert_ne!(behind(&device), before);
}
