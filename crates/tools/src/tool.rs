//! The interface of a benchmark tool, and the list of all tools.
//!
//! A tool is a folder of this crate: how it is installed, which words a file may give it, what it
//! is called with, how its output is read, which parts are rows, and which facts it has. All code
//! above uses [`Tool`]; none names a particular one.

use crate::asked::{AskedOption, Difference};
use crate::error::ParseError;
use crate::facts::Facts;
use crate::result::{Part, Reported, ToolResult};
use crate::title::Title;
use crate::words::Wrong;
use raidlab_results::Operation;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

/// A benchmark tool: how it is installed, called and understood.
pub trait Benchmark: fmt::Debug + Sync {
    /// The name of the program.
    fn name(&self) -> &'static str;

    /// The package to install on Debian and its derivatives.
    fn apt(&self) -> &'static str;

    /// The package to install on FreeBSD.
    fn pkg(&self) -> &'static str;

    /// The formats of the tool's output. A text of the tool that is in none of them is read as the
    /// last, whose error says what is missing.
    fn formats(&self) -> &'static [Format];

    /// Checks the words that a file gives the tool: only those that shape the load are allowed.
    ///
    /// # Errors
    /// The index of the first wrong word, what is wrong, and what would be right.
    fn check(&self, words: &[String]) -> Result<(), (usize, Wrong)>;

    /// Whether suites parse the tool's jobs, and not just its words: fio's.
    fn has_jobs(&self) -> bool {
        false
    }

    /// Whether the tool works on files of a file system only.
    fn needs_folder(&self) -> bool {
        false
    }

    /// The call of the tool with a suite's arguments and those that it needs to run in a place.
    ///
    /// # Errors
    /// The reason why it cannot run there.
    fn call(&self, arguments: Vec<String>, place: &Place<'_>) -> Result<Call, String>;

    /// The arguments to put first on a machine whose time is read from this clock, if the tool can
    /// use another clock than its own.
    fn clock(&self, _source: &str) -> Vec<String> {
        Vec::new()
    }

    /// Chooses which of standard output and standard error has the tool's results.
    fn output<'text>(&self, standard_output: &'text str, _error: &'text str) -> &'text str {
        standard_output
    }

    /// The line on standard error with which the tool abandons a job that does not end.
    fn gave_up<'text>(&self, _error: &'text str) -> Option<&'text str> {
        None
    }

    /// The options that an argument vector gives the tool, if the tool reports which are in force.
    fn asked(&self, _arguments: &[String]) -> Vec<AskedOption> {
        Vec::new()
    }

    /// The options that were given and are not in force, or are in force without being given.
    fn differences(&self, _asked: &[AskedOption], _result: &ToolResult) -> Vec<Difference> {
        Vec::new()
    }

    /// Adds facts about the job that follow from the arguments.
    fn job_facts(&self, _arguments: &[String], _facts: &mut Facts) {}

    /// The files that the job reads by its arguments, and those that it writes, as whole files.
    fn files<'word>(&self, _arguments: &'word [String]) -> [Vec<&'word str>; 2] {
        [Vec::new(), Vec::new()]
    }

    /// The option behind a fact of the vocabulary, if it shapes the load: with another value the
    /// job is another one, and not a repetition.
    fn load_option<'fact>(&self, _fact: &'fact str) -> Option<&'fact str> {
        None
    }

    /// Splits a text in one of the tool's formats into its runs, each as its own text, with notes
    /// on what is left out.
    fn runs(&self, _format: &Format, text: &str) -> (Vec<String>, Vec<String>) {
        (vec![text.to_owned()], Vec::new())
    }

    /// Whether a part is a row: a part in which nothing was done is not.
    fn is_row(&self, part: &Part) -> bool;

    /// The name that distinguishes rows of one operation; if empty, they are one measurement.
    fn part_name(&self, _part: &Part) -> String {
        String::new()
    }

    /// Whether one process does one operation after the other, so that a mean time is
    /// a rate.
    fn is_one_by_one(&self) -> bool {
        false
    }

    /// The number of a part's group: parts of the same group were measured at one time.
    fn group(&self, _result: &ToolResult, part: &Part) -> u64 {
        u64::from(part.job)
    }

    /// The name of a group in the output, if any.
    fn label(&self, _result: &ToolResult) -> Option<String> {
        None
    }

    /// The name in the output of the machine or array on which a group was measured, if any.
    fn measured(&self, _result: &ToolResult) -> Option<String> {
        None
    }

    /// The title of a group.
    fn title(&self, result: &ToolResult) -> Title;

    /// Adds the facts that come before those of the output, which are added one by one.
    fn first_facts(&self, _result: &ToolResult, _facts: &mut Facts) {}

    /// Adds one fact under its name in the vocabulary; returns false if it has none.
    fn fact(&self, _said: &Reported, _part: Option<&Part>, _facts: &mut Facts) -> bool {
        false
    }

    /// Adds the facts that follow from the result as a whole.
    fn last_facts(&self, _result: &ToolResult, _facts: &mut Facts) {}
}

/// The machine and the folder or device on which a tool runs.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The path of a folder, or of a block device or file.
    pub path: &'a str,
    /// The path of the tool's own file there.
    pub file: &'a str,
}

/// The call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The tool's arguments, one word each.
    pub arguments: Vec<String>,
    /// The operation, where the tool's output does not name it.
    pub operation: Option<Operation>,
}

/// A benchmark tool.
#[derive(Debug, Clone, Copy)]
pub struct Tool(pub(crate) &'static dyn Benchmark);

/// All tools, in the order of their folders, which the build script finds.
static ALL: &[Tool] = include!(concat!(env!("OUT_DIR"), "/tools.rs"));

impl Tool {
    /// All tools, in the order of the registry.
    #[must_use]
    pub fn all() -> &'static [Self] {
        ALL
    }

    /// The names of all tools, in words: `bonnie++, dd, fio or iozone`.
    #[must_use]
    pub fn list() -> String {
        let names: Vec<&str> = ALL.iter().map(|tool| tool.name()).collect();
        match names.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        }
    }

    /// Reads the tool's output in whichever of its formats it is.
    ///
    /// # Errors
    /// Where it is in no format of the tool, or cannot be read.
    pub fn parse(self, text: &str) -> Result<ToolResult, ParseError> {
        let formats = self.formats();
        let found = formats.iter().find(|format| (format.is_in)(text));
        let nothing = Err(ParseError::NoOutput {
            tool: self,
            expected: "any form of output",
        });
        let format = found.or(formats.last());
        format.map_or(nothing, |format| (format.parse)(text))
    }
}

impl Deref for Tool {
    type Target = dyn Benchmark;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl PartialEq for Tool {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Tool {}

impl fmt::Display for Tool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// No tool has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no tool; use {}", Tool::list())]
pub struct UnknownTool {
    /// The name as it was written.
    pub name: String,
}

impl FromStr for Tool {
    type Err = UnknownTool;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = ALL.iter().copied().find(|tool| tool.name() == name);
        found.ok_or_else(|| UnknownTool {
            name: name.to_owned(),
        })
    }
}

/// A format of a tool's output.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The name of the format, unique among all tools: `fio-json`.
    pub name: &'static str,
    /// The tool that writes it.
    pub tool: Tool,
    /// The ease with which a foreign text is taken for this format, from 0: text with dd's records
    /// in it may be a log of anything. Formats with less looseness are tried first.
    pub looseness: u8,
    /// Whether a text is in this format.
    pub is_in: fn(&str) -> bool,
    /// Reads a text that is known to be in this format.
    pub parse: fn(&str) -> Result<ToolResult, ParseError>,
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

/// The format of the output in a text; `None` where it is no tool's.
#[must_use]
pub fn detect(text: &str) -> Option<Format> {
    detect_all(text).into_iter().next()
}

/// The formats of every tool whose output is in a text, the surest first; one for each tool.
#[must_use]
pub fn detect_all(text: &str) -> Vec<Format> {
    let mut formats: Vec<&Format> = ALL.iter().flat_map(|tool| tool.formats()).collect();
    formats.sort_by_key(|format| format.looseness);
    let mut found: Vec<Format> = Vec::new();
    for format in formats {
        let is_known = found.iter().any(|known| known.tool == format.tool);
        if !is_known && (format.is_in)(text) {
            found.push(*format);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_read_back_and_forms_have_one_name_each() {
        let mut names = BTreeSet::new();
        for tool in Tool::all() {
            assert_eq!(tool.to_string().parse(), Ok(*tool));
            assert!(!tool.apt().is_empty() && !tool.pkg().is_empty(), "{tool}");
            assert!(!tool.formats().is_empty(), "{tool}");
            for format in tool.formats() {
                assert_eq!(format.tool, *tool, "{}", format.name);
                assert!(names.insert(format.name), "{}", format.name);
            }
        }
        let error = Tool::from_str("vdbench").unwrap_err().to_string();
        assert!(error.ends_with(&Tool::list()), "{error}");
    }
}
