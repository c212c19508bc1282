//! A second made-up run, of real machines: two hosts, two subjects, file
//! systems, three repetitions, four tools, a disk pulled and put back.

mod records;

use raidlab_report::RunData;
use raidlab_store::{
    EventRecord, Latency, Measurement, MemberUse, Operation, Role, Run, Scope, Series,
};
use records::{commands, findings, notes, observations};

/// The whole run of real machines.
pub fn data() -> RunData {
    RunData {
        run: run(),
        settings: Vec::new(),
        measurements: measurements(),
        notes: notes(),
        observations: observations(),
        commands: commands(),
        events: events(),
        series: series(),
        findings: findings(),
    }
}

/// Columns: host, subject, file system, how fast against the first.
const COLUMNS: [(&str, &str, &str, f64); 4] = [
    ("alpha", "md-raid1", "ext4", 1.0),
    ("alpha", "md-raid1", "xfs", 1.07),
    ("alpha", "zfs-mirror", "zfs", 0.83),
    ("beta", "md-raid1", "ext4", 0.61),
];

const REPETITIONS: u32 = 3;
const SECOND: u64 = 1_000_000_000;
/// Seconds that a job's cell takes on the experiment's clock.
const SLOT: u64 = 40;

struct Job {
    name: &'static str,
    title: String,
    class: &'static str,
    tool: &'static str,
    block_size_bytes: u64,
    queue_depth: u32,
    streams: u32,
    /// Operation, part, bytes per second (0: none), operations per second.
    rows: Vec<(Operation, String, f64, f64)>,
}

fn fio(name: &'static str, class: &'static str, op: Operation, kib: u64, depth: u32) -> Job {
    let bytes = (kib * 1024) as f64;
    let iops = match (class, op) {
        ("sequential", _) => 175e6 / bytes,
        (_, Operation::Read) => 90.0 + 160.0 * f64::from(depth).ln() / 3.5,
        _ => 1.0 / (0.0048 + bytes / 160e6),
    };
    Job {
        name,
        title: format!("{class} {op} {kib} KiB, queue depth {depth}"),
        class: match (class, op) {
            ("sequential", Operation::Read) => "sequential-read",
            ("sequential", _) => "sequential-write",
            ("resync", _) => "resync",
            (_, Operation::Read) => "random-read",
            _ => "random-write",
        },
        tool: "fio 3.33",
        block_size_bytes: kib * 1024,
        queue_depth: depth,
        streams: 1,
        rows: vec![(op, String::new(), iops * bytes, iops)],
    }
}

fn jobs() -> Vec<Job> {
    use Operation::{Read, Write};
    let mut jobs = vec![
        fio("seqread", "sequential", Read, 1024, 1),
        fio("seqwrite", "sequential", Write, 1024, 1),
        fio("rr-1", "random", Read, 4, 1),
        fio("rr-4", "random", Read, 4, 4),
        fio("rr-16", "random", Read, 4, 16),
        fio("rr-32", "random", Read, 4, 32),
        fio("rw-4k", "random", Write, 4, 1),
        fio("rw-16k", "random", Write, 16, 1),
        fio("rw-64k", "random", Write, 64, 1),
        fio("rw-256k", "random", Write, 256, 1),
    ];
    let plain = |op, bytes: f64, per_second| (op, String::new(), bytes, per_second);
    jobs.push(Job {
        name: "bonnie",
        title: "bonnie++, 16 GiB".to_owned(),
        class: "file-system",
        tool: "bonnie++ 2.00",
        block_size_bytes: 8192,
        queue_depth: 1,
        streams: 1,
        rows: vec![
            plain(Operation::WriteCharacter, 1.1e6, 0.0),
            plain(Write, 141e6, 0.0),
            plain(Operation::Rewrite, 68e6, 0.0),
            plain(Read, 688e6, 0.0),
            plain(Operation::Seek, 0.0, 412.0),
            plain(Operation::CreateSequential, 0.0, 18_734.0),
        ],
    });
    let mut table = Vec::new();
    for (op, best) in [(Write, 120e6), (Read, 150e6), (Operation::RandomRead, 60e6)] {
        for file in [64_u32, 256, 1024] {
            for record in [4_u32, 64, 1024] {
                let part = format!("{}k/{record}k", file * 1024);
                let share = f64::from(record).ln() / 1024_f64.ln();
                let size = 1.0 - f64::from(file) / 8192.0;
                table.push((op, part, best * (0.3 + 0.7 * share) * size, 0.0));
            }
        }
    }
    jobs.push(Job {
        name: "iozone",
        title: "iozone, direct, up to 1 GiB".to_owned(),
        class: "file-sizes",
        tool: "iozone 3.489",
        block_size_bytes: 0,
        queue_depth: 1,
        streams: 1,
        rows: table,
    });
    for name in ["resync-1", "resync-2", "resync-3"] {
        jobs.push(fio(name, "resync", Read, 4, 32));
    }
    jobs
}

/// The same noise everywhere and always, -1 to 1.
fn noise(seed: u64) -> f64 {
    let mut word = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((word >> 40) as f64) / f64::from(1 << 23) - 1.0
}

fn sync_percent(sequence: usize) -> Option<f64> {
    (sequence >= 12).then(|| [2.0, 41.0, 83.0][sequence - 12])
}

/// Every measurement.
fn measurements() -> Vec<Measurement> {
    let mut all = Vec::new();
    for (sequence, job) in jobs().iter().enumerate() {
        for (column, &(host, subject, filesystem, speed)) in COLUMNS.iter().enumerate() {
            for repetition in 0..REPETITIONS {
                for (place, (op, part, bytes, per_second)) in job.rows.iter().enumerate() {
                    let seed = [sequence, column, repetition as usize, place];
                    let seed = seed.iter().fold(7, |sum, n| sum * 31 + *n as u64);
                    let sync = sync_percent(sequence);
                    let slow = if sync.is_some() { 0.55 } else { 1.0 };
                    let factor = speed * slow * (1.0 + 0.015 * noise(seed));
                    let (bytes, iops) = (bytes * factor, per_second * factor);
                    let runtime = 30.0;
                    let mean_ns = 1e9 * f64::from(job.queue_depth) / iops.max(1.0);
                    let known = job.tool.starts_with("fio");
                    let at = |times: f64| if known { (mean_ns * times) as u64 } else { 0 };
                    let state = if sync.is_some() { "[U_]" } else { "[UU]" };
                    all.push(Measurement {
                        bench: "host".to_owned(),
                        suite: "bench-sample".to_owned(),
                        host: host.to_owned(),
                        subject: subject.to_owned(),
                        filesystem: filesystem.to_owned(),
                        fit: String::new(),
                        sequence: sequence as u32,
                        job: job.name.to_owned(),
                        job_title: job.title.clone(),
                        repetition,
                        tool: job.tool.to_owned(),
                        part: part.clone(),
                        class: job.class.to_owned(),
                        op: *op,
                        block_size_bytes: job.block_size_bytes,
                        queue_depth: job.queue_depth,
                        streams: job.streams,
                        total_ios: if known { (iops * runtime) as u64 } else { 0 },
                        total_bytes: (bytes * runtime) as u64,
                        started_ns: started(sequence) * SECOND,
                        runtime_ns: 30 * SECOND,
                        iops,
                        bytes_per_second: bytes,
                        cpu_percent: Some(3.0),
                        runtime_band_ns: 0,
                        kept_percent: None,
                        latency: Latency {
                            mean_ns: if known { mean_ns } else { 0.0 },
                            p50_ns: at(0.8),
                            p90_ns: at(1.7),
                            p99_ns: at(3.0),
                            p999_ns: at(4.4),
                            max_ns: at(6.0),
                            histogram: Vec::new(),
                        },
                        array_state_start: state.to_owned(),
                        array_state_end: state.to_owned(),
                        sync_percent_start: sync,
                        sync_percent_end: sync.map(|percent| percent + 15.0),
                        tag_overflows: Some(0),
                        leaped_percent: 0.0,
                        role: Role::Measured,
                        disk_band: None,
                        members: members(iops, *op),
                        published: Vec::new(),
                    });
                }
            }
        }
    }
    all
}

fn members(iops: f64, op: Operation) -> Vec<MemberUse> {
    let reads = if op.only_reads() { iops * 30.0 } else { 0.0 };
    let share = |slot: usize| (reads * [0.62, 0.38][slot]) as u64;
    (0..2)
        .map(|slot| MemberUse {
            member: slot.to_string(),
            model: "WD4000FYYZ".to_owned(),
            read_ios: share(slot),
            read_bytes: share(slot) * 4096,
            ..MemberUse::default()
        })
        .collect()
}

fn started(sequence: usize) -> u64 {
    10 + sequence as u64 * SLOT
}

fn experiment(column: usize, repetition: u32) -> Scope {
    let (host, subject, filesystem, _) = COLUMNS[column];
    Scope {
        host: host.to_owned(),
        subject: subject.to_owned(),
        filesystem: filesystem.to_owned(),
        sequence: None,
        repetition: Some(repetition),
    }
}

fn experiments() -> impl Iterator<Item = (usize, u32)> {
    (0..COLUMNS.len()).flat_map(|column| (0..REPETITIONS).map(move |r| (column, r)))
}

/// The made-up run's head.
fn run() -> Run {
    Run {
        name: "20261121T061500Z-bench-sample".to_owned(),
        started: "2026-11-21T06:15:00Z".to_owned(),
        finished: Some("2026-11-21T08:31:12Z".to_owned()),
        bench: "host".to_owned(),
        suite: "bench-sample".to_owned(),
        suite_title: "Mirrors of two disks on two machines".to_owned(),
        seed: 7,
        raidlab_version: "0.1.0".to_owned(),
        command_line: "raidlab run bench-sample --on host --host alpha --host beta".to_owned(),
        plan_hash: String::new(),
    }
}

/// What happened: jobs, and before the thirteenth a disk is pulled and put
/// back.
fn events() -> Vec<EventRecord> {
    let mut all = Vec::new();
    for (column, repetition) in experiments() {
        let mut add = |at: u64, kind: &str, member: Option<u32>, text: &str| {
            all.push(EventRecord {
                scope: experiment(column, repetition),
                at_ns: at * SECOND,
                kind: kind.to_owned(),
                member,
                text: text.to_owned(),
            });
        };
        for (sequence, job) in jobs().iter().enumerate() {
            if sequence == 12 {
                add(
                    started(12) - 8,
                    "fail",
                    Some(1),
                    "member 1 (sdc) set faulty",
                );
                add(started(12) - 7, "remove", Some(1), "member 1 (sdc) removed");
                add(started(12) - 4, "insert", Some(1), "member 1 (sdc) added");
                add(started(12) - 3, "sync-start", None, "recovery of member 1");
            }
            add(started(sequence), "job-start", None, job.name);
            add(started(sequence) + 30, "job-end", None, job.name);
        }
        add(started(14) + 36, "sync-end", None, "recovery done, [UU]");
    }
    all
}

/// One sample a second of throughput, sync, members and temperatures.
fn series() -> Vec<Series> {
    use raidlab_store::fact::series as names;
    let jobs = jobs();
    let end = started(jobs.len()) + 5;
    let mut all = Vec::new();
    for (column, repetition) in experiments() {
        let speed = COLUMNS[column].3;
        let running = |second: u64| {
            let sequence = (second.checked_sub(10)? / SLOT) as usize;
            (second < started(sequence) + 30)
                .then(|| jobs.get(sequence))
                .flatten()
        };
        let rate = |second: u64, reads: bool| {
            let Some(job) = running(second) else {
                return 0.0;
            };
            let rows = job.rows.iter();
            let own = rows.filter(|row| row.0.only_reads() == reads);
            let (count, sum) = own.fold((0.0, 0.0), |(n, sum), row| (n + 1.0, sum + row.2));
            let wobble =
                1.0 + 0.08 * noise(second * 131 + column as u64 * 7 + u64::from(repetition));
            if count > 0.0 {
                speed * sum / count * wobble
            } else {
                0.0
            }
        };
        let sync_from = started(12) - 3;
        let sync = |second: u64| {
            100.0 * (second - sync_from) as f64 / (started(14) + 36 - sync_from) as f64
        };
        let mut add = |name: String, unit: &str, points: Vec<(u64, f64)>| {
            let points = points
                .into_iter()
                .map(|(second, value)| (second * SECOND, value));
            all.push(Series {
                scope: experiment(column, repetition),
                name,
                unit: unit.to_owned(),
                points: points.collect(),
            });
        };
        let reads = |second| (second, rate(second, true));
        let writes = |second| (second, rate(second, false));
        add(
            names::READ_BYTES_PER_SECOND.to_owned(),
            "bytes/s",
            (0..end).map(reads).collect(),
        );
        add(
            names::WRITE_BYTES_PER_SECOND.to_owned(),
            "bytes/s",
            (0..end).map(writes).collect(),
        );
        let synced = (sync_from..started(14) + 36).map(|second| (second, sync(second)));
        add(names::SYNC_PERCENT.to_owned(), "percent", synced.collect());
        for slot in 0..2_usize {
            let out = move |second: u64| {
                slot == 1 && (started(12) - 8..started(12) - 4).contains(&second)
            };
            let share = [0.62, 0.38][slot];
            let read = |second| {
                (
                    second,
                    if out(second) {
                        0.0
                    } else {
                        rate(second, true) * share
                    },
                )
            };
            let write = |second| {
                let copied = if slot == 1 && (sync_from..started(14) + 36).contains(&second) {
                    60e6
                } else {
                    0.0
                };
                (
                    second,
                    if out(second) {
                        0.0
                    } else {
                        rate(second, false) + copied
                    },
                )
            };
            add(
                names::member(slot, "read_bytes_per_second"),
                "bytes/s",
                (0..end).map(read).collect(),
            );
            add(
                names::member(slot, "write_bytes_per_second"),
                "bytes/s",
                (0..end).map(write).collect(),
            );
            let warm = |second: u64| (second, 31.0 + slot as f64 + (second / 90) as f64);
            add(
                names::member(slot, "temperature_celsius"),
                "celsius",
                (0..end).step_by(60).map(warm).collect(),
            );
        }
    }
    all
}
