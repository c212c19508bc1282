//! Imports of foreign results as runs: logs, tool output, figures of articles.
//!
//! [`import_file`] recognizes the kind of a text, and returns cells and records for a store: output
//! of fio (JSON, terse, text), bonnie++ (CSV, table), iozone or dd; a log of a shell script with
//! fio's text between looks at the array, as the 2015 comparisons published them; or a file of
//! figures (`kind = "figures"`), some of which are built in ([`figures()`]).

mod convert;
#[cfg(test)]
mod corpus;
mod error;
mod figures;
mod given;
mod groups;
mod imported;
mod log;
mod members;
mod output;
mod suite;
mod surroundings;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use convert::{observations, rows};
pub use error::ImportError;
pub use figures::{Figures, Printed, figures, import_figures, is_figures, read_figures};
pub use given::{FactError, Given, check_once, how_to_give, read_facts, short_facts};
pub use imported::{ImportOptions, Imported, RunHead, load_option};

/// The bench of imported runs.
pub const BENCH: &str = "import";

/// Imports a text; `name` is its file's name, for errors, for sources, and for
/// the subject where neither options nor text name it.
///
/// # Errors
/// Where the text is of no known kind, is broken, or has no result in it.
pub fn import_file(
    name: &str,
    text: &str,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    // Shells of Windows begin the files that they write with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = &*unquoted(text);
    if figures::is_figures(text) {
        return figures::import(name, text, options);
    }
    let mut formats = raidlab_tools::detect_all(text).into_iter();
    let first = formats.next().ok_or_else(|| ImportError::Unknown {
        name: name.to_owned(),
    })?;
    let mut imported = import_format(name, text, first, options)?;
    // A script's output may hold that of several tools.
    for format in formats {
        match import_format(name, text, format, options) {
            Ok(more) => imported = imported.join(more),
            Err(error) => {
                let (tool, why) = (format.tool.name(), raidlab_units::in_one_line(&error));
                let note = format!("{name}: output of {tool} in it was left out: {why}");
                imported.notes.push(note);
            }
        }
    }
    Ok(imported)
}

/// The text without a prefix that all of its lines have, such as that of code in Markdown (four
/// blanks) or of a quotation (`> `).
fn unquoted(text: &str) -> Cow<'_, str> {
    let is_mark = |letter: char| matches!(letter, '>' | ' ' | '\t');
    let prefix = |line: &str| line.find(|letter| !is_mark(letter));
    let mut lines = text.lines().filter_map(|line| Some(&line[..prefix(line)?]));
    let Some(first) = lines.next() else {
        return text.into();
    };
    let common = lines.fold(first, |common, other| {
        let same = common.chars().zip(other.chars());
        let length = same.take_while(|(one, two)| one == two);
        &common[..length.map(|(letter, _)| letter.len_utf8()).sum()]
    });
    if common.is_empty() {
        return text.into();
    }
    let lines = text.split_inclusive('\n');
    // An empty line may lack the end of the prefix.
    let without = |line: &str| {
        line.strip_prefix(common)
            .unwrap_or_else(|| line.trim_start_matches(is_mark))
            .to_owned()
    };
    lines.map(without).collect::<String>().into()
}

/// Imports the parts of a text that are in one format.
fn import_format(
    name: &str,
    text: &str,
    format: raidlab_tools::Format,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    if format == raidlab_tools::fio::HUMAN && log::is_log(text) {
        return log::import(name, text, options);
    }
    // The output of each run in the file is joined as if each had its own file.
    let (runs, notes) = format.tool.runs(&format, text);
    let mut imports = runs
        .iter()
        .map(|run| output::import(name, run, format, options));
    let first = imports.next().unwrap_or_else(|| {
        let name = name.to_owned();
        Err(ImportError::Empty { name })
    });
    let mut imported = imports.try_fold(first?, |all, one| Ok::<_, ImportError>(all.join(one?)))?;
    let notes = notes.iter().map(|note| format!("{name}: {note}"));
    imported.notes.extend(notes);
    Ok(imported)
}

/// A file's name without its folders and its last ending.
#[must_use]
pub fn file_stem(name: &str) -> String {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    if stem.is_empty() { file } else { stem }.to_owned()
}

/// A job's name that is unique in its file: `read`, `read #2`.
fn numbered(label: &str, before: usize) -> String {
    if before == 0 {
        label.to_owned()
    } else {
        format!("{label} #{}", before + 1)
    }
}
