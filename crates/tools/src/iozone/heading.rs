//! iozone's heading: its version and the flags in force.

use super::Unit;
use crate::result::{Reported, ReportedOption, ToolResult};

/// Lines that say that a flag is on, and the flag (the texts in iozone 3.489).
const FLAGS: &[(&str, &str)] = &[
    ("Auto Mode", "-a"),
    (
        "Auto Mode 2. This option is obsolete. Use -az -i0 -i1",
        "-A",
    ),
    ("Cross over of record size disabled.", "-z"),
    ("Excel chart generation enabled", "-R"),
    ("Include close in write timing", "-c"),
    ("Include fsync in write timing", "-e"),
    ("O_DIRECT feature enabled", "-I"),
    ("OPS Mode. Output is in operations per second.", "-O"),
    (
        "Microseconds/op Mode. Output is in microseconds per operation.",
        "-N",
    ),
    ("CPU utilization Excel chart enabled", "-+u"),
    ("SYNC Mode.", "-o"),
    ("No retest option selected", "-+n"),
    ("Purge Mode On", "-p"),
    ("Setting no_unlink", "-w"),
    (">>> O_DSYNC mode enabled. <<<", "-+D"),
    ("Read & Write sync mode active.", "-+r"),
];

/// Beginnings of lines that have a value, and a name for it.
const VALUES: &[(&str, &str)] = &[
    ("Command line used:", "command-line"),
    ("Output is in", "unit"),
    ("File size set to", "file-size"),
    ("Record Size", "record-size"),
    ("Using minimum file size of", "minimum-file-size"),
    ("Using maximum file size of", "maximum-file-size"),
    ("Using Minimum Record Size", "minimum-record-size"),
    ("Using Maximum Record Size", "maximum-record-size"),
    ("Time Resolution =", "time-resolution"),
    ("Processor cache size set to", "cache-size"),
    ("Processor cache line size set to", "cache-line-size"),
    ("File stride size set to", "stride"),
    ("CPU utilization Resolution =", "cpu-resolution"),
    ("Run began:", "began"),
];

/// Reads all lines that are a heading's, wherever they stand: they cannot be
/// taken for others. Flags become options by their letter.
pub(super) fn read(text: &str, result: &mut ToolResult) -> Unit {
    let mut unit = Unit::default();
    for line in text.lines() {
        let line = line.trim();
        if let Some((_, version)) = line.split_once("$Revision:") {
            let version = version.trim().trim_end_matches('$').trim();
            version.clone_into(&mut result.version);
        } else if let Some((_, flag)) = FLAGS.iter().find(|(said, _)| *said == line) {
            match *flag {
                "-O" => unit = Unit::Operations,
                "-N" => unit = Unit::Microseconds,
                _ => {}
            }
            push(result, flag, "");
        } else if let Some((said, name)) = VALUES.iter().find(|(said, _)| line.starts_with(said)) {
            let value = line[said.len()..].trim().trim_end_matches('.');
            match *name {
                "began" | "time-resolution" | "cpu-resolution" => {
                    result.facts.push(Reported::new(None, name, value, ""));
                }
                _ => push(result, name, value),
            }
        }
    }
    unit
}

fn push(result: &mut ToolResult, name: &str, value: &str) {
    result.options.push(ReportedOption {
        job: None,
        name: name.to_owned(),
        value: value.to_owned(),
    });
}

/// The tests that the command line asked for with `-i`; empty where it asked
/// for none by number, or is not known.
pub(super) fn tests(result: &ToolResult) -> Vec<u32> {
    let Some(line) = result
        .options
        .iter()
        .find(|option| option.name == "command-line")
    else {
        return Vec::new();
    };
    let words: Vec<&str> = line.value.split_whitespace().collect();
    let mut tests: Vec<u32> = words
        .iter()
        .enumerate()
        .filter_map(|(place, word)| {
            let number = word.strip_prefix("-i")?;
            if number.is_empty() {
                words.get(place + 1)?.parse().ok()
            } else {
                number.parse().ok()
            }
        })
        .collect();
    tests.sort_unstable();
    tests.dedup();
    tests
}
