//! Names in a suite that lead to other files.

use crate::catalogue::LoadError;
use crate::document::Document;
use raidlab_units::PathError;
use std::ops::Range;

/// A name or path that leads nowhere is the suite's mistake, at its line.
pub(super) fn named_at(document: &Document, span: Range<usize>, error: LoadError) -> LoadError {
    match error {
        LoadError::Unknown { what, name, known } => {
            document.unknown(span, what, &name, known).into()
        }
        LoadError::Read(PathError { path, source, .. }) => {
            let what = format!("cannot read {}: {source}", path.display());
            let remedy = "paths start from the suite's folder";
            document.invalid(span, what, remedy).into()
        }
        file => file,
    }
}
