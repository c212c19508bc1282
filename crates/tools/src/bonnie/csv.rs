//! The lines of CSV of bonnie++ 1.0x, 1.96 and later.
//!
//! Field 0 tells the format: `1.96` and `1.97` with 48 fields, `1.98` with 50
//! (seeks and their processes behind the chunk size), and before that a name
//! and 27 fields without any version. bonnie++ writes the machine's name as it
//! is, commas and all, so a line with too many fields has them in its name:
//! the fields behind the name are counted from the end.
//!
//! Traps in 2.00 (bon_time.cpp): the header line of `-q` still has the 48
//! names of 1.96; the chunk sizes of both tests are never written; the number
//! of directories stands in the last of its five fields, not in the fourth.

use super::cells::{Cells, TESTS, count, is_short, part, processes, set_files, set_sizes, size};
use crate::result::{Reported, ReportedOption, ToolResult};

/// The number of fields of a format, by the version in field 0.
fn width(version: &str) -> Option<usize> {
    match version {
        "1.96" | "1.97" => Some(48),
        "1.98" | "2.00" => Some(50),
        _ => None,
    }
}

/// Whether a line can be CSV of bonnie++.
pub(crate) fn is_line(line: &str) -> bool {
    let fields: Vec<&str> = line.trim().split(',').collect();
    match width(fields[0]) {
        Some(width) => fields.len() >= width,
        None => is_old(&fields),
    }
}

/// Whether the fields are of format 1: a name, a size and cells that are rates,
/// percentages or empty.
fn is_old(fields: &[&str]) -> bool {
    const WIDTH: usize = 27;
    if fields.len() < WIDTH {
        return false;
    }
    let behind_name = &fields[fields.len() - WIDTH + 1..];
    let (file_size, cells) = (behind_name[0], &behind_name[1..]);
    let file_size = file_size.split(':').next().unwrap_or_default();
    let is_cell =
        |cell: &&str| cell.is_empty() || is_short(cell) || crate::number::finite(cell).is_some();
    (file_size.is_empty() || size(file_size, 1 << 20).is_some())
        && cells[..12].iter().all(is_cell)
        && cells[13..].iter().all(is_cell)
        && cells.iter().any(|cell| !cell.is_empty())
}

/// Reads a line for which [`is_line`] holds, as run `job`.
pub(super) fn read_line(line: &str, job: u32, result: &mut ToolResult) -> Result<(), &'static str> {
    let fields: Vec<&str> = line.trim().split(',').collect();
    match width(fields[0]) {
        Some(width) => {
            let surplus = fields.len() - width;
            let name = fields[2..=2 + surplus].join(",");
            let rest = &fields[3 + surplus..];
            result.version = fields[1].to_owned();
            let fact = Reported::new(Some(job), "format-version", fields[0], "");
            result.facts.push(fact);
            read_new(&name, rest, width == 50, job, result)
        }
        None => {
            let surplus = fields.len() - 27;
            let name = fields[..=surplus].join(",");
            read_old(&name, &fields[1 + surplus..], job, result)
        }
    }
}

fn read_new(
    name: &str,
    fields: &[&str],
    has_seeks: bool,
    job: u32,
    result: &mut ToolResult,
) -> Result<(), &'static str> {
    let mut option = |name: &str, value: &str| {
        if !value.is_empty() {
            result
                .options
                .push(ReportedOption::new(Some(job), name, value));
        }
    };
    option("concurrency", fields[0]);
    option("seed", fields[1]);
    option("file_size", fields[2]);
    option("io_chunk_size", fields[3]);
    let io = if has_seeks {
        option("seeks", fields[4]);
        option("seek_proc_count", fields[5]);
        6
    } else {
        4
    };
    let files = io + 12;
    for (place, name) in ["num_files", "max_size", "min_size"].iter().enumerate() {
        option(name, fields[files + place]);
    }
    // Of the last two fields, one with a unit's letter is a chunk size; a plain number is that
    // of the directories.
    for field in &fields[files + 3..files + 5] {
        let is_plain = count(field).is_some();
        option(
            if is_plain {
                "num_dirs"
            } else {
                "file_chunk_size"
            },
            field,
        );
    }
    result.facts.extend(processes(job, fields[0]));
    let sizes = [fields[2], fields[3], fields[files]];
    let (cells, latencies) = fields.split_at(files + 5 + 12);
    read_tests(name, job, cells, [io, files + 5], latencies, sizes, result)
}

/// Reads the tests of transfers and of files, whose cells begin at two places; `latencies` may
/// be empty.
fn read_tests(
    name: &str,
    job: u32,
    fields: &[&str],
    starts: [usize; 2],
    latencies: &[&str],
    [file, chunk, files]: [&str; 3],
    result: &mut ToolResult,
) -> Result<(), &'static str> {
    let first = result.parts.len();
    for (place, operation) in TESTS.into_iter().enumerate() {
        let at = starts[place / 6] + 2 * (place % 6);
        let cells = Cells {
            rate: fields[at],
            cpu: fields[at + 1],
            latency: latencies.get(place).copied().unwrap_or_default(),
        };
        result.parts.extend(part(job, name, operation, cells)?);
    }
    let parts = &mut result.parts[first..];
    set_sizes(parts, size(file, 1 << 20), size(chunk, 1));
    set_files(parts, files);
    Ok(())
}

fn read_old(
    name: &str,
    fields: &[&str],
    job: u32,
    result: &mut ToolResult,
) -> Result<(), &'static str> {
    let (file, chunk) = fields[0].split_once(':').unwrap_or((fields[0], ""));
    for (name, value) in [("file_size", fields[0]), ("num_files", fields[13])] {
        if !value.is_empty() {
            result
                .options
                .push(ReportedOption::new(Some(job), name, value));
        }
    }
    read_tests(
        name,
        job,
        fields,
        [1, 14],
        &[],
        [file, chunk, fields[13]],
        result,
    )
}
