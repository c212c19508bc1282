use super::{DiskSpec, labelled};
use crate::array::{Access, Built, Health, Member};
use crate::array::{ArraySystem, ChangeMembers, ReadState};
use raidlab_units::Bytes;

fn spec(text: &str) -> DiskSpec {
    toml::from_str(text).expect("a spec")
}

fn array(devices: &[&str]) -> Built {
    Built {
        name: "raidlab0".to_owned(),
        members: devices
            .iter()
            .map(|device| Member {
                device: (*device).to_owned(),
                size: Bytes(10_000_000_000),
                backing: None,
                away: false,
            })
            .collect(),
        folder: String::new(),
    }
}

#[test]
fn a_disk_is_wiped_and_used_as_it_is() {
    let cases = [
        ("", "/dev/sdb"),
        ("operating_system = 'freebsd'", "/dev/ada2"),
    ];
    let mut plans = String::new();
    for (text, device) in cases {
        let array = array(&[device]);
        for command in spec(text).create(&array).expect("a plan") {
            plans += &format!("{:?} {command}\n", command.effect);
        }
        assert_eq!(spec(text).access(&array), Access::Device(device.to_owned()));
    }
    insta::assert_snapshot!(plans);
}

#[test]
fn it_is_one_and_has_no_redundancy() {
    let disk = spec("");
    let two = array(&["/dev/sdb", "/dev/sdc"]);
    let messages = [
        disk.check(&two.members).expect_err("two").to_string(),
        disk.remove(&two, 0).expect_err("no copy").to_string(),
    ];
    assert_eq!(
        messages,
        [
            "disk cannot be built: it is one disk and there are 2",
            "disk cannot remove a member: there is no second copy of its data",
        ]
    );
}

#[test]
fn it_fails_with_its_disappearance() {
    let array = array(&["/dev/sdb"]);
    let health = |contents: Option<String>| {
        let status = spec("").interpret(&array, &[contents]);
        status.expect("a state").health
    };
    assert_eq!(health(Some("19531250\n".to_owned())), Health::Optimal);
    assert_eq!(health(None), Health::Failed);
}

/// As blkid 2.38.1 prints it: another label, a btrfs, and no label at all.
#[test]
fn a_file_system_tells_by_its_label_whose_it_is() {
    let told = "DEVNAME=/dev/loop0\nLABEL=raidlab0\nTYPE=ext4\n\n\
                DEVNAME=/dev/loop1\nLABEL=home\nTYPE=ext4\n\n\
                DEVNAME=/dev/loop2\nLABEL=raidlab0\nTYPE=btrfs\n\n\
                DEVNAME=/dev/vda\nTYPE=ext4\n";
    let found = labelled(told, "raidlab");
    let devices: Vec<_> = found
        .iter()
        .map(|one| one.members[0].device.as_str())
        .collect();
    assert_eq!(devices, ["/dev/loop0"]);
    assert_eq!(found[0].name, "raidlab0");
    assert!(labelled("", "raidlab").is_empty());
}
