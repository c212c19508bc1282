//! What a machine was asked and what it answered: the line of a transcript.
//!
//! A transcript is JSON Lines: one [`Exchange`] on each, in the order in which
//! the answers came.

use crate::command::{Command, Effect, Output};
use crate::target::{Frame, TargetError, Watched};
use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;

/// What a machine was asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// To run a command, to its end or in the background.
    Command(Command),
    /// The contents of the file at this path are wanted.
    Read(String),
    /// The contents of a file are to be replaced.
    Write {
        /// The path of the file on the machine.
        path: String,
        /// The new contents.
        text: String,
    },
    /// The names in the folder at this path are wanted.
    List(String),
    /// What this path leads to is wanted, behind all symbolic links.
    Resolve(String),
    /// A frame of these sources is wanted.
    Watch(Vec<Watched>),
}

impl Request {
    /// The request without what differs between two runs that ask the same:
    /// a command's environment (it carries the run's marker), its limit, and
    /// how its exit code is judged.
    #[must_use]
    pub fn key(&self) -> Self {
        match self {
            Self::Command(command) => Self::Command(bare(command)),
            Self::Watch(sources) => Self::Watch(
                sources
                    .iter()
                    .map(|source| match source {
                        Watched::Command(command) => Watched::Command(bare(command)),
                        Watched::File(path) => Watched::File(path.clone()),
                    })
                    .collect(),
            ),
            other => other.clone(),
        }
    }

    /// Whether asking twice is harmless.
    #[must_use]
    pub const fn only_reads(&self) -> bool {
        match self {
            Self::Command(command) => matches!(command.effect, Effect::Reads),
            Self::Write { .. } | Self::Watch(_) => false,
            Self::Read(_) | Self::List(_) | Self::Resolve(_) => true,
        }
    }
}

fn bare(command: &Command) -> Command {
    Command::reads(&command.program, &command.arguments).input(&command.input)
}

/// As a person would say it.
impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command(command) => write!(f, "{command}"),
            Self::Read(path) => write!(f, "read {path}"),
            Self::Write { path, .. } => write!(f, "write {path}"),
            Self::List(folder) => write!(f, "list {folder}"),
            Self::Resolve(path) => write!(f, "resolve {path}"),
            Self::Watch(sources) => write!(f, "watch {} sources", sources.len()),
        }
    }
}

/// What a machine answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// What came of a command.
    Output(Output),
    /// A file's contents, or what a path leads to.
    Text(String),
    /// The names in a folder.
    Names(Vec<String>),
    /// The file is written.
    Written,
    /// The contents of the watched files and commands at one moment.
    Frame(Frame),
    /// What was asked could not be done, for this reason.
    Failure(Failure),
}

/// A [`TargetError`] as a transcript keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Failure {
    /// The program is not installed.
    NoProgram,
    /// The command did not end in time.
    Timeout,
    /// There is no such file.
    Missing,
    /// Anything else, in words.
    Other(String),
}

impl Failure {
    /// What a transcript keeps of an error.
    #[must_use]
    pub fn of(error: &TargetError) -> Self {
        match error {
            TargetError::NoProgram { .. } => Self::NoProgram,
            TargetError::Timeout { .. } => Self::Timeout,
            error if error.is_missing() => Self::Missing,
            TargetError::Io { source, .. } => Self::Other(source.to_string()),
            error => Self::Other(error.to_string()),
        }
    }

    /// The error again, for the machine and the request that met it.
    #[must_use]
    pub fn error(&self, machine: &str, request: &Request) -> TargetError {
        let machine = machine.to_owned();
        let source = match (self, request) {
            (Self::NoProgram, Request::Command(command)) => {
                return TargetError::NoProgram {
                    machine,
                    program: command.program.clone(),
                };
            }
            (Self::Timeout, Request::Command(command)) => {
                return TargetError::Timeout {
                    machine,
                    command: command.to_string(),
                    limit: command.timeout.unwrap_or_default(),
                };
            }
            (Self::Missing, _) => io::Error::from(io::ErrorKind::NotFound),
            (Self::Other(words), _) => io::Error::other(words.clone()),
            (Self::NoProgram | Self::Timeout, _) => io::Error::other("it is no command"),
        };
        TargetError::Io {
            machine,
            action: request.to_string(),
            source,
        }
    }
}

/// A request with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// When the answer came, since the observation began.
    pub at: Duration,
    /// What was asked.
    pub request: Request,
    /// What was answered.
    pub answer: Answer,
}
