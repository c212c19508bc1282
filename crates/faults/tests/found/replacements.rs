//! What was found when members were being replaced.

use super::{after, keeps, restart, tear, write};
use raidlab_array::{RmwLevel, WritePolicy};
use raidlab_faults::Options;
use raidlab_faults::script::{Action, Verb};
use raidlab_geometry::{Copies, FarSets, Layout, Level, ParityLayout};

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
        after(0, Action::Administer(Verb::Replace { member: 1 })),
        after(64_677, Action::Lose { member: 1 }),
        after(0, write(start, 23)),
        after(
            0,
            Action::Stop(restart(11_617_108_596_095_958_081, None, false, None)),
        ),
        after(
            0,
            Action::Stop(restart(12_657_206_267_536_924_727, None, false, None)),
        ),
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
    let cut = restart(7_065_843_876_961_993_937, Some(2), false, None);
    let script = [
        after(276_941, Action::Administer(Verb::Replace { member: 2 })),
        after(0, Action::Fail { member: 1 }),
        after(0, write(128, 384)),
        after(
            46_742,
            Action::Stop(restart(9_977_951_510_936_591_773, None, true, None)),
        ),
        after(0, Action::Lose { member: 2 }),
        after(193_418, Action::PowerCut(cut)),
        after(393_008, Action::Flush),
        after(
            0,
            Action::Read {
                start: 347,
                count: 1,
            },
        ),
    ];
    keeps(30_000_465_092, options, &script);
}
