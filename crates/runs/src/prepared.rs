//! A run with everything decided: its experiments, and the reasons why others are left out.

use crate::asked::On;
use crate::failure::{Failure, Kind};
use crate::notes::remark;
use crate::task::Task;
use raidlab_lab::{Experiment, PlannedStep, SubjectKind, Suite, by_steps, option_notes};
use raidlab_store::AccuracyNote;
use raidlab_units::{count, distinct, in_one_line};
use std::error::Error;
use std::fmt::Write;

/// A run with everything decided.
pub struct Prepared {
    /// The suite, with the disks that were chosen.
    pub suite: Suite,
    /// The experiments, in the order of the rows.
    pub experiments: Vec<Experiment>,
    /// Remarks that the reader of the results must know.
    pub remarks: Vec<AccuracyNote>,
}

impl Prepared {
    /// The number of rows that the jobs will give; `None` where only running them tells: bonnie++,
    /// iozone, options that only a real fio understands, and jobs in rounds.
    pub fn rows(&self) -> Option<usize> {
        let of_steps = |steps: &[PlannedStep]| {
            steps.iter().try_fold(0, |rows, step| match step {
                PlannedStep::Job(job) if !job.prepares => {
                    job.work.group().ok()?;
                    Some(rows + job.operations().len())
                }
                PlannedStep::Rounds(_) => None,
                _ => Some(rows),
            })
        };
        let rows = by_steps(&self.experiments, of_steps, |_, rows| *rows);
        rows.into_iter().sum()
    }

    /// Whether a subject is a real system that no model stands for.
    pub(crate) fn needs_real_systems(&self) -> bool {
        let mut kinds = self.experiments.iter().map(|one| one.subject.kind);
        kinds.any(|kind| kind == SubjectKind::System)
    }

    /// The number of machines of the run.
    pub fn machines(&self) -> usize {
        let hosts = self.experiments.iter().map(|one| one.host.as_str());
        hosts.collect::<std::collections::BTreeSet<_>>().len()
    }

    /// A name of an experiment in a word or two: `md, strict`.
    pub fn label(&self, index: usize) -> String {
        let found = self.experiments.get(index);
        found.map_or_else(String::new, |one| one.label(self.suite.repetitions))
    }

    /// The parameter sets that the run needs, in their order of appearance.
    fn fits(&self) -> Vec<&str> {
        distinct(self.experiments.iter().map(|one| one.fit.as_str()))
    }

    /// A description of what would be done. Fits differ in numbers only, so each subject
    /// is shown once.
    pub fn words(&self) -> String {
        let fits = self.fits();
        let mut text = String::new();
        for experiment in &self.experiments {
            if Some(&experiment.fit.as_str()) == fits.first() {
                let _ = writeln!(text, "{}", experiment.plan());
            }
        }
        let mut rows = self.rows().map_or_else(
            || "rows as the programs report".to_owned(),
            |rows| count(rows, "row", "rows"),
        );
        if self.experiments.iter().any(Experiment::may_sync) {
            rows += ", and those of what the arrays do in the background";
        }
        let _ = writeln!(
            text,
            "{} with the parameter {} {}; {rows}; nothing was run or written",
            count(self.experiments.len(), "experiment", "experiments"),
            if fits.len() == 1 { "set" } else { "sets" },
            fits.join(", "),
        );
        text
    }
}

/// The error of an experiment that its bench refuses.
#[derive(Debug, thiserror::Error)]
#[error("subject `{subject}` cannot run")]
pub struct CannotRun<E: Error + 'static> {
    subject: String,
    source: E,
}

impl<E: Error + 'static> CannotRun<E> {
    /// The error for this experiment, with the reason.
    pub fn new(experiment: &Experiment, source: E) -> Self {
        let subject = experiment.subject.name.clone();
        Self { subject, source }
    }
}

/// The reason why a bench cannot run an experiment.
pub trait Obstacle: Error + Sized + 'static {
    /// The remedy, in words, if there is one.
    fn remedy(&self) -> Option<&'static str>;
    /// Whether the same plan could run on the same bench in another state: a tool can
    /// be installed, larger disks can be named.
    fn is_curable(&self) -> bool;
}

/// The title of a remark on an experiment that is left out.
pub(crate) const LEFT_OUT: &str = "Left out";

/// Whether a subject does none of the suite's jobs, since these come after a step that
/// it cannot do.
fn is_jobless(experiment: &Experiment) -> bool {
    experiment.left_out > 0 && experiment.jobs().next().is_none()
}

/// Subjects that do none of the suite's jobs, or not its last ones, since these come after a step
/// that needs redundancy. Without a remark rows would be missing silently.
fn short_of_jobs(suite: &Suite, experiments: &[Experiment]) -> Vec<String> {
    let left_out = experiments.iter().filter(|one| one.left_out > 0);
    let lines = left_out.filter_map(|one| {
        let steps = suite.steps.iter().enumerate().rev();
        let its_last = steps.filter(|(place, _)| one.subject.does(*place));
        let missing = its_last
            .take(one.left_out)
            .flat_map(|(_, step)| step.jobs());
        let jobs = match missing.count() {
            0 => return None,
            _ if is_jobless(one) => "all jobs of the suite".to_owned(),
            1 => "the suite's last job".to_owned(),
            many => format!("the suite's last {many} jobs"),
        };
        Some(format!(
            "{}: {jobs}, as it has no redundancy: before them a member is taken out or a check begins",
            one.subject.name
        ))
    });
    distinct(lines)
}

/// The remarks for these lines on what is left out, and for each subject that does not do all of
/// the suite's jobs.
///
/// # Errors
/// When no measuring job is left.
pub(crate) fn what_is_missing(
    task: &Task,
    suite: &Suite,
    experiments: &[Experiment],
    mut left_out: Vec<String>,
) -> Result<Vec<AccuracyNote>, Failure> {
    left_out.extend(short_of_jobs(suite, experiments));
    if experiments.iter().all(is_jobless) && task.planned.is_none() {
        let words = format!(
            "nothing of suite `{}` can run on the {} bench here",
            suite.name,
            task.asked.on.name()
        );
        return Err(Failure::words(Kind::Run, words).help(left_out.join("\n      ")));
    }
    let remarks = left_out.into_iter().map(|line| remark(LEFT_OUT, line));
    Ok(remarks.collect())
}

/// A remark on fio's options that do not do what their words say, if there are any.
pub(crate) fn on_options(task: &Task, experiments: &[Experiment]) -> Option<AccuracyNote> {
    let notes = option_notes(experiments, task.asked.on == On::Model);
    (!notes.is_empty()).then(|| remark("Options of fio", notes.join("; ")))
}

/// The run of those experiments of `all` that are planned and that the bench can run, with these
/// remarks and one more for every subject that it cannot run. For a subject that was asked for by
/// name, or that is in the plan, that is an error instead, and so is a suite of which nothing is
/// left. Where a plan is only to be shown, it keeps what another state of the bench could run.
///
/// # Errors
/// The obstacle that keeps a subject, or all of the suite, from running.
pub fn possible<E: Obstacle>(
    task: &Task,
    suite: Suite,
    all: Vec<Experiment>,
    mut remarks: Vec<AccuracyNote>,
    obstacle: impl Fn(&Experiment) -> Result<(), E>,
) -> Result<Prepared, Failure> {
    let named = !task.asked.subjects.is_empty() || task.planned.is_some();
    let (mut left_out, mut lacking) = (Vec::new(), Vec::new());
    let mut experiments = Vec::new();
    for experiment in all {
        if !task.plans(&experiment, suite.repetitions) {
            continue;
        }
        let Err(error) = obstacle(&experiment) else {
            experiments.push(experiment);
            continue;
        };
        let line = format!("{}: {}", experiment.subject.name, in_one_line(&error));
        let lines = if task.here.dry_run && error.is_curable() {
            experiments.push(experiment);
            &mut lacking
        } else if named {
            let help = error.remedy().unwrap_or("name another with --subject");
            let refused = CannotRun::new(&experiment, error);
            return Err(Failure::new(Kind::Run, refused).help(help));
        } else {
            &mut left_out
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    remarks.extend(what_is_missing(task, &suite, &experiments, left_out)?);
    remarks.extend(on_options(task, &experiments));
    remarks.extend(lacking.into_iter().map(|line| remark("Lacking", line)));
    Ok(Prepared {
        suite,
        experiments,
        remarks,
    })
}
