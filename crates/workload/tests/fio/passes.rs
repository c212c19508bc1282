//! Passes over a region, the flushes between them and the runs of random jobs, beside fio's own.

use crate::requests::{all_alike, is_installed, with_seeds};
use raidlab_random::Stream;
use raidlab_units::Bytes;
use raidlab_workload::{FioJobs, Permission};

/// Options whose requests follow from the options alone. Engines that queue requests begin each
/// pass at the region's start, and others where the region ends.
const PASSES: [&str; 42] = [
    "--rw=read --bs=64k --size=512k --filesize=1m --loops=3 --ioengine=libaio",
    "--rw=read --bs=64k --size=512k --offset=1m --filesize=8m --loops=3 --ioengine=libaio",
    "--rw=read --bs=64k --size=512k --offset=1m --filesize=8m --loops=3",
    "--rw=read --bs=64k --size=500k --loops=3 --ioengine=libaio",
    "--rw=write --bs=64k --size=500k --io_size=3m --ioengine=libaio",
    "--rw=read --bs=64k --size=512k --filesize=1m --io_size=540k",
    "--rw=read --bs=64k --size=512k --filesize=1m --io_size=600k --loops=2",
    "--rw=read --bs=12k --size=1m --filesize=3m --io_size=3500k --loops=3",
    "--rw=read --bs=12k --size=1m --filesize=3m --io_size=3500k --loops=3 --ioengine=libaio",
    "--rw=write --bs=4k --size=12k --io_size=28k --loops=2",
    "--rw=read:4k --bs=4k --size=1m --io_size=1500k --loops=2 --ioengine=libaio",
    "--rw=write:4k --bs=4k --size=1m --io_size=3m --ioengine=libaio",
    "--rw=write --bs=64k --zonemode=strided --zonesize=256k --zoneskip=768k --size=2m \
     --filesize=8m --loops=3 --ioengine=libaio",
    "--rw=write --bs=64k --size=512k --filesize=1m --verify=crc32c --loops=3",
    "--rw=write --bs=64k --size=512k --filesize=1m --verify=crc32c --loops=3 --ioengine=libaio",
    "--rw=randread --bs=4k --percentage_random=0",
    "--rw=randread --bs=4k --percentage_random=0 --size=4m",
    // Flushes: `fsync` and `fdatasync` together, and around the ends of passes.
    "--rw=write --bs=64k --size=4m --fsync=5 --fdatasync=3",
    "--rw=write --bs=64k --size=4m --fsync=1",
    "--rw=write --bs=64k --size=1m --fsync=4 --loops=3",
    "--rw=write --bs=64k --size=1m --fsync=16 --loops=3",
    "--rw=write --bs=64k --size=1m --fsync=16 --loops=3 --ioengine=libaio",
    "--rw=write --bs=64k --size=1m --fdatasync=16 --loops=3 --ioengine=libaio",
    "--rw=write --bs=64k --size=1m --io_size=3m --fsync=16",
    "--rw=write --bs=64k --size=1m --io_size=3m --fsync=16 --ioengine=libaio",
    "--rw=write --bs=64k --size=512k --filesize=1m --fsync=4 --loops=3",
    "--rw=write --bs=64k --size=1m --fsync=4 --verify=crc32c --loops=2",
    "--rw=write --bs=64k --size=1m --fsync=5 --verify=crc32c --loops=3",
    "--rw=write --bs=64k --size=1m --fsync=4 --verify=crc32c --verify_backlog=3",
    "--rw=write --bs=64k --size=1m --fsync=2 --verify=crc32c --verify_backlog=4 --loops=2",
    "--rw=write --bs=16k --size=1m --zonemode=strided --zonesize=64k --zonerange=128k \
     --zoneskip=64k --loops=2 --fsync=5",
    "--rw=write --bs=64k --size=1m --number_ios=6 --fsync=2",
    "--rw=write --bs=64k --size=1m --number_ios=6 --fsync=6",
    "--rw=write --bs=64k --size=1m --fsync=1 --ioengine=io_uring",
    "--rw=write --bs=64k --size=1m --fsync=3 --ioengine=posixaio",
    "--rw=write:8k --bs=4k --size=1m --fdatasync=7 --loops=2",
    // The null device ends with the job's region.
    "--ioengine=null --rw=read --bs=64k --size=500k --loops=3",
    "--ioengine=null --rw=read:64k --bs=64k --size=4m",
    "--ioengine=null --rw=trim --bs=64k --size=500k",
    "--ioengine=null --rw=trim --bs=64k --size=512k --filesize=1m --loops=3",
    "--rw=rw --bs=16k --rwmixread=0 --size=1m --loops=2",
    "--rw=rw --bs=16k --rwmixread=100 --size=1m --loops=2 --ioengine=libaio",
];

#[test]
fn passes_begin_and_end_as_in_fio() {
    if is_installed() {
        all_alike(&PASSES, false);
    }
}

/// Random jobs with runs: the map has the requests that were drawn, and no others.
const RUNS: [&str; 18] = [
    "--rw=randread:8 --bs=4k --size=4m",
    "--rw=randread:8 --bs=4k",
    "--rw=randread:8 --bs=4k --size=4m --loops=3",
    "--rw=randread:8 --bs=4k --size=4m --loops=2 --ioengine=libaio",
    "--rw=randwrite:8 --bs=4k --size=4m",
    "--rw=randrw:8 --bs=4k --size=4m",
    "--rw=randread:8 --bs=4k --size=4m --norandommap",
    "--rw=randread:8 --bs=4k --size=4m --rw_sequencer=identical",
    "--rw=randread:8 --bs=4k --size=4m --rw_sequencer=identical --percentage_random=40",
    "--rw=randread --bs=4k --size=4m --percentage_random=50",
    "--rw=randread --bs=4k --percentage_random=50 --loops=3",
    "--rw=randread --bs=4k --percentage_random=50 --loops=3 --ioengine=libaio",
    "--rw=randread:3 --bs=4k --percentage_random=30",
    "--rw=randread:2 --bs=12k --size=5m",
    "--rw=randread:4 --bsrange=4k-16k --size=4m",
    "--rw=randwrite:4 --bssplit=4k/60:16k/30:64k/10 --size=4m",
    "--ioengine=null --rw=randtrim:4 --bs=64k --size=4m",
    "--ioengine=null --rw=randtrimwrite:3 --bs=64k --size=4m",
];

#[test]
fn runs_of_random_jobs_are_those_of_fio() {
    if is_installed() {
        all_alike(&with_seeds(&RUNS), false);
    }
}

/// Jobs that draw, with several passes, sizes that differ, discards, or data that are read back.
const DRAWN: [&str; 55] = [
    "--rw=randrw --bs=4k,8k",
    "--rw=randrw --bs=4k,8k --size=8m",
    "--rw=randrw --bs=8k,4k",
    "--rw=randrw --bs=4k,8k --loops=2 --ioengine=libaio",
    "--rw=randrw --bs=4k,8k --percentage_random=60 --size=4m",
    "--rw=randrw --bs=4k,8k --size=1m --io_size=2500k",
    "--rw=randrw --bs=4k,8k --size=1m --io_size=2500k --loops=2",
    "--rw=randrw --bs=4k,8k --size=1m --fsync=2 --loops=4",
    "--rw=randread --bs=64k,16k --io_size=40m --loops=3",
    "--rw=rw --bs=4k,8k",
    "--rw=rw --bs=8k,4k",
    "--rw=rw --bs=4k,8k --size=1m --loops=3",
    "--rw=rw --bs=4k,8k --size=1m --loops=3 --ioengine=libaio",
    "--rw=rw --bs=4k,8k --size=1m --filesize=2m --io_size=6m",
    "--rw=rw --bs=64k --size=2m --loops=4 --rwmixread=90",
    "--rw=rw --bs=64k --size=2m --loops=4 --rwmixread=90 --ioengine=libaio",
    "--rw=rw --bs=64k --size=512k --offset=1m --io_size=3m --filesize=8m --ioengine=libaio",
    "--rw=rw --bs=4k --size=1m --io_size=1500k --loops=2",
    "--rw=rw --bs=64k --size=4m --fsync=3 --loops=3",
    "--rw=randrw --bs=4k --size=1m --loops=3 --rwmixread=90",
    "--rw=randrw --bs=4k --size=1m --loops=3 --ioengine=libaio",
    "--rw=randrw --bs=64k --size=4m --fsync=2 --loops=2",
    "--rw=rw --bs=4k --size=2m --zonemode=strided --zonesize=64k --zoneskip=512k",
    "--rw=rw --bs=4k --size=2m --zonemode=strided --zonesize=128k --zonerange=64k --zoneskip=512k",
    "--rw=rw --bs=4k --size=1m --io_size=4m --zonemode=strided --zonesize=64k --zoneskip=1m",
    "--rw=randread --bs=4k --size=1m --loops=3 --ioengine=libaio",
    "--rw=randread --bs=64k --size=1000k --loops=3 --ioengine=libaio",
    "--rw=randread --norandommap --bs=64k --size=512k --io_size=540k",
    "--rw=randread --norandommap --bs=64k --size=512k --io_size=540k --ioengine=libaio",
    "--rw=randwrite --norandommap --bs=4k --size=1m --io_size=1500k --loops=2",
    "--rw=randread --bs=4k --size=1m --io_size=700k --loops=3 --norandommap --ioengine=libaio",
    "--rw=read --bsrange=4k-16k --size=512k --filesize=1m --loops=3 --ioengine=libaio",
    "--rw=randwrite --bssplit=4k/60:16k/30:64k/10 --size=4m --loops=2",
    "--rw=randwrite --bs=64k --size=1m --verify=crc32c --loops=2",
    "--rw=randwrite --bs=64k --size=1m --io_size=4m --verify=crc32c",
    "--rw=write --bs=64k --size=1m --io_size=4m --verify=crc32c",
    "--rw=write --bs=64k --size=1m --io_size=3m --verify=crc32c --loops=2",
    "--rw=write --bs=16k --filesize=5m --io_size=6m --verify=crc32c",
    "--rw=randwrite --bs=64k --size=1m --fsync=4 --verify=crc32c --loops=3",
    "--rw=randwrite --bs=64k --size=1m --fsync=4 --verify=crc32c --loops=3 --ioengine=libaio",
    "--rw=randwrite --bssplit=4k/60:16k/30:64k/10 --size=4m --verify=crc32c",
    "--rw=randwrite --bssplit=4k/60:16k/30:64k/10 --size=4m --verify=crc32c --norandommap",
    "--rw=randwrite --bsrange=4k-16k --size=1m --verify=crc32c --verify_backlog=5",
    "--rw=randrw --bs=4k --size=1m --verify=crc32c --verify_backlog=7",
    "--rw=randread --bs=4k --ba=2k --io_size=2m --norandommap",
    "--rw=randread --bs=4k --ba=64k --size=4m",
    "--rw=randread --bs=4k --ba=4k --size=1m --loops=2",
    "--rw=randrw --bs=4k,16k --ba=64k,32k --size=4m",
    "--rw=randread --bs=4k,8k --ba=4k --size=1m --loops=2",
    "--rw=randread --bs=4k,8k --ba=4k,8k --size=1m --loops=2",
    "--ioengine=null --rw=randtrim --bssplit=4k/50:8k/50 --size=4m",
    "--ioengine=null --rw=randtrimwrite --bs=64k --size=4m --loops=2",
    "--ioengine=null --rw=randtrimwrite --bs=16k,16k,64k --size=4m",
    "--ioengine=null --rw=randtrimwrite --bsrange=4k-16k --size=4m",
    "--ioengine=null --rw=trimwrite --bssplit=4k/50:8k/50 --size=4m",
];

#[test]
fn a_seed_gives_the_requests_of_all_passes() {
    if is_installed() {
        all_alike(&with_seeds(&DRAWN), false);
    }
}

/// Jobs that end by their time alone, whatever `number_ios` says.
const TIMED: [&str; 7] = [
    "--rw=read --bs=64k --size=2m --filesize=4m --ioengine=libaio --number_ios=4",
    "--rw=rw --bs=64k --size=4m --fsync=4",
    "--rw=randwrite --bs=64k --size=1m --fsync=16",
    "--rw=randrw --bs=64k --size=4m --number_ios=100",
    "--rw=randread:8 --bs=64k --size=4m --offset=2m",
    "--rw=randread --bsrange=4k-16k --size=1m",
    "--rw=randrw --bs=4k,8k --size=1m --fsync=3",
];

#[test]
fn what_ends_by_time_goes_round_as_in_fio() {
    if is_installed() {
        let timed = TIMED.map(|options| format!("{options} --time_based --runtime=1"));
        let timed: Vec<&str> = timed.iter().map(String::as_str).collect();
        all_alike(&with_seeds(&timed), true);
    }
}

/// Where the last free block of a direction lies beyond the region the pass ends, which is a matter
/// of the draws: with fio's own, as with others, from a third of the region to nearly all of it.
#[test]
fn the_end_of_a_mix_of_two_sizes_is_drawn_without_a_seed_as_with_one() {
    const REGION: u64 = 16 << 20;
    let percent_done = |seed: Option<u64>, stream: u64| {
        let mut words = vec!["--rw=randrw".to_owned(), "--bs=4k,8k".to_owned()];
        words.extend(seed.map(|seed| format!("--randseed={seed}")));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let jobs = FioJobs::from_command_line("x", &words, &Permission::default());
        let file = jobs.and_then(|jobs| jobs.model()).expect("modelled");
        let job = &file.groups[0].jobs[0];
        let stream = job.request_stream(0, Bytes(REGION), Stream::new(stream));
        let mut stream = stream.expect("it fits");
        let units = std::iter::from_fn(|| stream.next_unit());
        units.map(|unit| unit.length.0).sum::<u64>() * 100 / REGION
    };
    let spread = |percent: &dyn Fn(u64) -> u64| {
        let mut all: Vec<u64> = (0..200).map(percent).collect();
        all.sort_unstable();
        [all[10], all.iter().sum::<u64>() / 200, all[190]]
    };
    let seeded = spread(&|seed| percent_done(Some(seed * 7919 + 1), 1));
    let unseeded = spread(&|stream| percent_done(None, stream));
    assert!(seeded[0] < 40 && seeded[2] > 95, "{seeded:?}");
    let differences = seeded.iter().zip(&unseeded);
    let mut differences = differences.map(|(one, other)| one.abs_diff(*other));
    assert!(
        differences.all(|difference| difference <= 6),
        "{seeded:?} {unseeded:?}"
    );
}
