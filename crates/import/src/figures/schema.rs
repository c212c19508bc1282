//! The form of a file of figures.

use raidlab_store::Measurement;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Facts by their names in the store's vocabulary.
pub(super) type Facts = BTreeMap<String, String>;

/// A file of figures.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    /// The kind, always `figures`; it is checked before the file is read.
    #[serde(rename = "kind")]
    pub(super) _kind: Kind,
    /// The version of this form.
    #[serde(rename = "schema")]
    pub(super) _schema: Version,
    pub(super) name: String,
    pub(super) title: String,
    pub(super) source: String,
    /// The suite of its jobs; by default the file's own name.
    pub(super) suite: Option<String>,
    /// Facts of the machine, by their short names.
    #[serde(default)]
    pub(super) facts: Facts,
    #[serde(default)]
    pub(super) job: Vec<Job>,
    #[serde(default)]
    pub(super) subject: Vec<Subject>,
    #[serde(default)]
    pub(super) output: Vec<Output>,
    #[serde(default)]
    pub(super) claim: Vec<Claim>,
    /// Statements of the article without a number.
    #[serde(default)]
    pub(super) notes: Vec<String>,
}

impl Document {
    /// The model fits that used the figure behind a row.
    pub(super) fn fitted(&self, row: &Measurement) -> Vec<String> {
        let subjects = self.subject.iter().filter(|one| one.name == row.subject);
        let mut cells = subjects.flat_map(|one| &one.cell);
        let op = row.op.name();
        let found = cells.find(|one| one.job == row.job && one.op == op && one.part == row.part);
        found.map_or_else(Vec::new, |cell| cell.fitted.clone())
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Figures,
}

/// The version of this format; there is only 1.
#[derive(Debug, Deserialize)]
#[serde(try_from = "u32")]
pub(super) struct Version;

impl TryFrom<u32> for Version {
    type Error = String;

    fn try_from(version: u32) -> Result<Self, String> {
        if version == 1 {
            Ok(Self)
        } else {
            Err(format!("schema {version} is not known, only 1"))
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) class: String,
    /// The tool, with its version where all subjects have the same.
    #[serde(default)]
    pub(super) tool: String,
    /// The block size, `4k`.
    pub(super) block: Option<String>,
    #[serde(default = "one")]
    pub(super) queue_depth: u32,
    #[serde(default = "one")]
    pub(super) streams: u32,
    #[serde(default)]
    pub(super) facts: Facts,
    /// The command that ran the job.
    pub(super) command: Option<String>,
}

const fn one() -> u32 {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Subject {
    pub(super) name: String,
    #[serde(default)]
    pub(super) filesystem: String,
    #[serde(default)]
    pub(super) facts: Facts,
    /// The commands that built the array.
    #[serde(default)]
    pub(super) commands: Vec<String>,
    #[serde(default)]
    pub(super) cell: Vec<Cell>,
}

/// The trust that a figure deserves.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reliability {
    /// The figure is as measured, with every digit.
    Exact,
    /// The figure was rounded or cut off in print.
    Rounded,
    /// The figure is badly legible, or given in two ways.
    Uncertain,
    /// A more reliable source contradicts the figure.
    Disputed,
}

impl Reliability {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Rounded => "rounded",
            Self::Uncertain => "uncertain",
            Self::Disputed => "disputed",
        }
    }
}

/// A printed figure.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cell {
    pub(super) job: String,
    pub(super) op: String,
    /// The part of the tool's output.
    #[serde(default)]
    pub(super) part: String,
    /// The value as printed, with its digits.
    pub(super) value: String,
    /// The unit as printed.
    pub(super) unit: String,
    /// The correct unit, where another was printed.
    pub(super) means: Option<String>,
    pub(super) reliability: Reliability,
    /// The processor time, percent of one processor.
    pub(super) cpu: Option<f64>,
    /// The change against the base as printed, percent.
    pub(super) percent: Option<f64>,
    /// The value that the percent refers to, where it is not the best.
    pub(super) base: Option<f64>,
    /// Whether the article calls the figure the best.
    pub(super) winner: Option<bool>,
    pub(super) sync_percent: Option<f64>,
    #[serde(default)]
    pub(super) note: String,
    /// The model fits that used this very figure.
    #[serde(default)]
    pub(super) fitted: Vec<String>,
    /// Other values printed for the same cell.
    #[serde(default)]
    pub(super) other: Vec<Other>,
}

impl Cell {
    /// Checks that numbers are finite: TOML can write `nan` and `inf`.
    pub(super) fn check_numbers(&self) -> Result<(), String> {
        let numbers = [
            ("cpu", self.cpu),
            ("percent", self.percent),
            ("base", self.base),
            ("sync_percent", self.sync_percent),
        ];
        let wrong = numbers
            .into_iter()
            .find(|(_, number)| number.is_some_and(|number| !number.is_finite()));
        wrong.map_or(Ok(()), |(name, number)| {
            Err(format!("{name} cannot be {}", number.unwrap_or_default()))
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Other {
    pub(super) source: String,
    pub(super) value: String,
    #[serde(default)]
    pub(super) note: String,
}

/// Output of a tool that an article quotes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Output {
    pub(super) subject: String,
    pub(super) job: String,
    /// The operation, where the output does not name it.
    pub(super) op: Option<String>,
    pub(super) text: String,
    /// The tool's version, where the output does not have it.
    pub(super) version: Option<String>,
    pub(super) reliability: Reliability,
    #[serde(default)]
    pub(super) facts: Facts,
    /// The command that ran the tool, where it is not the job's.
    pub(super) command: Option<String>,
    #[serde(default)]
    pub(super) note: String,
}

/// A claim of an article about a cell whose figures come from output.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    pub(super) subject: String,
    pub(super) job: String,
    pub(super) op: String,
    #[serde(default)]
    pub(super) part: String,
    pub(super) value: Option<String>,
    #[serde(default)]
    pub(super) unit: String,
    pub(super) percent: Option<f64>,
    pub(super) winner: Option<bool>,
}
