//! The catalogue, a file for each group of pitfalls.

use crate::Rule;

mod cache;
mod cache_state;

/// Every rule, in the order of families.
pub(crate) const FAMILIES: &[&[Rule]] = &[cache::RULES, cache_state::RULES];
