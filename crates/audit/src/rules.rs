//! The checks of all rules, a file for each group of pitfalls. The texts of the rules are on the
//! page `docs/reference/audit.md`, and there alone.

use crate::Rule;
use crate::rule::Check;
use std::sync::LazyLock;

mod array;
mod array_shape;
mod cache;
mod cache_state;
mod claims;
mod comparison;
mod fio;
mod fio_run;
mod forged;
mod geometry;
mod hardware;
mod told;
mod tools;

/// The check of every rule, by its identifier, file by file.
pub(crate) const GROUPS: &[&[(&str, Check)]] = &[
    cache::CHECKS,
    cache_state::CHECKS,
    array::CHECKS,
    array_shape::CHECKS,
    geometry::CHECKS,
    hardware::CHECKS,
    fio::CHECKS,
    fio_run::CHECKS,
    told::CHECKS,
    forged::CHECKS,
    tools::CHECKS,
    claims::CHECKS,
    comparison::CHECKS,
];

/// Every rule, in the order of the page.
pub(crate) static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let page = include_str!("../../../docs/reference/audit.md");
    let checks = GROUPS.concat();
    let rules = page.lines().filter_map(|line| Rule::of_line(line, &checks));
    rules.collect()
});
