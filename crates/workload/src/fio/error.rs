//! Errors of a job file or a command line.

use super::class::Class;
use crate::job::JobError;
use std::fmt;
use thiserror::Error;

/// The place of an option. Places in one file are in the file's order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The option stands in a job file.
    Line {
        /// The file's name as the caller gave it.
        file: String,
        /// The number of the line, from 1.
        line: usize,
    },
    /// The option stands on a command line.
    Argument {
        /// The command line's name as the caller gave it.
        name: String,
        /// The number of the argument, from 1.
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

/// The reason why a job file or a command line could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JobFileError {
    /// An option that cannot be used.
    #[error("{place}: option `{option}`")]
    Option {
        /// The line or argument of the option.
        place: Place,
        /// The option's name as written.
        option: String,
        /// The error of the option.
        #[source]
        cause: Box<OptionError>,
    },
    /// Options that contradict each other.
    #[error("{place}: job `{job}`")]
    Job {
        /// The place where the job begins.
        place: Place,
        /// The job's name.
        job: String,
        /// The error of the job.
        #[source]
        cause: Box<JobError>,
    },
    /// A section header has `[` without `]`, or nothing between them.
    #[error("{place}: a section is `[name]`, not `{text}`")]
    SectionHeader {
        /// The line or argument of the text.
        place: Place,
        /// The text as written.
        text: String,
    },
    /// There is an option before the first section.
    #[error("{place}: `{text}` stands before the first `[section]`")]
    OutsideSection {
        /// The line or argument of the text.
        place: Place,
        /// The text as written.
        text: String,
    },
    /// The job file includes another file, which was not allowed.
    #[error(
        "{place}: `{text}` reads another file; put its lines here, or allow it with \
         `--allow-fio include`"
    )]
    Include {
        /// The line or argument of the text.
        place: Place,
        /// The text as written.
        text: String,
    },
    /// An included file cannot be read.
    #[error("{place}: the included file `{file}`: {reason}")]
    Included {
        /// The line or argument of the name.
        place: Place,
        /// The file's name as written.
        file: String,
        /// The reason why it cannot be read.
        reason: String,
    },
    /// An argument does not have the form `--option` or `--option=value`.
    #[error("{place}: `{text}` is not an option; write `--option=value`")]
    Argument {
        /// The line or argument of the text.
        place: Place,
        /// The text as written.
        text: String,
    },
    /// There is no section but `[global]`.
    #[error("{name}: no job is defined")]
    NoJob {
        /// The file's name as the caller gave it.
        name: String,
    },
}

/// An error of an option.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionError {
    /// fio has no such option.
    #[error("fio has no such option{}", suggestion(*.nearest))]
    Unknown {
        /// The option with the most similar name, if any is near.
        nearest: Option<&'static str>,
    },
    /// The option is not modelled.
    #[error("not modelled: {reason}")]
    NotModelled {
        /// The reason why it cannot simply be left out.
        reason: &'static str,
    },
    /// The option is one of the fio program, not of a job.
    #[error("an option of the fio program, not of a job: raidlab calls fio itself")]
    Program,
    /// The option may not be given by a file without permission.
    #[error(
        "it {}, which no file may ask for; allow it for this run with `--allow-fio {option}`",
        .class.in_words()
    )]
    NotAllowed {
        /// The class of the option.
        class: Class,
        /// fio's own name of the option.
        option: String,
    },
    /// The value has a control character, which could end a line or a word.
    #[error("the value has the control character {letter:?}")]
    ControlLetter {
        /// The control character itself.
        letter: char,
    },
    /// The option has no value, but needs one.
    #[error("a value is missing")]
    MissingValue,
    /// The value is not a whole number in range.
    #[error("`{text}` is not a whole number from {least} to {most}")]
    Number {
        /// The text as written.
        text: String,
        /// The smallest allowed value.
        least: u64,
        /// The largest allowed value.
        most: u64,
    },
    /// The value is a time that is too long to wait for.
    #[error("`{text}` is more than 366 days, the longest time")]
    TooLong {
        /// The text as written.
        text: String,
    },
    /// The value is not one of the option's words.
    #[error("`{text}` is none of {expected}")]
    Choice {
        /// The text as written.
        text: String,
        /// The option's words, for people.
        expected: &'static str,
    },
    /// The option requires another setting of the job.
    #[error("it needs {what}")]
    Needs {
        /// The required setting.
        what: &'static str,
    },
    /// The value has a variable that is not allowed.
    #[error("`{variable}` is not replaced; write the value{}", allow_variable(.variable))]
    Variable {
        /// The variable as written.
        variable: String,
    },
}

/// The remedy by which a variable of the environment is replaced.
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
    /// The place of the error; `None` where it is about the whole.
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
