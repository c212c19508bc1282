//! Messages about a run that did not finish: how many rows are kept, and the commands that show
//! them and that resume the run.

use crate::failure::{Failure, Kind};
use crate::prepared::Prepared;
use crate::typed;
use raidlab_lab::{BenchError, RunEnd};
use raidlab_store::Shard;
use raidlab_store::text::visible_path;
use raidlab_units::count;
use std::path::Path;

/// The facts for messages about a run that did not finish.
pub struct Kept<'a> {
    pub run: &'a str,
    pub store: &'a Path,
    /// The shard, if the run is only that part.
    pub shard: Option<Shard>,
    /// The number of rows that were planned, where that was known.
    pub planned: Option<usize>,
    /// The number of the run's rows in the store.
    pub rows: usize,
    /// Whether the run was resumed; such a run is kept without a row too.
    pub begun_before: bool,
    /// Whether an experiment ended since the run, or its shard, was last started.
    pub advanced: bool,
}

impl Kept<'_> {
    /// The failure where the user stopped the run.
    pub fn interrupted(&self) -> Failure {
        if let Some(shard) = self.shard {
            let words = format!(
                "shard {shard} was stopped before its end; what it has finished is kept in {}",
                visible_path(self.store)
            );
            let help = match self.advanced {
                true => "start it again with the same command; it goes on",
                // A scheduler would start it again for ever.
                false => {
                    "none of its experiments came to its end this time: give it longer, and start it again"
                }
            };
            return Failure::words(Kind::StartAgain, words).help(help);
        }
        if self.rows == 0 && !self.begun_before {
            return Failure::words(
                Kind::Interrupted,
                "interrupted before anything was measured; nothing was kept",
            );
        }
        let words = format!(
            "interrupted; {} kept in {} as run {}",
            kept_words(self.rows, self.planned),
            visible_path(self.store),
            self.run
        );
        let help = format!("{}; `{}` goes on", self.help(), self.again());
        Failure::words(Kind::Interrupted, words).help(help)
    }

    /// The failure of the first experiment that failed, if one did; the others are remarks
    /// of the run.
    pub fn failed(&self, end: RunEnd, prepared: &Prepared) -> Option<Failure> {
        let failures = end.failures.len();
        let (index, source) = end.failures.into_iter().next()?;
        let experiment = prepared.label(index);
        // The experiments of other shards were not begun here.
        let of_all = match self.shard {
            Some(shard) => {
                let failures = count(failures, "experiment", "experiments");
                format!("{failures} of shard {shard}")
            }
            None => format!("{failures} of {} experiments", prepared.experiments.len()),
        };
        let help = format!(
            "{of_all} failed, {} kept; {}; `{}` tries again",
            kept_words(self.rows, self.planned),
            self.help(),
            self.again()
        );
        Some(Failure::new(Kind::Run, ExperimentFailed { experiment, source }).help(help))
    }

    /// The failure where the run's results could no longer be kept or shown.
    pub fn broken_off(&self, failure: Failure) -> Failure {
        failure.help(format!(
            "{} kept; {}; once that is mended, `{}` goes on",
            kept_words(self.rows, self.planned),
            self.help(),
            self.again()
        ))
    }

    fn help(&self) -> String {
        format!("`{}` shows them", see(self.run, self.store))
    }

    fn again(&self) -> String {
        match self.shard {
            Some(_) => typed::command_line(),
            None => go_on(self.run, self.store),
        }
    }
}

/// The number of kept rows in words: `3 of 12 rows are`; without a known plan, `3 rows are`.
fn kept_words(rows: usize, planned: Option<usize>) -> String {
    match planned {
        Some(planned) => format!("{rows} of {planned} rows are"),
        None if rows == 1 => "1 row is".to_owned(),
        None => format!("{rows} rows are"),
    }
}

/// The error of an experiment that ended early.
#[derive(Debug, thiserror::Error)]
#[error("{experiment} failed")]
struct ExperimentFailed {
    experiment: String,
    #[source]
    source: BenchError,
}

/// The command that shows a run. A run's name has that of its suite in it, which may be any text.
#[must_use]
pub fn see(run: &str, store: &Path) -> String {
    let run = typed::in_shell(run.as_ref());
    typed::on_store(&format!("raidlab report {run}"), store)
}

/// The command that resumes a run.
#[must_use]
pub fn go_on(run: &str, store: &Path) -> String {
    let run = typed::in_shell(run.as_ref());
    typed::on_store(&format!("raidlab resume {run}"), store)
}

#[cfg(test)]
mod tests {
    use super::{go_on, kept_words, see};
    use std::path::Path;

    /// A suite's name is a stranger's where the suite is.
    #[test]
    fn what_is_to_be_typed_runs_nothing_else() {
        let run = "20261121T021000Z-my $(touch x) suite";
        let usual = Path::new("raidlab.db");
        assert_eq!(see(run, usual), format!("raidlab report '{run}'"));
        let other = Path::new("a b.db");
        assert_eq!(
            go_on(run, other),
            format!("raidlab resume '{run}' --store 'a b.db'")
        );
    }

    #[test]
    fn rows_are_counted_against_a_plan_where_there_is_one() {
        assert_eq!(kept_words(3, Some(12)), "3 of 12 rows are");
        assert_eq!(kept_words(56, None), "56 rows are");
        assert_eq!(kept_words(1, None), "1 row is");
    }
}
