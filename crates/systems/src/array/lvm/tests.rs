use super::state::interpret;
use super::{ArraySystem, Built, LvmSpec, Member};
use proptest::prelude::*;
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

#[test]
fn settings_that_exclude_each_other_are_refused() {
    let cases = [
        ("level = 'raid5'", 2),
        ("level = 'raid10'", 5),
        ("level = 'raid1'\nstripe_size = '64k'", 2),
        ("level = 'raid5'\nstripe_size = '65k'", 3),
        ("level = 'raid6'\nnosync = true", 5),
        ("level = 'striped'\nregion_size = '2m'", 2),
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
    let status = interpret(&mirror, &array(2), &[Some(report.to_owned())]);
    insta::assert_snapshot!(format!("{:?}", status.expect("a state")));
}

#[test]
fn what_is_no_report_is_refused() {
    let mirror = spec("level = 'raid1'");
    let seen: Vec<String> = [Some("{\n\"report\": 3}"), Some(r#"{"report":[]}"#), None]
        .into_iter()
        .map(|text| interpret(&mirror, &array(2), &[text.map(str::to_owned)]))
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
        let _ = interpret(&spec("level = 'raid1'"), &array(2), &[Some(report)]);
    }
}
