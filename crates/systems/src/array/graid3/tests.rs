use super::*;
use crate::array::geom::fixtures::{array, plan};
use crate::array::{ArraySystem, ReadState};
use crate::array::{Health, MemberState, SyncKind};
use raidlab_shell::Recorded;

const LIST: &str = include_str!("../geom/data/graid3-list.txt");

fn raidlab0() -> Built {
    array("raidlab0", &["ada2", "ada3", "ada4"])
}

fn interpret(text: String) -> ArrayStatus {
    let spec = Graid3Spec::default();
    spec.interpret(&raidlab0(), &[Some(text)]).unwrap()
}

#[test]
fn one_member_may_be_missing_and_no_more() {
    let status = interpret(LIST.to_owned());
    assert_eq!(status.health, Health::Degraded);
    assert_eq!(status.members[1], MemberState::Recovering);
    let sync = status.sync.unwrap();
    assert_eq!((sync.kind, sync.percent), (SyncKind::Recovery, Some(37.0)));
    let lost = interpret(LIST.replace("Name: ada4", "Name: ada9"));
    assert_eq!(lost.health, Health::Failed);
    let whole = interpret(LIST.replace("State: SYNCHRONIZING", "State: ACTIVE"));
    assert_eq!((whole.health, whole.sync), (Health::Optimal, None));
}

#[test]
fn plans_and_refusals() {
    let spec: Graid3Spec = toml::from_str("round_robin = true\nautosync = false").unwrap();
    let array5 = array("raidlab0", &["ada1", "ada2", "ada3", "ada4", "ada5"]);
    let commands = spec.create(&array5).unwrap();
    insta::assert_snapshot!(commands.last().unwrap(), @"graid3 label -n -r raidlab0 ada1 ada2 ada3 ada4 ada5");
    insta::assert_snapshot!(plan(&spec.remove(&raidlab0(), 1).unwrap()), @"Changes: graid3 remove -n 1 raidlab0");
    insta::assert_snapshot!(plan(&spec.add(&raidlab0(), 1).unwrap()), @"Destroys: graid3 insert -n 1 raidlab0 ada3");
    insta::assert_snapshot!(plan(&spec.destroy(&raidlab0())), @r#"
    Destroys: graid3 stop -f raidlab0
    Destroys: graid3 clear ada2  [0, 1]
    Destroys: dd if=/dev/zero of=/dev/ada2 bs=1048576 seek=0 count=16
    Destroys: dd if=/dev/zero of=/dev/ada2 bs=4096 seek=976750550 count=4096
    Destroys: graid3 clear ada3  [0, 1]
    Destroys: dd if=/dev/zero of=/dev/ada3 bs=1048576 seek=0 count=16
    Destroys: dd if=/dev/zero of=/dev/ada3 bs=4096 seek=976750550 count=4096
    Destroys: graid3 clear ada4  [0, 1]
    Destroys: dd if=/dev/zero of=/dev/ada4 bs=1048576 seek=0 count=16
    Destroys: dd if=/dev/zero of=/dev/ada4 bs=4096 seek=976750550 count=4096
    "#);
    insta::assert_snapshot!(spec.re_add(&raidlab0(), 1).unwrap_err(), @"graid3 cannot re-add a member: it keeps no record of what a member missed; add copies everything");
    let four = array("raidlab0", &["ada1", "ada2", "ada3", "ada4"]);
    insta::assert_snapshot!(spec.create(&four).unwrap_err(), @"graid3 cannot be built: it takes 3, 5, 9, 17 ... members and there are 4");
    let both = Graid3Spec {
        round_robin: true,
        verify: true,
        autosync: None,
    };
    insta::assert_snapshot!(both.check(&raidlab0().members).unwrap_err(), @"graid3 cannot be built: `round_robin` and `verify` exclude each other");
}

#[test]
fn reading_options_are_read_back() {
    let target = Recorded::new("bsd")
        .says(&CLASS.reads(&["list", "raidlab0"]), LIST)
        .says(&Command::reads("sysctl", ["kern.geom.raid3"]), "");
    let all = Graid3Spec::default()
        .settings(&target, &raidlab0())
        .unwrap();
    let round_robin = &all[0];
    assert_eq!(round_robin.found, "true");
    assert!(!round_robin.applied);
    assert!(all[1].applied && all[2].applied);
}
