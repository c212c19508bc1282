use super::{Engine, JobError, JobSpec, group_jobs};
use raidlab_units::{Bytes, Nanos};

const GIB: u64 = 1 << 30;

#[test]
fn the_region_is_fios() {
    let device = Bytes(4_000_787_030_016);
    // offset, offset_increment, size, filesize, clone; start, length.
    let cases = [
        (
            (10 << 20, 0, None, Some(3 << 40), 0),
            (10 << 20, (3 << 40) - (10 << 20)),
        ),
        ((32 * GIB, 0, Some(8 * GIB), None, 0), (32 * GIB, 8 * GIB)),
        ((GIB, 2 * GIB, Some(GIB), None, 3), (7 * GIB, GIB)),
        ((0, 0, None, None, 0), (0, device.0)),
        ((GIB, 0, None, None, 0), (GIB, device.0 - GIB)),
        ((0, 0, Some(8 << 40), None, 0), (0, device.0)),
        ((GIB, 0, Some(GIB), Some(4 * GIB), 0), (GIB, 3 * GIB)),
    ];
    for ((offset, increment, size, file_size, clone), (start, length)) in cases {
        let job = JobSpec {
            offset: Bytes(offset),
            offset_increment: Bytes(increment),
            size: size.map(Bytes),
            file_size: file_size.map(Bytes),
            ..JobSpec::default()
        };
        assert_eq!(job.region(clone, device), Ok((Bytes(start), Bytes(length))));
    }
}

#[test]
fn a_region_behind_the_end_is_refused() {
    let job = JobSpec {
        offset: Bytes(3040 * GIB),
        size: Some(Bytes(4 * GIB)),
        ..JobSpec::default()
    };
    let error = job.region(0, Bytes(1 << 40)).expect_err("behind the end");
    assert_eq!(
        error.to_string(),
        "clone 0 starts at 2.97 TiB, but the device ends at 1 TiB"
    );
    let job = JobSpec {
        offset_increment: Bytes(u64::MAX),
        ..JobSpec::default()
    };
    assert!(matches!(
        job.region(2, Bytes(1 << 40)),
        Err(JobError::TooLarge { .. })
    ));
}

#[test]
fn contradictions_are_found() {
    let cases = [
        (
            JobSpec {
                num_jobs: 0,
                ..JobSpec::default()
            },
            "`numjobs` must be at least 1",
        ),
        (
            JobSpec {
                read_mix_percent: 101,
                ..JobSpec::default()
            },
            "`rwmixread` is 101, but a percentage ends at 100",
        ),
        (
            JobSpec {
                size: Some(Bytes(512)),
                ..JobSpec::default()
            },
            "`size` is 512 B, less than one block of 4 KiB",
        ),
        (
            JobSpec {
                time_based: true,
                runtime: Some(Nanos::ZERO),
                ..JobSpec::default()
            },
            "`time_based` needs a `runtime`",
        ),
    ];
    for (job, message) in cases {
        assert_eq!(job.validate().expect_err(message).to_string(), message);
    }
    assert_eq!(JobSpec::default().validate(), Ok(()));
}

#[test]
fn a_synchronous_engine_has_one_request_per_clone() {
    let job = JobSpec {
        io_depth: 32,
        num_jobs: 4,
        engine: Engine::Libaio,
        ..JobSpec::default()
    };
    assert_eq!(job.queue_depth(), 128);
    let job = JobSpec {
        engine: Engine::Sync,
        ..job
    };
    assert_eq!(job.queue_depth(), 4);
}

#[test]
fn a_stonewall_starts_a_group() {
    let job = |stonewall| JobSpec {
        stonewall,
        ..JobSpec::default()
    };
    let sizes = |walls: &[bool]| -> Vec<usize> {
        let jobs = walls.iter().map(|&wall| job(wall)).collect();
        let groups = group_jobs(jobs, true);
        assert!(groups.iter().all(|group| group.stop_together));
        groups.iter().map(|group| group.jobs.len()).collect()
    };
    assert_eq!(sizes(&[false, false, true, false]), [2, 2]);
    assert_eq!(sizes(&[true, true]), [1, 1]);
    assert_eq!(sizes(&[]), [0; 0]);
}
