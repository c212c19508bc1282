//! Commands and their results.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The effect of a command on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// The command reads the machine's state and changes nothing.
    Reads,
    /// The command changes state that holds no data: a mount, a tunable, a started array.
    Changes,
    /// The command destroys data on a disk: it is shown in every plan, and refused without consent.
    Destroys,
}

/// A program with its arguments; never a line for a shell.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Command {
    /// The program: a name to look up or an absolute path.
    pub program: String,
    /// The arguments, one by one.
    pub arguments: Vec<String>,
    /// The text for its standard input, which is then closed.
    #[serde(default)]
    pub input: String,
    /// Variables of its environment, beside `LC_ALL=C`, which is always set, as tools
    /// translate their output.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
    /// The exit codes that mean success; `[0]` by default.
    pub success: Vec<i32>,
    /// The time after which it is killed; `None` for never.
    #[serde(default)]
    pub timeout: Option<Duration>,
    /// The effect on the machine.
    pub effect: Effect,
}

impl Command {
    /// A command that only reads.
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

    /// A command that destroys data.
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

    /// The command with other exit codes that mean success.
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

/// Writes the command as one would type it, quoted where a shell needs it.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quote(&self.program))?;
        for argument in &self.arguments {
            write!(f, " {}", quote(argument))?;
        }
        Ok(())
    }
}

/// A word quoted so that a POSIX shell takes it for one word.
#[must_use]
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The result of a command: how it ended, and its output.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Output {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    #[serde(default)]
    pub signal: Option<i32>,
    /// The standard output; bytes that are no UTF-8 are replaced.
    pub stdout: String,
    /// The standard error, treated in the same way.
    pub stderr: String,
    /// The time that it ran.
    #[serde(default)]
    pub took: Duration,
}
