//! The data of a run that a report is made from.

use raidlab_store::text::{EachText, visible_lines};
use raidlab_store::{
    AccuracyNote, CommandRecord, EventRecord, Finding, Measurement, Observation, Run, Series,
    Setting, Store, StoreError,
};
use std::borrow::Cow;

/// A run with all data that a report may show.
#[derive(Debug, Clone, PartialEq)]
pub struct RunData {
    /// The run's head: suite, bench, time.
    pub run: Run,
    /// The settings in force.
    pub settings: Vec<Setting>,
    /// One row per cell, operation and part, several fits and repetitions included.
    pub measurements: Vec<Measurement>,
    /// Accuracy statements per class, and remarks.
    pub notes: Vec<AccuracyNote>,
    /// Facts about machines, arrays and jobs.
    pub observations: Vec<Observation>,
    /// The commands that ran.
    pub commands: Vec<CommandRecord>,
    /// The events on the time lines of the run's experiments.
    pub events: Vec<EventRecord>,
    /// The samples, as series over time.
    pub series: Vec<Series>,
    /// The findings of the audit.
    pub findings: Vec<Finding>,
}

impl RunData {
    /// Reads a run from a store; `latest` is the one begun last.
    ///
    /// # Errors
    /// There is no such run, or the store cannot be read.
    pub fn load(store: &Store, name: &str) -> Result<Self, StoreError> {
        let _snapshot = store.snapshot()?;
        let found = store.run_by_name(name)?;
        let mut data = Self {
            settings: store.settings(found.id)?,
            measurements: store.measurements(found.id)?,
            notes: store.notes(found.id)?,
            observations: store.observations(found.id)?,
            commands: store.commands(found.id)?,
            events: store.events(found.id)?,
            series: store.series(found.id)?,
            findings: store.findings(found.id)?,
            run: found.run,
        };
        data.show_what_acts();
        Ok(data)
    }

    /// Makes control characters and the like visible in all texts: a store may come from anywhere,
    /// and its texts from any tool.
    fn show_what_acts(&mut self) {
        let mut show = |text: &mut String| {
            if let Cow::Owned(shown) = visible_lines(text) {
                *text = shown;
            }
        };
        self.run.each_text(&mut show);
        self.settings.each_text(&mut show);
        self.measurements.each_text(&mut show);
        self.notes.each_text(&mut show);
        self.observations.each_text(&mut show);
        self.commands.each_text(&mut show);
        self.events.each_text(&mut show);
        self.series.each_text(&mut show);
        self.findings.each_text(&mut show);
    }
}
