//! What a command line asks of fio and dd, as facts.

use raidlab_store::fact;
use raidlab_units::parse_bytes;

/// Facts of a command line: dd's operands and what they come to, fio's
/// options. Empty for other programs.
pub(super) fn facts(command: &str) -> Vec<(String, String, &'static str)> {
    let mut words = command.split_whitespace();
    let program = words.find(|word| matches!(*word, "dd" | "fio"));
    let pairs = words.filter_map(|word| word.split_once('='));
    match program {
        Some("dd") => dd(pairs.collect()),
        Some("fio") => pairs
            .filter_map(|(name, value)| {
                let name = name.strip_prefix("--")?;
                Some((fact::fio_option(name), value.to_owned(), ""))
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn dd(operands: Vec<(&str, &str)>) -> Vec<(String, String, &'static str)> {
    let value = |wanted: &str| {
        let found = operands.iter().rfind(|(name, _)| *name == wanted);
        found.map(|(_, value)| *value)
    };
    let mut facts: Vec<_> = operands
        .iter()
        .map(|(name, value)| (fact::dd_operand(name), (*value).to_owned(), ""))
        .collect();
    let size = value("bs").zip(value("count")).and_then(|(block, count)| {
        let block = parse_bytes(block).ok()?.0;
        block.checked_mul(count.parse().ok()?)
    });
    if let Some(size) = size {
        for name in [fact::JOB_ASKED_SIZE_BYTES, fact::JOB_WORKING_SET_BYTES] {
            facts.push((name.to_owned(), size.to_string(), "bytes"));
        }
    }
    if value("if") == Some("/dev/zero") {
        let name = fact::JOB_DATA_PATTERN.to_owned();
        facts.push((name, "zero".to_owned(), ""));
    }
    facts
}
