//! The conversion of a suite's subjects and jobs into those of an experiment.

use super::{IN_SYNC, PlannedJob, PlannedStep};
use crate::host::QueueStyle;
use crate::subject::Subject;
use crate::suite::{Begin, Event, EventKind, Job, QueueRule, Rounds, Step, Suite};
use raidlab_store::Setting;

/// The steps by which an array begins in the suite's state: by settings where members are already
/// equal, else by a wait.
pub(super) fn first_sync(begin: Begin, blank: bool, subject: &mut Subject) -> Vec<PlannedStep> {
    let Some(build) = &mut subject.build else {
        return Vec::new();
    };
    if begin == Begin::AsCreated || !build.has_first_sync() {
        return Vec::new();
    }
    if blank {
        build.leave_out_first_sync();
        let (scope, why) = (
            format!("subject {}", subject.name),
            "the suite begins in sync",
        );
        let value = "left out: blank disks are equal";
        (subject.settings).push(Setting::new(scope, "first resync", value, why));
    }
    if build.has_first_sync() {
        vec![PlannedStep::Wait(IN_SYNC)]
    } else {
        Vec::new()
    }
}

/// The steps that remove members before the first step, if any are to be removed.
pub(super) fn removals(subject: &Subject) -> Vec<PlannedStep> {
    if subject.removed.is_empty() {
        return Vec::new();
    }
    let remove = |&member: &u16| {
        let kind = EventKind::Remove;
        PlannedStep::Event(Event { kind, member })
    };
    let removals = subject.removed.iter().map(remove);
    std::iter::once(PlannedStep::Wait(IN_SYNC))
        .chain(removals)
        .collect()
}

/// The suite's steps for this subject, up to the first that it cannot do: one that is a single
/// disk, or has no redundancy, has no member that could be removed.
pub(super) fn suite_steps(suite: &Suite, subject: &Subject, queue: QueueStyle) -> Vec<PlannedStep> {
    let whole = !subject.can_lose_a_member();
    let mut steps = Vec::new();
    let mut sequence = 0;
    for (place, step) in suite.steps.iter().enumerate() {
        if !subject.does(place) {
            sequence = step.jobs().iter().fold(sequence, |next, _| next + 1);
            continue;
        }
        steps.push(match step {
            Step::Event(_) | Step::Check if whole => break,
            Step::Job(job) if whole && !job.events.is_empty() => break,
            Step::Event(event) => PlannedStep::Event(*event),
            Step::Check => PlannedStep::Check,
            Step::Wait(wait) => PlannedStep::Wait(*wait),
            Step::Job(job) => PlannedStep::Job(plan_job(job, &mut sequence, queue)),
            Step::Rounds(rounds) => PlannedStep::Rounds(Rounds {
                name: rounds.name.clone(),
                at_most: rounds.at_most,
                track: rounds.track.clone(),
                jobs: rounds
                    .jobs
                    .iter()
                    .map(|job| plan_job(job, &mut sequence, queue))
                    .collect(),
            }),
        });
    }
    steps
}

/// Turns a suite's job into one for a host.
fn plan_job(job: &Job, sequence: &mut u32, host: QueueStyle) -> PlannedJob {
    let queue = match job.queue {
        QueueRule::Fio => None,
        QueueRule::Host => Some(host),
        QueueRule::Threads => Some(QueueStyle::Threads),
    };
    let mut job = job.clone();
    if let Some(queue) = queue {
        (job.work).edit_fio(|jobs| jobs.queue_as(queue == QueueStyle::Libaio));
    }
    *sequence += 1;
    PlannedJob {
        sequence: *sequence - 1,
        job,
    }
}
