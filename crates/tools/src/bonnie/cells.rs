//! The common parts of CSV and tables of bonnie++: the tests, their cells and units.
//!
//! A rate is in KiB per second (bon_time.cpp divides 1024 times the size in MiB by the time), in
//! tables of 1.98 and later with `k`, `m` or `g`, powers of 1024 upon it. `+++++` stands for a test
//! of less than half a second, which has no rate at all, neither a fast nor an infinite one. An
//! empty cell is a test that did not run.

use crate::Operation;
use crate::number::{finite, measured, percent, whole};
use crate::result::{LatencyKind, PROCESSES, Part, Reported, ReportedLatency};

/// The tests in the order of both formats.
pub(super) const TESTS: [Operation; 12] = [
    Operation::WriteCharacter,
    Operation::Write,
    Operation::Rewrite,
    Operation::ReadCharacter,
    Operation::Read,
    Operation::Seek,
    Operation::CreateSequential,
    Operation::StatSequential,
    Operation::DeleteSequential,
    Operation::CreateRandom,
    Operation::StatRandom,
    Operation::DeleteRandom,
];

/// Whether the rate of an operation is in bytes per second.
const fn is_bytes(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::WriteCharacter
            | Operation::Write
            | Operation::Rewrite
            | Operation::ReadCharacter
            | Operation::Read
    )
}

/// The number of copies of each test that run `job` did at the same time (`-c`).
pub(super) fn processes(job: u32, count: &str) -> Option<Reported> {
    let count: u64 = count.trim().parse().ok()?;
    Some(Reported::new(Some(job), PROCESSES, count, ""))
}

/// One test's cells.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cells<'a> {
    pub(super) rate: &'a str,
    pub(super) cpu: &'a str,
    pub(super) latency: &'a str,
}

/// A part from its cells; `None` where the test did not run.
pub(super) fn part(
    job: u32,
    label: &str,
    operation: Operation,
    cells: Cells<'_>,
) -> Result<Option<Part>, &'static str> {
    let rate = cells.rate.trim();
    if rate.is_empty() && cells.latency.trim().is_empty() {
        return Ok(None);
    }
    let mut part = Part::new(job, label, operation);
    if is_short(rate) {
        part.note(
            "no-rate",
            "+++++: the test took less than half a second",
            "",
        );
    } else if !rate.is_empty() {
        let value = self::rate(rate).ok_or("a rate such as `287k` or `+++++`")?;
        if is_bytes(operation) {
            part.bytes_per_second = Some(value * 1024.0);
        } else {
            part.operations_per_second = Some(value);
        }
    }
    let cpu = cells.cpu.trim();
    if !(cpu.is_empty() || is_short(cpu)) {
        part.cpu_percent = Some(percent(cpu).ok_or("processor time such as `99` or `+++`")?);
    }
    part.latencies.extend(latency(cells.latency)?);
    Ok(Some(part))
}

/// Whether a cell is of plus signs only.
pub(super) fn is_short(cell: &str) -> bool {
    !cell.is_empty() && cell.bytes().all(|byte| byte == b'+')
}

/// Reads a rate in KiB/s or per second: `28840`, `10.4m`.
fn rate(cell: &str) -> Option<f64> {
    let number = measured(cell)?;
    let factor = match number.unit {
        "" | "k" => 1.0,
        "m" => 1024.0,
        "g" => 1_048_576.0,
        "t" => 1_073_741_824.0,
        _ => return None,
    };
    Some(number.value * factor)
}

/// Reads the latency of the slowest single call: `391us`, `859ms`, `437s`.
fn latency(cell: &str) -> Result<Option<ReportedLatency>, &'static str> {
    let cell = cell.trim();
    if cell.is_empty() || is_short(cell) {
        return Ok(None);
    }
    let slowest = measured(cell).and_then(|time| {
        let factor = match time.unit {
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => return None,
        };
        whole(time.value * factor)
    });
    let mut latency = ReportedLatency::new(LatencyKind::Total);
    latency.max_ns = Some(slowest.ok_or("a latency such as `391us`")?);
    Ok(Some(latency))
}

/// Reads a size such as `64M`, `16G`, `300` in bytes; a plain number is in `unit` bytes.
pub(super) fn size(text: &str, unit: u64) -> Option<u64> {
    let text = text.trim();
    let number = measured(text)?;
    let factor = match number.unit {
        "" => unit as f64,
        letters => raidlab_units::bytes_in(letters, 1024.0)?,
    };
    whole(number.value * factor)
}

/// Sets the sizes of parts: of the file for transfers and seeks, of a block for block transfers.
pub(super) fn set_sizes(parts: &mut [Part], file: Option<u64>, chunk: Option<u64>) {
    for part in parts {
        let is_io = is_bytes(part.operation) || part.operation == Operation::Seek;
        if is_io {
            part.file_size_bytes = file;
        }
        part.block_size_bytes = match part.operation {
            Operation::WriteCharacter | Operation::ReadCharacter => Some(1),
            Operation::Write | Operation::Rewrite | Operation::Read | Operation::Seek => chunk,
            _ => None,
        };
    }
}

/// Sets the number of files in the parts of tests with files. It is printed in units of 1024, as
/// `16` or `100:16384:0/20`.
pub(super) fn set_files(parts: &mut [Part], told: &str) {
    let files = told.split([':', '/']).next().and_then(count);
    let files = files.and_then(|files| files.checked_mul(1024));
    let of_files = parts
        .iter_mut()
        .filter(|part| part.operation.handles_files());
    of_files.for_each(|part| part.total_ios = files);
}

/// Reads the whole number of a field, if it is one.
pub(super) fn count(field: &str) -> Option<u64> {
    finite(field)
        .filter(|number| number.fract() == 0.0)
        .and_then(whole)
}
