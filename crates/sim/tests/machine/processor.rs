//! What a processor costs, against sums by hand.

use crate::bench::{Bench, group, random};
use raidlab_sim::{
    ArrayKind, ArrayPaths, BitmapWrites, JobResult, OldLocks, ProcessorConfig, ProcessorNumbers,
    ProcessorPreset,
};
use raidlab_units::{Bytes, Nanos};
use raidlab_workload::{JobSpec, Pattern};

fn server() -> ProcessorNumbers {
    let text = include_str!("../../../../data/processors/server-2021.toml");
    let preset = ProcessorPreset::parse("server-2021", text).expect("it is valid");
    preset.numbers
}

#[test]
fn cores_and_sockets_are_whole() {
    let text = include_str!("../../../../data/processors/server-2021.toml");
    for name in ["cores", "sockets", "cores_per_cache"] {
        let (before, rest) = text
            .split_once(&format!("\n{name} = {{ value = "))
            .expect("it is there");
        let text = format!(
            "{before}\n{name} = {{ value = 2.5, basis{}",
            rest.split_once(", basis").expect("it has one").1
        );
        let error = ProcessorPreset::parse("mine.toml", &text).expect_err("half a one");
        let line = 2 + before.matches('\n').count();
        assert_eq!(
            error.to_string(),
            format!("mine.toml:{line}: `{name}` is 2.5, but must be a whole number")
        );
    }
}

#[test]
fn a_number_alone_is_told_what_belongs_to_it() {
    let text = include_str!("../../../../data/processors/server-2021.toml");
    let text = text.replacen("\ncores = {", "\ncores = 8 # {", 1);
    let error = ProcessorPreset::parse("mine.toml", &text).expect_err("no source");
    assert!(error.what.contains("{ value = 8, basis = "), "{error}");
}

#[test]
fn cores_are_spread_evenly_over_sockets() {
    let text = include_str!("../../../../data/processors/server-2021.toml");
    let (before, rest) = text
        .split_once("\nsockets = { value = 2,")
        .expect("it has two");
    let text = format!("{before}\nsockets = {{ value = 3,{rest}");
    let error = ProcessorPreset::parse("mine.toml", &text).expect_err("128 over 3");
    let line = 2 + before.matches('\n').count();
    let why = "128 `cores` cannot be spread evenly over 3 `sockets`";
    assert_eq!(error.to_string(), format!("mine.toml:{line}: {why}"));
}

/// A smaller machine of the same kind has all its cores around one cache.
#[test]
fn cores_of_a_socket_are_spread_evenly_over_caches() {
    let text = include_str!("../../../../data/processors/server-2021.toml");
    let cores = |cores: &str| {
        let text = text.replace(
            "\ncores = { value = 128",
            &format!("\ncores = {{ value = {cores}"),
        );
        let preset = ProcessorPreset::parse("mine.toml", &text);
        preset.map(drop).map_err(|error| error.what)
    };
    assert_eq!(cores("4"), Ok(()));
    let why = "6 `cores` of a socket are no multiple of 4 `cores_per_cache`";
    assert_eq!(cores("12"), Err(why.to_owned()));
}

/// Requests to flash disks, with so many cores or without a processor.
fn run(members: u64, processor: Option<ProcessorConfig>, job: &JobSpec) -> JobResult {
    let bench = Bench {
        members,
        flash: true,
        tags: 1023,
        turnaround: Nanos::ZERO,
        processor,
        ..Bench::default()
    };
    let job = JobSpec {
        file_size: Some(Bytes(10 << 30)),
        ..job.clone()
    };
    let jobs = group([job]);
    bench.machine().run(&jobs).expect("it runs")
}

fn on(cores: f64, array: ArrayPaths) -> Option<ProcessorConfig> {
    Some(ProcessorConfig {
        numbers: ProcessorNumbers { cores, ..server() },
        array,
    })
}

#[test]
fn at_depth_one_charges_add_to_each_latency() {
    let job = random(Pattern::RandRead, 1, 2000);
    let bare = run(1, None, &job);
    let with = run(1, on(4.0, ArrayPaths::default()), &job);
    let it = server();
    let jobs = it.user_ns + it.call_ns + it.dispatch_ns + it.switch_ns;
    let interrupts = it.interrupt_ns + it.complete_ns + it.wake_call_ns;
    let more = with.reads().latency.mean() - bare.reads().latency.mean();
    // A histogram has three digits.
    assert!(
        (more - jobs - interrupts).abs() < 100.0,
        "{more} for {}",
        jobs + interrupts
    );
    let used = with.processor.expect("it has one");
    assert_eq!(bare.processor, None);
    let each = |time: Nanos| time.0 as f64 / 2000.0;
    assert!((each(used.user) - it.user_ns).abs() < 1.0);
    assert!((each(used.user + used.system) - jobs).abs() < 5.0);
    assert!((each(used.interrupts) - interrupts).abs() < 5.0);
    assert_eq!(used.locks, [], "a disk has none");
}

#[test]
fn a_deep_queue_is_bound_by_cores() {
    let it = server();
    let jobs = it.user_ns + it.call_ns + it.dispatch_ns;
    let most = 1e9 / (jobs + it.complete_ns);
    let least = 1e9 / (jobs + it.complete_ns + it.interrupt_ns);
    let job = random(Pattern::RandRead, 128, 20_000);
    let one = run(1, on(1.0, ArrayPaths::default()), &job);
    let rate = one.reads().iops(one.runtime);
    assert!(
        (0.97 * least..most).contains(&rate),
        "{rate}, not {least} to {most}"
    );
    let busy = one.processor.expect("it has one").busy();
    assert!(
        busy.0 * 100 > one.runtime.0 * 99,
        "{busy:?} of {:?}",
        one.runtime
    );
    let two = JobSpec { num_jobs: 2, ..job };
    let two = run(1, on(2.0, ArrayPaths::default()), &two);
    let both = two.reads().iops(two.runtime);
    assert!((1.9..2.1).contains(&(both / rate)), "{both} after {rate}");
}

#[test]
fn with_a_bitmap_a_write_waits_for_another_thread() {
    let job = random(Pattern::RandWrite, 1, 1000);
    let by = |bitmap| {
        let mirror = ArrayPaths {
            kind: ArrayKind::Mirror,
            bitmap,
            ..ArrayPaths::default()
        };
        let result = run(2, on(128.0, mirror), &job);
        let used = result.processor.clone().expect("it has one");
        let threads = used.threads.iter().map(|thread| thread.name.clone());
        (result.runtime, threads.collect::<Vec<_>>())
    };
    let (without, _) = by(None);
    let (process, threads) = by(Some(BitmapWrites::Process));
    assert!(process > without, "the bitmap's lock");
    assert_eq!(threads, [""; 0], "nobody else has a part in it");
    // A wake-up takes 3 us, and a change of threads 1 us.
    let (thread, threads) = by(Some(BitmapWrites::Thread));
    assert!((4_000..7_000).contains(&((thread - process).0 / 1000)));
    assert_eq!(threads, ["md0_raid1"]);
    let (worker, threads) = by(Some(BitmapWrites::Worker));
    assert!((8_000..11_000).contains(&((worker - process).0 / 1000)));
    assert_eq!(threads, ["md_bitmap"]);
}

#[test]
fn who_spins_is_billed_and_a_lock_bounds_all_cores() {
    let job = JobSpec {
        num_jobs: 32,
        ..random(Pattern::RandRead, 16, 1000)
    };
    let array = |barrier| ArrayPaths {
        kind: ArrayKind::Raid10,
        old: OldLocks {
            barrier,
            ..OldLocks::default()
        },
        ..ArrayPaths::default()
    };
    let new = run(2, on(128.0, array(false)), &job);
    let old = run(2, on(128.0, array(true)), &job);
    let rates = [&new, &old].map(|result| result.reads().iops(result.runtime));
    assert!(rates[1] < 0.8 * rates[0], "{rates:?}");
    let used = old.processor.clone().expect("it has one");
    let lock = used.locks.iter().find(|lock| lock.name == "resync_lock");
    let lock = lock.expect("each request takes it");
    assert_eq!(lock.passes, 2 * 32_000);
    assert!(
        lock.hold.0 * 10 > old.runtime.0 * 9,
        "it is the bottleneck: {lock:?}"
    );
    let spun = used.locks.iter().map(|lock| lock.wait.0).sum::<u64>();
    let billed = used.places.iter().find(|place| place.0 == "lock");
    assert!(
        billed.is_some_and(|place| place.1.0 >= spun),
        "{billed:?}, {spun}"
    );
    // The same again is the same again.
    let again = run(2, on(128.0, array(true)), &job);
    assert_eq!(again.processor, old.processor);
    assert_eq!(again.runtime, old.runtime);
}

/// RAID 1 has taken no `resync_lock` since Linux 4.11, but until 6.5 the lock of the queue in which
/// requests wait for the barrier: once for a read, and twice for a write.
#[test]
fn a_mirror_wakes_its_queue_and_takes_no_other_lock() {
    let locks = |pattern, old| {
        let mirror = ArrayPaths {
            kind: ArrayKind::Mirror,
            old,
            ..ArrayPaths::default()
        };
        let result = run(2, on(4.0, mirror), &random(pattern, 4, 1000));
        let used = result.processor.expect("it has one");
        let locks = used.locks.into_iter().map(|lock| (lock.name, lock.passes));
        locks.collect::<Vec<_>>()
    };
    let with = |barrier, wake_up| OldLocks {
        barrier,
        wake_up,
        ..OldLocks::default()
    };
    let queue = |passes| vec![("wait_barrier", passes)];
    assert_eq!(locks(Pattern::RandRead, with(true, true)), queue(1000));
    assert_eq!(locks(Pattern::RandWrite, with(true, true)), queue(2000));
    assert_eq!(locks(Pattern::RandRead, with(true, false)), []);
}
