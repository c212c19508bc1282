//! Reading jobs as people write them for fio.
//!
//! Job files and command lines become one list of options ([`FioJobs`]), and one table has the
//! class of each option ([`Class`]) and its treatment in the model: it is modelled, or has no
//! effect on a modelled disk (the user gets a [`Note`]), or would change the result in a way that
//! is not modelled (an error with the reason), or is no option of fio's (an error with the nearest
//! name). An option that does more than shape the load is refused when it is read, unless a
//! [`Permission`] names it.

mod aligned;
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

/// The contents of a job file or a command line, as modelled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFile {
    /// The groups of jobs in the order in which they run; at least one, each with at least one job.
    pub groups: Vec<JobGroup>,
    /// Notes for the user, in the order of the file.
    pub notes: Vec<Note>,
}

/// A note on an option that was accepted but does not do what it would do on a real machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The line or argument of the option.
    pub place: Place,
    /// The option as written.
    pub option: String,
    /// raidlab's treatment of the option.
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
