//! What a report is made from.

use raidlab_store::{AccuracyNote, Measurement, Run, Setting, Store, StoreError};

/// A run with everything a reader may want to know about it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunData {
    /// What was run, where and when.
    pub run: Run,
    /// The settings in force.
    pub settings: Vec<Setting>,
    /// One row per job, operation, subject and fit.
    pub measurements: Vec<Measurement>,
    /// Accuracy statements per class, and remarks.
    pub notes: Vec<AccuracyNote>,
}

impl RunData {
    /// Reads a run from a store; `latest` is the one begun last.
    ///
    /// # Errors
    /// There is no such run, or the store cannot be read.
    pub fn load(store: &Store, name: &str) -> Result<Self, StoreError> {
        let found = store.run_by_name(name)?;
        Ok(Self {
            settings: store.settings(found.id)?,
            measurements: store.measurements(found.id)?,
            notes: store.notes(found.id)?,
            run: found.run,
        })
    }
}
