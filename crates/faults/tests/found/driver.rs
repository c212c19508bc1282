//! What seeds of the driver have found.

use super::keeps;
use super::steps::{after, cut, durable, kill, read, replace, tear, unreadable, write};
use raidlab_array::{RmwLevel, WritePolicy};
use raidlab_faults::script::{Action, Verb};
use raidlab_faults::{DriverFaults, Options};
use raidlab_geometry::{Layout, Level, ParityLayout};

/// Seed 500000004767 of the driver. A disk was 99 times as slow, so that each answer took up to four
/// seconds, and it answered in parts. A command took more than the ten seconds that the driver waits,
/// and the disk was given up beside a failed one. The oracle thought that only a disk that is a hundred
/// times as slow may be late.
#[test]
fn a_slow_disk_that_answers_in_parts_may_be_given_up() {
    let options = Options {
        write_through: true,
        latency_low_ns: 1_000_000,
        latency_high_ns: 40_000_000,
        sync_block: 8,
        window: 16,
        write_policy: WritePolicy::Md4_1(RmwLevel::Enabled),
        stripes: 256,
        depth: 1,
        overlaps: false,
        driver: DriverFaults {
            short_percent: 40,
            again_percent: 20,
            command_limit_ns: 10_000_000_000,
            turn_ns: 50_000,
        },
        tear: tear(0, 10, 80),
        ..Options::plain(
            Level::Raid5,
            Layout::Parity(ParityLayout::RightSymmetric),
            5,
            (128, 384),
        )
    };
    let slow = Action::Slow {
        member: 4,
        factor: 99,
    };
    let script = [
        after(0, slow),
        after(1_036_719_594, Action::Fail { member: 3 }),
    ];
    keeps(500_000_004_767, options, &script);
}

/// Seed 510000023518 of the driver. A member that is being replaced was a thousand times as slow and
/// answered in parts, so the driver gave it up; the core read the same from its replacement, under the
/// same id. The disk still had the first command, so the oracle took that for one id of two commands.
#[test]
fn the_replacement_is_asked_under_the_id_of_a_command_given_up() {
    let options = Options {
        log: true,
        write_through: true,
        tear: tear(0, 40, 20),
        safe_mode_ms: 30_000,
        short_log: true,
        latency_low_ns: 1_000_000,
        latency_high_ns: 4_000_000,
        sync_block: 128,
        write_policy: WritePolicy::Md4_1(RmwLevel::Disabled),
        stripes: 4,
        depth: 8,
        overlaps: false,
        driver: DriverFaults {
            short_percent: 40,
            again_percent: 0,
            command_limit_ns: 10_000_000_000,
            turn_ns: 0,
        },
        ..Options::plain(
            Level::Raid6,
            Layout::Parity(ParityLayout::ParityLast),
            4,
            (16, 304),
        )
    };
    let script = [
        after(0, Action::Settle),
        after(0, cut(4_277_682_294_537_627_974, None, false, None)),
        after(0, cut(513_432_213_317_470_195, None, false, None)),
        after(949_937_629, Action::Drain),
        after(0, write(432, 1)),
        after(2_757_814, read(408, 1)),
        after(
            3_425_276,
            kill(905_227_809_457_220_377, Some(0), false, None),
        ),
        after(
            0,
            Action::Slow {
                member: 2,
                factor: 10,
            },
        ),
        after(0, kill(3_311_907_061_983_286_235, None, false, None)),
        after(
            273_169,
            cut(10_527_950_250_962_231_238, Some(3), false, Some(4)),
        ),
        after(0, cut(15_246_542_190_677_497_103, Some(1), true, None)),
        after(3_486_729, write(320, 80)),
        after(0, write(415, 21)),
        after(0, write(560, 48)),
        after(407_760_688, Action::Drain),
        after(0, Action::Flush),
        after(0, kill(3_051_185_217_617_216_435, None, false, None)),
        after(17_828_569_759, Action::Drain),
        after(0, write(227, 7)),
        after(0, unreadable(1, 251, 1)),
        after(62_650_494, replace(3)),
        after(0, write(371, 9)),
        after(0, read(0, 608)),
        after(
            1_980_402_721,
            cut(14_633_642_841_449_592_617, None, true, None),
        ),
        after(0, read(0, 608)),
        after(30_756_006, replace(1)),
        after(0, durable(274, 1)),
        after(350_297_172, replace(1)),
        after(66_720_168, Action::Administer(Verb::Spare)),
        after(0, write(592, 16)),
        after(
            2_869_653,
            Action::Slow {
                member: 1,
                factor: 1000,
            },
        ),
    ];
    keeps(510_000_023_518, options, &script);
}
