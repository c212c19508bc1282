//! Verbs that come at the wrong time or with the wrong device: in a recovery, on a read-only
//! array, after a spare has taken the place.

use super::{Place, pattern};

const CREATE: &str = "create -l 1 -n 2 --assume-clean --name test m0";

#[test]
fn a_recovery_is_not_ended_by_idle_and_is_waited_for() {
    let place = Place::new(3);
    place.must(&format!("{CREATE} m1"));
    let server = place.serve("m0 m1");
    let manage = |words: &str| place.must(&format!("manage test {words}"));
    manage("--sync-speed 100 100");
    manage("--fail m1 --add m2");
    place.waits_for("recovering [U_]");
    let said = place.refused("manage test --action idle", 1);
    assert!(said.contains("a recovery is ended by `--fail`"), "{said}");
    place.waits_for("recovering [U_]");
    // Nobody fills it now, and that is no success.
    manage("--readonly");
    let said = place.refused("wait test", 1);
    assert!(said.contains("no recovery begins"), "{said}");
    assert!(said.contains("--readwrite"), "{said}");
    manage("--readwrite --sync-speed 1000 1000000");
    place.must("wait test --seconds 30");
    place.waits_for("clean [UU]");
    drop(server);
}

/// A server that is killed now must find it again.
#[test]
fn a_spare_that_was_added_says_so_itself() {
    let place = Place::new(3);
    place.must(&format!("{CREATE} m1"));
    let server = place.serve("m0 m1");
    place.must("manage test --add m2");
    let shown = place.must("examine m2");
    assert!(shown.contains("Device Role : spare"), "{shown}");
    server.kill();
}

#[test]
fn what_is_read_only_says_what_to_type() {
    let place = Place::new(3);
    place.must("create -l 5 -n 3 --assume-clean m0 m1 m2");
    let server = place.serve("m0 m1 m2");
    place.must("manage test --readonly");
    let said = place.refused("manage test --action check", 1);
    assert!(said.contains("`--readwrite` makes it writable"), "{said}");
    place.must("manage test --readwrite");
    let mut client = server.client();
    client
        .write(0, &pattern(1, 1 << 20), true)
        .expect("a write");
    server.kill();
    let said = place.refused("serve --run --readonly m0 m1", 3);
    assert!(said.contains("without `--readonly` it starts"), "{said}");
    let server = place.serve("--readonly m0 m1 m2");
    for verb in ["--readwrite", "--action=check"] {
        let said = place.refused(&["manage", "test", verb], 1);
        assert!(said.contains("stop it and assemble it without"), "{said}");
    }
    drop(server);
}

#[test]
fn a_device_that_cannot_be_had_is_named_with_what_helps() {
    let place = Place::new(4);
    let small = std::fs::File::create(place.path("small")).expect("a file");
    small.set_len(4 << 20).expect("its size");
    let create = "create -l 1 -n 2 --name test";
    let said = place.refused(&format!("{create} -z 8m m0 small"), 2);
    assert!(
        said.contains("small offers ") && said.contains("`--size`"),
        "{said}"
    );
    small.set_len(100 << 10).expect("its size");
    let said = place.refused(&format!("{create} m0 small"), 2);
    assert!(
        said.contains("small has 100 KiB") && said.contains("help"),
        "{said}"
    );
    let bitmap = "--assume-clean -b internal m0 m1";
    place.must(&format!("{create} {bitmap}"));
    let server = place.serve("m0 m1");
    let mut client = server.client();
    client.write(0, &[1; 4096], true).expect("a write");
    let said = place.refused("manage test --add small", 1);
    for part in [
        "/small: the device has 100 KiB (200 sectors)",
        "needs 16 MiB (32768)",
    ] {
        assert!(said.contains(part), "{said}");
    }
    // A spare takes the place of what failed, which comes back then.
    place.must("manage test --fail m1 --remove m1 --add m2");
    place.must("wait test --seconds 30");
    let said = place.refused("manage test --re-add m1", 1);
    for part in ["/m1: slot 1 is not free", "`--add` makes it a spare"] {
        assert!(said.contains(part), "{said}");
    }
    place.must("stop test");
    drop(server);
    // Each half runs alone.
    for (half, writes) in [("m0", 1), ("m2", 4)] {
        let server = place.serve(&["--run", half]);
        let mut client = server.client();
        for _ in 0..writes {
            client.write(0, &[2; 4096], true).expect("a write");
        }
        place.must("stop test");
        drop(server);
    }
    let _server = place.serve("--run m2");
    let said = place.refused("manage test --re-add m0", 1);
    for part in ["/m0: ", "split brain", "`--add` makes it a new member"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn an_array_is_made_writable_before_the_other_verbs_and_read_only_after_them() {
    let place = Place::new(3);
    place.must(&format!("{CREATE} m1"));
    let server = place.serve("m0 m1");
    place.must("manage test --readonly --fail m1");
    place.waits_for("read-only");
    let words = "--remove m1 --add m2 --readwrite";
    place.must(&format!("manage test {words}"));
    place.must("wait test --seconds 30");
    place.waits_for("clean [UU]");
    drop(server);
}
