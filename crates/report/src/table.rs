//! The content of the tables, as texts: the terminal and the HTML page print
//! the same ones.

pub(crate) mod arrangement;
mod results;

pub(crate) use results::{RepetitionRow, ResultCell, ResultTables, repetitions, results};

use crate::compute::accuracy::{Errors, accuracy, cell_error_percent, is_disputed};
use crate::compute::headline::class_title;
use crate::compute::standing::{Better, Standing, against_best};
use crate::compute::view::{Cell, Row, View};
use crate::data::RunData;
use crate::format::{figure, list, percentiles_ms, signed_percent_fine};
use raidlab_store::{Measurement, Role};
use serde::Serialize;

/// The mark of a cell that the model was fitted on.
pub(crate) const FITTED_MARK: &str = "†";

/// The mark of a published figure whose sources contradict each other.
pub(crate) const DISPUTED_MARK: &str = "‡";

/// The judgement that a figure's colour shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tone {
    /// The figure is the best of its row, or an error within the declared accuracy.
    Good,
    /// The figure is not highlighted.
    Plain,
    /// The figure is less than half of the best, or an error beyond the declared accuracy.
    Bad,
}

fn fitted_mark(cell: Cell<'_>) -> &'static str {
    if cell.m.role == Role::Fitted {
        FITTED_MARK
    } else {
        ""
    }
}

/// A row of a table: a job, with a cell for each subject.
#[derive(Debug, Serialize)]
pub(crate) struct JobRow<C> {
    pub label: String,
    pub title: String,
    pub unit: &'static str,
    pub cells: Vec<Option<C>>,
}

impl<C> JobRow<C> {
    fn new(row: &Row<'_>, cells: impl Iterator<Item = Option<C>>) -> Self {
        Self {
            label: row.label.clone(),
            title: row.head.job_title.clone(),
            unit: row.rate.unit(),
            cells: cells.collect(),
        }
    }

    /// The texts before the cells, for heads of these names.
    pub(crate) fn leading(&self, heads: &[&str]) -> Vec<&str> {
        let of = |head: &&str| match *head {
            "job" => &*self.label,
            "unit" => self.unit,
            _ => &self.title,
        };
        heads.iter().map(of).collect()
    }
}

/// A subject's median latency, its relation to the best median, and its slow end.
#[derive(Debug, Serialize)]
pub(crate) struct LatencyCell {
    pub median_ms: String,
    pub standing: String,
    /// The 99th percentile, milliseconds.
    pub p99_ms: String,
    /// Whether the audit struck out the job's figure.
    pub struck: bool,
    pub tone: Tone,
}

/// All rows whose latencies are known. Subjects are compared by less is better.
pub(crate) fn latencies(view: &View<'_>) -> Vec<JobRow<LatencyCell>> {
    fn known<'a>(cell: &Option<Cell<'a>>) -> Option<Cell<'a>> {
        cell.filter(|cell| cell.m.latency.max_ns > 0)
    }
    let row = |row: &Row<'_>| {
        let cells: Vec<_> = row.cells.iter().map(known).collect();
        let median = |cell: &Option<Cell<'_>>| {
            let cell = cell.filter(|cell| !cell.fatal)?;
            Some(cell.m.latency.p50_ns as f64)
        };
        let medians: Vec<_> = cells.iter().map(median).collect();
        let standings = against_best(&medians, Better::Less);
        let cells = cells.iter().zip(standings).map(|(cell, standing)| {
            // Some tools report only the slowest request.
            let told = |ms| if ms > 0.0 { figure(ms) } else { "-".to_owned() };
            let [median_ms, _, p99_ms, _] = percentiles_ms(&(*cell)?.m.latency);
            Some(LatencyCell {
                median_ms: told(median_ms),
                p99_ms: told(p99_ms),
                struck: cell.is_some_and(|cell| cell.fatal),
                standing: standing.map_or_else(|| "-".to_owned(), |standing| standing.to_string()),
                tone: match standing {
                    Some(Standing::Best) => Tone::Good,
                    Some(Standing::Percent(percent)) if percent > 100.0 => Tone::Bad,
                    _ => Tone::Plain,
                },
            })
        });
        // All figures are milliseconds, so rows have no unit.
        JobRow {
            unit: "",
            ..JobRow::new(row, cells)
        }
    };
    let rows = view
        .rows
        .iter()
        .filter(|row| row.cells.iter().any(|cell| known(cell).is_some()));
    rows.map(row).collect()
}

/// One cell's two figures and the error of ours against the published one.
#[derive(Debug, Serialize)]
pub(crate) struct PublishedCell {
    pub ours: String,
    pub mark: &'static str,
    pub published: String,
    pub published_mark: &'static str,
    /// `log: exact`, with the note where there is one.
    pub provenance: String,
    pub error: String,
    pub tone: Tone,
}

/// All rows with a published figure, with a cell for each subject of [`View::compared`].
pub(crate) fn published(data: &RunData, view: &View<'_>) -> Vec<JobRow<PublishedCell>> {
    let subjects = view.compared();
    if subjects.is_empty() {
        return Vec::new();
    }
    let has_figures = |row: &&Row<'_>| {
        let mut cells = row.cells.iter().flatten();
        cells.any(|cell| !cell.m.published.is_empty())
    };
    let row = |row: &Row<'_>| {
        let cell = |&subject: &usize| published_cell(data, row, row.cells[subject]?);
        JobRow::new(row, subjects.iter().map(cell))
    };
    let rows = view.rows.iter().filter(has_figures);
    rows.map(row).collect()
}

fn published_cell(data: &RunData, row: &Row<'_>, cell: Cell<'_>) -> Option<PublishedCell> {
    let first = cell.m.published.first()?;
    let percent = cell_error_percent(row, cell);
    let declared = declared_percent(data, cell.m);
    let mut provenance = format!("{}: {}", first.source, first.reliability);
    if !first.note.is_empty() {
        provenance.push_str("; ");
        provenance.push_str(&first.note);
    }
    Some(PublishedCell {
        ours: row.rate.words(cell.m, cell.value),
        mark: fitted_mark(cell),
        published: figure(row.rate.published(cell.m)?),
        published_mark: if is_disputed(cell) { DISPUTED_MARK } else { "" },
        provenance,
        error: percent.map_or_else(|| "-".to_owned(), signed_percent_fine),
        tone: match (percent, declared) {
            (Some(percent), Some(declared)) if percent.abs() > declared && !is_disputed(cell) => {
                Tone::Bad
            }
            _ => Tone::Plain,
        },
    })
}

/// The accuracy declared for a cell, percent either way: that of the first
/// note that names its class, subject and job.
pub(crate) fn declared_percent(data: &RunData, m: &Measurement) -> Option<f64> {
    let names = |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
    let mut notes = data.notes.iter().filter(|note| {
        note.class == m.class && names(&note.subjects, &m.subject) && names(&note.jobs, &m.job)
    });
    notes.find_map(|note| note.declared_percent)
}

/// A class's accuracy: what was fitted on what, and the declared and the actual errors per subject.
#[derive(Debug, Serialize)]
pub(crate) struct AccuracyRow {
    pub title: String,
    pub statements: Vec<String>,
    pub cells: Vec<AccuracyCell>,
}

/// One subject's accuracy in a class.
#[derive(Debug, Serialize)]
pub(crate) struct AccuracyCell {
    /// The declared accuracy, `±8 %`, `±25 to ±100 %`; empty where none is declared.
    pub declared: String,
    /// Whether an error is beyond the accuracy that is declared for its figure.
    pub exceeded: bool,
    /// The errors over predicted cells and, separately, over fitted ones.
    pub lines: Vec<AccuracyLine>,
}

impl AccuracyCell {
    /// What is declared, and whether errors keep to it, in words.
    pub(crate) fn declared_words(&self) -> Vec<String> {
        let declared = (!self.declared.is_empty()).then(|| format!("declared {}", self.declared));
        let exceeded = self.exceeded.then(|| "exceeded".to_owned());
        declared.into_iter().chain(exceeded).collect()
    }

    /// The judgement on all lines together.
    pub(crate) fn tone(&self) -> Tone {
        let mut good = self.lines.iter().filter(|line| line.tone == Tone::Good);
        match (self.exceeded, good.next()) {
            (true, _) => Tone::Bad,
            (false, Some(_)) => Tone::Good,
            (false, None) => Tone::Plain,
        }
    }
}

/// The errors over some cells.
#[derive(Debug, Serialize)]
pub(crate) struct AccuracyLine {
    pub mean: String,
    pub worst: String,
    pub mark: &'static str,
    pub tone: Tone,
}

/// All classes that have published figures or statements, with a cell for each
/// subject of [`View::compared`].
pub(crate) fn accuracy_rows(data: &RunData, view: &View<'_>) -> Vec<AccuracyRow> {
    let row = |class: &str| {
        let subjects = view.compared().into_iter();
        let cells: Vec<AccuracyCell> = subjects
            .map(|subject| accuracy_cell(data, view, class, subject))
            .collect();
        let statements = statements(data, class);
        let says = !statements.is_empty() || cells.iter().any(|cell| !cell.lines.is_empty());
        says.then(|| AccuracyRow {
            title: class_title(data, class),
            statements,
            cells,
        })
    };
    view.classes().into_iter().filter_map(row).collect()
}

/// The statements of a class's notes about the run's subjects, each once and with a full stop, with
/// the declared error that it explains, and the subjects and jobs that it is limited to.
fn statements(data: &RunData, class: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let is_here = |name: &&String| data.measurements.iter().any(|m| m.subject == **name);
    for note in data.notes.iter().filter(|note| note.class == class) {
        let mut limits: Vec<String> = note.subjects.iter().filter(is_here).cloned().collect();
        if note.statement.is_empty() || (limits.is_empty() && !note.subjects.is_empty()) {
            continue;
        }
        if !note.jobs.is_empty() {
            let jobs = if note.jobs.len() == 1 { "job" } else { "jobs" };
            limits.push(format!("{jobs} {}", list(&note.jobs)));
        }
        let mut statement = match note.declared_percent {
            Some(percent) => format!("Declared ±{percent}\u{a0}%"),
            None => String::new(),
        };
        if !limits.is_empty() {
            statement += if statement.is_empty() {
                "For "
            } else {
                " for "
            };
            statement += &limits.join(", ");
        }
        if !statement.is_empty() {
            statement += ": ";
        }
        statement += note.statement.trim_end();
        if !statement.ends_with(['.', '!', '?']) {
            statement.push('.');
        }
        if !all.contains(&statement) {
            all.push(statement);
        }
    }
    all
}

fn accuracy_cell(data: &RunData, view: &View<'_>, class: &str, subject: usize) -> AccuracyCell {
    let own = || {
        let cells = view.cells();
        cells.filter(move |(index, row, _)| *index == subject && row.head.class == class)
    };
    let declared = own().filter_map(|(_, _, cell)| declared_percent(data, cell.m));
    let range = declared.fold(None, |range, percent: f64| match range {
        None => Some((percent, percent)),
        Some((low, high)) => Some((percent.min(low), percent.max(high))),
    });
    let tone = |fitted: bool| {
        let mut tone = Tone::Plain;
        for (_, row, cell) in own().filter(|(_, _, cell)| !is_disputed(*cell)) {
            let percent = cell_error_percent(row, cell);
            let declared = declared_percent(data, cell.m);
            if let (Some(percent), Some(declared)) = (percent, declared)
                && (cell.m.role == Role::Fitted) == fitted
            {
                if percent.abs() > declared {
                    return Tone::Bad;
                }
                tone = Tone::Good;
            }
        }
        tone
    };
    let line = |errors: &Errors, mark, tone| AccuracyLine {
        mean: format!("{:.1}\u{a0}%", errors.mean_absolute_percent),
        worst: format!(
            "{} ({})",
            signed_percent_fine(errors.worst_percent),
            errors.worst_label
        ),
        mark,
        tone,
    };
    let found = accuracy(view, |name, index| name == class && index == subject);
    let predicted = found.predicted.iter().map(|e| line(e, "", tone(false)));
    let fitted = found
        .fitted
        .iter()
        .map(|e| line(e, FITTED_MARK, tone(true)));
    let lines: Vec<AccuracyLine> = predicted.chain(fitted).collect();
    AccuracyCell {
        exceeded: lines.iter().any(|line| line.tone == Tone::Bad),
        declared: match range {
            None => String::new(),
            Some((low, high)) if low < high => format!("±{low} to ±{high}\u{a0}%"),
            Some((low, _)) => format!("±{low}\u{a0}%"),
        },
        lines,
    }
}

#[cfg(test)]
mod tests {
    use super::{Tone, accuracy_rows, latencies};
    use crate::compute::view::View;
    use crate::sample;
    use raidlab_store::Latency;

    #[test]
    fn percentiles_that_nobody_told_are_not_zero() {
        let mut m = sample::cell("md", 0);
        m.latency = Latency {
            max_ns: 175_000_000,
            ..Latency::default()
        };
        let measurements = [m];
        let rows = latencies(&View::of_rows(&measurements));
        let cell = rows[0].cells[0].as_ref().unwrap();
        assert_eq!((cell.median_ms.as_str(), cell.p99_ms.as_str()), ("-", "-"));
    }

    /// Page, terminal and Markdown say which errors are beyond what was declared.
    #[test]
    fn an_error_beyond_what_is_declared_is_told_everywhere() {
        let mut data = sample::data();
        let rows = accuracy_rows(&data, &View::new(&data));
        let cells = || rows.iter().flat_map(|row| &row.cells);
        let bad = cells().filter(|cell| cell.tone() == Tone::Bad).count();
        assert!(bad > 0 && cells().any(|cell| cell.tone() == Tone::Good));
        assert_eq!(cells().filter(|cell| cell.exceeded).count(), bad);
        let told = |data: &crate::RunData| {
            let page = crate::html(data).expect("a page");
            let text = crate::terminal(data, &crate::Style::default());
            [page, text, crate::markdown(data)].map(|text| {
                let words = text.split("exceeded").count() - 1;
                // The page's note says what the word means.
                words - usize::from(text.contains("called exceeded"))
            })
        };
        let [page, text, markdown] = told(&data);
        assert_eq!((text, markdown), (bad, bad));
        assert!(page >= bad, "{page} of {bad}");
        for note in &mut data.notes {
            note.declared_percent = note.declared_percent.map(|_| 1e6);
        }
        assert_eq!(told(&data), [0, 0, 0]);
    }
}
