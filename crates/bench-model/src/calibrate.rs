//! The measurement of this machine's processor, as far as a program can do it: system calls,
//! changes of threads, locks, and bytes through parity, copies and checksums.
//!
//! Each is done for a while and the best of several rounds counts, as others' work only adds to it.
//! Times that cannot be seen from outside of the kernel (the share of an array in a request,
//! interrupts) stay as in the processor that it is based on.
//!
//! The program's own room is built without optimisation, and would measure that: a checksum
//! there was three hundred times as slow as the kernel's.

use raidlab_store::text::visible_path;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{self, Read, Write, pipe};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A measured number, with the way in which it was measured.
#[derive(Debug)]
pub struct Measured {
    /// The number's name in a processor's file.
    pub name: &'static str,
    /// The value in the unit that the name ends in.
    pub value: f64,
    /// The work that was done for it, in words.
    pub how: String,
}

/// The number of rounds of which the best counts, and the length of each.
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(40);
/// The size in bytes of a block that stays in the cache.
const BLOCK: usize = 64 << 10;
/// The size in bytes of a block that is larger than the cache.
const LARGE: usize = 64 << 20;
/// The number of data blocks of a stripe.
const DATA: usize = 4;

/// The nanoseconds in the best round for one of the `each` things that each call does.
fn best(each: f64, mut call: impl FnMut()) -> f64 {
    let mut least = f64::MAX;
    for _ in 0..ROUNDS {
        let (begun, mut calls) = (Instant::now(), 0.0);
        while begun.elapsed() < ROUND {
            call();
            calls += 1.0;
        }
        least = least.min(begun.elapsed().as_nanos() as f64 / (calls * each));
    }
    least
}

/// Measures all that can be measured here; direct reads go to `file`, if there is one.
///
/// # Errors
/// When the system refuses a thread, a pipe or the file.
pub fn measure(file: Option<&Path>) -> io::Result<Vec<Measured>> {
    let mut all = Vec::new();
    let mut add = |name, value: f64, how: &str| {
        all.push(Measured {
            name,
            value: (value * 10.0).round() / 10.0,
            how: how.to_owned(),
        });
    };
    let cores = counts(&mut add)?;
    let call = system_call()?;
    add(
        "call_ns",
        2.0 * call,
        "two reads of one byte from /dev/zero",
    );
    let turn = ping_pong([0, 0])?;
    let switch = (turn - 2.0 * call).max(0.0);
    add(
        "switch_ns",
        switch,
        "two threads on one core wake each other by pipes; less the calls",
    );
    if let Some(file) = file {
        let read = direct_read(file)?;
        let how = format!(
            "processor time of a direct read of 4 KiB from {}, its file system included; less a \
             call and two changes of threads",
            visible_path(file)
        );
        add("dispatch_ns", (read - call - 2.0 * switch).max(0.0), &how);
    }
    if cores > 1 {
        let turn = ping_pong([0, 1])?;
        let wake = (turn - 2.0 * call - switch).max(0.0);
        add(
            "wake_ns",
            wake,
            "the same on two cores; less the calls and a change of threads",
        );
        let way = bounce();
        add(
            "transfer_ns",
            way,
            "a counter that two cores change in turn: one way",
        );
    }
    add(
        "lock_ns",
        locked_words(),
        "an atomic exchange, eight words and a store, by one core",
    );
    bytes(&mut add);
    Ok(all)
}

/// Counts the cores, and those of a socket and of a cache; returns how many there are.
fn counts(add: &mut impl FnMut(&'static str, f64, &str)) -> io::Result<usize> {
    let cores = std::thread::available_parallelism()?.get();
    add("cores", cores as f64, "what the system lets a program use");
    let (packages, how) = (sockets(), "physical packages in /sys/devices/system/cpu");
    let packages = match cores.is_multiple_of(packages) {
        true => {
            add("sockets", packages as f64, how);
            packages
        }
        false => {
            add("sockets", 1.0, "one, as the cores are not spread evenly");
            1
        }
    };
    let each = cores / packages;
    match sharers().filter(|count| each.is_multiple_of(*count)) {
        Some(count) => {
            let how =
                "those that share the last cache of the first core in /sys/devices/system/cpu";
            add("cores_per_cache", count as f64, how);
        }
        None => {
            let how = "all of a socket, as the system does not say who shares a cache";
            add("cores_per_cache", each as f64, how);
        }
    }
    Ok(cores)
}

/// The time of one core to lock, to change eight words and to unlock, in nanoseconds.
fn locked_words() -> f64 {
    let lock = AtomicU64::new(0);
    let words = std::cell::Cell::new([0_u64; 8]);
    best(1000.0, || {
        for _ in 0..1000 {
            lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                .ok();
            words.set(black_box(words.get()));
            lock.store(0, Ordering::Release);
        }
    })
}

/// Measures the rates in bytes per second.
fn bytes(add: &mut impl FnMut(&'static str, f64, &str)) {
    let rate = |bytes: usize, nanos: f64| (bytes as f64 / nanos * 1e9).round();
    let data = vec![vec![0x5a_u8; BLOCK]; DATA];
    let (mut p, mut q) = (vec![0_u8; BLOCK], vec![0_u8; BLOCK]);
    let how = "four blocks of 64 KiB in the cache, by raidlab's own code";
    // A result that is never read need not be computed: it is read here.
    let xor = best(1.0, || {
        raidlab_parity::generate_p(&data, black_box(&mut p));
    });
    add("xor_bytes_per_second", rate(DATA * BLOCK, xor), how);
    let pq = best(1.0, || {
        raidlab_parity::generate_pq(&data, black_box(&mut p), black_box(&mut q));
    });
    add("pq_bytes_per_second", rate(DATA * BLOCK, pq), how);
    let (from, mut to) = (vec![1_u8; LARGE], vec![0_u8; LARGE]);
    let copy = best(1.0, || {
        black_box(&mut to).copy_from_slice(black_box(&from));
        black_box(&to);
    });
    add(
        "copy_bytes_per_second",
        rate(LARGE, copy),
        "64 MiB, which no cache holds",
    );
    let words: Vec<u32> = (0..16384).collect();
    let sum = best(1.0, || {
        black_box(fletcher4(black_box(&words)));
    });
    add(
        "checksum_bytes_per_second",
        rate(4 * words.len(), sum),
        "fletcher4 in a plain loop",
    );
    // The block is a record of ZFS; its file systems have records of 128 KiB.
    let record = vec![0x5a_u8; 2 * BLOCK];
    let sum = best(1.0, || {
        black_box(raidlab_lab::plan::sha256(black_box(&record)));
    });
    add(
        "sha256_bytes_per_second",
        rate(record.len(), sum),
        "records of 128 KiB in the cache, by the crate `ring`",
    );
}

/// Computes the checksum of ZFS: four sums, each of the one before.
fn fletcher4(words: &[u32]) -> [u64; 4] {
    let mut sums = [0_u64; 4];
    for &word in words {
        let mut add = u64::from(word);
        for sum in &mut sums {
            *sum = sum.wrapping_add(add);
            add = *sum;
        }
    }
    sums
}

fn sockets() -> usize {
    let package = |core: usize| {
        let path = format!("/sys/devices/system/cpu/cpu{core}/topology/physical_package_id");
        std::fs::read_to_string(path).ok()
    };
    let packages: std::collections::BTreeSet<String> = (0..4096).map_while(package).collect();
    packages.len().max(1)
}

/// The number of cores that share the first one's cache of the highest level, itself included.
fn sharers() -> Option<usize> {
    let caches = "/sys/devices/system/cpu/cpu0/cache";
    let read = |index: usize, name: &str| {
        std::fs::read_to_string(format!("{caches}/index{index}/{name}")).ok()
    };
    let levels = (0..16).map_while(|index| Some((read(index, "level")?, index)));
    let (_, last) = levels.max()?;
    let map = read(last, "shared_cpu_map")?;
    let digits = map.chars().filter_map(|digit| digit.to_digit(16));
    let count: u32 = digits.map(u32::count_ones).sum();
    usize::try_from(count).ok().filter(|count| *count > 0)
}

fn system_call() -> io::Result<f64> {
    let zero = File::open("/dev/zero")?;
    let mut byte = [0];
    zero.read_at(&mut byte, 0)?;
    Ok(best(100.0, || {
        for _ in 0..100 {
            zero.read_at(&mut byte, 0).ok();
        }
    }))
}

/// Keeps this thread on a core, if the system lets it.
fn stay_on(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).ok();
}

/// The nanoseconds until a byte that one thread has written into a pipe has been answered by
/// another one, halved.
fn ping_pong(cores: [usize; 2]) -> io::Result<f64> {
    let (mut to_other, mut from_this) = pipe()?;
    let (mut to_this, mut from_other) = pipe()?;
    let other = std::thread::spawn(move || {
        stay_on(cores[1]);
        let mut byte = [0];
        while to_other.read_exact(&mut byte).is_ok() && from_other.write_all(&byte).is_ok() {}
    });
    let this = std::thread::spawn(move || {
        stay_on(cores[0]);
        let mut byte = [0];
        best(2.0, || {
            from_this.write_all(&byte).ok();
            to_this.read_exact(&mut byte).ok();
        })
    });
    let time = this
        .join()
        .map_err(|_| io::Error::other("a thread ended"))?;
    other
        .join()
        .map_err(|_| io::Error::other("a thread ended"))?;
    Ok(time)
}

/// The nanoseconds until another core's change of a word is seen.
fn bounce() -> f64 {
    const TURNS: u64 = 100_000;
    let word = AtomicU64::new(0);
    let play = |core: usize, first: u64| {
        stay_on(core);
        let begun = Instant::now();
        for turn in 0..TURNS {
            while word.load(Ordering::Acquire) != 2 * turn + first {
                std::hint::spin_loop();
            }
            word.store(2 * turn + first + 1, Ordering::Release);
        }
        begun.elapsed().as_nanos() as f64 / (2 * TURNS) as f64
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| play(1, 1));
        let this = scope.spawn(|| play(0, 0));
        let times = [this.join(), other.join()].map(|time| time.unwrap_or(f64::MAX));
        times[0].min(times[1])
    })
}

/// The processor time of this thread for a direct read of 4 KiB.
fn direct_read(path: &Path) -> io::Result<f64> {
    const READS: u64 = 2000;
    let flags = rustix::fs::OFlags::DIRECT.bits();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.cast_signed())
        .open(path)?;
    let pages = file.metadata()?.len() / 4096;
    if pages == 0 {
        return Err(io::Error::other("the file has less than 4 KiB"));
    }
    let mut space = vec![0_u8; 8192];
    let begin = space.as_ptr().align_offset(4096);
    let buffer = &mut space[begin..begin + 4096];
    let before = thread_time();
    for number in 0..READS {
        let page = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % pages;
        file.read_exact_at(buffer, page * 4096)?;
    }
    Ok((thread_time() - before) / READS as f64)
}

/// The processor time of this thread so far, in nanoseconds.
fn thread_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

#[cfg(test)]
mod tests {
    use super::{fletcher4, measure};

    #[test]
    fn the_checksum_is_that_of_zfs() {
        // By hand: 1, 3, 6; 1, 4, 10; 1, 5, 15; 1, 6, 21.
        assert_eq!(fletcher4(&[1, 2, 3]), [6, 10, 15, 21]);
    }

    /// Rooms without optimisation are named in the same place.
    #[test]
    fn this_room_is_optimised_where_it_is_released() {
        let workspace = include_str!("../../../Cargo.toml");
        let (_, release) = workspace
            .split_once("[profile.release]")
            .expect("a profile");
        let name = concat!("package.", env!("CARGO_PKG_NAME"));
        let own = release.lines().find(|line| line.starts_with(name));
        assert!(
            own.is_some_and(|line| line.contains("opt-level = 3")),
            "{own:?}"
        );
    }

    #[test]
    fn what_is_measured_is_possible() {
        let all = measure(None).expect("pipes and threads");
        let of = |name: &str| all.iter().find(|one| one.name == name).map(|one| one.value);
        assert!(of("cores") >= Some(1.0));
        assert!(of("call_ns").is_some_and(|time| time > 20.0 && time < 1e6));
        assert!(of("xor_bytes_per_second").is_some_and(|rate| rate > 1e8));
        assert!(of("copy_bytes_per_second").is_some_and(|rate| (1e7..1e12).contains(&rate)));
        assert!(of("checksum_bytes_per_second").is_some_and(|rate| rate > 1e6));
        assert_eq!(of("dispatch_ns"), None, "no file was named");
    }
}
