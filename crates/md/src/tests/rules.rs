//! md's rules, one by one, as figures of commands.

use super::bench::{Bench, OFFSET, config};
use crate::Raid5d;
use crate::commands::Plugged;
use raidlab_array::Operation::{Read, Write};
use raidlab_array::{
    Admission, Engine, Imitation, Initial, MdRules, MdThreads, MemberError, Outputs, Purpose,
    Request, RequestId, Slot, StripeConfig, SyncAction, SyncRequest,
};
use raidlab_geometry::{Level, ParityLayout};
use raidlab_units::{Nanos, Sectors, Span};

/// Stripes of 8 sectors, chunks of 4 of them; row 0 of four members: data on 0, 1 and
/// 2, parity on 3.
pub(super) fn raid5(stripes: usize) -> Bench {
    Bench::new(config(Level::Raid5, 4, 100, stripes))
}

/// With one stripe each request whose stripe is in another list waited for ever.
#[test]
fn a_cache_with_an_empty_list_is_refused() {
    for (stripes, is_taken) in [(0, false), (7, false), (8, true)] {
        let built = Raid5d::new(config(Level::Raid5, 4, 100, stripes), None);
        assert_eq!(built.is_ok(), is_taken, "{stripes}");
    }
}

#[test]
fn a_whole_row_is_one_command_for_each_member() {
    let mut bench = raid5(64);
    bench.submit(Write, 0, 96);
    let whole: Vec<_> = (0..4).map(|slot| (slot, Write, 0, 32)).collect();
    assert_eq!(bench.take_sent(), whole);
    bench.run();
    assert!(bench.open.is_empty());
}

/// Linux drivers/md/raid5.c, `handle_active_stripes`: a thread has its batch of eight until it is
/// through with all of them. Meanwhile another one takes what is left.
#[test]
fn who_has_a_turn_has_its_stripes_until_it_is_over() {
    let mut array = raid5(64).array;
    let mut out = Outputs::default();
    for number in 0..12 {
        let request = Request {
            id: RequestId(number),
            operation: Write,
            start: Sectors(number * 96),
            count: Sectors(96),
            force_unit_access: false,
            process: 0,
        };
        array.submit(Nanos::ZERO, request, &mut out);
    }
    for (thread, left) in [(1, Some(Nanos::ZERO)), (2, None)] {
        array.begin_turn(thread);
        array.tick(Nanos::ZERO, &mut out);
        assert_eq!(array.next_tick(), left);
    }
    assert_eq!(out.work.taken, 12);
    assert!(out.commands.is_empty(), "parity is computed first");
    array.end_turn(Nanos::ZERO, 2, &mut out);
    assert_eq!(array.next_tick(), Some(Nanos::ZERO), "four again");
    array.begin_turn(2);
    array.tick(Nanos::ZERO, &mut out);
    assert_eq!((array.next_tick(), out.work.taken), (None, 16));
}

/// Linux include/linux/blk_types.h, `REQ_NOMERGE_FLAGS`: what is forced to the medium is
/// merged with nothing.
#[test]
fn blocks_that_are_to_be_durable_are_commands_of_their_own() {
    let mut bench = raid5(64);
    bench.submit_as(Write, 0, 96, true);
    let blocks = (0..4).flat_map(|slot| (0..4).map(move |block| (slot, Write, block * 8, 8)));
    assert_eq!(bench.take_sent(), blocks.collect::<Vec<_>>());
}

/// Linux drivers/md/raid5.c, `raid5_read_one_chunk`, and block/blk-core.c,
/// `__submit_bio_noacct`: of 2 MiB and a chunk the first chunk of each MiB leaves, then the
/// rest of the last one that has any, then that of the first.
#[test]
fn a_long_read_leaves_first_chunks_first_and_the_rest_from_its_end() {
    let bench = raid5(64);
    let request = Request {
        id: RequestId(1),
        operation: Read,
        start: Sectors(0),
        count: Sectors(4096 + 32),
        force_unit_access: false,
        process: 0,
    };
    let order = [0, 64, 128].into_iter().chain(65..128).chain(1..64);
    let chunks: Vec<_> = order.map(|chunk| (32 * chunk, 32)).collect();
    assert_eq!(bench.array.chunks_of(&request), chunks);
}

/// Linux block/fops.c, `__blkdev_direct_IO`: a read of more than 256 pages has a plug, so what
/// of it lies side by side on a member is one command. On each of four members of a RAID 5
/// three chunks do, then comes parity. A read of 256 pages has none.
#[test]
fn pieces_of_a_long_read_that_lie_side_by_side_are_one_command() {
    for (sectors, longest) in [(2048, 32), (4096 + 32, 96)] {
        let mut bench = raid5(64);
        bench.submit(Read, 0, sectors);
        let mut sent = bench.take_sent();
        let most = sent.iter().map(|(.., count)| *count).max();
        assert_eq!(most, Some(longest), "{sectors}");
        // Each sector of the array is read once, whatever the commands.
        sent.sort_unstable_by_key(|(slot, _, start, _)| (*slot, *start));
        let apart = |pair: &[_]| {
            let [(slot, _, start, count), (next, _, after, _)] = pair else {
                return true;
            };
            slot != next || start + count <= *after
        };
        assert!(sent.windows(2).all(apart), "{sectors}");
        let all: u64 = sent.iter().map(|(.., count)| count).sum();
        assert_eq!(all, sectors);
    }
}

/// Linux 6.12.117 block/blk-merge.c and block/blk-mq.c: where the newest command in the plug
/// is another member's, the oldest of the member is tried, not the one before; and it is the
/// oldest of all whose length empties the plug.
#[test]
fn a_plug_is_merged_into_and_emptied_by_its_oldest_commands() {
    let mut bench = raid5(64);
    let mut plug = |slot: u16, first: u64, count: u64| {
        let block = Plugged {
            slot: Slot(slot),
            operation: Write,
            purpose: Purpose::Foreground,
            force_unit_access: false,
            first,
            count,
        };
        bench.array.plug(block, &mut bench.out);
        bench.out.commands.len()
    };
    plug(0, 0, 1);
    plug(0, 64, 40);
    plug(1, 0, 1);
    // Not into the 40 before it, which are neither the newest nor the oldest.
    assert_eq!(plug(0, 104, 1), 0, "the oldest is short");
    plug(2, 100, 1);
    plug(0, 1, 31);
    // Sorted and merged once more as they leave.
    assert_eq!(plug(3, 0, 1), 4, "the oldest has 128 KiB");
}

#[test]
fn a_stream_of_small_writes_reads_each_block_once() {
    let mut bench = raid5(64);
    // The first one of a row reads what it does not write, the others nothing.
    bench.submit(Write, 0, 32);
    bench.run();
    let first = bench.take_sent();
    assert_eq!(first[..2], [(1, Read, 0, 32), (2, Read, 0, 32)]);
    assert_eq!(first[2..], [(0, Write, 0, 32), (3, Write, 0, 32)]);
    bench.submit(Write, 32, 32);
    bench.run();
    assert_eq!(bench.take_sent(), [(1, Write, 0, 32), (3, Write, 0, 32)]);
}

#[test]
fn a_cache_that_is_too_small_forgets() {
    let mut bench = raid5(8);
    bench.submit(Write, 0, 32);
    bench.run();
    // Three more rows take all eight places.
    for row in 1..4 {
        bench.submit(Write, row * 96, 32);
        bench.run();
    }
    bench.take_sent();
    bench.submit(Write, 32, 32);
    let reads = bench.take_sent();
    assert!(reads.iter().all(|(_, operation, ..)| *operation == Read));
    assert_eq!(reads.len(), 2, "{reads:?}");
}

#[test]
fn what_comes_while_a_stripe_reads_is_taken_along() {
    let mut bench = raid5(64);
    bench.submit(Write, 0, 32);
    assert_eq!(bench.take_sent().len(), 2, "two reads");
    bench.submit(Write, 32, 64);
    assert_eq!(bench.take_sent(), [], "they are read already");
    bench.run();
    let whole: Vec<_> = (0..4).map(|slot| (slot, Write, 0, 32)).collect();
    assert_eq!(bench.take_sent(), whole);
}

/// Linux drivers/md/raid5.c, `stripe_bio_overlaps`: a block has one write at a time that is not
/// taken over yet, and a batch takes none. So each write reaches its member.
#[test]
fn writes_of_one_place_reach_their_members_one_by_one() {
    // A part of a row, which reads first; and a whole row, which is a batch.
    for (count, members) in [(32, 2), (96, 4)] {
        let mut bench = raid5(64);
        for _ in 0..5 {
            bench.submit(Write, 0, count);
        }
        assert!(bench.array.holds_submitter(0), "{count}");
        bench.run();
        assert!(bench.open.is_empty(), "{count}");
        let sent = bench.take_sent();
        let written = sent.iter().filter(|(_, operation, ..)| *operation == Write);
        let sectors: u64 = written.map(|(.., sectors)| sectors).sum();
        assert_eq!(sectors, 5 * members * 32, "{count}");
    }
}

#[test]
fn who_finds_no_stripe_sleeps_until_a_quarter_is_free() {
    let mut bench = raid5(8);
    // Two rows are all eight stripes; the third request is not even begun.
    for row in 0..3 {
        bench.submit(Write, row * 96, 96);
    }
    assert!(bench.array.holds_submitter(0));
    assert_eq!(bench.take_sent().len(), 8);
    // A row is a batch: it is free when all four members have it.
    for _ in 0..3 {
        bench.land(0, Ok(()));
    }
    assert!(bench.array.holds_submitter(0));
    bench.land(0, Ok(()));
    assert!(!bench.array.holds_submitter(0), "four of nine are in use");
    bench.run();
    assert!(bench.open.is_empty());
}

#[test]
fn a_lost_block_is_read_from_all_others() {
    for (level, members) in [(Level::Raid5, 4), (Level::Raid6, 5)] {
        let mut bench = Bench::new(config(level, members, 100, 64));
        // Row 0 of the RAID 6 has Q on member 0.
        assert!(bench.fail(u16::from(level == Level::Raid6)));
        bench.submit(Read, 0, 8);
        let sent = bench.take_sent();
        assert_eq!(sent.len(), members - 1, "{sent:?}");
        bench.run();
        assert!(bench.open.is_empty());
        // It is in the cache now, as are the others.
        bench.submit(Read, 0, 8);
        bench.submit(Read, 32, 8);
        assert_eq!(bench.take_sent(), []);
        assert!(bench.open.is_empty());
    }
}

#[test]
fn a_new_member_is_filled_and_serves() {
    for (level, members) in [(Level::Raid5, 4), (Level::Raid6, 5)] {
        let mut bench = Bench::new(config(level, members, 100, 64));
        assert!(bench.fail(1));
        bench.replace(1);
        bench.run();
        let sent = bench.take_sent();
        let sum = |slot: u16, wanted| {
            let of = sent
                .iter()
                .filter(|(to, operation, ..)| *to == slot && *operation == wanted);
            of.map(|(.., count)| count).sum::<u64>()
        };
        assert_eq!(sum(1, Write), 3200);
        assert_eq!(sum(0, Read), 3200);
        assert_eq!(sum(0, Write) + sum(1, Read), 0);
        let sector = if level == Level::Raid6 { 0 } else { 32 };
        bench.submit(Read, sector, 8);
        assert_eq!(bench.take_sent(), [(1, Read, 0, 8)]);
    }
}

/// Linux drivers/md/raid5.c: `handle_stripe` leaves a sync's request alone as long as the stripe
/// is in a batch, and `do_release_stripe` hands the stripe to the thread for it.
#[test]
fn what_a_sync_asks_for_in_a_batch_is_synced_after_it() {
    for (level, members) in [(Level::Raid5, 4), (Level::Raid6, 5)] {
        let mut bench = Bench::new(config(level, members, 100, 64));
        bench.submit(Write, 0, 96);
        let request = SyncRequest {
            action: SyncAction::Resync,
            ranges: None,
        };
        bench.array.begin_sync(request, &mut bench.out);
        bench.run();
        assert!(bench.open.is_empty());
        assert_eq!(bench.array.sync_status(), None);
        assert!(bench.array.is_idle());
    }
}

#[test]
fn a_block_that_was_refused_is_written_again() {
    let mut bench = raid5(64);
    bench.submit(Read, 0, 8);
    bench.land(0, Err(raidlab_array::MemberError::Medium));
    bench.take_sent();
    bench.land(0, Err(raidlab_array::MemberError::Medium));
    let others = bench.take_sent();
    assert_eq!(others.len(), 3, "{others:?}");
    bench.run();
    assert!(bench.open.is_empty());
    assert_eq!(bench.take_sent(), [(0, Read, 0, 8), (0, Write, 0, 8)]);
}

/// The sync's thread sleeps for a stripe of a full cache when a member is lost.
#[test]
fn a_sync_that_ends_in_its_sleep_blocks_neither_jobs_nor_the_recovery() {
    for recovers in [false, true] {
        let mut bench = raid5(8);
        let request = SyncRequest {
            action: SyncAction::Check,
            ranges: None,
        };
        bench.array.begin_sync(request, &mut bench.out);
        bench.array.tick(bench.now, &mut bench.out);
        bench.settle();
        assert!(bench.fail(1));
        bench.run();
        assert_eq!(bench.array.sync_status(), None);
        if recovers {
            bench.replace(1);
        } else {
            bench.submit(Read, 0, 8);
            bench.submit(Write, 0, 8);
        }
        bench.run();
        assert!(bench.open.is_empty() && bench.array.is_idle());
        assert_eq!(
            bench.array.members.in_sync().len(),
            if recovers { 4 } else { 3 }
        );
    }
}

/// Linux 6.12 drivers/md/md.c, `md_do_sync`: after a sixteenth of the members no stripe begins
/// until none is in work.
#[test]
fn a_sync_comes_to_rest_for_a_checkpoint() {
    let mut bench = raid5(64);
    let request = SyncRequest {
        action: SyncAction::Resync,
        ranges: None,
    };
    bench.array.begin_sync(request, &mut bench.out);
    bench.array.tick(bench.now, &mut bench.out);
    bench.settle();
    let rest = Sectors(208);
    while bench.array.walk.in_work() > 0 && bench.array.walk.checkpoint() < rest {
        assert_eq!(bench.array.walk.next(), rest);
        bench.land(0, Ok(()));
    }
    assert_eq!(bench.array.walk.checkpoint(), rest);
    assert!(bench.array.walk.next() > rest);
}

/// Two members are filled together, one of them from the middle on.
#[test]
fn a_checkpoint_takes_nothing_back() {
    let mut config = config(Level::Raid6, 5, 100, 64);
    for (slot, filled) in [(1, 1600), (2, 0)] {
        let Initial::InSync(member) = config.members[slot].clone() else {
            panic!("all are in sync");
        };
        config.members[slot] = Initial::Recovering(member, Admission::From(Sectors(filled)));
    }
    let mut bench = Bench::new(config);
    bench.settle();
    bench.array.freeze_sync();
    bench.run();
    let done = bench.array.sync_status().map(|status| status.position);
    assert!(done < Some(Sectors(800)), "{done:?}");
    let leapt = Sectors(800);
    bench.array.leap_sync(bench.now, leapt, &mut bench.out);
    let filled = [1, 2].map(|slot| bench.array.members.filled_below(Slot(slot)));
    let checkpoint = bench.array.walk.checkpoint();
    assert_eq!(filled, [Sectors(1600), checkpoint]);
    assert!(
        done < Some(checkpoint) && checkpoint <= leapt,
        "{checkpoint}"
    );
}

/// A RAID 5 of four as Linux 6.1 has it.
fn linux_6_1() -> Bench {
    let mut config = config(Level::Raid5, 4, 16, 64);
    config.sync.threads = Some(MdThreads {
        plugs: true,
        rules: MdRules::LINUX_6_1,
        ..MdThreads::LINUX_6_12
    });
    Bench::new(config)
}

/// Linux 6.1 block/blk-merge.c and block/blk-mq.c: the list of the plug begins with the newest
/// command, so that one of the member is tried, and its length empties the plug.
#[test]
fn in_linux_6_1_a_plug_is_merged_into_and_emptied_by_its_newest_commands() {
    let mut bench = linux_6_1();
    let mut plug = |slot: u16, first: u64, count: u64| {
        let block = Plugged {
            slot: Slot(slot),
            operation: Write,
            purpose: Purpose::Foreground,
            force_unit_access: false,
            first,
            count,
        };
        bench.array.plug(block, &mut bench.out);
        bench.out.commands.len()
    };
    plug(0, 64, 1);
    plug(0, 0, 40);
    assert_eq!(plug(1, 0, 1), 2, "the newest has 160 KiB");
    plug(0, 200, 1);
    plug(0, 300, 1);
    plug(1, 500, 1);
    plug(0, 301, 1);
    assert_eq!(plug(0, 201, 1), 2, "all are short");
    let plugged = bench.array.plugged.iter().filter(|it| it.slot == Slot(0));
    let plugged: Vec<_> = plugged.map(|it| (it.first, it.count)).collect();
    assert_eq!(plugged, [(200, 1), (300, 2), (201, 1)]);
}

/// Linux 6.1 block/blk-mq.c, `blk_mq_submit_bio`: what a request reads of a member past the
/// cache is with the scheduler before the disk gets any of it.
#[test]
fn in_linux_6_1_what_a_request_reads_of_a_member_is_one_command() {
    let mut bench = linux_6_1();
    bench.submit(Read, 0, 192);
    let reads = [
        (0, Read, 0, 64),
        (1, Read, 0, 64),
        (2, Read, 0, 32),
        (3, Read, 32, 32),
    ];
    assert_eq!(bench.take_sent(), reads);
    // Each chunk of the one that fails is made from the others.
    bench.land(0, Err(MemberError::Medium));
    bench.run();
    assert!(bench.open.is_empty());
    assert!(bench.finished.iter().all(|it| it.result.is_ok()));
}

/// `STRIPE_DEGRADED` of Linux 6.1: row 0 has its parity on member 3, row 2 on member 1.
#[test]
fn a_write_leaves_a_member_out_that_lacks_data_or_parity() {
    let mut bench = linux_6_1();
    let failed = bench.array.fail(bench.now, Slot(1), &mut bench.out);
    failed.expect("three are enough");
    for (start, leaves_out) in [(0, false), (32, true), (64, false), (192, true)] {
        let range = Span::new(start, start + 8);
        assert_eq!(bench.array.leaves_out(range), leaves_out, "{start}");
    }
}

/// The commands of a read of 3 MiB in Linux 6.1, as the kernel bench writes them down
/// (`--disk-commands`; five members, chunks of 64 KiB, `iodepth=1`). The pieces of 1 MiB leave one
/// in the other, and what comes later in the plug is merged only behind what is there
/// (block/elevator.c, `elv_attempt_insert_merge`). Member 4 gets the first chunk of the last piece first.
#[test]
fn in_linux_6_1_a_long_read_is_merged_as_it_leaves() {
    let threads = linux_6_1().array.recovery.threads;
    let mut config = StripeConfig {
        members: config(Level::Raid5, 5, 4096, 64).members,
        ..StripeConfig::new(
            Level::Raid5,
            ParityLayout::LeftSymmetric,
            Sectors(128),
            Sectors(4096 * 32),
        )
    };
    config.sync.threads = threads;
    let mut bench = Bench::new(config);
    bench.submit(Read, 0, 6144);
    let first = bench.sent.iter().find(|it| it.slot == Slot(4));
    assert_eq!(first.map(|it| it.start.0 - OFFSET), Some(1024));
    let sent = bench.take_sent();
    let seen = [
        vec![(0, 512), (640, 384), (1024, 128), (1280, 256)],
        vec![(0, 384), (512, 512), (1152, 384)],
        vec![(0, 256), (384, 128), (512, 384), (1024, 512)],
        vec![(0, 128), (256, 256), (512, 256), (896, 128), (1024, 384)],
        vec![(128, 384), (512, 128), (768, 256), (1024, 256), (1408, 128)],
    ];
    for (member, seen) in (0..).zip(seen) {
        let commands = sent.iter().filter(|it| it.0 == member);
        let commands: Vec<_> = commands.map(|it| (it.2, it.3)).collect();
        assert_eq!(commands, seen, "member {member}");
    }
}
