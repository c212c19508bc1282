//! The rows of a measurement, made from a simulated job.

use crate::bands::Unfitted;
use raidlab_disk::Preset;
use raidlab_lab::{Experiment, PlannedJob};
use raidlab_sim::{JobResult, MemberStatistics};
use raidlab_store::{Latency, Measurement, MemberUse, Operation};
use raidlab_units::{BytesPerSecond, Nanos};
use raidlab_workload::Direction;

/// Makes one row for each operation of the job; none of one that only prepares.
pub(crate) fn rows(
    job: &PlannedJob,
    experiment: &Experiment,
    presets: &[Preset],
    started: Nanos,
    result: &JobResult,
) -> Vec<Measurement> {
    if job.prepares {
        return Vec::new();
    }
    let [reads, writes, trims, syncs] = [
        result.reads(),
        result.writes(),
        result.trims(),
        result.syncs(),
    ];
    let total = reads.bytes.0 + writes.bytes.0;
    let unfitted = Unfitted::new(presets, &experiment.fit);
    job.operations()
        .into_iter()
        .map(|op| {
            let (operation, direction) = match op {
                Operation::Read => (&reads, Direction::Read),
                Operation::Trim => (&trims, Direction::Trim),
                Operation::Sync => (&syncs, Direction::Flush),
                // A modelled job gives no rows of other operations.
                _ => (&writes, Direction::Write),
            };
            let runtime = result.runtime_of(direction);
            let mut row = job.row(experiment, "model", op);
            row.total_ios = operation.ios;
            row.total_bytes = operation.bytes.0;
            row.started_ns = started.0;
            row.runtime_ns = runtime.0;
            row.iops = operation.iops(runtime);
            row.bytes_per_second = BytesPerSecond::mean(operation.bytes, runtime).0;
            row.latency = Latency::of(&operation.latency);
            [row.array_state_start, row.array_state_end] = result.health.clone();
            [row.sync_percent_start, row.sync_percent_end] = result.sync_percent;
            row.tag_overflows = Some(result.tag_overflows);
            row.leaped_percent = percent(result.leaped.0, total);
            row.members = members(presets, &result.members);
            row.cpu_percent = result.processor.as_ref().map(|used| {
                let jobs = used.user + used.system;
                percent(jobs.0, result.elapsed.0)
            });
            row.disk_band = unfitted.band(&job.work, &row);
            row
        })
        .collect()
}

pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64 * 100.0
}

fn members(presets: &[Preset], statistics: &[MemberStatistics]) -> Vec<MemberUse> {
    presets
        .iter()
        .zip(statistics)
        .enumerate()
        .map(|(slot, (preset, member))| MemberUse {
            member: slot.to_string(),
            model: preset.name.clone(),
            read_ios: member.read_ios,
            read_bytes: member.read_bytes.0,
            read_ticks_ns: member.read_ticks.0,
            write_ios: member.write_ios,
            write_bytes: member.write_bytes.0,
            write_ticks_ns: member.write_ticks.0,
            busy_ns: member.busy.0,
            sync_bytes: Some(member.sync_bytes.0),
        })
        .collect()
}
