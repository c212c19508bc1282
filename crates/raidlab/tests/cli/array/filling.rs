//! What fills a member, and what does not: `idle`, a read-only array, `wait`.

use super::Place;

const CREATE: [&str; 9] = [
    "create",
    "-l",
    "1",
    "-n",
    "2",
    "--assume-clean",
    "--name",
    "test",
    "m0",
];

#[test]
fn a_recovery_is_not_ended_by_idle_and_is_waited_for() {
    let place = Place::new(3);
    place.must(&[&CREATE[..], &["m1"]].concat());
    let server = place.serve(&["m0", "m1"]);
    let manage = |words: &[&str]| place.must(&[&["manage", "test"], words].concat());
    manage(&["--sync-speed", "100", "100"]);
    manage(&["--fail", "m1", "--add", "m2"]);
    place.waits_for("recovering [U_]");
    let said = place.refused(&["manage", "test", "--action", "idle"], 1);
    assert!(said.contains("a recovery is ended by `--fail`"), "{said}");
    place.waits_for("recovering [U_]");
    // Nobody fills it now, and that is no success.
    manage(&["--readonly"]);
    let said = place.refused(&["wait", "test"], 1);
    assert!(said.contains("no recovery begins"), "{said}");
    assert!(said.contains("--readwrite"), "{said}");
    manage(&["--readwrite", "--sync-speed", "1000", "1000000"]);
    place.must(&["wait", "test", "--seconds", "30"]);
    place.waits_for("clean [UU]");
    drop(server);
}
