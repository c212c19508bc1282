use super::super::properties::parse_properties;
use super::super::status::{Section, parse_status};
use super::{array, spec};
use crate::array::ReadState;
use crate::array::{ArrayStatus, Health, MemberState, SyncKind, SystemError};
use proptest::prelude::*;

const FAULTS: &str = include_str!("../data/status-faults-2.2.txt");
const RESILVER: &str = include_str!("../data/status-resilver-2015.txt");

fn status(name: &str, devices: &[&str], text: &str) -> ArrayStatus {
    let mirror = spec("topology = \"mirror\"");
    let contents = [Some(text.to_owned())];
    mirror.interpret(&array(name, devices), &contents).unwrap()
}

/// Kind and percent.
fn sync(status: &ArrayStatus) -> Option<(SyncKind, f64)> {
    let sync = status.sync?;
    Some((sync.kind, sync.percent?))
}

#[test]
fn a_member_that_was_detached_is_missing_although_the_pool_is_online() {
    let whole = include_str!("../data/status-mirror-2015.txt");
    let before = status("tpool", &["ada2", "ada3"], whole);
    assert_eq!(before.health, Health::Optimal);
    assert_eq!(before.members, [MemberState::InSync; 2]);
    assert_eq!(before.sync, None);
    let text = include_str!("../data/status-detached-2015.txt");
    assert!(text.contains("state: ONLINE"));
    let after = status("tpool", &["ada2", "ada3"], text);
    assert_eq!(after.health, Health::Degraded);
    assert_eq!(after.members, [MemberState::InSync, MemberState::Missing]);
}

#[test]
fn resilvers_of_all_ages() {
    let s2015 = status("tpool", &["ada2", "ada3"], RESILVER);
    assert_eq!(s2015.health, Health::Degraded);
    assert_eq!(sync(&s2015), Some((SyncKind::Recovery, 8.39)));
    assert_eq!(
        s2015.members,
        [MemberState::InSync, MemberState::Recovering]
    );

    let text = include_str!("../data/status-replacing-0.8.txt");
    let old = "disk/by-id/ata-WDC_WD3001FFSX-68JNUN0_WD-WCC13RYDLSH9";
    let tired = "disk/by-id/ata-WDC_WD3001FFSX-68JNUN0_WD-WCC13HETXXKA";
    let s08 = status("vz", &[old, "sdh", tired], text);
    assert_eq!(sync(&s08), Some((SyncKind::Recovery, 66.46)));
    assert_eq!(
        s08.members,
        [
            MemberState::Missing,
            MemberState::Recovering,
            MemberState::InSync
        ]
    );

    let devices = ["sdb", "sdc", "sdd", "sde", "sdf", "sdg", "sdh", "sdi"];
    let s22 = status("raidlab0", &devices, FAULTS);
    assert_eq!(sync(&s22), Some((SyncKind::Recovery, 20.0)));
    assert_eq!(
        s22.members,
        [
            MemberState::InSync,
            MemberState::Faulty,
            MemberState::Missing,
            MemberState::Recovering,
            MemberState::Missing,
            MemberState::Recovering,
            MemberState::InSync,
            MemberState::Spare,
        ]
    );
}

#[test]
fn log_and_cache_devices_are_told_apart_by_headings() {
    let text = include_str!("../data/status-log-cache-2015.txt");
    let pools = parse_status(text).unwrap();
    let lines: Vec<(usize, Section, &str)> = pools[0]
        .vdevs
        .iter()
        .map(|v| (v.depth, v.section, v.name.as_str()))
        .collect();
    assert_eq!(
        lines,
        [
            (0, Section::Data, "tank"),
            (1, Section::Data, "mirror-0"),
            (2, Section::Data, "sdc"),
            (2, Section::Data, "sdd"),
            (1, Section::Logs, "mirror-1"),
            (2, Section::Logs, "sda3"),
            (2, Section::Logs, "sdb3"),
            (1, Section::Cache, "sda4"),
            (1, Section::Cache, "sdb4"),
        ]
    );
    let fuse = include_str!("../data/status-raidz-fuse.txt");
    let all = ["loop0", "loop5", "loop2", "loop3", "loop4"];
    assert_eq!(status("raidlabz0", &all, fuse).health, Health::Optimal);
}

#[test]
fn text_quoted_with_blanks_for_tabs_is_the_same() {
    for text in [FAULTS, RESILVER] {
        let quoted = text.replace('\t', "        ");
        assert_eq!(parse_status(&quoted).unwrap(), parse_status(text).unwrap());
    }
    let pools = parse_status(&format!("{RESILVER}{FAULTS}")).unwrap();
    let names: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["tpool", "raidlab0"]);
    assert_eq!(pools[1], parse_status(FAULTS).unwrap()[0]);
}

#[test]
fn a_scrub_is_a_check_and_a_paused_one_is_none() {
    let with = |scan: &str| {
        let text = include_str!("../data/status-mirror-2015.txt");
        status(
            "tpool",
            &["ada2", "ada3"],
            &text.replace("none requested", scan),
        )
    };
    let scrub = with(
        "scrub in progress since Sun Feb  8 04:00:00 2026\n\
         \t1.00T / 2.00T scanned, 512G / 2.00T issued at 100M/s\n\
         \t0B repaired, 25.00% done, 04:00:00 to go",
    );
    assert_eq!(sync(&scrub), Some((SyncKind::Check, 25.0)));
    assert_eq!(scrub.health, Health::Optimal);
    let paused = with(
        "scrub paused since Sun Feb  8 04:00:00 2026\n\
         \tscrub started on Sun Feb  8 03:00:00 2026\n\
         \t1.00T / 2.00T scanned, 512G / 2.00T issued\n\t0B repaired, 25.00% done",
    );
    assert_eq!(paused.sync, None);
    let done = with("resilvered 388K in 00:00:01 with 0 errors on Sat Nov 21 05:32:05 2026");
    assert_eq!(done.sync, None);
    let slow = with(
        "resilver in progress since Thu Feb 19 20:20:24 2015\n\
         \x20   114G scanned out of 19.6T at 2.52M/s, (scan is slow, no estimated time)\n\
         \x20   13.7G resilvered, 0.57% done",
    );
    assert_eq!(sync(&slow), Some((SyncKind::Recovery, 0.57)));
}

#[test]
fn pools_that_are_gone_or_stand_still() {
    let text = RESILVER.replace("state: ONLINE", "state: SUSPENDED");
    let stuck = status("tpool", &["ada2", "ada3"], &text);
    assert_eq!(stuck.health, Health::Failed);
    let mirror = spec("topology = \"mirror\"");
    let none = mirror.interpret(&array("tpool", &["ada2"]), &[None]);
    assert!(matches!(none, Err(SystemError::NoArray { name }) if name == "tpool"));
    let error = parse_status("no pools available\n").unwrap_err();
    insta::assert_snapshot!(error, @"cannot understand zpool status, line 1: `no pools available` belongs to no pool");
    let cut = RESILVER.replace("ada3    ONLINE       0     0     0  (resilvering)", "ada3");
    insta::assert_snapshot!(parse_status(&cut).unwrap_err(), @"cannot understand zpool status, line 15: no state in `ada3`");
}

proptest! {
    #[test]
    fn no_text_makes_the_readers_panic(text in "[ -~\n\t]{0,300}") {
        let _ = parse_status(&text);
        let _ = parse_properties("zfs get", &text);
    }

    /// Real text with a piece cut out and anything put in its place.
    #[test]
    fn damaged_status_does_not_panic(from in 0_usize..1200, length in 0_usize..80, noise in "\\PC{0,20}") {
        let from = from.min(FAULTS.len());
        let to = (from + length).min(FAULTS.len());
        let text = format!("{}{noise}{}", &FAULTS[..from], &FAULTS[to..]);
        let mirror = spec("topology = \"mirror\"");
        let _ = mirror.interpret(&array("raidlab0", &["sdb", "sdd"]), &[Some(text)]);
        let get = include_str!("../data/zfs-get-2015.txt");
        let cut = from.min(get.len());
        let _ = parse_properties("zfs get", &format!("{}{noise}{}", &get[..cut], &get[cut..]));
    }

    /// A resilver's percents come out as they were printed.
    #[test]
    fn progress_is_read_as_printed(hundredths in 0_u32..10_000) {
        let percent = format!("{}.{:02}", hundredths / 100, hundredths % 100);
        let text = RESILVER.replace("8.39%", &format!("{percent}%"));
        let found = sync(&status("tpool", &["ada2", "ada3"], &text));
        prop_assert_eq!(found, Some((SyncKind::Recovery, f64::from(hundredths) / 100.0)));
    }
}
