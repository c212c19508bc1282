//! Reading a job of another tool than fio.

mod words;

use super::Work;
use super::matrix::Combination;
use crate::document::{Document, FileError, Problem};
use crate::placeholder;
use toml::Spanned;

/// The tools besides fio.
const TOOLS: [&str; 3] = ["bonnie++", "iozone", "dd"];

/// A tool and its arguments as written.
#[derive(Clone, Copy)]
pub(super) struct RawTool<'a> {
    pub(super) name: &'a Spanned<String>,
    pub(super) arguments: Option<&'a Spanned<Vec<Spanned<String>>>>,
}

/// Checks the tool's name and its arguments' placeholders.
///
/// # Errors
/// An unknown tool or placeholder, no arguments, or one that does more than shape the
/// load.
pub(super) fn read_tool(
    document: &Document,
    raw: RawTool<'_>,
    combination: &Combination,
) -> Result<Work, FileError> {
    let name = raw.name.get_ref().as_str();
    if !TOOLS.contains(&name) {
        let problem = Problem::UnknownName {
            what: "the tool",
            name: name.to_owned(),
            known: TOOLS.map(str::to_owned).to_vec(),
        };
        return Err(document.error(raw.name.span(), problem));
    }
    let Some(written) = raw.arguments else {
        let field = "arguments".to_owned();
        let remedy = "write the tool's arguments one by one: [\"-d\", \"{target}\"]".to_owned();
        return Err(document.error(raw.name.span(), Problem::Missing { field, remedy }));
    };
    let mut arguments = Vec::new();
    for argument in written.get_ref() {
        let text = combination.apply(argument.get_ref());
        placeholder::example(&text).map_err(|error| {
            document.invalid(argument.span(), error.to_string(), placeholder::REMEDY)
        })?;
        arguments.push(text);
    }
    words::check(name, &arguments).map_err(|(index, (what, remedy))| {
        document.invalid(written.get_ref()[index].span(), what, remedy)
    })?;
    let name = name.to_owned();
    Ok(Work::Tool { name, arguments })
}
