//! Edits on trees that have nothing but the places.

use super::*;

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
    let tree = tree(&KERNEL);
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
    let tree = tree(&SHARED_MEMORY);
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
    let tree = tree(&KERNEL);
    fs::write(tree.path().join(OFFSETS), "/* another way */\n").expect("written");
    apply(tree.path(), &KERNEL).expect("the others are there");
    assert_eq!(texts(tree.path())[3], "/* another way */\n");
}

#[test]
fn openzfs_is_changed_and_one_that_measures_less_too() {
    let tree = tree(&OPENZFS);
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
    let tree = tree(&KERNEL);
    let file = tree.path().join(UTIL);
    fs::write(&file, "int os_getrandom(void);\n").expect("written");
    let before = texts(tree.path());
    let error = apply(tree.path(), &KERNEL).expect_err("a place is missing");
    assert!(error.to_string().contains("util.c has 0 places"), "{error}");
    assert_eq!(texts(tree.path()), before);
    fs::remove_file(file).expect("removed");
    let error = apply(tree.path(), &KERNEL).expect_err("a file is missing");
    assert!(matches!(error, EditError::File { .. }), "{error}");
}
