//! The made-up runs of `tests/sample`, for unit tests.

#[path = "../tests/sample/mod.rs"]
mod made_up;

use crate::data::RunData;
use raidlab_store::{Measurement, Operation};

/// The whole run of a model.
pub(crate) fn data() -> RunData {
    RunData {
        run: made_up::run(),
        settings: made_up::settings(),
        measurements: made_up::measurements(),
        notes: made_up::notes(),
        observations: Vec::new(),
        commands: Vec::new(),
        events: Vec::new(),
        series: Vec::new(),
        findings: Vec::new(),
    }
}

/// The whole run of real machines.
pub(crate) fn bench() -> RunData {
    use made_up::bench;
    RunData {
        run: bench::run(),
        settings: Vec::new(),
        measurements: bench::measurements(),
        notes: bench::notes(),
        observations: bench::observations(),
        commands: bench::commands(),
        events: bench::events(),
        series: bench::series(),
        findings: bench::findings(),
    }
}

/// A predicted random read on `subject` as job `sequence + 1`.
pub(crate) fn cell(subject: &str, sequence: u32) -> Measurement {
    let mut found = data().measurements;
    found.retain(|m| m.job == "9" && m.op == Operation::Read && m.fit == "strict");
    let mut m = found.swap_remove(0);
    m.subject = subject.to_owned();
    m.sequence = sequence;
    m.job = (sequence + 1).to_string();
    m
}
