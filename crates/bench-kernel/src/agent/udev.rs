//! The work of udev for OpenZFS, in a guest that has no udev.
//!
//! `zpool` partitions a whole disk and waits up to 30 s until udev has set up
//! each partition (`zpool_label_disk_wait` of libzutil); without a word from it
//! the pool is not created. It asks for an entry in udev's database, a file
//! named by the device's number, that names a link to the device, and for the
//! link to lead somewhere (a libzfs configured without libudev's
//! `udev_device_get_is_initialized`, as Debian's of 2.3.2, takes the links as the
//! sign). So the entries and links of the disks and of the two partitions that
//! `zpool` makes are written before anything asks; the devices themselves come
//! from the kernel's devtmpfs. A volume is looked for by its name, which a rule of
//! udev's gives; the guest has one volume at most, so its link is there from the
//! start and leads nowhere until the volume exists.

use raidlab_bench_host::PREFIX;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// The folder of the links, below `/dev`.
const LINKS: &str = "raidlab";

/// The beginning of a disk's name.
const DISK: &str = "vd";

/// The numbers and names that a whole disk and `zpool`'s partitions on it add to the disk's: the
/// first partition for data, the ninth behind it (`zpool_label_disk` of libzfs).
const PARTS: [(u32, &str); 3] = [(0, ""), (1, "1"), (9, "9")];

/// The device of the volume: the first that OpenZFS makes.
const VOLUME: &str = "/dev/zd0";

/// Notes the disks and the volume, where the kernel has OpenZFS. `root` is `/`.
pub(super) fn prepare(root: &Path) -> io::Result<()> {
    if !root.join("sys/module/zfs").is_dir() {
        return Ok(());
    }
    let database = root.join("run/udev/data");
    let links = root.join("dev").join(LINKS);
    fs::create_dir_all(&database)?;
    fs::create_dir_all(&links)?;
    for disk in fs::read_dir(root.join("sys/block"))? {
        let disk = disk?;
        let name = disk.file_name().to_string_lossy().into_owned();
        if !name.starts_with(DISK) {
            continue;
        }
        let text = fs::read_to_string(disk.path().join("dev"))?;
        let Some((major, minor)) = number(&text) else {
            continue;
        };
        for (part, suffix) in PARTS {
            let entry = format!("S:{LINKS}/{name}{suffix}\nI:1\n");
            fs::write(database.join(format!("b{major}:{}", minor + part)), entry)?;
            symlink(
                format!("../{name}{suffix}"),
                links.join(format!("{name}{suffix}")),
            )?;
        }
    }
    let pool = root.join(format!("dev/zvol/{PREFIX}0"));
    fs::create_dir_all(&pool)?;
    symlink(VOLUME, pool.join("vol"))
}

/// Parses the major and minor number of a text such as `254:16`.
fn number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with one disk and a console.
    fn machine() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (name, number) in [("vdb", "254:16\n"), ("loop0", "7:0\n")] {
            let folder = root.path().join("sys/block").join(name);
            fs::create_dir_all(&folder).expect("made");
            fs::write(folder.join("dev"), number).expect("written");
        }
        root
    }

    fn entries(root: &Path) -> Vec<String> {
        let entries = fs::read_dir(root.join("run/udev/data")).expect("a database");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn disks_and_their_partitions_are_noted_for_openzfs() {
        let root = machine();
        fs::create_dir_all(root.path().join("sys/module/zfs")).expect("made");
        prepare(root.path()).expect("prepared");
        assert_eq!(entries(root.path()), ["b254:16", "b254:17", "b254:25"]);
        let link = fs::read_link(root.path().join("dev/zvol/raidlab0/vol"));
        assert_eq!(link.expect("a link"), Path::new("/dev/zd0"));
        let entry = fs::read_to_string(root.path().join("run/udev/data/b254:17"));
        assert_eq!(entry.expect("an entry"), "S:raidlab/vdb1\nI:1\n");
        let link = fs::read_link(root.path().join("dev/raidlab/vdb1"));
        assert_eq!(link.expect("a link"), Path::new("../vdb1"));
    }

    #[test]
    fn nothing_is_noted_without_openzfs() {
        let root = machine();
        prepare(root.path()).expect("nothing to do");
        assert!(!root.path().join("run").exists());
    }
}
