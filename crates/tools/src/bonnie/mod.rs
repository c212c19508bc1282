//! bonnie++: its arguments, its lines of CSV and its tables.

mod arguments;
mod cells;
mod csv;
mod table;
#[cfg(test)]
mod tests;

pub use arguments::{ArgumentError, FileTest, Invocation};

pub(crate) use csv::is_line as is_csv_line;
pub(crate) use table::is_in as is_table;

use crate::error::ParseError;
use crate::result::ToolResult;
use crate::{Format, Tool};

/// Reads what bonnie++ printed: the lines of CSV where there are any, else the
/// tables. It prints both at once unless told otherwise, and the CSV is the
/// better source: names are whole there, and rates of files are numbers (2.00
/// hands a floating-point number to a `%d` in its table).
///
/// # Errors
/// Where there is neither, or one has a cell that is no value.
pub fn parse(text: &str) -> Result<ToolResult, ParseError> {
    if text.lines().any(csv::is_line) {
        parse_csv(text)
    } else {
        parse_table(text)
    }
}

/// Reads lines of CSV, one for each run (`-x` makes several); other lines are
/// left to [`parse_table`].
///
/// # Errors
/// Where there is none, or one has a field that is no value.
pub fn parse_csv(text: &str) -> Result<ToolResult, ParseError> {
    let mut result = ToolResult::new(Tool::Bonnie, Format::BonnieCsv);
    let mut runs = 0;
    for (index, line) in text.lines().enumerate() {
        if csv::is_line(line) {
            csv::read_line(line, runs, &mut result)
                .map_err(|expected| ParseError::line(index, expected, line))?;
            runs += 1;
        }
    }
    if runs == 0 {
        return Err(ParseError::NoOutput {
            tool: Tool::Bonnie,
            expected: "a line of CSV with 27, 48 or 50 fields",
        });
    }
    Ok(result)
}

/// Reads tables as people see them.
///
/// # Errors
/// Where there is none, or one has a cell that is no value.
pub fn parse_table(text: &str) -> Result<ToolResult, ParseError> {
    table::parse(text)
}
