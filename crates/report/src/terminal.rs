//! The tables on a terminal.
//!
//! Figures are never broken: where a width is given and the subjects do not all fit beside each
//! other, they become rows, with jobs as columns, or are printed in groups, one table each.
//! Percents always compare with the best of all subjects.

mod grid;
mod room;

use crate::compute::findings::{Mark, audit_notes, groups, sign};
use crate::compute::headline::verdicts;
use crate::compute::rate::unit_names;
use crate::compute::trust::{trust, what_ran};
use crate::compute::view::View;
use crate::data::RunData;
use crate::table::arrangement::Extent;
use crate::table::{self, DISPUTED_MARK, FITTED_MARK, JobRow, PublishedCell, ResultCell, Tone};
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, TableStyle,
    presets,
};
use grid::Grid;
use raidlab_store::Severity;
use raidlab_units::count;
use std::fmt::Write;

/// The style of printed tables: width, colours and characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// The width in characters; `None` prints rows as long as they are.
    pub width: Option<u16>,
    /// Whether to use colours, which only a terminal shows; the caller decides.
    pub colour: bool,
    /// Whether to use ASCII only: no rules, no gaps between thousands, `*` and `#` for † and ‡.
    pub plain: bool,
}

/// The characters for the job's name, its title and its unit.
const LEADING_WIDTH: usize = 40;

/// Summary, results, findings, comparison with published figures, and accuracy; parts without
/// content are left out.
#[must_use]
pub fn terminal(data: &RunData, style: &Style) -> String {
    let parts = [
        summary(data, style),
        result_tables(data, style),
        findings(data, style),
        published_table(data, style),
        accuracy_table(data, style),
    ];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n")
}

/// A summary: what was run, which subject is best at what, and how far to trust it.
#[must_use]
pub fn summary(data: &RunData, style: &Style) -> String {
    let view = View::new(data);
    let mut text = String::new();
    wrapped(&mut text, &data.run.suite_title, style);
    wrapped(&mut text, &what_ran(data, &view), style);
    let found = verdicts(data, &view);
    if !found.is_empty() {
        text.push('\n');
    }
    for verdict in found {
        let winner = verdict.winner(&view.names);
        let reason = verdict.reason(&view.names);
        let line = format!("  {}: {winner} ({reason})", verdict.title);
        wrapped(&mut text, &line, style);
        let certainty = verdict.certainty(&view.names);
        if !certainty.is_empty() {
            wrapped(&mut text, &format!("    {certainty}"), style);
        }
    }
    if view.all_rows().next().is_some() {
        text.push('\n');
        wrapped(&mut text, &trust(data, &view).join(" "), style);
    }
    style.finish(text)
}

/// The article's table: a row per job, a column per subject, with the percent
/// against the best; jobs during a resync in a second table with its progress.
#[must_use]
pub fn result_tables(data: &RunData, style: &Style) -> String {
    let view = View::new(data);
    let tables = table::results(data, &view);
    let named = view.names.iter().zip(&tables.column_marks);
    let heads: Vec<String> = named.map(|(name, marks)| head_words(name, marks)).collect();
    let mut text = String::new();
    if !tables.steady.is_empty() {
        let units = unit_names(view.main_rows().map(|row| row.rate));
        let head =
            format!("Results ({units}, more is better; percent against the best of the row)");
        wrapped(&mut text, &head, style);
        results(&mut text, &heads, &tables.steady, false, style);
    }
    if !tables.syncing.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        let head =
            "During a sync (more is better; percent against the best; sync at the job's start)";
        wrapped(&mut text, head, style);
        results(&mut text, &heads, &tables.syncing, true, style);
    }
    if !tables.background.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(
            "In the background (s: less is better; MB/s of each member, % kept by jobs: more is \
             better)\n",
        );
        results(&mut text, &heads, &tables.background, false, style);
    }
    let in_matrices = view.cells().filter(|(_, row, _)| row.in_matrix).count();
    if in_matrices > 0 {
        let figures = count(in_matrices, "figure", "figures");
        let _ = writeln!(
            text,
            "{figures} in tables of many sizes are on the page and in Markdown."
        );
    }
    legend(&mut text);
    style.finish(text)
}

fn results(
    text: &mut String,
    subjects: &[String],
    rows: &[JobRow<ResultCell>],
    sync: bool,
    style: &Style,
) {
    let grid = Grid {
        leading: &["job", "title", "unit"],
        leading_width: LEADING_WIDTH,
        least: if sync { 25 } else { 19 },
        subjects,
    };
    let words = |cell: &ResultCell| (result_words(cell, sync), cell.tone);
    grid.print(rows, words, text, style);
}

/// A column's name with the warnings that apply to all its figures.
fn head_words(name: &str, marks: &[Mark]) -> String {
    let marks = marks
        .iter()
        .map(|mark| format!(" {}{}", mark.sign, mark.rule));
    std::iter::once(name.to_owned()).chain(marks).collect()
}

/// A figure with its interval, its relation to the best, the sync's progress and its marks.
fn result_words(cell: &ResultCell, sync: bool) -> String {
    let mut words = cell.value.clone();
    if !cell.half_width.is_empty() {
        let _ = write!(words, " {:>7}", cell.half_width);
    }
    let standing = if cell.struck {
        "struck"
    } else {
        &cell.standing
    };
    let _ = write!(words, "{:1} {standing:>6}", cell.mark);
    if sync {
        let _ = write!(words, " {:>5}", cell.sync);
    }
    for mark in &cell.marks {
        let _ = write!(words, " {}{}", mark.sign, mark.rule);
    }
    words
}

/// The audit's findings: each rule with its title and the cells concerned.
#[must_use]
pub fn findings(data: &RunData, style: &Style) -> String {
    let view = View::new(data);
    let groups = groups(&data.findings, &view);
    let notes = audit_notes(&data.notes);
    if groups.is_empty() && notes.is_empty() {
        return String::new();
    }
    let mut text = "Audit (struck: fatal, the figure does not say what it seems to)\n".to_owned();
    for group in &groups {
        let line = format!(
            "  {} {} {}: {}",
            group.sign, group.rule, group.title, group.cells
        );
        wrapped(&mut text, &line, style);
    }
    for note in notes {
        wrapped(&mut text, &format!("  {note}"), style);
    }
    style.finish(text)
}

/// Published figures beside ours, with our error.
#[must_use]
pub fn published_table(data: &RunData, style: &Style) -> String {
    let view = View::new(data);
    let rows = table::published(data, &view);
    if rows.is_empty() {
        return String::new();
    }
    let mut text = "Published, ours, and the error of ours (percent of the published)\n".to_owned();
    let grid = Grid {
        leading: &["job", "unit"],
        leading_width: 20,
        least: 30,
        subjects: &view.compared_names(),
    };
    let words = |cell: &PublishedCell| {
        let words = format!(
            "{}{:1} {:>8}{:1} {:>8}",
            cell.published, cell.published_mark, cell.ours, cell.mark, cell.error
        );
        (words, cell.tone)
    };
    grid.print(&rows, words, &mut text, style);
    legend(&mut text);
    style.finish(text)
}

/// Per class: each subject's mean and worst error and what is declared for it,
/// then what was fitted on what.
#[must_use]
pub fn accuracy_table(data: &RunData, style: &Style) -> String {
    let view = View::new(data);
    let rows = table::accuracy_rows(data, &view);
    if rows.is_empty() {
        return String::new();
    }
    let names = view.compared_names();
    let mut text =
        "Accuracy (mean absolute error, the worst with its job, what is declared)\n".to_owned();
    let extent = Extent {
        leading: 24,
        cell: 25,
        cells: names.len(),
    };
    for group in extent.groups(style.width.map(usize::from)) {
        let mut table = style.table(&["class"], &names[group.clone()]);
        for row in &rows {
            let mut cells = vec![Cell::new(&row.title)];
            cells.extend(row.cells[group.clone()].iter().map(|cell| {
                let lines = cell.lines.iter();
                let mut texts: Vec<String> = lines
                    .map(|line| format!("{}{:1} {}", line.mean, line.mark, line.worst))
                    .collect();
                texts.extend(cell.declared_words());
                style.cell(texts.join("\n"), cell.tone())
            }));
            table.add_row(cells);
        }
        style.print(&mut text, &mut table, 1..usize::MAX);
    }
    text.push_str("What was fitted on what\n");
    for row in rows.iter().filter(|row| !row.statements.is_empty()) {
        let line = format!("  {}: {}", row.title, row.statements.join(" "));
        wrapped(&mut text, &line, style);
    }
    legend(&mut text);
    style.finish(text)
}

fn missing() -> Cell {
    Cell::new("-").set_alignment(CellAlignment::Right)
}

/// Explains the marks that `text` uses.
fn legend(text: &mut String) {
    let uses = |mark| text.contains(mark);
    let (fitted, disputed) = (uses(FITTED_MARK), uses(DISPUTED_MARK));
    if fitted {
        let _ = writeln!(text, "{FITTED_MARK} the model was fitted on this cell");
    }
    if disputed {
        let _ = writeln!(
            text,
            "{DISPUTED_MARK} sources contradict each other on this figure"
        );
    }
}

/// Appends `line` wrapped at spaces to the style's width.
fn wrapped(text: &mut String, line: &str, style: &Style) {
    let width = usize::from(style.width.unwrap_or(u16::MAX));
    let indent = line.len() - line.trim_start().len();
    let mut used = indent;
    text.push_str(&" ".repeat(indent));
    for (position, word) in line.split_whitespace().enumerate() {
        let length = word.chars().count();
        if position > 0 && used + 1 + length > width {
            let _ = write!(text, "\n{}", " ".repeat(indent * 2));
            used = indent * 2;
        } else if position > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += length;
    }
    text.push('\n');
}

impl Style {
    pub(crate) fn table(&self, leading: &[&str], subjects: &[String]) -> Table {
        let mut table = Table::new();
        table.load_style(if self.plain {
            presets::NOTHING
        } else {
            TableStyle::new()
                .header_separator(LineStyle::none().fill('─').junction('─'))
                .bottom_border(LineStyle::none().fill('─').junction('─'))
        });
        if self.colour {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        match self.width {
            Some(width) => table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        let left = leading
            .iter()
            .map(|name| self.head(name, CellAlignment::Left));
        let right = subjects
            .iter()
            .map(|name| self.head(name, CellAlignment::Right));
        table.set_header(left.chain(right).collect::<Vec<_>>());
        table
    }

    fn head(&self, name: &str, alignment: CellAlignment) -> Cell {
        let cell = Cell::new(name).set_alignment(alignment);
        if self.colour {
            cell.add_attribute(Attribute::Bold)
        } else {
            cell
        }
    }

    pub(crate) fn cell(&self, content: String, tone: Tone) -> Cell {
        let cell = Cell::new(content).set_alignment(CellAlignment::Right);
        match (self.colour, tone) {
            (true, Tone::Good) => cell.fg(Color::Green),
            (true, Tone::Bad) => cell.fg(Color::Red),
            _ => cell,
        }
    }

    pub(crate) fn finish(&self, text: String) -> String {
        if !self.plain {
            return text;
        }
        text.replace('\u{a0}', "")
            .replace(FITTED_MARK, "*")
            .replace(DISPUTED_MARK, "#")
            .replace('±', "+-")
            .replace(sign(Severity::Fatal), "x")
            .replace(sign(Severity::Warning), "!")
            .replace(sign(Severity::Note), "-")
            .replace('≠', "!=")
            .replace('…', "..")
    }
}

#[cfg(test)]
mod tests {
    use super::{Style, terminal};
    use crate::sample;

    #[test]
    fn wide() {
        let style = Style {
            width: Some(160),
            ..Style::default()
        };
        insta::assert_snapshot!(terminal(&sample::data(), &style));
    }

    #[test]
    fn real_machines() {
        let style = Style {
            width: Some(160),
            ..Style::default()
        };
        insta::assert_snapshot!(terminal(&sample::bench(), &style));
    }

    #[test]
    fn narrow_tables_keep_their_figures_whole_and_fit() {
        let style = Style {
            width: Some(80),
            ..Style::default()
        };
        let text = terminal(&sample::data(), &style);
        for line in [&text, &terminal(&sample::bench(), &style)]
            .into_iter()
            .flat_map(|text| text.lines())
        {
            assert!(line.chars().count() <= 80, "{line}");
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn plain_text_is_ascii() {
        let style = Style {
            width: None,
            colour: false,
            plain: true,
        };
        let bench = terminal(&sample::bench(), &style);
        assert!(bench.is_ascii(), "{bench}");
        let text = terminal(&sample::data(), &style);
        assert!(text.is_ascii(), "{text}");
        insta::assert_snapshot!(text);
        let mut data = sample::data();
        data.measurements[0].iops = 100.0;
        data.measurements[0].disk_band = Some(raidlab_store::DiskBand {
            low: 0.5,
            high: 1.25,
            ratio: 1.1,
        });
        let text = terminal(&data, &style);
        assert!(text.is_ascii(), "{text}");
        assert!(text.contains("100.0 (50.0..125.0)"), "{text}");
    }

    #[test]
    fn colour_is_the_callers_choice() {
        let mut style = Style::default();
        assert!(!terminal(&sample::data(), &style).contains('\u{1b}'));
        style.colour = true;
        assert!(terminal(&sample::data(), &style).contains("\u{1b}["));
    }

    #[test]
    fn an_empty_run_says_so_and_prints_no_table() {
        let mut data = sample::data();
        data.measurements.clear();
        data.notes.clear();
        insta::assert_snapshot!(terminal(&data, &Style::default()), @r"
        Two-way mirrors of 4 TB disks (2015)
        Nothing was measured on the model bench.
        ");
    }
}
