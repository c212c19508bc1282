//! The refusals of experiments that ask too much of a model, made before anything is built.

use super::BuildError;
use raidlab_disk::DiskParameters;
use raidlab_lab::{
    Condition, EventKind, Experiment, Host, PlannedStep, QueueStyle, Subject, SubjectKind, Wait,
};
use raidlab_systems::ArraySpec;
use raidlab_systems::array::md::MdLevel;
use raidlab_units::Nanos;
use raidlab_workload::{Engine, JobSpec};

/// Refuses things that only real systems do.
pub(super) fn check_modelled(experiment: &Experiment) -> Result<(), BuildError> {
    let refuse = |what: String| Err(BuildError::NotModelled { what });
    if experiment.subject.kind == SubjectKind::System {
        return refuse(format!("subject `{}`", experiment.subject.name));
    }
    let host = experiment.subject.host.as_ref();
    let own = host.map(|host| host.scheduler.as_str());
    let scheduler = experiment.subject.scheduler.as_deref().or(own);
    if experiment.subject.kind == SubjectKind::ZfsMirror && scheduler == Some("bfq") {
        return refuse(
            "scheduler `bfq` below a pool: it chooses between processes, and no command of a \
             modelled pool says which of its threads sends it"
                .to_owned(),
        );
    }
    if let Some(scheduler) = &experiment.subject.scheduler
        && let Some(host) = host.filter(|host| host.queue == QueueStyle::Threads)
    {
        let host = &host.name;
        return refuse(format!("scheduler `{scheduler}` of Linux on host `{host}`"));
    }
    if experiment
        .subject
        .write_throttling
        .is_some_and(|latency| latency > Nanos::ZERO)
    {
        return refuse("throttling of writes (`write_throttling`)".to_owned());
    }
    // By these the model builds arrays of md alone: of another subject they would change nothing.
    let by_suite = format!("suite {}", experiment.suite);
    let mut settings = experiment.subject.settings.iter();
    if experiment.subject.kind != SubjectKind::Array
        && let Some(setting) =
            settings.find(|it| it.name.starts_with("build.") && it.source == by_suite)
    {
        let (setting, subject) = (&setting.name, &experiment.subject.name);
        return refuse(format!(
            "`{setting}` of subject `{subject}`: only subjects of kind `array` are modelled by \
             their [build]"
        ));
    }
    if experiment.filesystem.is_some() {
        return refuse(format!("file system {}", experiment.filesystem_label()));
    }
    for (step, place) in experiment.steps.iter().zip(experiment.places.iter()) {
        if let Some(what) = not_modelled(step, &experiment.subject) {
            return Err(BuildError::NotModelled { what }.at(place));
        }
    }
    Ok(())
}

/// The part of a step that the model does not have, if any.
fn not_modelled(step: &PlannedStep, subject: &Subject) -> Option<String> {
    match step {
        PlannedStep::Wait(Wait::Until {
            condition: Condition::SyncPercent(_),
            ..
        }) => Some("wait for a part of a sync: give a time (`wait = \"10m\"`)".to_owned()),
        PlannedStep::Wait(_) => None,
        PlannedStep::Event(event) if event.kind == EventKind::ReAdd => {
            let reason = re_add_refused(subject)?;
            Some(format!("re-add of member {}: {reason}", event.member))
        }
        PlannedStep::Check if subject.kind != SubjectKind::Array => {
            Some(format!("check of subject `{}`", subject.name))
        }
        PlannedStep::Event(_) | PlannedStep::Check => None,
        PlannedStep::Rounds(rounds) => Some(format!(
            "rounds (`{}`), as each of its repetitions is like the first",
            rounds.name
        )),
        PlannedStep::Job(job) if !job.events.is_empty() => Some(format!(
            "event within a job (`{}`): put it into a step before the job",
            job.name
        )),
        PlannedStep::Job(job) => {
            let reason = job.work.group().err()?;
            Some(format!("job like `{}`: {reason}", job.name))
        }
    }
}

/// The reason why a subject's former member cannot come back with its old content; `None` where it
/// can. gmirror copies everything, and others than md and gmirror know more of the writes that a
/// member missed than their models do.
fn re_add_refused(subject: &Subject) -> Option<&'static str> {
    match (subject.kind, &subject.build) {
        (SubjectKind::Array, Some(ArraySpec::Md(md))) if md.has_bitmap() => None,
        (SubjectKind::Mirror, Some(ArraySpec::Gmirror(_))) => None,
        (SubjectKind::Array, _) => Some(
            "without a bitmap md does not know what it missed: write `event = \"insert\"`, or \
             give the subject a bitmap",
        ),
        _ => Some("write `event = \"insert\"`, which copies everything"),
    }
}

/// Refuses a pool's cache that is larger than its host's memory.
pub(super) fn check_cache(subject: &Subject, host: &Host) -> Result<(), BuildError> {
    let cache = subject.zfs.as_ref().map(|zfs| zfs.cache);
    match cache.filter(|cache| *cache > host.memory) {
        None => Ok(()),
        Some(cache) => Err(BuildError::Cache {
            cache,
            host: host.name.clone(),
            memory: host.memory,
        }),
    }
}

/// Refuses discards where the array takes none. A volume of ZFS takes them whatever its disks do,
/// as they free its own blocks. md takes them with copies and stripes where any member does, and
/// leaves them out on the others; with parity it takes none unless the module's
/// `devices_handle_discard_safely` says that discarded sectors read as zeros. Those that only empty
/// emulated zones, and those to the null engine, reach no array.
pub(super) fn check_discards(
    experiment: &Experiment,
    disks: &[DiskParameters],
) -> Result<(), BuildError> {
    let discards = |spec: &JobSpec| {
        spec.pattern.trims() && spec.zones.is_none() && spec.engine != Engine::Null
    };
    let steps = experiment.steps.iter().zip(experiment.places.iter());
    let mut jobs = steps.filter_map(|(step, place)| match step {
        PlannedStep::Job(job) => Some((job, place)),
        _ => None,
    });
    let found = jobs.find(|(job, _)| {
        let group = job.work.group();
        group.is_ok_and(|group| group.jobs.iter().any(discards))
    });
    let Some((job, place)) = found else {
        return Ok(());
    };
    let subject = &experiment.subject;
    let has_parity = match &subject.build {
        Some(ArraySpec::Md(md)) => {
            matches!(md.level, MdLevel::Raid4 | MdLevel::Raid5 | MdLevel::Raid6)
        }
        _ => false,
    };
    let why = if subject.kind == SubjectKind::ZfsMirror {
        return Ok(());
    } else if has_parity {
        "md takes no discards on an array with parity unless its module is told to trust the disks \
         (`devices_handle_discard_safely`), which is not modelled"
    } else if disks.iter().all(|disk| disk.discard.is_none()) {
        "none of the disks takes discards"
    } else {
        return Ok(());
    };
    let job = job.name.clone();
    Err(BuildError::Discards { job, why }.at(place))
}
