//! Standard output, and files as [`raidlab_store::output`] writes them.

use crate::failure::{Failure, Kind};
use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use console::Term;
use indicatif::{ProgressBar, ProgressStyle};
use raidlab_report::Style;
use raidlab_store::output::{self, Format};
use raidlab_store::text::{visible_json, visible_lines, visible_path, visible_styled};
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;

/// Prints to standard output, all at once. Characters that a terminal would obey are shown, but for
/// colours: names of arrays and disks, texts of files and tools go through here.
///
/// # Errors
/// When standard output does not take it.
pub fn print(text: &str) -> Result<(), Failure> {
    print_bytes(visible_styled(text).as_bytes())
}

/// A value as one line of JSON, with the end of the line.
///
/// # Errors
/// When it has no form in JSON.
pub fn json(value: &impl Serialize) -> Result<String, Failure> {
    let line = serde_json::to_string(value).map_err(Failure::run)?;
    Ok(format!("{}\n", visible_json(&line)))
}

/// Prints bytes, which need not be text, as [`print()`] does.
///
/// # Errors
/// When standard output does not take it.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(bytes)
        .and_then(|()| stdout.flush())
        .map_err(Failure::write_output)
}

/// Prints a message on standard error, which may be closed.
pub fn say(text: &str) {
    writeln!(io::stderr().lock(), "{}", visible_lines(text)).ok();
}

/// Asks on the terminal whether to go on, before something is lost. `help` says how to consent
/// where there is no terminal to ask at.
///
/// # Errors
/// When there is no consent.
pub fn consent(question: &str, help: &str) -> Result<(), Failure> {
    let terminal = Term::stderr();
    if !terminal.is_term() {
        return Err(Failure::words(Kind::Usage, question).help(help));
    }
    say(question);
    say("type `yes` to go on:");
    match terminal.read_line() {
        Ok(answer) if answer.trim() == "yes" => Ok(()),
        _ => {
            let words = "no consent; nothing was done";
            Err(Failure::words(Kind::Interrupted, words))
        }
    }
}

/// A progress bar of this length.
pub fn bar(length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    // A template that is wrong would be a defect; the default serves.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// The style of tables on this standard output.
pub fn style() -> Style {
    let terminal = Term::stdout();
    let attended = terminal.is_term();
    Style {
        width: attended.then(|| terminal.size().1),
        colour: attended && console::colors_enabled(),
        plain: std::env::var_os("TERM").is_some_and(|name| name == "dumb"),
    }
}

/// A table in the same look as the report's; the columns named in `right` are
/// numbers.
pub fn table(head: &[&str], right: &[usize], rows: Vec<Vec<String>>) -> String {
    let style = style();
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    table.force_no_tty();
    match style.width {
        Some(width) => table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    let cells = |row: Vec<String>| {
        row.into_iter().enumerate().map(|(column, text)| {
            let alignment = if right.contains(&column) {
                CellAlignment::Right
            } else {
                CellAlignment::Left
            };
            Cell::new(text).set_alignment(alignment)
        })
    };
    let head = head.iter().map(|&name| name.to_owned()).collect();
    table.set_header(cells(head).collect::<Vec<_>>());
    for row in rows {
        table.add_row(cells(row).collect::<Vec<_>>());
    }
    let text = format!("{}\n", table.trim_fmt());
    if style.plain {
        text.replace('─', "-")
    } else {
        text
    }
}

/// Writes a file and says so; `-` is standard output.
///
/// # Errors
/// When it cannot be written.
pub fn write_or_print(path: &Path, format: Format, bytes: &[u8]) -> Result<(), Failure> {
    if is_standard_output(path) {
        return print_bytes(bytes);
    }
    output::write(path, format, bytes)?;
    say(&format!("wrote {}", visible_path(path)));
    Ok(())
}

/// Whether this path stands for standard output where a file is asked for: `-`.
pub fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Checks, before anything is done, that files of these formats may stand where these options
/// say. Of a store it only checks that none of the others has its name: the store itself
/// judges its contents.
///
/// # Errors
/// When something else stands there, or two of them are one file.
pub fn check(outputs: &[(&str, &Path, Format)]) -> Result<(), Failure> {
    let named: Vec<_> = outputs
        .iter()
        .map(|(option, path, _)| (*option, *path))
        .collect();
    output::check_distinct(&named)?;
    for (_, path, format) in outputs {
        if !is_standard_output(path) && *format != Format::Store {
            output::check(path, *format)?;
        }
    }
    Ok(())
}
