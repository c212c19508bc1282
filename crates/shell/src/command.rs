//! A command and what came of it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// What a command does to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Reads the machine's state and changes nothing.
    Reads,
    /// Changes state that no data hangs on: a mount, a tunable, a started array.
    Changes,
    /// Data on a disk are lost: shown in every plan, refused without consent.
    Destroys,
}

/// A program with its arguments: never a line for a shell.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Command {
    /// The program: a name to look up or an absolute path.
    pub program: String,
    /// Its arguments, one by one.
    pub arguments: Vec<String>,
    /// Written to its standard input, which is then closed.
    #[serde(default)]
    pub input: String,
    /// Variables set for it, beside `LC_ALL=C`, which is always set: tools
    /// translate their output.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
    /// Exit codes that mean success; `[0]` unless said.
    pub success: Vec<i32>,
    /// It is killed after this time; `None`: never.
    #[serde(default)]
    pub timeout: Option<Duration>,
    /// What it does to the machine.
    pub effect: Effect,
}

impl Command {
    /// A command that only looks.
    #[must_use]
    pub fn reads<I: IntoIterator<Item: Into<String>>>(program: &str, arguments: I) -> Self {
        Self {
            program: program.to_owned(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            input: String::new(),
            environment: Vec::new(),
            success: vec![0],
            timeout: None,
            effect: Effect::Reads,
        }
    }

    /// A command that changes state, but loses no data.
    #[must_use]
    pub fn changes<I: IntoIterator<Item: Into<String>>>(program: &str, arguments: I) -> Self {
        Self {
            effect: Effect::Changes,
            ..Self::reads(program, arguments)
        }
    }

    /// A command after which data are gone.
    #[must_use]
    pub fn destroys<I: IntoIterator<Item: Into<String>>>(program: &str, arguments: I) -> Self {
        Self {
            effect: Effect::Destroys,
            ..Self::reads(program, arguments)
        }
    }

    /// The command with this text on its standard input.
    #[must_use]
    pub fn input(mut self, text: impl Into<String>) -> Self {
        self.input = text.into();
        self
    }

    /// With other exit codes that mean success.
    #[must_use]
    pub fn success(mut self, codes: &[i32]) -> Self {
        self.success = codes.to_vec();
        self
    }

    /// The command with a limit on the time that it runs.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }
}

/// As one would type it, quoted where a shell would need it.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quote(&self.program))?;
        for argument in &self.arguments {
            write!(f, " {}", quote(argument))?;
        }
        Ok(())
    }
}

/// A word as a POSIX shell takes it for one word.
#[must_use]
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// How a command ended, and what it wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Output {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(default)]
    pub signal: Option<i32>,
    /// Its standard output; bytes that are no UTF-8 are replaced.
    pub stdout: String,
    /// Its standard error, the same way.
    pub stderr: String,
    /// How long it ran.
    #[serde(default)]
    pub took: Duration,
}
