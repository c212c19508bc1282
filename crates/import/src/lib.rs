//! Results of others as runs of our own: logs, tool output, figures of articles.

#[cfg(test)]
mod blank;
mod convert;

pub use convert::{observations, rows};

/// The bench of imported runs.
pub const BENCH: &str = "import";
