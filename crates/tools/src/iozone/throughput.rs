//! iozone's throughput mode (`-t`): a paragraph for each test.
//!
//! `Children see` is the sum of the rates of all processes, each over its own time; `Parent sees`
//! is the sum of all bytes over the time from the first start to the last end. When the first
//! process is done iozone stops the others: `Min xfer` is what the slowest had done by then.

use super::{Unit, kibibytes, set_value};
use crate::Operation;
use crate::error::ParseError;
use crate::number::{finite, measured};
use crate::result::{PROCESSES, Part, ToolResult};

const TESTS: [(&str, Operation); 13] = [
    ("initial writers", Operation::Write),
    ("rewriters", Operation::Rewrite),
    ("readers", Operation::Read),
    ("re-readers", Operation::Reread),
    ("reverse readers", Operation::BackwardRead),
    ("stride readers", Operation::StrideRead),
    ("random readers", Operation::RandomRead),
    ("mixed workload", Operation::Mixed),
    ("random writers", Operation::RandomWrite),
    ("pwrite writers", Operation::Pwrite),
    ("pread readers", Operation::Pread),
    ("fwriters", Operation::Fwrite),
    ("freaders", Operation::Fread),
];

/// Reads all paragraphs.
pub(super) fn read(text: &str, unit: Unit, result: &mut ToolResult) -> Result<(), ParseError> {
    let mut sizes = (None, None);
    let mut job: Option<u32> = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some((_, rest)) = line.split_once(" writes a ") {
            sizes = sizes_of(rest);
        } else if let Some(rest) = line.strip_prefix("Children see throughput for") {
            let expected = "processes, a test and a rate";
            let wrong = || ParseError::line(index, expected, line);
            let (head, value) = rest.split_once('=').ok_or_else(wrong)?;
            let (processes, name) = head.trim().split_once(' ').ok_or_else(wrong)?;
            let processes: u64 = processes.parse().map_err(|_| wrong())?;
            let rate = measured(value).ok_or_else(wrong)?;
            // Text pasted without its heading has the unit here.
            let unit = match rate.unit {
                "ops/sec" => Unit::Operations,
                _ => unit,
            };
            let name = name.trim();
            let Some((_, operation)) = TESTS.iter().find(|(known, _)| *known == name) else {
                job = None;
                result.messages.push(line.to_owned());
                continue;
            };
            let number = result.parts.last().map_or(0, |part| part.job + 1);
            job = Some(number);
            let mut part = Part::new(number, format!("{processes} processes"), *operation);
            (part.file_size_bytes, part.block_size_bytes) = sizes;
            part.note(PROCESSES, processes, "");
            set_value(&mut part, rate.value, unit);
            result.parts.push(part);
        } else if job.is_some()
            && let Some(part) = result.parts.last_mut()
        {
            further_line(line, part);
        }
    }
    Ok(())
}

/// Reads `512 kByte file in 16 kByte records`: the bytes of both.
fn sizes_of(text: &str) -> (Option<u64>, Option<u64>) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let bytes = |place: usize| {
        let text = format!("{}{}", words.get(place)?, words.get(place + 1)?);
        kibibytes(&text)?.checked_mul(1024)
    };
    (bytes(0), bytes(4))
}

fn further_line(line: &str, part: &mut Part) {
    for (beginning, name) in [
        ("Parent sees throughput", "parent-rate"),
        ("Min throughput per", "slowest-process"),
        ("Max throughput per", "fastest-process"),
        ("Avg throughput per", "mean-of-processes"),
        ("Min xfer", "least-transfer"),
    ] {
        let value = line
            .strip_prefix(beginning)
            .and_then(|rest| rest.split_once('='))
            .and_then(|(_, value)| measured(value));
        if let Some(value) = value {
            part.note(name, value.value, value.unit);
        }
    }
    let is_cpu = line
        .get(..16)
        .is_some_and(|head| head.eq_ignore_ascii_case("CPU utilization:"));
    if is_cpu && let Some((_, rest)) = line.rsplit_once("CPU utilization") {
        part.cpu_percent = finite(rest.trim().trim_end_matches('%')).filter(|&cpu| cpu > 0.0);
    }
}
