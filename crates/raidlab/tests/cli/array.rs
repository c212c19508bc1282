//! raidlab's own arrays, as their users meet them: made, served, broken,
//! mended, killed, and looked at.

mod filling;
mod options;
mod serving;
mod verbs;

use crate::client::{self, Client, Wishes};
use crate::lab::CommandLine;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const MEMBER_BYTES: u64 = 16 << 20;

/// A folder with members, and the sockets of what is served from it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new(members: usize) -> Self {
        let place = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        for number in 0..members {
            place.member(&format!("m{number}"));
        }
        place
    }

    pub(crate) fn member(&self, name: &str) {
        let file = std::fs::File::create(self.path(name)).expect("a member");
        file.set_len(MEMBER_BYTES).expect("its size");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, words: &(impl CommandLine + ?Sized)) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_raidlab"));
        command
            .args(words.words())
            .current_dir(self.folder.path())
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, words: &(impl CommandLine + ?Sized)) -> Output {
        self.command(words).output().expect("the program")
    }

    /// Runs what must work; gives what it printed.
    pub(crate) fn must(&self, words: &(impl CommandLine + ?Sized)) -> String {
        let output = self.run(words);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs what must be refused with this code; gives what it said.
    pub(crate) fn refused(&self, words: &(impl CommandLine + ?Sized), code: i32) -> String {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        said
    }

    pub(crate) fn serve(&self, words: &(impl CommandLine + ?Sized)) -> Server {
        let socket = self.path("nbd.sock");
        let shown = socket.display();
        let mut command = self.command(&format!("serve --name test --unix {shown}"));
        let child = command.args(words.words()).stderr(Stdio::null()).spawn();
        let server = Server {
            child: child.expect("the server"),
            uri: format!("nbd+unix:///test?socket={shown}"),
        };
        // A server that was killed has left its socket behind.
        patiently(|| server.try_connect().is_some());
        server
    }

    fn waits_for(&self, state: &str) {
        let mut seen = String::new();
        let found = patiently(|| {
            seen = self.must("detail test");
            seen.contains(state)
        });
        assert!(found, "no `{state}` in\n{seen}");
    }
}

/// Whether it came true within half a minute.
fn patiently(mut done: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(30) {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

pub(crate) struct Server {
    child: Child,
    uri: String,
}

impl Server {
    fn try_connect(&self) -> Option<Client> {
        let (place, export) = client::address(&self.uri).expect("an address");
        let wishes = Wishes {
            export,
            ..Wishes::default()
        };
        client::connect(&place, None, &wishes).ok()
    }

    pub(crate) fn client(&self) -> Client {
        self.try_connect().expect("a connection")
    }

    /// Whether it comes to its end by itself.
    fn ends(mut self) -> bool {
        patiently(|| matches!(self.child.try_wait(), Ok(Some(_))))
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("a kill");
        self.child.wait().expect("its end");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test that failed must not leave it behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn pattern(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|place| (place as u8).wrapping_mul(31) ^ (place >> 8) as u8 ^ seed)
        .collect()
}

const CREATE_6: &str = "create --level 6 --raid-devices 4 --chunk 64 --name test m0 m1 m2";

fn raid_6(place: &Place) {
    let said = place.must(&format!("{CREATE_6} m3"));
    assert!(
        said.contains("raid6 `test`, layout left-symmetric, 4 slots"),
        "{said}"
    );
}

#[test]
fn a_raid_6_loses_two_members_is_killed_and_gets_new_ones() {
    let place = Place::new(4);
    raid_6(&place);
    let members = "m0 m1 m2 m3";
    let server = place.serve(members);
    let mut client = server.client();
    let first = pattern(1, 3 << 20);
    client.write(12_345 * 512, &first, false).expect("a write");
    client.flush().expect("a flush");

    place.must("manage test --fail m1");
    place.must("manage test --fail m3");
    place.waits_for("degraded [U_U_]");
    assert_eq!(client.read(12_345 * 512, 3 << 20).expect("a read"), first);
    let second = pattern(2, 1 << 20);
    client
        .write(12_345 * 512, &second, true)
        .expect("a degraded write");
    server.kill();

    let said = place.refused("serve --name test --stale ignore m0 m1", 3);
    assert!(said.contains("cannot assemble"), "{said}");
    let server = place.serve("--run --stale ignore m0 m1 m2 m3");
    let mut client = server.client();
    let read = client.read(12_345 * 512, 3 << 20).expect("a read");
    assert!(read[..1 << 20] == second && read[1 << 20..] == first[1 << 20..]);
    for name in ["n1", "n3"] {
        place.member(name);
        place.must(&["manage", "test", "--add", name]);
    }
    place.must("wait test --seconds 60");
    place.waits_for("clean [UUUU]");
    place.must("manage test --action check");
    place.must("wait test --seconds 60");
    let detail = place.must("detail test");
    assert!(!detail.contains("Mismatches"), "{detail}");
    let json = place.must("detail test --json");
    assert!(json.contains("\"health\":\"[UUUU]\""), "{json}");
    let watched = place.must("watch test --count 1");
    assert!(watched.contains("raid6 clean [UUUU]"), "{watched}");
    place.must("stop test");
    drop(server);
    let examined = place.must("examine n1");
    assert!(examined.contains("Array State : AAAA"), "{examined}");
}

#[test]
fn a_bitmap_in_a_file_of_its_own_says_what_to_resync() {
    let place = Place::new(2);
    let members = "m0 m1";
    let create = "create -l 1 -n 2 --assume-clean -b ./bits";
    let chunk = "--bitmap-chunk 64k";
    let said = place.must(&format!("{create} {chunk} {members}"));
    assert!(
        said.contains("bitmap: in ./bits, a bit for 64 KiB"),
        "{said}"
    );
    let serve = "--bitmap bits m0 m1";
    let server = place.serve(serve);
    let mut client = server.client();
    let data = pattern(3, 65536);
    client.write(1 << 20, &data, true).expect("a write");
    server.kill();
    let bits = place.must("examine -X bits");
    assert!(bits.contains("Chunksize : 64 KB"), "{bits}");
    let verdict = |bitmap: &str| place.must(&format!("assemble home --dry-run {bitmap} {members}"));
    let known = verdict("--bitmap bits");
    assert!(known.contains("a resync of "), "{known}");
    let unknown = verdict("");
    assert!(unknown.contains("a resync is needed"), "{unknown}");
    let server = place.serve(serve);
    let mut client = server.client();
    assert_eq!(client.read(1 << 20, 65536).expect("a read"), data);
    drop(server);
    // Not taken for a bitmap, and not overwritten.
    let said = place.refused("serve --bitmap m0 m1", 3);
    assert!(said.contains("cannot use the bitmap"), "{said}");
    let said = place.refused(&format!("{create} {members}"), 2);
    assert!(said.contains("./bits"), "{said}");
}

#[test]
fn in_the_background_too() {
    let place = Place::new(2);
    place.must("create --level 1 --raid-devices 2 --name home m0 m1");
    let planned = place.must("assemble home m0 m1 --dry-run");
    assert!(planned.contains("m0: slot 0, in sync"), "{planned}");
    let said = place.must("assemble home m0 m1");
    assert!(said.contains("nbd+unix:///home?socket="), "{said}");
    let again = place.refused("assemble home m0 m1", 1);
    assert!(again.contains("served already"), "{again}");
    let misspelt = place.refused("detail hom", 1);
    assert!(
        misspelt.contains("help: served here: `home`\n"),
        "{misspelt}"
    );
    let used = place.refused("create -l 1 -n 1 --run m0", 3);
    assert!(used.contains("in use"), "{used}");
    place.must("stop home");
    let gone = place.refused("detail home", 1);
    assert!(gone.contains("no array is served"), "{gone}");
    assert!(gone.contains("help: none is served here; "), "{gone}");
}

#[test]
fn a_server_that_cannot_listen_is_not_said_to_serve() {
    let place = Place::new(1);
    place.must("create -l 1 -n 1 --run m0");
    let sockets = place.path("raidlab");
    std::fs::create_dir_all(&sockets).expect("a folder");
    let taken = sockets.join("home.nbd.sock");
    std::fs::write(&taken, "no socket").expect("a file");
    let said = place.refused("assemble home m0", 1);
    assert!(
        said.contains("cannot listen") && said.contains("home.nbd"),
        "{said}"
    );
    std::fs::remove_file(&taken).expect("the file");
    let said = place.must("assemble home m0");
    assert!(said.contains("  control "), "{said}");
    place.must("stop home");
}

#[test]
fn nothing_is_lost_without_consent() {
    let place = Place::new(2);
    let create = "create -l 1 -n 2 m0 m1";
    place.must(create);
    let before = std::fs::read(place.path("m0")).expect("a member");
    let said = place.refused(create, 2);
    assert!(
        said.contains("will be lost") && said.contains("--run"),
        "{said}"
    );
    let dry = "create -l 5 -n 2 --dry-run m0 m1";
    let planned = place.must(&format!("{dry} --run"));
    assert!(planned.contains("nothing was written"), "{planned}");
    assert_eq!(place.refused(dry, 2), said, "as without the option");
    assert!(std::fs::read(place.path("m0")).expect("a member") == before);
    place.member("none");
    let said = place.refused("zero-superblock m0 none", 3);
    assert!(said.contains("none has no md superblock"), "{said}");
    place.must("examine m0");
    place.must("zero-superblock m0 m1");
    let said = place.refused("examine m0", 3);
    assert!(said.contains("cannot examine m0"), "{said}");
}

#[test]
fn wrong_arguments_are_told_with_a_remedy() {
    let place = Place::new(3);
    for (words, code, told) in [
        ("create -l 5 -n 3 m0 m1", 2, "`missing`"),
        ("create -l 7 -n 2 m0 m1", 2, "unknown level"),
        ("create -l 1 -n 2 -k log m0 m1", 2, "needs no log"),
        ("create -l 1 -n 2 m0 absent", 3, "truncate"),
        ("create -l 0 -n 2 -z 8m m0 m1", 2, "takes no `--size`"),
        (
            "create -l 10 -n 3 missing missing m0",
            2,
            "instead of `missing`",
        ),
        ("serve", 2, "name the members"),
        ("serve m0", 3, "raidlab create"),
        ("assemble home", 2, "no device"),
        ("manage home", 2, "nothing to do"),
        ("serve --null 1g --tcp 0.0.0.0:0", 1, "--anywhere"),
        ("serve --model nodisk", 2, "disks"),
    ] {
        let said = place.refused(words, code);
        assert!(
            said.contains(told) && said.contains("help:") || code == 2,
            "{words:?}: {said}"
        );
        assert!(said.contains(told), "{words:?}: {said}");
    }
}

#[test]
fn a_modelled_disk_is_served_in_real_time() {
    let place = Place::new(0);
    let server = place.serve("--model wd4000fyyz");
    let mut client = server.client();
    let bytes = pattern(3, 8192);
    client.write(1 << 40, &bytes, true).expect("a write");
    let begun = Instant::now();
    for place in [1_u64 << 41, 1 << 39, 3 << 40] {
        client.read(place, 4096).expect("a read");
    }
    // Three seeks over a third of the disk and more: no memory is so slow.
    assert!(begun.elapsed() > Duration::from_millis(15));
    assert_eq!(client.read(1 << 40, 8192).expect("a read"), bytes);
}

#[test]
fn seeds_are_simulated_and_replayed() {
    let place = Place::new(0);
    let said = place.must("simulate --seeds 20 --level raid1");
    assert!(
        said.contains("0 of 20 seeds (0..20) broke a promise"),
        "{said}"
    );
    let said = place.must("simulate --replay 3 --level raid1");
    assert!(said.contains("every promise was kept"), "{said}");
    for [option, level] in [["--log", "raid1"], ["--bitmap", "raid0"]] {
        let said = place.refused(&["simulate", option, "true", "--level", level], 2);
        let words = format!("`{option} true` cannot be had with `--level {level}`");
        assert!(said.contains(&words), "{said}");
    }
    let said = place.refused("simulate --exhaustive --level raid0", 2);
    assert!(said.contains("none of the small arrays"), "{said}");
    let last = u64::MAX.to_string();
    let said = place.refused(&["simulate", "--seeds", "5", "--from", &last], 2);
    assert!(said.contains("there are no 5 seeds from"), "{said}");
}

/// Members are where they were named; nothing else is left in the folder.
#[test]
fn a_stopped_array_leaves_no_socket() {
    let place = Place::new(4);
    raid_6(&place);
    let server = place.serve("m0 m1 m2 m3");
    place.must("stop test");
    // Who asked is told before the socket goes.
    assert!(server.ends());
    let left = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    assert_eq!(
        left(place.folder.path()),
        ["m0", "m1", "m2", "m3", "raidlab"]
    );
    assert!(left(&place.path("raidlab")).is_empty());
}

#[test]
fn a_block_device_needs_what_it_needs() {
    if Path::new("/dev/ublk-control").exists() {
        // Here one could be made; checks/ublk does it where it is nobody's.
        return;
    }
    let place = Place::new(0);
    let said = place.refused("serve --ublk --memory 1M", 1);
    let why = ["no ublk driver", "modprobe ublk_drv"];
    assert!(why.iter().all(|words| said.contains(words)), "{said}");
    // The number belongs to the option, or a member's name would be taken for it.
    place.refused("serve --ublk=x --memory 1M", 2);
    place.refused("serve --ublk --ublk-depth 0 --memory 1M", 2);
    place.refused("serve --ublk-depth 8 --memory 1M", 2);
}
