//! A second made-up run, of real machines: two hosts, two subjects, file
//! systems, three repetitions, four tools, a disk pulled and put back.

use raidlab_store::fact::{self, claim_part, disk_property, outcome};
use raidlab_store::{
    AccuracyNote, CommandRecord, EventRecord, Finding, Latency, Measurement, MemberUse,
    Observation, Operation, Role, Run, Scope, Series, Severity,
};

/// Columns: host, subject, file system, how fast against the first.
pub const COLUMNS: [(&str, &str, &str, f64); 4] = [
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
pub fn measurements() -> Vec<Measurement> {
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
                        tag_overflows: 0,
                        leaped_percent: 0.0,
                        role: Role::Measured,
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
pub fn run() -> Run {
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
        arguments: Vec::new(),
        plan_hash: String::new(),
    }
}

/// What happened: jobs, and before the thirteenth a disk is pulled and put
/// back.
pub fn events() -> Vec<EventRecord> {
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
pub fn series() -> Vec<Series> {
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

/// Facts of the machines, the arrays and some jobs.
pub fn observations() -> Vec<Observation> {
    let mut all = Vec::new();
    let mut add = |scope: Scope, name: String, value: &str, unit: &str, source: &str| {
        all.push(Observation {
            scope,
            name,
            value: value.to_owned(),
            unit: unit.to_owned(),
            source: source.to_owned(),
        });
    };
    for (host, release, memory) in [
        ("alpha", "6.1.0-18-amd64", "8346419200"),
        ("beta", "5.10.0-28-amd64", "4119998464"),
    ] {
        let here = || Scope::host(host);
        add(here(), fact::OS_RELEASE.to_owned(), release, "", "uname -r");
        add(
            here(),
            fact::OS_NAME.to_owned(),
            "Debian",
            "",
            "/etc/os-release",
        );
        add(
            here(),
            fact::CPU_MODEL.to_owned(),
            "Intel(R) Xeon(R) E3-1230",
            "",
            "/proc/cpuinfo",
        );
        add(
            here(),
            fact::MEMORY_TOTAL_BYTES.to_owned(),
            memory,
            "bytes",
            "/proc/meminfo",
        );
        add(here(), fact::version("fio"), "3.33", "", "fio --version");
        add(here(), fact::version("mdadm"), "4.2", "", "mdadm --version");
        for device in ["sdb", "sdc"] {
            let disk = |property| fact::disk(device, property);
            add(
                here(),
                disk(disk_property::MODEL),
                "WD4000FYYZ",
                "",
                "/sys/block",
            );
            add(
                here(),
                disk(disk_property::SEQUENTIAL_BYTES_PER_SECOND),
                "171000000",
                "bytes/s",
                "data sheet",
            );
        }
    }
    for column in 0..COLUMNS.len() {
        let here = || Scope {
            repetition: None,
            ..experiment(column, 0)
        };
        add(
            here(),
            fact::ARRAY_LEVEL.to_owned(),
            "raid1",
            "",
            "mdadm --detail",
        );
        add(here(), fact::member_device(0), "sdb", "", "plan");
        add(here(), fact::member_device(1), "sdc", "", "plan");
    }
    let pool = || Scope {
        repetition: None,
        ..experiment(2, 0)
    };
    let applied = |name, what| fact::setting(name, what);
    add(
        pool(),
        applied("primarycache", outcome::ASKED),
        "metadata",
        "",
        "suite file",
    );
    add(
        pool(),
        applied("primarycache", outcome::FOUND),
        "all",
        "",
        "zfs get",
    );
    add(
        pool(),
        applied("primarycache", outcome::APPLIED),
        fact::FALSE,
        "",
        "",
    );
    add(
        pool(),
        applied("recordsize", outcome::ASKED),
        "128K",
        "",
        "suite file",
    );
    add(
        pool(),
        applied("recordsize", outcome::FOUND),
        "128K",
        "",
        "zfs get",
    );
    add(
        pool(),
        applied("recordsize", outcome::APPLIED),
        fact::TRUE,
        "",
        "",
    );
    let cell = Scope {
        sequence: Some(2),
        ..experiment(0, 0)
    };
    add(
        cell,
        fact::claim(Operation::Read, "", claim_part::VALUE),
        "91",
        "1/s",
        "made up",
    );
    all
}

/// Commands that ran, one of them in vain.
pub fn commands() -> Vec<CommandRecord> {
    let mut all = Vec::new();
    for column in 0..COLUMNS.len() {
        let mut add = |at: u64, command: &str, code: Option<i32>, stdout: String, stderr: &str| {
            all.push(CommandRecord {
                scope: experiment(column, 0),
                at_ns: at * SECOND,
                command: command.to_owned(),
                code,
                took_ns: 120_000_000,
                stdout,
                stderr: stderr.to_owned(),
            });
        };
        add(
            1,
            "mdadm --create /dev/md0 --level=1 --raid-devices=2 --bitmap=internal --run /dev/sdb /dev/sdc",
            Some(0),
            "mdadm: array /dev/md0 started.\n".to_owned(),
            "",
        );
        add(
            2,
            "zfs set primarycache=metadata",
            Some(2),
            String::new(),
            "missing dataset argument(s)\n",
        );
        add(
            3,
            "fio --output-format=json+ seqread.fio",
            Some(0),
            "{ \"fio version\": \"fio-3.33\" }\n".repeat(400),
            "",
        );
        add(4, "iostat 1", None, "sdb <&> sdc\n".to_owned(), "");
    }
    all
}

/// What an audit found: one of each severity, and one on a single repetition.
pub fn findings() -> Vec<Finding> {
    let finding = |rule: &str, title: &str, severity, scope, op| Finding {
        rule: rule.to_owned(),
        title: title.to_owned(),
        severity,
        scope,
        op,
        part: String::new(),
        evidence: String::new(),
        effect: String::new(),
        remedy: String::new(),
    };
    let bonnie = |host: &str| Scope {
        host: host.to_owned(),
        sequence: Some(10),
        ..Scope::default()
    };
    let mut cache = finding(
        "C1",
        "working set fits in memory",
        Severity::Fatal,
        bonnie("alpha"),
        Some(Operation::Read),
    );
    "688 MB/s where two disks do at most 342 MB/s".clone_into(&mut cache.evidence);
    "reads came from memory, not from the disks".clone_into(&mut cache.effect);
    "a file of at least twice the memory, or direct I/O".clone_into(&mut cache.remedy);
    let mut bound = cache.clone();
    bound.scope.host = "beta".to_owned();
    "420 MB/s where two disks do at most 342 MB/s".clone_into(&mut bound.evidence);
    let mut setting = finding(
        "C12",
        "setting not applied",
        Severity::Warning,
        Scope {
            subject: "zfs-mirror".to_owned(),
            ..Scope::default()
        },
        None,
    );
    "primarycache: asked metadata, found all".clone_into(&mut setting.evidence);
    "data were cached where only metadata should be".clone_into(&mut setting.effect);
    "name the data set: zfs set primarycache=metadata POOL/NAME".clone_into(&mut setting.remedy);
    let mut first = finding(
        "A9",
        "background writes of the file system",
        Severity::Fatal,
        Scope {
            sequence: Some(1),
            repetition: Some(0),
            ..experiment(0, 0)
        },
        None,
    );
    "31 MB written to the members in the idle second before".clone_into(&mut first.evidence);
    "the first repetition shared the disks with ext4lazyinit".clone_into(&mut first.effect);
    "-E lazy_itable_init=0,lazy_journal_init=0".clone_into(&mut first.remedy);
    let mut note = finding(
        "A3",
        "write-intent bitmap in force",
        Severity::Note,
        Scope {
            subject: "md-raid1".to_owned(),
            ..Scope::default()
        },
        Some(Operation::Write),
    );
    "bitmap internal".clone_into(&mut note.evidence);
    "random writes pay for it".clone_into(&mut note.effect);
    "say so beside the figures".clone_into(&mut note.remedy);
    vec![cache, bound, first, setting, note]
}

/// What the audit could judge.
pub fn notes() -> Vec<AccuracyNote> {
    vec![AccuracyNote {
        class: "audit".to_owned(),
        title: "Audit".to_owned(),
        statement: "41 rules judged, 22 lacked evidence.".to_owned(),
        ..AccuracyNote::default()
    }]
}
