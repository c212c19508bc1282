//! What happens to disks between the plan and the build: loop devices of this
//! machine. Needs root, losetup, mkfs.ext4, btrfs and free loop devices; without them it
//! says that nothing was tested.

use raidlab_bench_host::{HostBench, Machine};
use raidlab_inventory::choose::Consent;
use raidlab_lab::{Bench, Choices, Finish, HostChoice, Observer, QueueStyle, Suite};
use raidlab_store::{CellResult, Records};
use std::error::Error;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

const SUITE: &str = include_str!("data/tiny.toml");

/// A loop device on a sparse file.
struct Loop {
    device: String,
    folder: tempfile::TempDir,
}

fn said(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

impl Loop {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = Self::file(&folder, "first");
        let device = said("losetup", &["--find", "--show", &file])?;
        Some(Self { device, folder })
    }

    fn file(folder: &tempfile::TempDir, name: &str) -> String {
        let path = folder.path().join(name);
        let file = File::create(&path).expect("a file");
        file.set_len(256 << 20).expect("its size");
        path.display().to_string()
    }

    /// Another disk of the same size under the same name.
    fn exchange(&self) {
        said("losetup", &["--detach", &self.device]).expect("detached");
        let file = Self::file(&self.folder, "second");
        // The kernel may take a moment to let the first one go.
        for _ in 0..100 {
            if said("losetup", &[&self.device, &file]).is_some() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("{} cannot be used again", self.device);
    }

    fn signatures(&self) -> String {
        said("wipefs", &["--no-act", "--noheadings", &self.device]).expect("wipefs")
    }

    fn make_ext4(&self) {
        said("mkfs.ext4", &["-q", &self.device]).expect("mkfs.ext4");
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        said("losetup", &["--detach", &self.device]);
    }
}

struct Nobody;

impl Observer for Nobody {
    fn record(&mut self, _: Records) {}
    fn cell(&mut self, _: CellResult) {}
}

/// Two loop devices for a plan, and then what `change` does before the build; what
/// the build says.
fn after<T>(change: impl FnOnce(&[Loop; 2]) -> T) -> Option<(String, T, [Loop; 2])> {
    if said("btrfs", &["--version"]).is_none() {
        eprintln!("nothing was tested: no btrfs here");
        return None;
    }
    let (Some(first), Some(second)) = (Loop::new(), Loop::new()) else {
        eprintln!("nothing was tested: no loop devices here");
        return None;
    };
    let loops = [first, second];
    let disks = [loops[0].device.clone(), loops[1].device.clone()];
    let machine = Machine::local().expect("this machine");
    let machine = machine.with_disks(&disks, Consent::default());
    let bench = HostBench::new(vec![machine.expect("blank disks are given")]);
    let suite = Suite::parse("tiny.toml", SUITE, Path::new(".")).expect("a suite");
    let choices = Choices {
        hosts: vec![HostChoice {
            name: "localhost".to_owned(),
            queue: QueueStyle::Libaio,
            disks: disks.to_vec(),
        }],
        ..Choices::default()
    };
    let experiment = suite.experiments(&suite.subjects, &choices).remove(0);
    let changed = change(&loops);
    let error = match bench.run(&experiment, &mut Nobody) {
        Err(error) => error,
        Ok(Finish::Complete | Finish::Cancelled) => panic!("it was built"),
    };
    let words = error.source().map(ToString::to_string);
    Some((words.unwrap_or_default(), changed, loops))
}

#[test]
fn a_file_system_made_after_the_plan_is_not_wiped() {
    let Some((error, (), loops)) = after(|loops| loops[1].make_ext4()) else {
        return;
    };
    let expected = format!(
        "{}: somebody's data have come onto it since the plan (ext4 on",
        loops[1].device
    );
    assert!(error.contains(&expected), "{error}");
    assert!(loops[1].signatures().contains("ext4"));
}

#[test]
fn another_disk_under_the_same_name_is_not_wiped() {
    let exchange = |loops: &[Loop; 2]| {
        loops[0].exchange();
        loops[0].make_ext4();
    };
    let Some((error, (), loops)) = after(exchange) else {
        return;
    };
    assert!(error.contains(&loops[0].device), "{error}");
    assert!(
        error.contains("not the disk that the plan was made for"),
        "{error}"
    );
    assert!(loops[0].signatures().contains("ext4"));
}

#[test]
fn a_disk_that_somebody_has_opened_since_is_not_wiped() {
    let open = |loops: &[Loop; 2]| {
        let exclusive = rustix::fs::OFlags::EXCL.bits() as i32;
        let mut options = File::options();
        let options = options.read(true).custom_flags(exclusive);
        options.open(&loops[1].device).expect("it is free")
    };
    let Some((error, _open, loops)) = after(open) else {
        return;
    };
    let expected = format!("{}: somebody has it open", loops[1].device);
    assert!(error.contains(&expected), "{error}");
}

/// Not exclusively, as a virtual machine has its disk.
#[test]
fn a_disk_that_another_program_has_open_is_not_wiped() {
    let open = |loops: &[Loop; 2]| {
        let disk = File::open(&loops[1].device).expect("it is there");
        let mut sleep = Command::new("sleep");
        sleep.arg("60").stdin(disk).spawn().expect("sleep")
    };
    let Some((error, mut sleep, loops)) = after(open) else {
        return;
    };
    sleep.kill().expect("it sleeps");
    sleep.wait().expect("it has ended");
    let device = &loops[1].device;
    let expected = format!("{device}: somebody has it open ({device} by sleep, process");
    assert!(error.contains(&expected), "{error}");
}

#[test]
fn a_disk_mounted_since_is_not_wiped() {
    let mount = |loops: &[Loop; 2]| {
        loops[0].make_ext4();
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().display().to_string();
        said("mount", &[&loops[0].device, &at]).expect("mounted");
        folder
    };
    let Some((error, folder, loops)) = after(mount) else {
        return;
    };
    said("umount", &[&folder.path().display().to_string()]).expect("unmounted");
    assert!(error.contains(&loops[0].device), "{error}");
    assert!(loops[0].signatures().contains("ext4"));
}
