//! Reading a job whose tool is called with words as they are.

use super::Work;
use super::matrix::Combination;
use crate::document::{Document, FileError};
use crate::placeholder;
use raidlab_tools::Tool;
use toml::Spanned;

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
    let called = || Tool::all().iter().filter(|tool| !tool.has_jobs());
    let Some(tool) = called().find(|tool| tool.name() == name) else {
        let known = called().map(|tool| tool.name());
        return Err(document.unknown(raw.name.span(), "the tool", name, known));
    };
    let Some(written) = raw.arguments else {
        let remedy = "write the tool's arguments one by one: [\"-d\", \"{target}\"]";
        return Err(document.missing(raw.name.span(), "arguments", remedy));
    };
    let mut arguments = Vec::new();
    for argument in written.get_ref() {
        let text = combination.apply(argument.get_ref());
        placeholder::example(&text).map_err(|error| {
            document.invalid(argument.span(), error.to_string(), placeholder::REMEDY)
        })?;
        arguments.push(text);
    }
    tool.check(&arguments).map_err(|(index, (what, remedy))| {
        document.invalid(written.get_ref()[index].span(), what, remedy)
    })?;
    let name = name.to_owned();
    Ok(Work::Tool { name, arguments })
}
