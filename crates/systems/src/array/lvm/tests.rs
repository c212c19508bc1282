use super::{Built, LvmSpec, Member};
use crate::array::{ArraySystem, ChangeMembers, Described, ReadState};
use proptest::prelude::*;
use raidlab_shell::{Command, Recorded, Watched};
use raidlab_units::Bytes;

fn spec(text: &str) -> LvmSpec {
    toml::from_str(text).expect("a spec")
}

fn array(members: usize) -> Built {
    Built {
        name: "raidlab0".to_owned(),
        members: (0..members)
            .map(|slot| Member {
                device: format!("/dev/loop{slot}"),
                size: Bytes(1 << 30),
                backing: None,
                away: false,
            })
            .collect(),
        folder: String::new(),
    }
}

#[test]
fn each_level_has_its_plan() {
    let cases = [
        ("level = 'linear'", 2),
        ("level = 'striped'\nstripe_size = '64k'", 2),
        ("level = 'raid0'", 2),
        ("level = 'raid1'\nnosync = true", 3),
        ("level = 'mirror'", 2),
        ("level = 'raid10'", 4),
        ("level = 'raid5'\nregion_size = '2m'", 4),
        ("level = 'raid6'", 5),
    ];
    let mut plans = String::new();
    for (settings, members) in cases {
        let system = spec(settings);
        let array = array(members);
        let commands = system.create(&array).expect("a plan");
        let capacity = system.capacity(&array.members);
        plans += &format!("{settings}\n{capacity}\n{}\n\n", commands[3]);
    }
    insta::assert_snapshot!(plans);
}

const CACHED: &str = "level = 'raid1'\n[cache]\nmode = 'writeback'\nchunk = '128k'\n\
    policy = 'smq'\nsettings = { migration_threshold = 4096 }\n";

/// A second member goes while the first that went is still in the machine.
#[test]
fn who_is_away_is_not_seen() {
    let system = spec("level = 'raid6'");
    let mut array = array(5);
    array.set_away(1, true);
    let seen = |commands: Vec<Command>| {
        let words = commands.into_iter().map(|one| one.to_string());
        words.collect::<Vec<_>>()
    };
    for command in seen(system.remove(&array, 0).expect("a plan")) {
        assert!(!command.contains(&array.members[1].device), "{command}");
    }
    for command in seen(system.re_add(&array, 1).expect("a plan")) {
        assert!(command.contains(&array.members[1].device), "{command}");
    }
}

#[test]
fn a_cache_is_put_before_the_volume_on_the_last_members() {
    let (system, array) = (spec(CACHED), array(3));
    let commands = system.create(&array).expect("a plan");
    let lines = commands.iter().map(|command| format!("{command}\n"));
    let capacity = system.capacity(&array.members);
    let plan: String = lines.collect();
    insta::assert_snapshot!(format!("{}, {capacity}\n{plan}", system.title()));
    // The cache's size does not count.
    assert_eq!(
        capacity,
        spec("level = 'raid1'").capacity(&array.members[..2])
    );
    let error = system.remove(&array, 0).expect_err("LVM cannot");
    assert!(error.to_string().contains("without a cache"), "{error}");
}

/// As LVM 2.03.16 reports it in the kernel bench's guest.
const REPORT: &str = r#"{"report": [{"lv": [
    {"lv_name":"[cache_cvol]", "lv_attr":"Cwi-aoC---", "sync_percent":"", "raid_sync_action":"", "lv_health_status":"", "devices":"/dev/vdc(0)", "cache_mode":"", "kernel_cache_policy":"", "chunk_size":"0", "kernel_cache_settings":"", "kernel_metadata_format":"", "segtype":"linear", "stripe_size":"0", "region_size":"0"},
    {"lv_name":"volume", "lv_attr":"Cwi-a-C---", "sync_percent":"0.00", "raid_sync_action":"", "lv_health_status":"", "devices":"volume_corig(0)", "cache_mode":"writeback", "kernel_cache_policy":"mq", "chunk_size":"65536", "kernel_cache_settings":"migration_threshold=2048,random_threshold=0,sequential_threshold=0,discard_promote_adjustment=0,read_promote_adjustment=0,write_promote_adjustment=0", "kernel_metadata_format":"2", "segtype":"cache", "stripe_size":"0", "region_size":"0"},
    {"lv_name":"[volume_corig]", "lv_attr":"rwi-aoC---", "sync_percent":"0.00", "raid_sync_action":"resync", "lv_health_status":"", "devices":"volume_corig_rimage_0(0),volume_corig_rimage_1(0)", "cache_mode":"", "kernel_cache_policy":"", "chunk_size":"0", "kernel_cache_settings":"", "kernel_metadata_format":"", "segtype":"raid1", "stripe_size":"0", "region_size":"2097152"},
    {"lv_name":"[volume_corig_rimage_0]", "lv_attr":"Iwi-aor---", "sync_percent":"", "raid_sync_action":"", "lv_health_status":"", "devices":"/dev/vda(1)", "segtype":"linear"},
    {"lv_name":"[volume_corig_rimage_1]", "lv_attr":"Iwi-aor---", "sync_percent":"", "raid_sync_action":"", "lv_health_status":"", "devices":"/dev/vdb(1)", "segtype":"linear"}
]}]}"#;

#[test]
fn the_state_behind_a_cache_is_that_of_the_volume_that_the_members_make() {
    let status = spec(CACHED).interpret(&array(3), &[Some(REPORT.to_owned())]);
    insta::assert_snapshot!(format!("{:?}", status.expect("a state")));
}

#[test]
fn settings_of_a_cache_are_read_back() {
    let status = "0 8372224 cache 8 27/2048 128 64/8000 0 0 0 0 0 64 64 3 metadata2 \
                  writeback no_discard_passdown 2 migration_threshold 2048 mq 10 \
                  random_threshold 0 sequential_threshold 0 rw - ";
    let (system, array) = (spec(CACHED), array(3));
    let Watched::Command(lvs) = system.sources(&array).remove(0) else {
        panic!("lvs is a command");
    };
    let dmsetup = Command::reads("dmsetup", ["status", "--noflush", "raidlab0-volume"]);
    let machine = Recorded::new("localhost")
        .says(&lvs, REPORT)
        .says(&dmsetup, status);
    let settings = system.settings(&machine, &array).expect("read");
    let lines = settings.iter().map(|one| {
        let asked = one.asked.as_deref().unwrap_or("-");
        format!("{} {asked} {} {}\n", one.name, one.found, one.applied)
    });
    insta::assert_snapshot!(lines.collect::<String>());
    let cache = system.cache(&machine, &array).expect("read");
    assert_eq!(cache.expect("a cache").dirty, Bytes(64 << 16));
}

#[test]
fn settings_that_exclude_each_other_are_refused() {
    let cases = [
        ("level = 'raid5'", 2),
        ("level = 'raid10'", 5),
        ("level = 'raid1'\nstripe_size = '64k'", 2),
        ("level = 'raid5'\nstripe_size = '65k'", 3),
        ("level = 'raid5'\nstripe_size = '8m'", 3),
        ("level = 'raid6'\nnosync = true", 5),
        ("level = 'striped'\nregion_size = '2m'", 2),
        ("level = 'raid1'\nregion_size = '512'", 2),
        ("level = 'raid1'\nregion_size = '3m'", 2),
        ("level = 'raid1'\n[cache]\nmode = 'writeback'", 2),
        (
            "level = 'linear'\n[cache]\nmode = 'writeback'\nchunk = '48k'",
            2,
        ),
        (
            "level = 'linear'\n[cache]\nmode = 'writeback'\ndevices = 0",
            2,
        ),
    ];
    let seen: String = cases
        .into_iter()
        .map(
            |(settings, members)| match spec(settings).check(&array(members).members) {
                Ok(()) => format!("{settings}: taken\n"),
                Err(error) => format!("{error}\n"),
            },
        )
        .collect();
    insta::assert_snapshot!(seen);
}

/// Constructed: what a disk that died under the volume looks like, after
/// lvs(8), Volume Attributes.
#[test]
fn a_dead_disk_is_missing() {
    let report = r#"{"report": [{"lv": [
        {"lv_name":"volume", "lv_attr":"rwi-a-r-p-", "sync_percent":"100.00", "raid_sync_action":"idle", "lv_health_status":"partial", "devices":"volume_rimage_0(0),volume_rimage_1(0)"},
        {"lv_name":"[volume_rimage_0]", "lv_attr":"iwi-aor---", "devices":"/dev/loop0(1)"},
        {"lv_name":"[volume_rimage_1]", "lv_attr":"Iwi-aor-p-", "devices":"[unknown](1)"}
    ]}]}"#;
    let mirror = spec("level = 'raid1'");
    let status = mirror.interpret(&array(2), &[Some(report.to_owned())]);
    insta::assert_snapshot!(format!("{:?}", status.expect("a state")));
}

/// More members are gone than the level can do without.
#[test]
fn an_array_that_has_lost_data_is_not_degraded() {
    use crate::array::Health::{Degraded, Failed, Optimal};
    let health = |level: &str, count: usize, gone: &[usize]| {
        let image = |slot: usize| {
            let (attributes, device) = match gone.contains(&slot) {
                true => ("Iwi-aor-p-", "[unknown]".to_owned()),
                false => ("iwi-aor---", format!("/dev/loop{slot}")),
            };
            serde_json::json!({
                "lv_name": format!("[volume_rimage_{slot}]"), "lv_attr": attributes,
                "devices": format!("{device}(1)"),
            })
        };
        let partial = if gone.is_empty() { "" } else { "partial" };
        let mut rows = vec![serde_json::json!({
            "lv_name": "volume", "lv_attr": "rwi-a-r---", "sync_percent": "100.00",
            "raid_sync_action": "idle", "lv_health_status": partial, "devices": "",
        })];
        rows.extend((0..count).map(image));
        let report = serde_json::json!({"report": [{"lv": rows}]}).to_string();
        let system = spec(&format!("level = '{level}'"));
        let status = system.interpret(&array(count), &[Some(report)]);
        status.expect("a state").health
    };
    for (level, count, gone, expected) in [
        ("raid5", 3, &[][..], Optimal),
        ("raid5", 3, &[1], Degraded),
        ("raid5", 3, &[1, 2], Failed),
        ("raid6", 5, &[1, 2], Degraded),
        ("raid6", 5, &[0, 1, 2], Failed),
        ("raid10", 4, &[0, 2], Degraded),
        ("raid10", 4, &[2, 3], Failed),
        ("raid1", 3, &[0, 1], Degraded),
        ("raid1", 2, &[0, 1], Failed),
    ] {
        assert_eq!(health(level, count, gone), expected, "{level} {gone:?}");
    }
}

#[test]
fn what_is_no_report_is_refused() {
    let mirror = spec("level = 'raid1'");
    let seen: Vec<String> = [Some("{\n\"report\": 3}"), Some(r#"{"report":[]}"#), None]
        .into_iter()
        .map(|text| mirror.interpret(&array(2), &[text.map(str::to_owned)]))
        .map(|status| status.expect_err("no report").to_string())
        .collect();
    insta::assert_snapshot!(seen.join("\n"));
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(
        attributes in "[ -~]{0,12}", percent in "[0-9.x]{0,6}", action in "(idle|recover|resync|check|x)?", place in 0..3
    ) {
        let row = serde_json::json!({
            "lv_name": if place == 2 { "volume".to_owned() } else { format!("[volume_rimage_{place}]") },
            "lv_attr": attributes, "sync_percent": percent, "raid_sync_action": action,
        });
        let volume = serde_json::json!({"lv_name": "volume", "sync_percent": percent});
        let report = serde_json::json!({"report": [{"lv": [row, volume]}]}).to_string();
        let _ = spec("level = 'raid1'").interpret(&array(2), &[Some(report)]);
    }
}
