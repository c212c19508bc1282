//! The shape of the 2015 comparison on the modelled WD4000FYYZ, strict fit:
//! orders of magnitude and orderings, with room for the disk model to change.
//! The accuracy against the published figures is judged elsewhere.

use super::bench::{Bench, Job, TERABYTE};
use raidlab_array::{Event, Slot};
use raidlab_units::{Bytes, Sectors};

const MEBIBYTE: u64 = 1 << 11;

const fn random(threads: u32, reads: u32, offset: u64, seconds: u64) -> Job {
    Job {
        threads,
        random: true,
        reads,
        block: 8,
        offset,
        end: 3 * TERABYTE,
        seconds,
    }
}

const fn stream(reads: u32, offset: u64, seconds: u64) -> Job {
    Job {
        threads: 1,
        random: false,
        reads,
        block: 256,
        offset,
        end: 3 * TERABYTE,
        seconds,
    }
}

/// A pool after jobs 1 to 5: random writes, a fill, random writes.
fn filled() -> Bench {
    let mut bench = Bench::of_2015();
    bench.pool.leap_write(Sectors::ZERO, Sectors(3 * TERABYTE));
    bench.job(random(1, 0, 0, 60));
    bench.drain();
    bench
}

/// Jobs 1 and 5: 9608 and 38.75 measured.
#[test]
fn random_writes_are_gathered_on_an_empty_pool_and_read_first_on_a_full_one() {
    let mut bench = Bench::of_2015();
    let empty = bench.job(random(1, 0, 0, 60));
    bench.drain();
    // Random blocks leave as long runs.
    let write_size = bench.disks[0].written_sectors / bench.disks[0].writes;
    bench.pool.leap_write(Sectors::ZERO, Sectors(3 * TERABYTE));
    let full = bench.job(random(1, 0, 0, 60));
    assert!((6_000.0..16_000.0).contains(&empty), "{empty}");
    assert!((30.0..48.0).contains(&full), "{full}");
    assert!(write_size > 200, "{write_size} sectors a command");
}

/// Jobs 6 to 15: 54 116 121 144 153 167 172 186 168 168 measured. Threads of
/// the same number walk the same sequence in every job, a little shifted, and
/// find the level-2 blocks and half of the level-1 blocks in memory: that is
/// why two threads are more than twice as fast as one, and why a third and a
/// fourth, new to the volume, gain nothing.
#[test]
fn random_reads_rise_with_threads_but_new_threads_begin_cold() {
    let mut bench = filled();
    let measured = [
        54.0, 116.0, 121.0, 144.0, 153.0, 167.0, 172.0, 186.0, 168.0, 168.0,
    ];
    let depths = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
    let rates: Vec<f64> = (10..)
        .zip(depths)
        .map(|(offset, depth)| bench.job(random(depth, 100, offset * MEBIBYTE, 60)))
        .collect();
    for (rate, measured) in rates.iter().zip(measured) {
        assert!((rate / measured - 1.0).abs() < 0.35, "{rates:?}");
    }
    assert!(rates[1] > 2.0 * rates[0], "{rates:?}");
    assert!(rates[3] < rates[1], "{rates:?}");
}

/// Jobs 2 to 4: the raw disk loses 24 to 26 %, because the writer must read
/// the level-1 blocks that job 1 left at the front of the disk: about 20 a
/// second, each two long seeks of one disk.
#[test]
fn a_sequential_fill_pays_for_the_random_writes_before_it() {
    let rate = |random_writes: bool| {
        let mut bench = Bench::of_2015();
        if random_writes {
            bench.job(random(1, 0, 0, 60));
            bench.drain();
        }
        bench
            .pool
            .leap_write(Sectors::ZERO, Sectors(5 * TERABYTE / 4));
        let before: u64 = bench.disks.iter().map(|disk| disk.reads).sum();
        let start = 5 * TERABYTE / 4;
        bench.job(stream(0, start, 30));
        let rate = bench.job(stream(0, start + TERABYTE / 64, 60));
        let after: u64 = bench.disks.iter().map(|disk| disk.reads).sum();
        (rate, after - before)
    };
    let (clean, clean_reads) = rate(false);
    let (dirty, dirty_reads) = rate(true);
    assert!(clean_reads < 10, "{clean_reads}");
    assert!((900..3600).contains(&dirty_reads), "{dirty_reads}");
    assert!((0.7..0.9).contains(&(dirty / clean)), "{clean} {dirty}");
}

/// Job 17 and the sync series: 58 51 46 46 47 48 49 48 50 measured.
#[test]
fn reads_fall_under_a_resilver_and_stay_there() {
    let mut bench = filled();
    let depths = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
    let rates: Vec<f64> = (10..)
        .zip(depths)
        .map(|(offset, depth)| bench.job(random(depth, 100, offset * MEBIBYTE, 60)))
        .collect();
    let idle = rates[9];
    bench.job(stream(100, 32 << 21, 150));
    bench
        .call(|pool, now, out| pool.remove(now, Slot(1), out))
        .expect("a mirror");
    bench
        .call(|pool, now, out| pool.add(now, Slot(1), out))
        .expect("an empty slot");
    let reads_of_new_disk = bench.disks[1].reads;
    let mut rates = Vec::new();
    for hour in 0..4 {
        let job = random(32, 100, (1 + hour) * MEBIBYTE, 60);
        rates.push(bench.job(job));
        assert_eq!(bench.pool.health(), "U_");
        let done = |bench: &Bench| bench.pool.sync_status().expect("running").done.0;
        let before = done(&bench);
        bench.run(20);
        let speed = (done(&bench) - before) / 20 / (1 << 20);
        assert!((20..90).contains(&speed), "{speed} MiB/s");
        bench.pool.freeze_sync();
        bench.drain();
        bench.pool.leap_sync(Bytes(done(&bench) + (245 << 30)));
        bench.call(|pool, now, out| pool.thaw_sync(now, out));
    }
    assert!(rates[0] < idle / 2.0, "{idle} {rates:?}");
    assert!(rates[1..].iter().all(|&rate| rate < rates[0]), "{rates:?}");
    assert!((rates[3] / rates[1] - 1.0).abs() < 0.1, "{rates:?}");
    assert_eq!(bench.disks[1].reads, reads_of_new_disk);

    bench.pool.freeze_sync();
    bench.drain();
    let total = bench.pool.sync_status().expect("running").total;
    bench.pool.leap_sync(Bytes(total.0 - (64 << 20)));
    bench.call(|pool, now, out| pool.thaw_sync(now, out));
    bench.run(10);
    assert_eq!(bench.pool.sync_status(), None);
    assert_eq!(bench.pool.health(), "UU");
    assert_eq!(bench.happened.last(), Some(&Event::SyncFinished));
}

/// Job 17: 75 % of the raw disk measured.
#[test]
fn a_single_stream_does_not_reach_the_raw_disk() {
    let mut bench = filled();
    let rate = bench.job(stream(100, 32 << 21, 30)) * 131_072.0 / 1e6;
    assert!((95.0..165.0).contains(&rate), "{rate} MB/s");
}
