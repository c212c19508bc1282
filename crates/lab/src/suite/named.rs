//! Errors of names in a suite that lead to other files.

use crate::catalogue::{Kind, LoadError};
use crate::document::Document;
use raidlab_units::PathError;
use std::ops::Range;

/// Turns the error of a name or path that leads nowhere into the suite's error, at its line, with
/// the remedy for files of that kind.
pub(super) fn named_at(
    document: &Document,
    span: Range<usize>,
    kind: Kind,
    error: LoadError,
) -> LoadError {
    match error.named(kind) {
        LoadError::Unknown { what, name, known } => {
            LoadError::from(document.unknown(span, what, &name, known)).named(kind)
        }
        LoadError::Read(PathError { path, source, .. }) => {
            let what = format!("cannot read {}: {source}", path.display());
            let remedy = "paths start from the suite's folder";
            document.invalid(span, what, remedy).into()
        }
        file => file,
    }
}
