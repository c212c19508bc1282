use super::{ALL, read_policy};
use raidlab_array::{
    Array, ArrayConfig, ConfigError, MemberConfig, ReadPolicyError, RecoveryConfig,
};
use raidlab_units::Sectors;
use std::error::Error;

#[test]
fn every_name_is_read_back() {
    for &kind in ALL {
        assert_eq!(read_policy(kind.name()), Ok(kind));
        assert_eq!(kind.to_string(), kind.name());
    }
    for text in ["gmirror-split:8192", "btrfs-devid:3", "gflash:0"] {
        let kind = read_policy(text).expect(text);
        assert_eq!(kind.to_string(), text);
    }
    assert_eq!(
        read_policy("round-robin:1m"),
        read_policy("round-robin:1048576")
    );
}

#[test]
fn errors_name_the_cause() {
    let explain = |text: &str| {
        let error = read_policy(text).expect_err(text);
        match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        }
    };
    let texts = [
        "md-9",
        "spdk:4k",
        "gflash:x",
        "round-robin:0",
        "gmirror-split:100",
        "btrfs-devid:a",
    ];
    insta::assert_snapshot!(texts.map(explain).join("\n"), @r"
    `md-9` is not a read policy; known are md-6.9, md-raid10-5.4, least-pending, round-robin, md-3.16, md-4.10, md-raid10-3.13, gmirror-load, gmirror-round-robin, gmirror-split, gmirror-prefer, gflash, zfs-freebsd-10, zol-0.6, nearest-head, btrfs-pid, btrfs-round-robin, btrfs-devid, spdk
    the read policy `spdk` takes no parameter
    the parameter of the read policy `gflash` is not a size: `x` does not start with a number
    the parameter of the read policy `round-robin` must be at least one sector
    the parameter of the read policy `gmirror-split` must be whole sectors of 512 bytes
    the parameter of the read policy `btrfs-devid` must be a slot number
    ");
}

#[test]
fn an_array_refuses_a_policy_that_names_a_member_too_many() {
    let member = MemberConfig {
        size: Sectors(100),
        data_offset: Sectors::ZERO,
        rotational: true,
        write_mostly: false,
        bad_blocks: None,
    };
    let refused = Array::new(ArrayConfig::mirror(
        vec![member.clone(), member],
        Sectors(100),
        read_policy("btrfs-devid:2").expect("a policy"),
        RecoveryConfig::md_6(),
        Sectors::ZERO,
    ));
    let (slot, members) = (2, 2);
    let error = ConfigError::ReadPolicy(ReadPolicyError::NoSuchSlot { slot, members });
    assert_eq!(refused.err(), Some(error));
}
