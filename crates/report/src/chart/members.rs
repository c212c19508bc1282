//! Charts along the number of members: a panel for each job, a line for each kind of subject.

use super::Figure;
use super::bars::row_title;
use super::ladders::unit_words;
use super::lines::{Along, Group, Line, Lines, Point, Values};
use super::look::{Look, hover};
use crate::compute::shape::{self, member_lines};
use crate::compute::view::{Row, View};
use crate::format::figure;

/// The largest number of jobs with panels: of more jobs the first ones are drawn.
const MOST_JOBS: usize = 12;

/// The figures, separately for rates in operations and in bytes.
pub(super) fn figures(view: &View<'_>) -> Vec<Figure> {
    let kinds = member_lines(view);
    let mut members: Vec<usize> = kinds
        .iter()
        .flat_map(|kind| kind.columns.iter().map(|(members, _)| *members))
        .collect();
    members.sort_unstable();
    members.dedup();
    let steps: Vec<(f64, String)> = members
        .into_iter()
        .map(|members| (members as f64, members.to_string()))
        .collect();
    let mut all = Vec::new();
    for megabytes in [true, false] {
        let own = |row: &&Row<'_>| (row.rate.is_bytes()) == megabytes;
        let rows: Vec<&Row<'_>> = view.main_rows().filter(own).collect();
        if kinds.is_empty() || rows.is_empty() {
            continue;
        }
        let group = |row: &&Row<'_>| Group {
            title: row_title(view, row),
            lines: lines(row, &kinds, megabytes),
        };
        let caption = if rows.len() > MOST_JOBS {
            format!("The first {MOST_JOBS} of {} jobs.", rows.len())
        } else {
            String::new()
        };
        let chart = Lines {
            id: format!("members-{}", if megabytes { "bytes" } else { "rate" }),
            title: if megabytes {
                "Throughput by the number of members".to_owned()
            } else {
                "Operations by the number of members".to_owned()
            },
            unit: unit_words(megabytes).to_owned(),
            along: Along::Steps("members".to_owned(), steps.clone(), false),
            groups: rows.iter().take(MOST_JOBS).map(group).collect(),
            values: Values::Rates,
            band_words: view.band_words("Shaded"),
            caption,
            marks: Vec::new(),
        };
        all.extend(chart.figures());
    }
    all
}

fn lines(row: &Row<'_>, kinds: &[shape::MemberLine], megabytes: bool) -> Vec<Line> {
    let line = |(place, kind): (usize, &shape::MemberLine)| {
        let points = kind.columns.iter().filter_map(|&(members, column)| {
            let own = shape::Figure::told(row, row.cells[column]?, megabytes)?;
            let unit = if megabytes { "MB/s" } else { row.rate.unit() };
            let text = format!("{members} members: {} {unit}", figure(own.value));
            Some(Point {
                x: members as f64,
                y: own.value,
                band: own.band,
                published: own.published.map(|value| (members as f64, value)),
                text: hover(&kind.name, &row.label, &text),
                struck: own.struck,
            })
        });
        Line {
            name: kind.name.clone(),
            look: Look(place),
            points: points.collect(),
        }
    };
    kinds.iter().enumerate().map(line).collect()
}
