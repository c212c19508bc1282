//! A report as GitHub's Markdown: for issues, wikis and mail.

mod arranged;

use crate::compute::environment::{asked_rows, command_groups, fact_tables, tools};
use crate::compute::findings::{audit_notes, groups};
use crate::compute::headline::verdicts;
use crate::compute::matrix::matrices;
use crate::compute::rate::units_note;
use crate::compute::trust::{trust, what_ran};
use crate::compute::view::View;
use crate::data::RunData;
use crate::table::{self, DISPUTED_MARK, FITTED_MARK, LatencyCell, PublishedCell, ResultCell};
use arranged::arranged;
use std::fmt::Write;

/// The first line, by which raidlab recognizes its own files and may replace them.
pub(crate) const MARK: &str = "<!-- written by raidlab -->\n";

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alignment {
    Left,
    Right,
}

/// The whole report but its charts: the answer, the tables, the audit's findings, environment,
/// settings, and commands that failed.
#[must_use]
pub fn markdown(data: &RunData) -> String {
    let view = View::new(data);
    let mut text = format!(
        "{MARK}# {}\n\n{}\n",
        escaped(&data.run.suite_title),
        escaped(&what_ran(data, &view))
    );
    answer(&mut text, data, &view);
    results(&mut text, data, &view);
    findings(&mut text, data, &view);
    published(&mut text, data, &view);
    latencies(&mut text, &view);
    surroundings(&mut text, data, &view);
    commands(&mut text, data, &view);
    let _ = write!(
        text,
        "\n## Repeat it\n\n```\n{}\n```\n",
        data.run.command_line.replace("```", "")
    );
    text
}

/// Escapes text, so that GitHub's Markdown finds no marks, tags, cells, links, mentions or formulas
/// in it, and no heading or list item.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut plain = String::new();
    let mut begins = true;
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => plain.push(' '),
            '<' => plain.push_str("&lt;"),
            '&' => plain.push_str("&amp;"),
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' | '~' | '$' | '!' => {
                plain.push('\\');
                plain.push(letter);
            }
            '-' | '+' | '=' | '>' if begins => {
                plain.push('\\');
                plain.push(letter);
            }
            // GitHub looks for an address or a user after these; an empty comment prevents that.
            '@' => plain.push_str("@<!-- -->"),
            _ => plain.push(letter),
        }
        begins &= letter.is_whitespace();
    }
    plain
        .replace("://", ":<!-- -->//")
        .replace("www.", "www<!-- -->.")
}

/// Writes a table; the last alignment is used for the remaining columns. Cells are escaped here.
pub(crate) fn table(
    text: &mut String,
    heads: &[String],
    alignments: &[Alignment],
    rows: impl Iterator<Item = Vec<String>>,
) {
    let cells: Vec<Vec<String>> = rows
        .map(|row| row.iter().map(|cell| escaped(cell)).collect())
        .collect();
    let heads: Vec<String> = heads.iter().map(|head| escaped(head)).collect();
    raw_table(text, &heads, alignments, &cells);
}

/// Writes a table of cells that are Markdown already.
fn raw_table(text: &mut String, heads: &[String], alignments: &[Alignment], rows: &[Vec<String>]) {
    let _ = writeln!(text, "| {} |", heads.join(" | "));
    let last = alignments.last().copied().unwrap_or(Alignment::Left);
    for place in 0..heads.len() {
        text.push_str(match alignments.get(place).unwrap_or(&last) {
            Alignment::Left => "| --- ",
            Alignment::Right => "| ---: ",
        });
    }
    text.push_str("|\n");
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
}

fn answer(text: &mut String, data: &RunData, view: &View<'_>) {
    let found = verdicts(data, view);
    if !found.is_empty() {
        text.push_str("\n## The answer\n\n");
    }
    for verdict in found {
        let certainty = verdict.certainty(&view.names);
        let certainty = if certainty.is_empty() {
            certainty
        } else {
            format!(" {}", escaped(&certainty))
        };
        let _ = writeln!(
            text,
            "- {}: **{}** ({}).{certainty}",
            escaped(&verdict.title),
            escaped(&verdict.winner(&view.names)),
            escaped(&verdict.reason(&view.names))
        );
    }
    if view.all_rows().next().is_some() {
        let _ = writeln!(text, "\n{}", escaped(&trust(data, view).join(" ")));
    }
}

fn results(text: &mut String, data: &RunData, view: &View<'_>) {
    if view.all_rows().next().is_none() {
        return;
    }
    let rates: Vec<_> = view.all_rows().map(|row| row.rate).collect();
    let note = escaped(&units_note(&rates));
    let _ = writeln!(
        text,
        "\n## Results\n\n{note} In brackets: percent against the best of the row."
    );
    let tables = table::results(data, view);
    for (title, rows) in [
        ("Without a sync", &tables.steady),
        ("During a sync", &tables.syncing),
        ("In the background", &tables.background),
    ] {
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n### {title}\n");
        let named = view.names.iter().zip(&tables.column_marks);
        let subjects = named.map(|(name, marks)| {
            let marks = marks
                .iter()
                .map(|mark| format!(" {} {}", mark.sign, mark.rule));
            std::iter::once(name.clone()).chain(marks).collect()
        });
        let (heads, subjects) = (
            ["job", "what it does", "unit"],
            subjects.collect::<Vec<_>>(),
        );
        arranged(text, &heads, &subjects, rows, result_cell);
    }
    for matrix in matrices(view) {
        let _ = writeln!(text, "\n### {}, {}\n", escaped(&matrix.title), matrix.unit);
        let mut heads = vec!["file".to_owned()];
        heads.extend(matrix.across.iter().map(|head| escaped(head)));
        let rows: Vec<Vec<String>> = matrix
            .rows
            .iter()
            .map(|row| {
                let cells = row.cells.iter().map(|cell| match cell {
                    None => String::new(),
                    Some(cell) if cell.struck => format!("~~{}~~", cell.value),
                    Some(cell) if cell.best => format!("**{}**", cell.value),
                    Some(cell) => cell.value.clone(),
                });
                std::iter::once(escaped(&row.head)).chain(cells).collect()
            })
            .collect();
        raw_table(text, &heads, &[Alignment::Left, Alignment::Right], &rows);
    }
    for (mark, words) in [
        (FITTED_MARK, "the model was fitted on this cell"),
        ("~~", "struck out by the audit"),
    ] {
        if text.contains(mark) {
            let _ = writeln!(text, "\n{}: {words}", escaped(mark));
        }
    }
}

fn result_cell(cell: &ResultCell) -> String {
    let mut words = match (cell.struck, cell.standing.as_str()) {
        (true, _) => format!("~~{}~~", cell.value),
        (false, "best") => format!("**{}**{} (best)", cell.value, cell.mark),
        (false, standing) => format!("{}{} ({standing})", cell.value, cell.mark),
    };
    for (more, before) in [
        (&cell.half_width, ""),
        (&cell.of_disks, "of disks "),
        (&cell.sync, "synced "),
    ] {
        if !more.is_empty() {
            let _ = write!(words, " {before}{more}");
        }
    }
    for mark in &cell.marks {
        let _ = write!(words, " {} {}", mark.sign, escaped(&mark.rule));
    }
    words
}

fn findings(text: &mut String, data: &RunData, view: &View<'_>) {
    let found = groups(&data.findings, view);
    let notes = audit_notes(&data.notes);
    if found.is_empty() && notes.is_empty() {
        return;
    }
    text.push_str("\n## What the audit found\n\n");
    for note in notes {
        let _ = writeln!(text, "{}\n", escaped(note));
    }
    for group in found {
        let _ = writeln!(
            text,
            "- {} **{}** {} ({})",
            group.sign,
            escaped(group.rule),
            escaped(group.title),
            group.severity_name
        );
        for (head, all) in [("Effect", &group.effects), ("Remedy", &group.remedies)] {
            for one in all {
                let _ = writeln!(text, "  - {head}: {}", escaped(one));
            }
        }
        for case in &group.cases {
            let _ = writeln!(
                text,
                "  - {}: {}",
                escaped(&case.cells),
                escaped(case.evidence)
            );
        }
    }
}

fn published(text: &mut String, data: &RunData, view: &View<'_>) {
    let rows = table::published(data, view);
    if !rows.is_empty() {
        text.push_str("\n## Published, ours, and the error of ours\n\n");
        let words = |cell: &PublishedCell| {
            escaped(&format!(
                "{}{}, {}{}, {}",
                cell.published, cell.published_mark, cell.ours, cell.mark, cell.error
            ))
        };
        let names = view.compared_names();
        arranged(text, &["job", "unit"], &names, &rows, words);
        let mut cells = rows.iter().flat_map(|row| row.cells.iter().flatten());
        if cells.any(|cell| !cell.published_mark.is_empty()) {
            let _ = writeln!(
                text,
                "\n{DISPUTED_MARK}: sources contradict each other on this figure"
            );
        }
    }
    let rows = table::accuracy_rows(data, view);
    if rows.is_empty() {
        return;
    }
    text.push_str("\n## Accuracy\n\nThe mean of the absolute errors, the worst with its job, what is declared, and whether an error is beyond it.\n\n");
    let mut heads = vec!["class".to_owned()];
    heads.extend(view.compared_names());
    let cells = rows.iter().map(|row| {
        let cells = row.cells.iter().map(|cell| {
            let lines = cell
                .lines
                .iter()
                .map(|line| format!("{}{} worst {}", line.mean, line.mark, line.worst));
            let words = lines.chain(cell.declared_words());
            words.collect::<Vec<_>>().join("; ")
        });
        std::iter::once(row.title.clone()).chain(cells).collect()
    });
    self::table(text, &heads, &[Alignment::Left], cells);
    for row in rows.iter().filter(|row| !row.statements.is_empty()) {
        let _ = write!(
            text,
            "\n- {}: {}",
            escaped(&row.title),
            escaped(&row.statements.join(" "))
        );
    }
    text.push('\n');
}

fn latencies(text: &mut String, view: &View<'_>) {
    let rows = table::latencies(view);
    if rows.is_empty() {
        return;
    }
    text.push_str("\n## Latencies\n\nMilliseconds, less is better: the median, its distance to the best of the row, the 99th percentile.\n\n");
    let words = |cell: &LatencyCell| {
        escaped(&format!(
            "{} ({}), {}",
            cell.median_ms, cell.standing, cell.p99_ms
        ))
    };
    arranged(text, &["job"], &view.names, &rows, words);
}

fn surroundings(text: &mut String, data: &RunData, view: &View<'_>) {
    let (tools, facts) = (tools(data), fact_tables(data, view));
    if !tools.is_empty() || !facts.is_empty() {
        text.push_str("\n## Environment\n");
    }
    if !tools.is_empty() {
        let _ = writeln!(text, "\nMeasured with {}.", escaped(&tools.join(", ")));
    }
    for one in facts {
        let _ = writeln!(text, "\n### {}\n", one.title);
        let mut heads = vec!["fact".to_owned()];
        heads.extend(one.heads);
        let rows = one.rows.into_iter().map(|row| {
            let name = if row.differs {
                format!("{} ≠", row.name)
            } else {
                row.name
            };
            std::iter::once(name).chain(row.values).collect()
        });
        table(text, &heads, &[Alignment::Left], rows);
    }
    let asked = asked_rows(data, view);
    if !asked.is_empty() || !data.settings.is_empty() {
        text.push_str("\n## Settings\n");
    }
    if !asked.is_empty() {
        text.push('\n');
        let heads = ["setting", "asked", "found", "applied", "where"].map(str::to_owned);
        let rows = asked.into_iter().map(|row| {
            let applied = match row.applied {
                Some(true) => "yes",
                Some(false) => "✗ no",
                None => "not known",
            };
            vec![
                row.name,
                row.asked,
                row.found,
                applied.to_owned(),
                row.places,
            ]
        });
        table(text, &heads, &[Alignment::Left], rows);
    }
    if !data.settings.is_empty() {
        text.push('\n');
        let heads = ["scope", "setting", "value", "source"].map(str::to_owned);
        let rows = data.settings.iter().map(|setting| {
            vec![
                setting.scope.clone(),
                setting.name.clone(),
                setting.value.clone(),
                setting.source.clone(),
            ]
        });
        table(text, &heads, &[Alignment::Left], rows);
    }
}

/// Writes the number of commands, and those that failed.
fn commands(text: &mut String, data: &RunData, view: &View<'_>) {
    let groups = command_groups(data, view);
    if groups.is_empty() {
        return;
    }
    text.push_str("\n## Commands\n\n");
    for group in groups {
        let _ = writeln!(text, "- {}: {}", escaped(&group.title), group.words);
        for one in group.commands.iter().filter(|one| one.failed) {
            let _ = writeln!(text, "  - ✗ {}: {}", one.code, escaped(&one.command));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{escaped, markdown};
    use crate::sample;

    #[test]
    fn a_run_of_real_machines() {
        insta::assert_snapshot!(markdown(&sample::bench()));
    }

    #[test]
    fn a_run_of_a_model() {
        insta::assert_snapshot!(markdown(&sample::data()));
    }

    #[test]
    fn every_table_row_has_as_many_cells_as_its_head() {
        for data in [sample::bench(), sample::data()] {
            let text = markdown(&data);
            let mut heads = 0;
            for line in text.lines() {
                let cells = line.replace("\\|", "").matches('|').count();
                if cells == 0 {
                    heads = 0;
                } else if heads == 0 {
                    heads = cells;
                }
                assert_eq!(cells, heads, "{line}");
            }
        }
    }

    #[test]
    fn names_from_files_stay_text() {
        assert_eq!(escaped("a|b*<i>\n`c`"), "a\\|b\\*&lt;i> \\`c\\`");
        assert_eq!(escaped("- a & $b$"), "\\- a &amp; \\$b\\$");
        assert_eq!(escaped("http://x @y"), "http:<!-- -->//x @<!-- -->y");
    }
}
