//! Reading jobs as people write them for fio.
//!
//! One table of fio's options serves job files and command lines. An option is
//! modelled, or has no effect on a modelled disk (the user gets a [`Note`]), or
//! would change the result in a way that is not modelled (an error with the
//! reason), or is no option of fio's (an error with the nearest name).

mod command_line;
mod error;
mod job_file;
mod modelled;
mod section;
mod table;
mod value;

pub use command_line::parse_command_line_options;
pub use error::{JobFileError, OptionError, Place};
pub use job_file::read_job_file;

use crate::job::JobGroup;

/// What a job file or a command line asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFile {
    /// Groups of jobs in the order in which they run; at least one, each with
    /// at least one job.
    pub groups: Vec<JobGroup>,
    /// What the user should know, in the order of the file.
    pub notes: Vec<Note>,
}

/// An option that was accepted but does not do what it would do on a real
/// machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Where it stands.
    pub place: Place,
    /// As written.
    pub option: String,
    /// What raidlab makes of it.
    pub text: &'static str,
}

impl std::fmt::Display for Note {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "{}: `{}`: {}",
            self.place, self.option, self.text
        )
    }
}

#[cfg(test)]
mod tests;
