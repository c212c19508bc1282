//! How far two runs agree, on a terminal and in Markdown.

use super::{Agreement, AgreementCell, AgreementRow, MemberCounts};
use crate::markdown::{Alignment, table};
use crate::table::Tone;
use crate::terminal::Style;
use comfy_table::Cell;
use std::fmt::Write;

/// What follows a figure beyond its bound.
const BEYOND: &str = "\u{a0}✗";

impl Agreement {
    /// The three tables for a terminal.
    pub(crate) fn text(&self, text: &mut String, run: &str, style: &Style) {
        let _ = writeln!(text, "\nHow far {run} agrees, percent of the base");
        let mut table = style.table(&["job"], &self.places);
        for job in &self.jobs {
            let mut cells = vec![Cell::new(&job.label)];
            for cell in &job.cells {
                let tone = match cell.as_ref().and_then(|cell| cell.within) {
                    Some(true) => Tone::Good,
                    Some(false) => Tone::Bad,
                    None => Tone::Plain,
                };
                cells.push(style.cell(percent_words(cell.as_ref()), tone));
            }
            table.add_row(cells);
        }
        style.print(text, &mut table, 0..1);
        let heads = CLASS_HEADS[1..].iter().map(|head| (*head).to_owned());
        let mut table = style.table(&CLASS_HEADS[..1], &heads.collect::<Vec<_>>());
        for row in self.class_rows() {
            table.add_row(row);
        }
        style.print(text, &mut table, 0..4);
        text.push_str("\nMembers, base against this\n");
        let heads = MEMBER_HEADS[2..].iter().map(|head| (*head).to_owned());
        let mut table = style.table(&MEMBER_HEADS[..2], &heads.collect::<Vec<_>>());
        for row in self.member_rows() {
            table.add_row(row);
        }
        style.print(text, &mut table, 0..2);
    }

    /// The same as tables of GitHub's Markdown.
    pub(crate) fn markdown(&self, text: &mut String) {
        use Alignment::{Left, Right};
        text.push_str("### Agreement, percent of the base\n\n");
        let heads = std::iter::once("job".to_owned()).chain(self.places.iter().cloned());
        let rows = self.jobs.iter().map(|job| {
            let cells = job.cells.iter().map(|cell| percent_words(cell.as_ref()));
            std::iter::once(job.label.clone()).chain(cells).collect()
        });
        table(text, &heads.collect::<Vec<_>>(), &[Left, Right], rows);
        text.push('\n');
        let heads = CLASS_HEADS.map(str::to_owned);
        let alignments = [Left, Right, Right, Right, Left];
        table(text, &heads, &alignments, self.class_rows());
        text.push_str("\n### Members, base against this\n\n");
        let heads = MEMBER_HEADS.map(str::to_owned);
        table(text, &heads, &[Left, Left, Right], self.member_rows());
    }

    /// What came of each class's bound.
    fn class_rows(&self) -> impl Iterator<Item = Vec<String>> {
        self.classes.iter().map(|one| {
            vec![
                one.class.clone(),
                format!("{}\u{a0}%", one.bound_percent),
                format!("{} of {}", one.within, one.cells),
                one.worst_text.clone(),
                one.worst.clone(),
            ]
        })
    }

    /// Each cell whose members were counted.
    fn member_rows(&self) -> impl Iterator<Item = Vec<String>> {
        let cells = self.jobs.iter().flat_map(|job| {
            let places = self.places.iter().zip(&job.cells);
            places.filter_map(move |(place, cell)| Some((job, place, cell.as_ref()?)))
        });
        cells.filter_map(|(job, place, cell)| member_row(job, place, cell))
    }
}

const CLASS_HEADS: [&str; 5] = ["class", "bound", "within", "worst", "where"];

const MEMBER_HEADS: [&str; 5] = ["job", "subject", "reads", "writes", "share, points"];

fn percent_words(cell: Option<&AgreementCell>) -> String {
    let Some(cell) = cell else {
        return "-".to_owned();
    };
    let mut words = cell.text.clone();
    if cell.within == Some(false) {
        words.push_str(BEYOND);
    }
    words
}

fn member_row(job: &AgreementRow, place: &str, cell: &AgreementCell) -> Option<Vec<String>> {
    let points = cell.share_points?;
    let counts = |count: fn(&MemberCounts) -> u64| {
        let list = |members: &[MemberCounts]| {
            let mut words = String::new();
            for (place, member) in members.iter().enumerate() {
                let gap = if place == 0 { "" } else { "\u{a0}" };
                let _ = write!(words, "{gap}{}", count(member));
            }
            words
        };
        format!("{} / {}", list(&cell.base), list(&cell.other))
    };
    Some(vec![
        job.label.clone(),
        place.to_owned(),
        counts(|member| member.reads),
        counts(|member| member.writes),
        format!("{points:.1}"),
    ])
}
