//! fio: its kinds of output, its logs, and whether it
//! took the options that it was given.

pub mod human;
mod json;
mod json_latency;
mod json_node;
mod log;
mod options;
mod terse;

pub use json::parse as parse_json;
pub use log::{LogUnits, parse_log};
pub use options::{AskedOption, Difference, Verdict, asked_options, check_options};
pub use raidlab_workload::canonical_name;
pub use terse::parse as parse_terse;

pub(crate) use terse::is_line as is_terse_line;

/// The first two numbers of a version: (2, 1) of `fio-2.1.11`, (3, 36) of
/// `fio-3.36-112-gabcdef`.
pub(crate) fn version_numbers(version: &str) -> Option<(u32, u32)> {
    let digits = version.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let mut numbers = digits.split(['.', '-']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The line on standard error with which fio leaves a job that does not end: five minutes
/// after its time it stops waiting (`FIO_REAP_TIMEOUT` of backend.c), and goes on to
/// report it, with success, as if it had ended.
#[must_use]
pub fn given_up(stderr: &str) -> Option<&str> {
    let mut lines = stderr.lines().map(str::trim);
    lines.find(|line| line.starts_with("fio: job '") && line.contains("appears to be stuck"))
}

/// `fio-3.33` or `fio 2.0.10` without the name.
pub(crate) fn version_text(text: &str) -> String {
    let text = text.trim();
    let text = text.strip_prefix("fio").unwrap_or(text);
    text.trim_start_matches(['-', ' ']).to_owned()
}
