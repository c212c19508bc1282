//! Requests on their way from stripe to stripe, where that takes time.

use super::bench::Bench;
use super::rules::raid5;
use raidlab_array::Operation::Write;
use raidlab_array::{Engine, Imitation, Outputs, Request, RequestId};
use raidlab_units::{Nanos, Sectors};

/// Begins to write to an array whose processes take their time; what it tells.
fn write_in_time(has_plug: bool, start: u64, count: u64) -> (Bench, Outputs) {
    let mut bench = raid5(64);
    let array = &mut bench.array;
    array.take_time(has_plug);
    let request = Request {
        id: RequestId(1),
        operation: Write,
        start: Sectors(start),
        count: Sectors(count),
        force_unit_access: false,
        process: 7,
    };
    let mut out = Outputs::default();
    array.submit(Nanos::ZERO, request, &mut out);
    (bench, out)
}

/// What is released when a process goes on from each stripe; it is on its way up to the last.
fn released_on_the_way(has_plug: bool, start: u64, count: u64) -> Vec<u32> {
    let (mut bench, mut out) = write_in_time(has_plug, start, count);
    let mut released = vec![out.work.released];
    while out.on_their_way.pop() == Some(7) {
        out.clear();
        bench.array.go_on(Nanos::ZERO, 7, &mut out);
        released.push(out.work.released);
    }
    released
}

/// Linux drivers/md/raid5.c, `release_stripe_plug`: three of four stripes of a chunk are let go
/// at the end of the plug, or each as soon as the process has been there.
#[test]
fn who_has_no_plug_lets_go_of_each_stripe_at_once() {
    assert_eq!(released_on_the_way(true, 0, 24), [0, 0, 0, 3]);
    assert_eq!(released_on_the_way(false, 0, 24), [0, 1, 1, 1]);
}

/// `raid5_make_request`, `batch_last`: the first of four stripes that are written wholly heads
/// their batch, and is let go when the process has been at the second.
#[test]
fn without_a_plug_the_head_of_a_batch_is_let_go_with_the_next_stripe() {
    assert_eq!(released_on_the_way(true, 0, 96), [0, 0, 0, 0, 1]);
    assert_eq!(released_on_the_way(false, 0, 96), [0, 0, 1, 0, 0]);
}

/// Linux block/fops.c, `__blkdev_direct_IO`: all bios of a long request are in one plug, so the
/// row that ends in its second bio is whole when its stripes are let go.
#[test]
fn a_request_of_several_bios_keeps_its_stripes_to_the_end() {
    let mut bench = raid5(256);
    bench.array.take_time(false);
    let request = Request {
        id: RequestId(1),
        operation: Write,
        start: Sectors(0),
        count: Sectors(2400),
        force_unit_access: false,
        process: 7,
    };
    let mut out = Outputs::default();
    bench.array.submit(Nanos::ZERO, request, &mut out);
    while out.on_their_way.pop() == Some(7) {
        assert_eq!(out.work.released, 0);
        out.clear();
        bench.array.go_on(Nanos::ZERO, 7, &mut out);
    }
    assert!(out.work.released > 0);
}

/// `stripe_can_batch`: a batch that is being handled takes no more stripes, so without a plug a
/// thread that is quick finds two batches in a row.
#[test]
fn a_batch_that_is_handled_meanwhile_takes_no_more() {
    let (mut bench, mut out) = write_in_time(false, 0, 96);
    for _ in 0..2 {
        bench.array.go_on(Nanos::ZERO, 7, &mut out);
    }
    bench.array.begin_turn(1);
    bench.array.tick(Nanos::ZERO, &mut out);
    assert_eq!((out.work.taken, out.work.released), (1, 1));
    for _ in 0..2 {
        bench.array.go_on(Nanos::ZERO, 7, &mut out);
    }
    assert_eq!(out.work.released, 2, "the fourth one heads a batch");
}

/// Linux drivers/md/raid5.c, `raid5_get_active_stripe`: a process sleeps for a stripe in the
/// middle of its way, and when it wakes it looks for the stripe itself.
#[test]
fn who_slept_for_a_stripe_goes_on_by_himself() {
    let mut array = raid5(8).array;
    array.take_time(true);
    let mut out = Outputs::default();
    for (process, stripe) in [(1, 0), (2, 8)] {
        let request = Request {
            id: RequestId(u64::from(process)),
            operation: Write,
            // Chunks of four stripes, three of them in a row.
            start: Sectors(stripe / 4 * 96),
            count: Sectors(8),
            force_unit_access: false,
            process,
        };
        array.submit(Nanos::ZERO, request, &mut out);
    }
    assert_eq!((array.holds_submitter(2), out.work.found), (true, 2));
    assert_eq!(out.on_their_way, [1]);
    out.clear();
    array.go_on(Nanos::ZERO, 1, &mut out);
    while !array.is_idle() && array.holds_submitter(2) {
        let sent = std::mem::take(&mut out.commands);
        out.clear();
        for command in sent {
            array.complete(Nanos::ZERO, command.id, Ok(()), &mut out);
        }
        array.tick(Nanos::ZERO, &mut out);
    }
    assert_eq!((&out.on_their_way[..], out.work.found), (&[2][..], 0));
    array.go_on(Nanos::ZERO, 2, &mut out);
    assert!(out.work.found > 0 && !array.holds_submitter(2));
}

/// `add_all_stripe_bios`: who overlaps a write that is not taken over yet sleeps until it is, and
/// not only until the thread has had a turn: this one first reads what the parity needs.
#[test]
fn who_overlaps_a_write_is_woken_once() {
    let mut array = raid5(64).array;
    array.take_time(true);
    let mut out = Outputs::default();
    let mut on_their_way = Vec::new();
    for process in [1, 2] {
        let request = Request {
            id: RequestId(u64::from(process)),
            operation: Write,
            start: Sectors(0),
            count: Sectors(8),
            force_unit_access: false,
            process,
        };
        array.submit(Nanos::ZERO, request, &mut out);
    }
    assert!(array.holds_submitter(2));
    for _ in 0..100 {
        let sent = std::mem::take(&mut out.commands);
        let ways = std::mem::take(&mut out.on_their_way);
        out.clear();
        for &process in &ways {
            array.go_on(Nanos::ZERO, process, &mut out);
        }
        on_their_way.extend(ways);
        array.tick(Nanos::ZERO, &mut out);
        for command in sent {
            array.complete(Nanos::ZERO, command.id, Ok(()), &mut out);
        }
    }
    assert!(array.is_idle());
    // To the stripe and past it; the second one is also woken.
    assert_eq!(on_their_way, [1, 2, 2]);
}

/// Linux kernel/sched/core.c, `sched_submit_work`: who sleeps has an empty plug. Of two requests
/// that come at once, as after the bitmap's pages, the second one wants the place of a stripe
/// that the first has under the plug.
#[test]
fn who_sleeps_lets_go_of_what_all_of_his_requests_have() {
    for has_plug in [true, false] {
        let mut array = raid5(8).array;
        array.take_time(has_plug);
        let mut out = Outputs::default();
        // Two rows of 96 sectors, and a block that lies in the place of their first stripe.
        for (id, start, count) in [(1, 0, 192), (2, 192, 8)] {
            let request = Request {
                id: RequestId(id),
                operation: Write,
                start: Sectors(start),
                count: Sectors(count),
                force_unit_access: false,
                process: 7,
            };
            array.submit(Nanos::ZERO, request, &mut out);
        }
        assert!(array.holds_submitter(7));
        assert_eq!(array.next_tick(), Some(Nanos::ZERO), "plug: {has_plug}");
        let mut finished = 0;
        for _ in 0..100 {
            let (sent, ways) = (
                std::mem::take(&mut out.commands),
                std::mem::take(&mut out.on_their_way),
            );
            finished += out.finished.len();
            out.clear();
            for process in ways {
                array.go_on(Nanos::ZERO, process, &mut out);
            }
            for command in sent {
                array.complete(Nanos::ZERO, command.id, Ok(()), &mut out);
            }
            array.tick(Nanos::ZERO, &mut out);
        }
        assert!(array.is_idle());
        assert_eq!(finished, 2);
    }
}
