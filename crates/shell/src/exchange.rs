//! Requests to a machine and its answers: the lines of a transcript.
//!
//! A transcript is JSON Lines: one [`Exchange`] on each, in the order in which
//! the answers came.

use crate::command::{Command, Effect, Output};
use crate::target::{Frame, TargetError, Watched};
use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;

/// A request to a machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// A command is to be run, to its end or in the background.
    Command(Command),
    /// The contents of the file at this path are requested.
    Read(String),
    /// The contents of a file are to be replaced.
    Write {
        /// The path of the file on the machine.
        path: String,
        /// The new contents.
        text: String,
    },
    /// The names in the folder at this path are requested.
    List(String),
    /// The target of this path behind all symbolic links is requested.
    Resolve(String),
    /// A frame of these sources is requested.
    Watch(Vec<Watched>),
}

impl Request {
    /// The request without the parts that differ between two runs with the same request: a
    /// command's environment (it carries the run's marker), its limit, and how its exit
    /// code is judged.
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

    /// Whether the request can be repeated without harm.
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

/// Writes the request in words.
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

/// An answer of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The result of a command.
    Output(Output),
    /// A file's contents, or the target of a path.
    Text(String),
    /// The names in a folder.
    Names(Vec<String>),
    /// The file was written.
    Written,
    /// The contents of the watched files and commands at one moment.
    Frame(Frame),
    /// The request failed, for this reason.
    Failure(Failure),
}

/// A [`TargetError`] in the form of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Failure {
    /// The program is not installed.
    NoProgram,
    /// The command did not end within its limit.
    Timeout,
    /// There is no such file.
    Missing,
    /// Any other failure, in words.
    Other(String),
}

impl Failure {
    /// The form of an error in a transcript.
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

    /// The error again, for the machine and the request that caused it.
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
    /// The time of the answer, since the observation began.
    pub at: Duration,
    /// The request to the machine.
    pub request: Request,
    /// The machine's answer.
    pub answer: Answer,
}
