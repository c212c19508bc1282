//! What every command that speaks of runs must have: where they are kept, and remarks.

use raidlab_store::AccuracyNote;

/// Where runs are kept when nothing else is said.
pub const STORE: &str = "raidlab.db";

/// The class of notes that speak of a whole run.
pub const REMARK: &str = "remark";

/// A remark on the whole run.
pub fn remark(title: &str, statement: String) -> AccuracyNote {
    AccuracyNote {
        class: REMARK.to_owned(),
        title: title.to_owned(),
        statement,
        ..AccuracyNote::default()
    }
}
