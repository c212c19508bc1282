//! A row of an import before anything is filled in.

use raidlab_store::{Latency, Measurement, Operation, Role};

/// A row that says nothing but that it was imported and measured.
pub(crate) fn row() -> Measurement {
    Measurement {
        bench: crate::BENCH.to_owned(),
        suite: String::new(),
        host: String::new(),
        subject: String::new(),
        filesystem: String::new(),
        fit: String::new(),
        sequence: 0,
        job: String::new(),
        job_title: String::new(),
        repetition: 0,
        tool: String::new(),
        part: String::new(),
        class: String::new(),
        op: Operation::Read,
        block_size_bytes: 0,
        queue_depth: 1,
        streams: 1,
        total_ios: 0,
        total_bytes: 0,
        started_ns: 0,
        runtime_ns: 0,
        iops: 0.0,
        bytes_per_second: 0.0,
        cpu_percent: None,
        latency: Latency::default(),
        array_state_start: String::new(),
        array_state_end: String::new(),
        sync_percent_start: None,
        sync_percent_end: None,
        tag_overflows: 0,
        leaped_percent: 0.0,
        role: Role::Measured,
        members: Vec::new(),
        published: Vec::new(),
    }
}
