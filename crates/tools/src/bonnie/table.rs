//! The tables of bonnie++ for people, 1.0x to 2.x.
//!
//! A table is two or three lines of heading, a row, and from 1.9x on a row of
//! latencies. The row is a label of 19 letters, then six cells of a rate (6
//! letters) and processor time (4 letters). Wide numbers push what follows to
//! the right, tests that did not run leave blanks: so a row with all twelve
//! words is taken word by word, any other by its columns.
//!
//! The name is cut to what the size leaves of 19 letters. bonnie++ 2.00 passes the rates of files,
//! floating-point numbers, to `%5d`: it then prints what the processor had in another register.
//! Such cells are no values.

use super::cells::{Cells, TESTS, part, processes, set_files, set_sizes, size};
use crate::error::ParseError;
use crate::result::{Part, Reported, ToolResult};

/// The width of a row's label, in characters.
const LABEL: usize = 19;
/// The widths of a rate and of processor time, in characters.
const CELLS: [usize; 2] = [6, 4];
/// The width of a latency, in characters.
const LATENCY: usize = 10;

/// Whether a text has a table's heading.
pub(crate) fn is_in(text: &str) -> bool {
    text.lines().any(|line| heading(line).is_some())
}

/// The version in a heading, and whether it is that of the table of files.
fn heading(line: &str) -> Option<(&str, bool)> {
    let is_files = line.contains("------Sequential Create------");
    if !is_files && !line.contains("------Sequential Output------") {
        return None;
    }
    let version = line
        .trim_start()
        .strip_prefix("Version")
        .and_then(|rest| rest.split_whitespace().next())
        .filter(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    Some((version.unwrap_or_default(), is_files))
}

/// Reads all tables of a text; a table of files belongs to the one before it.
pub(super) fn parse(text: &str) -> Result<ToolResult, ParseError> {
    let mut result = ToolResult::new(crate::bonnie::TABLE);
    let lines: Vec<&str> = text.lines().collect();
    let mut job: Option<u32> = None;
    let mut label = String::new();
    let mut index = 0;
    while index < lines.len() {
        let Some((version, is_files)) = heading(lines[index]) else {
            index += 1;
            continue;
        };
        if !version.is_empty() {
            version.clone_into(&mut result.version);
        }
        if !is_files || job.is_none() {
            job = Some(job.map_or(0, |last| last + 1));
            label.clear();
        }
        let row = row_after(&lines, index).ok_or_else(|| {
            ParseError::line(
                index,
                "a heading with a row of numbers below it",
                lines[index],
            )
        })?;
        let latencies = lines
            .get(row + 1)
            .filter(|line| line.starts_with("Latency"))
            .copied();
        let table = Table {
            job: job.unwrap_or(0),
            heading: &lines[index..row],
            row: lines[row],
            latencies: latencies.unwrap_or_default(),
            is_files,
        };
        table
            .read(&mut label, &mut result)
            .map_err(|expected| ParseError::line(row, expected, lines[row]))?;
        index = row + 1;
    }
    let expected = "a heading with `------Sequential Output------`";
    result.if_found(job.is_some(), expected)
}

/// The row of numbers below a heading: after the line with `%CP`.
fn row_after(lines: &[&str], heading: usize) -> Option<usize> {
    let units = lines
        .iter()
        .enumerate()
        .skip(heading + 1)
        .take(3)
        .find(|(_, line)| line.contains("%CP"))?
        .0;
    lines
        .get(units + 1)
        .filter(|row| !row.trim().is_empty())
        .map(|_| units + 1)
}

struct Table<'a> {
    job: u32,
    heading: &'a [&'a str],
    row: &'a str,
    latencies: &'a str,
    is_files: bool,
}

impl Table<'_> {
    fn read(&self, label: &mut String, result: &mut ToolResult) -> Result<(), &'static str> {
        let letters: Vec<char> = self.row.chars().collect();
        let head: String = letters.iter().take(LABEL).collect();
        let cells: String = letters.iter().skip(LABEL).collect();
        let start = result.parts.len();
        let mut sizes = (None, None);
        if self.is_files {
            if label.is_empty() {
                // The name is in the heading of this table.
                let names = self.heading.get(1).copied().unwrap_or_default();
                let name: String = names.chars().take(LABEL).collect();
                name.trim().clone_into(label);
            }
            let files = head.trim();
            let fact = Reported::new(Some(self.job), "files", files, "x1024");
            result.facts.push(fact);
        } else {
            let (name, size_and_more) = head.trim().rsplit_once(' ').unwrap_or(("", head.trim()));
            name.trim().clone_into(label);
            let mut words = size_and_more.split(':');
            sizes.0 = words.next().and_then(|word| size(word, 1 << 20));
            sizes.1 = words.next().and_then(|word| size(word, 1));
            // bonnie++ 2.00 has no line for it, and prints `64M:4k:3` or `64M::3`.
            let processes_of_size = words.next().and_then(|word| processes(self.job, word));
            let fact = Reported::new(Some(self.job), "size", size_and_more, "");
            result.facts.push(fact);
            let told = self.heading.iter().find_map(|line| {
                let mut words = line.strip_prefix("Concurrency")?.split_whitespace();
                processes(self.job, words.next()?)
            });
            result.facts.extend(told.or(processes_of_size));
        }
        let tests = if self.is_files {
            &TESTS[6..]
        } else {
            &TESTS[..6]
        };
        let cells = split_cells(&cells);
        let latencies = split_latencies(self.latencies);
        for (place, &operation) in tests.iter().enumerate() {
            let mut cell = Cells {
                rate: &cells[place].0,
                cpu: &cells[place].1,
                latency: &latencies[place],
            };
            let is_garbage = self.is_garbage(&result.version, cell.rate);
            if is_garbage {
                cell.rate = "";
            }
            let mut part = part(self.job, label, operation, cell)?;
            if is_garbage {
                let part =
                    part.get_or_insert_with(|| Part::new(self.job, label.as_str(), operation));
                note_garbage(part);
            }
            result.parts.extend(part);
        }
        let parts = &mut result.parts[start..];
        set_sizes(parts, sizes.0, sizes.1);
        if self.is_files {
            set_files(parts, head.trim());
        }
        Ok(())
    }

    /// Whether a rate of files is a whole number from 2.00, which cannot be right.
    fn is_garbage(&self, version: &str, rate: &str) -> bool {
        let rate = rate.trim();
        self.is_files
            && version.starts_with("2.00")
            && !rate.is_empty()
            && rate
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'-')
    }
}

fn note_garbage(part: &mut Part) {
    let why = "bonnie++ 2.00 prints rates of files wrongly in its table; its CSV has them";
    part.note("no-rate", why, "");
}

/// The six cells of a row.
fn split_cells(cells: &str) -> Vec<(String, String)> {
    let words: Vec<&str> = cells.split_whitespace().collect();
    if words.len() == 12 {
        return words
            .chunks(2)
            .map(|pair| (pair[0].to_owned(), pair[1].to_owned()))
            .collect();
    }
    let mut letters = cells.chars();
    (0..6)
        .map(|_| {
            let mut next = |width: usize| -> String {
                let cell: String = letters.by_ref().take(width).collect();
                cell.trim().to_owned()
            };
            (next(CELLS[0]), next(CELLS[1]))
        })
        .collect()
}

/// The six cells of a row of latencies, empty where there is no row.
fn split_latencies(row: &str) -> Vec<String> {
    let row = row.strip_prefix("Latency").unwrap_or_default();
    let words: Vec<&str> = row.split_whitespace().collect();
    if words.len() == 6 {
        return words.into_iter().map(str::to_owned).collect();
    }
    let indent = 17 - "Latency".len();
    let letters: Vec<char> = row.chars().skip(indent).collect();
    (0..6)
        .map(|place| {
            let cell: String = letters.iter().skip(place * LATENCY).take(LATENCY).collect();
            cell.trim().to_owned()
        })
        .collect()
}
