use super::*;
use crate::array::geom::fixtures::{array, plan};
use crate::array::{ArraySystem, ReadState};
use crate::array::{Health, SyncKind};

fn f0() -> Built {
    array("f0", &["ada2", "ada3"])
}

fn interpret(spec: &GflashSpec, array: &Built, text: &str) -> ArrayStatus {
    spec.interpret(array, &[Some(text.to_owned())]).unwrap()
}

#[test]
fn a_copy_under_way_and_a_removed_member() {
    let text = include_str!("../geom/data/gflash-synchronizing-2015.txt");
    let status = interpret(&GflashSpec::default(), &f0(), text);
    assert_eq!(status.health, Health::Degraded);
    assert_eq!(status.members[0], MemberState::InSync);
    assert_eq!(status.members[1], MemberState::Recovering);
    let sync = status.sync.unwrap();
    assert_eq!((sync.kind, sync.percent), (SyncKind::Recovery, Some(11.0)));

    let text = include_str!("../geom/data/gflash-removed-2015.txt");
    let status = interpret(&GflashSpec::default(), &f0(), text);
    assert_eq!(status.health, Health::Degraded);
    assert_eq!(status.members[1], MemberState::Missing);
}

#[test]
fn a_cache_is_a_member_without_progress() {
    let spec: GflashSpec = toml::from_str("cache = true\nram = \"4g\"").unwrap();
    let array = array("f0", &["ada2", "ada1"]);
    let text = include_str!("../geom/data/gflash-cache-2015.txt");
    let status = interpret(&spec, &array, text);
    assert_eq!((status.health, status.sync), (Health::Optimal, None));
    let lost = interpret(&spec, &array, &text.replace("Name: ada1", "Name: ada9"));
    assert_eq!(lost.health, Health::Failed);
}

#[test]
fn plans_and_refusals() {
    let mirror = GflashSpec::default();
    insta::assert_snapshot!(plan(&mirror.create(&f0()).unwrap()), @r#"
    Destroys: dd if=/dev/zero of=/dev/ada2 bs=1048576 seek=0 count=16
    Destroys: dd if=/dev/zero of=/dev/ada2 bs=4096 seek=976750550 count=4096
    Destroys: dd if=/dev/zero of=/dev/ada3 bs=1048576 seek=0 count=16
    Destroys: dd if=/dev/zero of=/dev/ada3 bs=4096 seek=976750550 count=4096
    Changes: kldload -n geom_flash
    Destroys: gflash create f0 ada2 ada3
    "#);
    insta::assert_snapshot!(plan(&mirror.remove(&f0(), 1).unwrap()), @"Changes: gflash remove f0 ada3");
    insta::assert_snapshot!(plan(&mirror.add(&f0(), 1).unwrap()), @"Destroys: gflash insert f0 ada3");
    insta::assert_snapshot!(plan(&mirror.destroy(&f0())), @r#"
    Destroys: gflash stop -f f0
    Destroys: gflash clear ada2  [0, 1]
    Destroys: dd if=/dev/zero of=/dev/ada2 bs=1048576 seek=0 count=16
    Destroys: dd if=/dev/zero of=/dev/ada2 bs=4096 seek=976750550 count=4096
    Destroys: gflash clear ada3  [0, 1]
    Destroys: dd if=/dev/zero of=/dev/ada3 bs=1048576 seek=0 count=16
    Destroys: dd if=/dev/zero of=/dev/ada3 bs=4096 seek=976750550 count=4096
    "#);
    insta::assert_snapshot!(mirror.re_add(&f0(), 1).unwrap_err(), @"gflash cannot re-add a member: it keeps no record of what a member missed; add copies everything");
    let cached: GflashSpec = toml::from_str("cache = true\nram = \"4g\"").unwrap();
    let array = array("f0", &["ada2", "ada1"]);
    insta::assert_snapshot!(cached.create(&array).unwrap().last().unwrap(), @"gflash create -r 4096m -c ada1 f0 ada2");
    insta::assert_snapshot!(plan(&cached.remove(&array, 1).unwrap()), @"Changes: gflash remove -c ada1 f0");
    insta::assert_snapshot!(plan(&cached.add(&array, 1).unwrap()), @"Destroys: gflash insert -r 4096m -c ada1 f0");
    let ram: GflashSpec = toml::from_str("ram = \"4g\"").unwrap();
    assert!(ram.check(&f0().members).is_err());
}

#[test]
fn the_capacity_is_no_more_than_the_real_one() {
    let capacity = GflashSpec::default().capacity(&f0().members).0;
    // `Mediasize` in the log of 2015.
    assert!(capacity <= 4_000_783_007_744);
    assert!(capacity > 4_000_780_000_000);
}
