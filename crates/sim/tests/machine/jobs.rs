//! What the options of a job do to its run.

use crate::bench::{Bench, group, random, sequential, timed};
use raidlab_sim::{JobResult, OperationResult, SimError};
use raidlab_units::{Bytes, Nanos, Sectors};
use raidlab_workload::{Engine, JobError, JobGroup, JobSpec, Pattern};

const MIB: u64 = 1 << 20;

fn run(job: JobSpec) -> JobResult {
    Bench::default().machine().run(&group([job])).expect("runs")
}

#[test]
fn each_job_of_a_group_has_its_own_results() {
    let result = Bench::default()
        .machine()
        .run(&group([
            random(Pattern::RandRead, 4, 300),
            sequential(Pattern::Write, 16 * MIB),
            random(Pattern::RandRead, 1, 70),
        ]))
        .expect("runs");
    let counts: Vec<[u64; 2]> = result
        .jobs
        .iter()
        .map(|job| [job.reads.ios, job.writes.ios])
        .collect();
    assert_eq!(counts, [[300, 0], [0, 128], [70, 0]]);
    assert_eq!(result.jobs[1].writes.bytes, Bytes(16 * MIB));
    assert_eq!((result.reads().ios, result.writes().ios), (370, 128));
    assert_eq!(result.reads().latency.len(), 370);
}

#[test]
fn clones_count_together() {
    let job = JobSpec {
        num_jobs: 3,
        ..random(Pattern::RandRead, 2, 50)
    };
    let result = run(job);
    assert_eq!((result.jobs.len(), result.reads().ios), (1, 150));
}

#[test]
fn the_ramp_is_run_but_not_measured() {
    let plain = timed(Pattern::RandRead, 4, 20);
    let ramped = JobSpec {
        ramp_time: Nanos::from_secs(10),
        ..plain.clone()
    };
    let [plain, ramped] = [run(plain), run(ramped)];
    let second = Nanos::SECOND;
    for result in [&plain, &ramped] {
        assert!(result.runtime >= second * 20 && result.runtime < second * 21);
    }
    let [plain_ios, ramped_ios] = [&plain, &ramped].map(|result| result.reads().ios);
    assert!(ramped_ios.abs_diff(plain_ios) * 20 < plain_ios);
    // The members' counters are of the same time: a disk was busy for 150 % of it. Requests that
    // were on their way when the ramp ended count, and their commands began before.
    let seen: u64 = ramped.members.iter().map(|member| member.read_ios).sum();
    assert!(seen.abs_diff(ramped_ios) <= 8, "{seen} and {ramped_ios}");
    assert_eq!(ramped.elapsed, ramped.runtime);
    for member in &ramped.members {
        assert!(member.busy > second * 15 && member.busy <= ramped.elapsed);
    }
}

#[test]
fn a_thinking_job_pauses_after_every_so_many_requests() {
    let busy = run(sequential(Pattern::Read, 32 * MIB));
    let think_time = Nanos::from_millis(50);
    let thinking = run(JobSpec {
        think_time,
        think_time_blocks: 16,
        ..sequential(Pattern::Read, 32 * MIB)
    });
    assert_eq!(thinking.reads().ios, 256);
    // 16 batches; fio pauses after the last one too (backend.c, do_io). While
    // it thinks the drive reads ahead, so that the requests take less time.
    let pauses = think_time * 16;
    assert!(thinking.runtime > pauses && thinking.runtime < busy.runtime + pauses);
}

#[test]
fn a_flush_after_every_write_costs_a_write_to_the_platters() {
    let write = random(Pattern::RandWrite, 1, 200);
    let [cached, synced] = [0, 1].map(|fsync_every| {
        run(JobSpec {
            fsync_every,
            ..write.clone()
        })
    });
    for result in [&cached, &synced] {
        // Flushes are no writes.
        assert_eq!(result.writes().ios, 200);
    }
    // Both members at random places: 14 ms or more for each.
    assert!(synced.runtime > Nanos::from_millis(12) * 200);
    assert!(cached.runtime < Nanos::from_millis(7) * 200);
    let through = run(JobSpec {
        sync_writes: true,
        ..write
    });
    assert!(through.runtime > Nanos::from_millis(12) * 200);
}

/// fio 3.33 with libaio on a file, `fsync=1`: at queue depth 8, 1076 writes in 2 s with a
/// mean completion latency of 12.99 ms, seven times the 1.86 ms that each round of a flush
/// and a write took, though a write alone takes 0.07 ms; its syncs 14.94 ms, eight times.
/// At depth 1 its writes took 0.07 ms and its syncs 0.41 ms of 0.44 ms for each round. It
/// flushed seven times less often than it wrote at depth 8.
#[test]
fn latencies_end_when_fio_takes_notice() {
    let writes = 400;
    for depth in [1, 2, 8] {
        for fdatasync in [false, true] {
            let result = run(JobSpec {
                fsync_every: u32::from(!fdatasync),
                fdatasync_every: u32::from(fdatasync),
                ..random(Pattern::RandWrite, depth, writes)
            });
            let (write, sync) = (result.writes(), result.syncs());
            assert_eq!(write.ios, writes);
            // The first ones that fill the queue are flushed once, the last one is not.
            assert_eq!(sync.ios, writes - u64::from(depth) + u64::from(depth > 1));
            #[expect(clippy::cast_precision_loss, reason = "compared within a tenth")]
            let round = result.runtime.0 as f64 / sync.ios as f64;
            let rounds = |result: &OperationResult| result.latency.mean() / round;
            let late = f64::from(depth - 1);
            assert!((rounds(&write) - late).abs() < 0.1 * late + 0.1, "{depth}");
            assert!(
                (rounds(&sync) - late - 1.0).abs() < 0.1 * late + 0.1,
                "{depth}"
            );
        }
    }
}

/// What fio waits for it takes notice of: a clone that pauses, or lets its queue run
/// low, comes to its end although it flushes.
#[test]
fn whoever_waits_for_answers_takes_notice_of_them() {
    let job = JobSpec {
        fsync_every: 3,
        ..random(Pattern::RandWrite, 8, 200)
    };
    let low = JobSpec {
        refill_at: Some(2),
        ..job.clone()
    };
    let pauses = JobSpec {
        think_time: Nanos::from_millis(1),
        think_time_blocks: 5,
        ..job
    };
    for job in [low, pauses] {
        assert_eq!(run(job).writes().ios, 200);
    }
}

/// A synchronous engine looks at the clock before each flush and after it.
#[test]
fn a_synchronous_engine_times_its_flushes_alone() {
    let write = JobSpec {
        engine: Engine::Sync,
        ..random(Pattern::RandWrite, 1, 200)
    };
    let [plain, synced] = [0, 1].map(|fsync_every| {
        run(JobSpec {
            fsync_every,
            ..write.clone()
        })
    });
    assert_eq!((plain.syncs().ios, synced.syncs().ios), (0, 199));
    let (write, sync) = (synced.writes(), synced.syncs());
    // Into the cache, and from there to the platters.
    assert!(write.latency.max() < 2_000_000, "{}", write.latency.max());
    assert!(sync.latency.mean() > 12e6, "{}", sync.latency.mean());
    let together = (write.latency.mean() + sync.latency.mean()) * 199.5;
    #[expect(clippy::cast_precision_loss, reason = "compared within a hundredth")]
    let ratio = together / synced.runtime.0 as f64;
    assert!((0.98..=1.0).contains(&ratio), "{ratio}");
}

/// Jobs without flushes, and those that flush at the end only, are as they were.
#[test]
fn without_flushes_everything_is_noticed_at_once() {
    for end_fsync in [false, true] {
        let result = run(JobSpec {
            end_fsync,
            ..random(Pattern::RandWrite, 8, 100)
        });
        assert_eq!(result.syncs().ios, 0);
        assert_eq!(result.writes().ios, 100);
    }
}

#[test]
fn the_last_flush_belongs_to_the_job() {
    let [plain, flushed] = [false, true].map(|end_fsync| {
        run(JobSpec {
            end_fsync,
            ..random(Pattern::RandWrite, 1, 20)
        })
    });
    // 20 writes fit into the cache; to the platters they take 5 ms each.
    assert!(plain.runtime < Nanos::from_millis(10), "{}", plain.runtime);
    assert!(
        flushed.runtime > Nanos::from_millis(60),
        "{}",
        flushed.runtime
    );
    // Who has written nothing flushes nothing.
    let [plain, flushed] = [false, true].map(|end_fsync| {
        run(JobSpec {
            end_fsync,
            ..random(Pattern::RandRead, 1, 20)
        })
    });
    assert_eq!(plain.runtime, flushed.runtime);
}

/// Disks that keep nothing in a volatile cache answer a flush as it comes, also while the machine
/// hands over the answer of the job's last write.
#[test]
fn a_last_flush_that_is_answered_at_once_ends_the_job() {
    for depth in [1, 8] {
        let job = JobSpec {
            end_fsync: true,
            ..random(Pattern::RandWrite, depth, 100)
        };
        let bench = Bench {
            flash: true,
            ..Bench::default()
        };
        let result = bench.machine().run(&group([job])).expect("it ends");
        assert_eq!(result.jobs[0].writes.ios, 100);
    }
}

/// A job of ten reads beside one that thinks for ever.
fn unequal(stop_together: bool) -> JobGroup {
    let endless = JobSpec {
        think_time: Nanos::from_secs(5),
        ..timed(Pattern::RandRead, 1, 60)
    };
    JobGroup {
        jobs: vec![random(Pattern::RandRead, 1, 10), endless],
        stop_together,
    }
}

#[test]
fn the_first_to_end_ends_all_where_they_stop_together() {
    let [apart, together] = [false, true].map(|stop| {
        Bench::default()
            .machine()
            .run(&unequal(stop))
            .expect("runs")
    });
    assert_eq!(apart.jobs[0].reads.ios, 10);
    assert!(apart.runtime >= Nanos::from_secs(60));
    assert!(apart.jobs[1].reads.ios >= 10);
    assert_eq!(together.jobs[0].reads.ios, 10);
    assert_eq!(together.jobs[1].reads.ios, 1);
    assert!(together.runtime < Nanos::from_secs(1));
}

/// What a stopped job still had in its calendar must neither stop the clock
/// nor give the next job a request too many.
#[test]
fn a_stopped_job_leaves_nothing_behind() {
    let mut machine = Bench::default().machine();
    machine.run(&unequal(true)).expect("runs");
    let ended = machine.now();
    machine
        .wait(Nanos::from_secs(30), &mut |_| true)
        .expect("waits");
    assert_eq!(machine.now(), ended + Nanos::from_secs(30));

    let follow_on = |before: Option<JobGroup>| {
        let mut machine = Bench::default().machine();
        if let Some(before) = before {
            machine.run(&before).expect("runs");
        }
        let result = machine
            .run(&group([timed(Pattern::RandRead, 1, 20)]))
            .expect("runs");
        // One in flight at a time: latencies and turnarounds fill the run.
        let reads = result.reads();
        let busy = reads.latency.mean() * reads.ios as f64;
        busy / result.runtime.0 as f64
    };
    assert!(follow_on(None) < 1.0);
    let after = follow_on(Some(unequal(true)));
    assert!(after < 1.0, "{after} in flight on average");
}

#[test]
fn a_job_that_does_not_fit_is_refused_by_name() {
    let bench = Bench {
        capacity: Some(Sectors(2 * MIB)),
        ..Bench::default()
    };
    let job = JobSpec {
        name: "too-far".to_owned(),
        offset: Bytes(1 << 30),
        ..JobSpec::default()
    };
    let mut machine = bench.machine();
    let error = machine.run(&group([job])).expect_err("behind the end");
    let expected = SimError::Job {
        job: "too-far".to_owned(),
        source: JobError::OffsetBehindEnd {
            clone: 0,
            offset: Bytes(1 << 30),
            what: "the device",
            end: Bytes(1 << 30),
        },
    };
    assert_eq!(error, expected);
    assert_eq!(error.to_string(), "job `too-far` cannot run");
    // The machine is none the worse.
    let result = machine.run(&group([random(Pattern::RandRead, 1, 10)]));
    assert_eq!(result.expect("runs").reads().ios, 10);
    let none = machine.run(&group([JobSpec {
        io_depth: 0,
        ..JobSpec::default()
    }]));
    assert!(matches!(none, Err(SimError::Job { .. })));
}

#[test]
fn requests_off_the_sectors_move_whole_ones() {
    let job = JobSpec {
        block_size: Bytes(700),
        size: Some(Bytes(7_000)),
        ..JobSpec::default()
    };
    let result = run(job);
    assert_eq!(
        (result.reads().ios, result.reads().bytes),
        (10, Bytes(7_000))
    );
    let bytes: u64 = result
        .members
        .iter()
        .map(|member| member.read_bytes.0)
        .sum();
    assert!(bytes > 7_000 && bytes.is_multiple_of(512));
}

/// Virtual years pass in a minute: whoever watches must be able to end it, and
/// sees time go on.
#[test]
fn a_watched_job_tells_the_time_and_can_be_ended() {
    let mut machine = Bench::default().machine();
    let mut seen = Vec::new();
    let end = machine.run_watched(
        &group([timed(Pattern::RandRead, 4, 1_000_000)]),
        &mut |now| {
            seen.push(now);
            seen.len() < 3
        },
    );
    assert_eq!(end.err(), Some(raidlab_sim::SimError::Interrupted));
    assert_eq!(seen.len(), 3);
    assert!(seen.is_sorted() && seen[0] < seen[2]);
}
