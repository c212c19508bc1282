//! Constants of every command that handles runs: the default store, and remarks.

use raidlab_store::AccuracyNote;

/// The default path of the store of runs.
pub const STORE: &str = "raidlab.db";

/// The class of notes about a whole run.
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
