//! The words in which results are spoken of, by everybody: the readers of
//! tools' output, the store, imports, the audit, reports and all benches.

pub mod fact;
mod operation;

pub use operation::{Operation, UnknownOperation};
