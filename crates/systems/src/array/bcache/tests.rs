use super::plan::{name_of, of_backing, of_set, set_uuid};
use super::{BcacheSpec, Built, Member};
use crate::array::{ArraySystem, ChangeMembers, Described, ReadState};
use crate::array::{Health, MemberState};
use proptest::prelude::*;
use raidlab_shell::{Command, Recorded};
use raidlab_units::Bytes;

fn spec(text: &str) -> BcacheSpec {
    toml::from_str(text).expect("a spec")
}

fn array(members: usize) -> Built {
    Built {
        name: "raidlab0".to_owned(),
        members: (0..members)
            .map(|slot| Member {
                device: format!("/dev/vd{}", ["a", "b", "c"][slot]),
                size: Bytes(1 << 30),
                backing: None,
                away: false,
            })
            .collect(),
        folder: String::new(),
    }
}

fn texts(commands: &[Command]) -> String {
    let text = |command: &Command| {
        let input = command.input.trim();
        if input.is_empty() {
            format!("{command}\n")
        } else {
            format!("{command} <- {input}\n")
        }
    };
    commands.iter().map(text).collect()
}

const WRITEBACK: &str = "mode = 'writeback'\nbucket = '512k'\nblock = '4k'\n\
    sequential_cutoff = '4m'\nwriteback_percent = 20\nwriteback_delay_s = 5\n\
    congested_read_threshold_us = 0\nreplacement = 'fifo'\n";
const BEFORE_MD: &str = "mode = 'writearound'\n[md]\nlevel = 'raid1'\n";

#[test]
fn each_kind_has_its_plan() {
    let mut plans = String::new();
    for (settings, members) in [(WRITEBACK, 2), (BEFORE_MD, 3)] {
        let (system, array) = (spec(settings), array(members));
        let created = system.create(&array).expect("a plan");
        let capacity = system.capacity(&array.members);
        plans += &format!("{}, {capacity}\n{}", system.title(), texts(&created));
        plans += &format!("take down\n{}\n", texts(&system.destroy(&array)));
    }
    insta::assert_snapshot!(plans);
}

#[test]
fn settings_that_exclude_each_other_are_refused() {
    let cases = [
        ("mode = 'writethrough'", 1),
        ("mode = 'writethrough'", 3),
        ("mode = 'writethrough'\nblock = '8k'", 2),
        ("mode = 'writethrough'\nbucket = '500k'", 2),
        ("mode = 'writethrough'\nwriteback_percent = 10", 2),
        ("mode = 'writeback'\nwriteback_percent = 41", 2),
        ("mode = 'writeback'\n[md]\nlevel = 'raid1'", 2),
    ];
    let refused =
        |(settings, members): (&str, usize)| match spec(settings).check(&array(members).members) {
            Ok(()) => format!("{settings}: taken\n"),
            Err(error) => format!("{error}\n"),
        };
    let seen: String = cases.into_iter().map(refused).collect();
    insta::assert_snapshot!(seen);
}

#[test]
fn everything_dirty_is_written_back_and_the_share_is_as_before() {
    let write_back = |settings: &str| {
        let array = array(2);
        let ways = spec(settings).write_back(&array).expect("it has a cache");
        texts(&ways.begin) + &texts(&ways.end)
    };
    insta::assert_snapshot!(write_back(WRITEBACK));
    let by_default = write_back("mode = 'writeback'");
    assert!(by_default.ends_with("<- 10\n"), "{by_default}");
    assert_eq!(write_back("mode = 'writethrough'"), "");
}

#[test]
fn members_behind_the_cache_come_and_go_by_the_verbs_of_their_array() {
    let (system, three) = (spec(BEFORE_MD), array(3));
    let removed = system.remove(&three, 1).expect("md can do without");
    assert!(texts(&removed).contains("/dev/vdb"), "{removed:?}");
    let error = system.remove(&three, 2).expect_err("it is the cache");
    assert!(error.to_string().contains("the cache stays"), "{error}");
    let alone = spec(WRITEBACK);
    let error = alone.fail(&array(2), 0).expect_err("it is one disk");
    assert!(error.to_string().contains("no second copy"), "{error}");
}

#[test]
fn the_state_is_the_backing_devices() {
    let system = spec(WRITEBACK);
    let state = |text: &str| system.interpret(&array(2), &[Some(text.to_owned())]);
    for text in ["clean\n", "dirty\n"] {
        let status = state(text).expect(text);
        assert_eq!(status.health, Health::Optimal);
        assert_eq!(status.members.len(), 2);
    }
    let status = state("no cache\n").expect("a state");
    assert_eq!(status.health, Health::Degraded);
    assert_eq!(status.members[1], MemberState::Missing);
    let status = state("inconsistent\n").expect("a state");
    assert_eq!(status.health, Health::Failed);
    state("?\n").expect_err("no state");
    system
        .interpret(&array(2), &[None])
        .expect_err("nothing is there");
}

/// The files of a running cache in writeback, as Linux 6.12 shows them.
fn machine() -> Recorded {
    let backing = |file: &str| of_backing("raidlab0", file);
    let set = |file: &str| of_set("raidlab0", file);
    Recorded::new("localhost")
        .file(
            &backing("cache_mode"),
            "writethrough [writeback] writearound none\n",
        )
        .file(
            &set("cache0/cache_replacement_policy"),
            "lru [fifo] random\n",
        )
        .file(&set("block_size"), "4.0k\n")
        .file(&set("bucket_size"), "512.0k\n")
        .file(&backing("sequential_cutoff"), "4.0M\n")
        .file(&backing("dirty_data"), "1.5M\n")
        .file(&backing("writeback_percent"), "10\n")
        .file(&backing("writeback_delay"), "5\n")
        .file(&set("congested_read_threshold_us"), "0\n")
        .file(&set("congested_write_threshold_us"), "20000\n")
}

#[test]
fn settings_are_read_back_and_one_that_is_not_in_force_is_told() {
    let settings = spec(WRITEBACK).settings(&machine(), &array(2));
    let settings = settings.expect("they can be read");
    let lines = settings.iter().map(|one| {
        let asked = one.asked.as_deref().unwrap_or("-");
        format!("{} {asked} {} {}\n", one.name, one.found, one.applied)
    });
    insta::assert_snapshot!(lines.collect::<String>());
}

/// The kernel prints 1500 KiB as `1.4M`, which is no whole number of KiB.
#[test]
fn a_size_that_the_kernel_prints_short_is_in_force() {
    for (asked, shown, applied) in [
        ("1500k", "1.4M\n", true),
        ("999k", "999.0k\n", true),
        ("1000k", "0.9M\n", true),
        ("0", "0.0k\n", true),
        ("3g", "3.0G\n", true),
        ("1500k", "1.5M\n", false),
    ] {
        let system = spec(&format!(
            "mode = \"writeback\"\nsequential_cutoff = \"{asked}\""
        ));
        let machine = machine().file(&of_backing("raidlab0", "sequential_cutoff"), shown);
        let settings = system.settings(&machine, &array(2)).expect("they are read");
        let mut settings = settings.into_iter();
        let cutoff = settings.find(|one| one.name == "sequential_cutoff");
        let cutoff = cutoff.expect("it is read");
        assert_eq!(cutoff.applied, applied, "{asked}: {}", cutoff.found);
    }
}

#[test]
fn what_is_dirty_is_told_in_bytes() {
    let system = spec(WRITEBACK);
    let state = system.cache(&machine(), &array(2)).expect("it can be read");
    assert_eq!(state.expect("a cache").dirty, Bytes(3 << 19));
    for (text, bytes) in [("0.0k\n", 0), ("0\n", 0), ("512.0k\n", 512 << 10)] {
        let file = of_backing("raidlab0", "dirty_data");
        let machine = Recorded::new("localhost").file(&file, text);
        let state = system.cache(&machine, &array(2)).expect(text);
        assert_eq!(state.expect("a cache").dirty, Bytes(bytes));
    }
    let file = of_backing("raidlab0", "dirty_data");
    let machine = Recorded::new("localhost").file(&file, "much\n");
    system.cache(&machine, &array(2)).expect_err("no size");
}

#[test]
fn the_name_is_in_the_cache_set() {
    assert_eq!(set_uuid("raidlab0"), "72616964-6c61-6230-0000-000000000000");
    assert_eq!(
        name_of(&set_uuid("raidlab-0")).as_deref(),
        Some("raidlab-0")
    );
    for other in [
        "register",
        "5b1bc8ac-6b62-4a83-a0cb-7d54f9ae44e8",
        "00000000-0000-0000-0000-000000000000",
    ] {
        assert_eq!(name_of(other), None, "{other}");
    }
}

#[test]
fn what_a_crash_left_is_found_by_its_cache_set() {
    let set = set_uuid("raidlab0");
    let machine = Recorded::new("localhost")
        .folder(
            "/sys/fs/bcache",
            &["register", &set, "5b1bc8ac-6b62-4a83-a0cb-7d54f9ae44e8"],
        )
        .link(
            &of_set("raidlab0", "bdev0"),
            "/sys/devices/virtio/block/vda/bcache",
        )
        .link(
            &of_set("raidlab0", "cache0"),
            "/sys/devices/virtio/block/vdb/bcache",
        )
        .file("/sys/class/block/vda/size", "2048\n")
        .file_missing("/sys/class/block/vdb/size");
    let found = spec(WRITEBACK).find(&machine, "raidlab").expect("asked");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].name, "raidlab0");
    let devices: Vec<_> = found[0].members.iter().map(|m| m.device.as_str()).collect();
    assert_eq!(devices, ["/dev/vda", "/dev/vdb"]);
    assert_eq!(found[0].members[0].size, Bytes(1 << 20));
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(state in "[ -~]{0,12}", size in "[0-9.kMGx]{0,9}", uuid in "[0-9a-f-]{0,40}") {
        let system = spec(WRITEBACK);
        let _ = system.interpret(&array(2), &[Some(state)]);
        let file = of_backing("raidlab0", "dirty_data");
        let _ = system.cache(&Recorded::new("localhost").file(&file, &size), &array(2));
        let _ = name_of(&uuid);
    }
}
