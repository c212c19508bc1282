//! What holds jobs back: rates, pauses, batches, shares and each other.

use crate::bench::{Bench, group, random, sequential, timed};
use raidlab_sim::{JobResult, MemberStatistics};
use raidlab_units::{Bytes, Nanos};
use raidlab_workload::{
    ArrivalProcess, Direction, Engine, ExitWhat, FioJobs, Flow, JobGroup, JobSpec, Pattern,
    Permission, Rate, Sizes, Thinking, Verify,
};

const MIB: u64 = 1 << 20;

fn run_group(group: &JobGroup) -> JobResult {
    Bench::default().machine().run(group).expect("runs")
}

fn run(job: JobSpec) -> JobResult {
    run_group(&group([job]))
}

fn rate(reads: u64) -> Rate {
    Rate {
        per_second: [reads, 0, 0],
        ..Rate::default()
    }
}

#[test]
fn a_rate_is_kept_whatever_the_depth() {
    for depth in [1, 8] {
        // 50 requests a second of a drive that does more.
        let result = run(JobSpec {
            rate: Some(rate(50 * 4096)),
            ..timed(Pattern::RandRead, depth, 10)
        });
        let ios = result.reads().ios;
        assert!((490..=505).contains(&ios), "{depth}: {ios}");
    }
}

#[test]
fn each_direction_of_a_mixed_job_keeps_its_own_rate() {
    // Requests a second of reads and of writes; what is not limited is not held up.
    for rates in [[50, 5], [5, 50], [5, 0]] {
        let result = run(JobSpec {
            rate: Some(Rate {
                per_second: [rates[0] * 4096, rates[1] * 4096, 0],
                ..Rate::default()
            }),
            ..timed(Pattern::RandRw, 1, 20)
        });
        let ios = [result.reads().ios, result.writes().ios];
        assert!(ios[0].abs_diff(rates[0] * 20) <= 3, "{rates:?} {ios:?}");
        match rates[1] {
            0 => assert!(ios[1] > 1_000, "{rates:?} {ios:?}"),
            rate => assert!(ios[1].abs_diff(rate * 20) <= 3, "{rates:?} {ios:?}"),
        }
    }
}

#[test]
fn a_poisson_process_counts_requests_of_its_direction() {
    let result = run(JobSpec {
        sizes: Some([4096, 65_536, 4096].map(|size| Sizes::One(Bytes(size)))),
        rate: Some(Rate {
            per_second: [0, 5 * 65_536, 0],
            process: ArrivalProcess::Poisson,
            ..Rate::default()
        }),
        ..timed(Pattern::RandRw, 1, 60)
    });
    let ios = result.writes().ios;
    assert!((240..=360).contains(&ios), "{ios}");
}

#[test]
fn a_poisson_process_has_its_mean_and_is_no_clock() {
    let paced = |process: ArrivalProcess| {
        run(JobSpec {
            rate: Some(Rate {
                process,
                offload: true,
                ..rate(50 * 4096)
            }),
            ..timed(Pattern::RandRead, 32, 60)
        })
    };
    let poisson = paced(ArrivalProcess::Poisson);
    let linear = paced(ArrivalProcess::Linear);
    let ios = poisson.reads().ios;
    assert!((2_800..=3_200).contains(&ios), "{ios}");
    // Requests that come in bunches wait for each other.
    let mean = |result: &JobResult| result.reads().latency.mean();
    assert!(mean(&poisson) > mean(&linear) * 1.02);
}

#[test]
fn a_job_below_its_least_rate_ends() {
    let least = |bytes: u64| {
        run(JobSpec {
            rate: Some(Rate {
                least: [bytes, 0, 0],
                ..Rate::default()
            }),
            ..timed(Pattern::RandRead, 1, 20)
        })
    };
    assert!(least(1024).runtime >= Nanos::from_secs(20));
    let ended = least(100 * MIB).runtime;
    assert!((3..5).contains(&(ended.0 / 1_000_000_000)), "{ended}");
}

/// One least rate in a job file counts for all directions; fio looks at those in which the
/// job has done anything, and for `rate_iops_min` counts requests of whatever size.
#[test]
fn a_least_rate_says_nothing_of_directions_that_a_job_has_not() {
    let seconds = |options: &str| {
        let line = format!("--size=1g --runtime=20 --time_based {options}");
        let words: Vec<&str> = line.split(' ').collect();
        let jobs = FioJobs::from_command_line("a", &words, &Permission::default());
        let mut file = jobs.and_then(|jobs| jobs.model()).expect("valid");
        run_group(&file.groups.remove(0)).runtime.0 / 1_000_000_000
    };
    assert_eq!(seconds("--rw=randread --rate_min=1k"), 20);
    assert_eq!(seconds("--rw=randwrite --rate_iops_min=1"), 20);
    let split = "--rw=randread --bssplit=512/1:64k/99";
    let many = seconds(&format!("{split} --rate_iops_min=1000"));
    assert!((3..5).contains(&many), "{many}");
    // The least rate counts two seconds after the ramp time, not within it.
    let late = seconds("--rw=randread --rate_min=100m --ramp_time=4");
    assert!((3..5).contains(&late), "{late}");
}

#[test]
fn a_deep_job_that_thinks_empties_its_queue() {
    let thinking = |thinking: Thinking| {
        let job = JobSpec {
            think_time: Nanos::from_millis(500),
            think_time_blocks: 32,
            thinking,
            ..random(Pattern::RandRead, 8, 320)
        };
        run(job).runtime
    };
    let complete = thinking(Thinking::default());
    assert!(complete >= Nanos::from_secs(5), "{complete}");
    let issued = thinking(Thinking {
        counts_issues: true,
        ..Thinking::default()
    });
    assert!(issued >= Nanos::from_secs(5), "{issued}");
    let by_time = thinking(Thinking {
        after: Nanos::from_secs(1000),
        only_by_time: true,
        ..Thinking::default()
    });
    assert!(by_time < Nanos::from_secs(5), "{by_time}");
}

/// A job that works for a second and then pauses for half of one, with a rate that lets it
/// catch up, does 600 requests in six seconds in fio 3.33: its first pause comes after 1.5 s.
#[test]
fn the_first_pause_by_time_comes_later_by_its_length() {
    let result = run(JobSpec {
        think_time: Nanos::from_millis(500),
        thinking: Thinking {
            after: Nanos::SECOND,
            only_by_time: true,
            ..Thinking::default()
        },
        rate: Some(rate(100 * 4096)),
        block_size: Bytes(4096),
        runtime: Some(Nanos::from_secs(6)),
        time_based: true,
        ..sequential(Pattern::Read, 64 * MIB)
    });
    let ios = result.reads().ios;
    assert!((595..=601).contains(&ios), "{ios}");
}

#[test]
fn jobs_begin_after_their_delay_and_after_the_job_they_wait_for() {
    let named = |name: &str, job: JobSpec| JobSpec {
        name: name.to_owned(),
        ..job
    };
    let alone = run(sequential(Pattern::Read, 64 * MIB)).runtime;
    let delayed = run(JobSpec {
        start_delay: Nanos::from_secs(3),
        ..sequential(Pattern::Read, 64 * MIB)
    });
    // fio 3.33 gives a job that begins later the run time that it had itself, and a group that
    // of the job that ran longest.
    let differ = delayed.runtime.0.abs_diff(alone.0);
    assert!(differ < 50_000_000, "{differ} ns");
    let late = delayed.elapsed.saturating_sub(delayed.runtime);
    assert_eq!(late, Nanos::from_secs(3));
    let waiting = run_group(&group([
        named("first", timed(Pattern::RandRead, 1, 2)),
        JobSpec {
            wait_for: Some("first".to_owned()),
            ..named("second", timed(Pattern::RandRead, 1, 3))
        },
    ]));
    assert!(waiting.elapsed >= Nanos::from_secs(5));
    assert_eq!(waiting.runtime.0 / 1_000_000_000, 3);
    let [first, second] = [0, 1].map(|job: usize| waiting.jobs[job].reads.ios);
    assert!(first > 0 && second > first, "{first} {second}");
    // What only one of two jobs does takes that one's time.
    let apart = run_group(&group([
        timed(Pattern::RandRead, 1, 4),
        timed(Pattern::RandWrite, 1, 2),
    ]));
    let reads = apart.runtime_of(Direction::Read);
    let writes = apart.runtime_of(Direction::Write);
    assert_eq!([reads, writes].map(|time| time.0 / 1_000_000_000), [4, 2]);
    assert_eq!(apart.runtime, reads);
}

#[test]
fn a_job_that_begins_later_has_its_own_ramp_time() {
    let late = |ramp_time: Nanos| JobSpec {
        start_delay: Nanos::from_secs(5),
        ramp_time,
        ..timed(Pattern::RandRead, 1, 4)
    };
    let [plain, ramped] = [Nanos::ZERO, Nanos::from_secs(4)].map(|ramp| run(late(ramp)));
    let ratio = ramped.reads().ios as f64 / plain.reads().ios as f64;
    assert!((0.9..1.1).contains(&ratio), "{ratio}: four seconds of each");
    assert_eq!(ramped.runtime.0 / 1_000_000_000, 4);
}

#[test]
fn jobs_share_by_their_flow() {
    let part = |weight: u32| JobSpec {
        flow: Some(Flow {
            id: 0,
            weight,
            sleep: Nanos::ZERO,
        }),
        ..timed(Pattern::RandRead, 4, 20)
    };
    let result = run_group(&group([part(1), part(4)]));
    let [one, four] = [0, 1].map(|job: usize| result.jobs[job].reads.ios);
    assert!((one * 4).abs_diff(four) * 20 < four, "{one} {four}");
}

#[test]
fn only_those_end_together_that_are_to() {
    let endless = || timed(Pattern::RandRead, 1, 30);
    let ends = |exit_what: ExitWhat| {
        let first = JobSpec {
            exit_what,
            ..random(Pattern::RandRead, 1, 10)
        };
        let other = JobSpec {
            report_group: 1,
            ..endless()
        };
        run_group(&JobGroup {
            jobs: vec![first, other],
            stop_together: true,
        })
        .runtime
    };
    assert!(ends(ExitWhat::Group) >= Nanos::from_secs(30));
    assert!(ends(ExitWhat::Stonewall) < Nanos::from_secs(5));
}

#[test]
fn batches_of_completions_leave_the_drive_less_to_choose_from() {
    let deep = |refill_at: Option<u32>| {
        run(JobSpec {
            refill_at,
            ..timed(Pattern::RandRead, 32, 30)
        })
        .reads()
        .ios
    };
    let (full, batched) = (deep(None), deep(Some(1)));
    assert!(batched * 10 < full * 9, "{batched} {full}");
}

/// What more than two requests that are submitted together have side by side is one command.
#[test]
fn neighbours_that_are_handed_over_together_are_one_command() {
    let commands = |pattern, batch: u32, refill_at| {
        let result = run(JobSpec {
            engine: Engine::Libaio,
            io_depth: 32,
            block_size: Bytes(4096),
            submit_batch: batch,
            refill_at,
            ..sequential(pattern, 4 * MIB)
        });
        let (reads, writes) = (result.reads().ios, result.writes().ios);
        assert_eq!(reads + writes, 1024, "{pattern:?} {batch}");
        // Each write is one of both members.
        let commands = |member: &MemberStatistics| 2 * member.read_ios + member.write_ios;
        result.members.iter().map(commands).sum::<u64>() / 2
    };
    for pattern in [Pattern::Read, Pattern::Write] {
        assert_eq!(commands(pattern, 1, Some(16)), 1024);
        assert_eq!(commands(pattern, 2, Some(16)), 1024);
        assert_eq!(commands(pattern, 16, Some(16)), 64);
        // fio does not wait for a full batch where it has nothing else to do.
        let commands = commands(pattern, 24, Some(16));
        assert!((43..=64).contains(&commands), "{commands}");
    }
}

#[test]
fn null_reaches_no_disk_and_takes_the_host_s_time() {
    let result = run(JobSpec {
        engine: Engine::Null,
        ..random(Pattern::RandRead, 1, 1_000)
    });
    assert_eq!(result.reads().ios, 1_000);
    assert!(result.members.iter().all(|member| member.read_ios == 0));
    assert!(result.runtime > Nanos::ZERO);
}

#[test]
fn what_is_verified_is_read_from_the_disks() {
    let result = run(JobSpec {
        verify: Some(Verify {
            backlog: 0,
            batch: 0,
        }),
        ..sequential(Pattern::Write, 16 * MIB)
    });
    assert_eq!((result.writes().ios, result.reads().ios), (128, 128));
    assert_eq!(result.reads().bytes, Bytes(16 * MIB));
}

/// fio's clocks of writing and of reading back follow each other; nothing of the one is in
/// flight beside the other, and a flush in the end comes before what is read back.
#[test]
fn writes_and_what_is_read_back_of_them_have_each_their_own_time() {
    let plain = JobSpec {
        end_fsync: true,
        ..random(Pattern::RandWrite, 4, 40)
    };
    let verify = |backlog: u64| {
        run(JobSpec {
            verify: Some(Verify { backlog, batch: 0 }),
            ..plain.clone()
        })
    };
    let [alone, verified, by_and_by] = [run(plain.clone()), verify(0), verify(8)];
    assert_eq!((verified.writes().ios, verified.reads().ios), (40, 40));
    let times = |result: &JobResult| -> [Nanos; 2] {
        [Direction::Write, Direction::Read].map(|direction| result.runtime_of(direction))
    };
    let [writes, reads] = times(&verified);
    let apart = writes.0.abs_diff(alone.runtime.0);
    assert!(apart < 1_000_000, "{writes} alone {}", alone.runtime);
    assert_eq!(writes + reads, verified.runtime);
    assert!(reads > Nanos::from_millis(5) * 10, "{reads}");
    let [writes, reads] = times(&by_and_by);
    assert_eq!(reads, by_and_by.runtime);
    assert!(writes <= reads && writes > Nanos::from_millis(5) * 10);
}
