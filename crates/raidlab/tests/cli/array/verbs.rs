//! The verbs of every week, as people type them: from another folder, with the wrong
//! disk, halfway through, and on a member that somebody has cut short.

use super::{MEMBER_BYTES, Place, Server, pattern};
use std::fs::File;

/// A mirror `test` of m0 and m1, in sync, served.
fn mirror(place: &Place, more: &[&str]) -> Server {
    let create = ["create", "-l", "1", "-n", "2", "--assume-clean"];
    let members = ["m0", "m1"];
    place.must(&[&create[..], &["--name", "test"], more, &members].concat());
    place.serve(&members)
}

fn length(place: &Place, name: &str) -> u64 {
    std::fs::metadata(place.path(name))
        .expect("it is there")
        .len()
}

#[test]
fn a_member_cut_short_is_failed_and_named_and_not_made_long_again() {
    for action in ["check", "write"] {
        let place = Place::new(2);
        let server = mirror(&place, &[]);
        let mut client = server.client();
        let data = pattern(1, 1 << 20);
        client.write(0, &data, true).expect("a write");
        let cut = File::options().write(true).open(place.path("m1"));
        let cut_to = MEMBER_BYTES / 2;
        cut.expect("m1").set_len(cut_to).expect("shorter");
        match action {
            "check" => {
                place.must(&["manage", "test", "--action", "check"]);
                place.must(&["wait", "test", "--seconds", "30"]);
            }
            _ => client
                .write(9 << 20, &data, true)
                .expect("the other has it"),
        }
        place.waits_for("degraded [U_]");
        let detail = place.must(&["detail", "test"]);
        assert!(
            detail.contains("Lost : m1: it has become shorter than it was"),
            "{action}: {detail}"
        );
        assert_eq!(length(&place, "m1"), cut_to, "{action}");
        assert_eq!(client.read(0, 1 << 20).expect("a read"), data, "{action}");
    }
}

#[test]
fn options_that_nothing_would_come_of_are_refused() {
    let place = Place::new(3);
    let served = [
        (&["--file", "m0", "--stale", "rebuild"][..], "--stale"),
        (&["--file", "m0", "--control", "here"], "--control"),
        (&["--memory", "1m", "--readonly"], "--readonly"),
        (
            &["--model", "wd4000fyyz", "--member-timeout", "5"],
            "--member-timeout",
        ),
        (&["--null", "1m", "m0"], "[DEVICE]..."),
        (&["--null", "1m", "--storage", "m0"], "--storage"),
        (&["--file", "m0", "--set", "strict"], "--set"),
        (&["m0", "m1", "--seed", "3"], "--seed"),
    ];
    for (words, option) in served {
        let said = place.refused(&[&["serve"], words].concat(), 2);
        assert!(
            said.contains("cannot be used with") && said.contains(option),
            "{said}"
        );
    }
    for (words, told) in [
        (["--null", "0"], "above 0"),
        (["--memory", "0"], "above 0"),
        (["--connections", "0"], "0 is not in 1.."),
        (["--member-timeout", "0"], "0 is not in 1.."),
    ] {
        let said = place.refused(&[&["serve"], &words[..]].concat(), 2);
        assert!(said.contains(told), "{said}");
    }
    let created = [
        ("-l 1 -n 2 -k bitmap --bitmap none m0 m1", "needs a bitmap"),
        (
            "-l 1 -n 2 -k resync --bitmap internal m0 m1",
            "has no bitmap",
        ),
        (
            "-l 1 -n 2 --bitmap none --bitmap-chunk 1m m0 m1",
            "needs a bitmap",
        ),
        ("-l 0 -n 2 -k resync m0 m1", "raid0 has nothing to resync"),
        ("-l 1 -n 2 --dry-run m0 m0", "m0 is named twice"),
    ];
    for (words, told) in created {
        let words: Vec<_> = std::iter::once("create").chain(words.split(' ')).collect();
        let said = place.refused(&words, 2);
        assert!(said.contains(told), "{said}");
    }
    let planned = "create -l 1 -n 2 --bitmap-chunk 1m --dry-run m0 m1";
    let planned = place.must(&planned.split(' ').collect::<Vec<_>>());
    assert!(planned.contains("a bit for 1 MiB"), "{planned}");
    let _server = mirror(&place, &[]);
    let said = place.refused(&["manage", "test", "--sync-speed", "0", "0"], 1);
    assert!(said.contains("no sync would end"), "{said}");
    let words = [
        "manage",
        "test",
        "--replace",
        "m0",
        "--with",
        "m2",
        "--with",
        "m1",
    ];
    let said = place.refused(&words, 2);
    assert!(
        said.contains("`--with` is given 2 times and `--replace` 1"),
        "{said}"
    );
}

/// A file that an array uses is not cut short by another array's bitmap.
#[test]
fn a_new_array_s_bitmap_takes_no_file_that_is_in_use() {
    let place = Place::new(2);
    let _server = mirror(&place, &[]);
    for name in ["c", "d"] {
        place.member(name);
    }
    let length = std::fs::metadata(place.path("m0")).expect("there").len();
    let words = "create --run -l 1 -n 2 --bitmap ./m0 c d";
    let said = place.refused(&words.split(' ').collect::<Vec<_>>(), 3);
    assert!(said.contains("in use"), "{said}");
    let now = std::fs::metadata(place.path("m0")).expect("there").len();
    assert_eq!(now, length);
}

/// One that cannot be examined does not hide those that are named after it.
#[test]
fn all_devices_are_examined_that_can_be() {
    let place = Place::new(2);
    place.must(&["create", "-l", "1", "-n", "2", "m0", "m1"]);
    place.member("none");
    let words = ["examine", "none", "m1", "nosuch", "m0"];
    let output = place.command(&words).output().expect("the program");
    assert_eq!(output.status.code(), Some(3));
    let [shown, said] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    assert!(
        shown.contains("m1:\n") && shown.contains("m0:\n"),
        "{shown}"
    );
    assert!(said.contains("none") && said.contains("nosuch"), "{said}");
    let twice = place.refused(&["zero-superblock", "m0", "./m0"], 2);
    assert!(twice.contains("named twice"), "{twice}");
}

#[test]
fn a_device_goes_by_any_path_that_leads_to_it() {
    let place = Place::new(2);
    let server = mirror(&place, &[]);
    place.member("d");
    place.must(&["manage", "test", "--add", "d"]);
    place.must(&["manage", "test", "--replace", "m0", "--with", "d"]);
    place.must(&["wait", "test", "--seconds", "30"]);
    place.waits_for("clean [UU]");
    let folder = place.path("elsewhere");
    std::fs::create_dir(&folder).expect("a folder");
    std::os::unix::fs::symlink(place.path("m1"), place.path("link")).expect("a link");
    let elsewhere = |words: &[&str]| {
        let mut command = place.command(&[&["manage", "test"], words].concat());
        command
            .current_dir(&folder)
            .output()
            .expect("the program")
            .status
            .success()
    };
    // It counts as failed since it was replaced; its own word is enough.
    assert!(elsewhere(&["--remove", "m0"]));
    assert!(elsewhere(&["--fail", "../link"]));
    place.waits_for("degraded [U_]");
    let said = place.refused(&["manage", "test", "--fail", "m7"], 1);
    assert!(
        said.contains("no such device: m7; there are ") && said.contains("m1"),
        "{said}"
    );
    drop(server);
}

#[test]
fn a_member_of_another_array_is_added_only_when_told_so() {
    let place = Place::new(4);
    let other = ["create", "-l", "1", "-n", "2", "--name", "other"];
    place.must(&[&other[..], &["m2", "m3"]].concat());
    let server = mirror(&place, &[]);
    let said = place.refused(&["manage", "test", "--add", "m2"], 1);
    for part in ["m2 is a member of another array", "other", "--run"] {
        assert!(said.contains(part), "{said}");
    }
    let examined = place.must(&["examine", "m2"]);
    assert!(examined.contains(":other"), "{examined}");
    place.must(&["manage", "test", "--add", "m2", "--run"]);
    let examined = place.must(&["detail", "test"]);
    assert!(examined.contains("spare"), "{examined}");
    drop(server);
}

#[test]
fn a_name_that_cannot_be_served_is_not_made() {
    let place = Place::new(2);
    for name in ["../../evil", "", ".hidden", "a b"] {
        let words = ["create", "-l", "1", "-n", "2", "--name", name, "m0", "m1"];
        let said = place.refused(&words, 2);
        assert!(said.contains("cannot be an array's name"), "{said}");
    }
    assert!(
        place
            .refused(&["examine", "m0"], 3)
            .contains("no md superblock")
    );
}

#[test]
fn a_replacement_is_given_up_by_failing_the_spare() {
    let place = Place::new(2);
    let server = mirror(&place, &[]);
    let mut client = server.client();
    let data = pattern(2, 1 << 20);
    client.write(0, &data, true).expect("a write");
    place.member("d");
    place.must(&["manage", "test", "--sync-speed", "100", "100"]);
    place.must(&["manage", "test", "--add", "d"]);
    place.must(&["manage", "test", "--replace", "m0"]);
    place.must(&["manage", "test", "--fail", "d", "--remove", "d"]);
    place.waits_for("clean [UU]");
    let detail = place.must(&["detail", "test"]);
    assert!(detail.contains(" m0") && !detail.contains("/d"), "{detail}");
    assert_eq!(client.read(0, 1 << 20).expect("a read"), data);
}
