//! The faults asked of disks: whether they can happen, and whether they did.
//!
//! A fault without effect is no fault: of a member that no subject has, of sectors behind the used
//! part of a disk, or the return of a disk that was not away. Such a fault is refused before
//! anything runs. Where only some subjects have the member, or the time of a fault never came,
//! that is told.

use crate::settings::Settings;
use crate::shown;
use raidlab_lab::Experiment;
use raidlab_store::{EventRecord, Scope};
use raidlab_uml_calendar::{Fault, ScheduledFault};
use raidlab_units::{Bytes, Nanos, Sectors};

/// The error of a fault that would have no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The fault is of a member that no subject has.
    #[error("a fault is of disk {disk}, but no subject has more than {members} (counted from 0)")]
    NoSuchDisk {
        /// The disk that the fault is of.
        disk: usize,
        /// The most members of a subject.
        members: usize,
    },
    /// A disk is to return that was not away.
    #[error("disk {disk} is to return at {at}, and has neither died nor hung before")]
    NotAway {
        /// The disk that the fault is of.
        disk: usize,
        /// The time at which it is to return.
        at: Nanos,
    },
    /// The fault is of sectors behind those of the disk that are used.
    #[error("a fault is of sectors up to {end} of disk {disk}, of which {used} are used")]
    Behind {
        /// The disk that the fault is of.
        disk: usize,
        /// The end of its sectors.
        end: Bytes,
        /// The used part of the disk.
        used: Bytes,
    },
}

/// Refuses faults that would have no effect in any experiment; returns the subjects that have not
/// the disk of one, each with that disk.
///
/// # Errors
/// With the first such fault.
pub fn check_faults(
    experiments: &[Experiment],
    settings: &Settings,
) -> Result<Vec<(String, usize)>, FaultError> {
    let mut spared = Vec::new();
    for (disk, ScheduledFault { fault, at }) in &settings.faults {
        let went = settings.faults.iter().any(|(other, earlier)| {
            let goes = matches!(earlier.fault, Fault::Dies | Fault::Hangs);
            other == disk && goes && earlier.at < *at
        });
        if *fault == Fault::Returns && !went {
            let (disk, at) = (*disk, *at);
            return Err(FaultError::NotAway { disk, at });
        }
        let members = experiments.iter().map(|one| one.disks.len());
        let members = members.max().unwrap_or(0);
        // Where nothing is left to be done, nothing is to be refused.
        if *disk >= members && !experiments.is_empty() {
            let disk = *disk;
            return Err(FaultError::NoSuchDisk { disk, members });
        }
        for experiment in experiments {
            // The run itself tells of a preset that cannot be read.
            let sizes = shown::sizes(experiment, settings);
            match sizes.as_ref().map(|sizes| sizes.get(*disk)) {
                Some(None) => spared.push((experiment.subject.name.clone(), *disk)),
                Some(Some(used)) => check_sectors(*disk, *fault, *used)?,
                None => {}
            }
        }
    }
    spared.sort();
    spared.dedup();
    Ok(spared)
}

fn check_sectors(disk: usize, fault: Fault, used: Bytes) -> Result<(), FaultError> {
    let (Fault::Unreadable { start, count, .. } | Fault::Unwritable { start, count }) = fault
    else {
        return Ok(());
    };
    let end = Sectors(start.0.saturating_add(count.0)).to_bytes();
    if end > used {
        return Err(FaultError::Behind { disk, end, used });
    }
    Ok(())
}

/// The faults whose time had not come when an experiment ended at `now`, as events.
pub(crate) fn missed(
    faults: &[(usize, ScheduledFault)],
    disks: usize,
    now: Nanos,
    scope: &Scope,
) -> Vec<EventRecord> {
    let late = faults
        .iter()
        .filter(|(disk, fault)| *disk < disks && fault.at > now);
    late.map(|(disk, fault)| EventRecord {
        scope: scope.clone(),
        at_ns: now.0,
        kind: "fault-missed".to_owned(),
        member: u32::try_from(*disk).ok(),
        text: format!(
            "the experiment ended before disk {disk} was to have its fault of {}",
            fault.at
        ),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_lab::{Choices, Suite};

    fn experiments() -> Vec<Experiment> {
        let suite = Suite::load("quick").expect("built in");
        let choices = Choices {
            fits: vec!["strict".to_owned()],
            ..Choices::default()
        };
        suite.experiments(&suite.subjects, &choices)
    }

    fn with(disk: usize, fault: Fault) -> Settings {
        let at = Nanos::from_secs(40);
        Settings {
            faults: vec![(disk, ScheduledFault { at, fault })],
            ..Settings::default()
        }
    }

    #[test]
    fn a_fault_of_a_disk_that_nobody_has_is_refused() {
        let experiments = experiments();
        let members = experiments.iter().map(|one| one.disks.len()).max();
        let members = members.expect("some");
        let error = check_faults(&experiments, &with(members, Fault::Dies));
        let disk = members;
        assert_eq!(error, Err(FaultError::NoSuchDisk { disk, members }));
        check_faults(&experiments, &with(members - 1, Fault::Dies)).expect("there is such a disk");
    }

    #[test]
    fn a_disk_that_was_not_away_does_not_return() {
        let experiments = experiments();
        let mut settings = with(1, Fault::Returns);
        let at = settings.faults[0].1.at;
        let refused = Err(FaultError::NotAway { disk: 1, at });
        assert_eq!(check_faults(&experiments, &settings), refused);
        for (disk, seconds, goes) in [(0, 30, false), (1, 50, false), (1, 30, true)] {
            let at = Nanos::from_secs(seconds);
            let fault = Fault::Hangs;
            settings.faults.push((disk, ScheduledFault { at, fault }));
            assert_eq!(
                check_faults(&experiments, &settings).is_ok(),
                goes,
                "{disk} {seconds}"
            );
        }
    }

    #[test]
    fn subjects_without_the_disk_are_named() {
        let mut experiments = experiments();
        experiments.truncate(2);
        experiments[1].disks.truncate(1);
        experiments[1].regions.truncate(1);
        let spared = check_faults(&experiments, &with(1, Fault::Hangs)).expect("one has it");
        assert_eq!(spared, [(experiments[1].subject.name.clone(), 1)]);
    }

    #[test]
    fn sectors_behind_what_is_used_are_refused() {
        let experiments = experiments();
        let bad = |start: u64| Fault::Unwritable {
            start: Sectors(start),
            count: Sectors(8),
        };
        // 4 GiB of each disk are used.
        let last = (4_u64 << 30) / 512 - 8;
        check_faults(&experiments, &with(0, bad(last))).expect("the last that are used");
        let error = check_faults(&experiments, &with(0, bad(last + 1)));
        assert!(matches!(error, Err(FaultError::Behind { disk: 0, .. })));
    }

    #[test]
    fn what_never_came_due_is_told() {
        let Settings { faults, .. } = with(1, Fault::Dies);
        let missed = |disks, seconds| {
            let now = Nanos::from_secs(seconds);
            missed(&faults, disks, now, &Scope::default())
        };
        assert_eq!(missed(2, 40), []);
        assert_eq!(missed(1, 39), []);
        let told = missed(2, 39);
        assert_eq!(told[0].member, Some(1));
        assert!(told[0].text.ends_with("of 40s"), "{}", told[0].text);
    }
}
