//! Options that a tool was given, and those that are not in force as asked.

use std::fmt;

/// An option that a tool was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedOption {
    /// The job's name; `None`: before the first job, for all of them.
    pub job: Option<String>,
    /// The option's name as written, without dashes before it.
    pub name: String,
    /// Its value; `None` where it had none.
    pub value: Option<String>,
}

/// What is wrong with an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The tool repeats another value than it was asked for.
    Changed,
    /// The tool does not repeat it, though it repeats others.
    Missing,
    /// The tool repeats an option that was not asked for.
    Unasked,
    /// Nothing can be said: the option had no value, fio repeats no options at
    /// all (before 2.3), or its job is reported under another's name.
    Untold,
}

/// An option that is not, or not surely, in force as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The job's name; `None`: an option for all jobs.
    pub job: Option<String>,
    /// The option's name as asked or as reported.
    pub name: String,
    /// The value asked for.
    pub asked: Option<String>,
    /// The value that the tool says it used.
    pub reported: Option<String>,
    /// How the two values disagree.
    pub verdict: Verdict,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(job) = &self.job {
            write!(formatter, "job `{job}`: ")?;
        }
        let asked = self.asked.as_deref().unwrap_or("(no value)");
        let reported = self.reported.as_deref().unwrap_or("(nothing)");
        let name = &self.name;
        match self.verdict {
            Verdict::Changed => write!(
                formatter,
                "`{name}` was asked to be `{asked}`, fio took `{reported}`"
            ),
            Verdict::Missing => {
                write!(formatter, "`{name}={asked}` was asked, fio did not take it")
            }
            Verdict::Unasked => {
                write!(
                    formatter,
                    "fio took `{name}={reported}`, nobody asked for it"
                )
            }
            Verdict::Untold => write!(
                formatter,
                "`{name}={asked}` was asked, fio does not say what it took"
            ),
        }
    }
}
