//! What was found when arrays came up again.

use super::keeps;
use super::steps::{
    OFFSET, after, cut, durable, kill, mend, noted, read, replace, stop, tear, transient,
    unreadable, unreadable_metadata, write,
};
use raidlab_array::{RmwLevel, WritePolicy};
use raidlab_faults::Options;
use raidlab_faults::script::Action;
use raidlab_geometry::{Copies, FarSets, Layout, Level, ParityLayout};
use raidlab_metadata::Version;

/// The power failed between the superblocks of two members, and again between those of
/// the next start: the newest of the first was on a disk that was being filled to replace
/// a member, whose word was believed but never passed on. So members that had missed
/// nothing were two events behind in the end, and the array was refused.
#[test]
fn the_newest_superblock_is_passed_on_from_whichever_disk_has_it() {
    let options = Options {
        growth: 8,
        bitmap_chunk: Some(128),
        tear: tear(10, 40, 20),
        latency_low_ns: 5000,
        latency_high_ns: 200_000,
        sync_block: 16,
        sync_depth: 4,
        window: 128,
        write_policy: WritePolicy::Md4_1(RmwLevel::Disabled),
        stripes: 256,
        overlaps: false,
        ..Options::plain(Level::Raid10, OFFSET, 3, (128, 512))
    };
    let durable = durable(134, 5);
    let script = [
        after(175_411, transient(1, 2)),
        after(145_027, write(10, 342)),
        after(0, Action::Flush),
        after(0, write(67, 1)),
        after(0, write(60, 344)),
        after(0, write(420, 230)),
        after(0, read(512, 256)),
        after(150_352, Action::Flush),
        after(0, write(634, 65)),
        after(0, write(334, 350)),
        after(0, write(34, 420)),
        after(122_361, write(353, 3)),
        after(0, write(356, 119)),
        after(46_721, write(457, 1)),
        after(378_935, read(307, 1)),
        after(158_761, write(542, 1)),
        after(
            0,
            Action::Discard {
                start: 232,
                count: 1,
            },
        ),
        after(152_114, read(91, 1)),
        after(302_192, write(327, 434)),
        after(0, read(384, 128)),
        after(1_970_759, Action::Settle),
        after(3_848_411, replace(1)),
        after(289_991, Action::Flush),
        after(1_785_273, unreadable_metadata(0, 4_339_111_710_301_706_747)),
        after(229_647, read(132, 324)),
        after(0, durable),
        after(0, replace(1)),
        after(
            359_954,
            cut(9_534_833_494_280_070_974, Some(2), false, None),
        ),
        after(0, write(85, 199)),
        after(378_978, read(445, 5)),
        after(0, write(222, 1)),
        after(0, cut(15_743_281_456_691_117_765, None, true, None)),
        after(139_793, write(257, 27)),
        after(
            209_548,
            cut(2_648_150_269_131_048_440, Some(1), false, None),
        ),
    ];
    keeps(30_000_071_193, options, &script);
}

/// Beyond the budget: the one member that knew of a failure could not be read when the
/// array was to start, was taken away, and the member that had failed served what it
/// had. Nobody was left who could tell: the oracle looked for a witness only before the
/// unreadable disk was taken away.
#[test]
fn a_witness_that_was_taken_away_bears_no_witness() {
    let layout = Layout::Parity(ParityLayout::LeftAsymmetric);
    let options = Options {
        bitmap_chunk: Some(64),
        log: true,
        spare_rebuild: true,
        tear: tear(10, 10, 0),
        latency_low_ns: 50_000,
        latency_high_ns: 50_000,
        sync_block: 16,
        sync_depth: 1,
        write_policy: WritePolicy::Md4_1(RmwLevel::Enabled),
        stripes: 256,
        overlaps: false,
        over_budget: true,
        ..Options::plain(Level::Raid5, layout, 2, (8, 176))
    };
    let script = [
        after(0, Action::Fail { member: 0 }),
        after(1_692_141, unreadable_metadata(1, 9_647_679_981_399_128_752)),
        after(2_085_236, durable(30, 1)),
        after(3_443_026, kill(9_801_561_122_468_634_042, None, true, None)),
    ];
    keeps(30_000_079_982, options, &script);
}

/// A RAID 6 without a log was stopped in its first resync, above whose place a sector
/// could not be read. md's superblock does not tell a first resync from one after a
/// crash, so parity is not believed there when the array comes up again: the oracle
/// took the sector for one that must be served.
#[test]
fn a_first_resync_is_not_known_as_one_after_a_stop_without_a_log() {
    let layout = Layout::Parity(ParityLayout::RotatingNContinue);
    let options = Options {
        version: Version::V1_0,
        assume_clean: false,
        write_through: true,
        tear: tear(10, 10, 50),
        latency_low_ns: 1_000_000,
        latency_high_ns: 1_000_000,
        sync_block: 8,
        sync_depth: 1,
        write_policy: WritePolicy::Md4_1(RmwLevel::Disabled),
        depth: 1,
        overlaps: false,
        ..Options::plain(Level::Raid6, layout, 5, (8, 320))
    };
    let unreadable = unreadable(2, 224, 5);
    let script = [
        after(58_716_178, unreadable),
        after(0, stop(14_213_549_592_221_027_651, None, false, Some(0))),
    ];
    keeps(30_000_087_124, options, &script);
}

/// A sector of the older block of a log superblock could not be read, which hid the newer
/// one, and so the whole log: the array started all the same, and trusted no parity until
/// a resync was over, so another sector that could not be read was lost. Each block is
/// read by itself now; and where the newer one is spoilt, the array is refused with that
/// member, and starts without it.
#[test]
fn a_block_that_cannot_be_read_does_not_hide_the_log() {
    let layout = Layout::Parity(ParityLayout::LeftSymmetric);
    let options = Options {
        growth: 8,
        log: true,
        assume_clean: false,
        sync_depth: 16,
        window: 128,
        overlaps: false,
        spare_rebuild: true,
        write_through: true,
        tear: tear(40, 40, 80),
        latency_low_ns: 50_000,
        latency_high_ns: 50_000,
        write_policy: WritePolicy::Md4_1(RmwLevel::Disabled),
        stripes: 256,
        depth: 1,
        over_budget: false,
        ..Options::plain(Level::Raid5, layout, 2, (8, 480))
    };
    let script = [
        after(0, mend(false, true)),
        after(0, cut(12_795_010_571_946_389_054, None, false, Some(0))),
        after(264_470, durable(296, 32)),
        after(343_215, transient(1, 3)),
        after(3_462_272, mend(false, true)),
        after(2_650_579, write(221, 1)),
        after(0, unreadable_metadata(1, 12_324_811_809_105_358_881)),
        after(260_779, unreadable(1, 76, 2)),
        after(0, cut(12_892_550_637_166_175_310, None, false, None)),
    ];
    keeps(30_000_148_695, options, &script);
}

/// A member that was being filled had a part in the log where a window was filled, and
/// none in a larger window over it that was not. When it was filled and the power failed,
/// the log was replayed, and what was older lay over what had come after it.
#[test]
fn a_replay_does_not_write_old_over_new_on_a_member_that_was_filled() {
    let layout = Layout::Parity(ParityLayout::LeftSymmetric);
    let options = Options {
        growth: 264,
        log: true,
        write_through: true,
        tear: tear(0, 40, 20),
        latency_high_ns: 50_000,
        sync_block: 8,
        sync_depth: 1,
        window: 128,
        write_policy: WritePolicy::Md4_1(RmwLevel::Enabled),
        depth: 1,
        overlaps: false,
        ..Options::plain(Level::Raid6, layout, 7, (64, 192))
    };
    let script = [
        after(0, cut(7_225_080_635_768_732_772, Some(4), true, None)),
        after(0, mend(false, true)),
        after(338_151, durable(128, 256)),
        after(0, durable(192, 1)),
        after(0, durable(0, 384)),
        after(
            146_258_515,
            cut(16_891_041_610_610_634_231, None, false, None),
        ),
    ];
    keeps(30_000_199_876, options, &script);
}

/// The power failed between two superblocks, of which the newer one gave a spare a slot, to
/// be filled. The next start brought the spare level with that superblock, though not with
/// how far it was filled: at the start after that it claimed to be the member.
#[test]
fn a_spare_that_has_not_heard_of_its_slot_does_not_claim_it() {
    let copies = Copies {
        near: 1,
        far: 2,
        offset: false,
        far_sets: FarSets::None,
    };
    let layout = Layout::Copies(copies);
    let options = Options {
        growth: 8,
        version: Version::V1_1,
        write_through: true,
        tear: tear(40, 10, 0),
        medium: raidlab_faults::Medium::Platters,
        latency_high_ns: 50_000,
        sync_depth: 16,
        window: 128,
        write_policy: WritePolicy::Md3_16,
        stripes: 256,
        depth: 2,
        overlaps: false,
        ..Options::plain(Level::Raid10, layout, 6, (256, 1024))
    };
    let mend = mend(true, false);
    let read = read(2879, 64);
    let script = [
        after(0, durable(297, 93)),
        after(1_223_133, durable(2786, 1)),
        after(1_632_503, read),
        after(1_862_556, replace(3)),
        after(3_409_403, Action::Fail { member: 0 }),
        after(1_932_124, mend),
        after(19_603_329, Action::Check { repair: false }),
        after(3_265_090, write(2295, 3)),
        after(0, cut(1_364_690_313_704_912_385, None, false, None)),
        after(
            7_872_295,
            cut(14_052_575_327_881_196_206, Some(4), false, None),
        ),
    ];
    keeps(30_000_171_358, options, &script);
}

/// A replay did without a member that was one event ahead, and named it in the log
/// superblock. The next start believed that member's superblock, found the array clean, and
/// wrote a log superblock that named nobody: the start after that took the member as current.
#[test]
fn whom_a_replay_did_without_stays_named_when_nothing_is_replayed() {
    let layout = Layout::Parity(ParityLayout::ParityLast);
    let options = Options {
        version: Version::V1_0,
        log: true,
        tear: tear(40, 40, 80),
        sync_block: 1024,
        sync_depth: 16,
        window: 16,
        write_policy: WritePolicy::Md4_1(RmwLevel::Disabled),
        stripes: 256,
        depth: 16,
        overlaps: false,
        ..Options::plain(Level::Raid4, layout, 2, (16, 512))
    };
    let cut = |seed, missing, stale| cut(seed, missing, stale, None);
    let script = [
        after(0, Action::Settle),
        after(326_447, write(167, 5)),
        after(327_486, durable(282, 3)),
        after(124_411, write(373, 33)),
        after(269_937, cut(10_991_055_336_032_446_802, None, true)),
        after(477_399, cut(9_147_661_596_013_873_849, Some(1), false)),
        after(0, cut(13_060_516_289_773_058_306, None, true)),
        after(221_469, durable(383, 15)),
        after(129_648, cut(10_209_275_127_162_115_222, None, true)),
        after(0, cut(14_610_708_228_096_115_739, None, false)),
    ];
    keeps(30_000_253_104, options, &script);
}

/// One sector of a member's bitmap could not be read. So nobody knew how long the bitmap is,
/// and so where the log begins: the array started without its log, as if it had none.
#[test]
fn a_bitmap_that_cannot_be_read_does_not_hide_the_log() {
    let layout = Layout::Parity(ParityLayout::LeftAsymmetric);
    let options = Options {
        bitmap_chunk: Some(64),
        log: true,
        write_through: true,
        tear: tear(10, 10, 0),
        latency_low_ns: 1_000_000,
        latency_high_ns: 1_000_000,
        sync_block: 1024,
        window: 128,
        stripes: 256,
        depth: 1,
        overlaps: false,
        ..Options::plain(Level::Raid6, layout, 6, (8, 288))
    };
    let again = mend(false, true);
    let noted = noted(4, 50, 2);
    let unreadable = unreadable_metadata(4, 2_256_406_277_334_896_662);
    let cut = cut(9_625_915_329_020_234_518, None, false, None);
    let script = [
        after(17_738_064_558, Action::Drain),
        after(0, Action::Fail { member: 4 }),
        after(1_389_862_302, Action::Drain),
        after(0, noted),
        after(0, again),
        after(0, unreadable),
        after(0, write(20, 2)),
        after(1_572_013, write(633, 3)),
        after(0, cut),
    ];
    keeps(30_000_212_724, options, &script);
}

/// As before, but what could not be read is the sector that says how long the bitmap is. The
/// other members' bitmaps are as long.
#[test]
fn a_bitmap_of_unknown_length_does_not_hide_the_log() {
    let layout = Layout::Parity(ParityLayout::ParityLast);
    let options = Options {
        growth: 8,
        bitmap_chunk: Some(64),
        log: true,
        write_through: true,
        tear: tear(0, 0, 50),
        latency_low_ns: 5000,
        latency_high_ns: 5000,
        sync_block: 64,
        sync_depth: 16,
        window: 128,
        write_policy: WritePolicy::Md4_1(RmwLevel::Preferred),
        stripes: 256,
        depth: 1,
        overlaps: false,
        ..Options::plain(Level::Raid4, layout, 5, (8, 200))
    };
    let script = [
        after(18_453, unreadable(1, 158, 1)),
        after(0, write(723, 6)),
        after(172_564, unreadable_metadata(1, 3_059_752_525_374_299_256)),
        after(13_643, cut(1_196_794_386_101_518_324, None, true, None)),
    ];
    keeps(780_000_008_349, options, &script);
}

/// The runs of an array whose power is cut while its first superblocks are written, first
/// with all members, then without member 0, and a third time after `begun_ns` of that run.
fn cut_before_it_began(begun_ns: u64) -> (Options, Vec<crate::Step>) {
    let layout = Layout::Parity(ParityLayout::LeftAsymmetric);
    let options = Options {
        version: Version::V1_0,
        log: true,
        assume_clean: false,
        write_through: true,
        tear: tear(10, 10, 0),
        latency_high_ns: 50_000,
        sync_block: 8,
        window: 128,
        depth: 16,
        overlaps: false,
        ..Options::plain(Level::Raid5, layout, 3, (32, 416))
    };
    let cut = |seed, missing, again| cut(seed, Some(missing), true, again);
    let last = durable(723, 6);
    let slow = Action::Slow {
        member: 0,
        factor: 1000,
    };
    let script = vec![
        after(82_588, slow),
        after(36_695, cut(14_237_549_977_391_821_694, 0, None)),
        after(39_420, write(494, 1)),
        after(69_001, write(79, 46)),
        after(begun_ns, cut(15_874_047_222_905_815_630, 1, Some(5))),
        after(0, last),
        after(0, Action::Drain),
        after(0, cut(11_202_410_220_280_599_079, 1, None)),
    ];
    (options, script)
}

/// Two runs never began, and each left its session on one member. The third took the first
/// resync for one after a crash, and the fourth was refused for a write hole that was none.
#[test]
fn runs_that_never_began_leave_a_first_resync_what_it_is() {
    let (options, script) = cut_before_it_began(24_179);
    keeps(30_000_879_212, options, &script);
}

/// However far the second run came: all members of it have its first superblock, which counts
/// as many events as the one that member 0 has of the first run; or they have its second one,
/// and it takes writes, which member 0 has missed.
#[test]
fn a_run_without_a_member_goes_before_one_that_never_began() {
    for begun_us in (30..600).step_by(10) {
        let (options, script) = cut_before_it_began(begun_us * 1000);
        keeps(30_000_879_212, options, &script);
    }
}

/// Seed 210000512899. A member that was added again names in its log what somebody else noted
/// there. Then a sector of its metadata cannot be read, and it counted as one without a log.
#[test]
fn a_log_that_cannot_be_read_may_name_what_was_lost() {
    let options = Options {
        bitmap_chunk: Some(8),
        write_through: true,
        tear: tear(0, 10, 0),
        latency_low_ns: 1_000_000,
        latency_high_ns: 1_000_000,
        sync_depth: 1,
        window: 8,
        write_policy: WritePolicy::Md4_1(RmwLevel::Disabled),
        stripes: 256,
        depth: 1,
        overlaps: false,
        ..Options::plain(Level::Raid1, Layout::None, 2, (32, 512))
    };
    let script = [
        after(11_185_341_281, Action::Drain),
        after(0, Action::Fail { member: 0 }),
        after(1_420_696_863, Action::Drain),
        after(0, noted(0, 91, 3)),
        after(0, mend(false, true)),
        after(8_802_515, unreadable_metadata(0, 8_109_655_365_439_002_648)),
        after(1_521_686, cut(8_657_213_262_998_559_396, None, true, None)),
    ];
    keeps(210_000_512_899, options, &script);
}
