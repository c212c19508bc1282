//! A comparison on a terminal and in Markdown.

use super::{Answer, ComparedCell, ComparedRow, Difference, RunComparison};
use crate::markdown::{Alignment, MARK, escaped, table};
use crate::table::Tone;
use crate::terminal::Style;
use comfy_table::{Cell, CellAlignment};
use raidlab_units::{count, grouped};
use std::fmt::Write;

/// The number of differences up to which they are shown in full and unfolded.
const FEW_DIFFERENCES: usize = 20;

/// The kinds of differences that identify the runs; shown however many others there are.
const HEAD_KINDS: [&str; 2] = ["run", "tool"];

impl RunComparison {
    /// The comparison as text: each run's agreement with the base, where bounds were declared, and
    /// each row's verdict; the differences of the surroundings come last.
    #[must_use]
    pub fn text(&self, style: &Style) -> String {
        let mut text = String::new();
        for (place, run) in self.runs.iter().enumerate() {
            let role = if place == 0 { "base" } else { "against it" };
            let _ = writeln!(
                text,
                "{role}: {} ({}, {} bench)",
                run.name, run.title, run.bench
            );
        }
        for run in 1..self.runs.len() {
            if let Some(agreement) = self.agreements.get(run - 1) {
                agreement.text(&mut text, &self.runs[run].name, style);
            }
            self.verdicts_text(&mut text, run, style);
        }
        self.differences_text(&mut text, style);
        style.finish(text)
    }

    /// Writes the differences; of many only those of the runs' heads and tools.
    fn differences_text(&self, text: &mut String, style: &Style) {
        text.push_str("\nWhat differs\n");
        if self.differences.is_empty() {
            text.push_str("  nothing that was written down\n");
            return;
        }
        let folded = self.differences_are_many();
        let names: Vec<String> = self.runs.iter().map(|run| run.name.clone()).collect();
        let mut table = style.table(&["kind", "place", "name"], &names);
        let is_shown = |one: &&Difference| !folded || HEAD_KINDS.contains(&one.kind);
        let shown: Vec<&Difference> = self.differences.iter().filter(is_shown).collect();
        for one in &shown {
            let head = [one.kind, &one.place, &one.name].map(Cell::new);
            let values = one.values.iter().map(|value| {
                Cell::new(if value.is_empty() { "-" } else { value })
                    .set_alignment(CellAlignment::Right)
            });
            table.add_row(head.into_iter().chain(values).collect::<Vec<_>>());
        }
        if !shown.is_empty() {
            style.print(text, &mut table, 0..3);
        }
        if folded {
            let _ = writeln!(
                text,
                "{} in all; `--html FILE` and `--markdown FILE` have them",
                self.difference_counts()
            );
        }
    }

    /// Whether there are so many differences that they would hide the rest.
    pub(super) const fn differences_are_many(&self) -> bool {
        self.differences.len() > FEW_DIFFERENCES
    }

    /// The counts of differences, `run 4, tool 1, environment 870, setting 112`.
    pub(super) fn difference_counts(&self) -> String {
        let kinds = grouped(self.differences.iter().map(|one| (one.kind, one)));
        let words = kinds
            .iter()
            .map(|(kind, all)| format!("{kind} {}", all.len()));
        words.collect::<Vec<_>>().join(", ")
    }

    fn verdicts_text(&self, text: &mut String, run: usize, style: &Style) {
        let _ = writeln!(text, "\n{}: {}", self.runs[run].name, self.counts(run));
        let heads = ["base", "this", "change", "verdict"].map(str::to_owned);
        let mut table = style.table(&["job", "subject", "unit"], &heads);
        for row in &self.rows {
            let mut cells = [row.label.as_str(), &row.place, row.unit]
                .map(Cell::new)
                .to_vec();
            let figures = [0, run].map(|run| row.cells[run].as_ref());
            cells.extend(figures.map(|cell| {
                let content = cell.map_or_else(|| "-".to_owned(), figure_words);
                Cell::new(content).set_alignment(CellAlignment::Right)
            }));
            let (percent, words, tone) = verdict_words(row, run);
            cells.push(style.cell(percent, tone));
            cells.push(Cell::new(words));
            table.add_row(cells);
        }
        style.print(text, &mut table, 0..6);
        let _ = writeln!(text, "{}", self.correction);
    }

    /// The counts of a run's verdicts, `3 rows better, 1 worse, 2 the same, 4 cannot tell`.
    pub(super) fn counts(&self, run: usize) -> String {
        let own = &self.runs[run];
        format!(
            "{} better, {} worse, {} the same, {} cannot tell",
            count(own.better, "row", "rows"),
            own.worse,
            own.same,
            own.cannot_tell
        )
    }

    /// The comparison as tables of GitHub's Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!("{MARK}# Comparison\n\n");
        for (place, run) in self.runs.iter().enumerate() {
            let role = if place == 0 { "base" } else { "against it" };
            let name = escaped(&run.name);
            let _ = writeln!(
                text,
                "- {role}: **{name}** ({}, {} bench)",
                escaped(&run.title),
                escaped(&run.bench)
            );
        }
        for run in 1..self.runs.len() {
            let _ = writeln!(
                text,
                "\n## {}\n\n{}.\n",
                escaped(&self.runs[run].name),
                self.counts(run)
            );
            if let Some(agreement) = self.agreements.get(run - 1) {
                agreement.markdown(&mut text);
                text.push_str("\n### Row by row\n\n");
            }
            let heads = [
                "job", "subject", "unit", "base", "this", "change", "verdict",
            ]
            .map(str::to_owned);
            use Alignment::{Left, Right};
            let rows = self.rows.iter().map(|row| {
                let [base, this] = [0, run].map(|run| {
                    row.cells[run]
                        .as_ref()
                        .map_or_else(|| "-".to_owned(), figure_words)
                });
                let (percent, words, _) = verdict_words(row, run);
                vec![
                    row.label.clone(),
                    row.place.clone(),
                    row.unit.to_owned(),
                    base,
                    this,
                    percent,
                    words,
                ]
            });
            table(
                &mut text,
                &heads,
                &[Left, Left, Left, Right, Right, Right, Left],
                rows,
            );
            let _ = writeln!(text, "\n{}", self.correction);
        }
        self.differences_markdown(&mut text);
        text
    }

    /// Writes the differences; many are folded away.
    fn differences_markdown(&self, text: &mut String) {
        text.push_str("\n## What differs\n\n");
        if self.differences.is_empty() {
            text.push_str("Nothing that was written down.\n");
            return;
        }
        let folded = self.differences_are_many();
        if folded {
            let counts = self.difference_counts();
            let _ = writeln!(text, "<details><summary>{counts}</summary>\n");
        }
        let mut heads = vec!["kind".to_owned(), "place".to_owned(), "name".to_owned()];
        heads.extend(self.runs.iter().map(|run| run.name.clone()));
        let rows = self.differences.iter().map(|one| {
            let head = [one.kind.to_owned(), one.place.clone(), one.name.clone()];
            head.into_iter().chain(one.values.iter().cloned()).collect()
        });
        table(text, &heads, &[Alignment::Left], rows);
        if folded {
            text.push_str("\n</details>\n");
        }
    }
}

/// A figure with its number of repetitions and its marks.
fn figure_words(cell: &ComparedCell) -> String {
    let mut words = cell.text.clone();
    if cell.repetitions > 1 {
        let _ = write!(words, " (n {})", cell.repetitions);
    }
    for mark in &cell.marks {
        let _ = write!(words, " {mark}");
    }
    words
}

/// The change, the verdict, and its tone.
fn verdict_words(row: &ComparedRow, run: usize) -> (String, String, Tone) {
    // Of several runs only this one and the base decide.
    let both = [0, run].map(|run| row.cells[run].as_ref());
    let any = |holds: fn(&ComparedCell) -> bool| both.iter().flatten().any(|cell| holds(cell));
    let (struck, goes_on) = (any(|cell| cell.struck), any(|cell| cell.at_least));
    match row.cells[run]
        .as_ref()
        .and_then(|cell| cell.verdict.as_ref())
    {
        Some(verdict) => {
            let tone = match verdict.answer {
                Answer::Better => Tone::Good,
                Answer::Worse => Tone::Bad,
                Answer::Same | Answer::CannotTell => Tone::Plain,
            };
            (verdict.percent.clone(), verdict.words.clone(), tone)
        }
        // Neither a time nor the audit's judgement counts where the other run lacks the row.
        None if both.iter().any(Option::is_none) => {
            (String::new(), "not in both runs".to_owned(), Tone::Plain)
        }
        None if struck => (
            String::new(),
            "struck out by the audit".to_owned(),
            Tone::Plain,
        ),
        None if goes_on => (String::new(), "had not ended".to_owned(), Tone::Plain),
        None => (
            String::new(),
            "a figure is 0 or not known".to_owned(),
            Tone::Plain,
        ),
    }
}
