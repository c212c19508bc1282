//! The catalogue, a file for each group of pitfalls.

use crate::Rule;

mod array;
mod array_shape;
mod cache;
mod cache_state;
mod claims;
mod comparison;
mod fio;
mod fio_run;
mod geometry;
mod hardware;
mod tools;

/// Every rule, file by file.
pub(crate) const GROUPS: &[&[Rule]] = &[
    cache::RULES,
    cache_state::RULES,
    array::RULES,
    array_shape::RULES,
    geometry::RULES,
    hardware::RULES,
    fio::RULES,
    fio_run::RULES,
    tools::RULES,
    claims::RULES,
    comparison::RULES,
];
