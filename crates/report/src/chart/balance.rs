//! The chart of the balance of each job's reads over the members: stacked bars, a panel
//! for each subject.

use super::look::{INK, Look, axis, folded, hover, with};
use super::{Figure, Panel};
use crate::compute::balance::read_shares_percent;
use crate::compute::view::{Row, View};
use crate::format::thousands;
use raidlab_store::Operation;
use serde_json::{Value, json};

/// The pixels of a bar with its gap, and of everything around the bars.
const ROW_HEIGHT: usize = 19;
const FRAME_HEIGHT: usize = 50;

/// The characters of a job's name; the end of a longer one is in the hover box.
const NAME_WIDTH: usize = 24;

/// The figure; none where the members' reads were not counted.
pub(super) fn figures(view: &View<'_>) -> Option<Figure> {
    let counted = |row: &&Row<'_>| {
        let mut cells = row.cells.iter().flatten();
        row.head.op == Operation::Read
            && cells.any(|cell| read_shares_percent(cell.m).is_some_and(|s| s.len() > 1))
    };
    let rows: Vec<&Row<'_>> = view.main_rows().filter(counted).collect();
    let with_members = |subject: &usize| {
        let mut cells = rows.iter().filter_map(|row| row.cells[*subject]);
        cells.any(|cell| read_shares_percent(cell.m).is_some_and(|s| s.len() > 1))
    };
    let subjects = (0..view.names.len()).filter(with_members);
    let panels: Vec<Panel> = subjects.map(|own| panel(view, &rows, own)).collect();
    (!panels.is_empty()).then(|| Figure {
        id: "balance".to_owned(),
        title: "Which member served the reads".to_owned(),
        caption: "Share of each member in the read commands of a job, those of a sync included: the first \
                  member dark, the others lighter. An even mirror has 50 % each; one long dark \
                  bar means that one disk did all the work."
            .to_owned(),
        unit: "percent of the reads".to_owned(),
        wide: true,
        legend: Vec::new(),
        panels,
        ..Figure::default()
    })
}

fn panel(view: &View<'_>, rows: &[&Row<'_>], subject: usize) -> Panel {
    let rows: Vec<&Row<'_>> = rows
        .iter()
        .copied()
        .filter(|row| row.cells[subject].is_some_and(|c| read_shares_percent(c.m).is_some()))
        .collect();
    let names = rows.iter().map(|row| short(&row.label));
    let end = rows.len() as f64 - 0.5;
    let y_axis = json!({
        "tickvals": (0..rows.len()).collect::<Vec<_>>(), "ticktext": names.collect::<Vec<_>>(),
        "range": [end, -0.5], "showgrid": false, "zeroline": false, "tickfont": {"color": INK},
    });
    let x_axis = json!({"range": [0.0, 101.0], "tickvals": [0, 50, 100], "zeroline": false});
    Panel {
        id: format!("balance-{subject}"),
        title: view.names[subject].clone(),
        height: FRAME_HEIGHT + rows.len() * ROW_HEIGHT,
        plot: json!({
            "data": stack(&view.names[subject], &rows, subject),
            "layout": {
                "barmode": "stack", "bargap": 0.3, "xaxis": with(axis(""), &x_axis),
                "yaxis": with(axis(""), &y_axis), "margin": {"l": 30, "r": 16, "t": 6, "b": 30},
            },
        }),
    }
}

fn short(label: &str) -> String {
    let all = label.chars().count();
    if all <= NAME_WIDTH {
        return folded(label, NAME_WIDTH);
    }
    let mut cut: String = label.chars().take(NAME_WIDTH - 1).collect();
    cut.push('…');
    cut
}

/// A trace for each member.
fn stack(name: &str, rows: &[&Row<'_>], subject: usize) -> Vec<Value> {
    let members = rows
        .iter()
        .filter_map(|row| Some(row.cells[subject]?.m.members.len()));
    let members = members.max().unwrap_or(0);
    let trace = |slot: usize| {
        let (mut shares, mut places, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for (place, row) in rows.iter().enumerate() {
            let Some(cell) = row.cells[subject] else {
                continue;
            };
            let Some((own, share)) = cell
                .m
                .members
                .get(slot)
                .zip(read_shares_percent(cell.m).and_then(|all| all.get(slot).copied()))
            else {
                continue;
            };
            let reads = thousands(own.read_ios as f64);
            let text = format!("member {}: {reads} reads, {share:.1} %", own.member);
            shares.push(share);
            places.push(place);
            texts.push(hover(name, &row.label, &text));
        }
        let opacity = 0.9 - 0.65 * slot as f64 / (members.max(2) - 1) as f64;
        json!({
            "type": "bar", "orientation": "h", "x": shares, "y": places, "meta": name,
            "name": format!("{name}, member {slot}"), "hovertemplate": texts,
            "marker": {"color": Look(subject).tint(opacity),
                "line": {"width": 1, "color": "theme:card"}},
        })
    };
    (0..members).map(trace).collect()
}
