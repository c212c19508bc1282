//! Evidence in a few lines: a mirror of two 4 TB disks on one machine.

use crate::{Audit, Evidence, audit};
use raidlab_store::fact::{disk, disk_property as property, member_device};
use raidlab_store::{
    CommandRecord, EventRecord, Latency, Measurement, MemberUse, Observation, Operation, Role,
    Scope, Series,
};

/// The machine of all tests.
pub(super) const HOST: &str = "lab";

/// Evidence under construction.
#[derive(Debug, Clone, Default)]
pub(super) struct Lab {
    pub(super) rows: Vec<Measurement>,
    pub(super) observations: Vec<Observation>,
    pub(super) events: Vec<EventRecord>,
    pub(super) commands: Vec<CommandRecord>,
    pub(super) series: Vec<Series>,
}

/// A row of subject `md` on the raw array that moved 100 MB/s for a minute.
pub(super) fn row(op: Operation) -> Measurement {
    Measurement {
        bench: "host".to_owned(),
        suite: "test".to_owned(),
        host: HOST.to_owned(),
        subject: "md".to_owned(),
        filesystem: String::new(),
        fit: String::new(),
        sequence: 0,
        job: "1".to_owned(),
        job_title: String::new(),
        repetition: 0,
        tool: "fio 3.33".to_owned(),
        part: String::new(),
        class: if op.only_writes() {
            "sequential-write"
        } else {
            "sequential-read"
        }
        .to_owned(),
        op,
        block_size_bytes: 131_072,
        queue_depth: 1,
        streams: 1,
        total_ios: 45_777,
        total_bytes: 6_000_082_944,
        started_ns: 0,
        runtime_ns: 60_000_829_440,
        iops: 762.94,
        bytes_per_second: 1e8,
        cpu_percent: Some(5.0),
        runtime_band_ns: 0,
        kept_percent: None,
        latency: Latency::default(),
        array_state_start: "[UU]".to_owned(),
        array_state_end: "[UU]".to_owned(),
        sync_percent_start: None,
        sync_percent_end: None,
        tag_overflows: Some(0),
        leaped_percent: 0.0,
        role: Role::Measured,
        disk_band: None,
        members: Vec::new(),
        published: Vec::new(),
    }
}

/// A row of 4 KiB random I/O: so many per second for a minute.
pub(super) fn random(op: Operation, iops: f64) -> Measurement {
    Measurement {
        class: if op.only_writes() {
            "random-write"
        } else {
            "random-read"
        }
        .to_owned(),
        block_size_bytes: 4096,
        total_ios: (iops * 60.0) as u64,
        total_bytes: (iops * 60.0) as u64 * 4096,
        runtime_ns: 60_000_000_000,
        iops,
        bytes_per_second: iops * 4096.0,
        ..row(op)
    }
}

/// What a member read and wrote.
pub(super) fn member(read_bytes: u64, write_bytes: u64) -> MemberUse {
    MemberUse {
        read_ios: read_bytes / 4096,
        read_bytes,
        write_ios: write_bytes / 4096,
        write_bytes,
        ..MemberUse::default()
    }
}

impl Lab {
    /// Rows on a mirror of two disks that turn.
    pub(super) fn mirror(rows: impl IntoIterator<Item = Measurement>) -> Self {
        let mut lab = Self::of(rows);
        for (slot, device) in ["sdb", "sdc"].into_iter().enumerate() {
            lab = lab
                .fact(&member_device(slot), device)
                .fact(&disk(device, property::MODEL), "WDC WD4000FYYZ-01UL1B2")
                .fact(&disk(device, property::ROTATIONAL), "true");
        }
        lab
    }

    /// Rows and nothing else.
    pub(super) fn of(rows: impl IntoIterator<Item = Measurement>) -> Self {
        Self {
            rows: rows.into_iter().collect(),
            ..Self::default()
        }
    }

    /// A fact of the machine, so of all rows.
    pub(super) fn fact(self, name: &str, value: &str) -> Self {
        self.fact_of(Scope::host(HOST), name, value, "")
    }

    /// A fact of a subject.
    pub(super) fn subject_fact(self, subject: &str, name: &str, value: &str) -> Self {
        self.fact_of(subject_scope(subject), name, value, "")
    }

    /// A fact of the cell of a row.
    pub(super) fn cell_fact(self, row: usize, name: &str, value: &str, unit: &str) -> Self {
        let scope = Scope::of(&self.rows[row]);
        self.fact_of(scope, name, value, unit)
    }

    fn fact_of(mut self, scope: Scope, name: &str, value: &str, unit: &str) -> Self {
        self.observations.push(Observation {
            scope,
            name: name.to_owned(),
            value: value.to_owned(),
            unit: unit.to_owned(),
            source: String::new(),
        });
        self
    }

    /// Something that happened on the machine.
    pub(super) fn event(mut self, kind: &str, at_ns: u64) -> Self {
        self.events.push(EventRecord {
            scope: Scope::host(HOST),
            at_ns,
            kind: kind.to_owned(),
            member: None,
            text: String::new(),
        });
        self
    }

    /// A command of the first row's cell or, without rows, of the machine.
    pub(super) fn command(mut self, command: &str, code: i32, stdout: &str) -> Self {
        self.commands.push(CommandRecord {
            scope: self
                .rows
                .first()
                .map_or_else(|| Scope::host(HOST), Scope::of),
            at_ns: 0,
            command: command.to_owned(),
            code: Some(code),
            took_ns: 0,
            stdout: stdout.to_owned(),
            stderr: String::new(),
        });
        self
    }

    /// A series of the first row's cell, a point each second.
    pub(super) fn sampled(mut self, name: &str, values: &[f64]) -> Self {
        let points = values.iter().enumerate();
        self.series.push(Series {
            scope: Scope::of(&self.rows[0]),
            name: name.to_owned(),
            unit: String::new(),
            points: points
                .map(|(i, v)| (i as u64 * 1_000_000_000, *v))
                .collect(),
        });
        self
    }

    pub(super) fn audit(&self) -> Audit {
        audit(&Evidence {
            rows: &self.rows,
            observations: &self.observations,
            events: &self.events,
            commands: &self.commands,
            series: &self.series,
        })
    }
}

/// A subject on the machine.
pub(super) fn subject_scope(subject: &str) -> Scope {
    Scope {
        subject: subject.to_owned(),
        ..Scope::host(HOST)
    }
}
