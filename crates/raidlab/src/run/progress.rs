//! The live display: a bar for each experiment with its virtual clock, on
//! standard error, and rows as lines of JSON on standard output. Where standard error is
//! no terminal, there are no bars.

use crate::output;
use indicatif::{MultiProgress, ProgressBar};
use raidlab_lab::{Experiment, PlannedStep, Progress};
use raidlab_runs::{KeepError, Watcher};
use raidlab_store::{Measurement, to_json_line};
use raidlab_units::Nanos;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

/// The template of a bar.
const TEMPLATE: &str = "{prefix:.bold} {bar:20} {pos:>3}/{len} steps  {msg}";

/// The bars of the experiments, and the printing of rows.
pub struct Shown {
    all: MultiProgress,
    /// The bars, by the experiments' positions in the run, each with its experiment's steps.
    bars: BTreeMap<usize, (ProgressBar, Arc<[PlannedStep]>)>,
    /// The kind of time on the clock.
    clock: &'static str,
    /// Whether lines of JSON are printed; false once the reader has gone.
    json: bool,
}

impl Shown {
    /// Makes bars that stand at the beginning, for experiments with their positions in the run.
    pub fn new(experiments: &[(usize, &Experiment)], json: bool) -> Self {
        let labels: Vec<String> = experiments.iter().map(|(_, one)| label(one)).collect();
        let width = labels.iter().map(String::len).max().unwrap_or_default();
        let all = MultiProgress::new();
        let bar = |(&(position, one), label): (&(usize, &Experiment), &String)| {
            let bar = all.add(output::bar(one.steps.len() as u64, TEMPLATE));
            bar.set_prefix(format!("{label:width$}"));
            bar.set_message("waits");
            (position, (bar, one.steps.clone()))
        };
        let is_modelled = experiments.iter().all(|(_, one)| one.host.is_empty());
        Self {
            json,
            bars: experiments.iter().zip(&labels).map(bar).collect(),
            all,
            clock: if is_modelled { " virtual" } else { "" },
        }
    }

    /// Takes the bars away.
    pub fn clear(&self) {
        // A terminal that has gone needs no clearing.
        self.all.clear().ok();
    }
}

impl Watcher for Shown {
    fn progress(&mut self, experiment: usize, progress: Progress) {
        let Some((bar, steps)) = self.bars.get(&experiment) else {
            return;
        };
        bar.set_position(progress.step as u64);
        let clock = clock(progress.clock);
        match steps.get(progress.step) {
            Some(step) => bar.set_message(format!("{clock}{}, {}", self.clock, name(step))),
            None => bar.finish_with_message(format!("{clock}{}, done", self.clock)),
        }
    }

    fn row(&mut self, row: &Measurement) -> Result<(), KeepError> {
        if !self.json {
            return Ok(());
        }
        let line = to_json_line(row)?;
        let printed = self.all.suspend(|| {
            let mut stdout = io::stdout().lock();
            writeln!(stdout, "{line}").and_then(|()| stdout.flush())
        });
        match printed {
            // The store wants the other rows all the same.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.json = false,
            printed => printed.map_err(KeepError::Print)?,
        }
        Ok(())
    }
}

/// The part of an experiment's name that distinguishes it from the others.
fn label(one: &Experiment) -> String {
    let mut words = vec![one.subject.name.clone()];
    words.extend([one.fit.clone(), one.filesystem_label(), one.host.clone()]);
    if one.repetition > 0 {
        words.push(format!("#{}", one.repetition + 1));
    }
    if !one.without.is_empty() {
        words.push(format!("without {}", one.without.join(", ")));
    }
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

/// A step in a word or two.
fn name(step: &PlannedStep) -> String {
    match step {
        PlannedStep::Job(job) => format!("job {}", job.name),
        PlannedStep::Event(event) => format!("member {} changes", event.member),
        PlannedStep::Check => "a check begins".to_owned(),
        PlannedStep::Wait(_) => "time passes".to_owned(),
        PlannedStep::Rounds(rounds) => format!("rounds of {}", rounds.name),
    }
}

/// A virtual time as hours, minutes and seconds.
fn clock(time: Nanos) -> String {
    let seconds = time.0 / 1_000_000_000;
    format!(
        "{:>3}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::{Shown, clock};
    use raidlab_lab::{Choices, Progress, Suite};
    use raidlab_runs::Watcher;
    use raidlab_units::Nanos;

    #[test]
    fn a_shard_has_bars_for_its_own_experiments() {
        let suite = Suite::load("quick").expect("built in");
        let experiments = suite.experiments(&suite.subjects, &Choices::default());
        let mut shown = Shown::new(&[(1, &experiments[1])], false);
        let progress = Progress {
            step: 1,
            steps: 2,
            clock: Nanos::ZERO,
        };
        for experiment in [0, 1] {
            shown.progress(experiment, progress);
        }
        let bars = shown.bars.iter();
        let positions: Vec<(usize, u64)> =
            bars.map(|(at, (bar, _))| (*at, bar.position())).collect();
        assert_eq!(positions, [(1, 1)]);
    }

    #[test]
    fn clocks_read_like_clocks() {
        assert_eq!(clock(Nanos::ZERO), "  0:00:00");
        assert_eq!(clock(Nanos::from_secs(60 * 3600 + 62)), " 60:01:02");
    }
}
