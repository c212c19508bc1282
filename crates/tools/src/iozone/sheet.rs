//! iozone's blocks for a spreadsheet (`-R`): a title, a row of record sizes in
//! kB, and for each file size a row of numbers.

use super::{Unit, set_value, sized_part};
use crate::Operation;
use crate::error::ParseError;
use crate::result::{Part, ToolResult};

/// The titles of blocks, without `report` and in lower case.
const TITLES: [(&str, Operation); 17] = [
    ("writer", Operation::Write),
    ("re-writer", Operation::Rewrite),
    ("reader", Operation::Read),
    ("re-reader", Operation::Reread),
    ("random read", Operation::RandomRead),
    ("random write", Operation::RandomWrite),
    ("backward read", Operation::BackwardRead),
    ("record rewrite", Operation::RecordRewrite),
    ("stride read", Operation::StrideRead),
    ("fwrite", Operation::Fwrite),
    ("re-fwrite", Operation::Frewrite),
    ("fread", Operation::Fread),
    ("re-fread", Operation::Freread),
    ("pwrite", Operation::Pwrite),
    ("re-pwrite", Operation::Repwrite),
    ("pread", Operation::Pread),
    ("re-pread", Operation::Repread),
];

/// The operation of a block, and whether its numbers are processor time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Block {
    operation: Operation,
    is_cpu: bool,
}

fn block(line: &str) -> Option<Block> {
    let title = line.trim().strip_prefix('"')?;
    let (title, _) = title.split_once('"')?;
    let title = title.trim().to_lowercase();
    let (name, _) = title.split_once(" report")?;
    let (name, is_cpu) = match name.strip_suffix(" cpu utilization") {
        Some(name) => (name, true),
        None => (name, false),
    };
    TITLES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|&(_, operation)| Block { operation, is_cpu })
}

/// Reads the blocks: rates where no table gave them, and processor time.
pub(super) fn read(text: &str, unit: Unit, result: &mut ToolResult) -> Result<(), ParseError> {
    let has_table = !result.parts.is_empty();
    let mut current: Option<Block> = None;
    let mut records: Vec<u64> = Vec::new();
    let mut jobs: Vec<(u64, u64)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(block) = block(line) {
            current = Some(block);
            records.clear();
            continue;
        }
        let Some(block) = current else {
            continue;
        };
        let Some(row) = Row::of(line) else {
            current = None;
            continue;
        };
        if records.is_empty() {
            let expected = "a row of record sizes in quotes";
            records = row
                .record_sizes()
                .ok_or_else(|| ParseError::line(index, expected, line))?;
            continue;
        }
        let expected = "a file size in quotes and a number for each record size";
        let (file, values) = row
            .values()
            .filter(|(_, values)| values.len() <= records.len())
            .ok_or_else(|| ParseError::line(index, expected, line))?;
        for (&record, value) in records.iter().zip(values) {
            if block.is_cpu {
                set_cpu(&mut result.parts, file, record, block.operation, value);
            } else if !has_table {
                let job = number_of(&mut jobs, (file, record));
                let mut part = sized_part(job, file, record, block.operation);
                set_value(&mut part, value, unit);
                result.parts.push(part);
            }
        }
    }
    Ok(())
}

/// The number of a pair of sizes; a new pair gets a new number.
fn number_of(jobs: &mut Vec<(u64, u64)>, sizes: (u64, u64)) -> u32 {
    let place = jobs
        .iter()
        .position(|known| *known == sizes)
        .unwrap_or_else(|| {
            jobs.push(sizes);
            jobs.len() - 1
        });
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Sets processor time; iozone says that zeros of it should be ignored.
fn set_cpu(parts: &mut [Part], file: u64, record: u64, operation: Operation, value: f64) {
    let label = format!("{file}k/{record}k");
    let part = parts
        .iter_mut()
        .find(|part| part.operation == operation && part.label == label);
    if let Some(part) = part
        && value > 0.0
    {
        part.cpu_percent = Some(value);
    }
}

/// A row that begins with a number in quotes.
struct Row<'a>(Vec<&'a str>);

impl<'a> Row<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let first = words.first()?;
        (first.len() > 2 && first.starts_with('"')).then_some(Self(words))
    }

    fn record_sizes(&self) -> Option<Vec<u64>> {
        self.0.iter().map(|word| quoted(word)).collect()
    }

    fn values(&self) -> Option<(u64, Vec<f64>)> {
        let (first, rest) = self.0.split_first()?;
        let values: Option<Vec<f64>> = rest
            .iter()
            .map(|word| crate::number::finite(word))
            .collect();
        Some((quoted(first)?, values?))
    }
}

fn quoted(word: &str) -> Option<u64> {
    word.strip_prefix('"')?.strip_suffix('"')?.parse().ok()
}
