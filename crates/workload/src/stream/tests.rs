//! The stream against plain lists of what fio does.

mod flushes;

use super::{Direction, IoUnit, RequestStream};
use crate::job::{JobError, JobSpec, Pattern};
use crate::{Distribution, Engine, FioJobs, Permission, Runs, Strides};
use proptest::prelude::*;
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos};
use std::collections::BTreeMap;

const BLOCK: u64 = 4096;

fn stream(job: &JobSpec, device: u64) -> RequestStream {
    job.request_stream(0, Bytes(device), Stream::new(1))
        .expect("a valid job")
}

/// At most `limit` requests.
fn units(stream: &mut RequestStream, limit: usize) -> Vec<IoUnit> {
    std::iter::from_fn(|| stream.next_unit())
        .take(limit)
        .collect()
}

/// The blocks of the first eleven requests; `f` is a flush.
fn sketch(job: &JobSpec, device: u64) -> String {
    let words: Vec<String> = units(&mut stream(job, device), 11)
        .iter()
        .map(|unit| match unit.direction {
            Direction::Flush => String::from("f"),
            _ => (unit.offset.0 / BLOCK).to_string(),
        })
        .collect();
    words.join(" ")
}

fn blocks(count: u64) -> Option<Bytes> {
    Some(Bytes(count * BLOCK))
}

#[test]
fn sequential_passes_are_fios() {
    let cases = [
        ("", "0 1 2"),
        ("--offset=8k", "2 3 4"),
        ("--loops=2", "0 1 2 0 1 2"),
        ("--time_based --runtime=1", "0 1 2 0 1 2 0 1 2 0 1"),
        ("--number_ios=2", "0 1"),
        (
            "--time_based --runtime=1 --number_ios=4",
            "0 1 2 0 1 2 0 1 2 0 1",
        ),
        ("--io_size=8k", "0 1"),
        ("--io_size=20k", "0 1 2 0 1"),
        // The region ends with the file, the amount is `size`: the next pass goes on,
        ("--filesize=24k --loops=2", "0 1 2 3 4 5"),
        // up to the region's end.
        ("--filesize=20k --io_size=28k", "0 1 2 3 4 0 1"),
        ("--rw=read --filesize=20k --io_size=28k", "0 1 2 3 4 0 1"),
        // More loops than `io_size` takes, and fewer.
        ("--io_size=16k --loops=3", "0 1 2 0 1 2 0 1 2"),
        ("--io_size=28k --loops=2", "0 1 2 0 1 2 0 1 2"),
        // Each loop has so many requests.
        ("--number_ios=2 --loops=2", "0 1 2 0"),
        // Half a block too many makes one in two loops.
        ("--size=10k --loops=2", "0 1 2 0 1"),
        (
            "--size=28k --fsync=2 --fdatasync=3",
            "0 1 f 2 f 3 f 4 5 f 6",
        ),
    ];
    for (options, expected) in cases {
        let words = format!("--rw=write --size=12k {options}");
        let words: Vec<&str> = words.split_whitespace().collect();
        let jobs = FioJobs::from_command_line("x", &words, &Permission::default());
        let jobs = jobs.and_then(|jobs| jobs.model()).expect(options);
        let sketch = sketch(&jobs.groups[0].jobs[0], 100 * BLOCK);
        assert_eq!(sketch, expected, "{options}");
    }
}

#[test]
fn each_direction_of_a_mix_has_its_own_position() {
    let job = JobSpec {
        pattern: Pattern::ReadWrite,
        size: blocks(100),
        ..JobSpec::default()
    };
    let mut next = [0; 2];
    for unit in units(&mut stream(&job, 100 * BLOCK), 200) {
        let next = &mut next[usize::from(unit.direction == Direction::Write)];
        assert_eq!(unit.offset.0, *next * BLOCK);
        *next += 1;
    }
    assert_eq!(next[0] + next[1], 100);
    assert!(next[0] > 20 && next[1] > 20);
}

#[test]
fn the_last_block_sticks_out_unless_the_device_ends() {
    let job = JobSpec {
        size: Some(Bytes(2 * BLOCK + 1)),
        ..JobSpec::default()
    };
    assert_eq!(sketch(&job, 3 * BLOCK), "0 1 2");
    assert_eq!(sketch(&job, 3 * BLOCK - 1), "0 1");
    let random = JobSpec {
        pattern: Pattern::RandRead,
        ..job
    };
    assert_eq!(units(&mut stream(&random, 3 * BLOCK), 10).len(), 2);
    let too_small = JobSpec::default().request_stream(0, Bytes(BLOCK - 1), Stream::new(1));
    assert!(matches!(too_small, Err(JobError::NoRoom { .. })));
}

#[test]
fn skipping_is_drawing_and_forgetting() {
    let job = JobSpec {
        size: blocks(10),
        loops: 2,
        offset: Bytes(BLOCK),
        ..JobSpec::default()
    };
    let mut skipped = stream(&job, 100 * BLOCK);
    let mut drawn = skipped.clone();
    let at = |block: u64, left: u64| Some((Bytes(block * BLOCK), Bytes(left * BLOCK)));
    assert_eq!(skipped.sequential_remaining(), at(1, 10));
    assert_eq!(skipped.skip_sequential(Bytes(3 * BLOCK + 5)), 3);
    units(&mut drawn, 3);
    assert_eq!(skipped, drawn);
    assert_eq!(skipped.sequential_remaining(), at(4, 7));
    // No further than the end of the pass.
    assert_eq!(skipped.skip_sequential(Bytes(u64::MAX)), 7);
    assert_eq!(skipped.sequential_remaining(), at(1, 10));
    assert_eq!(skipped.skip_sequential(Bytes(2 * BLOCK)), 2);
    units(&mut drawn, 9);
    assert_eq!(skipped, drawn);
    assert_eq!(skipped.skip_sequential(Bytes(u64::MAX)), 8);
    assert_eq!(skipped.next_unit(), None);
    assert_eq!(skipped.sequential_remaining(), at(1, 0));
}

#[test]
fn only_plain_sequential_streams_can_be_skipped() {
    let jobs = [
        JobSpec {
            pattern: Pattern::RandRead,
            ..JobSpec::default()
        },
        JobSpec {
            pattern: Pattern::ReadWrite,
            ..JobSpec::default()
        },
        JobSpec {
            pattern: Pattern::Write,
            fsync_every: 1,
            ..JobSpec::default()
        },
    ];
    for job in jobs {
        let mut stream = stream(&job, 100 * BLOCK);
        assert_eq!(stream.sequential_remaining(), None);
        assert_eq!(stream.skip_sequential(Bytes(10 * BLOCK)), 0);
        assert_eq!(units(&mut stream, 5).len(), 5);
    }
}

/// Reads and writes of a mixed sequential job that goes on by time have the whole region,
/// each direction in its own order.
#[test]
fn both_directions_go_through_the_whole_region() {
    let job = JobSpec {
        pattern: Pattern::ReadWrite,
        time_based: true,
        runtime: Some(Nanos::SECOND),
        size: blocks(8),
        ..JobSpec::default()
    };
    let mut stream = job
        .request_stream(0, Bytes(8 * BLOCK), Stream::new(1))
        .expect("a valid job");
    let mut next = [0; 2];
    for unit in units(&mut stream, 100) {
        let own = &mut next[unit.direction.index().expect("no flush")];
        assert_eq!(unit.offset.0, *own % 8 * BLOCK);
        *own += 1;
    }
    assert!(next.iter().all(|&requests| requests > 16), "{next:?}");
}

/// A gap of any length leads behind the region's end, and on from its start.
#[test]
fn a_gap_without_end_is_survived() {
    let zones = |length: u64, skip: u64| JobSpec {
        strides: Some(Strides {
            amount: Bytes(2 * BLOCK),
            length: Bytes(length),
            skip: Bytes(skip),
        }),
        io_size: blocks(5),
        ..JobSpec::default()
    };
    assert_eq!(sketch(&zones(2 * BLOCK, u64::MAX), 8 * BLOCK), "0 1 0 1 0");
    assert_eq!(sketch(&zones(u64::MAX, BLOCK), 8 * BLOCK), "0 1 0 1 0");
}

/// With each zone both directions of a mix begin anew, and so the whole amount is done.
#[test]
fn both_directions_of_a_mix_go_from_zone_to_zone() {
    let job = JobSpec {
        pattern: Pattern::ReadWrite,
        strides: Some(Strides {
            amount: Bytes(4 * BLOCK),
            length: Bytes(4 * BLOCK),
            skip: Bytes(4 * BLOCK),
        }),
        size: blocks(40),
        ..JobSpec::default()
    };
    let units = units(&mut stream(&job, 800 * BLOCK), 100);
    assert_eq!(units.len(), 40);
    for (zone, requests) in units.chunks(4).enumerate() {
        let mut next = [zone as u64 * 8; 2];
        for unit in requests {
            let own = &mut next[usize::from(unit.direction == Direction::Write)];
            assert_eq!(unit.offset.0, *own * BLOCK);
            *own += 1;
        }
    }
}

/// Half of the requests would go to a place that is not there: fio ends such a job.
#[test]
fn zones_behind_the_region_are_refused() {
    let zones = |lengths: [u64; 2]| JobSpec {
        pattern: Pattern::RandRead,
        distribution: Distribution::ZonedByLength(vec![
            (50, Bytes(lengths[0])),
            (50, Bytes(lengths[1])),
        ]),
        ..JobSpec::default()
    };
    let stream = |job: JobSpec| job.request_stream(0, Bytes(8 * BLOCK), Stream::new(1));
    assert!(stream(zones([2 * BLOCK, 6 * BLOCK])).is_ok());
    let sequential = JobSpec {
        pattern: Pattern::Read,
        ..zones([2 * BLOCK, 7 * BLOCK])
    };
    assert!(stream(sequential).is_ok());
    for lengths in [[2 * BLOCK, 7 * BLOCK], [u64::MAX, u64::MAX]] {
        let error = stream(zones(lengths)).expect_err("behind the end");
        assert!(matches!(error, JobError::ZonesBehindEnd { .. }), "{error}");
    }
}

#[test]
fn the_mix_is_as_asked() {
    for percent in [0, 1, 33, 67, 100] {
        let job = JobSpec {
            pattern: Pattern::RandRw,
            read_mix_percent: percent,
            ..JobSpec::default()
        };
        let mut stream = stream(&job, 1 << 42);
        let reads = units(&mut stream, 100_000)
            .iter()
            .filter(|unit| unit.direction == Direction::Read)
            .count();
        // Six standard deviations are at most 950.
        assert!(
            reads.abs_diff(percent as usize * 1_000) < 950,
            "{percent}: {reads}"
        );
    }
}

#[test]
fn seeds_and_clones_give_different_orders() {
    let job = JobSpec {
        pattern: Pattern::RandRead,
        random_seed: Some(7),
        num_jobs: 2,
        ..JobSpec::default()
    };
    let first = |job: &JobSpec, clone, seed| {
        let mut stream = job
            .request_stream(clone, Bytes(1 << 42), Stream::new(seed))
            .expect("a valid job");
        units(&mut stream, 4)
    };
    assert_eq!(first(&job, 0, 1), first(&job, 0, 2));
    assert_ne!(first(&job, 0, 1), first(&job, 1, 1));
    let unseeded = JobSpec {
        random_seed: None,
        ..job
    };
    assert_ne!(first(&unseeded, 0, 1), first(&unseeded, 0, 2));
    assert_ne!(first(&unseeded, 0, 1), first(&unseeded, 1, 1));
}

fn any_job() -> impl Strategy<Value = JobSpec> {
    let patterns = prop_oneof![
        Just(Pattern::Read),
        Just(Pattern::Write),
        Just(Pattern::RandRead),
        Just(Pattern::RandWrite),
        Just(Pattern::ReadWrite),
        Just(Pattern::RandRw),
    ];
    let size = || proptest::option::of((1_u64..200_000).prop_map(Bytes));
    (
        (patterns, 1_u64..9_000, 0_u64..50_000, any::<bool>()),
        (size(), size(), size()),
        (1_u32..4, any::<bool>(), 0_u32..4, 0_u32..4, any::<bool>()),
    )
        .prop_map(
            |(
                (pattern, block_size, offset, random_map),
                (size, io_size, file_size),
                (loops, time_based, fsync_every, fdatasync_every, queues),
            )| JobSpec {
                engine: if queues { Engine::Libaio } else { Engine::Sync },
                pattern,
                block_size: Bytes(block_size),
                offset: Bytes(offset),
                random_map,
                size,
                io_size,
                file_size,
                loops,
                time_based,
                runtime: Some(Nanos::SECOND),
                fsync_every,
                fdatasync_every,
                ..JobSpec::default()
            },
        )
}

/// fio ends a pass at the region's end; behind the device's it draws.
#[test]
fn a_run_ends_with_the_region() {
    let job = JobSpec {
        pattern: Pattern::RandRead,
        size: blocks(64),
        runs: Runs {
            draw_every: 1_000,
            ..Runs::default()
        },
        ..JobSpec::default()
    };
    let places = |device: u64| -> Vec<u64> {
        let units = units(&mut stream(&job, device * BLOCK), 1_000);
        units.iter().map(|unit| unit.offset.0 / BLOCK).collect()
    };
    let inside = places(128);
    assert!(inside.iter().copied().eq(inside[0]..64), "{inside:?}");
    let all = places(64);
    assert_eq!(all.len(), 64, "{all:?}");
}

proptest! {
    #[test]
    fn requests_stay_in_the_region_and_on_its_blocks(
        job in any_job(),
        device in 1_u64..300_000,
        seed: u64,
    ) {
        let Ok(mut stream) = job.request_stream(0, Bytes(device), Stream::new(seed)) else {
            return Ok(());
        };
        let (start, region) = job.region(0, Bytes(device)).expect("the stream was made");
        let mut writes = 0;
        for unit in units(&mut stream, 500) {
            if unit.direction == Direction::Flush {
                prop_assert!(writes > 0);
                continue;
            }
            writes += u32::from(unit.direction == Direction::Write);
            prop_assert_eq!(unit.length, job.block_size);
            prop_assert!(unit.offset >= start && unit.offset < start + region);
            prop_assert!((unit.offset - start).0.is_multiple_of(job.block_size.0));
            prop_assert!((unit.offset + unit.length).0 <= device);
            let allowed = match unit.direction {
                Direction::Read => job.pattern.reads(),
                _ => job.pattern.writes(),
            };
            prop_assert!(allowed);
        }
    }

    #[test]
    fn the_amount_is_as_asked(job in any_job(), device in 1_u64..300_000) {
        let job = JobSpec { time_based: false, fsync_every: 0, fdatasync_every: 0, ..job };
        let Ok(mut stream) = job.request_stream(0, Bytes(device), Stream::new(1)) else {
            return Ok(());
        };
        let (_, region) = job.region(0, Bytes(device)).expect("the stream was made");
        let block = job.block_size.0;
        let room = device - job.offset.0;
        let size = job.size.unwrap_or(region).min(region).0;
        let (io_size, loops) = (job.io_size.map(|size| size.0), u64::from(job.loops));
        let is_random = job.pattern.is_random();
        let rewrites = is_random && job.pattern.writes() && !job.random_map;
        let amount = io_size.filter(|_| rewrites).unwrap_or(0).max(size);
        let (mapped, queues) = (is_random && job.random_map, job.engine == Engine::Libaio);
        let blocks = match (is_random || job.pattern.is_mixed(), queues) {
            _ if mapped => amount.div_ceil(block).min(region.0 / block),
            (true, true) => amount.div_ceil(block),
            (true, false) => u64::MAX / block,
            (false, true) => amount.div_ceil(block).min(room / block),
            (false, false) => region.0.div_ceil(block).min(room / block),
        };
        // fio does as many passes as loops, and with `io_size` more while a block is missing.
        let most = (io_size.unwrap_or(amount) * loops).div_ceil(block);
        let (mut asked, mut passes) = (0_u64, 0);
        while passes < loops || io_size.is_some_and(|size| asked * block + block <= size) {
            asked = asked.saturating_add(blocks).min(most);
            passes += 1;
        }
        prop_assert_eq!(units(&mut stream, 1_000_000).len() as u64, asked);
        prop_assert_eq!(stream.next_unit(), None);
    }

    #[test]
    fn a_random_pass_visits_each_block_once(count in 1_u64..300, seed: u64, passes in 1_u32..4) {
        let job = JobSpec {
            pattern: Pattern::RandWrite,
            size: blocks(count),
            loops: passes,
            ..JobSpec::default()
        };
        let mut stream = job
            .request_stream(0, Bytes(1 << 30), Stream::new(seed))
            .expect("a valid job");
        for _ in 0..passes {
            let mut visits = BTreeMap::new();
            for unit in (0..count).map_while(|_| stream.next_unit()) {
                *visits.entry(unit.offset.0 / BLOCK).or_insert(0) += 1;
            }
            prop_assert!(visits.into_iter().eq((0..count).map(|block| (block, 1))));
        }
        prop_assert_eq!(stream.next_unit(), None);
    }
}
