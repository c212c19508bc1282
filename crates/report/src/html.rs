//! The report as one HTML file that needs only a browser.

use crate::chart::{self, Figure, Look, Panel, TimelineFigures};
use crate::compute::environment::{
    AskedRow, CommandGroup, FactTable, asked_rows, command_groups, fact_tables, tools,
};
use crate::compute::findings::{Group, audit_notes, groups};
use crate::compute::headline::verdicts;
use crate::compute::matrix::{Matrix, matrices};
use crate::compute::rate::{unit_names, units_note};
use crate::compute::trust::{trust, what_ran};
use crate::compute::view::View;
use crate::data::RunData;
use crate::format::{absent_words, with_code};
use crate::table;
use minijinja::Environment;
use minijinja::value::{Serde, Value as Shown};
use raidlab_store::{AUDIT_NOTE_CLASS, AccuracyNote, Run, Setting};
use raidlab_units::grouped;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The script that draws the charts: the bundle of `plotly.js` with lines, points and bars, which
/// is all that is used here, from npm's package plotly.js-basic-dist-min.
const PLOTLY: &str = include_str!("../plotly/plotly-basic.min.js");

/// The reason why a page could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A template failed.
    #[error("cannot fill in the report's template")]
    Template(#[from] minijinja::Error),
    /// A figure cannot be written as JSON.
    #[error("cannot write a figure of the report")]
    Figure(#[from] serde_json::Error),
    /// A comparison of fewer than two runs.
    #[error("{runs} run given, a comparison needs two")]
    NothingToCompare {
        /// The number of runs that were given.
        runs: usize,
    },
    /// A comparison of runs that share no row.
    #[error("`{base}` and `{other}` have no row in common: no subject did the same job in both")]
    NothingInCommon {
        /// The run that is the base.
        base: String,
        /// The run that was to be compared with it.
        other: String,
    },
}

/// A subject with its look.
#[derive(Serialize)]
struct Subject<'a> {
    name: &'a str,
    /// The subject's colour and hatching, as SVG.
    chip: String,
}

/// A class's winner, for the strip at the top.
#[derive(Serialize)]
struct Tile {
    title: String,
    winner: String,
    reason: String,
    /// The certainty of the lead, in words; empty for models.
    certainty: String,
    uncertain: bool,
    /// The winner's colour; empty where there are several winners, or none.
    colour: String,
}

/// The settings of one scope.
#[derive(Serialize)]
struct Scope<'a> {
    name: &'a str,
    settings: Vec<&'a Setting>,
}

/// The data that the template fills in.
#[derive(Serialize)]
struct Page<'a> {
    run: &'a Run,
    facts: [(&'static str, String); 6],
    what_ran: String,
    tiles: Vec<Tile>,
    trust: Vec<String>,
    subjects: Vec<Subject<'a>>,
    /// The subjects that have published figures.
    compared: Vec<Subject<'a>>,
    units: String,
    unit_names: String,
    results: table::ResultTables,
    matrices: Vec<Matrix>,
    repetitions: Vec<table::RepetitionRow>,
    findings: Vec<Group<'a>>,
    /// The audit's notes on its own coverage.
    audit_notes: Vec<&'a str>,
    latencies: Vec<table::JobRow<table::LatencyCell>>,
    published: Vec<table::JobRow<table::PublishedCell>>,
    accuracy: Vec<table::AccuracyRow>,
    remarks: Vec<&'a AccuracyNote>,
    scopes: Vec<Scope<'a>>,
    asked: Vec<AskedRow>,
    facts_of: Vec<FactTable>,
    tools: Vec<&'a str>,
    commands: Vec<CommandGroup>,
    figures: Vec<Figure>,
    /// Charts of the distributions of latencies, one for each class of jobs.
    distributions: Vec<Figure>,
    timelines: Vec<TimelineFigures>,
    error_figure: Option<Figure>,
    /// Plots by id, in JSON; empty where there are none.
    plots: String,
    plotly: &'static str,
}

/// The report as one file: style, script, charts and figures are inside, and nothing is fetched
/// when it is opened.
///
/// # Errors
/// None for data from a store; a template or figure that cannot be written is a defect
/// of this crate.
pub fn html(data: &RunData) -> Result<String, ReportError> {
    let view = View::new(data);
    let figures = chart::figures(data, &view);
    let distributions = chart::distributions(data, &view);
    let error_figure = chart::error_figure(data, &view);
    let timelines = chart::timeline_figures(data, &view);
    let in_time = timelines.iter().flat_map(|timeline| &timeline.figures);
    let all = figures.iter().chain(&distributions).chain(&error_figure);
    let plots = embedded(all.chain(in_time))?;
    let mut environment = Environment::new();
    environment.add_filter("present", present);
    environment.add_filter("absent_words", absent_words);
    environment.add_filter("code", with_code);
    for (name, source) in [
        ("report.html", include_str!("../templates/report.html")),
        ("tables.html", include_str!("../templates/tables.html")),
        ("findings.html", include_str!("../templates/findings.html")),
        (
            "environment.html",
            include_str!("../templates/environment.html"),
        ),
        ("style.css", include_str!("../templates/style.css")),
        ("charts.js", include_str!("../templates/charts.js")),
    ] {
        environment.add_template(name, source)?;
    }
    let page = environment.get_template("report.html")?;
    Ok(page.render(Serde(Page {
        run: &data.run,
        facts: facts(&data.run),
        what_ran: what_ran(data, &view),
        tiles: tiles(data, &view),
        trust: trust(data, &view),
        subjects: subjects(&view, 0..view.names.len()),
        compared: subjects(&view, view.compared()),
        units: units_note(&view.all_rows().map(|row| row.rate).collect::<Vec<_>>()),
        unit_names: unit_names(view.main_rows().map(|row| row.rate)),
        results: table::results(data, &view),
        matrices: matrices(&view),
        repetitions: table::repetitions(&view),
        findings: groups(&data.findings, &view),
        audit_notes: audit_notes(&data.notes),
        latencies: table::latencies(&view),
        published: table::published(data, &view),
        accuracy: table::accuracy_rows(data, &view),
        remarks: remarks(data, &view),
        scopes: scopes(&data.settings),
        asked: asked_rows(data, &view),
        facts_of: fact_tables(data, &view),
        tools: tools(data),
        commands: command_groups(data, &view),
        figures,
        distributions,
        timelines,
        error_figure,
        plots,
        plotly: PLOTLY,
    }))?)
}

/// The common settings of all plots and the plots by id, as JSON that is safe inside a script
/// element; empty where there are none.
fn embedded<'f>(figures: impl Iterator<Item = &'f Figure>) -> Result<String, ReportError> {
    let panels = figures.flat_map(|figure| &figure.panels);
    let plots: BTreeMap<&str, Value> = panels
        .map(|panel: &Panel| (panel.id.as_str(), plain_text(panel.plot.clone())))
        .collect();
    if plots.is_empty() {
        return Ok(String::new());
    }
    let plots = json!({"base": chart::base(), "plots": plots});
    // "</script>" and "<!--" would end or change the enclosing element.
    Ok(serde_json::to_string(&plots)?.replace('<', "\\u003c"))
}

/// The tags that may occur in our own labels.
const TAGS: [&str; 4] = ["<br>", "<b>", "</b>", "<extra></extra>"];

/// A figure whose texts have no tags but those of [`TAGS`]: `plotly.js` would make a link
/// from any label.
fn plain_text(mut figure: Value) -> Value {
    match &mut figure {
        Value::String(text) if text.contains('<') => {
            let mut parts = text.split('<');
            let mut plain = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                let ours = TAGS.iter().any(|tag| part.starts_with(&tag[1..]));
                plain.push_str(if ours { "<" } else { "&lt;" });
                plain.push_str(part);
            }
            *text = plain;
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| *item = plain_text(item.take())),
        Value::Object(fields) => {
            // The page's script identifies a series by `meta`, which is never shown.
            let shown = fields.iter_mut().filter(|(name, _)| *name != "meta");
            shown.for_each(|(_, item)| *item = plain_text(item.take()));
        }
        _ => {}
    }
    figure
}

fn facts(run: &Run) -> [(&'static str, String); 6] {
    let finished = run.finished.as_deref().unwrap_or("not finished");
    [
        ("run", run.name.clone()),
        ("bench", run.bench.clone()),
        ("started", run.started.clone()),
        ("finished", finished.to_owned()),
        ("seed", run.seed.to_string()),
        ("raidlab", run.raidlab_version.clone()),
    ]
}

fn subjects<'v>(view: &'v View<'_>, indexes: impl IntoIterator<Item = usize>) -> Vec<Subject<'v>> {
    let subject = |index: usize| Subject {
        name: &view.names[index],
        chip: Look(index).chip(),
    };
    indexes.into_iter().map(subject).collect()
}

fn tiles(data: &RunData, view: &View<'_>) -> Vec<Tile> {
    let tile = |verdict: crate::compute::headline::Verdict| Tile {
        winner: verdict.winner(&view.names),
        reason: verdict.reason(&view.names),
        certainty: verdict.certainty(&view.names),
        uncertain: verdict.is_uncertain(),
        colour: verdict
            .sole_winner()
            .map_or_else(String::new, |one| Look(one).colour()),
        title: verdict.title,
    };
    verdicts(data, view).into_iter().map(tile).collect()
}

/// Notes that are about no class of this run.
fn remarks<'a>(data: &'a RunData, view: &View<'_>) -> Vec<&'a AccuracyNote> {
    let classes = view.classes();
    let notes = data.notes.iter();
    notes
        .filter(|note| !classes.contains(&note.class.as_str()))
        .filter(|note| note.class != AUDIT_NOTE_CLASS)
        .collect()
}

fn scopes(settings: &[Setting]) -> Vec<Scope<'_>> {
    let scopes = grouped(settings.iter().map(|one| (one.scope.as_str(), one)));
    let scopes = scopes.into_iter();
    scopes
        .map(|(name, settings)| Scope { name, settings })
        .collect()
}

/// The positions of the subjects that have a figure in one of these rows.
fn present(rows: Vec<Shown>) -> Result<Vec<usize>, minijinja::Error> {
    let mut places = BTreeSet::new();
    for row in rows {
        let cells = row.get_attr("cells")?.try_iter()?.enumerate();
        places.extend(
            cells
                .filter(|(_, cell)| cell.is_true())
                .map(|(place, _)| place),
        );
    }
    Ok(places.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::html;
    use crate::data::RunData;
    use crate::sample;
    use raidlab_store::{Cell, CellResult, Measurement, Records, Store};
    use std::collections::BTreeSet;

    /// The page without the part that is `plotly.js`.
    fn without_plotly(page: &str) -> String {
        let (before, rest) = page.split_once("<script>").unwrap();
        let (_, after) = rest.split_once("</script>").unwrap();
        format!("{before}{after}")
    }

    #[test]
    fn the_page_is_whole_and_fetches_nothing() {
        let page = html(&sample::data()).unwrap();
        assert_eq!(page.matches("plotly.js (basic").count(), 1);
        assert!(page.len() < 2_000_000, "{} bytes", page.len());
        let own = without_plotly(&page);
        for forbidden in ["http:", "https:", "src=", "@import", "url(", "MathJax"] {
            assert!(!own.contains(forbidden), "{forbidden}");
        }
        assert!(own.trim_end().ends_with("</html>"));
        for chart in [
            "along-0-2-reads-0",
            "sync-0",
            "bars-0-0",
            "bars-1-0",
            "bars-3-0",
            "bars-5-0",
            "latency-0-2-reads-0",
            "balance-0",
            "errors-0",
        ] {
            assert!(own.contains(&format!("id=\"{chart}\"")), "{chart}");
            assert!(own.contains(&format!("\"{chart}\":")), "{chart}");
        }
    }

    #[test]
    fn the_same_data_gives_the_same_page() {
        let data = sample::data();
        assert_eq!(html(&data).unwrap(), html(&data).unwrap());
    }

    #[test]
    fn names_from_files_cannot_break_the_page() {
        const EVIL: &str = "</script><script>alert(1)</script>";
        let mut data = sample::data();
        data.run.suite_title = EVIL.to_owned();
        data.run.command_line = EVIL.to_owned();
        for m in &mut data.measurements {
            m.subject = format!("{EVIL}{}", m.subject);
            m.job_title.push_str(EVIL);
        }
        for setting in &mut data.settings {
            setting.value.push_str(EVIL);
        }
        let page = html(&data).unwrap();
        assert!(!page.contains("alert(1)</script>"));
        // plotly, the figures, the drawing code.
        assert_eq!(page.matches("</script>").count(), 3);
    }

    #[test]
    fn the_words_and_tables_of_the_sample() {
        let page = without_plotly(&html(&sample::data()).unwrap());
        let (_, body) = page.split_once("<body>").unwrap();
        let (body, _) = body.split_once("<script").unwrap();
        insta::assert_snapshot!(body);
    }

    /// Every value of an attribute in a page.
    fn attributes<'p>(page: &'p str, name: &str) -> Vec<&'p str> {
        let start = format!(" {name}=\"");
        let parts = page.split(&start).skip(1);
        parts.filter_map(|part| part.split('"').next()).collect()
    }

    #[test]
    fn the_page_of_real_machines_is_whole() {
        let page = without_plotly(&html(&sample::bench()).unwrap());
        let (body, _) = page.split_once("<script").unwrap();
        let ids = attributes(body, "id");
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), unique.len(), "identifiers are unique");
        let inner = attributes(body, "href");
        let inner = inner.iter().filter_map(|link| link.strip_prefix('#'));
        for target in inner {
            assert!(unique.contains(target), "{target}");
        }
        for section in [
            "findings",
            "timelines",
            "environment",
            "settings",
            "commands",
        ] {
            assert!(unique.contains(section), "{section}");
        }
        // 12 experiments, each with the array and its members.
        for number in 0..12 {
            for chart in ["timeline", "timeline-members"] {
                assert!(unique.contains(format!("{chart}-{number}-0").as_str()));
            }
        }
        assert!(unique.contains("along-1-3-writes"));
        // Four columns' bonnie reads, and one repetition of the sequential write.
        let struck = body.matches("<s>").count() - body.matches("<s>Struck out</s>").count();
        assert_eq!(struck, 4 + 4 * 3 + 1);
        for text in [
            "41 rules judged",
            "95&nbsp;% interval",
            "10⁶ bytes per second",
            "missing dataset argument(s)",
            "ended by a signal",
            "sdb &lt;&amp;&gt; sdc",
        ] {
            assert!(body.contains(text), "{text}");
        }
    }

    #[test]
    fn eighteen_hours_of_seconds_stay_small() {
        let mut data = sample::bench();
        data.series
            .retain(|series| series.scope.repetition == Some(0) && series.scope.host == "beta");
        for series in &mut data.series {
            let values: Vec<f64> = series.points.iter().map(|(_, value)| *value).collect();
            let at = |second: u64| {
                (
                    second * 1_000_000_000,
                    values[second as usize % values.len()],
                )
            };
            series.points = (0..18 * 3600).map(at).collect();
        }
        let page = html(&data).unwrap();
        data.series.clear();
        let without = html(&data).unwrap();
        let grown = page.len() - without.len();
        assert!((10_000..150_000).contains(&grown), "{grown} bytes");
        assert!(page.contains("bins of 216 seconds") || page.contains("bins of 4 minutes"));
    }

    #[test]
    fn a_run_without_measurements_is_a_page_without_charts() {
        let mut data = sample::data();
        data.measurements.clear();
        let page = html(&data).unwrap();
        assert!(page.contains("Nothing was measured"));
        assert!(!page.contains("<script"));
        assert!(!page.contains("<figure"));
    }

    #[test]
    fn a_stored_run_makes_the_same_page() {
        for data in [sample::data(), sample::bench()] {
            let mut store = Store::open_in_memory().unwrap();
            let id = store.begin_run(&data.run).unwrap();
            let records = Records {
                settings: data.settings.clone(),
                observations: data.observations.clone(),
                commands: data.commands.clone(),
                events: data.events.clone(),
                series: data.series.clone(),
            };
            store.add_records(id, &records).unwrap();
            store.add_notes(id, &data.notes).unwrap();
            store.set_findings(id, &data.findings, None).unwrap();
            let mut cells: Vec<(Cell, Vec<Measurement>)> = Vec::new();
            for m in &data.measurements {
                match cells.iter_mut().find(|(cell, _)| *cell == m.cell()) {
                    Some((_, rows)) => rows.push(m.clone()),
                    None => cells.push((m.cell(), vec![m.clone()])),
                }
            }
            for (cell, rows) in cells {
                let result = CellResult {
                    cell,
                    rows,
                    records: Records::default(),
                };
                store.add_cell(id, &result).unwrap();
            }
            let loaded = RunData::load(&store, raidlab_store::LATEST).unwrap();
            // Not assert_eq, which would print both pages.
            assert!(html(&loaded).unwrap() == html(&data).unwrap());
        }
    }
}
