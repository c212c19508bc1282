//! What is to be known of a benchmark tool, and the list of those that are.
//!
//! A tool is a folder of this crate: how it is had, what a file may tell it, what it is
//! called with, how its output is read, what of that is a row, and what the rest says.
//! Everybody above asks the [`Tool`]; nobody above knows one by name.

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

/// How a tool is had, called and understood.
pub trait Benchmark: fmt::Debug + Sync {
    /// The name of the program.
    fn name(&self) -> &'static str;

    /// How it is installed on Debian and its kin.
    fn apt(&self) -> &'static str;

    /// How it is installed on FreeBSD.
    fn pkg(&self) -> &'static str;

    /// The forms of its output. A text of the tool that is in none of them is read as
    /// the last, which says what is missing.
    fn formats(&self) -> &'static [Format];

    /// Checks the words that a file tells it: only what shapes the load may be said.
    ///
    /// # Errors
    /// The index of the first that is wrong, what is, and what would be right.
    fn check(&self, words: &[String]) -> Result<(), (usize, Wrong)>;

    /// Whether suites read its jobs as such, and not word by word: fio's.
    fn has_jobs(&self) -> bool {
        false
    }

    /// Whether it works on files of a file system only.
    fn needs_folder(&self) -> bool {
        false
    }

    /// A suite's arguments with what else it must be told to run in a place.
    ///
    /// # Errors
    /// Why it cannot run there.
    fn call(&self, arguments: Vec<String>, place: &Place<'_>) -> Result<Call, String>;

    /// The arguments that it gets first on a machine whose time is read from this clock, where
    /// it can have another than its own.
    fn clock(&self, _source: &str) -> Vec<String> {
        Vec::new()
    }

    /// Which of standard output and standard error has its results.
    fn output<'text>(&self, standard_output: &'text str, _error: &'text str) -> &'text str {
        standard_output
    }

    /// The line on standard error with which it leaves a job that does not end.
    fn gave_up<'text>(&self, _error: &'text str) -> Option<&'text str> {
        None
    }

    /// The options that an argument vector asks it for, where it reports which are in
    /// force.
    fn asked(&self, _arguments: &[String]) -> Vec<AskedOption> {
        Vec::new()
    }

    /// What was asked and is not in force, or is without being asked.
    fn differences(&self, _asked: &[AskedOption], _result: &ToolResult) -> Vec<Difference> {
        Vec::new()
    }

    /// What its arguments say of the job.
    fn job_facts(&self, _arguments: &[String], _facts: &mut Facts) {}

    /// The files of the job that its arguments have it read, and those that they have it
    /// write, as wholes.
    fn files<'word>(&self, _arguments: &'word [String]) -> [Vec<&'word str>; 2] {
        [Vec::new(), Vec::new()]
    }

    /// The option that a fact of the vocabulary is of, where it shapes the load: with another
    /// value it is another job, and not a repetition.
    fn load_option<'fact>(&self, _fact: &'fact str) -> Option<&'fact str> {
        None
    }

    /// The runs that a text in one of its forms has, each as its own text, and what is to be
    /// said of what is left out.
    fn runs(&self, _format: &Format, text: &str) -> (Vec<String>, Vec<String>) {
        (vec![text.to_owned()], Vec::new())
    }

    /// Whether a part is a row: one that says that nothing was done is none.
    fn is_row(&self, part: &Part) -> bool;

    /// What distinguishes rows of one operation; empty: they are one measurement.
    fn part_name(&self, _part: &Part) -> String {
        String::new()
    }

    /// Whether one process does one operation after the other, so that a mean time is
    /// a rate.
    fn is_one_by_one(&self) -> bool {
        false
    }

    /// Parts of the same number were measured at one time.
    fn group(&self, _result: &ToolResult, part: &Part) -> u64 {
        u64::from(part.job)
    }

    /// What such a group is called in the output, if anything.
    fn label(&self, _result: &ToolResult) -> Option<String> {
        None
    }

    /// What the output calls the machine or array on which such a group was
    /// measured, if anything.
    fn measured(&self, _result: &ToolResult) -> Option<String> {
        None
    }

    /// Words for such a group.
    fn title(&self, result: &ToolResult) -> Title;

    /// What is said beside the numbers, before the facts one by one.
    fn first_facts(&self, _result: &ToolResult, _facts: &mut Facts) {}

    /// One fact, by its name in the vocabulary; false: the vocabulary does not have it.
    fn fact(&self, _said: &Reported, _part: Option<&Part>, _facts: &mut Facts) -> bool {
        false
    }

    /// What follows from the result as a whole.
    fn last_facts(&self, _result: &ToolResult, _facts: &mut Facts) {}
}

/// The machine and the folder or device on which a tool runs.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// A folder, or a block device or file.
    pub path: &'a str,
    /// The file that is its own there.
    pub file: &'a str,
}

/// What a tool is called with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The tool's arguments, one word each.
    pub arguments: Vec<String>,
    /// What it does, where its output does not tell.
    pub operation: Option<Operation>,
}

/// A benchmark tool.
#[derive(Debug, Clone, Copy)]
pub struct Tool(pub(crate) &'static dyn Benchmark);

/// All of them, folder by folder; the build finds these.
static ALL: &[Tool] = include!(concat!(env!("OUT_DIR"), "/tools.rs"));

impl Tool {
    /// All tools, in the order of the registry.
    #[must_use]
    pub fn all() -> &'static [Self] {
        ALL
    }

    /// Their names, as they are listed to people: `bonnie++, dd, fio or iozone`.
    #[must_use]
    pub fn list() -> String {
        let names: Vec<&str> = ALL.iter().map(|tool| tool.name()).collect();
        match names.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        }
    }

    /// Reads its output in whichever of its forms it is.
    ///
    /// # Errors
    /// Where it is none, or cannot be read.
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

/// A form of a tool's output.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Its name, unique among all tools: `fio-json`.
    pub name: &'static str,
    /// The tool that writes it.
    pub tool: Tool,
    /// How easily another's text is taken for it, from 0: text with dd's records in it
    /// may be a log of anything. Forms with less are tried first.
    pub looseness: u8,
    /// Whether a text has it.
    pub is_in: fn(&str) -> bool,
    /// Reads a text that is known to have it.
    pub parse: fn(&str) -> Result<ToolResult, ParseError>,
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

/// In which form of which tool's output a text is; `None` where it is none's.
#[must_use]
pub fn detect(text: &str) -> Option<Format> {
    detect_all(text).into_iter().next()
}

/// The same of every tool whose output is in a text, the surest first; of each tool one.
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
