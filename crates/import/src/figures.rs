//! Figures of articles, kept as printed and imported as a run.
//!
//! A file says what machine, subjects and jobs an article had, and for each cell the value and unit
//! as printed, how far they can be trusted, and what the article claims: percents, winners. Tools'
//! output that an article quotes is kept as text and read like any other output. Values become rows
//! in bytes per second or operations per second; what was printed stays beside them as claims.

mod build;
mod commands;
mod schema;
#[cfg(test)]
mod tests;

use crate::{ImportError, ImportOptions, Imported};
use raidlab_data::Entry;
use raidlab_store::{Measurement, PublishedFigure};
use raidlab_units::{line_of, plain_words};
use schema::Document;
use std::sync::LazyLock;

/// The built-in files of figures; other published files are figures of a suite's cells.
fn built_in() -> impl Iterator<Item = &'static Entry> {
    let published = raidlab_data::entries("published").iter();
    published.filter(|entry| is_figures(entry.text))
}

/// The names of all built-in figures.
#[must_use]
pub fn figures() -> Vec<&'static str> {
    built_in().map(|entry| entry.name).collect()
}

/// Imports built-in figures by name.
///
/// # Errors
/// Where there are no figures of that name.
pub fn import_figures(name: &str, options: &ImportOptions) -> Result<Imported, ImportError> {
    let found = built_in().find(|entry| entry.name == name);
    let entry = found.ok_or_else(|| ImportError::NoFigures {
        name: name.to_owned(),
        known: figures().into_iter().map(str::to_owned).collect(),
    })?;
    import(name, entry.text, options)
}

/// Whether a text is a file of figures.
#[must_use]
pub fn is_figures(text: &str) -> bool {
    text.lines().any(|line| {
        let words = line
            .split_once('=')
            .map(|(key, value)| (key.trim(), value.trim()));
        words == Some(("kind", "\"figures\""))
    })
}

/// A figure as an article printed it, for comparison with a row of one's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Printed {
    /// The figure as a row; `published` has what was printed.
    pub row: Measurement,
    /// The fits of modelled disks that this very figure was used for.
    pub fitted: Vec<String>,
}

/// The contents of a file of figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// The name by which it is imported: `unequal-2008`.
    pub name: String,
    /// The title of the comparison, for people.
    pub title: String,
    /// The source of the figures.
    pub source: String,
    /// The figures in the order of subjects, then of jobs.
    pub printed: Vec<Printed>,
}

/// The figures of a file (`kind = "figures"`), cell by cell; `name` is the file's, for
/// errors.
///
/// # Errors
/// Where the text is no such file or is broken.
pub fn read_figures(name: &str, text: &str) -> Result<Figures, ImportError> {
    let document = document(name, text)?;
    let import = build::build(name, &document, &ImportOptions::default())?;
    let rows = import.cells.into_iter().flat_map(|cell| cell.rows);
    let printed = rows.map(|row| Printed {
        fitted: document.fitted(&row),
        row,
    });
    let printed = printed.collect();
    Ok(Figures {
        name: document.name,
        title: document.title,
        source: document.source,
        printed,
    })
}

/// Imports a file of figures.
pub(crate) fn import(
    name: &str,
    text: &str,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    build::build(name, &document(name, text)?, options)
}

fn document(name: &str, text: &str) -> Result<Document, ImportError> {
    toml::from_str(text).map_err(|error| misread(name, text, &error))
}

/// The error of a file of figures that is not read, with its line.
pub(crate) fn misread(name: &str, text: &str, error: &toml::de::Error) -> ImportError {
    let span = error.span().unwrap_or(0..0);
    ImportError::Figures {
        name: name.to_owned(),
        line: line_of(text, span.start),
        problem: plain_words(error.message(), text.get(span).unwrap_or_default()),
    }
}

/// Adds the 2015 article's figure of a cell to a row of its logs.
pub(crate) fn attach(row: &mut Measurement) {
    static ARTICLE: LazyLock<Option<Imported>> =
        LazyLock::new(|| import_figures("mirror-2015-article", &ImportOptions::default()).ok());
    let Some(article) = ARTICLE
        .as_ref()
        .filter(|article| article.run.suite == row.suite)
    else {
        return;
    };
    let printed = article.cells.iter().flat_map(|cell| &cell.rows);
    let same = |printed: &&Measurement| {
        (&printed.subject, &printed.job, printed.op) == (&row.subject, &row.job, row.op)
    };
    let found: Vec<PublishedFigure> = printed
        .filter(same)
        .flat_map(|printed| printed.published.clone())
        .collect();
    row.published.extend(found);
}
