use super::MdSpec;
use crate::array::{ArraySystem, ChangeMembers, ReadState};
use crate::array::{Built, Member, SystemError};
use raidlab_shell::Command;
use raidlab_units::Bytes;

fn spec(text: &str) -> MdSpec {
    toml::from_str(text).expect("a spec")
}

fn array(members: usize) -> Built {
    Built {
        name: "raidlab3".to_owned(),
        members: (0..members)
            .map(|slot| Member {
                device: format!(
                    "/dev/sd{}",
                    char::from(b'b' + u8::try_from(slot).unwrap_or(0))
                ),
                size: Bytes(100 << 30),
                backing: None,
                away: false,
            })
            .collect(),
        folder: String::new(),
    }
}

fn text(commands: Result<Vec<Command>, SystemError>) -> String {
    match commands {
        Ok(commands) => commands
            .iter()
            .map(|command| {
                let input = command.input.trim();
                let input = if input.is_empty() {
                    String::new()
                } else {
                    format!("   < {input}")
                };
                format!("{:?} {command}{input}\n", command.effect)
            })
            .collect(),
        Err(error) => format!("{error}\n"),
    }
}

#[test]
fn each_level_has_its_plan() {
    let cases = [
        ("level = 'linear'", 2),
        ("level = 'raid0'\nchunk = '512k'", 2),
        ("level = 'raid0'", 1),
        (
            "level = 'raid1'\nwrite_mostly = [1]\nbitmap_chunk = '64m'",
            2,
        ),
        ("level = 'raid4'\nassume_clean = true", 3),
        (
            "level = 'raid5'\nlayout = 'left-symmetric'\nspares = 1\nstripe_cache_size = 8192\n\
             sync_speed_max = '100m'\nread_ahead = '1m'",
            5,
        ),
        ("level = 'raid5'\nconsistency_policy = 'ppl'", 3),
        ("level = 'raid6'\nconsistency_policy = 'journal'", 5),
        (
            "level = 'raid10'\nlayout = 'f2'\nbitmap = 'none'\nmetadata = '1.0'",
            4,
        ),
    ];
    let mut plans = String::new();
    for (settings, members) in cases {
        let system = spec(settings);
        let array = array(members);
        let capacity = system.capacity(&array.members);
        plans += &format!("{settings}\n{capacity}\n{}\n", text(system.create(&array)));
    }
    insta::assert_snapshot!(plans);
}

#[test]
fn verbs_on_a_member() {
    let mirror = spec("level = 'raid1'");
    let array = array(2);
    let verbs = [
        ("fail", text(mirror.fail(&array, 0))),
        ("remove", text(mirror.remove(&array, 1))),
        ("add", text(mirror.add(&array, 1))),
        ("re-add", text(mirror.re_add(&array, 1))),
        ("no such member", text(mirror.remove(&array, 2))),
        (
            "re-add without a bitmap",
            text(spec("level = 'raid1'\nbitmap = 'none'").re_add(&array, 1)),
        ),
        (
            "re-add beside a spare",
            text(spec("level = 'raid1'\nspares = 1").re_add(&array, 1)),
        ),
        (
            "fail of stripes",
            text(spec("level = 'raid0'").fail(&array, 1)),
        ),
        ("check", text(mirror.check_all(&array))),
        (
            "check of stripes",
            text(spec("level = 'raid0'").check_all(&array)),
        ),
        ("destroy", text(Ok(mirror.destroy(&array)))),
    ];
    let seen: String = verbs
        .into_iter()
        .map(|(what, commands)| format!("{what}\n{commands}\n"))
        .collect();
    insta::assert_snapshot!(seen);
}

#[test]
fn settings_that_exclude_each_other_are_refused() {
    let cases = [
        ("level = 'raid5'", 1),
        ("level = 'raid1'\nchunk = '64k'", 2),
        ("level = 'raid5'\nchunk = '65k'", 3),
        ("level = 'raid10'\nchunk = '12k'", 3),
        ("level = 'raid0'\nchunk = '12k'", 3),
        ("level = 'raid0'\nchunk = '6k'", 3),
        ("level = 'raid5'\nlayout = 'n2'", 3),
        ("level = 'raid0'\nbitmap = 'internal'", 2),
        (
            "level = 'raid5'\nbitmap = 'internal'\nconsistency_policy = 'ppl'",
            3,
        ),
        ("level = 'raid5'\nbitmap = 'none'\nbitmap_chunk = '64m'", 3),
        ("level = 'raid6'\nconsistency_policy = 'ppl'", 4),
        ("level = 'raid10'\nconsistency_policy = 'journal'", 4),
        ("level = 'raid5'\nwrite_mostly = [0]", 3),
        ("level = 'raid1'\nwrite_mostly = [2]", 2),
        ("level = 'raid1'\nstripe_cache_size = 256", 2),
        ("level = 'raid0'\nspares = 1", 3),
        ("level = 'raid1'\nspares = 3", 2),
        ("level = 'raid10'\nlayout = 'n4'", 3),
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

#[test]
fn numbers_that_the_kernel_does_not_take_are_refused() {
    let checked = |text: &str| {
        let checked = spec(text).check(&array(4).members);
        checked.map_err(|error| error.to_string())
    };
    for (name, least, most) in [
        ("stripe_cache_size", 17, 32768),
        ("group_thread_count", 0, 8192),
    ] {
        let with = |number: u32| checked(&format!("level = 'raid5'\n{name} = {number}"));
        assert_eq!((with(least), with(most)), (Ok(()), Ok(())));
        let wrong = [least.checked_sub(1), Some(most + 1), Some(u32::MAX)];
        for number in wrong.into_iter().flatten() {
            let said = with(number).expect_err(name);
            let bounds = format!("`{name}` must be from {least} to {most}");
            assert!(said.ends_with(&bounds), "{said}");
        }
    }
    for (setting, is_taken) in [
        ("bitmap_chunk = '2k'", false),
        ("bitmap_chunk = '3m'", false),
        ("bitmap_chunk = '4k'", true),
        ("bitmap_chunk = '2g'", true),
        ("bitmap_chunk = '4g'", false),
        ("sync_speed_min = '0'", false),
        ("sync_speed_max = '0'", false),
        ("sync_speed_max = '1k'", true),
    ] {
        let taken = checked(&format!("level = 'raid5'\n{setting}")).is_ok();
        assert_eq!(taken, is_taken, "{setting}");
    }
}

/// What makes a member be read last lies in its superblock, which is wiped before. With
/// `--add --write-mostly` mdadm's `add_to_super1` calls the device faulty.
#[test]
fn a_member_that_is_read_last_is_so_when_it_is_added_again() {
    let mirror = spec("level = 'raid1'\nwrite_mostly = [1]");
    let added = |slot| text(mirror.add(&array(2), slot));
    let (first, last) = (added(0), added(1));
    let add = last.find("--add /dev/").expect("it is added plainly");
    let said = last.find("writemostly").expect("it is read last");
    assert!(add < said, "{last}");
    assert!(!first.contains("mostly"), "{first}");
}

/// Sources by their place, with other contents.
type Changes = &'static [(usize, Option<&'static str>)];

/// The sources' contents of a mirror whose second member is gone.
#[test]
fn settings_without_effect_are_refused() {
    let refused = |text: &str| {
        let error = spec(text).check(&array(4).members).expect_err(text);
        error.to_string()
    };
    for level in ["linear", "raid0"] {
        for setting in [
            "assume_clean = true",
            "sync_speed_min = '1m'",
            "sync_speed_max = '1m'",
        ] {
            let said = refused(&format!("level = '{level}'\n{setting}"));
            assert!(said.ends_with("no resync without redundancy"), "{said}");
        }
    }
    for name in [
        "sync_speed_min",
        "sync_speed_max",
        "read_ahead",
        "bitmap_chunk",
    ] {
        let said = refused(&format!("level = 'raid1'\n{name} = '1500'"));
        assert!(
            said.ends_with(&format!("`{name}` must be whole KiB")),
            "{said}"
        );
    }
}

fn contents(changes: &[(usize, Option<&str>)]) -> Vec<Option<String>> {
    let mut contents: Vec<Option<String>> = [
        "clean\n",
        "1\n",
        "idle\n",
        "none\n",
        "none\n",
        "0\n",
        "in_sync\n",
    ]
    .into_iter()
    .map(|text| Some(text.to_owned()))
    .chain([None, None])
    .collect();
    for (place, text) in changes {
        contents[*place] = text.map(str::to_owned);
    }
    contents
}

/// A resync of a RAID 10 counts sectors of the array, its recovery those of a member.
#[test]
fn a_sync_tells_how_much_there_is_of_each_member() {
    let member = |text: &str, action: &'static str| {
        let running = [(2, Some(action)), (3, Some("1024 / 8192"))];
        let mut contents = contents(&running);
        contents.extend([None, None, None, None]);
        let status = spec(text).interpret(&array(4), &contents).expect(text);
        let sync = status.sync.expect("it runs");
        assert_eq!(sync.percent, Some(12.5));
        sync.member.map(|bytes| bytes.0 / 512)
    };
    assert_eq!(member("level = 'raid6'", "recover"), Some(8192));
    assert_eq!(member("level = 'raid1'", "resync"), Some(8192));
    assert_eq!(member("level = 'raid10'", "recover"), Some(8192));
    assert_eq!(member("level = 'raid10'", "resync"), Some(4096));
    let three = "level = 'raid10'\nlayout = 'n3'";
    assert_eq!(member(three, "check"), Some(6144));
}

/// `sync_completed` is the last checkpoint; what is in `/proc/mdstat` is how far it is.
#[test]
fn how_far_a_sync_is_stands_in_mdstat() {
    let mdstat = |counts: &str| {
        format!(
            "Personalities : [raid1] \n\
             md1030 : active raid1 sdx[0] sdy[1]\n      9999 blocks super 1.2 [2/2] [UU]\n      \
             [>....]  check =  0.1% (9/9999) finish=1.0min speed=9K/sec\n      \n\
             md103 : active raid1 sdc[2] sdb[0]\n      4096 blocks super 1.2 [2/1] [U_]\n      \
             [>....]  recovery =  5.9% ({counts}) finish=1.0min speed=8K/sec\n      \
             bitmap: 1/1 pages [4KB], 65536KB chunk\n\nunused devices: <none>\n"
        )
    };
    let percent = |mdstat: Option<&str>| {
        let mut contents = contents(&[(2, Some("recover")), (3, Some("0 / 8193"))]);
        contents.push(mdstat.map(str::to_owned));
        let status = spec("level = 'raid1'").interpret(&array(2), &contents);
        let sync = status.expect("a state").sync.expect("it runs");
        assert_eq!(sync.member, Some(Bytes(8193 * 512)));
        sync.percent
            .map(|percent| (percent * 8193.0 / 100.0).round())
    };
    assert_eq!(percent(Some(&mdstat("240/4096"))), Some(480.0));
    // Another sync's by now, or none: the checkpoint counts.
    assert_eq!(percent(Some(&mdstat("240/5000"))), Some(0.0));
    assert_eq!(percent(Some("Personalities : [raid1] \n")), Some(0.0));
    assert_eq!(percent(None), Some(0.0));
}

#[test]
fn states_that_a_rehearsal_does_not_show() {
    let mirror = spec("level = 'raid1'");
    let array = array(2);
    let cases: [(&str, Changes); 6] = [
        ("resync owed", &[(1, Some("0")), (4, Some("0"))]),
        ("resync waits", &[(2, Some("resync")), (3, Some("delayed"))]),
        (
            "faulty",
            &[(7, Some("none")), (8, Some("faulty,write_mostly"))],
        ),
        ("not started", &[(0, Some("inactive"))]),
        ("all gone", &[(5, None), (6, None)]),
        ("no array", &[(0, None)]),
    ];
    let mut seen = String::new();
    for (what, changes) in cases {
        let status = mirror.interpret(&array, &contents(changes));
        seen += &match status {
            Ok(status) => format!("{what}: {status:?}\n"),
            Err(error) => format!("{what}: {error}\n"),
        };
    }
    let broken = [(2, "walk"), (3, "1 / x"), (5, "first"), (1, "-")];
    for (place, text) in broken {
        let action = (2, Some(if place == 3 { "check" } else { "idle" }));
        let contents = contents(&[action, (place, Some(text)), (7, None)]);
        let error = mirror.interpret(&array, &contents).expect_err(text);
        seen += &format!("{error}\n");
    }
    insta::assert_snapshot!(seen);
}
