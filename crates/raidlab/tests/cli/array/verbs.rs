//! The verbs of every week, as people type them: from another folder, with the wrong
//! disk, halfway through, and on a member that somebody has cut short.

use super::{MEMBER_BYTES, Place, Server, pattern};
use std::fs::File;

/// A mirror `test` of m0 and m1, in sync, served.
fn mirror(place: &Place, more: &str) -> Server {
    let create = "create -l 1 -n 2 --assume-clean --name test";
    place.must(&format!("{create} {more} m0 m1"));
    place.serve("m0 m1")
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
        let server = mirror(&place, "");
        let mut client = server.client();
        let data = pattern(1, 1 << 20);
        client.write(0, &data, true).expect("a write");
        let cut = File::options().write(true).open(place.path("m1"));
        let cut_to = MEMBER_BYTES / 2;
        cut.expect("m1").set_len(cut_to).expect("shorter");
        match action {
            "check" => {
                place.must("manage test --action check");
                place.must("wait test --seconds 30");
            }
            _ => client
                .write(9 << 20, &data, true)
                .expect("the other has it"),
        }
        place.waits_for("degraded [U_]");
        let detail = place.must("detail test");
        assert!(
            detail.contains("Lost : m1: it has become shorter than it was"),
            "{action}: {detail}"
        );
        assert_eq!(length(&place, "m1"), cut_to, "{action}");
        assert_eq!(client.read(0, 1 << 20).expect("a read"), data, "{action}");
    }
}

#[test]
fn a_member_whose_file_is_deleted_is_failed_and_named() {
    let place = Place::new(2);
    let server = mirror(&place, "");
    let mut client = server.client();
    std::fs::remove_file(place.path("m1")).expect("it is there");
    let data = pattern(1, 1 << 20);
    client.write(0, &data, true).expect("the other has it");
    place.waits_for("degraded [U_]");
    let detail = place.must("detail test");
    assert!(
        detail.contains("Lost : m1: its file has been deleted"),
        "{detail}"
    );
    assert_eq!(client.read(0, 1 << 20).expect("a read"), data);
}

#[test]
fn options_that_nothing_would_come_of_are_refused() {
    let place = Place::new(3);
    let served = [
        ("--file m0 --stale rebuild", "--stale"),
        ("--file m0 --control here", "--control"),
        ("--memory 1m --readonly", "--readonly"),
        ("--model wd4000fyyz --member-timeout 5", "--member-timeout"),
        ("--null 1m m0", "[DEVICE]..."),
        ("--null 1m --storage m0", "--storage"),
        ("--file m0 --set strict", "--set"),
        ("m0 m1 --seed 3", "--seed"),
    ];
    for (words, option) in served {
        let said = place.refused(&format!("serve {words}"), 2);
        assert!(
            said.contains("cannot be used with") && said.contains(option),
            "{said}"
        );
    }
    for (words, told) in [
        ("--null 0", "above 0"),
        ("--memory 0", "above 0"),
        ("--connections 0", "it takes a number from 1"),
        ("--member-timeout 0", "it takes a number from 1"),
    ] {
        let said = place.refused(&format!("serve {words}"), 2);
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
        let said = place.refused(&format!("create {words}"), 2);
        assert!(said.contains(told), "{said}");
    }
    let planned = "create -l 1 -n 2 --bitmap-chunk 1m --dry-run m0 m1";
    let planned = place.must(planned);
    assert!(planned.contains("a bit for 1 MiB"), "{planned}");
    let _server = mirror(&place, "");
    let said = place.refused("manage test --sync-speed 0 0", 1);
    assert!(said.contains("no sync would end"), "{said}");
    let words = "manage test --replace m0 --with m2 --with m1";
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
    let _server = mirror(&place, "");
    for name in ["c", "d"] {
        place.member(name);
    }
    let length = std::fs::metadata(place.path("m0")).expect("there").len();
    let words = "create --run -l 1 -n 2 --bitmap ./m0 c d";
    let said = place.refused(words, 3);
    assert!(said.contains("in use"), "{said}");
    let now = std::fs::metadata(place.path("m0")).expect("there").len();
    assert_eq!(now, length);
}

/// One that cannot be examined does not hide those that are named after it.
#[test]
fn all_devices_are_examined_that_can_be() {
    let place = Place::new(2);
    place.must("create -l 1 -n 2 m0 m1");
    place.member("none");
    let words = "examine none m1 nosuch m0";
    let output = place.command(&words).output().expect("the program");
    assert_eq!(output.status.code(), Some(3));
    let [shown, said] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    assert!(
        shown.contains("m1:\n") && shown.contains("m0:\n"),
        "{shown}"
    );
    assert!(said.contains("none") && said.contains("nosuch"), "{said}");
    let twice = place.refused("zero-superblock m0 ./m0", 2);
    assert!(twice.contains("named twice"), "{twice}");
}

#[test]
fn a_device_goes_by_any_path_that_leads_to_it() {
    let place = Place::new(2);
    let server = mirror(&place, "");
    place.member("d");
    place.must("manage test --add d");
    place.must("manage test --replace m0 --with d");
    place.must("wait test --seconds 30");
    place.waits_for("clean [UU]");
    let folder = place.path("elsewhere");
    std::fs::create_dir(&folder).expect("a folder");
    std::os::unix::fs::symlink(place.path("m1"), place.path("link")).expect("a link");
    let elsewhere = |words: &str| {
        let mut command = place.command(&format!("manage test {words}"));
        command
            .current_dir(&folder)
            .output()
            .expect("the program")
            .status
            .success()
    };
    // It counts as failed since it was replaced; its own word is enough.
    assert!(elsewhere("--remove m0"));
    assert!(elsewhere("--fail ../link"));
    place.waits_for("degraded [U_]");
    let said = place.refused("manage test --fail m7", 1);
    assert!(
        said.contains("no such device: m7; there are ") && said.contains("m1"),
        "{said}"
    );
    drop(server);
}

#[test]
fn a_member_of_another_array_is_added_only_when_told_so() {
    let place = Place::new(4);
    let other = "create -l 1 -n 2 --name other";
    place.must(&format!("{other} m2 m3"));
    let server = mirror(&place, "");
    let said = place.refused("manage test --add m2", 1);
    for part in ["m2 is a member of another array", "other", "--run"] {
        assert!(said.contains(part), "{said}");
    }
    let examined = place.must("examine m2");
    assert!(examined.contains(":other"), "{examined}");
    place.must("manage test --add m2 --run");
    let examined = place.must("detail test");
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
    assert!(place.refused("examine m0", 3).contains("no md superblock"));
}

#[test]
fn a_replacement_is_given_up_by_failing_the_spare() {
    let place = Place::new(2);
    let server = mirror(&place, "");
    let mut client = server.client();
    let data = pattern(2, 1 << 20);
    client.write(0, &data, true).expect("a write");
    place.member("d");
    place.must("manage test --sync-speed 100 100");
    place.must("manage test --add d");
    place.must("manage test --replace m0");
    place.must("manage test --fail d --remove d");
    place.waits_for("clean [UU]");
    let detail = place.must("detail test");
    assert!(detail.contains(" m0") && !detail.contains("/d"), "{detail}");
    assert_eq!(client.read(0, 1 << 20).expect("a read"), data);
}

/// md takes a failure of a failed device for nothing; what stands beside it is done.
#[test]
fn a_member_that_has_failed_already_is_removed_by_the_words_of_every_day() {
    let place = Place::new(3);
    let server = mirror(&place, "--bitmap none");
    place.must("manage test --fail m1");
    let said = place.refused("manage test --add m1", 1);
    for part in ["m1 is device 1 of the array already, faulty", "--remove"] {
        assert!(said.contains(part), "{said}");
    }
    let back = place.refused("manage test --fail m1 --re-add m1", 1);
    for part in ["of the array already", "done before it: --fail ", "/m1"] {
        assert!(back.contains(part), "{back}");
    }
    place.must("manage test --fail m1 --remove m1");
    let said = place.refused("manage test --re-add m1", 1);
    assert!(said.contains("no bitmap says what"), "{said}");
    place.must("manage test --add m1");
    place.must("wait test --seconds 30");
    place.waits_for("clean [UU]");
    // Another file has the name of a member by now.
    std::fs::remove_file(place.path("m0")).expect("m0");
    place.member("m0");
    let again = "--fail m0 --remove m0 --add m0";
    place.must(&format!("manage test {again}"));
    place.must("wait test --seconds 30");
    place.waits_for("clean [UU]");
    drop(server);
}

#[test]
fn a_replacement_is_told_as_what_it_is() {
    let place = Place::new(3);
    let server = mirror(&place, "");
    place.must("manage test --sync-speed 100 100");
    place.must("manage test --add m2 --replace m0");
    place.waits_for("clean, recovering [UU]");
    for (words, told) in [
        ("--replace m0", "device 0 is being replaced already"),
        ("--replace m1 --with m0", "device 0 is no spare that fits"),
        ("--action idle", "a replacement is ended by `--fail`"),
    ] {
        let said = place.refused(&format!("manage test {words}"), 1);
        assert!(said.contains(told), "{said}");
    }
    // Nothing runs any more, so there is nothing to wait for.
    place.must("manage test --readonly");
    place.must("wait test --seconds 25");
    drop(server);
}

/// A copy of the members that is taken then needs no resync.
#[test]
fn read_only_is_answered_when_the_members_say_clean() {
    let place = Place::new(2);
    let server = mirror(&place, "");
    server.client().write(0, &[7; 4096], true).expect("written");
    place.must("manage test --readonly");
    let said = place.must("examine m0");
    assert!(said.contains("State : clean"), "{said}");
    drop(server);
}

#[test]
fn an_array_that_has_lost_too_much_says_so() {
    let place = Place::new(2);
    place.must("create -l 0 -n 2 --name test m0 m1");
    let server = place.serve("m0 m1");
    let cut = File::options().write(true).open(place.path("m1"));
    cut.expect("m1").set_len(1 << 20).expect("shorter");
    assert!(server.client().read(0, 4 << 20).is_err());
    place.waits_for("clean, FAILED [UU]");
    place.must("stop test");
    let said = place.refused("assemble test m0 m1", 3);
    assert!(said.contains("it is shorter than it was"), "{said}");
    assert_eq!(said.matches("data_size").count(), 1, "{said}");
}

#[test]
fn an_array_that_has_failed_is_not_said_to_be_stopping() {
    let place = Place::new(3);
    place.must("create -l 1 -n 2 --assume-clean --name test m0 m1");
    let server = place.serve("m0 m1");
    for member in ["m0", "m1"] {
        std::fs::remove_file(place.path(member)).expect("it is there");
    }
    assert!(server.client().write(0, &[1; 512], false).is_err());
    place.waits_for("FAILED");
    let said = place.refused("manage test --add m2", 1);
    assert!(said.contains("the array has failed"), "{said}");
    place.must("stop test");
}

/// Without a log is what is asked for by `--consistency-policy`, whatever room mdadm leaves.
#[test]
fn a_policy_without_a_log_keeps_none() {
    let place = Place::new(3);
    for (policy, version) in [("resync", "1.2"), ("bitmap", "1.1"), ("resync", "1.0")] {
        let words = format!("create -R -l 5 -n 3 -N test -k {policy} -e {version} m0 m1 m2");
        let made = place.must(&words);
        assert!(!made.contains("room for the log"), "{made}");
        let server = place.serve("m0 m1 m2");
        let detail = place.must("detail test");
        assert!(!detail.contains("Log :"), "{policy}: {detail}");
        place.must("stop test");
        drop(server);
    }
    let words = "create -R -l 5 -n 3 -k resync --data-offset 2M m0 m1 m2";
    let made = place.must(words);
    assert!(
        made.contains("unless it is served with `--no-log`"),
        "{made}"
    );
}

#[test]
fn a_host_that_the_name_has_no_place_for_is_refused() {
    let place = Place::new(2);
    let long = "a".repeat(28);
    for (host, name) in [(long.as_str(), "test"), ("here", "there:test")] {
        let words = format!("create -l 1 -n 2 --homehost {host} -N {name} m0 m1");
        let said = place.refused(&words, 2);
        assert!(said.contains("at most 31 bytes, and one `:`"), "{said}");
    }
}

/// Where the data begin too early for a log, none is kept without a word.
#[test]
fn a_log_without_room_is_refused_or_told() {
    let place = Place::new(3);
    let words = "create --dry-run -l 5 -n 3 --data-offset 100 m0 m1 m2";
    let told = place.must(words);
    assert!(told.contains("no room for the log"), "{told}");
    let said = place.refused(&format!("{words} -k log"), 2);
    for part in ["there is no room for the log", "`--data-offset`"] {
        assert!(said.contains(part), "{said}");
    }
    let told = place.must(&format!("{words} -k resync"));
    assert!(!told.contains("room for the log"), "{told}");
    let level_1 = "create --dry-run -l 1 -n 3 --data-offset 100 m0 m1 m2";
    let told = place.must(level_1);
    assert!(!told.contains("room for the log"), "{told}");
}

#[test]
fn a_level_with_one_layout_is_shown_without_it() {
    let place = Place::new(2);
    let made = place.must("create -l 1 -n 2 --name test m0 m1");
    assert!(made.contains("raid1 `test`, 2 slots"), "{made}");
    let server = place.serve("m0 m1");
    let shown = place.must("detail test");
    assert!(!shown.contains("Layout"), "{shown}");
    drop(server);
}

#[test]
fn a_damaged_member_is_shown_and_said_to_be_damaged() {
    let place = Place::new(2);
    place.must("create -l 1 -n 2 m0 m1");
    let mut bytes = std::fs::read(place.path("m0")).expect("a member");
    bytes[4096 + 32] ^= 1;
    std::fs::write(place.path("m0"), bytes).expect("a byte");
    let output = place.run("examine m0 m1");
    assert_eq!(output.status.code(), Some(3));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        shown.contains(" - expected ") && shown.contains("- correct"),
        "{shown}"
    );
    let said = String::from_utf8_lossy(&output.stderr);
    for part in ["m0 is damaged: no array takes it", "sb_csum"] {
        assert!(said.contains(part), "{said}");
    }
    let said = place.refused("examine --brief m0", 3);
    assert!(said.contains("cannot examine m0"), "{said}");
}
