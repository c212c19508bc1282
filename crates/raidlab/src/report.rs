//! The command `raidlab report`: it shows, exports and deletes runs of a store.

use crate::failure::Failure;
use crate::{claims, output};
use clap::Args;
use raidlab_report::RunData;
use raidlab_runs::notes::{REMARK, STORE};
use raidlab_runs::{lock_store, open_store};
use raidlab_store::output::Format;
use raidlab_store::text::visible_path;
use raidlab_store::{
    ExportError, LATEST, Measurement, Store, StoreError, write_csv, write_json_lines,
    write_members_csv,
};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Arguments of `raidlab report`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The run's name, or `latest` for the one that the store took last.
    #[arg(default_value = LATEST)]
    run: String,

    /// The file that keeps the runs.
    #[arg(long, value_name = "FILE", default_value = STORE)]
    store: PathBuf,

    /// Write an HTML page with tables and charts, which works offline.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write comma-separated values, one row per measurement. Units are in the
    /// names of the columns.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write comma-separated values, one row per measurement and member.
    #[arg(long, value_name = "FILE")]
    members_csv: Option<PathBuf>,

    /// Write one JSON object per measurement and line, as `run --json` does, job by job.
    #[arg(long, value_name = "FILE")]
    json_lines: Option<PathBuf>,

    /// Write Markdown: the tables and what the audit found.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Write everything that the store has of the run as tables in Parquet, for DuckDB,
    /// Polars and others. `raidlab import FOLDER` takes it into another store.
    #[arg(long, value_name = "FOLDER")]
    parquet: Option<PathBuf>,

    /// List the runs, the one that the store took last first.
    #[arg(
        long,
        conflicts_with_all = ["run", "html", "csv", "members_csv", "json_lines", "markdown", "parquet"]
    )]
    list: bool,

    /// Delete a run with everything that belongs to it.
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = [
            "run", "list", "html", "csv", "members_csv", "json_lines", "markdown", "parquet"
        ]
    )]
    delete: Option<String>,
}

/// Makes the HTML page of a run.
///
/// # Errors
/// When a value has no form in it.
pub fn page(data: &RunData) -> Result<String, Failure> {
    raidlab_report::html(data).map_err(Failure::run)
}

/// Shows, exports, lists or deletes.
///
/// # Errors
/// When there is no such store or run, or a file cannot be written.
pub fn report(arguments: &Arguments) -> Result<(), Failure> {
    let mut store = open_store(&arguments.store, &[&arguments.run])?;
    if arguments.list {
        return list(&store);
    }
    if let Some(name) = &arguments.delete {
        return delete(&mut store, &arguments.store, name);
    }
    let exports: [(&str, &Option<PathBuf>, Format, Export); 5] = [
        ("--html", &arguments.html, Format::Page, |data| {
            Ok(page(data)?.into_bytes())
        }),
        (
            "--markdown",
            &arguments.markdown,
            Format::Markdown,
            |data| Ok(raidlab_report::markdown(data).into_bytes()),
        ),
        ("--csv", &arguments.csv, Format::Rows, |data| {
            rows(data, |out, rows| write_csv(out, rows))
        }),
        (
            "--members-csv",
            &arguments.members_csv,
            Format::MemberRows,
            |data| rows(data, |out, rows| write_members_csv(out, rows)),
        ),
        (
            "--json-lines",
            &arguments.json_lines,
            Format::JsonLines,
            |data| rows(data, |out, rows| write_json_lines(out, rows)),
        ),
    ];
    let wanted = exports
        .iter()
        .filter_map(|(option, path, format, _)| Some((*option, path.as_deref()?, *format)));
    let mut outputs = vec![("--store", arguments.store.as_path(), Format::Store)];
    outputs.extend(wanted);
    output::check(&outputs)?;
    let _snapshot = store.snapshot()?;
    let data = claims::with_verdicts(&store, &arguments.run)?;
    let exported = outputs.len() > 1 || arguments.parquet.is_some();
    if exported && data.run.finished.is_none() {
        let name = &data.run.name;
        output::say(&format!(
            "warning: run {name} has not come to its end: these are the rows that it has"
        ));
    }
    for (_, path, format, export) in exports {
        if let Some(path) = path {
            output::write_or_print(path, format, &export(&data)?)?;
        }
    }
    if let Some(folder) = &arguments.parquet {
        store.write_parquet(&store.run_by_name(&data.run.name)?, folder)?;
        output::say(&format!("wrote the tables in {}", visible_path(folder)));
    }
    if exported {
        return Ok(());
    }
    output::print(&text(&data))
}

/// Deletes a run, unless it is being measured: the measurement would lose it.
fn delete(store: &mut Store, path: &Path, name: &str) -> Result<(), Failure> {
    let found = store.run_by_name(name)?;
    let unfinished = found.run.finished.is_none();
    let _lock = unfinished.then(|| lock_store(path)).transpose()?;
    store.delete_run(found.id)?;
    let (name, rows) = (found.run.name, found.measurements);
    output::print(&format!("deleted run {name} with its {rows} rows\n"))
}

/// A function that makes the contents of an exported file from a run.
type Export = fn(&RunData) -> Result<Vec<u8>, Failure>;

/// Prints measurements in a format of the store's.
fn rows(
    data: &RunData,
    export: fn(&mut Vec<u8>, &[Measurement]) -> Result<(), ExportError>,
) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    export(&mut bytes, &data.measurements)?;
    Ok(bytes)
}

/// A run's tables, followed by the remarks that their reader must know.
pub fn text(data: &RunData) -> String {
    let mut text = raidlab_report::terminal(data, &output::style());
    for note in data.notes.iter().filter(|note| note.class == REMARK) {
        let _ = write!(text, "\n{}: {}\n", note.title, note.statement);
    }
    text
}

/// Subjects in a line: all of them, or of many the first ones.
fn named(subjects: &[String]) -> String {
    const MOST: usize = 10;
    match subjects.split_at_checked(MOST) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("{} and {} more", first.join(", "), rest.len())
        }
        _ => subjects.join(", "),
    }
}

fn list(store: &Store) -> Result<(), Failure> {
    let runs = store.runs()?;
    if runs.is_empty() {
        let path = store.path().to_owned();
        return Err(StoreError::NoRuns { path }.into());
    }
    let rows = runs.into_iter().map(|found| {
        let state = found.run.finished.as_deref().unwrap_or("not to its end");
        vec![
            found.run.name.clone(),
            found.run.bench.clone(),
            found.measurements.to_string(),
            named(&found.subjects),
            state.to_owned(),
        ]
    });
    let head = ["run", "bench", "rows", "subjects", "finished (UTC)"];
    output::print(&output::table(&head, &[2], rows.collect()))
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn of_many_subjects_the_first_ones_are_named() {
        let subjects = |count: u8| (0..count).map(|it| it.to_string()).collect::<Vec<_>>();
        assert_eq!(named(&subjects(2)), "0, 1");
        assert_eq!(named(&subjects(10)), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9");
        assert!(named(&subjects(81)).ends_with(", 8, 9 and 71 more"));
    }
}
