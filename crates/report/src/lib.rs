//! Tables, charts and the one-file HTML report.
//!
//! A report is made from a [`RunData`] alone and knows nothing of the bench it comes from: [`html`]
//! is one offline page, [`terminal`] and [`markdown`] are the same tables as text, and [`compare`]
//! compares runs. `compute` computes every number, the others only print. The audit's results are
//! read from the run's findings: a figure with a fatal one is struck out everywhere and takes part
//! in no comparison.

// The examples, which know this crate by its name, share the made-up runs of the tests.
#[cfg(test)]
extern crate self as raidlab_report;

mod chart;
mod compare;
mod compute;
mod data;
mod format;
mod html;
mod markdown;
mod table;
mod terminal;

#[cfg(test)]
mod background_tests;
#[cfg(test)]
mod grid_tests;
#[cfg(test)]
mod sample;

pub use compare::{
    ALL_CLASSES, Agreement, AgreementCell, AgreementRow, Answer, BeyondCell, Bound, BoundError,
    ClassAgreement, ComparedCell, ComparedRow, ComparedRun, ComparedVerdict, Difference,
    MemberCounts, RunComparison, compare,
};
pub use data::RunData;
pub use html::{ReportError, html};
pub use markdown::{escaped, markdown};
pub use raidlab_store::AccuracyNote;
pub use terminal::{
    Style, accuracy_table, findings, published_table, result_tables, summary, terminal,
};
