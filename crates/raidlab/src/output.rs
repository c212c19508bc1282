//! Standard output and files.
//!
//! A file is written beside its place under another name and renamed when all
//! of it is on the disk, so that nobody ever sees half of one; whatever stood
//! there before stays until then.

use crate::failure::Failure;
use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use console::Term;
use raidlab_report::Style;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Prints to standard output, all at once.
///
/// # Errors
/// When standard output does not take it.
pub fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// As [`print()`], for what need not be text.
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

/// Says something on standard error, which may be closed.
pub fn say(text: &str) {
    writeln!(io::stderr().lock(), "{text}").ok();
}

/// How tables are to be printed on this standard output.
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

/// Checks that `path` can be written, without changing what is there.
///
/// # Errors
/// When [`write()`] would fail.
pub fn check(path: &Path) -> Result<(), Failure> {
    place(path)
        .and_then(|place| match place {
            Place::Special(special) => fs::OpenOptions::new().write(true).open(special).map(drop),
            Place::File(file) => temporary(&file).map(drop),
        })
        .map_err(|source| Failure::write_file(path, source))
}

/// Writes a file, whole or not at all.
///
/// # Errors
/// When it cannot be written; an older file is then still there.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    place(path)
        .and_then(|place| match place {
            Place::Special(special) => fs::OpenOptions::new()
                .write(true)
                .open(special)
                .and_then(|mut special| special.write_all(bytes)),
            Place::File(file) => {
                let mut whole = temporary(&file)?;
                whole.write_all(bytes)?;
                whole.as_file().sync_all()?;
                whole.persist(&file).map(drop).map_err(|error| error.error)
            }
        })
        .map_err(|source| Failure::write_file(path, source))
}

/// Writes a file and says so; `-` is standard output.
///
/// # Errors
/// When it cannot be written.
pub fn write_or_print(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if path == Path::new("-") {
        return print_bytes(bytes);
    }
    write(path, bytes)?;
    say(&format!("wrote {}", path.display()));
    Ok(())
}

/// Where bytes go.
enum Place {
    /// A file, or a name for one.
    File(PathBuf),
    /// A pipe or a device, which no file must replace.
    Special(PathBuf),
}

fn place(path: &Path) -> io::Result<Place> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        // A symbolic link stays one.
        Ok(found) if found.is_file() => fs::canonicalize(path).map(Place::File),
        Ok(_) => Ok(Place::Special(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Place::File(path.to_owned())),
        Err(error) => Err(error),
    }
}

/// An empty file beside `path`, with the permissions of any new file.
fn temporary(path: &Path) -> io::Result<NamedTempFile> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".raidlab-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::{check, write};
    use std::fs;
    use std::path::Path;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.html");
        check(&path).expect("writable");
        assert!(!path.exists(), "a check leaves nothing");
        write(&path, b"old").expect("written");
        write(&path, b"new").expect("replaced");
        assert_eq!(fs::read(&path).expect("there"), b"new");
        assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_stay_what_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        write(&link, b"new").expect("written");
        assert_eq!(fs::read(&file).expect("there"), b"new");
        assert!(link.is_symlink());
        write(Path::new("/dev/null"), b"gone").expect("written");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error() {
        let failure = write(Path::new("/dev/full"), b"bytes").expect_err("full");
        assert!(failure.to_string().contains("free some space"), "{failure}");
    }

    #[test]
    fn folders_that_are_not_there_are_an_error_before_anything_is_done() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(check(folder.path()).is_err());
        assert!(check(&folder.path().join("none/report.html")).is_err());
    }
}
