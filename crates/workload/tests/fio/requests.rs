//! The model's requests beside fio's own, where fio's choice is deterministic:
//! the same requests in the same order; and where it draws, the same counts and
//! bounds. Runs where fio is installed, and says so where it is not.

use raidlab_random::Stream;
use raidlab_units::Bytes;
use raidlab_workload::{Direction, FioJobs, Permission, Placed, Target, ZonedDevice};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// The file that fio works on.
const FILE: u64 = 16 << 20;

/// A request: `read`, `write`, `trim` or `flush`, and the offset and length of its bytes.
type Request = (String, u64, u64);

/// A folder that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("raidlab-fio-requests-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn is_installed() -> bool {
    let found = Command::new("fio").arg("--version").output().is_ok();
    if !found {
        eprintln!("fio is not installed: nothing is compared");
    }
    found
}

/// What fio does with these options on a sparse file, or on nothing where they name the
/// null engine: files take no discards.
fn of_fio(name: &str, options: &str) -> Vec<Request> {
    let folder = Folder::new(name);
    let file = folder.0.join("data");
    let log = folder.0.join("requests.log");
    std::fs::File::create(&file)
        .and_then(|file| file.set_len(FILE))
        .expect("a sparse file");
    let output = Command::new("fio")
        .arg("--name=x")
        .arg(format!("--filename={}", file.display()))
        .arg(format!("--write_iolog={}", log.display()))
        .arg("--thread=1")
        .args(options.split_whitespace())
        .current_dir(&folder.0)
        .output()
        .expect("fio runs");
    assert!(
        output.status.success(),
        "{options}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = std::fs::read_to_string(&log).expect("fio's log of requests");
    let request = |line: &str| {
        let mut words = line.split_whitespace().rev();
        let length = words.next()?.parse().ok()?;
        let offset = words.next()?.parse().ok()?;
        let action = words.next()?;
        match action {
            "read" | "write" | "trim" => Some((action.to_owned(), offset, length)),
            "sync" | "datasync" => Some(("flush".to_owned(), 0, 0)),
            _ => None,
        }
    };
    text.lines().filter_map(request).collect()
}

/// What the model makes of the same options.
fn of_model(options: &str) -> Vec<Request> {
    let words: Vec<&str> = options.split_whitespace().collect();
    let file = FioJobs::from_command_line("x", &words, &Permission::default())
        .and_then(|jobs| jobs.model())
        .unwrap_or_else(|error| panic!("{options}: {error}"));
    let job = &file.groups[0].jobs[0];
    let mut stream = job
        .request_stream(0, Bytes(FILE), Stream::new(1))
        .expect("it fits");
    let mut zones = ZonedDevice::default();
    let next = || loop {
        let drawn = stream.next_unit()?;
        let unit = match zones.place((0, job), stream.region(), drawn, true) {
            Placed::At(unit) => {
                zones.ended(job, unit);
                unit
            }
            Placed::Emptied(unit) => unit,
            Placed::Wait => panic!("{options}: nothing is in flight"),
            Placed::Nowhere => {
                stream.end_pass(false);
                continue;
            }
        };
        stream.put(&drawn, &unit);
        return Some(unit);
    };
    std::iter::from_fn(next)
        .take(100_000)
        .map(|unit| {
            let action = match unit.direction {
                Direction::Read => "read",
                Direction::Write => "write",
                Direction::Trim => "trim",
                Direction::Flush => "flush",
            };
            (action.to_owned(), unit.offset.0, unit.length.0)
        })
        .collect()
}

/// Options whose requests follow from the options alone.
const DETERMINISTIC: [&str; 83] = [
    "--rw=read --bs=64k --size=1m",
    "--rw=write --bs=64k --size=1m",
    "--rw=read --bs=64k",
    "--rw=read --bs=48k --size=1m",
    "--rw=read --bs=64k --size=1m --offset=2m",
    "--rw=read --bs=64k --offset=15m",
    "--rw=read --bs=64k --size=25%",
    "--rw=read --bs=64k --size=1m --offset=30%",
    "--rw=read --bs=64k --size=1m --offset=30% --offset_align=1m",
    "--rw=read --bs=64k --filesize=4m --offset=3m",
    "--rw=read --bs=64k --size=512k --loops=3",
    "--rw=read --bs=64k --size=1m --io_size=512k",
    "--rw=write --bs=64k --size=512k --io_size=1m",
    "--rw=read --bs=64k --size=1m --io_size=50%",
    "--rw=read --bs=64k --size=1m --number_ios=5",
    "--rw=read --bs=64k --size=1m --number_ios=5 --loops=2",
    "--rw=read --bs=64k --size=512k --io_size=2m --loops=2",
    "--rw=read --bs=64k --size=512k --io_size=540k",
    "--rw=write --bs=64k --size=1000k --loops=2",
    "--rw=read --bs=64k --size=512k --filesize=1m --loops=3",
    "--rw=write --bs=64k --size=512k --filesize=1200k --io_size=2m",
    "--rw=read --bs=12k --size=1m --io_size=75% --loops=3",
    "--rw=read:8k --bs=12k --size=50%",
    "--rw=read:8k --bs=64k --size=500k",
    "--rw=read:4k --bs=1k --size=33% --loops=3 --number_ios=2000",
    "--rw=read:64k --bs=64k --size=1m",
    "--rw=write:112k --bs=16k --size=1m",
    "--rw=write:112k --bs=16k --size=1m --io_size=512k",
    "--rw=read:64k --bs=64k",
    "--rw=write:64k --bs=16k --io_size=24m",
    "--rw=read:-128k --bs=64k --size=1m",
    "--rw=read:-8k --bs=4k --size=256k",
    "--rw=write --bs=4k,64k --size=1m",
    "--rw=read --bs=64k --zonemode=strided --zonesize=256k --zoneskip=768k --io_size=1m",
    "--rw=read --bs=64k --zonemode=strided --zonesize=512k --zonerange=256k --zoneskip=256k --io_size=2m",
    "--rw=write --bs=64k --size=512k --verify=crc32c",
    "--rw=write --bs=64k --size=512k --verify=crc32c --verify_backlog=4",
    "--rw=write --bs=64k --size=512k --verify=crc32c --do_verify=0",
    "--rw=write --bs=64k --size=1m --verify=crc32c --verify_backlog=4 --verify_backlog_batch=2",
    "--rw=write --bs=64k --size=1m --verify=crc32c --verify_backlog=2 --verify_backlog_batch=5",
    "--rw=write --bs=64k --size=1m --verify_pattern=0xff",
    "--rw=write --bs=64k --size=1m --verify_pattern=0xff --verify=0",
    "--rw=write:-8k --bs=4k --size=64k --verify=crc32c",
    // Steps and strides around the end of the device.
    "--rw=read:1m --bs=64k",
    "--rw=read:1m --bs=64k --number_ios=30",
    "--rw=read:-8k --bs=4k --offset=15m",
    "--rw=read:-8k --bs=4k --size=4m --offset=1m --number_ios=10",
    "--rw=write --bs=64k --zonemode=strided --zonesize=256k --zoneskip=768k --size=8m",
    "--rw=write --bs=64k --zonemode=strided --zonesize=256k --zoneskip=768k --size=8m --offset=1m",
    // What is said of sizes twice, or not at all.
    "--rw=write --bssplit=8k/100 --bs=4k --size=64k",
    "--rw=read --bs=16k --bs=,8k --size=64k",
    "--rw=write --bs=16k --bs=8k, --size=64k",
    "--rw=write --bs=32k --bsrange=4k-16k, --size=1m",
    "--rw=write --bs=32k --bsrange=8k-8k --size=1m",
    "--rw=read --bs=32k --bssplit=,4k/50:8k/50 --size=1m",
    "--rw=write --bssplit=8k/0:4k/100 --size=64k",
    "--rw=write --bs=64k --size=0%",
    "--rw=read --bs=64k --size=1m --io_size=0%",
    // Discards.
    "--ioengine=null --rw=trim --bs=64k --size=1m",
    "--ioengine=null --rw=trim --bs=64k --size=1m --offset=2m --loops=2",
    "--ioengine=null --rw=trim --bs=4k,8k,64k --size=1m --io_size=512k",
    "--ioengine=null --rw=trim:64k --bs=64k --size=1m --number_ios=8",
    "--ioengine=null --rw=trim --bs=64k --size=1m --number_ios=5",
    "--ioengine=null --rw=trimwrite --bs=64k --size=1m",
    "--ioengine=null --rw=trimwrite --bs=64k --size=1m --offset=3m --loops=3",
    "--ioengine=null --rw=trimwrite --bs=64k --size=1m --number_ios=5",
    "--ioengine=null --rw=trimwrite --bs=512,512,16k --size=128k",
    "--ioengine=null --rw=trimwrite --bs=4k,4k,64k --size=1m --loops=2",
    "--ioengine=null --rw=trimwrite --bs=64k,64k,4k --size=1m",
    "--ioengine=null --rw=trimwrite --bs=64k --size=2m --io_size=1m",
    // Zones that are written in sequence.
    "--rw=write --bs=64k --zonemode=zbd --zonesize=1m --size=4m",
    "--rw=write --bs=32k --zonemode=zbd --zonesize=1m --size=4m",
    "--rw=write --bs=64k --zonemode=zbd --zonesize=1m --offset=2z --size=3z",
    "--rw=write --bs=64k --zonemode=zbd --zonesize=1m --offset=1500k --size=4m",
    "--rw=write --bs=64k --zonemode=zbd --zonesize=1m --zonecapacity=768k --size=4m",
    "--rw=write --bs=64k --zonemode=zbd --zonesize=1m --size=2m --io_size=6m",
    "--rw=write --bs=64k --zonemode=zbd --zonesize=1m --size=2m --loops=3",
    "--rw=write --bs=64k --zonemode=zbd --zonesize=1m --size=4m --max_open_zones=2",
    "--rw=write --bs=64k --zonemode=zbd --zonesize=1m --size=4m --io_size=8m \
     --zone_reset_threshold=0.5 --zone_reset_frequency=0.125",
    "--rw=write --bs=64k --zonemode=zbd --zonesize=1m --size=4m --zone_reset_frequency=0.25",
    "--rw=read --bs=64k --zonemode=zbd --zonesize=1m --size=4m --read_beyond_wp=1",
    "--ioengine=null --rw=trim --bs=1m --zonemode=zbd --zonesize=1m --size=4m",
    "--rw=write --bs=1m --zonemode=zbd --zonesize=1m --size=16m --max_open_zones=1",
];

#[test]
fn what_fio_does_not_draw_is_the_same_in_the_same_order() {
    if !is_installed() {
        return;
    }
    all_alike(&DETERMINISTIC, false);
}

/// Compares the requests of each job, up to where the shorter list ends if they `go_on` for ever.
pub(crate) fn all_alike<T: AsRef<str>>(jobs: &[T], go_on: bool) {
    let difference = |(index, options): (usize, &T)| {
        let options = options.as_ref();
        let fio = of_fio(&format!("{}-{index}", jobs.len()), options);
        let model = of_model(options);
        assert!(!fio.is_empty(), "{options}");
        let pairs = fio.len().min(model.len());
        let differs = fio.iter().zip(&model).position(|(fio, model)| fio != model);
        let same = differs.is_none() && (go_on || fio.len() == model.len());
        let from = differs.unwrap_or(pairs);
        (!same).then(|| {
            format!(
                "{options}: {} of fio's, {} of the model's, from request {from}: {:?} {:?}",
                fio.len(),
                model.len(),
                &fio[from..(from + 3).min(fio.len())],
                &model[from..(from + 3).min(model.len())],
            )
        })
    };
    let wrong: Vec<String> = jobs.iter().enumerate().filter_map(difference).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn counts<T: Ord>(requests: &[Request], key: impl Fn(&Request) -> T) -> BTreeMap<T, u64> {
    let mut counts = BTreeMap::new();
    for request in requests {
        *counts.entry(key(request)).or_default() += 1;
    }
    counts
}

/// Shares of a hundred, of counts.
fn shares<T: Ord + Copy>(counts: &BTreeMap<T, u64>) -> BTreeMap<T, u64> {
    let all: u64 = counts.values().sum();
    let share = |(&key, count): (&T, &u64)| (key, (count * 100 + all / 2) / all.max(1));
    counts.iter().map(share).collect()
}

fn alike<T: Ord + Copy + std::fmt::Debug>(
    options: &str,
    key: impl Fn(&Request) -> T + Copy,
    model: &[Request],
    fio: &[Request],
) {
    let (model, fio) = (shares(&counts(model, key)), shares(&counts(fio, key)));
    for (key, share) in &fio {
        let ours = model.get(key).copied().unwrap_or(0);
        assert!(
            ours.abs_diff(*share) <= 3,
            "{options}: {key:?} {ours} % not {share} %"
        );
    }
}

#[test]
fn what_fio_draws_has_the_same_shares() {
    if !is_installed() {
        return;
    }
    let sizes = [
        "--rw=randread --bssplit=4k/60:16k/30:64k/10 --norandommap --io_size=64m",
        "--rw=randread --bsrange=4k-16k --norandommap --io_size=64m",
        "--rw=randwrite --bssplit=512/10:4k/90 --blockalign=4k --norandommap --io_size=16m",
        "--rw=randread --bssplit=4k/50:8k/50 --bsrange=4k-16k --bs=32k --norandommap --io_size=64m",
        "--rw=write --bssplit=4k/0:8k --io_size=16m",
    ];
    for (index, options) in sizes.into_iter().enumerate() {
        let fio = of_fio(&format!("sizes{index}"), options);
        let model = of_model(options);
        alike(options, |(_, _, length)| *length, &model, &fio);
        let multiple = |requests: &[Request]| {
            let smallest = requests
                .iter()
                .map(|(_, offset, _)| offset.trailing_zeros())
                .min();
            smallest.unwrap_or(0)
        };
        assert_eq!(multiple(&model), multiple(&fio), "{options}");
    }
    let places = [
        "--rw=randread --bs=4k --norandommap --random_distribution=zoned:50/5:30/15:20/ --io_size=64m",
        "--rw=randread --bs=4k --norandommap --random_distribution=zoned_abs:60/1m:40/7m --io_size=64m",
        "--rw=randread --bs=4k --norandommap --random_distribution=zoned:100/10:0/90 --io_size=16m",
    ];
    for (index, options) in places.into_iter().enumerate() {
        let fio = of_fio(&format!("places{index}"), options);
        let model = of_model(options);
        // Twentieths of the file.
        alike(options, |(_, offset, _)| offset * 20 / FILE, &model, &fio);
    }
    let curves = ["zipf:0.9", "zipf:1.2", "pareto:0.2"];
    for (index, curve) in curves.into_iter().enumerate() {
        let options = format!(
            "--rw=randread --bs=4k --norandommap --random_distribution={curve} --io_size=64m"
        );
        let fio = of_fio(&format!("curves{index}"), &options);
        let model = of_model(&options);
        // The share of the requests that the most wanted tenth of the blocks has.
        let top = |requests: &[Request]| {
            let mut counts: Vec<u64> = counts(requests, |(_, offset, _)| *offset)
                .into_values()
                .collect();
            counts.sort_unstable_by(|one, other| other.cmp(one));
            counts.iter().take(410).sum::<u64>() * 100 / requests.len() as u64
        };
        let (ours, theirs) = (top(&model), top(&fio));
        assert!(
            ours.abs_diff(theirs) <= 4,
            "{curve}: {ours} % not {theirs} %"
        );
    }
    let runs = "--rw=randread:8 --bs=4k --norandommap --io_size=16m";
    let jumps = |requests: &[Request]| {
        let pairs = requests.windows(2);
        pairs
            .filter(|pair| pair[1].1 != pair[0].1 + pair[0].2)
            .count()
            * 100
            / requests.len()
    };
    let (ours, theirs) = (jumps(&of_model(runs)), jumps(&of_fio("runs", runs)));
    assert!(ours.abs_diff(theirs) <= 1, "{ours} {theirs}");
}

/// Offsets of reads and of writes.
fn offsets(requests: &[Request], action: &str) -> Vec<u64> {
    let of = requests.iter().filter(|(one, _, _)| one == action);
    of.map(|&(_, offset, _)| offset).collect()
}

#[test]
fn a_random_pass_is_read_back_as_it_was_written_or_by_offset() {
    if !is_installed() {
        return;
    }
    let mapped = "--rw=randwrite --bs=64k --size=1m --verify=crc32c";
    let unmapped = "--rw=randwrite --bs=64k --size=1m --verify=crc32c --norandommap --io_size=1m";
    let skewed = "--rw=randwrite --bs=64k --size=1m --verify=crc32c --random_distribution=zipf:1.2";
    for (index, options) in [mapped, unmapped, skewed].into_iter().enumerate() {
        let both = [
            of_model(options),
            of_fio(&format!("verify{index}"), options),
        ];
        for requests in both {
            let (mut written, read) = (offsets(&requests, "write"), offsets(&requests, "read"));
            assert_eq!(written.len(), 16, "{options}");
            if index > 0 {
                written.sort_unstable();
                written.dedup();
            }
            assert_eq!(read, written, "{options}");
        }
    }
}

/// Options that draw, and that fio draws by its `randseed` alone.
const DRAWN: [&str; 33] = [
    "--rw=randread --bs=4k --norandommap --io_size=16m",
    "--rw=randwrite --bs=64k --norandommap --io_size=64m",
    "--rw=randread --bs=4k --size=25% --offset=30%",
    "--rw=randwrite --bs=4k",
    "--rw=randwrite --bs=4k --size=1m --loops=3",
    "--rw=randread --bs=12k --size=1m",
    "--rw=randrw --bs=8k --rwmixread=30 --norandommap --io_size=64m",
    "--rw=randrw --bs=4k --rwmixread=67",
    "--rw=randrw --bs=4k --rwmixread=1 --norandommap --io_size=4m",
    "--rw=rw --bs=64k --rwmixread=90 --size=8m",
    "--rw=rw --bs=64k --size=2m --loops=4",
    "--rw=rw --bs=64k --size=1m --filesize=2m --io_size=6m",
    "--rw=rw --bs=48k --size=1m --loops=3",
    "--rw=randread --bs=12k --size=1m --filesize=2m",
    "--rw=randread --bssplit=4k/60:16k/30:64k/10 --norandommap --io_size=16m",
    "--rw=randrw --rwmixread=67 --bssplit=4k/60:16k/30:64k/10 --norandommap --io_size=16m",
    "--rw=randread --bssplit=4k:16k:64k:8k:32k:128k --norandommap --io_size=16m",
    "--rw=randread --bssplit=4k/50:8k:16k:32k --norandommap --io_size=16m",
    "--rw=randread --bsrange=4k-64k --norandommap --io_size=16m",
    "--rw=randwrite --bs=4k --fsync=3 --norandommap --io_size=4m",
    "--rw=write --bsrange=4k-16k --size=4m",
    "--rw=read --bssplit=4k/10:8k:16k --size=4m --loops=2",
    "--rw=write --bsrange=4k-16k --bs_unaligned=1 --size=4m",
    "--rw=read --bsrange=512-5000 --bs_unaligned=1 --size=1m --loops=3",
    "--rw=read --bsrange=4k-16k --bs_unaligned=1",
    "--rw=read --bsrange=4k-16k --bs_unaligned=1 --size=1m --io_size=2500k",
    // With a map of the smallest size.
    "--rw=randread --bs=64k,16k",
    "--rw=randwrite --bs=64k,16k --size=4m",
    "--rw=randwrite --bs=16k,64k --size=4m --loops=2",
    "--rw=randrw --bs=64k,16k --size=4m",
    "--rw=randread --bsrange=4k-16k --size=4m",
    "--rw=randwrite --bssplit=4k/60:16k/30:64k/10 --size=4m",
    "--rw=randread --bsrange=4k-16k --bs_unaligned=1 --size=1m",
];

#[test]
fn a_seed_gives_the_requests_that_fio_draws() {
    if !is_installed() {
        return;
    }
    all_alike(&with_seeds(&DRAWN), false);
}

/// The jobs with a `randseed`, each with another one than the job before it.
pub(crate) fn with_seeds(jobs: &[&str]) -> Vec<String> {
    let seeds = [1, 301, 123_456_789_012_u64].into_iter().cycle();
    let seeded = jobs.iter().zip(seeds);
    seeded
        .map(|(options, seed)| format!("{options} --randrepeat=0 --randseed={seed}"))
        .collect()
}

/// A disk can go while a run goes on. fio would make a file of its name in `/dev`, fill the
/// memory with it and tell that memory's speed.
#[test]
fn a_device_that_has_gone_is_no_file_to_be_made() {
    if !is_installed() {
        return;
    }
    let folder = Folder::new("gone");
    let gone = folder.0.join("sdz").display().to_string();
    for options in ["--rw=write --size=64k", "--rw=randread --size=64k"] {
        let options: Vec<&str> = options.split(' ').collect();
        let jobs = FioJobs::from_command_line("x", &options, &Permission::default());
        let output = Command::new("fio")
            .args(jobs.expect("valid").arguments(Target::File(&gone)))
            .current_dir(&folder.0)
            .output()
            .expect("fio runs");
        assert!(!output.status.success(), "{options:?}");
        assert!(!PathBuf::from(&gone).exists(), "{options:?}");
    }
}
