//! The arguments are read back by the reader of fio's command lines.

use super::{ArgumentError, Invocation, LogRequest, Place};
use proptest::prelude::*;
use raidlab_units::{Bytes, Nanos};
use raidlab_workload::{Engine, JobGroup, JobSpec, Pattern, parse_command_line_options};

fn invocation<'a>(group: &'a JobGroup, place: Place<'a>) -> Invocation<'a> {
    Invocation {
        group,
        place,
        asynchronous_engine: "libaio",
        synchronous_engine: "psync",
        clock_source: None,
        report_together: false,
        logs: None,
        extra: &[],
    }
}

fn one_job(job: JobSpec) -> JobGroup {
    JobGroup {
        jobs: vec![job],
        stop_together: false,
    }
}

#[test]
fn every_option_has_its_value() {
    let group = one_job(JobSpec {
        name: String::from("31_32rr4k"),
        pattern: Pattern::RandRead,
        io_depth: 32,
        engine: Engine::Libaio,
        file_size: Some(Bytes(3 << 40)),
        offset: Bytes(10 << 20),
        runtime: Some(Nanos::from_secs(60)),
        time_based: true,
        ramp_time: Nanos::from_millis(1500),
        end_fsync: true,
        ..JobSpec::default()
    });
    let extra = [(String::from("direct"), String::from("1"))];
    let arguments = Invocation {
        clock_source: Some("clock_gettime"),
        report_together: true,
        logs: Some(LogRequest {
            prefix: "/run/31",
            average_ms: 1000,
        }),
        extra: &extra,
        ..invocation(&group, Place::File("/dev/disk/by-path/pci-0000:00:1f.2"))
    }
    .arguments()
    .expect("a job that runs");
    assert_eq!(
        arguments.join("\n"),
        r"--output-format=json+
--filename=/dev/disk/by-path/pci-0000\:00\:1f.2
--clocksource=clock_gettime
--group_reporting=1
--write_bw_log=/run/31
--write_iops_log=/run/31
--write_lat_log=/run/31
--log_avg_msec=1000
--direct=1
--name=31_32rr4k
--rw=randread
--bs=4096
--ioengine=libaio
--iodepth=32
--numjobs=1
--filesize=3298534883328
--offset=10485760
--runtime=60
--time_based=1
--ramp_time=1500ms
--end_fsync=1"
    );
}

#[test]
fn what_fio_would_take_otherwise_is_refused() {
    let job = JobSpec::default();
    let group = one_job(job.clone());
    let in_folder = invocation(&group, Place::Folder("/raid")).arguments();
    assert_eq!(
        in_folder.expect_err("no size").to_string(),
        "job `job` needs a `size`: it works on a file in a folder"
    );
    let named = one_job(JobSpec {
        name: String::from("global_1"),
        ..job.clone()
    });
    assert!(matches!(
        invocation(&named, Place::File("/dev/md0")).arguments(),
        Err(ArgumentError::GlobalName { .. })
    ));
    let timed = one_job(JobSpec {
        runtime: Some(Nanos(1)),
        ..job
    });
    assert!(matches!(
        invocation(&timed, Place::File("/dev/md0")).arguments(),
        Err(ArgumentError::Time { .. })
    ));
    for (name, is_twice) in [
        ("bs", true),
        ("output-format", true),
        ("", false),
        ("a b", false),
    ] {
        let extra = [(name.to_owned(), String::new())];
        let error = Invocation {
            extra: &extra,
            ..invocation(&group, Place::File("/dev/md0"))
        }
        .arguments()
        .expect_err(name);
        assert_eq!(
            matches!(error, ArgumentError::Twice { .. }),
            is_twice,
            "{name}"
        );
    }
    let empty = JobGroup::default();
    assert_eq!(
        invocation(&empty, Place::File("/dev/md0")).arguments(),
        Err(ArgumentError::NoJob)
    );
}

fn jobs() -> impl Strategy<Value = JobSpec> {
    let pattern = prop::sample::select(vec![
        Pattern::Read,
        Pattern::Write,
        Pattern::RandRead,
        Pattern::RandWrite,
        Pattern::ReadWrite,
        Pattern::RandRw,
    ]);
    let size = || prop::option::of((1_u64 << 24..1 << 44).prop_map(Bytes));
    let times = (
        prop::option::of((1_u64..10_000_000_000).prop_map(Nanos::from_micros)),
        any::<bool>(),
        (0_u64..5_000_000).prop_map(Nanos::from_micros),
        (0_u64..5_000_000).prop_map(Nanos::from_micros),
        1_u32..9,
    );
    let counts = (1_u32..300, 1_u32..99, 1_u32..5, 0_u32..101);
    let flags = prop::array::uniform6(any::<bool>());
    let sizes = (
        (0_u32..12).prop_map(|power| Bytes(512 << power)),
        size(),
        size(),
        size(),
        0_u64..1 << 40,
        0_u64..1 << 30,
    );
    let limits = (
        prop::option::of(1_u64..1 << 40),
        prop::option::of(any::<u64>()),
        0_u32..9,
        0_u32..9,
    );
    (pattern, times, counts, flags, sizes, limits).prop_map(
        |(pattern, times, counts, flags, sizes, limits)| JobSpec {
            name: String::from("a job"),
            pattern,
            block_size: sizes.0,
            io_depth: counts.0,
            num_jobs: counts.1,
            size: sizes.1,
            io_size: sizes.2,
            file_size: sizes.3,
            offset: Bytes(sizes.4),
            offset_increment: Bytes(sizes.5),
            loops: counts.2,
            request_limit: limits.0,
            runtime: times.0,
            time_based: times.1 && times.0.is_some(),
            ramp_time: times.2,
            read_mix_percent: if pattern.is_mixed() { counts.3 } else { 50 },
            engine: if flags[0] {
                Engine::Libaio
            } else {
                Engine::Sync
            },
            reduced_clock: flags[1],
            think_time: times.3,
            think_time_blocks: times.4,
            random_seed: limits.1,
            random_map: flags[2],
            fsync_every: limits.2,
            fdatasync_every: limits.3,
            end_fsync: flags[3],
            sync_writes: flags[4],
            stonewall: false,
        },
    )
}

proptest! {
    #[test]
    fn the_arguments_mean_the_jobs(
        jobs in prop::collection::vec(jobs(), 1..4),
        stop_together in any::<bool>(),
    ) {
        let group = JobGroup { jobs, stop_together };
        let arguments = invocation(&group, Place::File("/dev/md0"))
            .arguments()
            .expect("times in microseconds");
        let read = parse_command_line_options("arguments", &arguments).expect("fio's options");
        prop_assert_eq!(read.groups, vec![group]);
    }
}
