//! The report as one HTML file that needs nothing but a browser.

use crate::chart::{self, Figure};
use crate::compute::headline::{trust, verdicts, what_ran};
use crate::compute::view::View;
use crate::data::RunData;
use crate::table;
use minijinja::Environment;
use minijinja::value::Serde;
use raidlab_store::{AccuracyNote, Run, Setting};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Why a page could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A template failed.
    #[error("cannot fill in the report's template")]
    Template(#[from] minijinja::Error),
    /// A figure cannot be written as JSON.
    #[error("cannot write a figure of the report")]
    Figure(#[from] serde_json::Error),
}

/// A subject with its colour.
#[derive(Serialize)]
struct Subject<'a> {
    name: &'a str,
    colour: String,
}

/// A class's winner, for the strip at the top.
#[derive(Serialize)]
struct Tile {
    title: String,
    winner: String,
    reason: String,
    /// Of the winner; empty where there is more than one, or none.
    colour: String,
}

/// Settings of one scope.
#[derive(Serialize)]
struct Scope<'a> {
    name: &'a str,
    settings: Vec<&'a Setting>,
}

/// What the template fills in.
#[derive(Serialize)]
struct Page<'a> {
    run: &'a Run,
    facts: [(&'static str, String); 6],
    what_ran: String,
    tiles: Vec<Tile>,
    trust: Vec<String>,
    subjects: Vec<Subject<'a>>,
    results: table::ResultTables,
    latencies: Vec<table::LatencyRow>,
    published: Vec<table::PublishedRow>,
    accuracy: Vec<table::AccuracyRow>,
    remarks: Vec<&'a AccuracyNote>,
    scopes: Vec<Scope<'a>>,
    figures: Vec<Figure>,
    error_figure: Option<Figure>,
    /// Plots by id, in JSON.
    plots: String,
    plotly: String,
}

/// The report as one file: style, script, charts and figures are inside, and
/// nothing is fetched when it is looked at.
///
/// # Errors
/// None for data that a store gave; a template or figure that cannot be
/// written is a defect of this crate.
pub fn html(data: &RunData) -> Result<String, ReportError> {
    let view = View::new(&data.measurements);
    let figures = chart::figures(data, &view);
    let error_figure = chart::error_figure(data, &view);
    let plots = embedded(figures.iter().chain(&error_figure))?;
    let mut environment = Environment::new();
    for (name, source) in [
        ("report.html", include_str!("../templates/report.html")),
        ("tables.html", include_str!("../templates/tables.html")),
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
        trust: trust(&view),
        subjects: subjects(&view),
        results: table::results(&view),
        latencies: table::latencies(&view),
        published: table::published(data, &view),
        accuracy: table::accuracy_rows(data, &view),
        remarks: remarks(data, &view),
        scopes: scopes(&data.settings),
        figures,
        error_figure,
        plots,
        plotly: plotly_source(),
    }))?)
}

/// The figures as one JSON object by id, safe inside a script element.
fn embedded<'f>(figures: impl Iterator<Item = &'f Figure>) -> Result<String, ReportError> {
    let plots: BTreeMap<&str, &Value> = figures
        .map(|figure| (figure.id.as_str(), &figure.plot))
        .collect();
    // "</script>" and "<!--" would end or change the element they stand in.
    Ok(serde_json::to_string(&plots)?.replace('<', "\\u003c"))
}

/// `plotly.js` alone: the crate hands it out with `MathJax`, which is of no
/// use here and would double the file.
fn plotly_source() -> String {
    let sources = plotly::Plot::offline_js_sources();
    let start = sources.find('>').map_or(0, |at| at + 1);
    let end = sources.find("</script>").unwrap_or(sources.len());
    sources[start..end].to_owned()
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

fn subjects<'a>(view: &View<'a>) -> Vec<Subject<'a>> {
    let names = view.subjects.iter().enumerate();
    names
        .map(|(index, name)| Subject {
            name,
            colour: chart::colour(index),
        })
        .collect()
}

fn tiles(data: &RunData, view: &View<'_>) -> Vec<Tile> {
    let tile = |verdict: crate::compute::headline::Verdict| Tile {
        winner: verdict.winner(&view.subjects),
        reason: verdict.reason(&view.subjects),
        colour: match verdict.best.as_slice() {
            [one] => chart::colour(*one),
            _ => String::new(),
        },
        title: verdict.title,
    };
    verdicts(data, view).into_iter().map(tile).collect()
}

/// Notes that speak of no class of this run.
fn remarks<'a>(data: &'a RunData, view: &View<'_>) -> Vec<&'a AccuracyNote> {
    let classes = view.classes();
    let notes = data.notes.iter();
    notes
        .filter(|note| !classes.contains(&note.class.as_str()))
        .collect()
}

fn scopes(settings: &[Setting]) -> Vec<Scope<'_>> {
    let mut scopes: Vec<Scope<'_>> = Vec::new();
    for setting in settings {
        match scopes.iter_mut().find(|scope| scope.name == setting.scope) {
            Some(scope) => scope.settings.push(setting),
            None => scopes.push(Scope {
                name: &setting.scope,
                settings: vec![setting],
            }),
        }
    }
    scopes
}
