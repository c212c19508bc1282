//! Arrays of NVMe drives with a processor: what comes out of the rules, and was not set.

use crate::rows;
use raidlab_bench_model::presets;
use raidlab_lab::{
    Bench, Choices, Experiment, Files, PlannedStep, Subject, Suite, Zfs, ZfsChecksum,
    ZfsCompression, catalogue,
};
use raidlab_sim::ProcessorNumbers;
use raidlab_store::Measurement;
use raidlab_units::Bytes;

fn experiments_of(name: &str) -> Vec<Experiment> {
    experiments_in(&format!("{}/tests/{name}", env!("CARGO_MANIFEST_DIR")))
}

fn experiments_in(file: &str) -> Vec<Experiment> {
    let suite = Suite::load(file).expect("a suite");
    let choices = Choices {
        fits: vec!["rated".to_owned()],
        seed: 1,
        ..Choices::default()
    };
    suite.experiments(&suite.subjects, &choices)
}

#[test]
fn further_workers_stop_helping_and_a_larger_stripe_cache_is_heard() {
    let all = experiments_of("processor.toml");
    let rows: Vec<Measurement> = all
        .iter()
        .flat_map(|one| rows::of(one).expect("it runs"))
        .collect();
    let row = |subject: &str, job: &str| {
        let found = rows
            .iter()
            .find(|row| row.subject == subject && row.job == job);
        found.expect("it has a row")
    };
    let writes = |workers: u32| row(&format!("workers-{workers}"), "write").iops;
    let rates = [0, 1, 2, 4, 16].map(writes);
    assert!(rates[2] > 1.5 * rates[0], "two workers: {rates:?}");
    assert!(rates[3] > rates[2], "four: {rates:?}");
    assert!(rates[4] < 1.25 * rates[3], "sixteen: {rates:?}");
    // Handling a stripe four times, under the plug of one thread.
    assert!((30e3..100e3).contains(&rates[0]), "{rates:?}");
    let streams = ["small-cache", "workers-0"].map(|it| row(it, "stream").bytes_per_second);
    assert!(streams[1] > 1.05 * streams[0], "{streams:?}");
    for row in &rows {
        let used = row.cpu_percent.expect("a processor is modelled");
        assert!(
            used > 0.1 && used < 800.0,
            "{} {}: {used}",
            row.subject,
            row.job
        );
    }
}

/// What cores did in ramp time is told over a time that has it as well.
#[test]
fn a_processor_is_busy_no_longer_than_there_is_time() {
    let text = include_str!("../processor.toml");
    let folder = tempfile::tempdir().expect("a folder");
    let used = |ramp: &str| {
        let path = folder.path().join("ramp.toml");
        let runtime = format!("{ramp} --runtime=0.03");
        std::fs::write(&path, text.replace("--runtime=0.03", &runtime)).expect("a file");
        let one = experiments_in(&path.to_string_lossy()).remove(0);
        row_of(&one, "write").cpu_percent.expect("a processor")
    };
    let (plain, ramped) = (used(""), used("--ramp_time=0.09"));
    assert!(
        (0.8..1.25).contains(&(ramped / plain)),
        "{ramped} and {plain}"
    );
}

/// mq-deadline takes 590 ns, kyber 760 and BFQ 1430. Where nobody has a plug, a thread is woken
/// beside, and the core changes threads there and back.
/// Who sleeps for a stripe goes on when some are free again, also where the array's thread never
/// comes to an end: three of eight processes wrote, and the others slept until the job was over.
#[test]
fn nobody_sleeps_for_a_stripe_while_the_thread_is_busy() {
    let text = include_str!("../processor.toml").replace("--runtime=30ms", "--runtime=200ms");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sleepers.toml");
    std::fs::write(&path, text.replacen("iodepth=64", "iodepth=32", 1)).expect("a file");
    let row = row_of(&experiments_in(&path.to_string_lossy()).remove(0), "write");
    assert_eq!(row.subject, "small-cache");
    assert!(row.latency.max_ns < 40_000_000, "{:?}", row.latency);
}

#[test]
fn a_scheduler_takes_its_time_for_each_command() {
    let mut all = experiments_of("schedulers.toml");
    let one = &mut all[0];
    one.processor = Some("server-2021".to_owned());
    let is_one_read =
        |step: &PlannedStep| matches!(step, PlannedStep::Job(job) if job.name == "read-1");
    one.steps = one
        .steps
        .iter()
        .filter(|step| is_one_read(step))
        .cloned()
        .collect();
    let it = numbers("server-2021");
    let hand_over = it.wake_call_ns + 2.0 * it.switch_ns;
    for (host, beside) in [("linux-6.12-2g", 0.0), ("linux-6.9", hand_over)] {
        let host = catalogue::host(&Files::default(), host).expect("it is there");
        one.subject.move_to(&host);
        let mean = |scheduler: &str| {
            one.subject.scheduler = Some(scheduler.to_owned());
            rows::of(one).expect("it runs")[0].latency.mean_ns
        };
        let [none, deadline, kyber, bfq] = ["none", "mq-deadline", "kyber", "bfq"].map(mean);
        for (with, expected) in [(deadline, 590.0), (kyber, 760.0), (bfq, 1430.0)] {
            let (more, expected) = (with - none, expected + beside);
            assert!(
                (more - expected).abs() < 0.1 * expected,
                "{more} and not {expected}"
            );
        }
    }
}

/// By hand, for a read of a block that is not in memory: what is done one after the other on
/// the way down and up, with four threads that wake each other. Whoever wakes one goes on
/// meanwhile.
#[test]
fn a_single_read_of_a_pool_takes_so_much_longer_as_its_threads_do() {
    let read = |processor| row_of(&pool(processor, |_| ()), "read-1");
    let [bare, with] = [None, Some("server-2021")].map(read);
    let it = numbers("server-2021");
    let wake_up = it.wake_ns + it.switch_ns;
    let down = it.user_ns + it.call_ns / 2.0 + wake_up + it.record_ns + it.zio_ns;
    let queue = 2.0 * it.queue_ns + it.dispatch_ns;
    let interrupt = it.interrupt_ns + it.complete_ns;
    let copy = 8192.0 / it.copy_bytes_per_second * 1e9;
    let up = 3.0 * wake_up + it.zio_end_ns + copy + it.call_ns / 2.0;
    let sum = down + queue + interrupt + up;
    // The queue's lock comes from another core twice, from another socket perhaps.
    let ways = 2.0 * it.transfer_ns * it.remote_factor;
    let more = with.latency.p50_ns as f64 - bare.latency.p50_ns as f64;
    let bound = sum * 0.98..(sum + ways) * 1.02;
    assert!(bound.contains(&more), "{more} and not {bound:?}");
}

#[test]
fn deep_queues_are_bounded_by_the_cores() {
    let read = |processor| row_of(&pool(processor, |_| ()), "read-32");
    let [bare, small] = [None, Some("nas")].map(read);
    let it = numbers("nas");
    let least = it.user_ns
        + it.call_ns
        + it.record_ns
        + it.zio_ns
        + 2.0 * it.queue_ns
        + it.dispatch_ns
        + it.complete_ns
        + it.zio_end_ns
        + 8192.0 / it.copy_bytes_per_second * 1e9;
    // And at most a change of threads, a wake-up and a lock for each of its five stops.
    let most = least + it.interrupt_ns + 5.0 * (it.switch_ns + it.wake_call_ns + it.lock_ns);
    let rate = |time: f64| it.cores * it.speed * 1e9 / time;
    let bound = rate(most) * 0.95..rate(least);
    assert!(
        bound.contains(&small.iops),
        "{} and not {bound:?}",
        small.iops
    );
    assert!(bare.iops > 5.0 * small.iops, "{} {}", bare.iops, small.iops);
    let again = row_of(&pool(Some("nas"), |_| ()), "read-32");
    assert_eq!(again.latency, small.latency, "the same again is the same");
}

/// By hand: the thread that ends a read makes the checksum of its 8 KiB before anybody wakes,
/// and three threads, 80 % of four cores, compress all that is written.
#[test]
fn checksums_and_compression_take_the_threads_that_do_them() {
    let it = numbers("desktop-2015");
    let [off, sha] = [ZfsChecksum::Off, ZfsChecksum::Sha256].map(|checksum| {
        let one = pool(Some("desktop-2015"), |zfs| zfs.checksum = checksum);
        row_of(&one, "read-1").latency.p50_ns as f64
    });
    let sum = 8192.0 / it.sha256_bytes_per_second * 1e9;
    assert!((sha - off - sum).abs() < 0.05 * sum, "{sha} {off} {sum}");
    let one = pool(Some("desktop-2015"), |zfs| {
        zfs.compression = ZfsCompression::Zstd(9);
        zfs.compression_ratio = 2.0;
    });
    let rate = row_of(&one, "fill").bytes_per_second;
    // The ninth level is an eighth as fast as the third.
    let bound = 3.0 * it.zstd_bytes_per_second * 0.126;
    // They wait while a group ends, and what is dirty in the end need not be compressed yet.
    let bound = 0.75 * bound..1.1 * bound;
    assert!(bound.contains(&rate), "{rate} and not {bound:?}");
}

#[test]
fn what_is_not_modelled_of_zfs_is_refused() {
    let mut raidz = pool(Some("nas"), |_| ());
    raidz.subject = Subject::load("zfs-raidz2").expect("built in");
    let bench = raidlab_bench_model::ModelBench::default();
    let error = bench.check(&raidz).expect_err("raidz is not modelled");
    let text = raidlab_units::in_one_line(&error);
    assert!(
        text.contains("the model has no subject `zfs-raidz2`"),
        "{text}"
    );
}

/// Linux block/blk-mq-tag.c, `blk_mq_get_tag`: who sleeps for a free request of a disk sends its
/// commands itself when it wakes, on a core of its own. RAID 0 has no thread that could.
#[test]
fn who_slept_for_a_request_sends_its_commands_itself() {
    let all = experiments_of("beyond-tags.toml");
    for one in &all {
        let rows = rows::of(one).expect("it runs");
        let rate = |job: &str| {
            let row = rows.iter().find(|row| row.job == job);
            row.expect("it has a row").iops
        };
        let rates = ["within", "beyond"].map(rate);
        assert!(rates[1] > 0.9 * rates[0], "{}: {rates:?}", one.subject.name);
    }
}

fn numbers(processor: &str) -> ProcessorNumbers {
    let preset = presets::processor(&Files::default(), processor);
    preset.expect("built in").numbers
}

fn row_of(experiment: &Experiment, job: &str) -> Measurement {
    let rows = rows::of(experiment).expect("it runs");
    let row = rows.into_iter().find(|row| row.job == job);
    row.expect("it has a row")
}

/// A mirror of ZFS with a volume of 400 MiB and a quarter as much cache.
fn pool(processor: Option<&str>, change: impl FnOnce(&mut Zfs)) -> Experiment {
    let mut one = experiments_of("zfs-processor.toml").remove(0);
    one.processor = processor.map(str::to_owned);
    let host = one.subject.host.as_mut().expect("a host");
    host.memory = Bytes(400 << 20);
    let zfs = one.subject.zfs.as_mut().expect("a pool");
    zfs.volume_size = Bytes(400 << 20);
    zfs.cache = Bytes(100 << 20);
    change(zfs);
    one
}
