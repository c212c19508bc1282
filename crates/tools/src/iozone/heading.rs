//! iozone's heading: its version and the flags in force.

use super::Unit;
use crate::result::{Reported, ReportedOption, ToolResult};
use raidlab_units::table;
use std::sync::LazyLock;

/// The lines of the heading, each with the flag that is on or a name for the line's value.
static LINES: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    table(include_str!("heading.txt"), |[name, said]| {
        Some((name, said))
    })
});

/// The beginning of the output of a run.
pub(super) const BEGINNING: &str = "Iozone: Performance Test of File I/O";

/// The text of each run in a file, as a script's `>>` leaves them: flags and numbers of one run say
/// nothing about another. Each is preceded by the text before the first run, and by as many empty
/// lines as the file has lines before it, so that errors name the file's lines.
pub(super) fn runs(text: &str) -> Vec<String> {
    let line_of = |(place, _)| text[..place].rfind('\n').map_or(0, |end| end + 1);
    let starts: Vec<usize> = text.match_indices(BEGINNING).map(line_of).collect();
    let [first, _, ..] = starts[..] else {
        return vec![text.to_owned()];
    };
    let ends = starts[1..].iter().copied().chain([text.len()]);
    let run = |(&start, end): (&usize, usize)| {
        let lines = text[first..start].matches('\n').count();
        let (head, own) = (&text[..first], &text[start..end]);
        format!("{head}{}{own}", "\n".repeat(lines))
    };
    starts.iter().zip(ends).map(run).collect()
}

/// Reads all lines of a heading, wherever they are: they cannot be mistaken for others. Flags
/// become options by their letter.
pub(super) fn read(text: &str, result: &mut ToolResult) -> Unit {
    let mut unit = Unit::default();
    for line in text.lines() {
        let line = line.trim();
        if let Some((_, version)) = line.split_once("$Revision:") {
            let version = version.trim().trim_end_matches('$').trim();
            version.clone_into(&mut result.version);
        } else if let Some((name, said)) =
            LINES
                .iter()
                .find(|(name, said)| match name.starts_with('-') {
                    true => *said == line,
                    false => line.starts_with(said),
                })
        {
            let value = line[said.len()..].trim().trim_end_matches('.');
            match *name {
                "-O" => unit = Unit::Operations,
                "-N" => unit = Unit::Microseconds,
                "began" | "time-resolution" | "cpu-resolution" => {
                    result.facts.push(Reported::new(None, name, value, ""));
                    continue;
                }
                _ => {}
            }
            result.options.push(ReportedOption::new(None, name, value));
        }
    }
    unit
}

/// The tests that the command line selected with `-i`; empty where it selected none by number, or
/// is not known.
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
