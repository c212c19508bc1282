//! Benchmark tools: their argument vectors and the reading of their output.
//!
//! fio, bonnie++, iozone and dd, of every version and system that is known.
//! Nothing here runs anything or reads a file: texts come in, and argument
//! vectors and a [`ToolResult`] go out, the same for every tool: bytes, bytes
//! per second, nanoseconds, and no number where the tool gave none.

mod error;
pub mod fio;
mod number;
mod operation;
mod result;
mod tool;

pub use error::ParseError;
pub use operation::{Operation, UnknownOperation};
pub use result::{
    DiskCounters, DiskUse, Fact, FactValue, Latency, LatencyKind, Part, Point, ReportedOption,
    Series, SeriesKind, ToolResult,
};
pub use tool::{Needs, Tool, UnknownTool, VersionCommand};

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
}
