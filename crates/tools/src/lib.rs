//! Benchmark tools: their argument vectors and the reading of their output.
//!
//! It knows fio, bonnie++, iozone and dd, of every known version and system. Nothing here
//! runs anything or reads a file: texts come in, and argument vectors and a [`ToolResult`] go
//! out, the same for every tool: bytes, bytes per second, nanoseconds, and no number where
//! the tool gave none.

mod asked;
pub mod bonnie;
pub mod dd;
mod error;
mod facts;
pub mod fio;
#[cfg(test)]
mod fuzz_tests;
pub mod iozone;
mod number;
mod result;
mod title;
mod tool;
mod words;

pub use asked::{AskedOption, Difference, Verdict};
pub use error::ParseError;
pub use facts::Facts;
pub use raidlab_results::Operation;
pub use result::{
    DiskCounters, DiskUse, LatencyKind, Part, Reported, ReportedLatency, ReportedOption,
    ReportedValue, ToolResult,
};
pub use title::Title;
pub use tool::{Benchmark, Call, Format, Place, Tool, UnknownTool, detect, detect_all};
pub use words::Wrong;
