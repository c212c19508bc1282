//! Facts about a job that every bench knows before it runs, for the audit of its rows: how much
//! fio's jobs are to do and where, and what the suite has done to members.

use crate::suite::{Event, EventKind};
use raidlab_store::fact;
use raidlab_units::{Bytes, Nanos};
use raidlab_workload::JobGroup;
use std::collections::BTreeSet;

/// The amounts that fio's jobs of one group are to do together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    runtime_ns: Option<u64>,
    amount_bytes: Option<u64>,
    working_set_bytes: Option<u64>,
    offset_bytes: Option<u64>,
}

impl Asked {
    /// Computes the amounts on a device or folder of so many bytes; `own_files`: each clone has a
    /// file of its own.
    #[must_use]
    pub fn of(group: &JobGroup, capacity: Bytes, own_files: bool) -> Self {
        let amounts = group.jobs.iter().map(|job| {
            if job.time_based || job.request_limit.is_some() || job.percents.io_size.is_some() {
                return None;
            }
            // `loops` is the number of passes, of which only as many are done as `io_size` allows.
            let loops = u64::from(job.loops);
            let passes = job.size.and_then(|size| size.0.checked_mul(loops));
            let amount = match job.io_size {
                None => passes?,
                Some(io_size) if loops == 1 => io_size.0,
                Some(io_size) => passes?.clamp(io_size.0, io_size.0.checked_mul(loops)?),
            };
            amount.checked_mul(u64::from(job.num_jobs))
        });
        let regions = regions(group, capacity);
        let set = regions.clone().map(|regions| match own_files {
            true => regions.iter().map(|(_, length)| length).sum(),
            false => union(regions),
        });
        let starts = regions.iter().flatten().map(|(start, _)| *start);
        Self {
            runtime_ns: common_runtime(group).map(|time| time.0),
            amount_bytes: amounts
                .reduce(|one, other| one?.checked_add(other?))
                .flatten(),
            working_set_bytes: set,
            offset_bytes: starts.min(),
        }
    }

    /// The known facts: name, value, unit.
    pub fn facts(&self) -> impl Iterator<Item = (&'static str, u64, &'static str)> {
        [
            (fact::JOB_ASKED_RUNTIME_NS, self.runtime_ns, "ns"),
            (fact::JOB_ASKED_SIZE_BYTES, self.amount_bytes, "bytes"),
            (fact::JOB_WORKING_SET_BYTES, self.working_set_bytes, "bytes"),
            (fact::JOB_OFFSET_BYTES, self.offset_bytes, "bytes"),
        ]
        .into_iter()
        .filter_map(|(name, value, unit)| Some((name, value?, unit)))
    }
}

/// How long all jobs of a group are to run; `None` where they are told differently, or not
/// all of them.
fn common_runtime(group: &JobGroup) -> Option<Nanos> {
    let mut times = group.jobs.iter().map(|job| job.runtime);
    let first = times.next().flatten()?;
    times.all(|time| time == Some(first)).then_some(first)
}

/// The start and length of every clone's region; `None` where fio would refuse one.
fn regions(group: &JobGroup, capacity: Bytes) -> Option<Vec<(u64, u64)>> {
    let clones = group
        .jobs
        .iter()
        .flat_map(|job| (0..job.num_jobs).map(move |clone| job.region(clone, capacity)));
    let region = clones.map(|region| region.ok().map(|(start, length)| (start.0, length.0)));
    region.collect()
}

/// The bytes that some regions cover together.
fn union(mut regions: Vec<(u64, u64)>) -> u64 {
    regions.sort_unstable();
    let (mut covered, mut end) = (0_u64, 0_u64);
    for (start, length) in regions {
        let until = start.saturating_add(length);
        covered = covered.saturating_add(until.saturating_sub(start.max(end)));
        end = end.max(until);
    }
    covered
}

/// The suite's events so far, which tell what state of the array it intends for its jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deeds {
    /// The members that were taken out and not put back.
    away: BTreeSet<u16>,
    /// Whether something has happened to a member, without a later wait for the end of copying.
    unsettled: bool,
    /// Whether what happened last is that a check of the whole array began.
    checking: bool,
}

impl Deeds {
    /// Records an event of a member.
    pub fn happens(&mut self, event: Event) {
        self.unsettled = true;
        self.checking = false;
        match event.kind {
            EventKind::Fail | EventKind::Remove => self.away.insert(event.member),
            EventKind::Insert | EventKind::ReAdd => self.away.remove(&event.member),
        };
    }

    /// Records that a check of the whole array begins.
    pub const fn checks(&mut self) {
        self.unsettled = true;
        self.checking = true;
    }

    /// Records that the suite has waited until nothing was copied any more.
    pub const fn settled(&mut self) {
        self.unsettled = false;
        self.checking = false;
    }

    /// Whether the suite has begun a check of the whole array, and nothing has happened since.
    #[must_use]
    pub const fn is_checking(&self) -> bool {
        self.checking
    }

    /// The number of members that the suite has taken out and not put back.
    #[must_use]
    pub fn away(&self) -> usize {
        self.away.len()
    }

    /// Whether the suite intends jobs to run now while something may be copied.
    #[must_use]
    pub const fn allows_sync(&self) -> bool {
        self.unsettled
    }

    /// Whether the suite intends jobs to run now on a degraded array.
    #[must_use]
    pub fn allows_degraded(&self) -> bool {
        self.unsettled || !self.away.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, Deeds, union};
    use crate::suite::{Event, EventKind};
    use raidlab_units::Bytes;
    use raidlab_workload::{FioJobs, Permission};

    #[test]
    fn regions_that_overlap_count_once() {
        assert_eq!(union(vec![(0, 10), (5, 10), (30, 5), (30, 5)]), 20);
        assert_eq!(union(Vec::new()), 0);
        assert_eq!(union(vec![(u64::MAX, u64::MAX), (0, 1)]), 1);
    }

    /// What is asked for is told where the options say it, and nowhere else.
    #[test]
    fn an_amount_is_what_fio_makes_of_the_options() {
        for (options, expected) in [
            ("--size=1m --loops=3 --numjobs=2", Some(6 << 20)),
            ("--size=1m --io_size=4m", Some(4 << 20)),
            ("--size=1m --io_size=4m --loops=2", Some(4 << 20)),
            ("--size=1m --io_size=50%", None),
            ("--size=1m --number_ios=5", None),
            ("--size=1m --time_based --runtime=5", None),
            ("", None),
            (
                "--name=a --size=1m --io_size=8388608t --name=b --size=1m --io_size=8388608t",
                None,
            ),
        ] {
            let words: Vec<&str> = options.split_whitespace().collect();
            let jobs = FioJobs::from_command_line("x", &words, &Permission::default());
            let file = jobs.and_then(|jobs| jobs.model()).expect("modelled");
            let asked = Asked::of(&file.groups[0], Bytes(1 << 30), false);
            assert_eq!(asked.amount_bytes, expected, "{options}");
        }
    }

    /// A job that is told less time than those beside it has not ended early.
    #[test]
    fn a_time_is_asked_for_where_all_jobs_have_it() {
        for (options, expected) in [
            (
                "--name=a --runtime=2 --name=b --runtime=2",
                Some(2_000_000_000),
            ),
            ("--name=a --runtime=1 --name=b --runtime=2", None),
            ("--name=a --size=1m --name=b --runtime=2", None),
        ] {
            let words: Vec<&str> = options.split_whitespace().collect();
            let jobs = FioJobs::from_command_line("x", &words, &Permission::default());
            let file = jobs.and_then(|jobs| jobs.model()).expect("modelled");
            let asked = Asked::of(&file.groups[0], Bytes(1 << 30), false);
            assert_eq!(asked.runtime_ns, expected, "{options}");
        }
    }

    #[test]
    fn a_suite_means_what_it_does_until_it_waits() {
        let mut deeds = Deeds::default();
        assert!(!deeds.allows_sync() && !deeds.allows_degraded());
        let event = |kind| Event { kind, member: 1 };
        deeds.happens(event(EventKind::Remove));
        deeds.settled();
        assert!(!deeds.allows_sync() && deeds.allows_degraded());
        deeds.happens(event(EventKind::Insert));
        assert!(deeds.allows_sync() && deeds.allows_degraded());
        assert_eq!(deeds.away(), 0);
        deeds.settled();
        assert!(!deeds.allows_sync() && !deeds.allows_degraded());
        deeds.checks();
        assert!(deeds.allows_sync() && deeds.is_checking());
        deeds.happens(event(EventKind::Insert));
        assert!(!deeds.is_checking());
    }
}
