//! Where arrays are served: who has their members, where clients find them, and what is left
//! of a server that cannot serve.

use super::{Place, Server, patiently};
use std::process::{Command, Stdio};

const MIRROR: &str = "create -l 1 -n 2 --assume-clean m0 m1";

#[test]
fn members_that_are_served_read_only_are_in_use_too() {
    let place = Place::new(2);
    place.must(MIRROR);
    let [read_only, members] = ["--readonly m0 m1", "m0 m1"];
    let others = |name| format!("serve --name {name} {read_only}");
    let server = place.serve(members);
    let said = place.refused(&others("other"), 3);
    assert!(said.contains("m0 is in use"), "{said}");
    place.must("stop test");
    drop(server);
    let _server = place.serve(read_only);
    for words in [
        "serve --name other m0 m1",
        "zero-superblock m0",
        "create -l 1 -n 1 --run m1",
    ] {
        let said = place.refused(words, 3);
        assert!(said.contains("is in use"), "{words:?}: {said}");
    }
    place.must("examine m0");
    place.must("assemble other --dry-run m0 m1");
}

#[test]
fn a_server_that_cannot_serve_has_not_begun_with_the_array() {
    let place = Place::new(4);
    let members = "m0 m1 m2 m3";
    let create = "create -l 5 -n 4 --assume-clean";
    place.must(&format!("{create} {members}"));
    std::fs::write(place.path("plain"), "no socket").expect("a file");
    let long = "n".repeat(65);
    let [unix, control] = ["--unix plain", "--control plain"];
    for doors in [
        unix,
        &format!("--name test {unix}"),
        control,
        "--tls-certificate nosuch --tls-key nosuch",
        &format!("--name {long}"),
        &format!("--name '' {control}"),
        "--ublk=1048575 --unix plain",
    ] {
        let words = format!("serve --run {doors} m1 m2 m3");
        let output = place.run(&words);
        assert!(!output.status.success(), "{words:?}");
        let dry = "assemble home --dry-run";
        let said = place.must(&format!("{dry} {members}"));
        assert!(said.contains("m0: slot 0, in sync"), "{words:?}: {said}");
    }
}

#[test]
fn a_file_that_is_not_there_is_wrong_input_to_a_server_too() {
    let place = Place::new(2);
    place.must(MIRROR);
    let tls = "--tls-certificate nosuch --tls-key nosuch";
    let said = place.refused(&format!("serve --memory 1m {tls}"), 3);
    assert!(said.contains("name files in PEM"), "{said}");
    let _server = place.serve("m0 m1");
    for verb in ["--add", "--re-add", "--assemble"] {
        let said = place.refused(&format!("manage test --fail m1 {verb} nosuch"), 3);
        assert!(said.contains("cannot open nosuch"), "{said}");
        assert!(said.contains("truncate"), "{said}");
    }
    // Nothing was done before.
    let detail = place.must("detail test");
    assert!(detail.contains("[UU]"), "{detail}");
}

#[test]
fn of_two_arrays_that_want_one_name_at_once_one_is_told_that_it_is_not_served() {
    let place = Place::new(4);
    place.must(MIRROR);
    place.must("create -l 1 -n 2 --assume-clean m2 m3");
    for _ in 0..12 {
        let starts = ["assemble home m0 m1", "assemble home m2 m3"].map(|words| {
            let mut command = place.command(words);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().expect("the program")
        });
        let ended = starts.map(|mut start| start.wait().expect("it ends").success());
        assert_eq!(ended.iter().filter(|ended| **ended).count(), 1);
        let has = place.must("detail home").contains("m0");
        assert_eq!(has, ended[0], "the other one is served");
        place.must("stop home");
    }
}

#[test]
fn an_array_whose_name_begins_with_a_dash_is_assembled() {
    let place = Place::new(1);
    place.must("create -l 0 -n 1 --name=-x m0");
    place.must("assemble -- -x m0");
    place.must("stop -- -x");
}

#[test]
fn the_names_of_arrays_do_not_meet_those_of_their_files() {
    let place = Place::new(3);
    let names = ["q", "q.log", &"n".repeat(64)];
    for (member, name) in ["m0", "m1", "m2"].into_iter().zip(names) {
        place.must(&["create", "-l", "0", "-n", "1", member]);
        place.must(&["assemble", name, member]);
    }
    for name in names {
        assert!(place.must(&["detail", name]).contains("raid0"), "{name}");
        place.must(&["stop", name]);
    }
    // A server that has stopped its array answers before it removes its sockets.
    let has_gone = patiently(|| {
        let left = std::fs::read_dir(place.path("raidlab")).expect("a folder");
        let mut names = left.map(|entry| entry.expect("an entry").file_name());
        !names.any(|name| name.to_string_lossy().ends_with(".sock"))
    });
    assert!(has_gone, "a socket is left");
    let create = "create -l 0 -n 1 --run -N nbd m1";
    place.must(create);
    place.must("create -l 0 -n 1 [ m1 ]");
    let said = place.must("assemble q [ m1 ]");
    assert!(said.contains("q.nbd-2.sock"), "{said}");
    place.must("stop q");
    let create = "create -l 0 -n 1 --run -N q.nbd m0";
    for words in [create, "detail q.nbd", "assemble q.nbd m0"] {
        let said = place.refused(words, 2);
        assert!(said.contains("no `.nbd` at the end"), "{said}");
    }
}

#[test]
fn a_write_beyond_the_limit_of_file_sizes_fails_members_and_not_the_server() {
    let place = Place::new(2);
    place.must(MIRROR);
    let socket = place.path("nbd.sock");
    let mut limited = Command::new("sh");
    // Blocks of 512 bytes: half of a member.
    limited.args(["-c", "ulimit -f 16384; exec \"$@\"", "sh"]);
    limited.arg(env!("CARGO_BIN_EXE_raidlab"));
    let words = ["serve", "--name", "test", "m0", "m1", "--unix"];
    limited.args(words).arg(&socket);
    limited.current_dir(place.folder.path());
    limited.env("XDG_RUNTIME_DIR", place.folder.path());
    let server = Server {
        child: limited.stderr(Stdio::null()).spawn().expect("the server"),
        uri: format!("nbd+unix:///test?socket={}", socket.display()),
    };
    assert!(patiently(|| server.try_connect().is_some()));
    let beyond = server.client().write(9 << 20, &[1; 4096], true);
    assert!(beyond.is_err(), "no member has room");
    let detail = place.must("detail test");
    assert!(detail.contains("File too large"), "{detail}");
}
