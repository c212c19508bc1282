//! iozone's table: a row for each file and record size.
//!
//! The heading always has all thirteen columns; with `-i` the others stay blank. The columns of
//! a row's numbers are found by their count: all thirteen, or as many as the tests of the
//! command line make; and where neither fits, by the words of the heading, under whose ends the
//! numbers are aligned.

use super::{Unit, heading, set_value, sized_part};
use crate::Operation;
use crate::error::ParseError;
use crate::result::ToolResult;

/// The columns in order, each with the number of its test for `-i`.
const COLUMNS: [(u32, Operation); 13] = [
    (0, Operation::Write),
    (0, Operation::Rewrite),
    (1, Operation::Read),
    (1, Operation::Reread),
    (2, Operation::RandomRead),
    (2, Operation::RandomWrite),
    (3, Operation::BackwardRead),
    (4, Operation::RecordRewrite),
    (5, Operation::StrideRead),
    (6, Operation::Fwrite),
    (6, Operation::Frewrite),
    (7, Operation::Fread),
    (7, Operation::Freread),
];

/// Whether a line is the second line of a heading.
pub(super) fn is_heading(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case("kb"))
        && words.next() == Some("reclen")
}

/// Reads all rows below the heading.
pub(super) fn read(text: &str, unit: Unit, result: &mut ToolResult) -> Result<(), ParseError> {
    let tests = heading::tests(result);
    let asked: Vec<Operation> = COLUMNS
        .iter()
        .filter(|(test, _)| tests.contains(test))
        .map(|&(_, operation)| operation)
        .collect();
    let mut ends: Option<Vec<usize>> = None;
    let mut job = 0;
    for (index, line) in text.lines().enumerate() {
        if is_heading(line) {
            let words = words_with_ends(line);
            ends = Some(words.iter().skip(2).map(|&(end, _)| end).collect());
            continue;
        }
        let Some(ends) = &ends else {
            continue;
        };
        let words = words_with_ends(line);
        let is_row = words.len() > 2 && words.iter().all(|(_, word)| is_number(word));
        if !is_row {
            continue;
        }
        let cells = cells(&words[2..], &asked, ends)
            .map_err(|expected| ParseError::line(index, expected, line))?;
        let size = |place: usize| words[place].1.parse::<u64>();
        let (Ok(file), Ok(record)) = (size(0), size(1)) else {
            let expected = "a file size and a record size in kB";
            return Err(ParseError::line(index, expected, line));
        };
        for (operation, value) in cells {
            let mut part = sized_part(job, file, record, operation);
            set_value(&mut part, value, unit);
            result.parts.push(part);
        }
        job += 1;
    }
    Ok(())
}

fn is_number(word: &str) -> bool {
    word.bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// The words of a line, each with the position of its end.
fn words_with_ends(line: &str) -> Vec<(usize, &str)> {
    let start = line.as_ptr().addr();
    line.split_whitespace()
        .map(|word| (word.as_ptr().addr() - start + word.len(), word))
        .collect()
}

/// The operation and the value of each number of a row.
fn cells(
    words: &[(usize, &str)],
    asked: &[Operation],
    ends: &[usize],
) -> Result<Vec<(Operation, f64)>, &'static str> {
    // A rate of ten digits would be terabytes per second: two numbers that touch.
    const MOST_DIGITS: usize = 9;
    let values: Vec<f64> = words
        .iter()
        .filter(|(_, word)| word.find('.').unwrap_or(word.len()) <= MOST_DIGITS)
        .filter_map(|(_, word)| crate::number::finite(word))
        .collect();
    if values.len() != words.len() {
        return Err("numbers that do not touch each other");
    }
    let operations: Vec<Operation> = if values.len() == COLUMNS.len() {
        COLUMNS.iter().map(|&(_, operation)| operation).collect()
    } else if values.len() == asked.len() {
        asked.to_vec()
    } else {
        by_place(words, ends).ok_or("numbers below the words of the heading")?
    };
    Ok(operations.into_iter().zip(values).collect())
}

/// The column with the nearest end for each number; `None` where two would share one.
fn by_place(words: &[(usize, &str)], ends: &[usize]) -> Option<Vec<Operation>> {
    let columns: Vec<usize> = words
        .iter()
        .filter_map(|(end, _)| {
            ends.iter()
                .take(COLUMNS.len())
                .enumerate()
                .min_by_key(|(_, column)| column.abs_diff(*end))
                .map(|(place, _)| place)
        })
        .collect();
    let is_rising = columns.is_sorted_by(|one, other| one < other);
    (is_rising && columns.len() == words.len())
        .then(|| columns.into_iter().map(|place| COLUMNS[place].1).collect())
}
