//! The vocabulary of results, shared by the readers of tools' output, the store, imports, the
//! audit, reports and all benches.

pub mod fact;
mod operation;

pub use operation::{Operation, UnknownOperation};

use serde::{Deserialize, Serialize};

/// A fact that a machine, an array or a tool reports about itself, under a name of
/// the shared vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// A dotted name, most of them from [`mod@fact`].
    pub name: String,
    /// The value as text, numbers in decimal digits.
    pub value: String,
    /// The value's unit: `bytes`, `Hz`; empty for words and counts.
    pub unit: String,
    /// The file or command that reported it; may be empty.
    pub source: String,
}
