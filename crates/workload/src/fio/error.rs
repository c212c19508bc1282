//! What can be wrong with a job file or a command line.

use super::table::Class;
use crate::job::JobError;
use raidlab_units::ParseUnitError;
use std::fmt;
use thiserror::Error;

/// Where something stands. Places in one file are in the file's order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In a job file.
    Line {
        /// The file's name as the caller gave it.
        file: String,
        /// The first line is 1.
        line: usize,
    },
    /// On a command line.
    Argument {
        /// The command line's name as the caller gave it.
        name: String,
        /// The first argument is 1.
        number: usize,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(formatter, "{file}, line {line}"),
            Self::Argument { name, number } => write!(formatter, "{name}, argument {number}"),
        }
    }
}

/// Why a job file or a command line could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JobFileError {
    /// An option.
    #[error("{place}: option `{option}`")]
    Option {
        /// Where.
        place: Place,
        /// As written.
        option: String,
        /// What is wrong with it.
        #[source]
        cause: Box<OptionError>,
    },
    /// Options that contradict each other.
    #[error("{place}: job `{job}`")]
    Job {
        /// Where the job begins.
        place: Place,
        /// Its name.
        job: String,
        /// What is wrong with it.
        #[source]
        cause: Box<JobError>,
    },
    /// `[` without `]`, or nothing between them.
    #[error("{place}: a section is `[name]`, not `{text}`")]
    SectionHeader {
        /// Where.
        place: Place,
        /// As written.
        text: String,
    },
    /// An option before the first section.
    #[error("{place}: `{text}` stands before the first `[section]`")]
    OutsideSection {
        /// Where.
        place: Place,
        /// As written.
        text: String,
    },
    /// An `include` line.
    #[error(
        "{place}: `{text}` reads another file; put its lines here, or allow it with \
         `--allow-fio include`"
    )]
    Include {
        /// Where.
        place: Place,
        /// As written.
        text: String,
    },
    /// A file that is included and cannot be had.
    #[error("{place}: the included file `{file}`: {reason}")]
    Included {
        /// Where.
        place: Place,
        /// As written.
        file: String,
        /// Why.
        reason: String,
    },
    /// Not of the form `--option` or `--option=value`.
    #[error("{place}: `{text}` is not an option; write `--option=value`")]
    Argument {
        /// Where.
        place: Place,
        /// As written.
        text: String,
    },
    /// No section but `[global]`.
    #[error("{name}: no job is defined")]
    NoJob {
        /// The file's name as the caller gave it.
        name: String,
    },
}

/// What is wrong with an option.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionError {
    /// fio has no such option.
    #[error("fio has no such option{}", suggestion(*.nearest))]
    Unknown {
        /// The option that is written most alike, if any is.
        nearest: Option<&'static str>,
    },
    /// An option of fio's that is not modelled.
    #[error("not modelled: {reason}")]
    NotModelled {
        /// Why it cannot simply be left out.
        reason: &'static str,
    },
    /// An option of the fio program, not of a job.
    #[error("an option of the fio program, not of a job: raidlab calls fio itself")]
    Program,
    /// No file may ask for this unasked.
    #[error(
        "it {}, which no file may ask for; allow it for this run with `--allow-fio {option}`",
        .class.in_words()
    )]
    NotAllowed {
        /// What the option can do.
        class: Class,
        /// fio's own name of it.
        option: String,
    },
    /// A letter that could end a line or a word for somebody.
    #[error("the value has the control character {letter:?}")]
    ControlLetter {
        /// The letter.
        letter: char,
    },
    /// `option` where `option=value` is needed.
    #[error("a value is missing")]
    MissingValue,
    /// The value is not a size.
    #[error("`{text}` is not a size")]
    Size {
        /// As written.
        text: String,
        /// Why.
        #[source]
        cause: ParseUnitError,
    },
    /// The value is not a time.
    #[error("`{text}` is not a time")]
    Time {
        /// As written.
        text: String,
        /// Why.
        #[source]
        cause: ParseUnitError,
    },
    /// The value is not a whole number in range.
    #[error("`{text}` is not a whole number from {least} to {most}")]
    Number {
        /// As written.
        text: String,
        /// The smallest that is allowed.
        least: u64,
        /// The largest that is allowed.
        most: u64,
    },
    /// The value is none of the words that the option knows.
    #[error("`{text}` is none of {expected}")]
    Choice {
        /// As written.
        text: String,
        /// The words.
        expected: &'static str,
    },
    /// What another option of the job makes impossible.
    #[error("it needs {what}")]
    Needs {
        /// What would be right.
        what: &'static str,
    },
    /// A value with a variable.
    #[error("`{variable}` is not replaced; write the value{}", allow_variable(.variable))]
    Variable {
        /// As written.
        variable: String,
    },
}

/// How to have a variable of the environment replaced.
fn allow_variable(variable: &str) -> String {
    if variable.starts_with("${") && variable.ends_with('}') {
        format!(", or allow it with `--allow-fio '{variable}'`")
    } else {
        String::new()
    }
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

impl JobFileError {
    /// Where it is; `None` where it is about the whole.
    #[must_use]
    pub const fn place(&self) -> Option<&Place> {
        match self {
            Self::Option { place, .. }
            | Self::Job { place, .. }
            | Self::SectionHeader { place, .. }
            | Self::OutsideSection { place, .. }
            | Self::Include { place, .. }
            | Self::Included { place, .. }
            | Self::Argument { place, .. } => Some(place),
            Self::NoJob { .. } => None,
        }
    }
}
