//! iozone: its arguments and its output: table, throughput, spreadsheet.
//!
//! A text has a heading with the flags in force, and then one of: a table of
//! file and record sizes, with `-R` repeated block by block for a spreadsheet;
//! or, with `-t`, paragraphs on each test of several processes. Rates are in
//! kB of 1024 bytes per second unless the heading says operations per second
//! (`-O`) or microseconds per operation (`-N`).

mod arguments;
mod heading;
mod sheet;
mod table;
#[cfg(test)]
mod tests;
mod throughput;

pub use arguments::{ArgumentError, Invocation, Sizes, Test};

use crate::error::ParseError;
use crate::number::whole;
use crate::result::{Latency, LatencyKind, Part, ToolResult};
use crate::{Format, Operation, Tool};

/// What the numbers of a text are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Unit {
    /// kB of 1024 bytes per second.
    #[default]
    Kibibytes,
    /// Operations per second.
    Operations,
    /// Microseconds per operation.
    Microseconds,
}

/// Whether a text has iozone's words in it.
pub(crate) fn is_in(text: &str) -> bool {
    [
        "Iozone: Performance Test of File I/O",
        "Children see throughput for",
        "Excel output is below:",
    ]
    .iter()
    .any(|words| text.contains(words))
        || text.lines().any(table::is_heading)
}

/// Reads what iozone printed. The blocks for a spreadsheet repeat the table
/// and are read where there is none.
///
/// # Errors
/// Where there is no number at all, or a row is not what its heading demands.
pub fn parse(text: &str) -> Result<ToolResult, ParseError> {
    let mut result = ToolResult::new(Tool::Iozone, Format::IozoneText);
    let unit = heading::read(text, &mut result);
    table::read(text, unit, &mut result)?;
    throughput::read(text, unit, &mut result)?;
    sheet::read(text, unit, &mut result)?;
    if result.parts.is_empty() {
        return Err(ParseError::NoOutput {
            tool: Tool::Iozone,
            expected: "a table below `kB  reclen`, or `Children see throughput for`",
        });
    }
    if !text.contains("iozone test complete.") {
        let unfinished = "iozone does not say that its test is complete";
        result.messages.push(unfinished.to_owned());
    }
    Ok(result)
}

/// A part of a file and a record size in kB.
fn sized_part(job: u32, file_kb: u64, record_kb: u64, operation: Operation) -> Part {
    let mut part = Part::new(job, format!("{file_kb}k/{record_kb}k"), operation);
    part.file_size_bytes = file_kb.checked_mul(1024);
    part.block_size_bytes = record_kb.checked_mul(1024);
    part
}

/// Puts a number into a part. iozone prints 0 for what it did not do.
fn set_value(part: &mut Part, value: f64, unit: Unit) {
    if value == 0.0 {
        part.note("no-rate", "0: the test was not run", "");
        return;
    }
    match unit {
        Unit::Kibibytes => part.bytes_per_second = Some(value * 1024.0),
        Unit::Operations => part.operations_per_second = Some(value),
        Unit::Microseconds => {
            let mut latency = Latency::new(LatencyKind::Total);
            latency.mean_ns = Some(value * 1000.0);
            part.latencies.push(latency);
        }
    }
}

/// kB of a size such as `512`, `64k`, `1g`.
fn kibibytes(text: &str) -> Option<u64> {
    let size = crate::number::measured(text)?;
    let factor = match size.unit.to_ascii_lowercase().as_str() {
        "" | "k" | "kb" | "kbyte" | "kbytes" => 1.0,
        "m" | "mb" => 1024.0,
        "g" | "gb" => 1_048_576.0,
        _ => return None,
    };
    whole(size.value * factor)
}
