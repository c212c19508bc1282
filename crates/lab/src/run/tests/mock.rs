//! A bench with canned numbers.

use crate::bench::{Bench, BenchError, Finish, Observer, Progress};
use crate::experiment::{Experiment, PlannedJob, PlannedStep};
use crate::suite::{EventKind, Wait};
use raidlab_store::{CellResult, Measurement, MemberUse, Operation, Records};
use raidlab_units::Nanos;

/// Runs any experiment without doing anything: every job takes ten seconds and
/// gives as many I/Os as its place in the suite says. The rows have every
/// field filled in, so that stores and reports have something to show.
#[derive(Debug, Clone, Copy, Default)]
pub struct MockBench {
    /// Fail at this step of every experiment, from 1.
    pub fail_at_step: Option<usize>,
}

/// How long a job of the mock takes.
const JOB_TIME: Nanos = Nanos::from_secs(10);

impl Bench for MockBench {
    fn name(&self) -> &'static str {
        "mock"
    }

    fn repeats_exactly(&self) -> bool {
        true
    }

    fn check(&self, experiment: &Experiment) -> Result<(), BenchError> {
        if experiment.disks.is_empty() {
            return Err(BenchError::setup("looking at the disks", "there are none"));
        }
        Ok(())
    }

    fn run(
        &self,
        experiment: &Experiment,
        observer: &mut dyn Observer,
    ) -> Result<Finish, BenchError> {
        observer.record(Records {
            settings: experiment.subject.settings.clone(),
            ..Records::default()
        });
        let steps = experiment.steps.len();
        let mut clock = Nanos::ZERO;
        let mut letters = vec!['U'; experiment.disks.len()];
        for (step, planned) in experiment.steps.iter().enumerate() {
            if observer.cancelled() {
                return Ok(Finish::Cancelled);
            }
            observer.progress(Progress { step, steps, clock });
            if self.fail_at_step == Some(step + 1) {
                return Err(BenchError::Step {
                    step: step + 1,
                    source: "told to fail".into(),
                });
            }
            match planned {
                PlannedStep::Wait(Wait::Time(time)) => clock += *time,
                PlannedStep::Wait(Wait::Until { .. }) | PlannedStep::Check => {}
                PlannedStep::Event(event) => {
                    let present = matches!(event.kind, EventKind::Insert | EventKind::ReAdd);
                    letters[usize::from(event.member)] = if present { 'U' } else { '_' };
                }
                PlannedStep::Job(job) => {
                    let state: String = letters.iter().collect();
                    let operations = job.operations().into_iter();
                    observer.cell(CellResult {
                        cell: job.cell(experiment),
                        rows: operations
                            .map(|op| self.measure(experiment, job, op, &state))
                            .collect(),
                        records: Records::default(),
                    });
                    clock += JOB_TIME;
                }
                PlannedStep::Rounds(_) => {
                    return Err(BenchError::Step {
                        step: step + 1,
                        source: "rounds have no canned numbers".into(),
                    });
                }
            }
        }
        observer.progress(Progress {
            step: steps,
            steps,
            clock,
        });
        Ok(Finish::Complete)
    }
}

impl MockBench {
    /// A row with canned numbers.
    fn measure(
        &self,
        experiment: &Experiment,
        job: &PlannedJob,
        op: Operation,
        state: &str,
    ) -> Measurement {
        let mut row = job.row(experiment, self.name(), op);
        row.total_ios = 1000 * (u64::from(job.sequence) + 1);
        row.total_bytes = row.total_ios * row.block_size_bytes;
        row.runtime_ns = JOB_TIME.0;
        row.iops = row.total_ios as f64 / JOB_TIME.as_secs_f64();
        row.bytes_per_second = row.total_bytes as f64 / JOB_TIME.as_secs_f64();
        row.array_state_start = format!("[{state}]");
        row.array_state_end = format!("[{state}]");
        let share = row.total_ios / experiment.disks.len() as u64;
        row.members = (0..experiment.disks.len())
            .map(|slot| MemberUse {
                member: slot.to_string(),
                model: experiment.disks[slot].clone(),
                read_ios: if op == Operation::Read { share } else { 0 },
                write_ios: if op == Operation::Write {
                    row.total_ios
                } else {
                    0
                },
                busy_ns: JOB_TIME.0,
                ..MemberUse::default()
            })
            .collect();
        row
    }
}
