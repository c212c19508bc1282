//! Options of assembling and serving that have no effect, or not the one that was meant.

use super::{MEMBER_BYTES, Place, pattern};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

const MIRROR: &str = "create -l 1 -n 2 m0 m1";

#[test]
fn files_that_cannot_be_what_they_are_named_as_are_told_as_such() {
    let place = Place::new(2);
    place.must(MIRROR);
    for words in [
        "serve --bitmap internal m0 m1",
        "assemble home --dry-run -b . m0 m1",
        "assemble home -b internal m0 m1",
    ] {
        let said = place.refused(words, 3);
        assert!(said.contains("--bitmap names the file"), "{said}");
        let is_named = said.contains("error: cannot open internal") || said.contains("error: . is");
        assert!(is_named, "{said}");
    }
    for words in [
        "serve m0 ./m0",
        "serve -b m0 m0 m1",
        "assemble home m0 m0",
        "assemble home --dry-run [ m0 m1 ] m0",
    ] {
        let said = place.refused(words, 2);
        assert!(said.contains("m0 is named twice"), "{said}");
    }
    let said = place.refused("serve --ublk=1048576 m0 m1", 2);
    let told = "1048576`: it takes a number from 0 to 1048575";
    assert!(said.contains(told), "{said}");
}

#[test]
fn bytes_of_a_file_that_are_not_served_are_told() {
    let place = Place::new(0);
    let write = |bytes: usize| std::fs::write(place.path("plain"), vec![1; bytes]).expect("a file");
    write(511);
    let said = place.refused("serve --file plain", 3);
    assert!(said.contains("no whole sector"), "{said}");
    write(1000);
    // It comes no further than to its socket.
    let said = place.refused("serve --file plain --unix plain", 1);
    assert!(said.contains("the last 488 bytes of plain"), "{said}");
}

#[test]
fn an_array_that_cannot_be_larger_says_so() {
    let place = Place::new(2);
    place.must(MIRROR);
    let grow = "assemble home --dry-run --size max m0 m1";
    assert!(place.must(grow).contains("it keeps its size"));
    for name in ["m0", "m1"] {
        let file = OpenOptions::new().write(true).open(place.path(name));
        let file: File = file.expect("a member");
        file.set_len(2 * MEMBER_BYTES).expect("its size");
    }
    let said = place.refused(&format!("{grow} --readonly"), 3);
    assert!(said.contains("without `--size` it starts"), "{said}");
    let said = place.must(grow);
    assert!(said.contains("31 MiB") && !said.contains("keeps"), "{said}");
}

#[test]
fn a_read_policy_that_has_nothing_to_choose_from_is_told() {
    let place = Place::new(8);
    place.must(MIRROR);
    place.must("create -l 0 -n 2 m2 m3");
    place.must("create -l 1 -n 2 m4 m5");
    place.must("create -l 1 -n 2 m6 m7");
    let mirrors = "[ m4 m5 ] [ m6 m7 ]";
    place.must(&format!("create -l 0 -n 2 {mirrors}"));
    let policy = "assemble home --dry-run --read-policy md-6.9";
    let said = |devices: &str| place.must(&format!("{policy} {devices}"));
    let no_effect = "`--read-policy` has no effect";
    assert!(said("m2 m3").contains(no_effect));
    assert!(!said("m0 m1").contains(no_effect));
    assert!(!said(mirrors).contains(no_effect));
    let plain = place.must("assemble home --dry-run m2 m3");
    assert!(!plain.contains(no_effect), "{plain}");
}

#[test]
fn a_dry_run_finds_the_logs_that_a_start_finds() {
    let place = Place::new(3);
    let create = "create -l 5 -n 3 --assume-clean -b internal";
    place.must(&format!("{create} m0 m1 m2"));
    let server = place.serve("m0 m1 m2");
    let mut client = server.client();
    client
        .write(0, &pattern(1, 1 << 20), true)
        .expect("a write");
    server.kill();
    // Where its bitmap begins.
    let member = OpenOptions::new().write(true).open(place.path("m0"));
    let member = member.expect("a member");
    member.write_all_at(&[0; 4], 16 * 512).expect("a write");
    let examined = place.refused("examine -X m0", 3);
    assert!(examined.contains("magic"), "{examined}");
    let said = place.must("assemble home --dry-run --run m0 m1");
    assert!(said.contains("the log has to make writes good"), "{said}");
}

/// A path need not be text. It is shown with the bytes that it has.
#[test]
fn a_path_is_shown_with_its_bytes() {
    let place = Place::new(2);
    for (member, name) in [("m0", &b"a\xfe"[..]), ("m1", b"a\xff")] {
        let name = OsStr::from_bytes(name);
        std::fs::rename(place.path(member), place.path(".").join(name)).expect("renamed");
    }
    let names = [&b"a\xfe"[..], b"a\xff"].map(OsStr::from_bytes);
    for words in ["examine", "create -l 1 -n 2", "examine"] {
        let output = place
            .command(words)
            .args(names)
            .output()
            .expect("it starts");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains(r"a\xfe") && said.contains(r"a\xff"), "{said}");
    }
}

#[test]
fn the_largest_size_is_what_is_used_without_a_word() {
    let place = Place::new(2);
    let largest = place.must("create -l 1 -n 2 --size max m0 m1");
    let without = place.must("create -l 1 -n 2 --run m0 m1");
    assert_eq!(largest, without);
    place.must("create -l 0 -n 2 --size max --run m0 m1");
    place.refused("create -l 0 -n 2 --size 4m --run m0 m1", 2);
}
