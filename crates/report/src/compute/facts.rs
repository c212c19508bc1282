//! Look-up of facts for a row.

use raidlab_store::{Measurement, Observation};
use std::collections::BTreeMap;

/// Observations by name.
pub(crate) struct Facts<'a> {
    by_name: BTreeMap<&'a str, Vec<&'a Observation>>,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(observations: &'a [Observation]) -> Self {
        let mut by_name: BTreeMap<&str, Vec<&Observation>> = BTreeMap::new();
        for observation in observations {
            by_name
                .entry(&observation.name)
                .or_default()
                .push(observation);
        }
        Self { by_name }
    }

    /// A fact's value for a row; of several the one observed last.
    pub(crate) fn value(&self, m: &Measurement, name: &str) -> Option<&'a str> {
        let mut found = self.by_name.get(name)?.iter().rev();
        found
            .find(|observation| observation.scope.covers(m))
            .map(|observation| observation.value.as_str())
    }

    /// The value of a fact as a finite number.
    pub(crate) fn number(&self, m: &Measurement, name: &str) -> Option<f64> {
        let value: f64 = self.value(m, name)?.parse().ok()?;
        value.is_finite().then_some(value)
    }
}
