//! What a bench measured, kept in memory.

use raidlab_bench_model::ModelBench;
use raidlab_lab::{Bench, BenchError, Experiment, Finish, Observer};
use raidlab_store::{CellResult, Measurement, Records};

/// Keeps the rows.
#[derive(Default)]
struct Rows(Vec<Measurement>);

impl Observer for Rows {
    fn record(&mut self, _: Records) {}
    fn cell(&mut self, result: CellResult) {
        self.0.extend(result.rows);
    }
}

/// The rows of a whole experiment on the model.
pub fn of(experiment: &Experiment) -> Result<Vec<Measurement>, BenchError> {
    let mut rows = Rows::default();
    let finish = ModelBench::default().run(experiment, &mut rows)?;
    assert_eq!(finish, Finish::Complete);
    Ok(rows.0)
}
