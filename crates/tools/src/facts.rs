//! Facts in a tool's output beside its numbers, under the names of the shared vocabulary.

use crate::result::{Reported, ToolResult};
use raidlab_results::{Fact, fact};

/// Facts in the order in which they are found. A name occurs once; of several values the
/// first is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The facts that were read so far, in their order.
    pub all: Vec<Fact>,
}

impl Facts {
    /// All facts of a result beside its numbers. Names that are not in the vocabulary are
    /// kept as `tool.NAME`.
    #[must_use]
    pub fn of(result: &ToolResult) -> Self {
        let mut facts = Self::default();
        let tool = result.tool;
        tool.first_facts(result, &mut facts);
        let of_all = result.facts.iter().map(|fact| (fact, None));
        let of_parts = result
            .parts
            .iter()
            .flat_map(|part| part.facts.iter().map(move |fact| (fact, Some(part))));
        for (said, part) in of_all.chain(of_parts) {
            if !tool.fact(said, part, &mut facts) {
                facts.say(&format!("tool.{}", said.name), said);
            }
        }
        tool.last_facts(result, &mut facts);
        let sizes = result.parts.iter().filter_map(|part| part.file_size_bytes);
        if let Some(bytes) = sizes.max() {
            facts.add(fact::JOB_WORKING_SET_BYTES, &bytes.to_string(), "bytes");
        }
        facts
    }

    /// Adds a fact of this name, with its value as text and its unit.
    pub fn add(&mut self, name: &str, value: &str, unit: &str) {
        if !self.all.iter().any(|known| known.name == name) {
            self.all.push(Fact {
                name: name.to_owned(),
                value: value.to_owned(),
                unit: unit.to_owned(),
                source: String::new(),
            });
        }
    }

    /// Adds a fact that a tool reports under another name.
    pub(crate) fn say(&mut self, name: &str, said: &Reported) {
        self.add(name, &said.value.to_string(), &said.unit);
    }
}
