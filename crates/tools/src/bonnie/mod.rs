//! bonnie++: the words that a file may give it, its lines of CSV and its tables.

mod cells;
mod csv;
mod table;
#[cfg(test)]
mod tests;

use crate::error::ParseError;
use crate::facts::Facts;
use crate::result::{Part, Reported, ToolResult};
use crate::title::{Title, sized};
use crate::tool::{Benchmark, Call, Format, Place, Tool};
use crate::words::{Takes, Wrong, options, values};
use raidlab_results::fact;

/// bonnie++, of every version that is known.
pub const TOOL: Tool = Tool(&Bonnie);

/// bonnie++'s lines of CSV. By default it prints both them and the tables, and the CSV is the
/// better source: names are whole in it, and rates of files are numbers (2.00 hands a
/// floating-point number to a `%d` in its table).
pub const CSV: Format = Format {
    name: "bonnie-csv",
    tool: TOOL,
    looseness: 4,
    is_in: |text| text.lines().any(csv::is_line),
    parse: parse_csv,
};

/// The table of text that bonnie++ prints for people.
pub const TABLE: Format = Format {
    name: "bonnie-table",
    tool: TOOL,
    looseness: 5,
    is_in: table::is_in,
    parse: table::parse,
};

#[derive(Debug)]
struct Bonnie;

impl Benchmark for Bonnie {
    fn name(&self) -> &'static str {
        "bonnie++"
    }

    fn apt(&self) -> &'static str {
        "apt-get install bonnie++"
    }

    fn pkg(&self) -> &'static str {
        "pkg install bonnie++"
    }

    fn formats(&self) -> &'static [Format] {
        &[CSV, TABLE]
    }

    fn check(&self, words: &[String]) -> Result<(), (usize, Wrong)> {
        options(words, option)
    }

    fn needs_folder(&self) -> bool {
        true
    }

    fn call(&self, mut arguments: Vec<String>, place: &Place<'_>) -> Result<Call, String> {
        let own = [
            ("d", vec!["-d", place.path]),
            ("u", vec!["-u", "root"]),
            ("q", vec!["-q"]),
        ];
        for (letter, words) in own {
            if values(&arguments, option, letter).is_none() {
                arguments.extend(words.into_iter().map(str::to_owned));
            }
        }
        Ok(Call {
            arguments,
            operation: None,
        })
    }

    /// A count without a rate, as with `+++++`, is no row.
    fn is_row(&self, part: &Part) -> bool {
        part.has_rate()
    }

    /// The name of the machine (`-m`), by which a table of many lines of CSV tells them apart.
    fn measured(&self, result: &ToolResult) -> Option<String> {
        let name = &result.parts.first()?.label;
        (!name.is_empty()).then(|| name.clone())
    }

    fn title(&self, result: &ToolResult) -> Title {
        Title::plain(
            &format!("bonnie++{}", sized(result, " of a file of ")),
            "bonnie",
        )
    }

    fn fact(&self, said: &Reported, part: Option<&Part>, facts: &mut Facts) -> bool {
        let not_timed = part.filter(|_| said.name == "no-rate");
        if let Some(part) = not_timed {
            facts.add(&fact::bonnie_not_timed(part.operation), fact::TRUE, "");
        }
        not_timed.is_some()
    }

    /// bonnie++ counts files in units of 1024: `-n 16` makes 16384.
    fn last_facts(&self, result: &ToolResult, facts: &mut Facts) {
        let parts = result.parts.iter();
        let mut of_files = parts.filter(|part| part.operation.handles_files());
        if let Some(files) = of_files.find_map(|part| part.total_ios) {
            facts.add(fact::BONNIE_FILES, &files.to_string(), "");
            facts.add(fact::BONNIE_FILES_ASKED, &(files / 1024).to_string(), "");
        }
    }
}

/// The kind of word that follows an option that shapes the load; bonnie++(8) of 2.00.
fn option(letter: &str) -> Option<Takes> {
    match letter {
        "q" | "f" | "b" | "D" => Some(Takes::Nothing),
        "c" | "g" | "m" | "n" | "r" | "s" | "u" | "z" => Some(Takes::Value),
        "x" => Some(Takes::Repetitions),
        "d" => Some(Takes::Place),
        _ => None,
    }
}

/// Reads lines of CSV, one for each run (`-x` makes several); other lines are
/// left to [`table::parse`].
///
/// # Errors
/// Where there is no such line, or one has a field that is no value.
pub(crate) fn parse_csv(text: &str) -> Result<ToolResult, ParseError> {
    let mut result = ToolResult::new(crate::bonnie::CSV);
    let mut runs = 0;
    for (index, line) in text.lines().enumerate() {
        if csv::is_line(line) {
            csv::read_line(line, runs, &mut result)
                .map_err(|expected| ParseError::line(index, expected, line))?;
            runs += 1;
        }
    }
    result.if_found(runs > 0, "a line of CSV with 27, 48 or 50 fields")
}
