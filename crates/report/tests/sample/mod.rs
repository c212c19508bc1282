//! A made-up run of the 2015 mirror suite: the published side are the figures
//! that the article printed (Geomflash, "Comparison of raid1 performance: md,
//! gflash, gmirror, zfs mirror", May 2015); our side is those figures with a
//! small pattern of errors, so that every table and chart has something to show.

use raidlab_report::RunData;
use raidlab_store::{
    AccuracyNote, Latency, Measurement, MemberUse, Operation, PublishedFigure, Role, Run, Setting,
};

pub mod bench;
mod jobs;

use jobs::{Job, jobs};

/// The whole run of a model.
pub fn data() -> RunData {
    RunData {
        run: run(),
        settings: settings(),
        measurements: measurements(),
        notes: notes(),
        observations: Vec::new(),
        commands: Vec::new(),
        events: Vec::new(),
        series: Vec::new(),
        findings: Vec::new(),
    }
}

const SUBJECTS: [&str; 4] = ["md", "gflash", "gmirror", "zfs"];

/// Sync percent at the start of jobs 21 to 29, as printed for md and gflash;
/// gmirror and zfs between their printed ends.
const SYNC: [[f64; 9]; 4] = [
    [0.0, 16.0, 30.0, 45.0, 58.0, 71.0, 82.0, 92.0, 100.0],
    [0.0, 15.0, 30.0, 44.0, 58.0, 70.0, 82.0, 92.0, 100.0],
    [0.0, 12.0, 24.0, 36.0, 48.0, 60.0, 72.0, 84.0, 95.0],
    [0.0, 8.0, 16.0, 24.0, 31.0, 39.0, 47.0, 54.0, 62.0],
];

/// The errors of our side, percent: large for streams, a few else.
fn error_percent(class: &str, sequence: usize, subject: usize) -> f64 {
    let pattern = ((sequence * 7 + subject * 5) % 11) as f64 - 6.0;
    match class {
        "sequential-write" => pattern / 6.0,
        "random-write" if subject == 3 => 0.0,
        "streams" => pattern * 3.5,
        _ if subject == 3 => pattern * 2.5 - 4.0,
        _ => pattern,
    }
}

fn latency(iops: f64, queue_depth: u32) -> Latency {
    let mean_ns = f64::from(queue_depth) / iops * 1e9;
    let at = |factor: f64| (mean_ns * factor) as u64;
    Latency {
        mean_ns,
        p50_ns: at(0.85),
        p90_ns: at(1.8),
        p99_ns: at(3.1),
        p999_ns: at(4.6),
        max_ns: at(6.0),
        histogram: Vec::new(),
    }
}

fn members(job: &Job, subject: usize, iops: f64, seconds: f64) -> Vec<MemberUse> {
    let reads = if job.op == Operation::Read {
        iops * seconds
    } else {
        0.0
    };
    let writes = if job.op == Operation::Write {
        iops * seconds
    } else {
        0.0
    };
    let first = match (subject, job.name) {
        (0, "6") => 0.989,
        (0, "16") => 0.657,
        (0, "17" | "18" | "21") => 1.0,
        (0, "19") => 0.667,
        (0, "22") => 0.82,
        (1, "19") => 0.52,
        _ => 0.5,
    };
    [first, 1.0 - first]
        .iter()
        .enumerate()
        .map(|(slot, share)| MemberUse {
            member: slot.to_string(),
            model: "wd4000fyyz".to_owned(),
            read_ios: (reads * share) as u64,
            read_bytes: (reads * share) as u64 * job.block_kib * 1024,
            read_ticks_ns: (seconds * 1e9 * share) as u64,
            write_ios: writes as u64,
            write_bytes: writes as u64 * job.block_kib * 1024,
            write_ticks_ns: 0,
            busy_ns: (seconds * 1e9 * share) as u64,
            sync_bytes: Some(0),
        })
        .collect()
}

fn measurement(job: &Job, sequence: usize, subject: usize, fit: &str) -> Measurement {
    let published = job.iops[subject];
    let shift = if fit == "joint" { 2.5 } else { 0.0 };
    let error = error_percent(job.class, sequence, subject) + shift;
    let iops = published * (1.0 + error / 100.0);
    let bytes = (job.block_kib * 1024) as f64;
    let index = job.name.parse::<usize>().unwrap_or(0);
    let sync = (job.class == "resync").then(|| SYNC[subject][index - 21]);
    let fitted = (subject == 0 && (job.name == "6" || job.name == "21"))
        || job.class == "sequential-write"
        || (job.class == "streams" && index >= 19);
    let state = if sync.is_some_and(|percent| percent < 100.0) {
        "[U_]"
    } else {
        "[UU]"
    };
    Measurement {
        bench: "model".to_owned(),
        suite: "mirror-2015".to_owned(),
        host: String::new(),
        subject: SUBJECTS[subject].to_owned(),
        filesystem: String::new(),
        fit: fit.to_owned(),
        sequence: index as u32 - 1,
        job: job.name.to_owned(),
        job_title: job.title.to_owned(),
        repetition: 0,
        tool: String::new(),
        part: String::new(),
        class: job.class.to_owned(),
        op: job.op,
        block_size_bytes: job.block_kib * 1024,
        queue_depth: job.queue_depth,
        streams: job.streams,
        total_ios: (iops * 60.0) as u64,
        total_bytes: (iops * 60.0 * bytes) as u64,
        started_ns: 0,
        runtime_ns: 60_000_000_000,
        iops,
        bytes_per_second: iops * bytes,
        cpu_percent: None,
        runtime_band_ns: 0,
        kept_percent: None,
        latency: latency(iops, job.queue_depth),
        array_state_start: state.to_owned(),
        array_state_end: state.to_owned(),
        sync_percent_start: sync.filter(|percent| *percent < 100.0),
        sync_percent_end: sync.filter(|percent| *percent < 100.0),
        tag_overflows: Some(0),
        leaped_percent: 0.0,
        role: if fitted {
            Role::Fitted
        } else {
            Role::Predicted
        },
        disk_band: None,
        members: members(job, subject, iops, 60.0),
        published: vec![PublishedFigure {
            source: "article".to_owned(),
            iops: published,
            bytes_per_second: None,
            reliability: if subject == 1 && job.class == "resync" {
                "disputed"
            } else {
                "rounded"
            }
            .to_owned(),
            sync_percent: sync,
            note: String::new(),
        }],
    }
}

/// Every measurement of the made-up run, two fits each.
fn measurements() -> Vec<Measurement> {
    let mut all = Vec::new();
    for (sequence, job) in jobs().iter().enumerate() {
        for subject in 0..SUBJECTS.len() {
            for fit in ["strict", "joint"] {
                all.push(measurement(job, sequence, subject, fit));
            }
        }
    }
    all
}

/// The made-up run's head.
fn run() -> Run {
    Run {
        name: "20261121T021000Z-mirror-2015".to_owned(),
        started: "2026-11-21T02:10:00Z".to_owned(),
        finished: Some("2026-11-21T02:10:02Z".to_owned()),
        bench: "model".to_owned(),
        suite: "mirror-2015".to_owned(),
        suite_title: "Two-way mirrors of 4 TB disks (2015)".to_owned(),
        seed: 2015,
        raidlab_version: "0.1.0".to_owned(),
        command_line: "raidlab run mirror-2015 --on model --seed 2015".to_owned(),
        plan_hash: String::new(),
    }
}

/// Some settings of the made-up run.
fn settings() -> Vec<Setting> {
    [
        ("suite", "direct", "1", "suite file"),
        ("subject md", "level", "RAID 1, 2 members", "suite file"),
        (
            "subject md",
            "sync_speed_min",
            "1000 KiB/s",
            "Linux 3.16 default",
        ),
        ("subject gmirror", "balance", "load", "gmirror(8) default"),
        (
            "subject gmirror",
            "slice",
            "4096 bytes",
            "gmirror(8) default",
        ),
        (
            "disk wd4000fyyz strict",
            "rotation",
            "8.333 ms",
            "data sheet: 7200 rpm",
        ),
        (
            "disk wd4000fyyz strict",
            "seek, shortest",
            "0.900 ms",
            "fitted on single-disk facts",
        ),
        (
            "disk wd4000fyyz joint",
            "seek, shortest",
            "0.691 ms",
            "fitted on single-disk facts and md",
        ),
    ]
    .map(|(scope, name, value, source)| Setting {
        scope: scope.to_owned(),
        name: name.to_owned(),
        value: value.to_owned(),
        source: source.to_owned(),
    })
    .to_vec()
}

/// Accuracy statements of the made-up run, and one remark.
fn notes() -> Vec<AccuracyNote> {
    let mut notes = [
        ("random-write", "Random writes", "Destage window fitted on one disk's random writes within 8 GB.", Some(4.0)),
        ("sequential-write", "Sequential writes", "Zone curve fitted on these very jobs on md.", Some(2.0)),
        ("random-read", "Random reads", "Seek curve and drive scheduling fitted on nine facts of a single disk; nothing of these jobs but job 6 on md.", Some(8.0)),
        ("mixed", "Mixed reads and writes", "As random reads; nothing of this job.", Some(8.0)),
        ("streams", "Sequential streams", "The stream policy was tuned on jobs 19 and 20; with three and more streams only the order of the subjects is claimed.", Some(25.0)),
        ("resync", "Random reads during resync", "As random reads; job 21 on md was fitted.", Some(5.0)),
        ("ablation", "Drive scheduling off", "Without rotation-aware scheduling in the drive, job 15 on md falls from 315 to 187 iops.", None),
    ]
    .map(|(class, title, statement, declared_percent)| AccuracyNote {
        class: class.to_owned(),
        title: title.to_owned(),
        statement: statement.to_owned(),
        declared_percent,
        ..AccuracyNote::default()
    })
    .to_vec();
    notes.insert(
        0,
        AccuracyNote {
            class: "random-read".to_owned(),
            title: "Random reads".to_owned(),
            statement: "Of the pool only the first queue depth was fitted.".to_owned(),
            declared_percent: Some(25.0),
            subjects: vec!["zfs".to_owned()],
            jobs: Vec::new(),
        },
    );
    notes
}
