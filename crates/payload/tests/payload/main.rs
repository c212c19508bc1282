//! The steps on bytes, against naive code.

mod refusals;
mod steps;
#[expect(dead_code, reason = "tests of other crates share it")]
mod vectors;
