use super::{Archive, ArchiveError, Node};
use proptest::prelude::*;
use std::io::Write;
use std::process::{Command, Stdio};

fn sample() -> Archive {
    let mut archive = Archive::default();
    archive.insert(
        "/usr/bin/hello",
        Node::File {
            mode: 0o755,
            contents: b"#!/bin/sh\necho hello\n".to_vec(),
        },
    );
    archive.insert("bin", Node::Link("usr/bin".to_owned()));
    archive.insert("proc/", Node::Folder);
    archive
}

fn bytes(archive: &Archive) -> Vec<u8> {
    let mut bytes = Vec::new();
    archive.write_to(&mut bytes).expect("memory takes all");
    bytes
}

#[test]
fn the_folders_above_a_file_are_made_and_come_before_it() {
    let paths: Vec<_> = sample().iter().map(|(path, _)| path.to_owned()).collect();
    assert_eq!(paths, ["bin", "proc", "usr", "usr/bin", "usr/bin/hello"]);
}

#[test]
fn a_file_is_a_header_a_path_and_contents() {
    let mut archive = Archive::default();
    archive.insert(
        "abc",
        Node::File {
            mode: 0o640,
            contents: b"xyz12".to_vec(),
        },
    );
    let text = String::from_utf8(bytes(&archive)).expect("only ASCII in here");
    insta::assert_snapshot!(text.replace('\0', "~"), @"07070100000001000081a00000000000000000000000010000000000000005000000000000000000000000000000000000000400000000abc~~~xyz12~~~07070100000000000000000000000000000000000000010000000000000000000000000000000000000000000000000000000b00000000TRAILER!!!~~~~");
}

#[test]
fn an_archive_is_the_same_however_it_was_put_together() {
    let mut other = Archive::default();
    for (path, node) in sample().iter().collect::<Vec<_>>().into_iter().rev() {
        other.insert(path, node.clone());
    }
    assert_eq!(bytes(&other), bytes(&sample()));
}

#[test]
fn what_follows_an_archive_is_not_read() {
    let mut two = bytes(&sample());
    assert_eq!(two.len() % 4, 0, "a second archive must be able to follow");
    two.extend(b"something else");
    assert_eq!(Archive::read(&two), Ok(sample()));
}

#[test]
fn damage_is_told_with_its_place() {
    let good = bytes(&sample());
    assert_eq!(
        Archive::read(&good[..good.len() - 30]),
        Err(ArchiveError::Short {
            at: good.len() - 124
        })
    );
    let mut bad = good.clone();
    bad[0] = b'1';
    assert_eq!(Archive::read(&bad), Err(ArchiveError::Magic { at: 0 }));
    let mut bad = good;
    bad[14] = b'+';
    assert_eq!(Archive::read(&bad), Err(ArchiveError::Number { at: 14 }));
}

/// The reader of another hand, where one is installed.
#[test]
fn cpio_lists_the_same_paths() {
    for (program, first) in [("cpio", None), ("busybox", Some("cpio"))] {
        let child = Command::new(program)
            .args(first)
            .arg("-t")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut child) = child else { continue };
        let mut stdin = child.stdin.take().expect("it is piped");
        stdin.write_all(&bytes(&sample())).expect("cpio reads all");
        drop(stdin);
        let listed = child.wait_with_output().expect("it ends").stdout;
        let listed = String::from_utf8(listed).expect("ASCII");
        let paths: Vec<_> = listed.lines().collect();
        assert_eq!(
            paths,
            ["bin", "proc", "usr", "usr/bin", "usr/bin/hello"],
            "{program}"
        );
    }
}

fn node() -> impl Strategy<Value = Node> {
    prop_oneof![
        Just(Node::Folder),
        "[a-z/.]{1,20}".prop_map(Node::Link),
        (0..0o10_000_u32, prop::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(mode, contents)| Node::File { mode, contents }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(nodes in prop::collection::btree_map("[a-zäß]{1,9}(/[a-z]{1,5}){0,2}", node(), 0..8)) {
        let mut archive = Archive::default();
        for (path, node) in &nodes {
            archive.insert(path, node.clone());
        }
        prop_assert_eq!(Archive::read(&bytes(&archive)), Ok(archive));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(mut changed in prop::collection::vec((0..600_usize, any::<u8>()), 0..6), end in 0..700_usize) {
        let mut damaged = bytes(&sample());
        changed.retain(|(at, _)| *at < damaged.len());
        for (at, value) in changed {
            damaged[at] = value;
        }
        damaged.truncate(end);
        let _ = Archive::read(&damaged);
    }
}
