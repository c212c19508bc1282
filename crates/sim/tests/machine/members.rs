//! The members: their queues, their counters, and what becomes of the array
//! when one of them goes.

use crate::bench::{Bench, group, random, sequential, timed};
use raidlab_array::{AdminError, Event, Operation, Slot};
use raidlab_sim::{DiskCommand, SimError, SubjectError};
use raidlab_units::{Bytes, Nanos, Sectors};
use raidlab_workload::{Engine, JobSpec, Pattern};
use std::cell::RefCell;
use std::rc::Rc;

#[test]
fn depth_32_over_two_members_never_finds_a_full_queue() {
    let job = timed(Pattern::RandRead, 32, 30);
    let result = Bench::default().machine().run(&group([job])).expect("runs");
    assert_eq!(result.tag_overflows, 0);
}

#[test]
fn what_finds_no_tag_is_counted_and_served() {
    let run = |tags, depth| {
        let bench = Bench {
            members: 1,
            tags,
            ..Bench::default()
        };
        let job = random(Pattern::RandRead, depth, 5_000);
        bench.machine().run(&group([job])).expect("runs")
    };
    let full = run(31, 64);
    assert_eq!(full.reads().ios, 5_000);
    // 64 in flight less 31: the first 33, then nearly each that follows.
    assert!(
        (4_900..5_000).contains(&full.tag_overflows),
        "{}",
        full.tag_overflows
    );
    assert_eq!(run(64, 64).tag_overflows, 0);
    // The sweep in the host keeps a single tag from being the end of order:
    // it is worth more than one at a time, less than 31 in the drive.
    let [alone, swept] = [run(31, 1), run(1, 64)].map(|result| result.runtime);
    assert!(swept < alone && full.runtime < swept);
}

#[test]
fn no_tags_at_all_count_as_one() {
    let bench = Bench {
        tags: 0,
        ..Bench::default()
    };
    let result = bench
        .machine()
        .run(&group([random(Pattern::RandRead, 4, 100)]));
    assert_eq!(result.expect("runs").reads().ios, 100);
}

#[test]
fn counters_add_up_to_the_requests() {
    let job = JobSpec {
        read_mix_percent: 50,
        ..random(Pattern::RandRw, 8, 2_000)
    };
    let result = Bench::default().machine().run(&group([job])).expect("runs");
    let (reads, writes) = (result.reads(), result.writes());
    assert_eq!(reads.ios + writes.ios, 2_000);
    let read_ios: u64 = result.members.iter().map(|member| member.read_ios).sum();
    assert_eq!(read_ios, reads.ios);
    for member in &result.members {
        // Every member gets every write.
        assert_eq!(member.write_ios, writes.ios);
        assert_eq!(member.write_bytes, writes.bytes);
        assert_eq!(member.read_bytes, Bytes(4096) * member.read_ios);
        assert!(member.busy <= result.runtime);
        // Ticks count every command, busy time only whether there is one.
        assert!(member.read_ticks + member.write_ticks >= member.busy);
        assert_eq!(member.sync_bytes, Bytes(0));
    }
    let latency = reads.latency.mean() * reads.latency.len() as f64;
    let ticks: u64 = result
        .members
        .iter()
        .map(|member| member.read_ticks.0)
        .sum();
    // Three digits of the histogram.
    assert!((latency / ticks as f64 - 1.0).abs() < 0.001);
}

#[test]
fn large_requests_are_cut_for_the_members() {
    let job = JobSpec {
        block_size: Bytes(2 << 20),
        ..sequential(Pattern::Read, 64 << 20)
    };
    let result = Bench::default().machine().run(&group([job])).expect("runs");
    assert_eq!(result.reads().ios, 32);
    let commands: u64 = result.members.iter().map(|member| member.read_ios).sum();
    assert_eq!(commands, 32 * 4, "of 512 KiB each");
}

/// 8 GiB: recovered in a minute.
fn small() -> Bench {
    Bench {
        capacity: Some(Sectors(8 << 21)),
        ..Bench::default()
    }
}

#[test]
fn a_member_goes_and_comes_back_and_no_request_is_lost() {
    let mut machine = small().machine();
    let job = group([JobSpec {
        read_mix_percent: 67,
        ..random(Pattern::RandRw, 8, 3_000)
    }]);
    let all = |result: &raidlab_sim::JobResult| result.reads().ios + result.writes().ios;

    let healthy = machine.run(&job).expect("runs");
    assert_eq!(healthy.health, ["[UU]", "[UU]"]);
    assert_eq!(healthy.sync_percent, [None, None]);

    // What the disks had not written back yet is lost to nobody.
    machine.remove(Slot(1)).expect("the other one stays");
    let degraded = machine.run(&job).expect("runs on one member");
    assert_eq!(degraded.health, ["[U_]", "[U_]"]);
    assert_eq!(all(&degraded), 3_000);
    assert_eq!(degraded.members[1].write_ios, 0);

    machine.insert(Slot(1)).expect("the slot is empty");
    let recovering = machine.run(&job).expect("runs during recovery");
    assert_eq!(all(&recovering), 3_000);
    assert_eq!(recovering.health[0], "[U_]");
    let [start, end] = recovering
        .sync_percent
        .map(|percent| percent.expect("recovers"));
    assert!(
        start < 1.0 && end > start && end < 100.0,
        "{start} to {end}"
    );
    assert!(recovering.members[1].sync_bytes > Bytes(0));

    machine
        .wait(Nanos::from_secs(120), &mut |_| true)
        .expect("recovers");
    assert_eq!(
        (machine.sync(), machine.health()),
        (None, "[UU]".to_owned())
    );
    let healed = machine.run(&job).expect("runs");
    assert_eq!((all(&healed), healed.sync_percent), (3_000, [None, None]));
    assert!(healed.members[1].write_ios > 0);
    let finished = machine
        .events()
        .iter()
        .any(|(time, event)| matches!(event, Event::SyncFinished) && *time > Nanos::ZERO);
    assert!(finished, "{:?}", machine.events());
}

#[test]
fn a_member_that_fails_leaves_its_requests_to_the_other() {
    let mut machine = small().machine();
    // Cached writes are still on their way to the platters.
    machine
        .run(&group([random(Pattern::RandWrite, 16, 500)]))
        .expect("runs");
    machine.fail(Slot(0)).expect("the other one stays");
    assert_eq!(machine.health(), "[_U]");
    let result = machine
        .run(&group([random(Pattern::RandRead, 16, 500)]))
        .expect("runs");
    assert_eq!(result.reads().ios, 500);
    assert_eq!(
        (result.members[0].read_ios, result.members[1].read_ios),
        (0, 500)
    );
}

#[test]
fn a_verb_that_cannot_be_is_refused() {
    let mut machine = small().machine();
    let refused = |error: AdminError| Err(SimError::Subject(SubjectError(error.to_string())));
    assert_eq!(
        machine.insert(Slot(0)),
        refused(AdminError::Occupied(Slot(0)))
    );
    assert_eq!(
        machine.remove(Slot(2)),
        refused(AdminError::NoSuchSlot(Slot(2)))
    );
    assert_eq!(machine.remove(Slot(1)), Ok(()));
    assert_eq!(
        machine.fail(Slot(0)),
        refused(AdminError::LastInSync(Slot(0)))
    );
    assert_eq!(machine.health(), "[U_]");
}

/// On one cable two members read no more than one of them can alone, whatever waits.
/// On ways of their own they read far more; twice as much is out of reach, since
/// fewer requests wait at each for the host to sort.
#[test]
fn members_on_a_cable_read_in_turns() {
    let iops = |members: u64, cable: bool| {
        let bench = Bench {
            members,
            cable,
            policy: "gmirror-round-robin",
            tags: 1,
            ..Bench::default()
        };
        let mut machine = bench.machine();
        let result = machine.run(&group([random(Pattern::RandRead, 8, 2000)]));
        let result = result.expect("runs");
        result.reads().iops(result.runtime)
    };
    let alone = iops(1, false);
    let apart = iops(2, false) / alone;
    let together = iops(2, true) / alone;
    assert!(apart > 1.4, "{apart}");
    assert!((0.7..1.05).contains(&together), "{together}");
}

/// Linux block/blk-flush.c: a write that is to be durable is written, and then the disk's
/// cache is flushed. There is one flush at a time, for all who wait, and none while such
/// a write is on its way.
#[test]
fn durable_writes_share_flushes() {
    let job = JobSpec {
        num_jobs: 4,
        engine: Engine::Libaio,
        ..random(Pattern::RandWrite, 1, 100)
    };
    let [writes, flushes] = writes_and_flushes(job);
    assert_eq!(writes.len(), 400);
    assert!((100..400).contains(&flushes.len()), "{}", flushes.len());
    assert!(flushes.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    for (since, until) in &writes {
        assert!(flushes.iter().any(|(begun, _)| begun >= until));
        assert!(
            !flushes
                .iter()
                .any(|(begun, _)| since < begun && begun < until)
        );
    }
}

/// Linux block/fops.c, `blkdev_write_iter`: a synchronous engine's system call flushes behind the
/// write that is durable already. A request that is handed over has returned by then.
#[test]
fn a_synchronous_engine_flushes_twice_for_each_durable_write() {
    for (engine, each) in [(Engine::Libaio, 1), (Engine::Sync, 2)] {
        let job = JobSpec {
            engine,
            ..random(Pattern::RandWrite, 1, 100)
        };
        let [writes, flushes] = writes_and_flushes(job);
        assert_eq!((writes.len(), flushes.len()), (100, 100 * each));
    }
}

/// When each write, and each flush, of durable writes to a disk began and ended.
fn writes_and_flushes(job: JobSpec) -> [Vec<(Nanos, Nanos)>; 2] {
    let mut machine = Bench {
        members: 1,
        ..Bench::default()
    }
    .machine();
    let commands: Rc<RefCell<Vec<DiskCommand>>> = Rc::default();
    let log = commands.clone();
    machine.watch_commands(Box::new(move |command| log.borrow_mut().push(*command)));
    let job = JobSpec {
        sync_writes: true,
        ..job
    };
    machine.run(&group([job])).expect("runs");
    let commands = commands.borrow();
    let of = |operation| {
        let all = commands.iter().filter(move |it| it.operation == operation);
        all.map(|it| (it.arrived, it.completed)).collect()
    };
    [Operation::Write, Operation::Flush].map(of)
}
