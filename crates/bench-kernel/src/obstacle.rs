//! The obstacles to an experiment, known before anything is booted.

use crate::agent::devices;
use raidlab_initramfs::find_program;
use raidlab_lab::{CapacityError, Experiment, Subject, Work};
use raidlab_systems::{Member, Need, OperatingSystem, SystemError};
use raidlab_uml::{Cache, Kernel, Packages};
use raidlab_units::{Bytes, lists};

/// The features that are built into the kernel, by the names that the host bench asks for.
const BUILT_IN: &str = "bcache dm-cache linear raid0 raid1 raid10 raid456 dm-raid dm_raid \
    dm-mirror dm-mod dm_mod ext3 ext4 xfs btrfs";

/// The reason why an experiment cannot run on this bench.
#[derive(Debug, thiserror::Error)]
pub enum Obstacle {
    /// The subject's file does not say how it is built.
    #[error("subject `{subject}` is modelled only: its file has no [build] table")]
    ModelledOnly {
        /// The subject that has a model and no commands.
        subject: String,
    },
    /// The system or setting belongs to another operating system.
    #[error("{what} does not exist on Linux")]
    NotOnLinux {
        /// The system or setting that Linux does not have.
        what: String,
    },
    /// A feature is not built in, or a program not installed.
    #[error("not here: {}", missing.join("; "))]
    Missing {
        /// The missing things, each with how to get it.
        missing: Vec<String>,
    },
    /// The array or the file system cannot be made of these members.
    #[error(transparent)]
    System(#[from] SystemError),
    /// A job does not fit on the array.
    #[error(transparent)]
    Capacity(#[from] CapacityError),
}

impl Obstacle {
    /// The remedy, where there is one.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Capacity(error) if error.wants_larger_members() => {
                Some("give the members more room: `--member-size`")
            }
            Self::Capacity(_) => Some("mend the job in the suite: no size of the members helps"),
            _ => None,
        }
    }
}

/// Checks an experiment whose members have these sizes, slot by slot.
///
/// # Errors
/// With the first obstacle.
pub fn check(experiment: &Experiment, kernel: &Kernel, sizes: &[Bytes]) -> Result<(), Obstacle> {
    let subject = &experiment.subject;
    let spec = subject
        .build
        .as_ref()
        .ok_or_else(|| Obstacle::ModelledOnly {
            subject: subject.name.clone(),
        })?;
    let system = &**spec;
    let linux = OperatingSystem::Linux;
    if !system.runs_on().contains(&linux) {
        let what = system.title();
        return Err(Obstacle::NotOnLinux { what });
    }
    let filesystem = experiment.filesystem.as_ref();
    if let Some(filesystem) = filesystem.filter(|one| !one.runs_on().contains(&linux)) {
        let what = filesystem.label();
        return Err(Obstacle::NotOnLinux { what });
    }
    let mut needs = system.needs();
    needs.extend(
        filesystem
            .into_iter()
            .flat_map(raidlab_systems::FileSystemSpec::needs),
    );
    let mut missing: Vec<String> = needs
        .iter()
        .filter_map(|need| lacks(need, kernel))
        .collect();
    missing.extend(experiment.jobs().filter_map(|job| match &job.work {
        Work::Fio { .. } => None,
        Work::Tool { name, .. } => (!installed(name)).then(|| format!("program `{name}`")),
    }));
    missing.dedup();
    if !missing.is_empty() {
        return Err(Obstacle::Missing { missing });
    }
    let members: Vec<Member> = devices(experiment.disks.len())
        .into_iter()
        .zip(sizes)
        .map(|(device, size)| Member {
            device,
            size: *size,
            backing: None,
            away: false,
        })
        .collect();
    system.check(&members)?;
    match filesystem {
        Some(filesystem) => filesystem.check()?,
        // Files on a file system are as large as their jobs say.
        None => experiment.check_fits(system.capacity(&members))?,
    }
    Ok(())
}

/// Whether a subject can only be built on a kernel with OpenZFS.
#[must_use]
pub fn wants_openzfs(subject: &Subject) -> bool {
    let spec = subject.build.as_ref();
    spec.is_some_and(|spec| spec.needs().contains(&Need::Module("zfs")))
}

fn lacks(need: &Need, kernel: &Kernel) -> Option<String> {
    match need {
        Need::Program { name, apt, .. } => {
            (!installed(name)).then(|| format!("program `{name}` (`{apt}`)"))
        }
        Need::Module("zfs") => kernel
            .zfs
            .is_none()
            .then(|| "a kernel with OpenZFS (`raidlab kernel build --zfs`)".to_owned()),
        Need::Module(name) => {
            (!lists(BUILT_IN, name)).then(|| format!("`{name}`, which the kernel is built without"))
        }
    }
}

/// Whether this machine has a program, or one of the packages that were fetched: the guest gets
/// it from there.
fn installed(name: &str) -> bool {
    let fetched = Cache::of_user().ok();
    let fetched = fetched.map(|cache| Packages::of(&cache).root());
    find_program(name, fetched.as_deref()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_lab::{Choices, HostChoice, QueueStyle, Suite};
    use std::path::PathBuf;

    fn experiments(suite: &str) -> Vec<Experiment> {
        let suite = Suite::load(suite).expect("built in");
        let host = HostChoice {
            name: "linux-6.12.1".to_owned(),
            queue: QueueStyle::Libaio,
            disks: suite.disks.clone(),
        };
        let choices = Choices {
            hosts: vec![host],
            ..Choices::default()
        };
        suite.experiments(&suite.subjects, &choices)
    }

    fn kernel(zfs: Option<&str>) -> Kernel {
        Kernel {
            name: "6.12".to_owned(),
            release: "6.12.1".to_owned(),
            source: "a test".to_owned(),
            zfs: zfs.map(str::to_owned),
            shared_memory: true,
            seccomp: false,
            changes: None,
            program: PathBuf::new(),
        }
    }

    fn of(subject: &str, suite: &str, kernel: &Kernel, member: Bytes) -> Result<(), Obstacle> {
        let experiments = experiments(suite);
        let mut found = experiments.iter().filter(|one| one.subject.name == subject);
        let experiment = found.next().expect("in the suite");
        check(experiment, kernel, &vec![member; experiment.disks.len()])
    }

    const MEMBER: Bytes = Bytes(4 << 30);

    #[test]
    fn other_systems_are_refused_by_name() {
        for subject in ["gmirror", "gflash"] {
            let error = of(subject, "mirror-2015", &kernel(None), MEMBER).expect_err(subject);
            assert!(matches!(error, Obstacle::NotOnLinux { .. }), "{error}");
        }
    }

    #[test]
    fn a_job_that_does_not_fit_is_told_with_the_option_that_helps() {
        let error = of("md", "mirror-2015", &kernel(None), MEMBER).expect_err("it is for 4 TB");
        assert!(
            matches!(error, Obstacle::Capacity(_) | Obstacle::Missing { .. }),
            "{error}"
        );
        if let Obstacle::Capacity(_) = error {
            assert!(error.help().expect("a remedy").contains("--member-size"));
        }
    }

    #[test]
    fn what_the_kernel_lacks_is_named() {
        let lacks = |name: &'static str, kernel: &Kernel| lacks(&Need::Module(name), kernel);
        for built_in in ["raid456", "dm-mod", "dm-cache", "bcache"] {
            assert_eq!(lacks(built_in, &kernel(None)), None);
        }
        assert!(lacks("nbd", &kernel(None)).is_some());
        let zfs = lacks("zfs", &kernel(None)).expect("not built in");
        assert!(zfs.contains("--zfs"), "{zfs}");
        assert_eq!(lacks("zfs", &kernel(Some("2.1.11"))), None);
    }
}
