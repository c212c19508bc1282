//! What a rule is.

use crate::case::Case;
use crate::finding::Ruling;
use raidlab_store::Measurement;
use std::fmt;

/// How a rule goes over the evidence.
#[derive(Clone, Copy)]
pub(crate) enum Check {
    /// Row by row; returns early where a fact is missing.
    Rows(fn(&Case<'_>, &Measurement, &mut Ruling) -> Option<()>),
    /// Judges the run as a whole, in one call.
    Whole(fn(&Case<'_>, &mut Ruling)),
}

/// One way in which a benchmark goes wrong, as the page `docs/reference/audit.md` has it.
pub struct Rule {
    /// Its identifier: a letter for the family and a number: `C12`.
    pub id: &'static str,
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
    /// A row of the page's tables, whose columns are those of a rule; `None` for a line that is
    /// none of them, or whose rule has no check.
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
