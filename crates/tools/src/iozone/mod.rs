//! iozone: the words that a file may give it, and its output: table, throughput, spreadsheet.
//!
//! A text has a heading with the flags in force, and then one of: a table of
//! file and record sizes, with `-R` repeated block by block for a spreadsheet;
//! or, with `-t`, paragraphs on each test of several processes. Rates are in
//! kB of 1024 bytes per second unless the heading says operations per second
//! (`-O`) or microseconds per operation (`-N`).

mod heading;
mod sheet;
mod table;
#[cfg(test)]
mod tests;
mod throughput;

use crate::Operation;
use crate::error::ParseError;
use crate::facts::Facts;
use crate::number::whole;
use crate::result::{LatencyKind, Part, ReportedLatency, ToolResult};
use crate::title::{Title, size, sized};
use crate::tool::{Benchmark, Call, Format, Place, Tool};
use crate::words::{Takes, Wrong, options, values};
use raidlab_results::fact;

/// iozone, of every version that is known.
pub const TOOL: Tool = Tool(&Iozone);

/// iozone's text: table, throughput, blocks for spreadsheets.
pub const TEXT: Format = Format {
    name: "iozone-text",
    tool: TOOL,
    looseness: 3,
    is_in,
    parse,
};

/// The largest number of processes of iozone.
const MOST_PROCESSES: u32 = 256;

#[derive(Debug)]
struct Iozone;

impl Benchmark for Iozone {
    fn name(&self) -> &'static str {
        "iozone"
    }

    /// iozone's licence forbids changed copies: Debian has it in non-free.
    fn apt(&self) -> &'static str {
        "apt-get install iozone3 (component non-free)"
    }

    fn pkg(&self) -> &'static str {
        "pkg install iozone"
    }

    fn formats(&self) -> &'static [Format] {
        &[TEXT]
    }

    fn check(&self, words: &[String]) -> Result<(), (usize, Wrong)> {
        options(words, option)
    }

    fn needs_folder(&self) -> bool {
        true
    }

    fn call(&self, mut arguments: Vec<String>, place: &Place<'_>) -> Result<Call, String> {
        let given = |letter: &str| values(&arguments, option, letter);
        // With several processes, by `-t` or by their least and most number, iozone ignores `-f`.
        let counts = ["t", "l", "u"].into_iter().filter_map(given).flatten();
        let count = counts.filter_map(|count| count.parse::<u32>().ok()).max();
        let names = match count {
            _ if given("F").is_some() => Vec::new(),
            // One file for each process; without names they are created in the folder that iozone
            // was started in.
            Some(count) => {
                let files =
                    (0..count.min(MOST_PROCESSES)).map(|index| format!("{}.{index}", place.file));
                std::iter::once("-F".to_owned()).chain(files).collect()
            }
            None if given("f").is_some() => Vec::new(),
            None => vec!["-f".to_owned(), place.file.to_owned()],
        };
        arguments.extend(names);
        Ok(Call {
            arguments,
            operation: None,
        })
    }

    fn runs(&self, _format: &Format, text: &str) -> (Vec<String>, Vec<String>) {
        (heading::runs(text), Vec::new())
    }

    fn load_option<'fact>(&self, name: &'fact str) -> Option<&'fact str> {
        match name {
            fact::IOZONE_DIRECT => Some("direct"),
            fact::IOZONE_INCLUDES_FSYNC => Some("fsync"),
            fact::IOZONE_INCLUDES_CLOSE => Some("close"),
            _ => None,
        }
    }

    /// With `-N` iozone prints the time of an operation in place of a rate.
    fn is_row(&self, part: &Part) -> bool {
        part.has_rate() || part.latency().is_some()
    }

    /// The sizes of file and record: `16384k/64k`.
    fn part_name(&self, part: &Part) -> String {
        part.label.clone()
    }

    fn is_one_by_one(&self) -> bool {
        true
    }

    /// One group for each size of the file. Repeated results, as where several tables without their
    /// headings are in one text, were measured again.
    fn group(&self, result: &ToolResult, part: &Part) -> u64 {
        const SIZE_BITS: u32 = 56;
        let before = result
            .parts
            .iter()
            .take_while(|own| !std::ptr::eq(*own, part));
        let is_same = |own: &&Part| own.operation == part.operation && own.label == part.label;
        let again = before.filter(is_same).count() as u64;
        let size = part.file_size_bytes.unwrap_or(0);
        (again << SIZE_BITS) | size.min((1 << SIZE_BITS) - 1)
    }

    fn label(&self, result: &ToolResult) -> Option<String> {
        Some(size(result.parts.first()?.file_size_bytes?))
    }

    fn title(&self, result: &ToolResult) -> Title {
        let size = sized(result, " up to files of ");
        Title::plain(&format!("iozone{size}"), "iozone")
    }

    /// The bytes that the most processes touch, each of which has a file of its own. Flags in the
    /// heading are on; with a heading, any other flag is off.
    fn last_facts(&self, result: &ToolResult, facts: &mut Facts) {
        let sets = result.parts.iter().filter_map(|part| {
            let files = result.processes(part).unwrap_or(1);
            part.file_size_bytes?.checked_mul(u64::from(files))
        });
        if let Some(bytes) = sets.max() {
            facts.add(fact::JOB_WORKING_SET_BYTES, &bytes.to_string(), "bytes");
        }
        if result.version.is_empty() && result.options.is_empty() {
            return;
        }
        for (flag, name) in [
            ("-e", fact::IOZONE_INCLUDES_FSYNC),
            ("-c", fact::IOZONE_INCLUDES_CLOSE),
            ("-I", fact::IOZONE_DIRECT),
        ] {
            let on = result.options.iter().any(|option| option.name == flag);
            facts.add(name, if on { fact::TRUE } else { fact::FALSE }, "");
        }
    }
}

/// The kind of word that follows an option that shapes the load; iozone(1) of 3.506.
fn option(letter: &str) -> Option<Takes> {
    match letter {
        "A" | "a" | "B" | "C" | "c" | "D" | "E" | "e" | "G" | "I" | "M" | "N" | "O" | "o" | "p"
        | "R" | "T" | "v" | "W" | "w" | "x" | "Z" | "z" => Some(Takes::Nothing),
        "+n" | "+N" | "+u" | "+r" | "+t" | "+D" | "+B" | "+l" | "+d" | "+T" => Some(Takes::Nothing),
        "d" | "g" | "H" | "i" | "J" | "j" | "K" | "k" | "L" | "l" | "n" | "P" | "q" | "r" | "S"
        | "s" | "t" | "u" | "V" => Some(Takes::Value),
        "+p" | "+q" | "+w" | "+x" | "+y" | "+C" | "+S" => Some(Takes::Value),
        "f" => Some(Takes::Place),
        "F" => Some(Takes::Places),
        _ => None,
    }
}

/// The unit of a text's numbers.
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

/// Whether a text has words of iozone in it.
pub(crate) fn is_in(text: &str) -> bool {
    [
        heading::BEGINNING,
        "Children see throughput for",
        "Excel output is below:",
    ]
    .iter()
    .any(|words| text.contains(words))
        || text.lines().any(table::is_heading)
}

/// Reads iozone's output. The blocks for a spreadsheet repeat the table and are read where
/// there is none.
///
/// # Errors
/// Where there is no number at all, or a row does not have the form that its heading requires.
pub fn parse(text: &str) -> Result<ToolResult, ParseError> {
    let mut result = ToolResult::new(crate::iozone::TEXT);
    let unit = heading::read(text, &mut result);
    table::read(text, unit, &mut result)?;
    throughput::read(text, unit, &mut result)?;
    sheet::read(text, unit, &mut result)?;
    let found = !result.parts.is_empty();
    let expected = "a table below `kB  reclen`, or `Children see throughput for`";
    let mut result = result.if_found(found, expected)?;
    if !text.contains("iozone test complete.") {
        let unfinished = "iozone does not say that its test is complete";
        result.messages.push(unfinished.to_owned());
    }
    Ok(result)
}

/// A part with a file and a record size in kB.
fn sized_part(job: u32, file_kb: u64, record_kb: u64, operation: Operation) -> Part {
    let mut part = Part::new(job, format!("{file_kb}k/{record_kb}k"), operation);
    part.file_size_bytes = file_kb.checked_mul(1024);
    part.block_size_bytes = record_kb.checked_mul(1024);
    part
}

/// Sets the value of a part. iozone prints 0 for what it did not do.
fn set_value(part: &mut Part, value: f64, unit: Unit) {
    if value == 0.0 {
        part.note("no-rate", "0: the test was not run", "");
        return;
    }
    match unit {
        Unit::Kibibytes => part.bytes_per_second = Some(value * 1024.0),
        Unit::Operations => part.operations_per_second = Some(value),
        Unit::Microseconds => {
            let mut latency = ReportedLatency::new(LatencyKind::Total);
            latency.mean_ns = Some(value * 1000.0);
            part.latencies.push(latency);
        }
    }
}

/// Reads a size such as `512`, `64k`, `1g` in kB.
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
