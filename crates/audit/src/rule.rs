//! The form of a rule: its texts, and the function that checks it.

use crate::case::Case;
use crate::finding::Ruling;
use raidlab_store::Measurement;
use std::fmt;

/// The way in which a rule goes over the evidence.
#[derive(Clone, Copy)]
pub(crate) enum Check {
    /// A function called row by row; it returns early where a fact is missing.
    Rows(fn(&Case<'_>, &Measurement, &mut Ruling) -> Option<()>),
    /// A function that judges the run as a whole, in one call.
    Whole(fn(&Case<'_>, &mut Ruling)),
}

/// One way in which a benchmark goes wrong, as the page `docs/reference/audit.md` has it.
pub struct Rule {
    /// The rule's identifier, a letter for the family and a number: `C12`.
    pub id: &'static str,
    /// The rule in a few words, as lists name it.
    pub title: &'static str,
    /// The mistake, and the way in which the rule recognizes it.
    pub explanation: &'static str,
    /// The effect on the measured number.
    pub effect: &'static str,
    /// The remedy for the mistake.
    pub remedy: &'static str,
    /// The source that describes the pitfall, or where it was met.
    pub source: &'static str,
    pub(crate) check: Check,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({} {})", self.id, self.title)
    }
}

impl Rule {
    /// The rule in a row of the page's tables, whose columns are those of a rule; `None` for a line
    /// that is no such row, or whose rule has no check.
    pub(crate) fn of_line(line: &'static str, checks: &[(&str, Check)]) -> Option<Self> {
        let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let columns: Vec<&str> = row.split(" | ").collect();
        let [id, title, explanation, effect, remedy, source] = columns.try_into().ok()?;
        let (_, check) = checks.iter().find(|(checked, _)| *checked == id)?;
        Some(Self {
            id,
            title,
            explanation,
            effect,
            remedy,
            source,
            check: *check,
        })
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
