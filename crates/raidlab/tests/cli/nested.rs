//! Arrays whose members are arrays, as their users meet them.

use crate::array::{Place, pattern};

/// RAID 1+0 of four members: `left` and `right`, and `test` over them.
fn raid_10(place: &Place) {
    for (name, members) in [("left", "m0 m1"), ("right", "m2 m3")] {
        place.must(&format!(
            "create -l 1 -n 2 --assume-clean -N {name} {members}"
        ));
    }
    let create = "create -l 0 -n 2 -c 64 -N test";
    let said = place.must(&format!("{create} {MEMBERS}"));
    assert!(said.contains("array:left: slot 0"), "{said}");
}

const MEMBERS: &str = "[ m0 m1 ] [ m2 m3 ]";

#[test]
fn raid_1_plus_0_lives_with_each_of_its_arrays_at_hand() {
    let place = Place::new(4);
    raid_10(&place);
    let planned = place.must(&format!("assemble test --dry-run {MEMBERS}"));
    assert!(planned.contains("raid1 `"), "{planned}");
    assert!(
        planned.contains("array:right: slot 1, in sync"),
        "{planned}"
    );

    let server = place.serve(MEMBERS);
    let mut client = server.client();
    let first = pattern(1, 3 << 20);
    client.write(4321 * 512, &first, false).expect("a write");
    client.flush().expect("a flush");
    place.must("manage test.right --fail m2 --remove m2");
    let inner = place.must("detail test.right");
    assert!(inner.contains("degraded [_U]"), "{inner}");
    let outer = place.must("detail test");
    assert!(
        outer.contains("[UU]") && outer.contains("array:right"),
        "{outer}"
    );
    let second = pattern(2, 1 << 20);
    client.write(4321 * 512, &second, true).expect("a write");
    let said = place.refused("stop test.right", 1);
    assert!(said.contains("is a member of another array"), "{said}");
    server.kill();

    // A half that lacks a member without having said so needs `--run`.
    let short = "[ m0 ] [ m3 ]";
    let said = place.refused(&format!("serve --name test {short}"), 3);
    assert!(said.contains("cannot assemble"), "{said}");
    let missing = "[ m0 m1 ] [ m3 ]";
    let server = place.serve(missing);
    let mut client = server.client();
    let read = client.read(4321 * 512, 3 << 20).expect("a read");
    assert!(read[..1 << 20] == second && read[1 << 20..] == first[1 << 20..]);
    place.member("new");
    place.must("manage test.right --add new");
    place.must("wait test.right --seconds 60");
    let watched = place.must("watch test.right --count 1");
    assert!(watched.contains("[UU]"), "{watched}");
    place.must("stop test");
    drop(server);

    let examined = place.must("examine new");
    assert!(examined.contains("right"), "{examined}");
    let examined = place.must("examine [ m3 new ]");
    assert!(examined.contains("Raid Level : raid0"), "{examined}");
    let members = "[ m0 m1 ] [ m3 new ]";
    let server = place.serve(members);
    let read = server.client().read(4321 * 512, 1 << 20).expect("a read");
    assert!(read == second);
}

#[test]
fn a_stripe_that_failed_is_made_anew_while_the_mirror_serves() {
    let place = Place::new(5);
    let stripe = |name: &str, members: &str| {
        place.must(&format!("create -l 0 -n 2 --run -N {name} {members}"));
    };
    stripe("left", "m0 m1");
    // One half is a plain file: members of both kinds mix.
    let create = "create -l 1 -n 2 -N test --assume-clean";
    let members = "[ m0 m1 ] m4";
    place.must(&format!("{create} {members}"));
    let server = place.serve(members);
    let mut client = server.client();
    let data = pattern(3, 1 << 20);
    client.write(0, &data, true).expect("a write");
    let left = "array:left";
    place.must(&["manage", "test", "--fail", left, "--remove", left]);
    place.must("stop test.left");
    // The members of the stopped array are free, and two others make a new one.
    place.must("zero-superblock m0");
    stripe("new", "m2 m3");
    place.must("manage test --assemble m2 m3 --add array:new");
    place.must("wait test --seconds 60");
    place.must("manage test --fail m4");
    assert_eq!(client.read(0, 1 << 20).expect("a read"), data);
    let said = place.refused("manage test --add array:nothing", 1);
    assert!(said.contains("no array `nothing`"), "{said}");
}

#[test]
fn brackets_and_members_that_cannot_be_are_told() {
    let place = Place::new(3);
    for words in ["serve [ m0", "examine m0 ]", "create -l 0 -n 1 [ ]"] {
        let said = place.refused(words, 2);
        assert!(
            said.contains("help:") && said.contains("a.img b.img"),
            "{said}"
        );
    }
    let old = "create -l 1 -n 2 -e 1.0 --assume-clean";
    place.must(&format!("{old} m0 m1"));
    let before = std::fs::read(place.path("m0")).expect("a member");
    let over = "create -l 1 -n 2 [ m0 m1 ] m2";
    let said = place.refused(over, 2);
    assert!(said.contains("at the end of its members"), "{said}");
    let after = std::fs::read(place.path("m0")).expect("a member");
    assert!(
        before[..1 << 20] == after[..1 << 20],
        "nothing was written to its data"
    );
}

/// Inner arrays have sockets named after the outer one, which `--control` does not move.
#[test]
fn a_second_array_of_inner_arrays_is_told_to_take_another_name() {
    let place = Place::new(8);
    raid_10(&place);
    let others = "[ m4 m5 ] [ m6 m7 ]";
    for members in ["m4 m5", "m6 m7"] {
        place.must(&format!("create -l 1 -n 2 --assume-clean {members}"));
    }
    place.must(&format!("create -l 0 -n 2 -c 64 -N test {others}"));
    let _server = place.serve(MEMBERS);
    let said = place.refused(&format!("serve {others}"), 1);
    assert!(said.contains("is in use by another server"), "{said}");
    assert!(
        said.contains("help: `--name` gives it and its inner arrays other places"),
        "{said}"
    );
    place.must("stop test");
}

/// The outer array's superblocks lie at the end of the inner arrays. Where these grew, nobody
/// would find them any more.
#[test]
fn only_the_outermost_array_grows() {
    let place = Place::new(4);
    for (name, members) in [("left", "m0 m1"), ("right", "m2 m3")] {
        place.must(&format!("create -l 1 -n 2 -z 8m -N {name} {members}"));
    }
    let create = "create -l 1 -n 2 -e 1.0 -z 4m -N test";
    place.must(&format!("{create} {MEMBERS}"));
    let grow = format!("--size max {MEMBERS}");
    let planned = place.must(&format!("assemble test --dry-run {grow}"));
    assert!(planned.contains("test`, 2 slots, 7.9"), "{planned}");
    let server = place.serve(&grow);
    place.must("stop test");
    drop(server);
    let examined = place.must("examine m0");
    assert!(examined.contains("Array Size : 8192 KiB"), "{examined}");
    drop(place.serve(MEMBERS).client());
}
