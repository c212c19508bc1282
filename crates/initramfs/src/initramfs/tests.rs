use super::{Initramfs, InitramfsError, find_program, interpreter, missing_packages};
use crate::newc::Node;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

/// One without busybox, which a machine that runs tests may lack.
fn bare() -> Initramfs {
    Initramfs {
        archive: crate::newc::Archive::default(),
        libraries: crate::libraries::Libraries::of_this_machine(),
        beside: None,
    }
}

#[test]
fn a_shell_brings_its_libraries() {
    let mut initramfs = bare();
    initramfs.programs("sh").expect("every Unix has one");
    let files: Vec<_> = initramfs.archive().iter().map(|(path, _)| path).collect();
    assert!(files.iter().any(|path| path.contains("libc.")), "{files:?}");
    assert!(files.iter().any(|path| path.ends_with("/sh")), "{files:?}");
}

#[test]
fn links_on_the_way_to_a_program_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let real = folder.path().canonicalize().expect("it is there");
    let at = |name: &str| real.join(name);
    fs::create_dir(at("tools")).expect("made");
    fs::write(at("tools/many"), "words").expect("written");
    fs::set_permissions(at("tools/many"), fs::Permissions::from_mode(0o750)).expect("set");
    symlink("tools/many", at("one")).expect("made");
    symlink(at("one"), at("first")).expect("made");

    let mut initramfs = bare();
    for _ in 0..2 {
        initramfs
            .paths_present(&format!("{} /no/such/path", at("first").display()))
            .expect("all can be read");
    }
    let get = |name: &str| {
        initramfs
            .archive()
            .get(&at(name).to_string_lossy())
            .cloned()
    };
    let link = |target: &str| Some(Node::Link(target.to_owned()));
    assert_eq!(get("first"), link(&at("one").to_string_lossy()));
    assert_eq!(get("one"), link("tools/many"));
    let file = Node::File {
        mode: 0o750,
        contents: b"words".to_vec(),
    };
    assert_eq!(get("tools/many"), Some(file));
}

#[test]
fn a_circle_of_links_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    symlink("b", at("a")).expect("made");
    symlink("a", at("b")).expect("made");
    // The second visit of `a` finds it in the archive: the copy ends there.
    let mut initramfs = bare();
    assert!(initramfs.copy(&at("a")).expect("it ends").is_empty());
}

#[test]
fn a_folder_is_copied_with_what_is_in_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let real = folder.path().canonicalize().expect("it is there");
    fs::create_dir_all(real.join("rules.d")).expect("made");
    fs::write(real.join("rules.d/60-block.rules"), "x").expect("written");
    let mut initramfs = bare();
    let path = real.to_string_lossy().into_owned();
    initramfs.paths_present(&path).expect("it can be read");
    let copied = initramfs
        .archive()
        .file(&format!("{path}/rules.d/60-block.rules"));
    assert_eq!(copied, Some(&b"x"[..]));
}

#[test]
fn a_script_brings_its_interpreter() {
    assert_eq!(interpreter(b"#! /bin/sh -f\nx").as_deref(), Some("/bin/sh"));
    assert_eq!(interpreter(b"\x7fELF"), None);
    assert_eq!(interpreter(b"#!"), None);
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("script");
    fs::write(&script, "#!/bin/sh\n").expect("written");
    let mut initramfs = bare();
    initramfs.copy_program(&script).expect("both can be read");
    assert!(
        initramfs
            .archive()
            .iter()
            .any(|(path, _)| path.ends_with("/sh"))
    );
}

#[test]
fn all_missing_programs_are_named_with_their_packages() {
    let error = bare()
        .programs("sh mdadm-that-nobody-has mkfs.nobody")
        .expect_err("two are missing");
    assert!(matches!(error, InitramfsError::Missing { .. }), "{error:?}");
    insta::assert_snapshot!(error, @"not installed: mdadm-that-nobody-has, mkfs.nobody; on Debian: apt-get install mdadm-that-nobody-has mkfs.nobody");
}

/// As packages are that were unpacked and not installed: a program with a link of its own
/// to another place of theirs.
#[test]
fn what_the_machine_lacks_comes_from_a_folder_that_stands_for_the_root() {
    let folder = tempfile::tempdir().unwrap();
    let place = |path: &str| folder.path().join(path);
    fs::create_dir_all(place("usr/sbin")).unwrap();
    fs::create_dir_all(place("etc/alternatives")).unwrap();
    fs::copy("/bin/sh", place("usr/sbin/raidlab-test-b")).unwrap();
    symlink("/usr/sbin/raidlab-test-b", place("etc/alternatives/test")).unwrap();
    symlink("/etc/alternatives/test", place("usr/sbin/raidlab-test-a")).unwrap();
    let name = "raidlab-test-a";
    assert_eq!(find_program(name, None), None);
    let beside = Some(folder.path());
    let missing = missing_packages("raidlab-test-a raidlab-test-c", beside);
    assert!(
        missing.contains(&"raidlab-test-c".to_owned()),
        "{missing:?}"
    );
    assert!(
        !missing.contains(&"raidlab-test-a".to_owned()),
        "{missing:?}"
    );
    let mut made = bare();
    made.beside = Some(fs::canonicalize(folder.path()).unwrap());
    made.programs(name).unwrap();
    let archive = made.archive();
    assert!(archive.file("/usr/sbin/raidlab-test-b").is_some());
    for link in ["/usr/sbin/raidlab-test-a", "/etc/alternatives/test"] {
        assert!(matches!(archive.get(link), Some(Node::Link(_))), "{link}");
    }
    let strangers = archive.iter().filter(|(path, _)| path.contains("tmp"));
    assert_eq!(strangers.count(), 0, "nothing is at the folder's own place");
}
