//! Facts from a tool's output beside its rates, in the store's vocabulary.

use super::tool_name;
use raidlab_store::{Observation, Scope};
use raidlab_tools::{Facts, ToolResult};

/// The facts of a tool's output beside its rates, in the store's vocabulary; others are kept as
/// `tool.NAME`. A name occurs once; of several values the first is kept.
#[must_use]
pub fn observations(result: &ToolResult, scope: &Scope) -> Vec<Observation> {
    let source = tool_name(result);
    let told = Facts::of(result).all.into_iter();
    told.map(|fact| Observation::new(scope, fact.name, fact.value, &fact.unit, &source))
        .collect()
}
