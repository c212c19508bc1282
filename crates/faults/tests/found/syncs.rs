//! What was found while an array was made to agree with itself.

use super::keeps;
use super::steps::{
    OFFSET, after, cut, durable, mend, read, replace, tear, transient, unreadable,
    unreadable_metadata, write,
};
use raidlab_array::{RmwLevel, WritePolicy};
use raidlab_faults::script::Action;
use raidlab_faults::{Options, Seldom};
use raidlab_geometry::{Copies, Layout, Level, ParityLayout};
use raidlab_metadata::Version;

/// A RAID 6 lost its second member while a write was reading for its stripe, where
/// nobody had written: what parity makes of the lost block was said to be its content,
/// and the write went on with what had been read of it.
#[test]
fn what_is_in_work_is_not_defined_by_parity() {
    let layout = Layout::Parity(ParityLayout::RightAsymmetric);
    let options = Options {
        version: Version::V1_0,
        assume_clean: false,
        write_through: true,
        tear: tear(40, 0, 0),
        medium: raidlab_faults::Medium::Platters,
        latency_low_ns: 5000,
        latency_high_ns: 5000,
        sync_block: 1024,
        sync_depth: 1,
        window: 16,
        write_policy: WritePolicy::Md4_1(RmwLevel::Enabled),
        depth: 2,
        overlaps: false,
        over_budget: true,
        ..Options::plain(Level::Raid6, layout, 6, (8, 264))
    };
    let everything = read(0, 1056);
    let script = [
        after(0, write(984, 8)),
        after(91_469, Action::Lose { member: 1 }),
        after(0, write(426, 1)),
        after(0, durable(790, 11)),
        after(0, durable(673, 5)),
        after(0, everything),
        after(410_748, mend(false, true)),
        after(0, durable(759, 1)),
        after(0, durable(264, 1)),
        after(1_057_800, Action::Lose { member: 3 }),
    ];
    keeps(30_000_007_824, options, &script);
}

/// The member that a resync copied from left while its bytes were on their way to the
/// others: reads saw first what those had had, and then what was copied.
#[test]
fn reads_wait_for_a_block_whose_source_has_left() {
    let options = Options {
        bitmap_chunk: Some(64),
        assume_clean: false,
        write_through: true,
        tear: tear(40, 40, 80),
        sync_block: 16,
        sync_depth: 16,
        write_policy: WritePolicy::Md4_1(RmwLevel::Enabled),
        overlaps: false,
        ..Options::plain(Level::Raid10, Layout::Copies(Copies::near(2)), 3, (8, 296))
    };
    let everything = read(0, 440);
    let script = [
        after(0, durable(437, 1)),
        after(0, write(283, 29)),
        after(1_177_583, Action::Fail { member: 0 }),
        after(0, everything),
    ];
    keeps(30_000_015_876, options, &script);
}

/// After a crash a resync could not read a sector of the first copy, and wrote all of
/// the block from the second one over it, also what had been read from the first.
#[test]
fn a_resync_takes_from_another_copy_only_what_it_must() {
    let options = Options {
        bitmap_chunk: Some(8),
        tear: tear(0, 0, 80),
        latency_low_ns: 1_000_000,
        latency_high_ns: 4_000_000,
        sync_block: 64,
        sync_depth: 1,
        window: 8,
        write_policy: WritePolicy::Md4_1(RmwLevel::Enabled),
        stripes: 1,
        depth: 1,
        overlaps: false,
        ..Options::plain(Level::Raid1, Layout::None, 2, (32, 160))
    };
    let spoilt = unreadable(0, 119, 2);
    let cut = cut(7_141_972_379_078_381_008, None, true, None);
    let script = [
        after(51_591_757, write(50, 4)),
        after(66_006_118, read(29, 1)),
        after(6_951_188, write(69, 11)),
        after(0, read(158, 1)),
        after(28_530_093, cut),
        after(0, spoilt),
        after(6_617_539, read(65, 9)),
        after(5_272_035, Action::Settle),
    ];
    keeps(30_000_025_025, options, &script);
}

/// A member's write log could not be read after a crash in the first resync: nobody
/// can tell then what was being written, and the oracle went on to count it as one.
#[test]
fn a_first_resync_is_one_only_while_the_log_says_so() {
    let layout = Layout::Parity(ParityLayout::ParityLast);
    let options = Options {
        growth: 264,
        log: true,
        assume_clean: false,
        write_through: true,
        tear: tear(40, 40, 100),
        latency_low_ns: 5000,
        sync_block: 16,
        sync_depth: 1,
        stripes: 1,
        depth: 1,
        overlaps: false,
        ..Options::plain(Level::Raid5, layout, 2, (8, 288))
    };
    let spoilt = unreadable_metadata(0, 5_890_977_872_400_224_298);
    let script = [
        after(250_945, spoilt),
        after(0, cut(4_624_260_567_212_281_697, None, false, None)),
        after(3_735_507, cut(8_309_000_362_290_589_314, None, false, None)),
        after(0, cut(11_530_575_945_784_645_744, Some(1), true, Some(3))),
    ];
    keeps(30_000_049_429, options, &script);
}

/// Beyond what RAID 4 can bear: an array with a write log had broken down while a slow member wrote a
/// record. Then the log went on, and what it sent next was refused. Nobody told the engine that
/// these failures need not be recorded any more, so a write waited for ever.
#[test]
fn what_fails_when_the_log_of_a_broken_array_goes_on_holds_nobody_back() {
    let options = Options {
        growth: 264,
        log: true,
        write_through: true,
        tear: tear(0, 40, 80),
        latency_high_ns: 50_000,
        sync_block: 128,
        window: 8,
        stripes: 256,
        depth: 1,
        overlaps: false,
        over_budget: true,
        ..Options::plain(
            Level::Raid4,
            Layout::Parity(ParityLayout::ParityLast),
            4,
            (16, 352),
        )
    };
    let slow = Action::Slow {
        member: 3,
        factor: 1000,
    };
    let script = [
        after(0, write(316, 6)),
        after(34_744_689, write(64, 32)),
        after(0, slow),
        after(3_304_880, Action::Fail { member: 3 }),
        after(2_480_457, Action::Lose { member: 2 }),
        after(0, mend(true, true)),
    ];
    keeps(430_000_489_664, options, &script);
}

/// Beyond what RAID 6 can bear: a disk was filled, and the power failed before its cache was
/// flushed and a superblock said that it is in sync. Then two others were lost, and it was taken by
/// force. The oracle believed that it had all that the array had when its filling ended.
#[test]
fn what_filled_a_disk_may_be_lost_until_a_superblock_says_that_it_is_full() {
    let options = Options {
        growth: 264,
        log: true,
        tear: tear(10, 0, 0),
        latency_low_ns: 1_000_000,
        latency_high_ns: 1_000_000,
        sync_block: 128,
        sync_depth: 16,
        window: 128,
        depth: 1,
        overlaps: false,
        over_budget: true,
        ..Options::plain(
            Level::Raid6,
            Layout::Parity(ParityLayout::LeftAsymmetric),
            6,
            (32, 256),
        )
    };
    let script = [
        after(0, Action::Fail { member: 5 }),
        after(0, durable(74, 78)),
        after(17_520_514, cut(2_205_640_959_018_755_201, None, true, None)),
        after(1_986_521, read(5, 1)),
        after(435_150, write(765, 22)),
        after(0, cut(16_486_402_955_816_412_961, None, false, Some(4))),
        after(2_166_158, Action::Lose { member: 2 }),
        after(0, Action::Lose { member: 1 }),
        after(8_860_972, cut(2_352_790_252_314_304_627, None, true, None)),
    ];
    keeps(440_000_316_549, options, &script);
}

/// A disk that filled an empty slot had an odd number of sectors, and metadata of version 1.0 at its
/// end. The oracle looked for its superblock where a disk of whole pages has one and found none. So it
/// believed that the array could spare the other disk.
#[test]
fn metadata_at_the_end_of_an_odd_disk_is_found() {
    let options = Options {
        growth: 8,
        version: Version::V1_0,
        write_through: true,
        tear: tear(0, 0, 80),
        sync_depth: 16,
        window: 16,
        stripes: 1,
        depth: 1,
        overlaps: false,
        seldom: Seldom {
            room: Some(26),
            ..Seldom::default()
        },
        ..Options::plain(Level::Raid10, Layout::Copies(Copies::near(2)), 2, (8, 168))
    };
    let script = [
        after(
            244_740,
            cut(12_170_100_940_158_707_141, Some(1), true, None),
        ),
        after(210_994, write(94, 1)),
        after(109_638, replace(0)),
        after(3_979_276_560, Action::Drain),
        after(184_258, write(49, 2)),
        after(123_589, write(24, 1)),
        after(0, replace(0)),
        after(245_097, write(97, 3)),
        after(0, write(27, 7)),
        after(
            575_552,
            cut(11_510_231_424_073_880_277, Some(0), true, None),
        ),
    ];
    keeps(430_000_944_854, options, &script);
}

/// Seed 480000579657. A flush failed on a member that was being replaced, and what it was for was
/// lost there. The engine did not hear of it before the new device had answered that flush too, and
/// a read that the member answered in between returned what had been there before.
#[test]
fn a_failed_flush_of_a_member_that_is_being_replaced_is_told_at_once() {
    let options = Options {
        tear: tear(10, 0, 100),
        latency_low_ns: 5000,
        latency_high_ns: 20_000,
        sync_block: 128,
        stripes: 1,
        depth: 8,
        overlaps: false,
        seldom: Seldom {
            write_mostly: 2_926_007_091_652_523_689,
            read_policy: Some("md-6.9".parse().expect("a policy")),
            ..Seldom::default()
        },
        ..Options::plain(Level::Raid10, OFFSET, 2, (128, 384))
    };
    let script = [
        after(38_896, write(146, 1)),
        after(31_312, write(97, 1)),
        after(0, write(77, 5)),
        after(32_322, transient(1, 2)),
        after(0, replace(1)),
        after(0, Action::Flush),
        after(0, read(1, 216)),
    ];
    keeps(480_000_579_657, options, &script);
}
