//! Which tool's output a text is.

use crate::error::ParseError;
use crate::result::ToolResult;
use crate::{Tool, bonnie, dd, fio, iozone};
use serde::{Deserialize, Serialize};

/// A form of a tool's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// fio `--output-format=json` and `json+`.
    FioJson,
    /// fio `--minimal`, `--output-format=terse`.
    FioTerse,
    /// fio's text for people.
    FioHuman,
    /// bonnie++'s lines of CSV.
    BonnieCsv,
    /// bonnie++'s tables.
    BonnieTable,
    /// iozone's text: table, throughput, blocks for spreadsheets.
    IozoneText,
    /// dd's last lines.
    DdText,
}

impl Format {
    /// The tool that writes it.
    #[must_use]
    pub const fn tool(self) -> Tool {
        match self {
            Self::FioJson | Self::FioTerse | Self::FioHuman => Tool::Fio,
            Self::BonnieCsv | Self::BonnieTable => Tool::Bonnie,
            Self::IozoneText => Tool::Iozone,
            Self::DdText => Tool::Dd,
        }
    }
}

/// Which tool's output a text is, and in which form; `None` where it is none's.
/// The forms that are hardest to take for another's are tried first: text with
/// dd's records in it may be a log of anything.
#[must_use]
pub fn detect(text: &str) -> Option<(Tool, Format)> {
    let is_fio_json = text.contains("\"jobs\"") || text.contains("\"client_stats\"");
    let format = if is_fio_json && text.lines().any(|line| line.trim_start().starts_with('{')) {
        Format::FioJson
    } else if text.lines().any(fio::is_terse_line) {
        Format::FioTerse
    } else if fio::human::is_in(text) {
        Format::FioHuman
    } else if iozone::is_in(text) {
        Format::IozoneText
    } else if text.lines().any(bonnie::is_csv_line) {
        Format::BonnieCsv
    } else if bonnie::is_table(text) {
        Format::BonnieTable
    } else if dd::is_in(text) {
        Format::DdText
    } else {
        return None;
    };
    Some((format.tool(), format))
}

/// Reads a tool's output in whichever form of this tool it is.
///
/// # Errors
/// Where it is none, or cannot be read.
pub fn parse(tool: Tool, text: &str) -> Result<ToolResult, ParseError> {
    match tool {
        Tool::Fio => match detect(text) {
            Some((_, Format::FioTerse)) => fio::parse_terse(text),
            Some((_, Format::FioHuman)) => fio::human::parse(text),
            _ => fio::parse_json(text),
        },
        Tool::Bonnie => bonnie::parse(text),
        Tool::Iozone => iozone::parse(text),
        Tool::Dd => dd::parse(text),
    }
}

/// Reads a text that is known to be of a form.
///
/// # Errors
/// Where it is not, or cannot be read.
pub fn parse_as(format: Format, text: &str) -> Result<ToolResult, ParseError> {
    match format {
        Format::FioJson => fio::parse_json(text),
        Format::FioTerse => fio::parse_terse(text),
        Format::FioHuman => fio::human::parse(text),
        Format::BonnieCsv => bonnie::parse_csv(text),
        Format::BonnieTable => bonnie::parse_table(text),
        Format::IozoneText => iozone::parse(text),
        Format::DdText => dd::parse(text),
    }
}
