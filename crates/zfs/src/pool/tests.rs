//! The pool against a crude disk in a small event loop.

mod bench;

use bench::{Bench, Job, TERABYTE};

const fn random(threads: u32, reads: u32, offset: u64) -> Job {
    Job {
        threads,
        random: true,
        reads,
        block: 8,
        offset,
        end: 3 * TERABYTE,
        seconds: 20,
    }
}

#[test]
fn explore() {
    let mut bench = Bench::of_2015();
    let clock = std::time::Instant::now();
    let rate = bench.job(Job {
        seconds: 60,
        ..random(1, 0, 0)
    });
    println!(
        "job 1: {rate} dirty {} wall {:?}",
        bench.pool.dirty(),
        clock.elapsed()
    );
    bench.drain();
    for disk in &bench.disks {
        println!(
            "r {} {} w {} {}",
            disk.reads,
            disk.read_sectors / 2,
            disk.writes,
            disk.written_sectors / 2
        );
    }
    for third in 0..3 {
        let start = third * TERABYTE;
        let job = Job {
            random: false,
            reads: 0,
            block: 256,
            offset: start,
            end: start + TERABYTE,
            seconds: 40,
            threads: 1,
        };
        let rate = bench.job(job);
        println!("seq write {third}: {rate} = {} MB/s", rate * 0.131072);
        for disk in &bench.disks {
            println!(
                "r {} {} w {} {}",
                disk.reads,
                disk.read_sectors / 2,
                disk.writes,
                disk.written_sectors / 2
            );
        }
        bench.drain();
        bench.pool.leap_write(
            raidlab_units::Sectors(start),
            raidlab_units::Sectors(TERABYTE),
        );
    }
    println!("wall {:?}", clock.elapsed());
    println!(
        "job 5: {}",
        bench.job(Job {
            seconds: 60,
            ..random(1, 0, 0)
        })
    );
    bench.drain();
    for (i, qd) in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32].into_iter().enumerate() {
        let r0: u64 = bench.disks.iter().map(|d| d.reads).sum();
        let t = bench.now;
        let rate = bench.job(Job {
            seconds: 60,
            ..random(qd, 100, (10 + i as u64) * 2048)
        });
        let r1: u64 = bench.disks.iter().map(|d| d.reads).sum();
        println!(
            "qd {qd}: {rate} reads/op {}",
            (r1 - r0) as f64 / rate / (bench.now - t).as_secs_f64()
        );
    }
    println!("wall {:?}", clock.elapsed());
    println!(
        "job 16: {}",
        bench.job(Job {
            block: 16,
            seconds: 60,
            ..random(32, 67, 20 * 2048)
        })
    );
    bench.drain();
    let seq = Job {
        random: false,
        reads: 100,
        block: 256,
        offset: 32 << 21,
        end: 3 * TERABYTE,
        seconds: 40,
        threads: 1,
    };
    println!("job 17: {}", bench.job(seq));
    bench
        .call(|pool, now, out| pool.remove(now, raidlab_array::Slot(1), out))
        .expect("removed");
    bench.run(1);
    bench
        .call(|pool, now, out| pool.add(now, raidlab_array::Slot(1), out))
        .expect("added");
    for hour in 0..9_u64 {
        println!(
            "sync job {}: {} at {:?} {}",
            21 + hour,
            bench.job(Job {
                seconds: 60,
                ..random(32, 100, (1 + hour) * 2048)
            }),
            bench.pool.sync_status(),
            bench.pool.health()
        );
        let before = bench.pool.sync_status().expect("running").done.0;
        bench.run(20);
        let after = bench.pool.sync_status().expect("running").done.0;
        println!(
            "   idle {} MiB/s",
            (after - before) as f64 / 20.0 / 1048576.0
        );
        bench.pool.freeze_sync();
        bench.drain();
        let done = bench.pool.sync_status().expect("running").done.0;
        bench
            .pool
            .leap_sync(raidlab_units::Bytes(done + (245 << 30)));
        bench.call(|pool, now, out| pool.thaw_sync(now, out));
    }
    println!("wall {:?}", clock.elapsed());
}
