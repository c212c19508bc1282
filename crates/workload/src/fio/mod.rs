//! Reading jobs as people write them for fio.
//!
//! Job files and command lines become one list of options ([`FioJobs`]), and
//! one table says of each option what it can do ([`Class`]) and what the model
//! makes of it: it is modelled, or has no effect on a modelled disk (the user
//! gets a [`Note`]), or would change the result in a way that is not modelled
//! (an error with the reason), or is no option of fio's (an error with the
//! nearest name). What does more than shape the load is refused when it is
//! read, unless a [`Permission`] names it.

mod class;
mod command_line;
mod error;
mod groups;
mod job_file;
mod modelled;
mod options;
mod permission;
mod reader;
mod section;
mod table;
mod value;

pub use class::Class;
pub use error::{JobFileError, OptionError, Place};
pub use job_file::Includes;
pub use options::{FioJob, FioJobs, FioOption, Target};
pub use permission::{Permission, PermissionError};
pub use table::{
    Honoured, OptionFacts, Unit, canonical_name, fio_options, is_program_option, shapes_load, unit,
};

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
    /// The line or argument where the option stands.
    pub place: Place,
    /// The option as it is written there.
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
