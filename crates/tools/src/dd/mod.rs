//! dd: the words that a file may give it, and its output.

mod commands;
mod normal;
mod output;
#[cfg(test)]
mod tests;

pub use output::parse;

pub(crate) use output::is_in;

use crate::facts::Facts;
use crate::number::whole;
use crate::result::{Part, Reported, ToolResult};
use crate::title::{Title, size};
use crate::tool::{Benchmark, Call, Format, Place, Tool};
use crate::words::{Takes, UNKNOWN, Wrong, check_value, each};
use raidlab_results::{Operation, fact};
use raidlab_units::bytes_in;

/// dd, of any system.
pub const TOOL: Tool = Tool(&Dd);

/// The report that dd prints at its end.
pub const TEXT: Format = Format {
    name: "dd-text",
    tool: TOOL,
    looseness: 6,
    is_in,
    parse,
};

#[derive(Debug)]
struct Dd;

impl Benchmark for Dd {
    fn name(&self) -> &'static str {
        "dd"
    }

    fn apt(&self) -> &'static str {
        "apt-get install coreutils"
    }

    fn pkg(&self) -> &'static str {
        "part of the base system"
    }

    fn formats(&self) -> &'static [Format] {
        &[TEXT]
    }

    fn check(&self, words: &[String]) -> Result<(), (usize, Wrong)> {
        each(words, check_operand)
    }

    fn call(&self, arguments: Vec<String>, place: &Place<'_>) -> Result<Call, String> {
        let neither = "dd neither reads `if={file}` nor writes `of={file}`";
        let operation = operation(&arguments, place).ok_or(neither)?;
        Ok(Call {
            arguments,
            operation: Some(operation),
        })
    }

    fn output<'text>(&self, _standard_output: &'text str, error: &'text str) -> &'text str {
        error
    }

    fn job_facts(&self, arguments: &[String], facts: &mut Facts) {
        operand_facts(
            |name| {
                let pairs = arguments
                    .iter()
                    .rev()
                    .filter_map(|word| word.split_once('='));
                pairs
                    .into_iter()
                    .find_map(|(key, value)| (key == name).then_some(value))
            },
            facts,
        );
    }

    fn files<'word>(&self, arguments: &'word [String]) -> [Vec<&'word str>; 2] {
        ["if=", "of="].map(|operand| {
            let files = arguments
                .iter()
                .filter_map(|word| word.strip_prefix(operand));
            files.filter(|file| file.starts_with('{')).collect()
        })
    }

    fn load_option<'fact>(&self, fact: &'fact str) -> Option<&'fact str> {
        let operand = fact.strip_prefix("dd.operand.")?;
        (!["if", "of"].contains(&operand)).then_some(operand)
    }

    /// A dd that copied nothing is a row: it was asked to copy.
    fn is_row(&self, part: &Part) -> bool {
        part.total_ios.is_some() || part.total_bytes.is_some()
    }

    fn title(&self, result: &ToolResult) -> Title {
        let block = result.parts.iter().find_map(|part| part.block_size_bytes);
        let block = block.map_or_else(String::new, |block| {
            format!(" in blocks of {}", size(block))
        });
        Title::plain(&format!("dd{block}"), "sequential")
    }

    fn fact(&self, said: &Reported, _part: Option<&Part>, facts: &mut Facts) -> bool {
        let known = match said.name.as_str() {
            "error" => fact::DD_ERROR,
            "records-in-whole" => fact::DD_RECORDS_IN_WHOLE,
            "records-in-partial" => fact::DD_RECORDS_IN_PARTIAL,
            "records-out-whole" => fact::DD_RECORDS_OUT_WHOLE,
            "records-out-partial" => fact::DD_RECORDS_OUT_PARTIAL,
            "printed-rate" => {
                if let Some(rate) = decimal_rate(&said.value.to_string()) {
                    let name = fact::DD_PRINTED_BYTES_PER_SECOND;
                    facts.add(name, &rate.to_string(), "bytes/s");
                }
                return true;
            }
            _ => return false,
        };
        facts.say(known, said);
        true
    }

    fn last_facts(&self, result: &ToolResult, facts: &mut Facts) {
        operand_facts(
            |name| {
                let mut given = result.options.iter().rev();
                let found = given.find(|option| option.name == name);
                found.map(|option| option.value.as_str())
            },
            facts,
        );
        // Without `count` dd touches what it copied. Without its command it is not known whether
        // it bypassed memory.
        let copied = result.parts.iter().filter_map(|part| part.total_bytes);
        if let Some(bytes) = copied.max().filter(|_| !result.options.is_empty()) {
            facts.add(fact::JOB_WORKING_SET_BYTES, &bytes.to_string(), "bytes");
        }
    }
}

/// Whether dd reads the place or writes to it; `None` where it does neither. Of an operand that is
/// given twice dd takes the last.
fn operation(arguments: &[String], place: &Place<'_>) -> Option<Operation> {
    let inside = format!("{}/", place.path);
    let ours = |prefix: &str| {
        let mut paths = arguments.iter().rev();
        let last = paths.find_map(|one| one.strip_prefix(prefix));
        last.is_some_and(|path| path == place.path || path.starts_with(&inside))
    };
    if ours("if=") {
        Some(Operation::Read)
    } else if ours("of=") {
        Some(Operation::Write)
    } else {
        None
    }
}

/// Checks an operand: a place, or a word that shapes the load; dd(1) of coreutils and FreeBSD.
fn check_operand(word: &str) -> Result<(), Wrong> {
    const SHAPE: [&str; 15] = [
        "bs", "cbs", "conv", "count", "fillchar", "files", "ibs", "iflag", "iseek", "obs", "oflag",
        "oseek", "seek", "skip", "status",
    ];
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let own = ["{file}", "{target}"].contains(&value);
    match name {
        "of" if own || value == "/dev/null" => Ok(()),
        "of" => Err((
            format!("`{word}` would overwrite something that is not the job's"),
            "write of={file}, of={target} or of=/dev/null",
        )),
        "if" if own || ["/dev/zero", "/dev/urandom", "/dev/random"].contains(&value) => Ok(()),
        "if" => Err((
            format!("`{word}` would read something that is not the job's"),
            "write if={file}, if={target}, if=/dev/zero or if=/dev/urandom",
        )),
        _ if SHAPE.contains(&name) => check_value(Takes::Value, value),
        _ => Err((format!("`{word}` may do more than shape the load"), UNKNOWN)),
    }
}

/// Adds the facts that follow from dd's operands.
fn operand_facts<'a>(operand: impl Fn(&str) -> Option<&'a str>, facts: &mut Facts) {
    for name in ["if", "of", "bs", "count", "conv", "iflag", "oflag"] {
        if let Some(value) = operand(name) {
            facts.add(&fact::dd_operand(name), value, "");
        }
    }
    // POSIX: blocks are of 512 bytes by default, and `count` counts input blocks.
    let block = operand("bs").or_else(|| operand("ibs"));
    let block = block.map_or(Some(512), bytes);
    let size = block
        .zip(counted_blocks(&operand))
        .and_then(|(block, count)| block.checked_mul(count));
    if let Some(size) = size {
        for name in [fact::JOB_ASKED_SIZE_BYTES, fact::JOB_WORKING_SET_BYTES] {
            facts.add(name, &size.to_string(), "bytes");
        }
    }
    let pattern = match operand("if") {
        Some("/dev/zero") => "zero",
        Some("/dev/random" | "/dev/urandom") => "random",
        _ => return,
    };
    facts.add(fact::JOB_DATA_PATTERN, pattern, "");
}

/// The number of blocks that `count` lets dd copy; `None` where it counts bytes, as with a `B` at
/// its end since GNU's 9.1.
fn counted_blocks<'a>(operand: impl Fn(&str) -> Option<&'a str>) -> Option<u64> {
    let in_bytes = operand("iflag").is_some_and(|flags| flags.contains("count_bytes"));
    let count = operand("count").filter(|count| !in_bytes && !count.ends_with('B'));
    count.and_then(bytes)
}

/// Parses a size as dd does: `k` and `KiB` are 1024 bytes, `kB` 1000, `b` 512 and `w` 2, and
/// an `x` multiplies.
fn bytes(text: &str) -> Option<u64> {
    text.split('x').try_fold(1, |product: u64, factor| {
        let digits = factor.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = match &factor[digits.len()..] {
            "" | "c" => 1,
            "w" => 2,
            "b" => 512,
            unit if unit.ends_with('B') => whole(bytes_in(unit, 1000.0)?)?,
            unit => whole(bytes_in(unit, 1024.0)?)?,
        };
        let factor: u64 = digits.parse().ok()?;
        product.checked_mul(factor)?.checked_mul(unit)
    })
}

/// Bytes per second of a printed rate, `49.02 MB/s`, by its unit.
fn decimal_rate(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    let factor = bytes_in(unit, 1000.0)?;
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some(number * factor)
}
