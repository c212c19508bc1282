//! What a rule is.

use crate::case::Case;
use crate::finding::Ruling;
use raidlab_store::Measurement;
use std::fmt;

/// What a rule's pitfall belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Caches and data sets.
    Cache,
    /// State of the array and the file system.
    Array,
    /// Geometry and hardware.
    Hardware,
    /// What tools mean by what they print.
    Tools,
    /// What people make of numbers.
    Figures,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cache => "Caches and data sets",
            Self::Array => "State of the array",
            Self::Hardware => "Geometry and hardware",
            Self::Tools => "Tools",
            Self::Figures => "Figures and claims",
        })
    }
}

/// How a rule goes over the evidence.
pub(crate) enum Check {
    /// Row by row; returns early where a fact is missing.
    Rows(fn(&Case<'_>, &Measurement, &mut Ruling) -> Option<()>),
    /// Judges the run as a whole, in one call.
    Whole(fn(&Case<'_>, &mut Ruling)),
}

/// One way in which a benchmark goes wrong.
pub struct Rule {
    /// Its identifier: a letter for the family and a number: `C12`.
    pub id: &'static str,
    /// The family of rules that it belongs to.
    pub family: Family,
    /// The rule in a few words, as lists name it.
    pub title: &'static str,
    /// What goes wrong, and how the rule sees it.
    pub explanation: &'static str,
    /// What that does to the number.
    pub effect: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
    /// Where the pitfall is described or was met.
    pub source: &'static str,
    pub(crate) check: Check,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({} {})", self.id, self.title)
    }
}

impl Rule {
    /// Family, letter and number.
    pub(crate) fn order(&self) -> (Family, &'static str, Option<u32>) {
        let (letter, number) = self.id.split_at_checked(1).unwrap_or((self.id, ""));
        (self.family, letter, number.parse().ok())
    }

    pub(crate) fn apply(&self, case: &Case<'_>, ruling: &mut Ruling) {
        match self.check {
            Check::Rows(check) => {
                for row in case.evidence.rows {
                    // `None` only says that the row gave nothing more to see.
                    check(case, row, ruling).unwrap_or_default();
                }
            }
            Check::Whole(check) => check(case, ruling),
        }
    }
}
