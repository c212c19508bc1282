//! What mirrors and RAID 10 do where they imitate md: its threads, plugs and barriers.

use super::levels::{all, striped, with};
use super::story::{READ, Story, WRITE, recovery};
use super::{config, in_sync, logged, request};
use crate::engine::{Engine, Imitation, SyncAction, SyncRequest};
use crate::policy::ReadPolicyKind;
use crate::recovery::{MdRules, MdThreads, RecoveryConfig, Throttle, WriteBarrier};
use crate::request::{Event, MemberCommand, Operation, Request, Slot};
use crate::senders::HostRequests;
use raidlab_geometry::{Copies, Layout, Level, Shape, ZoneLayout};
use raidlab_units::{Bytes, Nanos, Sectors};

/// Linux drivers/md/raid10.c, `raid10_sync_request` and `sync_request_write`: a resync
/// reads all copies, and what agrees is not written.
#[test]
fn a_resync_of_mds_raid10_writes_only_what_differs() {
    for (differs, writes) in [(0, vec![]), (1, vec![(1, WRITE, 0, 8)])] {
        let mut config = with(striped(Copies::near(2), 4), all(4));
        config.recovery = recovery(WriteBarrier::MdArray);
        config.recovery.threads = Some(MdThreads::LINUX_6_12);
        let mut story = Story::new(config);
        let request = SyncRequest {
            action: SyncAction::FirstResync,
            ranges: None,
        };
        let started = story.array.start_sync(story.now, request, &mut story.out);
        started.expect("none runs");
        let reads = story.commands();
        let both = [(1, READ, 0, 8), (0, READ, 0, 8)];
        assert_eq!(Story::sent(&reads)[..2], both, "the last copy first");
        story.complete(&reads[0]);
        story.complete(&reads[1]);
        let mut sent = story.compare(|_| differs);
        if differs > 0 {
            sent = story.compare(|_| differs);
        }
        sent.retain(|command| command.operation == WRITE);
        assert_eq!(Story::sent(&sent), writes);
        assert_eq!(
            story.events(),
            [Event::SyncStarted(Sectors::ZERO)],
            "a resync reports no mismatch"
        );
    }
}

/// Linux drivers/md/raid10.c, `sync_request_write`: `md_done_sync` before `put_buf`. So the
/// thread, which waited for the end of all blocks, finds the read that waits at the barrier,
/// and sleeps a tick.
#[test]
fn the_end_of_blocks_that_are_alike_wakes_the_thread_before_who_waits_at_the_barrier() {
    let layout = Layout::Copies(Copies::near(2));
    let shape = Shape::uniform(Level::Raid10, layout, Sectors(128), 4, Sectors(1024));
    let mut config = with(shape, in_sync(vec![logged(1024, 0); 4]));
    config.recovery = RecoveryConfig {
        block: Bytes(128 * 512),
        threads: Some(MdThreads::LINUX_6_12),
        throttle: Throttle::MdDrain {
            minimum_kib_per_second: 0,
            maximum_kib_per_second: 1_000_000,
        },
        ..recovery(WriteBarrier::MdArray)
    };
    let mut story = Story::new(config);
    let before = [1024, 1280].map(|start| story.submit(start, WRITE, start, 128));
    story.sync(SyncAction::Check, None).expect("none runs");
    assert_eq!(story.commands(), [], "writes are under way");
    for write in before.iter().flatten() {
        story.complete(write);
    }
    story.array.tick(story.now, &mut story.out);
    let blocks = story.commands();
    assert_eq!(blocks.len(), 4, "two blocks, behind which the writes show");
    assert_eq!(story.submit(2, READ, 1024, 128), []);
    let mut read = Vec::new();
    for block in &blocks {
        read.extend(story.complete(block));
        read.extend(story.compare(|_| 0));
    }
    assert_eq!(Story::sent(&read), [(0, READ, 512, 128)]);
    assert_eq!(story.complete(&read[0]), []);
    for (now, blocks) in [(1, 0), (7, 0), (8, 4)] {
        story.now = Nanos::from_millis(now);
        story.array.tick(story.now, &mut story.out);
        assert_eq!(story.commands().len(), blocks, "at {now} ms");
    }
}

/// Linux drivers/md/raid10.c, `raid10_find_phys`: chunk 1 of three members begins on
/// member 2, and goes on on member 0.
#[test]
fn what_may_differ_is_read_where_its_first_copy_lies() {
    for threads in [None, Some(MdThreads::LINUX_6_12)] {
        let mut config = with(striped(Copies::near(2), 3), all(3));
        config.recovery.threads = threads;
        let mut story = Story::new(config);
        let request = SyncRequest {
            action: SyncAction::Resync,
            ranges: None,
        };
        let started = story.array.start_sync(story.now, request, &mut story.out);
        started.expect("none runs");
        let blocks = story.commands();
        assert_eq!(blocks[1].slot, Slot(2), "the resync's source too");
        let reads = story.submit(1, READ, 8, 8);
        assert_eq!(Story::sent(&reads), [(2, READ, 0, 8)]);
    }
}

/// Linux drivers/md/raid1.c, `raid1_sync_request`: a block of a sync holds all members, so
/// none of them counts as idle, and of two that are as near the lower one is read.
#[test]
fn beside_a_sync_no_member_of_mds_mirror_is_idle() {
    for (threads, slot) in [(None, 1), (Some(MdThreads::LINUX_6_12), 0)] {
        let mut config = config(3, 100, recovery(WriteBarrier::MdBuckets));
        config.read_policy = ReadPolicyKind::MD_6_9;
        config.recovery.threads = threads;
        let mut story = Story::new(config);
        story.replace(2);
        let reads = story.submit(1, READ, 50, 10);
        assert_eq!(Story::sent(&reads), [(slot, READ, 50, 10)]);
    }
}

/// Linux drivers/md/raid1.c, `end_sync_read`: of the copies that a check reads each moves the
/// head of the member that a resync would read, the first one that is not write-mostly, so
/// that the others are nearer to what lies in front. Every block is under way or known to be
/// alike, and nobody is idle.
#[test]
fn the_copies_that_a_check_reads_move_one_head() {
    for (threads, write_mostly, slot) in [
        (None, None, 0),
        (Some(MdThreads::LINUX_6_12), None, 1),
        (Some(MdThreads::LINUX_6_12), Some(0), 2),
    ] {
        let mut members = vec![logged(100, 0); 3];
        if let Some(slot) = write_mostly {
            members[slot].write_mostly = true;
        }
        let mut config = config(3, 100, recovery(WriteBarrier::MdBuckets));
        config.members = in_sync(members);
        config.read_policy = ReadPolicyKind::MD_6_9;
        config.recovery.threads = threads;
        let mut story = Story::new(config);
        story.sync(SyncAction::Check, None).expect("none runs");
        let reads = story.commands();
        assert_eq!(reads.len(), 6, "two blocks");
        for read in &reads[..3] {
            story.complete(read);
        }
        let sent = story.submit(1, READ, 2, 2);
        assert_eq!(Story::sent(&sent), [(slot, READ, 2, 2)]);
    }
}

/// Linux drivers/md/md.c, `is_mddev_idle`: all sectors of a disk count that are not the sync's,
/// those of superblocks and of the bitmap too. Beyond 64 of them the sync lets its blocks end
/// before it goes on. Here 8 are a write's, and 256 of the sync's own are under way.
#[test]
fn a_member_that_is_written_metadata_is_not_idle() {
    for (count, reads) in [(312, 8), (313, 4)] {
        let mut config = config(2, 4096, recovery(WriteBarrier::MdBuckets));
        config.recovery = RecoveryConfig {
            block: Bytes(128 * 512),
            depth: 4,
            threads: Some(MdThreads::LINUX_6_12),
            throttle: Throttle::MdDrain {
                minimum_kib_per_second: 0,
                maximum_kib_per_second: 1_000_000,
            },
            ..config.recovery
        };
        let mut story = Story::new(config);
        let writes = story.submit(1, WRITE, 0, 8);
        story.sync(SyncAction::Check, None).expect("none runs");
        assert_eq!(story.commands(), [], "the write is under way");
        Imitation::metadata_written(&mut story.array, Slot(0), Sectors(count));
        story.complete(&writes[0]);
        assert_eq!(story.complete(&writes[1]).len(), reads, "{count}");
    }
}

/// Linux block/blk-merge.c, `blk_attempt_plug_merge`: what lies side by side on a member is
/// one command, across chunks too. Of four members with two far copies, member 1's first
/// chunks are the second copies of member 2.
#[test]
fn blocks_of_a_sync_are_merged_across_chunks() {
    for (plugs, reads) in [
        (false, vec![(2, READ, 16, 8), (2, READ, 24, 8)]),
        (true, vec![(2, READ, 16, 16)]),
    ] {
        let mut config = with(striped(Copies::far(2), 4), all(4));
        config.recovery = RecoveryConfig {
            merged: Some(Bytes(30 * 512)),
            threads: Some(MdThreads {
                plugs,
                ..MdThreads::LINUX_6_12
            }),
            ..recovery(WriteBarrier::MdArray)
        };
        let mut story = Story::new(config);
        let sent = story.replace(1);
        assert_eq!(Story::sent(&sent), reads);
        if plugs {
            let copies = story.complete(&sent[0]);
            assert_eq!(Story::sent(&copies), [(1, WRITE, 0, 16)]);
        }
    }
}

/// The array's thread goes through all that was read together before the sync's own runs:
/// what follows leaves together again.
#[test]
fn blocks_that_were_compared_together_are_followed_by_blocks_in_one_command() {
    let mut config = config(2, 100, recovery(WriteBarrier::MdBuckets));
    config.recovery.depth = 3;
    config.recovery.merged = Some(Bytes(30 * 512));
    config.recovery.threads = Some(MdThreads {
        plugs: true,
        ..MdThreads::LINUX_6_12
    });
    let mut story = Story::new(config);
    let request = SyncRequest {
        action: SyncAction::Check,
        ranges: None,
    };
    let started = story.array.start_sync(story.now, request, &mut story.out);
    started.expect("none runs");
    let reads = story.commands();
    let both = [(0, READ, 0, 30), (1, READ, 0, 30)];
    assert_eq!(Story::sent(&reads), both);
    story.complete(&reads[0]);
    story.complete(&reads[1]);
    let next = story.compare(|_| 0);
    let both = [(0, READ, 30, 30), (1, READ, 30, 30)];
    assert_eq!(Story::sent(&next), both);
}

/// md's RAID 10 of three members with three copies.
fn thrice() -> Story {
    let mut config = with(striped(Copies::near(3), 3), all(3));
    config.recovery = RecoveryConfig {
        threads: Some(MdThreads::LINUX_6_12),
        ..recovery(WriteBarrier::MdArray)
    };
    Story::new(config)
}

/// Linux 6.12.117 drivers/md/raid10.c, `raid10_set_queue_limits`: requests are cut by chunk
/// where each member holds all of them too.
#[test]
fn requests_of_mds_raid_10_are_cut_by_chunk() {
    let mut story = thrice();
    let sent = story.submit(1, WRITE, 4, 8);
    let first = (0..3).map(|slot| (slot, WRITE, 4, 4));
    let second = (0..3).map(|slot| (slot, WRITE, 8, 4));
    assert_eq!(Story::sent(&sent), first.chain(second).collect::<Vec<_>>());
}

/// Linux drivers/md/raid0.c, `raid0_set_limits` (`max_hw_sectors`): the block layer cuts a request
/// into pieces of a chunk's length from where it begins, and RAID 0 each of these at the chunk's end.
#[test]
fn requests_of_mds_raid_0_are_cut_from_where_they_begin_too() {
    for (threads, commands) in [
        (None, &[(0, 6, 2), (1, 0, 8), (0, 8, 6)][..]),
        (
            Some(MdThreads::LINUX_6_12),
            &[(0, 6, 2), (1, 0, 6), (1, 6, 2), (0, 8, 6)],
        ),
    ] {
        let layout = Layout::Zones(ZoneLayout::Original);
        let shape = Shape::uniform(Level::Raid0, layout, Sectors(8), 2, Sectors(32));
        let mut config = with(shape, all(2));
        config.recovery.threads = threads;
        let sent = Story::new(config).submit(1, READ, 6, 16);
        let commands = commands
            .iter()
            .map(|&(slot, at, count)| (slot, READ, at, count));
        assert_eq!(Story::sent(&sent), commands.collect::<Vec<_>>());
    }
}

/// Linux drivers/md/raid10.c, `stop_waiting_barrier`: a write that was let in has set its
/// bits, and meanwhile the sync's thread has raised the barrier. All its chunks but the last
/// pass, as more are to come; the last one waits for the block.
#[test]
fn the_last_chunk_of_a_write_waits_for_a_barrier_that_was_raised_meanwhile() {
    let mut story = thrice();
    let write = request(1, WRITE, 8, 24);
    assert!(story.array.enter(story.now, &write));
    assert!(story.replace(1).is_empty(), "the write is inside");
    let sent = story.submit(1, WRITE, 8, 24);
    let chunks = |story: &[MemberCommand]| {
        let starts = story.iter().map(|it| it.start.0);
        starts.collect::<Vec<_>>()
    };
    assert_eq!(chunks(&sent), [8, 8, 8, 16, 16, 16]);
    let mut next = Vec::new();
    for command in &sent {
        next.extend(story.complete(command));
    }
    story.array.tick(story.now, &mut story.out);
    next.extend(story.commands());
    assert_eq!(
        Story::sent(&next),
        [(0, READ, 0, 10)],
        "a block of the sync"
    );
}

/// Linux 6.12 drivers/md/raid10.c, `stop_waiting_barrier`: while a block waits until nothing is
/// under way, all chunks of a request pass but the last one, as more are to come. None does
/// when the block has begun.
#[test]
fn chunks_pass_a_raised_barrier_as_long_as_more_are_to_come() {
    let mut story = thrice();
    let first = story.submit(1, READ, 0, 8);
    story.sync(SyncAction::Check, None).expect("none runs");
    assert_eq!(story.commands(), [], "the barrier is raised");
    assert_eq!(story.submit(2, READ, 16, 8), [], "a single chunk");
    let (short, long) = (request(3, WRITE, 16, 8), request(4, WRITE, 8, 24));
    assert!(!story.array.enter(story.now, &short));
    assert!(story.array.enter(story.now, &long));
    story.array.leave(&short);
    story.array.leave(&long);
    let reads = story.submit(5, READ, 8, 24);
    let starts = reads.iter().map(|command| command.start.0);
    assert_eq!(starts.collect::<Vec<_>>(), [8, 16]);
    let mut blocks = Vec::new();
    for read in first.iter().chain(&reads) {
        blocks.extend(story.complete(read));
    }
    assert_eq!(story.finished(), [(1, Ok(()))]);
    story.array.tick(story.now, &mut story.out);
    blocks.extend(story.commands());
    assert!(!blocks.is_empty() && story.submit(6, READ, 8, 24).is_empty());
    story.drain(blocks);
}

/// Linux 6.1 block/fops.c, `blkdev_write_iter`: a request has one plug, so what of it lies side
/// by side on a member is one command; in 6.12 each chunk leaves by itself.
#[test]
fn what_a_request_has_on_a_member_is_one_command() {
    for rules in [MdRules::LINUX_6_1, MdRules::LINUX_6_12] {
        let mut config = with(striped(Copies::near(2), 4), all(4));
        config.maximum_request = Sectors(20);
        config.recovery = RecoveryConfig {
            threads: Some(MdThreads {
                rules,
                ..MdThreads::LINUX_6_12
            }),
            ..recovery(WriteBarrier::MdArray)
        };
        let mut story = Story::new(config);
        let write = request(1, WRITE, 0, 48);
        story.array.submit(story.now, write, &mut story.out);
        Imitation::unplug(&mut story.array, &mut story.out);
        let mut sent = story.commands();
        sent.sort_by_key(|command| (command.slot, command.start));
        let (merged, apart) = ([(0, 16), (16, 8)], [(0, 8), (8, 8), (16, 8)]);
        let expected: Vec<_> = match rules == MdRules::LINUX_6_1 {
            true => merged.into(),
            false => apart.into(),
        };
        let expected =
            [0, 1, 2, 3].map(|slot| expected.iter().map(move |it| (slot, WRITE, it.0, it.1)));
        assert_eq!(
            Story::sent(&sent),
            expected.into_iter().flatten().collect::<Vec<_>>()
        );
        for command in &sent {
            story.complete(command);
        }
        assert_eq!(story.finished(), [(1, Ok(()))]);
    }
}

/// Linux block/fops.c, `__blkdev_direct_IO`: of what is too long for one bio all bios are in one
/// plug, those of a write too, which its process sends itself where there is no bitmap.
#[test]
fn what_a_long_write_has_on_a_member_is_one_command() {
    for (chunks, apart) in [(256, 128), (258, 1)] {
        let layout = Layout::Copies(Copies::near(2));
        let shape = Shape::uniform(Level::Raid10, layout, Sectors(8), 4, Sectors(2048));
        let mut config = with(shape, in_sync(vec![logged(2048, 0); 4]));
        config.maximum_request = Sectors(4096);
        let requests = HostRequests {
            requests: 1000,
            tags: 1000,
        };
        config.recovery = RecoveryConfig {
            threads: Some(MdThreads {
                requests,
                ..MdThreads::LINUX_6_12
            }),
            ..recovery(WriteBarrier::MdArray)
        };
        let mut story = Story::new(config);
        let write = request(1, WRITE, 0, chunks * 8);
        story.array.submit(story.now, write, &mut story.out);
        Imitation::unplug(&mut story.array, &mut story.out);
        let sent = story.commands();
        assert_eq!(sent.len(), 4 * apart, "{chunks}");
        let sectors: u64 = sent.iter().map(|command| command.count.0).sum();
        assert_eq!(sectors, 2 * chunks * 8);
    }
}

/// Linux drivers/md/raid0.c, `raid0_handle_discard`, and raid10.c, `raid10_handle_discard`: what a
/// discard has on a member is one command, of RAID 10 as far as it is of whole stripes.
#[test]
fn what_a_discard_has_on_a_member_is_one_command() {
    let sent = |shape: Shape, start, count| {
        let mut config = with(shape, all(4));
        config.recovery = RecoveryConfig {
            threads: Some(MdThreads::LINUX_6_12),
            ..recovery(WriteBarrier::MdArray)
        };
        let mut story = Story::new(config);
        let discard = request(1, Operation::Discard, start, count);
        story.array.submit(story.now, discard, &mut story.out);
        Imitation::unplug(&mut story.array, &mut story.out);
        let sent = story.commands();
        for command in &sent {
            story.complete(command);
        }
        assert_eq!(story.finished(), [(1, Ok(()))]);
        let of_first = sent.into_iter().filter(|it| it.slot == Slot(0));
        let mut ranges: Vec<_> = of_first.map(|it| (it.start.0, it.count.0)).collect();
        ranges.sort_unstable();
        ranges
    };
    let zones = Layout::Zones(ZoneLayout::Original);
    let raid0 = Shape::uniform(Level::Raid0, zones, Sectors(8), 4, Sectors(32));
    assert_eq!(sent(raid0, 4, 92), [(4, 20)]);
    // A stripe of two copies on four members is two chunks.
    let near = || striped(Copies::near(2), 4);
    assert_eq!(sent(near(), 0, 48), [(0, 24)]);
    assert_eq!(sent(near(), 4, 60), [(4, 4), (8, 24)]);
    assert_eq!(sent(near(), 0, 24), [(0, 8), (8, 8)]);
}

/// Linux kernel/sched/core.c, `io_schedule_prepare`: who sleeps for a request empties its plug
/// first, and goes on with an empty one when it wakes. Here two writes of somebody else's have
/// both requests of members 0 and 1. As one of them ends, one request of member 0
/// is enough for both rows.
#[test]
fn who_wakes_merges_what_it_sends() {
    let mut config = with(striped(Copies::near(2), 4), all(4));
    let requests = HostRequests {
        requests: 2,
        tags: 2,
    };
    config.maximum_request = Sectors(20);
    config.recovery = RecoveryConfig {
        threads: Some(MdThreads {
            requests,
            rules: MdRules::LINUX_6_1,
            ..MdThreads::LINUX_6_12
        }),
        ..recovery(WriteBarrier::MdArray)
    };
    let mut story = Story::new(config);
    let mut submit = |id, process, start, count| {
        let write = Request {
            process,
            ..request(id, WRITE, start, count)
        };
        story.array.submit(story.now, write, &mut story.out);
        Imitation::unplug(&mut story.array, &mut story.out);
        story.commands()
    };
    let first = submit(1, 1, 32, 8);
    let second = submit(2, 1, 48, 8);
    assert!(submit(3, 0, 0, 32).is_empty());
    assert!(story.array.holds_submitter(0) && !story.array.holds_submitter(1));
    let mut answer = |command: &MemberCommand| {
        let (array, out) = (&mut story.array, &mut story.out);
        array.complete(story.now, command.id, Ok(()), out);
        Imitation::unplug(array, out);
        Story::sent(&story.commands())
    };
    assert!(answer(&first[1]).is_empty() && answer(&second[1]).is_empty());
    let both_rows = [0, 1, 2, 3].map(|slot| (slot, WRITE, 0, 16));
    assert_eq!(answer(&first[0]), both_rows);
    assert!(!story.array.holds_submitter(0));
}
