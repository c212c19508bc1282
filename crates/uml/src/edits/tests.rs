//! Edits on trees that have nothing but the places.

use super::*;

const TIME: &str = "arch/um/kernel/time.c";
const PROCESS: &str = "arch/um/os-Linux/skas/process.c";
const VDSO: &str = "arch/x86/um/vdso/um_vdso.c";
const VDSO_MAPPING: &str = "arch/x86/um/vdso/vma.c";
const DISKS: &str = "arch/um/drivers/virtio_uml.c";
const SYSCALL: &str = "arch/um/kernel/skas/syscall.c";
const UTIL: &str = "arch/um/os-Linux/util.c";
const OFFSETS: &str = "arch/x86/um/user-offsets.c";
const CHECKSUMS: &str = "fs/zfs/zfs/zfs_chksum.c";
const RAIDZ: &str = "fs/zfs/zfs/vdev_raidz_math.c";
const LUA: &str = "fs/zfs/lua/ldo.c";

#[test]
fn every_edit_and_every_file_is_read() {
    let texts = [
        (include_str!("kernel.edits"), &KERNEL),
        (include_str!("shared_memory.edits"), &SHARED_MEMORY),
        (include_str!("charges.edits"), &CHARGES),
        (include_str!("openzfs.edits"), &OPENZFS),
    ];
    for (text, edits) in texts {
        let heads = text.lines().filter(|line| line.starts_with("=== "));
        assert_eq!(heads.count(), edits.len());
        assert!(edits.iter().all(|edit| edit.from != edit.to));
        let unread = |line: &str| line.starts_with(['@', '\\']) || line == "--->";
        let read = edits.iter().flat_map(|edit| [&edit.from, &edit.to]);
        for text in read {
            assert!(!text.lines().any(unread), "{text}");
        }
    }
    let all = texts.map(|(text, _)| text).concat();
    for (name, _) in FILES {
        assert!(all.contains(&format!("\n@{name}\n")), "{name}");
    }
    // A line end counts where it stands, and only there.
    assert_eq!(
        KERNEL[0].from,
        "static u64 timer_read(struct clocksource *cs)\n{\n"
    );
    assert_eq!(OPENZFS[3].to, "#define\tBENCH_NS\t(0)");
    assert_eq!(OPENZFS[1].file, CHECKSUMS);
    assert!(OPENZFS[1].optional && !OPENZFS[2].optional);
}

/// A tree that has only the places, each between lines of its own.
pub(crate) fn tree<'a>(
    edits: impl IntoIterator<Item = &'a Edit, IntoIter: Clone>,
) -> tempfile::TempDir {
    let edits = edits.into_iter();
    let folder = tempfile::tempdir().expect("a folder");
    for name in edits.clone().map(|edit| edit.file) {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().expect("a parent")).expect("made");
        let places: String = edits
            .clone()
            .filter(|edit| edit.file == name)
            .map(|edit| format!("/* before */\n{}/* after */\n", edit.from))
            .collect();
        fs::write(file, places).expect("written");
    }
    folder
}

fn texts(tree: &Path) -> Vec<String> {
    let read = |name: &str| fs::read_to_string(tree.join(name)).expect("there");
    [TIME, SYSCALL, UTIL, OFFSETS].map(read).to_vec()
}

#[test]
fn every_place_is_changed_once_however_often_it_is_asked() {
    let tree = tree(KERNEL.iter());
    let before = texts(tree.path());
    apply(tree.path(), &KERNEL).expect("the places are there");
    let after = texts(tree.path());
    for (before, after) in before.iter().zip(&after) {
        assert_ne!(before, after);
    }
    for parameter in [
        "tt-clock-cost=",
        "tt-syscall-cost=",
        "tt-clock-call-cost=",
        "tt-seed=",
    ] {
        let all = after.concat();
        let found = all.matches(&format!("setup(\"{parameter}\"")).count();
        assert_eq!(found, 1, "{parameter}");
    }
    apply(tree.path(), &KERNEL).expect("they are changed already");
    assert_eq!(texts(tree.path()), after);
}

#[test]
fn what_is_shared_changes_each_place_once_too() {
    let tree = tree(SHARED_MEMORY.iter());
    apply(tree.path(), &SHARED_MEMORY).expect("the places are there");
    let read = |name: &str| fs::read_to_string(tree.path().join(name)).expect("there");
    let all = || {
        [TIME, PROCESS, VDSO, VDSO_MAPPING, DISKS]
            .map(read)
            .concat()
    };
    let after = all();
    // The page of the clock looks the same to the kernel and to programs.
    let page = include_str!("clock_page.h");
    assert_eq!(after.matches(page).count(), 2);
    for once in [
        "raidlab_leave_user();",
        "\traidlab_interrupts();\n",
        "if (raidlab_kick(",
    ] {
        assert_eq!(after.matches(once).count(), 1, "{once}");
    }
    apply(tree.path(), &SHARED_MEMORY).expect("they are changed already");
    assert_eq!(all(), after);
}

#[test]
fn a_change_that_newer_kernels_do_not_need_is_left_out() {
    let tree = tree(KERNEL.iter());
    fs::write(tree.path().join(OFFSETS), "/* another way */\n").expect("written");
    apply(tree.path(), &KERNEL).expect("the others are there");
    assert_eq!(texts(tree.path())[3], "/* another way */\n");
}

#[test]
fn openzfs_is_changed_and_one_that_measures_less_too() {
    let tree = tree(OPENZFS.iter());
    let text = |name: &str| fs::read_to_string(tree.path().join(name)).expect("there");
    apply(tree.path(), &OPENZFS).expect("the places are there");
    assert!(text(LUA).contains("longjmp(&(c)->b, 1)"));
    assert!(text(RAIDZ).contains("BENCH_NS\t(0)"));
    let after = text(CHECKSUMS);
    assert!(!after.contains("MSEC2NSEC"), "{after}");
    apply(tree.path(), &OPENZFS).expect("they are changed already");
    assert_eq!(text(CHECKSUMS), after);
    fs::remove_file(tree.path().join(CHECKSUMS)).expect("removed");
    apply(tree.path(), &OPENZFS).expect("2.1 does without");
}

#[test]
fn a_kernel_that_looks_different_is_left_as_it_is() {
    let tree = tree(KERNEL.iter());
    let file = tree.path().join(UTIL);
    fs::write(&file, "int os_getrandom(void);\n").expect("written");
    let before = texts(tree.path());
    let error = apply(tree.path(), &KERNEL).expect_err("a place is missing");
    assert!(error.to_string().contains("util.c has 0 places"), "{error}");
    assert_eq!(texts(tree.path()), before);
    fs::remove_file(file).expect("removed");
    let error = apply(tree.path(), &KERNEL).expect_err("a file is missing");
    assert!(matches!(error, EditError::File(_)), "{error}");
}

/// Whoever has the file open goes on to see all of it as it was: it is not written in place,
/// where a full disk would leave half of it.
#[test]
fn a_file_is_whole_before_and_after_its_change() {
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;
    let tree = tree(KERNEL.iter());
    let file = tree.path().join(TIME);
    let mode = fs::Permissions::from_mode(0o640);
    fs::set_permissions(&file, mode).expect("set");
    let before = fs::read_to_string(&file).expect("read");
    let mut old = fs::File::open(&file).expect("opened");
    apply(tree.path(), &KERNEL).expect("all places are there");
    let mut seen = String::new();
    old.read_to_string(&mut seen).expect("read");
    assert_eq!(seen, before);
    assert_ne!(fs::read_to_string(&file).expect("read"), before);
    let mode = fs::metadata(&file).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let beside = fs::read_dir(file.parent().expect("a parent")).expect("read");
    let mut names = beside.map(|entry| entry.expect("an entry").file_name());
    assert!(names.all(|name| !name.to_string_lossy().contains("raidlab-new")));
}
