//! Queries for the records that were kept beside a run's rows.

use super::seal::SEAL;
use super::{RunId, Store, grouped};
use crate::read::{read, read_point};
use crate::{
    Cell, CommandRecord, EventRecord, Finding, KeptPlan, Observation, Series, Shard, StoreError,
};
use rusqlite::Row;
use std::num::NonZero;

impl Store {
    /// The run's plan, if it has one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn plan(&self, run: RunId) -> Result<Option<KeptPlan>, StoreError> {
        let found = self.collect(
            "read the plan",
            "SELECT program, json, shard, shards FROM plan WHERE run_id = ?",
            [run.0],
            |row| {
                let count = row.get::<_, Option<u32>>("shards")?.and_then(NonZero::new);
                let index = row.get::<_, Option<u32>>("shard")?;
                Ok(KeptPlan {
                    shard: index.zip(count).and_then(|(one, of)| Shard::new(one, of)),
                    program: row.get("program")?,
                    json: row.get("json")?,
                })
            },
        )?;
        Ok(found.into_iter().next())
    }

    /// The experiments of the run's plan that have come to their end.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn ended_experiments(&self, run: RunId) -> Result<Vec<u32>, StoreError> {
        self.collect(
            "read what has ended",
            "SELECT experiment FROM ended WHERE run_id = ? ORDER BY experiment",
            [run.0],
            |row| row.get(0),
        )
    }

    /// The finished cells, sorted.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn finished_cells(&self, run: RunId) -> Result<Vec<Cell>, StoreError> {
        let mut cells = self.collect(
            "read the finished cells",
            "SELECT * FROM cell WHERE run_id = ?",
            [run.0],
            read,
        )?;
        cells.sort();
        Ok(cells)
    }

    /// A run's facts experiment by experiment, in the order in which they were added.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn observations(&self, run: RunId) -> Result<Vec<Observation>, StoreError> {
        self.collect(
            "read observations",
            "SELECT * FROM observation JOIN scope USING (scope_id) WHERE run_id = ? AND name <> ?
             ORDER BY experiment, observation_id",
            (run.0, SEAL),
            read,
        )
    }

    /// The commands that ran, experiment by experiment, in the order in which they were added.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn commands(&self, run: RunId) -> Result<Vec<CommandRecord>, StoreError> {
        self.collect(
            "read commands",
            "SELECT * FROM command JOIN scope USING (scope_id) WHERE run_id = ?
             ORDER BY experiment, command_id",
            [run.0],
            read,
        )
    }

    /// The events, experiment by experiment, in the order in which they were added.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn events(&self, run: RunId) -> Result<Vec<EventRecord>, StoreError> {
        self.collect(
            "read events",
            "SELECT * FROM event JOIN scope USING (scope_id) WHERE run_id = ?
             ORDER BY experiment, event_id",
            [run.0],
            read,
        )
    }

    /// The series with all points, experiment by experiment, in the order in which
    /// the series began.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn series(&self, run: RunId) -> Result<Vec<Series>, StoreError> {
        const ACTION: &str = "read samples";
        let keyed = |row: &Row<'_>| row.get::<_, i64>("series_id");
        let series = self.collect(
            ACTION,
            "SELECT * FROM series JOIN scope USING (scope_id) WHERE run_id = ?
             ORDER BY experiment, series_id",
            [run.0],
            |row| Ok((keyed(row)?, read::<Series>(row)?)),
        )?;
        let mut points = grouped(self.collect(
            ACTION,
            "SELECT sample.* FROM sample JOIN series USING (series_id)
             JOIN scope USING (scope_id) WHERE run_id = ? ORDER BY series_id, at_ns",
            [run.0],
            |row| Ok((keyed(row)?, read_point(row)?)),
        )?);
        Ok(series
            .into_iter()
            .map(|(id, mut series)| {
                series.points = points.remove(&id).unwrap_or_default();
                series
            })
            .collect())
    }

    /// The findings of the audit's last pass, in its order.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn findings(&self, run: RunId) -> Result<Vec<Finding>, StoreError> {
        self.collect(
            "read findings",
            "SELECT * FROM finding JOIN scope USING (scope_id) WHERE run_id = ?
             ORDER BY finding_id",
            [run.0],
            read,
        )
    }
}
