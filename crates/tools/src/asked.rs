//! Options that a tool was given, and those that are not in force as asked.

use std::fmt;

/// An option that a tool was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedOption {
    /// The job's name; `None` for an option before the first job, which is for all jobs.
    pub job: Option<String>,
    /// The option's name as written, without dashes before it.
    pub name: String,
    /// The option's value; `None` where it had none.
    pub value: Option<String>,
}

/// The kind of difference between an option as asked and as reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The tool reports another value than the one it was given.
    Changed,
    /// The tool does not report the option, though it reports others.
    Missing,
    /// The tool reports an option that was not given.
    Unasked,
    /// The result is unknown: the option had no value, fio repeats no options at all (before 2.3),
    /// or its job is reported under the name of another.
    Untold,
}

/// An option that is not, or not surely, in force as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The job's name; `None` for an option of all jobs.
    pub job: Option<String>,
    /// The option's name as asked or as reported.
    pub name: String,
    /// The value that was asked for.
    pub asked: Option<String>,
    /// The value that the tool says it used.
    pub reported: Option<String>,
    /// The way in which the two values disagree.
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
