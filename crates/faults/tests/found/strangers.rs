//! What was found when devices of another time of the array came along: here the array was
//! right to refuse them, and the referee was wrong to count on them.

use super::keeps;
use super::steps::{
    OFFSET, after, cut, durable, kill, mend, read, replace, tear, transient, unreadable,
    unreadable_metadata, write,
};
use raidlab_array::{RmwLevel, WritePolicy};
use raidlab_faults::script::{Action, Verb};
use raidlab_faults::{Options, Seldom};
use raidlab_geometry::{Layout, Level, ParityLayout};
use raidlab_metadata::Version;

/// Seed 50000189054. A device of the side that lost a split came back. Its superblock counts number 6
/// as in service, which a new spare had got by then. A spare is no link to the members.
#[test]
fn a_spare_with_the_number_of_a_former_member_makes_nobody_known() {
    let options = Options {
        growth: 264,
        version: Version::V1_1,
        bitmap_chunk: Some(16),
        write_through: true,
        tear: tear(10, 0, 100),
        latency_low_ns: 1_000_000,
        latency_high_ns: 1_000_000,
        sync_block: 1024,
        window: 8,
        stripes: 1,
        depth: 1,
        overlaps: false,
        ..Options::plain(Level::Raid10, OFFSET, 4, (8, 280))
    };
    let split = |halves| Action::Split { halves };
    let script = [
        after(0, replace(1)),
        after(845_576, Action::Settle),
        after(
            400_955,
            cut(2_847_173_171_648_627_654, Some(2), false, None),
        ),
        after(0, mend(false, false)),
        after(0, mend(false, true)),
        after(0, split(10_913_411_787_288_389_834)),
        after(0, split(6_999_443_991_508_027_093)),
        after(
            1_581_541,
            cut(1_685_470_099_322_658_767, Some(3), true, Some(0)),
        ),
        after(1_783_373, Action::Administer(Verb::Idle)),
        after(1_261_573, cut(1_445_153_516_916_890_524, None, false, None)),
        after(3_366_556, durable(115, 3)),
        after(0, cut(14_662_230_692_629_408_130, None, true, None)),
    ];
    keeps(50_000_189_054, options, &script);
}

/// Seed 50000357207. Two devices with metadata that cannot be read were taken away. One of them
/// was the only one to know of both the members and a device that had been away since long before.
#[test]
fn who_was_known_through_an_unreadable_device_is_a_stranger_without_it() {
    let options = Options {
        growth: 8,
        log: true,
        write_through: true,
        tear: tear(40, 10, 0),
        safe_mode_ms: 30_000,
        latency_low_ns: 1_000_000,
        latency_high_ns: 1_000_000,
        sync_block: 8,
        write_policy: WritePolicy::Md4_1(RmwLevel::Disabled),
        stripes: 256,
        depth: 1,
        overlaps: false,
        ..Options::plain(
            Level::Raid6,
            Layout::Parity(ParityLayout::LeftAsymmetric),
            5,
            (16, 448),
        )
    };
    let fail = |member| Action::Fail { member };
    let script = [
        after(233_224_971, fail(0)),
        after(0, durable(914, 4)),
        after(220_373_740, fail(2)),
        after(93_273_355, mend(true, true)),
        after(
            528_537_132,
            unreadable_metadata(3, 3_364_664_115_458_841_752),
        ),
        after(0, cut(9_902_465_176_672_702_179, Some(4), false, None)),
        after(43_119_254, mend(true, true)),
        after(1_083_050_739, replace(2)),
        after(1_860_636_622, replace(2)),
        after(45_513_994, read(1327, 3)),
        after(0, write(496, 36)),
        after(0, Action::Lose { member: 1 }),
        after(
            27_634_096,
            unreadable_metadata(2, 3_502_555_083_381_314_823),
        ),
        after(
            24_231_519,
            cut(11_297_140_253_351_704_860, None, true, None),
        ),
    ];
    keeps(50_000_357_207, options, &script);
}

/// Seed 130000011871. More was lost than RAID 4 of two can bear, and the two devices that know so
/// were taken away with the strangers. An old member was left, which starts with what it has.
#[test]
fn who_is_left_without_a_witness_promises_nothing() {
    let layout = Layout::Parity(ParityLayout::ParityLast);
    let options = Options {
        growth: 8,
        log: true,
        write_through: true,
        latency_high_ns: 50_000,
        sync_block: 16,
        window: 16,
        write_policy: WritePolicy::Md4_1(RmwLevel::Disabled),
        stripes: 256,
        depth: 1,
        overlaps: false,
        over_budget: true,
        ..Options::plain(Level::Raid4, layout, 2, (128, 512))
    };
    let script = [
        after(38_376_399, Action::Fail { member: 0 }),
        after(0, durable(471, 6)),
        after(51_234_307, transient(1, 2)),
        after(51_039_720, replace(1)),
        after(
            32_941_522,
            unreadable_metadata(1, 9_930_784_609_723_960_135),
        ),
        after(0, kill(2_603_983_645_558_128_891, Some(0), true, None)),
    ];
    keeps(130_000_011_871, options, &script);
}

/// Seed 330000549493. A mirror ran on one member, which then lost its superblock to an unreadable
/// sector. It came to the start with the other, old one, and could bear no witness: the oracle
/// looked at what was written there, and not at whether it could be read.
#[test]
fn a_witness_that_cannot_be_read_bears_no_witness() {
    let options = Options {
        write_through: true,
        tear: tear(40, 40, 80),
        latency_low_ns: 50_000,
        latency_high_ns: 50_000,
        stripes: 1,
        depth: 1,
        overlaps: false,
        over_budget: true,
        ..Options::plain(Level::Raid1, Layout::None, 2, (16, 144))
    };
    let script = [
        after(
            2_323_706,
            cut(9_462_933_185_567_882_514, Some(1), false, None),
        ),
        after(0, write(20, 1)),
        after(0, durable(0, 46)),
        after(0, unreadable_metadata(0, 14_641_420_829_144_635_406)),
        after(211_380, cut(2_657_698_024_539_949_620, None, true, None)),
    ];
    keeps(330_000_549_493, options, &script);
}

/// Seed 460000511785. A replacement had taken a member's slot, and the crash came before
/// superblocks said so. Started read-only, the array read the member itself, with an unreadable
/// sector, and computes none where parity may be torn. The oracle looked at the replacement alone.
#[test]
fn a_member_whose_replacement_is_not_recorded_is_read_again() {
    let options = Options {
        growth: 8,
        bitmap_chunk: Some(128),
        log: true,
        write_through: true,
        tear: tear(10, 0, 0),
        safe_mode_ms: 30_000,
        short_log: true,
        latency_low_ns: 1_000_000,
        latency_high_ns: 1_000_000,
        sync_block: 1024,
        sync_depth: 1,
        window: 128,
        write_policy: WritePolicy::Md4_1(RmwLevel::Enabled),
        stripes: 256,
        depth: 2,
        overlaps: false,
        ..Options::plain(
            Level::Raid6,
            Layout::Parity(ParityLayout::RightSymmetric6),
            4,
            (64, 256),
        )
    };
    let slow = Action::Slow {
        member: 0,
        factor: 1000,
    };
    let script = [
        after(18_033_931, slow),
        after(33_198_340, replace(1)),
        after(46_317_829, Action::Administer(Verb::ReadOnly)),
        after(0, unreadable(1, 166, 2)),
        after(22_818_930, Action::Flush),
        after(0, Action::Flush),
        after(0, mend(false, false)),
        after(48_204_504, write(244, 47)),
        after(13_876_086, write(140, 1)),
        after(67_838_578, write(171, 1)),
        after(
            624_940_434,
            kill(2_788_094_636_265_643_096, Some(0), false, None),
        ),
    ];
    keeps(460_000_511_785, options, &script);
}

/// Seed 480000176336. A member whose log could not be read was taken away. The start without it was
/// cut before its second superblock, so the member was back in sync; but the logs of both were of
/// runs that the other had not seen, so all parity was made anew. In this resync the power failed
/// again, and the member was taken away again. The array was refused, and the oracle thought
/// that one with a log never is.
#[test]
fn a_log_that_was_lost_leaves_a_hole_until_the_resync_has_ended() {
    let options = Options {
        growth: 264,
        log: true,
        version: Version::V1_1,
        write_through: true,
        tear: tear(10, 10, 20),
        latency_low_ns: 5000,
        latency_high_ns: 20_000,
        sync_depth: 1,
        window: 8,
        write_policy: WritePolicy::Md4_1(RmwLevel::Enabled),
        stripes: 4,
        depth: 1,
        overlaps: false,
        ..Options::plain(
            Level::Raid4,
            Layout::Parity(ParityLayout::ParityLast),
            2,
            (8, 488),
        )
    };
    let script = [
        after(
            228_378,
            cut(18_075_042_059_558_982_793, None, false, Some(1)),
        ),
        after(12_108, Action::Settle),
        after(10_208, read(320, 24)),
        after(30_393, cut(6_075_268_487_755_011_682, None, false, None)),
        after(0, Action::Check { repair: true }),
        after(0, unreadable_metadata(0, 2_086_864_319_493_244_443)),
        after(32_195, read(272, 8)),
        after(39_743, read(88, 24)),
        after(0, write(409, 9)),
        after(27_046, cut(3_944_695_971_790_008_458, None, false, Some(5))),
        after(1171, cut(18_435_457_604_118_516_209, None, false, None)),
        after(26_043, Action::Flush),
        after(0, cut(6_887_055_689_802_329_870, None, true, None)),
        after(23_212, cut(6_672_416_999_563_175_965, Some(0), false, None)),
    ];
    keeps(480_000_176_336, options, &script);
}

/// Seed 480000563191. Two members of a mirror of four had failed, the first a while before the second,
/// and a new one had come when the last of those that knew them all was lost. The first failed one knew
/// the second, which is a stranger to the new one. The oracle counted on the first all the same.
#[test]
fn who_knows_a_stranger_alone_is_a_stranger() {
    let options = Options {
        version: Version::V1_0,
        write_through: true,
        tear: tear(40, 0, 20),
        latency_low_ns: 5000,
        latency_high_ns: 5000,
        sync_block: 1024,
        sync_depth: 16,
        window: 128,
        write_policy: WritePolicy::Md4_1(RmwLevel::Disabled),
        stripes: 1,
        depth: 1,
        overlaps: false,
        seldom: Seldom {
            room: Some(770),
            read_policy: Some("md-6.9".parse().expect("a policy")),
            ..Seldom::default()
        },
        ..Options::plain(Level::Raid1, Layout::None, 4, (256, 768))
    };
    let script = [
        after(
            174_039,
            kill(6_501_670_345_101_823_445, Some(1), false, None),
        ),
        after(2_563_667, Action::Fail { member: 0 }),
        after(2_709_387, Action::Fail { member: 2 }),
        after(524_354, replace(3)),
        after(1_904_522, Action::Lose { member: 3 }),
        after(0, write(290, 1)),
        after(
            3_557_702,
            kill(17_765_604_613_043_644_103, Some(1), false, None),
        ),
    ];
    keeps(480_000_563_191, options, &script);
}
