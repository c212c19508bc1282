//! The raidlab command.
fn main() {}
