//! Horizontal bars, each with its name: jobs that form no ladder, and the percentiles
//! of their latencies.
//!
//! Few subjects are grouped within each job; many get a panel for each job, with their names
//! beside their bars. A bar is this run's figure, its whisker the known error, and the tick across
//! it the published figure.

mod percentiles;
mod rates;

pub(super) use percentiles::percentiles;
pub(super) use rates::all;

use super::look::{INK, Look, MUTED, axis, folded, lines_of, with};
use super::scale::Scale;
use super::{Key, Panel};
use crate::compute::shape::{ladders, passages};
use crate::compute::sync;
use crate::compute::view::{Cell, Row, View};
use crate::data::RunData;
use serde_json::{Value, json};

/// The largest number of subjects that are grouped within each job.
const MOST_TOGETHER: usize = 6;

/// The pixels of a bar with its gap, of a line of its name, and of all around the bars.
const BAR: usize = 20;
const NAME_LINE: usize = 17;
const FRAME: usize = 44;

/// The characters of a name's line.
const NAME_WIDTH: usize = 18;

/// A panel of bars: the rows and subjects of the bars, and their positions.
struct Frame {
    title: String,
    /// The names beside the bars, each with its position.
    names: Vec<(f64, String)>,
    /// The row, the column and the position of each bar.
    bars: Vec<(usize, usize, f64)>,
    /// The thickness of a bar, where names are at a distance of 1.
    thick: f64,
    height: usize,
}

/// The panels for rows, with the cells that are to be drawn.
fn frames(view: &View<'_>, rows: &[&Row<'_>], wanted: impl Fn(&Cell<'_>) -> bool) -> Vec<Frame> {
    let there = |row: &Row<'_>, column: usize| row.cells[column].as_ref().is_some_and(&wanted);
    let columns: Vec<usize> = (0..view.names.len())
        .filter(|&column| rows.iter().any(|row| there(row, column)))
        .collect();
    if columns.len() <= MOST_TOGETHER && rows.len() > 1 {
        let labels = labels(rows);
        let thick = 0.8 / columns.len().max(1) as f64;
        let middle = (columns.len() as f64 - 1.0) / 2.0;
        let mut bars = Vec::new();
        for (place, row) in rows.iter().enumerate() {
            for (order, &column) in columns.iter().enumerate() {
                if there(row, column) {
                    let at = place as f64 + (order as f64 - middle) * thick;
                    bars.push((place, column, at));
                }
            }
        }
        let tallest = labels.iter().map(|label| lines_of(label)).max();
        let row = (columns.len() * BAR * 5 / 4).max(tallest.unwrap_or(1) * NAME_LINE + 6);
        return vec![Frame {
            title: String::new(),
            names: (0..).map(f64::from).zip(labels).collect(),
            bars,
            thick,
            height: rows.len() * row + FRAME,
        }];
    }
    let frame = |(place, row): (usize, &&Row<'_>)| {
        let own: Vec<usize> = columns
            .iter()
            .copied()
            .filter(|&column| there(row, column))
            .collect();
        let names: Vec<String> = own
            .iter()
            .map(|&column| folded(&view.names[column], NAME_WIDTH))
            .collect();
        let tallest = names.iter().map(|name| lines_of(name)).max().unwrap_or(1);
        let positions = || (0..own.len()).map(|place| place as f64);
        Frame {
            title: row_title(view, row),
            bars: own
                .iter()
                .zip(positions())
                .map(|(&column, at)| (place, column, at))
                .collect(),
            names: positions().zip(names).collect(),
            thick: 0.76,
            height: own.len() * BAR.max(tallest * NAME_LINE) + FRAME,
        }
    };
    rows.iter().enumerate().map(frame).collect()
}

/// A row's job in words, with the operation where the job has several, and with the job's name
/// where another one has the same words.
pub(super) fn row_title(view: &View<'_>, row: &Row<'_>) -> String {
    let title = &row.head.job_title;
    let same = |other: &Row<'_>| other.head.job_title == *title && other.head.job != row.head.job;
    let title = if view.main_rows().any(same) {
        format!("{}: {title}", row.head.job)
    } else {
        title.clone()
    };
    if row.job_ops > 1 {
        format!("{title}: {}", row.head.op)
    } else {
        title
    }
}

impl Frame {
    fn name_axis(&self) -> Value {
        let (places, names): (Vec<f64>, Vec<&str>) = self
            .names
            .iter()
            .map(|(at, name)| (*at, name.as_str()))
            .unzip();
        let end = self.names.len() as f64 - 0.5;
        let settings = json!({
            "tickvals": places, "ticktext": names, "range": [end, -0.5], "showgrid": false,
            "zeroline": false, "tickfont": {"color": INK},
        });
        with(axis(""), &settings)
    }

    fn legend(&self, view: &View<'_>, rows: &[&Row<'_>]) -> Vec<Key> {
        // Names beside the bars make a legend unnecessary.
        if rows.len() < 2 || !self.title.is_empty() {
            return Vec::new();
        }
        let mut columns: Vec<usize> = self.bars.iter().map(|(_, column, _)| *column).collect();
        columns.sort_unstable();
        columns.dedup();
        let key = |column: usize| Key::new(&view.names[column], Look(column).chip());
        columns.into_iter().map(key).collect()
    }
}

/// The drawing of a frame.
struct Drawn {
    traces: Vec<Value>,
    scale: Scale,
    /// The word beside each bar, by its position.
    words: Vec<(f64, String)>,
}

/// The panels of a figure; `draw` gives a frame's values as traces, and the words beside each bar.
fn panels(
    id: &str,
    frames: Vec<Frame>,
    draw: impl Fn(&Frame) -> Option<Drawn>,
) -> (Vec<Panel>, bool) {
    let (mut panels, mut log) = (Vec::new(), false);
    for (number, frame) in frames.into_iter().enumerate() {
        let Some(Drawn {
            traces,
            scale,
            words,
        }) = draw(&frame)
        else {
            continue;
        };
        log |= scale.log;
        let longest = words.iter().map(|(_, text)| text.chars().count()).max();
        let labels = words.iter().map(|(at, text)| {
            json!({
                "text": text, "x": 1, "xref": "paper", "xanchor": "left", "xshift": 4, "y": at,
                "yref": "y", "yanchor": "middle", "showarrow": false,
                "font": {"size": 12, "color": MUTED},
            })
        });
        panels.push(Panel {
            id: format!("{id}-{number}"),
            height: frame.height,
            plot: json!({
                "data": traces,
                "layout": {
                    "barmode": "overlay", "xaxis": scale.lying_axis("", 150.0),
                    "yaxis": frame.name_axis(), "annotations": labels.collect::<Vec<_>>(),
                    "margin": {"l": 30, "r": 10 + 8 * longest.unwrap_or(0), "t": 6, "b": 30},
                },
            }),
            title: if scale.log && !frame.title.is_empty() {
                format!("{} (log scale)", frame.title)
            } else {
                frame.title
            },
        });
    }
    (panels, log)
}

/// The rows that are in no ladder and no series, each with whether another chart has it already.
fn rest<'v, 'a>(data: &RunData, view: &'v View<'a>) -> Vec<(&'v Row<'a>, bool)> {
    let mut taken: Vec<&Row<'_>> = sync::series(view);
    for ladder in ladders(view) {
        let jobs = ladder.steps.into_iter().map(|(_, job)| job);
        taken.extend(jobs.flat_map(|job| job.rows));
    }
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for passage in passages(data, view) {
        for (place, (_, job)) in passage.jobs.into_iter().enumerate() {
            // The first job of a passage stays, as other jobs of its kind are compared with it.
            let rows = if place == 0 { &mut first } else { &mut later };
            rows.extend(job.rows);
        }
    }
    taken.extend(later);
    let within = |all: &[&Row<'_>], row: &Row<'_>| all.iter().any(|own| std::ptr::eq(*own, row));
    let rows = view.main_rows().filter(|row| !within(&taken, row));
    rows.map(|row| (row, within(&first, row))).collect()
}

/// Names for the rows: the job, and below it the part of its title that the others do not have.
fn labels(rows: &[&Row<'_>]) -> Vec<String> {
    let titles: Vec<Vec<&str>> = rows
        .iter()
        .map(|row| row.head.job_title.split(' ').collect())
        .collect();
    let shortest = titles.iter().map(Vec::len).min().unwrap_or(0);
    let same = |position: &usize| {
        titles
            .iter()
            .all(|title| title[*position] == titles[0][*position])
    };
    let same = (0..shortest).take_while(same).count();
    // The difference is shown in whole clauses: `queue depth 16` and not `16`.
    let clause = titles
        .first()
        .and_then(|title| title[..same].iter().rposition(|word| word.ends_with(',')));
    let longest = titles.iter().map(Vec::len).max().unwrap_or(0);
    let fits = |words: &str| words.chars().count() <= 2 * NAME_WIDTH;
    let common = match clause {
        Some(place) if same < longest => place + 1,
        // Without a clause in common half a sentence would be left: `is filled anew`.
        None if same < longest && rows.iter().all(|row| fits(&row.head.job_title)) => 0,
        _ => same,
    };
    rows.iter()
        .zip(&titles)
        .map(|(row, title)| {
            let mut label = folded(&row.label, NAME_WIDTH);
            let apart = title[common..].join(" ");
            // A title as long as a sentence is left to the table.
            if !apart.is_empty() && fits(&apart) {
                label.push_str("<br>");
                label.push_str(&folded(&apart, NAME_WIDTH));
            }
            label
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{labels, row_title};
    use crate::compute::view::View;
    use crate::sample;

    #[test]
    fn labels_say_what_differs() {
        let mut measurements = [sample::cell("md", 0), sample::cell("md", 1)];
        measurements[0].job_title = "sequential write 128 KiB, first third".to_owned();
        measurements[1].job_title = "sequential write 128 KiB, last third".to_owned();
        let view = View::of_rows(&measurements);
        let rows: Vec<_> = view.rows.iter().collect();
        assert_eq!(labels(&rows), ["1<br>first third", "2<br>last third"]);
        assert_eq!(labels(&rows[..1]), ["1"]);
        assert_eq!(row_title(&view, rows[0]), measurements[0].job_title);
    }

    /// As of a rebuild: where sentences begin alike, what is left of them is none.
    #[test]
    fn labels_are_no_half_sentences() {
        let mut measurements = [sample::cell("md", 0), sample::cell("md", 1)];
        measurements[0].job_title = "a member is filled".to_owned();
        measurements[1].job_title = "a member less".to_owned();
        let view = View::of_rows(&measurements);
        let rows: Vec<_> = view.rows.iter().collect();
        let expected = ["1<br>a member is filled", "2<br>a member less"];
        assert_eq!(labels(&rows), expected);
    }

    #[test]
    fn jobs_of_one_title_are_told_apart_by_their_names() {
        let measurements = [0, 1].map(|sequence| {
            let mut own = sample::cell("md", sequence);
            "random read".clone_into(&mut own.job_title);
            own
        });
        let view = View::of_rows(&measurements);
        let titles: Vec<String> = view.rows.iter().map(|row| row_title(&view, row)).collect();
        assert_eq!(titles, ["1: random read", "2: random read"]);
    }
}
