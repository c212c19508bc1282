//! What can be wrong with a job file or a command line.

use super::class::Class;
use crate::job::JobError;
use std::fmt;
use thiserror::Error;

/// Where something stands. Places in one file are in the file's order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The option stands in a job file.
    Line {
        /// The file's name as the caller gave it.
        file: String,
        /// The first line is 1.
        line: usize,
    },
    /// The option stands on a command line.
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
    /// An option that cannot be used.
    #[error("{place}: option `{option}`")]
    Option {
        /// The line or argument where it stands.
        place: Place,
        /// The option's name as it stands there.
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
        /// The job's name.
        job: String,
        /// What is wrong with it.
        #[source]
        cause: Box<JobError>,
    },
    /// `[` without `]`, or nothing between them.
    #[error("{place}: a section is `[name]`, not `{text}`")]
    SectionHeader {
        /// The line or argument where it stands.
        place: Place,
        /// The text as it stands there.
        text: String,
    },
    /// An option before the first section.
    #[error("{place}: `{text}` stands before the first `[section]`")]
    OutsideSection {
        /// The line or argument where it stands.
        place: Place,
        /// The text as it stands there.
        text: String,
    },
    /// The job file includes another file, which was not allowed.
    #[error(
        "{place}: `{text}` reads another file; put its lines here, or allow it with \
         `--allow-fio include`"
    )]
    Include {
        /// The line or argument where it stands.
        place: Place,
        /// The text as it stands there.
        text: String,
    },
    /// A file that is included and cannot be had.
    #[error("{place}: the included file `{file}`: {reason}")]
    Included {
        /// The line or argument where it stands.
        place: Place,
        /// The file's name as it stands there.
        file: String,
        /// Why it cannot be had.
        reason: String,
    },
    /// Not of the form `--option` or `--option=value`.
    #[error("{place}: `{text}` is not an option; write `--option=value`")]
    Argument {
        /// The line or argument where it stands.
        place: Place,
        /// The text as it stands there.
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
        /// The control character itself.
        letter: char,
    },
    /// `option` where `option=value` is needed.
    #[error("a value is missing")]
    MissingValue,
    /// The value is not a whole number in range.
    #[error("`{text}` is not a whole number from {least} to {most}")]
    Number {
        /// The text as it stands there.
        text: String,
        /// The smallest that is allowed.
        least: u64,
        /// The largest that is allowed.
        most: u64,
    },
    /// The value is a time that nobody waits for.
    #[error("`{text}` is more than 366 days, the longest time")]
    TooLong {
        /// The text as it stands there.
        text: String,
    },
    /// The value is none of the words that the option knows.
    #[error("`{text}` is none of {expected}")]
    Choice {
        /// The text as it stands there.
        text: String,
        /// The words that the option knows, for people.
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
        /// The variable as it stands there.
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
