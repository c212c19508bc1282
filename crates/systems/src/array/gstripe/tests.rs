use super::*;
use crate::array::geom::fixtures::{array, plan};
use crate::array::{ArraySystem, ChangeMembers, ReadState};
use raidlab_shell::{Command, Recorded};

const LIST: &str = include_str!("../geom/data/gstripe-list.txt");

fn raidlab0() -> Built {
    array("raidlab0", &["ada2", "ada3"])
}

fn spec() -> GstripeSpec {
    toml::from_str("stripesize = \"128k\"").unwrap()
}

#[test]
fn a_stripe_is_whole_or_failed() {
    let interpret = |text: String| spec().interpret(&raidlab0(), &[Some(text)]).unwrap();
    let status = interpret(LIST.to_owned());
    assert_eq!(status.health, Health::Optimal);
    assert_eq!(status.members[1], MemberState::InSync);
    let down = interpret(LIST.replace("State: UP", "State: DOWN"));
    assert_eq!(down.health, Health::Failed);
    let lost = interpret(LIST.replace("Name: ada3", "Name: ada7"));
    assert_eq!(lost.health, Health::Failed);
    assert_eq!(lost.members[1], MemberState::Missing);
}

#[test]
fn plans_and_refusals() {
    insta::assert_snapshot!(plan(&spec().create(&raidlab0()).unwrap()), @r#"
    Destroys: dd if=/dev/zero of=/dev/ada2 bs=1048576 seek=0 count=16
    Destroys: dd if=/dev/zero of=/dev/ada2 bs=4096 seek=976750550 count=4096
    Destroys: dd if=/dev/zero of=/dev/ada3 bs=1048576 seek=0 count=16
    Destroys: dd if=/dev/zero of=/dev/ada3 bs=4096 seek=976750550 count=4096
    Changes: kldload -n geom_stripe
    Destroys: gstripe label -s 131072 raidlab0 ada2 ada3
    "#);
    insta::assert_snapshot!(spec().fail(&raidlab0(), 0).unwrap_err(), @"gstripe cannot fail a member: a stripe cannot live without any of its members");
    let odd = GstripeSpec {
        stripesize: Some(Bytes(96 << 10)),
    };
    insta::assert_snapshot!(odd.create(&raidlab0()).unwrap_err(), @"gstripe cannot be built: `stripesize` is 98304 bytes and must be a power of two from 512");
}

#[test]
fn the_stripe_size_is_read_back() {
    let target = Recorded::new("bsd")
        .says(&CLASS.reads(&["list", "raidlab0"]), LIST)
        .says(&Command::reads("sysctl", ["kern.geom.stripe"]), "");
    let asked_for_less = GstripeSpec {
        stripesize: Some(Bytes(64 << 10)),
    };
    let all = asked_for_less.settings(&target, &raidlab0()).unwrap();
    assert_eq!(all[0].found, "131072");
    assert!(!all[0].applied);
    assert!(spec().settings(&target, &raidlab0()).unwrap()[0].applied);
}

#[test]
fn the_capacity_is_that_of_the_kernel() {
    // `Mediasize` of the list: 2 x 30523582 stripes of 128 KiB.
    let capacity = spec().capacity(&raidlab0().members);
    assert_eq!(capacity, Bytes(2 * 30_523_582 * (128 << 10)));
}
