//! Checks of values that apply to all fields of all files.
//!
//! Files may come from anywhere, and their values end up in names of arrays, pools and files, in
//! arguments of programs that run as root, and on terminals. So control characters, line breaks in
//! one-line values, names that a program would take for an option or a path, and numbers that are
//! not finite are refused before the fields are read.

use super::{Document, FileError};
use raidlab_store::text::acts;
use raidlab_units::lists;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Fields that may have several lines.
const LINES: &str = "description fio fio_job fitted_on note reason remark says source sources \
    statement text";

/// Fields that hold names.
const NAMES: &str = "channel drive job name round suite";

/// Fields that hold places: files, disks, machines.
const PLACES: &str = "destination disk disks fio_file host published subject subjects";

/// The largest number of letters in a name.
const LONGEST_NAME: usize = 100;

/// The largest number of bytes in one text.
const LONGEST_TEXT: usize = 1 << 20;

/// An error of a value, and the remedy.
type Wrong = (String, &'static str);

impl Document {
    /// Refuses values that no file may have, with file and line. A text that is no TOML has none.
    pub(crate) fn check_values(&self) -> Result<(), FileError> {
        match DeTable::parse(&self.text) {
            Ok(table) => self.check_table(table.get_ref(), false),
            Err(_) => Ok(()),
        }
    }

    fn check_table(&self, table: &DeTable<'_>, lines: bool) -> Result<(), FileError> {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            self.hold(key.span(), one_line(name))?;
            let lines = lines || lists(LINES, name);
            if let (true, DeValue::String(text)) = (lists(NAMES, name), value.get_ref()) {
                self.hold(value.span(), check_name(text))?;
            }
            if lists(PLACES, name) {
                let items = value.get_ref().as_array();
                let places = items.map_or(std::slice::from_ref(value), |items| &items[..]);
                for place in places {
                    let text = place.get_ref().as_str().unwrap_or_default();
                    self.hold(place.span(), check_place(text))?;
                }
            }
            self.check_value(value, lines)?;
        }
        Ok(())
    }

    fn check_value(&self, value: &Spanned<DeValue<'_>>, lines: bool) -> Result<(), FileError> {
        match value.get_ref() {
            DeValue::String(text) if lines => self.hold(value.span(), several_lines(text)),
            DeValue::String(text) => self.hold(value.span(), one_line(text)),
            DeValue::Float(number) => {
                let number = number.as_str().replace('_', "");
                let finite = number.parse::<f64>().is_ok_and(f64::is_finite);
                let wrong = (format!("`{number}` is no number"), "write one with an end");
                self.hold(value.span(), if finite { Ok(()) } else { Err(wrong) })
            }
            DeValue::Array(items) => items
                .iter()
                .try_for_each(|item| self.check_value(item, lines)),
            DeValue::Table(table) => self.check_table(table, lines),
            _ => Ok(()),
        }
    }

    /// Turns a wrong value at a place into an error.
    pub(crate) fn hold(
        &self,
        span: Range<usize>,
        found: Result<(), Wrong>,
    ) -> Result<(), FileError> {
        found.map_err(|(what, remedy)| self.invalid(span, what, remedy))
    }
}

fn several_lines(text: &str) -> Result<(), Wrong> {
    shown(text, |letter| matches!(letter, '\n' | '\t'))
}

fn one_line(text: &str) -> Result<(), Wrong> {
    shown(text, |_| false)
}

fn shown(text: &str, may_act: impl Fn(char) -> bool) -> Result<(), Wrong> {
    if text.len() > LONGEST_TEXT {
        let what = format!("a text of {} bytes", text.len());
        return Err((what, "a mebibyte is the longest"));
    }
    match text
        .chars()
        .find(|&letter| acts(letter) && !may_act(letter))
    {
        Some(letter) => Err((
            format!("the text has the character {letter:?}"),
            "write what can be seen, on one line",
        )),
        None => Ok(()),
    }
}

/// Checks a place: no program may take it for an option.
fn check_place(place: &str) -> Result<(), Wrong> {
    if place.starts_with('-') {
        let what = format!("`{place}` begins as an option");
        return Err((what, "write ./ before a path that begins so"));
    }
    Ok(())
}

/// Checks that a name differs from known ones in more than capital letters: readers would take them
/// for one, and so do file systems that make no difference. A known name comes with its place in
/// words, as ` on line 3`, or empty.
pub(crate) fn check_case<'a>(
    what: &str,
    name: &str,
    mut known: impl Iterator<Item = (&'a str, String)>,
) -> Result<(), Wrong> {
    let lower = name.to_lowercase();
    match known.find(|(other, _)| *other != name && other.to_lowercase() == lower) {
        Some((other, place)) => Err((
            format!("{what} `{name}` and `{other}`{place} differ in capital letters alone"),
            "write both alike, or give one of them another name",
        )),
        None => Ok(()),
    }
}

/// Checks a name: no program may take it for an option or a path, and it is not empty.
pub(crate) fn check_name(name: &str) -> Result<(), Wrong> {
    let wrong = |what: &str, remedy| Err((format!("the name `{name}` {what}"), remedy));
    if name.trim() != name || name.is_empty() {
        return wrong("is empty, or begins or ends with a blank", "write a word");
    }
    if name.chars().count() > LONGEST_NAME {
        let what = format!("a name of {} letters", name.chars().count());
        return Err((what, "100 letters are the longest"));
    }
    if name.starts_with(['-', '.']) {
        return wrong(
            "begins as an option or a hidden file",
            "begin with a letter or a digit",
        );
    }
    if name.contains(['/', '\\']) {
        return wrong("is a path", "write it without slashes");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Document;

    fn check_values(file: &str, text: &str) -> Result<(), crate::FileError> {
        let (file, text) = (file.to_owned(), text.to_owned());
        Document { file, text }.check_values()
    }

    #[test]
    fn what_acts_or_is_no_name_is_refused_at_its_place() {
        for (text, expected) in [
            ("name = \"md\"\ndescription = \"\"\"a\nb\tc\"\"\"", None),
            ("[sources]\nchunk = \"a\\nb\"", None),
            (
                "title = \"a\\u001b[2J\"",
                Some("f:1: title: the text has the character '\\u{1b}'"),
            ),
            (
                "a = 1\ntitle = \"a\\nb\"",
                Some("f:2: title: the text has the character '\\n'"),
            ),
            ("disks = [\"a\", \"b\\u0000\"]", Some("f:1: disks[2]: ")),
            (
                "[[step]]\njob = \"-x\"",
                Some("f:2: step[1].job: the name `-x` begins as an option"),
            ),
            (
                "name = \"../x\"",
                Some("f:1: name: the name `../x` begins as"),
            ),
            (
                "name = \"a/b\"",
                Some("f:1: name: the name `a/b` is a path"),
            ),
            ("name = \"\"", Some("f:1: name: the name `` is empty")),
            ("x = { \"a\\u202eb\" = 1 }", Some("f:1: x")),
            ("x = [1.5, nan]", Some("f:1: x[2]: `nan` is no number")),
            ("x = -inf", Some("f:1: x: `-inf` is no number")),
            ("x = 1e400", Some("f:1: x: `1e400` is no number")),
            (
                "destination = \"-oProxyCommand=x\"",
                Some("f:1: destination: `-oProxyCommand=x` begins"),
            ),
            (
                "disks = [\"a\", \"--x\"]",
                Some("f:1: disks[2]: `--x` begins as an option"),
            ),
            ("not = = toml", None),
        ] {
            let found = check_values("f", text).err().map(|error| error.to_string());
            match (&found, expected) {
                (Some(found), Some(expected)) => assert!(found.starts_with(expected), "{found}"),
                _ => assert_eq!(found.as_deref(), expected, "{text}"),
            }
        }
    }

    #[test]
    fn texts_and_names_have_an_end() {
        let long = |letters: usize| "x".repeat(letters);
        check_values("f", &format!("name = \"{}\"", long(100))).expect("as long as may be");
        check_values("f", &format!("name = \"{}\"", long(101))).expect_err("longer");
        check_values("f", &format!("note = \"{}\"", long((1 << 20) + 1))).expect_err("longer");
    }
}
