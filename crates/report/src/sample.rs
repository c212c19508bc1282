//! The made-up runs of `tests/sample`, for unit tests.

#[path = "../tests/sample/mod.rs"]
mod made_up;

use raidlab_store::{Measurement, Operation};

pub(crate) use made_up::bench::data as bench;
pub(crate) use made_up::data;

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
