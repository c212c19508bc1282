//! The store from outside: what goes in comes out, and nothing breaks it.

mod exports;
mod files;
mod killed;
mod metrics_page;
mod parquet;
mod records;
mod round_trip;

use crate::{
    CellResult, Latency, Measurement, MemberUse, Operation, PublishedFigure, Records, Role, Run,
};

pub(crate) fn run(name: &str) -> Run {
    Run {
        name: name.to_owned(),
        started: "2026-11-21T02:10:00Z".to_owned(),
        finished: None,
        bench: "model".to_owned(),
        suite: "mirror-2015".to_owned(),
        suite_title: "Two-way mirrors, 2015".to_owned(),
        seed: u64::MAX,
        raidlab_version: "0.1.0".to_owned(),
        command_line: "raidlab run mirror-2015".to_owned(),
        plan_hash: "9f2a".to_owned(),
    }
}

/// A random read at queue depth 4 on md, as the log of 2015 has it.
pub(crate) fn measurement(sequence: u32) -> Measurement {
    Measurement {
        bench: "model".to_owned(),
        suite: "mirror-2015".to_owned(),
        host: String::new(),
        subject: "md".to_owned(),
        filesystem: String::new(),
        fit: "strict".to_owned(),
        sequence,
        job: format!("{}", sequence + 1),
        job_title: "random read 4 KiB, queue depth 4".to_owned(),
        repetition: 0,
        tool: String::new(),
        part: String::new(),
        class: "random-read".to_owned(),
        op: Operation::Read,
        block_size_bytes: 4096,
        queue_depth: 4,
        streams: 1,
        total_ios: 11_160,
        total_bytes: 45_711_360,
        started_ns: 1_000_000_000,
        runtime_ns: 60_000_000_000,
        iops: 186.0,
        bytes_per_second: 761_856.0,
        cpu_percent: None,
        runtime_band_ns: 0,
        kept_percent: None,
        latency: Latency {
            mean_ns: 21_505_376.5,
            p50_ns: 19_000_000,
            p90_ns: 38_000_000,
            p99_ns: 61_000_000,
            p999_ns: 80_000_000,
            max_ns: 95_000_000,
            histogram: vec![28, 132, 0, 255],
        },
        array_state_start: "[UU]".to_owned(),
        array_state_end: "[UU]".to_owned(),
        sync_percent_start: None,
        sync_percent_end: None,
        tag_overflows: Some(0),
        leaped_percent: 0.0,
        role: Role::Predicted,
        disk_band: None,
        members: ["0", "1"].map(member).to_vec(),
        published: vec![
            PublishedFigure {
                source: "log".to_owned(),
                iops: 200.0,
                bytes_per_second: Some(819_200.0),
                reliability: "exact".to_owned(),
                sync_percent: None,
                note: String::new(),
            },
            PublishedFigure {
                source: "article".to_owned(),
                iops: 199.0,
                bytes_per_second: None,
                reliability: "rounded".to_owned(),
                sync_percent: None,
                note: "printed as 199, the log has 199.7".to_owned(),
            },
        ],
    }
}

fn member(name: &str) -> MemberUse {
    MemberUse {
        member: name.to_owned(),
        model: "wd4000fyyz".to_owned(),
        read_ios: 5_580,
        read_bytes: 22_855_680,
        read_ticks_ns: 119_000_000_000,
        busy_ns: 59_000_000_000,
        sync_bytes: Some(0),
        ..MemberUse::default()
    }
}

/// A cell of one row.
pub(crate) fn cell(row: Measurement) -> CellResult {
    CellResult {
        cell: row.cell(),
        rows: vec![row],
        records: Records::default(),
    }
}
