//! What seeds have found, as scripts of their own: each broke a promise before it
//! was mended, and keeps it now.

mod driver;
#[cfg(feature = "mutations")]
mod planted;
mod replacements;
mod restarts;
mod steps;
mod strangers;
mod syncs;

use raidlab_array::{RmwLevel, WritePolicy};
use raidlab_faults::script::{Action, Silent, Step, Verb};
use raidlab_faults::{Options, run_with};
use raidlab_geometry::{Copies, FarSets, Layout, Level, ParityLayout};
use raidlab_metadata::Version;
use steps::{
    after, cut, kill, mend, noted, read, replace, stop, tear, transient, unreadable, write,
};

fn keeps(seed: u64, options: Options, script: &[Step]) {
    let outcome = run_with(options, Some(script.to_vec()), seed, false);
    assert_eq!(outcome.violation, None);
}

/// Beyond what RAID 4 can bear: the last flush before the clean mark failed on a
/// member that could not be spared, and the others were called clean all the same.
#[test]
fn a_flush_that_fails_on_a_needed_member_leaves_the_array_dirty() {
    let layout = Layout::Parity(ParityLayout::ParityLast);
    let options = Options {
        tear: tear(0, 0, 0),
        latency_high_ns: 50_000,
        sync_block: 16,
        window: 16,
        write_policy: WritePolicy::Md4_1(RmwLevel::Enabled),
        stripes: 1,
        depth: 1,
        overlaps: false,
        over_budget: true,
        ..Options::plain(Level::Raid4, layout, 5, (8, 200))
    };
    let script = [
        after(1_045_349, transient(1, 1)),
        after(3_115_553, write(595, 30)),
        after(26_410_048, transient(3, 2)),
        after(2_003_310_248, Action::Drain),
        after(
            25_407_169,
            cut(17_299_727_420_014_790_863, Some(1), false, Some(4)),
        ),
    ];
    keeps(20_780_015_347, options, &script);
}

/// Beyond what RAID 4 can bear: a write waited until the failure of the parity's member
/// was recorded, and another member failed in that pass; the array broke down, and the
/// write went on, as if all had been recorded.
#[test]
fn a_broken_array_writes_nothing_that_waited() {
    let layout = Layout::Parity(ParityLayout::ParityLast);
    let options = Options {
        growth: 264,
        log: true,
        spare_rebuild: true,
        write_through: true,
        tear: tear(40, 0, 100),
        latency_high_ns: 2_000_000,
        sync_depth: 16,
        window: 16,
        stripes: 1,
        depth: 1,
        overlaps: false,
        over_budget: true,
        ..Options::plain(Level::Raid4, layout, 6, (8, 456))
    };
    let cut = cut(15_798_951_123_027_605_924, None, false, None);
    let script = [
        after(187_946, write(717, 4)),
        after(3_421_845, transient(5, 1)),
        after(2_504_154, replace(5)),
        after(0, transient(4, 2)),
        after(3_975_202, cut),
        after(1_659_641, transient(1, 1)),
        after(11_724_050_834, Action::Drain),
    ];
    keeps(30_000_051_655, options, &script);
}

/// The crash comes when the first superblock of a run was written, to a member
/// that holds no data yet: those that hold them know two sessions of the log.
#[test]
fn the_session_of_the_newest_superblock_is_believed() {
    let layout = Layout::Parity(ParityLayout::ParityFirst);
    let options = Options {
        log: true,
        write_through: true,
        tear: tear(10, 10, 50),
        latency_low_ns: 5000,
        sync_block: 1024,
        sync_depth: 1,
        window: 16,
        write_policy: WritePolicy::Md4_1(RmwLevel::Enabled),
        stripes: 256,
        depth: 16,
        overlaps: false,
        ..Options::plain(Level::Raid5, layout, 2, (8, 328))
    };
    let script = [
        after(
            306_101,
            cut(4_517_860_327_122_645_816, Some(1), true, Some(2)),
        ),
        after(354_876, read(142, 10)),
        after(0, cut(3_438_011_081_352_308_280, None, true, Some(1))),
        after(94_946, write(150, 1)),
        after(223_629, read(95, 6)),
        after(
            3_547_850,
            stop(6_934_565_015_678_096_681, None, true, Some(1)),
        ),
        after(0, write(95, 1)),
        after(357_293, read(33, 11)),
        after(0, cut(3_045_848_952_752_311_943, None, false, None)),
    ];
    keeps(5_017_486, options, &script);
}

/// The same with two members of a RAID 6 that are being filled.
#[test]
fn the_session_is_believed_while_two_members_are_filled() {
    let layout = Layout::Parity(ParityLayout::LeftAsymmetric6);
    let options = Options {
        log: true,
        write_through: true,
        tear: tear(10, 40, 100),
        latency_low_ns: 5000,
        latency_high_ns: 5000,
        sync_depth: 1,
        window: 8,
        overlaps: false,
        ..Options::plain(Level::Raid6, layout, 4, (32, 448))
    };
    let script = [
        after(0, stop(10_487_396_453_930_570_589, Some(2), false, None)),
        after(7772, Action::Fail { member: 3 }),
        after(6792, stop(18_184_982_619_498_139_574, None, true, None)),
        after(0, write(118, 7)),
        after(5685, Action::Flush),
        after(7670, unreadable(2, 26, 16)),
        after(0, kill(15_541_367_698_919_452_718, None, true, None)),
    ];
    keeps(5_014_270, options, &script);
}

/// The oracle took an array for settled whose member had died of the last flush.
#[test]
fn an_array_is_settled_when_the_flush_has_cost_no_member() {
    let mirror = |members, used| Options {
        write_through: true,
        tear: tear(40, 0, 20),
        latency_high_ns: 50_000,
        sync_depth: 16,
        window: 128,
        depth: 1,
        overlaps: false,
        ..Options::plain(Level::Raid1, Layout::None, members, (16, used))
    };
    let dies = |member, for_ns| Action::Hang {
        member,
        for_ns,
        dies: true,
    };
    let rot = Action::Silent {
        member: 1,
        sector: 155,
        kind: Silent::Rot,
    };
    let script = [after(325_003, dies(1, 14_107_628_253)), after(0, rot)];
    keeps(3_000_014_150, mirror(2, 176), &script);
    let script = [
        after(
            75_209_989,
            cut(2_425_927_802_046_814_586, Some(1), false, None),
        ),
        after(4_212_828, mend(false, true)),
        after(0, mend(false, true)),
        after(2_514_628, Action::Settle),
        after(5_080_134, dies(2, 20_343_422_890)),
    ];
    let slow = Options {
        tear: tear(40, 0, 100),
        latency_low_ns: 1_000_000,
        latency_high_ns: 4_000_000,
        sync_block: 1024,
        sync_depth: 1,
        ..mirror(3, 192)
    };
    keeps(5_034_690, slow, &script);
}

/// A disk from an earlier time that knew none of those that are current cannot be
/// told from the other side of a split: the oracle looked for it only among the
/// disks that had been taken out, not among those that had failed and were still
/// attached, or were about to be put in.
#[test]
fn strangers_are_refused_wherever_they_are() {
    let mirror = |members, used| Options {
        write_through: true,
        depth: 1,
        overlaps: false,
        ..Options::plain(Level::Raid1, Layout::None, members, (16, used))
    };
    let failed = Options {
        tear: tear(0, 0, 0),
        version: Version::V1_1,
        latency_high_ns: 50_000,
        sync_block: 1024,
        ..mirror(3, 256)
    };
    let stop = |seed, missing, again| stop(seed, missing, false, again);
    let script = [
        after(0, stop(13_938_499_921_035_398_801, Some(2), Some(2))),
        after(97_827, stop(8_240_355_627_758_803_274, None, None)),
        after(0, mend(false, true)),
        after(0, Action::Fail { member: 0 }),
        after(11_360_229_295, Action::Drain),
        after(3341, Action::Fail { member: 1 }),
        after(796_165, Action::Fail { member: 0 }),
        after(36_905, mend(false, true)),
        after(0, stop(5_162_539_054_520_589_851, None, None)),
    ];
    keeps(20_780_019_572, failed, &script);
    let put_in = Options {
        tear: tear(40, 0, 80),
        latency_low_ns: 1_000_000,
        latency_high_ns: 1_000_000,
        sync_block: 16,
        sync_depth: 16,
        ..mirror(2, 512)
    };
    let script = [
        after(
            565_384,
            cut(2_531_256_489_460_398_366, Some(1), false, None),
        ),
        after(1_810_424, mend(true, true)),
        after(0, cut(5_506_407_561_191_929_615, None, false, None)),
        after(0, mend(true, true)),
        after(
            0,
            Action::Split {
                halves: 7_806_884_825_477_611_374,
            },
        ),
        after(0, cut(3_412_967_049_508_512_142, Some(1), false, Some(2))),
        after(0, mend(false, true)),
        after(1_326_775, cut(3_938_344_286_776_603_190, None, true, None)),
    ];
    keeps(5_031_592, put_in, &script);
}

/// A write was on its way to a member when its replacement began: the copying had
/// passed before it landed, and the new member lacked it for good.
#[test]
fn a_replacement_has_the_writes_of_before() {
    let options = Options {
        assume_clean: false,
        write_through: true,
        tear: tear(40, 40, 20),
        latency_low_ns: 1_000_000,
        latency_high_ns: 4_000_000,
        sync_block: 128,
        sync_depth: 1,
        depth: 1,
        overlaps: false,
        ..Options::plain(Level::Raid1, Layout::None, 4, (128, 384))
    };
    let script = [
        after(16_317_760, write(115, 251)),
        after(461_386, write(57, 92)),
        after(0, replace(3)),
    ];
    keeps(8_000_002_310, options, &script);
}

/// The last that a replacement had to copy could not be read, and nothing lay
/// there: its superblock never said that it was full, and was written for ever.
#[test]
fn a_replacement_ends_where_nothing_lies() {
    let copies = Copies {
        near: 1,
        far: 2,
        offset: false,
        far_sets: FarSets::None,
    };
    let options = Options {
        write_through: true,
        latency_low_ns: 5000,
        latency_high_ns: 5000,
        sync_block: 1024,
        sync_depth: 16,
        depth: 1,
        ..Options::plain(Level::Raid10, Layout::Copies(copies), 2, (128, 384))
    };
    let script = [
        after(1_648_330, replace(0)),
        after(0, unreadable(0, 382, 1)),
    ];
    keeps(8_300_002_104, options, &script);
}

/// What the bad-block log of the old member named was not copied, and stayed bad on
/// the new one, though another member had the bytes.
#[test]
fn a_replacement_has_what_the_log_of_the_old_member_names() {
    let options = Options {
        bitmap_chunk: Some(8),
        write_through: true,
        tear: tear(40, 40, 20),
        latency_low_ns: 5000,
        latency_high_ns: 5000,
        sync_block: 1024,
        sync_depth: 1,
        window: 128,
        stripes: 1,
        depth: 1,
        overlaps: false,
        ..Options::plain(Level::Raid1, Layout::None, 2, (8, 248))
    };
    let noted = noted(0, 165, 5);
    let back = mend(false, true);
    let script = [
        after(0, write(160, 32)),
        after(11_224_593_381, Action::Drain),
        after(0, Action::Fail { member: 0 }),
        after(2_227_201_051, Action::Drain),
        after(0, noted),
        after(0, back),
        after(0, replace(0)),
    ];
    keeps(30_000_003_774, options, &script);
}

/// A disk that replaces a member, and has all of it, dies before anybody has asked it
/// for anything again, and takes the slot: in md, too, that is a member that dies. The
/// oracle took it for a spare.
#[test]
fn who_is_about_to_serve_counts_as_a_member() {
    let layout = Layout::Parity(ParityLayout::LeftAsymmetric);
    let options = Options {
        growth: 8,
        bitmap_chunk: Some(64),
        log: true,
        spare_rebuild: true,
        write_through: true,
        tear: tear(10, 10, 80),
        short_log: true,
        medium: raidlab_faults::Medium::Platters,
        latency_low_ns: 5000,
        latency_high_ns: 5000,
        sync_block: 16,
        sync_depth: 1,
        window: 8,
        write_policy: WritePolicy::Md4_1(RmwLevel::Enabled),
        stripes: 1,
        depth: 1,
        overlaps: false,
        ..Options::plain(Level::Raid5, layout, 6, (32, 256))
    };
    let script = [
        after(6255, write(64, 96)),
        after(0, write(1042, 24)),
        after(11_690_387_631, Action::Drain),
        after(8871, replace(0)),
        after(0, Action::Fail { member: 1 }),
        after(9502, stop(13_418_971_947_552_631_283, None, false, None)),
        after(0, write(64, 64)),
        after(0, write(1152, 64)),
        after(5659, write(448, 160)),
        after(0, Action::Lose { member: 3 }),
        after(0, write(704, 32)),
        after(0, write(564, 125)),
        after(0, write(32, 160)),
        after(0, write(1184, 64)),
        after(0, Action::Administer(Verb::LoseSpare)),
    ];
    keeps(30_000_060_675, options, &script);
}
