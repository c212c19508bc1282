//! What was found when members were being replaced.

use super::keeps;
use super::steps::{
    after, cut, durable, kill, mend, noted, read, replace, stop, tear, unreadable, write,
};
use raidlab_array::{RmwLevel, WritePolicy};
use raidlab_faults::script::{Action, Restart, Verb};
use raidlab_faults::{Medium, Options, Seldom};
use raidlab_geometry::{Copies, FarSets, Layout, Level, ParityLayout};
use raidlab_metadata::Version;

/// Writes that were under way when the replacement of a lost member took its slot left it
/// out, and its superblock said all the same that it was filled there: once the array was
/// stopped, nobody knew that what lies there is old.
fn a_write_passes_an_orphan_that_is_full(start: u64, options: Options) {
    let options = Options {
        write_through: true,
        tear: tear(0, 10, 50),
        latency_low_ns: 5000,
        latency_high_ns: 5000,
        sync_block: 16,
        sync_depth: 1,
        window: 128,
        write_policy: WritePolicy::Md4_1(RmwLevel::Disabled),
        stripes: 256,
        depth: 1,
        overlaps: false,
        ..options
    };
    let script = [
        after(0, replace(1)),
        after(64_677, Action::Lose { member: 1 }),
        after(0, write(start, 23)),
        after(0, stop(11_617_108_596_095_958_081, None, false, None)),
        after(0, stop(12_657_206_267_536_924_727, None, false, None)),
    ];
    keeps(30_000_567_671, options, &script);
}

#[test]
fn with_parity_it_is_filled_below_what_was_being_written() {
    let layout = Layout::Parity(ParityLayout::RightAsymmetric);
    let options = Options::plain(Level::Raid5, layout, 3, (8, 160));
    a_write_passes_an_orphan_that_is_full(217, options);
}

#[test]
fn a_mirror_is_filled_below_what_was_being_written() {
    let options = Options::plain(Level::Raid1, Layout::None, 3, (8, 160));
    a_write_passes_an_orphan_that_is_full(100, options);
    let copies = Copies {
        near: 2,
        far: 1,
        offset: false,
        far_sets: FarSets::None,
    };
    let options = Options::plain(Level::Raid10, Layout::Copies(copies), 3, (8, 160));
    a_write_passes_an_orphan_that_is_full(100, options);
}

/// A replacement held what the last current copy of a block held, which was lost with its
/// disk, and the block's other member, which had missed a write, was taken by force. Both
/// served reads, one after the other, and no sync ever made them agree.
#[test]
fn what_is_being_filled_begins_anew_behind_a_member_taken_by_force() {
    let copies = Copies {
        near: 2,
        far: 1,
        offset: false,
        far_sets: FarSets::None,
    };
    let options = Options {
        growth: 264,
        bitmap_chunk: Some(8),
        write_through: true,
        tear: tear(10, 40, 100),
        latency_low_ns: 50_000,
        latency_high_ns: 50_000,
        sync_depth: 16,
        write_policy: WritePolicy::Md4_1(RmwLevel::Enabled),
        stripes: 1,
        depth: 1,
        overlaps: false,
        over_budget: true,
        ..Options::plain(Level::Raid10, Layout::Copies(copies), 3, (128, 384))
    };
    let cut = cut(7_065_843_876_961_993_937, Some(2), false, None);
    let script = [
        after(276_941, replace(2)),
        after(0, Action::Fail { member: 1 }),
        after(0, write(128, 384)),
        after(46_742, stop(9_977_951_510_936_591_773, None, true, None)),
        after(0, Action::Lose { member: 2 }),
        after(193_418, cut),
        after(393_008, Action::Flush),
        after(0, read(347, 1)),
    ];
    keeps(30_000_465_092, options, &script);
}

/// A write that had been sent before the replacement began gave a bad block its bytes, so
/// that it was no longer bad when that was recorded; the new member never got it.
#[test]
fn a_bad_block_that_is_written_while_its_member_is_replaced_is_copied() {
    let options = Options {
        bitmap_chunk: Some(128),
        write_through: true,
        latency_low_ns: 50_000,
        latency_high_ns: 50_000,
        sync_block: 1024,
        sync_depth: 1,
        window: 8,
        write_policy: WritePolicy::Md4_1(RmwLevel::Disabled),
        depth: 1,
        overlaps: false,
        ..Options::plain(Level::Raid1, Layout::None, 2, (32, 256))
    };
    let noted = noted(0, 31, 2);
    let script = [
        after(15_719_721_034, Action::Drain),
        after(0, Action::Fail { member: 0 }),
        after(2_811_795_565, Action::Drain),
        after(0, noted),
        after(0, mend(false, true)),
        after(1_849_807, write(4, 1)),
        after(1_437_814, write(21, 29)),
        after(0, replace(0)),
        after(35_208_184, Action::Flush),
    ];
    keeps(30_000_670_869, options, &script);
}

/// A flush that a lost disk answered late, with an error, when another one was in its slot,
/// failed that one.
#[test]
fn a_late_answer_does_not_fail_the_successor() {
    let layout = Layout::Parity(ParityLayout::ParityLast);
    let options = Options {
        bitmap_chunk: Some(16),
        log: true,
        write_through: true,
        tear: tear(0, 40, 20),
        latency_high_ns: 2_000_000,
        sync_block: 128,
        sync_depth: 1,
        window: 16,
        write_policy: WritePolicy::Md4_1(RmwLevel::Enabled),
        stripes: 256,
        overlaps: false,
        ..Options::plain(Level::Raid4, layout, 4, (32, 288))
    };
    let slow = Action::Slow {
        member: 3,
        factor: 1000,
    };
    let script = [
        after(2_710_987, slow),
        after(14_341_125, write(471, 1)),
        after(0, write(398, 55)),
        after(0, Action::Flush),
        after(0, Action::Lose { member: 3 }),
        after(933_403, Action::Flush),
        after(2_643_323, write(128, 64)),
        after(36_382_088, mend(false, true)),
        after(17_189_400, read(261, 1)),
        after(29_085_978, read(640, 7)),
        after(0, write(661, 95)),
        after(1_201_206, write(600, 78)),
        after(0, Action::Lose { member: 1 }),
    ];
    keeps(30_000_666_938, options, &script);
}

/// A disk came back with an unreadable sector where a superblock of another version would
/// be, and was refused as a new member, as nobody could say what had to be erased there.
#[test]
fn a_disk_is_added_over_what_cannot_be_read() {
    let options = Options {
        version: Version::V1_0,
        latency_low_ns: 1_000_000,
        latency_high_ns: 1_000_000,
        ..Options::plain(
            Level::Raid6,
            Layout::Parity(ParityLayout::RightSymmetric6),
            4,
            (8, 400),
        )
    };
    let unreadable = unreadable(1, 0, 1);
    let script = [
        after(0, Action::Fail { member: 1 }),
        after(0, Action::Flush),
        after(215_599, unreadable),
        after(0, Action::Drain),
        after(0, mend(false, false)),
    ];
    keeps(60_000_009_792, options, &script);
}

/// A member whose bad-block log names a range was being replaced when the array stopped, and
/// was away at the next start: its successor was filled from where it was, and never got the
/// range, which had not been copied.
#[test]
fn who_takes_the_slot_of_one_with_bad_blocks_is_filled_from_there() {
    let options = Options {
        bitmap_chunk: Some(16),
        write_through: true,
        tear: tear(40, 40, 100),
        latency_low_ns: 1_000_000,
        latency_high_ns: 40_000_000,
        sync_block: 16,
        sync_depth: 1,
        window: 16,
        write_policy: WritePolicy::Md4_1(RmwLevel::Enabled),
        stripes: 256,
        depth: 1,
        overlaps: false,
        ..Options::plain(Level::Raid1, Layout::None, 2, (64, 384))
    };
    let script = [
        after(10_315_092, write(76, 1)),
        after(17_710_247_703, Action::Drain),
        after(0, Action::Fail { member: 1 }),
        after(2_042_391_570, Action::Drain),
        after(0, noted(1, 72, 64)),
        after(0, mend(false, true)),
        after(397_174_117, unreadable(1, 235, 1)),
        after(1_555_878_073, replace(1)),
        after(
            1_060_068_561,
            stop(6_144_959_421_680_553_493, Some(1), true, None),
        ),
    ];
    keeps(500_000_085_658, options, &script);
}

/// The same, but the new device had been filled to its end before the power cut that the old
/// one did not survive; only the repair of what the log names was still to come.
#[test]
fn who_is_full_but_for_bad_blocks_is_filled_from_there_too() {
    let options = Options {
        bitmap_chunk: Some(16),
        assume_clean: false,
        write_through: true,
        tear: tear(40, 0, 50),
        latency_low_ns: 5000,
        latency_high_ns: 5000,
        sync_block: 1024,
        sync_depth: 16,
        window: 8,
        write_policy: WritePolicy::Md3_16,
        stripes: 1,
        depth: 1,
        overlaps: false,
        ..Options::plain(Level::Raid1, Layout::None, 2, (8, 192))
    };
    let slowly = Verb::Speed {
        minimum: 45,
        maximum: 45,
    };
    let script = [
        after(14_781_721_916, Action::Drain),
        after(0, Action::Fail { member: 1 }),
        after(2_125_502_690, Action::Drain),
        after(0, noted(1, 122, 1)),
        after(0, mend(false, true)),
        after(0, Action::Administer(slowly)),
        after(522_470, replace(1)),
        after(
            3_798_505,
            stop(7_058_915_865_087_044_185, None, false, None),
        ),
        after(0, read(0, 192)),
        after(5_870_101, replace(1)),
        after(8_861, cut(6_635_557_463_718_383_501, Some(1), false, None)),
        after(
            4_298_532,
            kill(16_679_962_520_990_304_224, None, false, None),
        ),
    ];
    keeps(630_000_152_702, options, &script);
}

/// The same as [`a_write_passes_an_orphan_that_is_full`] with a member that takes seconds for
/// each write: the write that left the new device out was acknowledged before superblocks said
/// how far that one is filled, and then the program was killed.
#[test]
fn no_write_goes_out_before_an_orphan_has_heard_how_far_it_is_filled() {
    let options = Options {
        log: true,
        write_through: true,
        tear: tear(10, 40, 50),
        medium: Medium::Platters,
        latency_high_ns: 50_000,
        sync_block: 16,
        sync_depth: 1,
        window: 8,
        stripes: 1,
        depth: 1,
        overlaps: false,
        ..Options::plain(
            Level::Raid6,
            Layout::Parity(ParityLayout::RotatingNRestart),
            4,
            (8, 224),
        )
    };
    let slow = Action::Slow {
        member: 2,
        factor: 1000,
    };
    let script = [
        after(1_630_049, slow),
        after(1_271_798, replace(1)),
        after(436_149, write(142, 6)),
        after(24_694_408, Action::Drain),
        after(20_355_330, Action::Fail { member: 1 }),
        after(0, write(111, 22)),
        after(2_057_936, read(275, 1)),
        after(0, kill(8_948_436_247_250_545_481, None, false, None)),
    ];
    keeps(780_000_016_832, options, &script);
}

/// The judge did not count a disk as bad whose next command fails and which is about to
/// take a member's slot. It let another member's sectors become unreadable, and one fault
/// more than RAID 4 bears was held against the array.
#[test]
fn a_successor_that_errs_is_a_member_that_errs() {
    let layout = Layout::Parity(ParityLayout::ParityLast);
    let options = Options {
        bitmap_chunk: Some(128),
        log: true,
        write_through: true,
        short_log: true,
        safe_mode_ms: 30_000,
        tear: tear(10, 40, 0),
        latency_low_ns: 1_000_000,
        latency_high_ns: 40_000_000,
        sync_block: 8,
        window: 16,
        write_policy: WritePolicy::Md4_1(RmwLevel::Enabled),
        stripes: 256,
        depth: 8,
        overlaps: false,
        ..Options::plain(Level::Raid4, layout, 3, (8, 480))
    };
    let stop_at_once = |seed, missing| {
        Action::StopAtOnce(Restart {
            seed,
            missing,
            stale: false,
            again: None,
        })
    };
    let script = [
        after(0, write(142, 1)),
        after(0, read(58, 11)),
        after(11_849_811, Action::Flush),
        after(0, write(490, 14)),
        after(20_144_800, Action::Settle),
        after(139_779_272, read(754, 1)),
        after(0, write(749, 1)),
        after(0, Action::Flush),
        after(
            70_835_486,
            cut(7_139_582_686_688_618_276, None, false, Some(2)),
        ),
        after(0, write(62, 2)),
        after(0, write(575, 3)),
        after(0, durable(705, 7)),
        after(
            1_497_652_777,
            stop_at_once(11_318_455_647_493_466_509, Some(1)),
        ),
        after(0, durable(731, 1)),
        after(0, write(815, 14)),
        after(
            1_195_771_788,
            stop(3_420_410_642_537_571_899, Some(1), false, Some(5)),
        ),
        after(0, read(0, 960)),
        after(1_791_906_697, replace(0)),
        after(0, write(684, 30)),
        after(55_047_288, replace(0)),
        after(0, write(139, 6)),
        after(
            1_146_620_880,
            Action::Administer(Verb::SpareErrs { commands: 1 }),
        ),
        after(0, unreadable(1, 262, 8)),
    ];
    keeps(12_000_029_646, options, &script);
}

/// A replacement answers the flush that it is sent before it takes the slot, and then the array
/// is read-only for a while. It dies meanwhile, and takes the slot all the same.
#[test]
fn a_replacement_is_asked_again_after_a_wait() {
    let options = Options {
        latency_low_ns: 100_000,
        latency_high_ns: 100_000,
        tear: tear(0, 0, 0),
        ..Options::plain(Level::Raid1, Layout::None, 2, (16, 256))
    };
    let administer = |after_ns, verb| after(after_ns, Action::Administer(verb));
    let speed = Verb::Speed {
        minimum: 20,
        maximum: 20,
    };
    let script = [
        administer(0, speed),
        after(0, replace(0)),
        administer(6_400_750_000, Verb::ReadOnlyAtOnce),
        administer(1_000_000_000, Verb::LoseSpare),
        after(0, unreadable(1, 107, 1)),
        administer(1_000_000_000, Verb::ReadWrite),
        after(1_000_000_000, read(0, 256)),
    ];
    keeps(1, options, &script);
}

/// The device that was to replace the last good member failed, and answers of that member were
/// held back until superblocks said so. The member failed instead, the array broke down, and an
/// answer that was then given let a member that was being filled fail too: nobody recorded that
/// for the flush that waited.
#[test]
fn a_broken_array_answers_what_it_held_back() {
    let options = Options {
        growth: 264,
        bitmap_chunk: Some(128),
        log: true,
        write_through: true,
        tear: tear(10, 10, 50),
        sync_block: 16,
        sync_depth: 1,
        window: 8,
        write_policy: WritePolicy::Md4_1(RmwLevel::Enabled),
        stripes: 1,
        depth: 1,
        overlaps: false,
        over_budget: true,
        seldom: Seldom {
            bitmap_in_file: true,
            ..Seldom::default()
        },
        ..Options::plain(
            Level::Raid5,
            Layout::Parity(ParityLayout::ParityLast),
            2,
            (32, 288),
        )
    };
    let hang = Action::Hang {
        member: 1,
        for_ns: 1_050_444_426,
        dies: true,
    };
    let first = cut(4_028_285_631_746_275_496, Some(0), false, None);
    let second = cut(16_318_516_131_155_312_235, Some(1), false, None);
    let script = [
        after(295_632, first),
        after(3_063_855, write(76, 57)),
        after(137_592, Action::Flush),
        after(0, second),
        after(107_359, mend(true, false)),
        after(243_623, write(47, 31)),
        after(178_651, read(108, 1)),
        after(494_702, replace(1)),
        after(0, Action::Administer(Verb::LoseSpare)),
        after(307_950, Action::Flush),
        after(82_138, hang),
    ];
    keeps(460_000_003_550, options, &script);
}
