use super::{BtrfsSpec, Built, Member};
use crate::array::{ArraySystem, ChangeMembers};
use raidlab_shell::Command;
use raidlab_units::Bytes;

fn spec(text: &str) -> BtrfsSpec {
    toml::from_str(text).expect("a spec")
}

fn array(sizes: &[u64]) -> Built {
    Built {
        name: "raidlab0".to_owned(),
        members: sizes
            .iter()
            .enumerate()
            .map(|(slot, size)| Member {
                device: format!("/dev/loop{slot}"),
                size: Bytes(size << 30),
                backing: None,
                away: false,
            })
            .collect(),
        folder: "/mnt/raidlab0".to_owned(),
    }
}

fn text(commands: &[Command]) -> String {
    commands
        .iter()
        .map(|command| format!("{:?} {command}\n", command.effect))
        .collect()
}

#[test]
fn plans_and_verbs() {
    let system =
        spec("data = 'raid0'\nmetadata = 'raid1c3'\nnodatacow = true\nmount_options = ['noatime']");
    let mirror = spec("data = 'raid10'\ncompression = 'lzo'");
    let array = array(&[1, 1, 1, 1]);
    let mut seen = text(&system.create(&array).expect("a plan"));
    for (what, commands) in [
        ("remove the first", mirror.remove(&array, 0)),
        ("remove", mirror.remove(&array, 2)),
        ("add", mirror.add(&array, 2)),
        ("re-add", mirror.re_add(&array, 2)),
    ] {
        seen += &format!("{what}\n{}", text(&commands.expect(what)));
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn what_cannot_be_is_refused() {
    let array = array(&[1, 1, 1]);
    let in_place = spec("data = 'raid1'\nnodatacow = true");
    let errors = [
        spec("data = 'raid1c4'")
            .check(&array.members)
            .expect_err("too few"),
        spec("data = 'raid0'\nmetadata = 'raid1c4'")
            .check(&array.members)
            .expect_err("too few"),
        spec("data = 'raid1'\nnodatacow = true\ncompression = 'lzo'")
            .check(&array.members)
            .expect_err("both"),
        spec("data = 'raid0'\nmetadata = 'raid1'")
            .remove(&array, 0)
            .expect_err("one copy"),
        in_place.re_add(&array, 0).expect_err("no checksums"),
        in_place.remove(&array, 3).expect_err("no such member"),
        in_place.fail(&array, 0).expect_err("no verb"),
    ];
    let seen: Vec<String> = errors.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(seen.join("\n"));
}

#[test]
fn unequal_members_pair_as_far_as_they_can() {
    let capacity = |text: &str, sizes: &[u64]| spec(text).capacity(&array(sizes).members).0;
    let nine_tenths = |gibibytes: u64| (gibibytes << 30) / 10 * 9;
    assert_eq!(capacity("data = 'raid1'", &[1, 2, 3]), nine_tenths(3));
    assert_eq!(capacity("data = 'raid1'", &[1, 1, 10]), nine_tenths(2));
    assert_eq!(capacity("data = 'single'", &[1, 2, 3]), nine_tenths(6));
    // 8 + 4 + 4 + 4 + 2 TB in RAID 1 give 11, as Ars Technica has it.
    assert_eq!(
        capacity("data = 'raid1'", &[8, 4, 4, 4, 2]),
        nine_tenths(11)
    );
    // On three members, then on the two larger ones; the rest has no partner.
    assert_eq!(capacity("data = 'raid0'", &[1, 2, 3]), nine_tenths(5));
    assert_eq!(capacity("data = 'raid5'", &[1, 2, 3]), nine_tenths(3));
    assert_eq!(capacity("data = 'raid6'", &[1, 2, 2, 4]), nine_tenths(3));
    assert_eq!(capacity("data = 'raid1c3'", &[2, 2, 2, 5]), nine_tenths(3));
    assert_eq!(capacity("data = 'raid6'", &[2, 2, 2, 2]), nine_tenths(4));
}

/// A second member goes while the first that went is still in the machine.
#[test]
fn who_is_away_is_not_mounted_by() {
    let system = spec("data = 'raid1c3'");
    let mut array = array(&[1, 1, 1]);
    array.set_away(1, true);
    let mounted = |commands: Vec<Command>| text(&commands).lines().last().map(str::to_owned);
    let removed = mounted(system.remove(&array, 0).expect("a plan"));
    let last = removed.expect("a command");
    assert!(last.contains("degraded /dev/loop2 /mnt"), "{last}");
    array.set_away(0, true);
    let back = text(&system.re_add(&array, 1).expect("a plan"));
    assert!(back.contains("-o degraded /dev/loop2"), "{back}");
    array.set_away(2, true);
    assert!(system.remove(&array, 2).is_err());
}
