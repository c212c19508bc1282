use super::*;
use crate::array::geom::fixtures::{array, plan};
use crate::array::{ArraySystem, ReadState, SystemError};
use crate::array::{Health, SyncKind};
use raidlab_shell::Recorded;

const COMPLETE: &str = include_str!("../geom/data/gmirror-complete-2015.txt");
const REMOVED: &str = include_str!("../geom/data/gmirror-removed-2015.txt");
const SYNCHRONIZING: &str = include_str!("../geom/data/gmirror-synchronizing-2015.txt");

fn m0() -> Built {
    array("m0", &["ada2", "ada3"])
}

fn status(text: &str) -> Result<ArrayStatus, SystemError> {
    GmirrorSpec::default().interpret(&m0(), &[Some(text.to_owned())])
}

#[test]
fn members_are_in_the_order_of_slots_not_of_the_list() {
    let status = status(COMPLETE).unwrap();
    assert_eq!(status.health, Health::Optimal);
    assert_eq!(status.sync, None);
    assert_eq!(status.members, [MemberState::InSync; 2]);
    for (devices, first, second) in [
        (["ada2", "ada3"], MemberState::InSync, MemberState::Missing),
        (["ada3", "ada2"], MemberState::Missing, MemberState::InSync),
    ] {
        let array = array("m0", &devices);
        let status = GmirrorSpec::default().interpret(&array, &[Some(REMOVED.to_owned())]);
        assert_eq!(status.unwrap().members, [first, second]);
    }
}

#[test]
fn a_mirror_that_lost_a_member_is_degraded_although_it_says_complete() {
    assert!(REMOVED.contains("State: COMPLETE"));
    let status = status(REMOVED).unwrap();
    assert_eq!(status.health, Health::Degraded);
    let members = [MemberState::InSync, MemberState::Missing];
    assert_eq!(status.members, members);
}

#[test]
fn progress_is_finer_than_the_whole_percents() {
    let status = status(SYNCHRONIZING).unwrap();
    assert_eq!(status.health, Health::Degraded);
    assert_eq!(status.members[1], MemberState::Recovering);
    let sync = status.sync.unwrap();
    assert_eq!(sync.kind, SyncKind::Recovery);
    // 561146363904 of 4000787030016 bytes; the list says 14 %.
    assert!((sync.percent.unwrap() - 14.0259).abs() < 1e-4);
}

#[test]
fn without_a_good_member_or_a_device_it_has_failed() {
    let stale = COMPLETE.replace("ACTIVE", "STALE");
    let status_of_stale = status(&stale).unwrap();
    assert_eq!(status_of_stale.health, Health::Failed);
    assert_eq!(status_of_stale.members[0], MemberState::Spare);
    let (head, tail) = REMOVED.split_once("Providers:").unwrap();
    let (_, consumers) = tail.split_once("Consumers:").unwrap();
    let broken = format!("{head}Consumers:{consumers}");
    assert_eq!(status(&broken).unwrap().health, Health::Failed);
}

#[test]
fn an_array_that_is_not_there_is_named() {
    for contents in [Some(String::new()), None] {
        let error = GmirrorSpec::default()
            .interpret(&m0(), &[contents])
            .unwrap_err();
        assert!(matches!(error, SystemError::NoArray { name } if name == "m0"));
    }
}

#[test]
fn the_plan_of_everything_asked_for() {
    let spec: GmirrorSpec = toml::from_str(
        "balance = \"split\"\nslice = 131072\npriorities = [10, 20]\nautosync = false\n\
         failsync = false\n",
    )
    .unwrap();
    insta::assert_snapshot!(plan(&spec.create(&m0()).unwrap()), @r#"
    Destroys: dd if=/dev/zero of=/dev/ada2 bs=1048576 seek=0 count=16
    Destroys: dd if=/dev/zero of=/dev/ada2 bs=4096 seek=976750550 count=4096
    Destroys: dd if=/dev/zero of=/dev/ada3 bs=1048576 seek=0 count=16
    Destroys: dd if=/dev/zero of=/dev/ada3 bs=4096 seek=976750550 count=4096
    Changes: kldload -n geom_mirror
    Destroys: gmirror label -b split -s 131072 -n -F m0 ada2 ada3
    Reads: sleep 5
    Changes: gmirror configure -p 10 m0 ada2
    Changes: gmirror configure -p 20 m0 ada3
    "#);
    insta::assert_snapshot!(plan(&spec.destroy(&m0())), @r#"
    Destroys: gmirror destroy -f m0
    Destroys: gmirror clear ada2  [0, 1]
    Destroys: dd if=/dev/zero of=/dev/ada2 bs=1048576 seek=0 count=16
    Destroys: dd if=/dev/zero of=/dev/ada2 bs=4096 seek=976750550 count=4096
    Destroys: gmirror clear ada3  [0, 1]
    Destroys: dd if=/dev/zero of=/dev/ada3 bs=1048576 seek=0 count=16
    Destroys: dd if=/dev/zero of=/dev/ada3 bs=4096 seek=976750550 count=4096
    "#);
}

#[test]
fn the_plans_of_the_verbs() {
    let spec = GmirrorSpec::default();
    let verbs = [
        ("fail", spec.fail(&m0(), 1)),
        ("remove", spec.remove(&m0(), 1)),
        ("add", spec.add(&m0(), 1)),
        ("re-add", spec.re_add(&m0(), 1)),
    ];
    let text: String = verbs
        .into_iter()
        .map(|(verb, commands)| format!("{verb}:\n{}", plan(&commands.unwrap())))
        .collect();
    insta::assert_snapshot!(text, @r#"
    fail:
    Changes: gmirror deactivate m0 ada3
    remove:
    Changes: gmirror remove m0 ada3  [0, 1]
    Changes: gmirror forget m0
    add:
    Changes: gmirror forget m0
    Destroys: gmirror insert -p 1 m0 ada3
    re-add:
    Destroys: gmirror activate m0 ada3
    "#);
    let error = spec.fail(&m0(), 2).unwrap_err();
    assert!(matches!(error, SystemError::Unsupported { .. }));
}

#[test]
fn what_cannot_be_built_is_refused() {
    let spec = GmirrorSpec {
        priorities: Some(vec![1]),
        ..GmirrorSpec::default()
    };
    assert!(spec.check(&m0().members).is_err());
    let one = array("m0", &["ada2"]);
    assert!(GmirrorSpec::default().check(&one.members).is_err());
    assert!(toml::from_str::<GmirrorSpec>("balance = \"best\"").is_err());
    assert!(toml::from_str::<GmirrorSpec>("chunk = \"64k\"").is_err());
}

#[test]
fn the_capacity_leaves_room_for_the_metadata() {
    let capacity = GmirrorSpec::default().capacity(&m0().members);
    // The real one is 4000787029504: one sector of 512 bytes less.
    assert_eq!(capacity, Bytes(4_000_787_025_920));
}

#[test]
fn settings_are_read_back_beside_what_was_asked() {
    let target = Recorded::new("bsd")
        .says(&CLASS.reads(&["list", "m0"]), COMPLETE)
        .says(
            &Command::reads("sysctl", ["kern.geom.mirror"]),
            include_str!("../geom/data/sysctl-mirror.txt"),
        );
    let spec = GmirrorSpec {
        balance: Some(Balance::RoundRobin),
        autosync: Some(true),
        ..GmirrorSpec::default()
    };
    let all = spec.settings(&target, &m0()).unwrap();
    let get = |name: &str| all.iter().find(|setting| setting.name == name).unwrap();
    let balance = get("balance");
    assert_eq!(balance.asked.as_deref(), Some("round-robin"));
    assert_eq!(balance.found, "load");
    assert!(!balance.applied);
    assert!(get("autosync").applied);
    assert_eq!(get("slice").found, "4096");
    assert_eq!(get("priority of ada3").found, "1");
    assert_eq!(get("kern.geom.mirror.sync_requests").found, "2");
}

#[test]
fn what_a_crash_left_is_found_by_its_prefix() {
    let both = format!(
        "{COMPLETE}\n{}\nGeom name: m0.sync\n\n",
        COMPLETE.replace("m0", "other")
    );
    let list = CLASS.reads(&["list", "-a"]);
    let target = Recorded::new("bsd").says(&list, both);
    let found = GmirrorSpec::default().find(&target, "m").unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].name, "m0");
    assert_eq!(found[0].members[0].device, "/dev/ada3");
    assert_eq!(found[0].members[0].size, Bytes(4_000_787_030_016));
    let linux = Recorded::new("linux").lacks("gmirror");
    assert_eq!(GmirrorSpec::default().find(&linux, "m").unwrap(), []);
}
