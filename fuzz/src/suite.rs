//! Any text is read as a suite, or refused with a line that it has; and what
//! is read can be planned for every one of its subjects.

use crate::text;
use raidlab_lab::{Choices, LoadError, Suite};
use raidlab_units::Bytes;
use std::path::Path;

const DISK: Bytes = Bytes(4_000_787_030_016);

/// Reads the text that these bytes begin with.
pub fn run(bytes: &[u8]) {
    let text = text(bytes);
    match Suite::parse("suite", text, Path::new("")) {
        Ok(suite) => plan(&suite),
        Err(LoadError::File(error)) if error.file == "suite" => {
            assert!(error.line <= text.lines().count() + 1, "{error}");
        }
        Err(error) => drop(error.to_string()),
    }
}

fn plan(suite: &Suite) {
    assert!(!suite.plan().is_empty());
    for experiment in suite.experiments(&suite.subjects, &Choices::default()) {
        assert!(!experiment.plan().is_empty());
        // Most jobs of most texts do not fit; that must be an error, no more.
        let _ = experiment.check_capacity(&[DISK]);
    }
}
