//! Leaps over hours that need not be simulated.
//!
//! In two phases nothing changes but the place: one sequential stream on an otherwise idle subject,
//! and a recovery without foreground I/O. Both move along the disk at a speed that is the platters'
//! times a constant: how much of the disk's own pace the subject keeps. So such a phase is sampled:
//! it is simulated until it runs evenly, then measured over a sample, as *place per time*, both in
//! the disk's positions (nanoseconds of streaming, which take the rate curve into account). Then
//! the phase is drained, the clock and the place jump together by that ratio, the disks' heads are
//! put where they would be, and simulation goes on, up to the next sample. Counters and latencies
//! of what was skipped are those of the sample, in proportion.
//!
//! A leap is never longer than the subject's `longest_sync_leap` or `longest_leap`, so that a pace
//! that does depend on the place (of host-bound subjects) is followed.
//!
//! That holds for a sync that is *even*. A second is enough for a sample of it. Two samples in a
//! row must agree before the first leap of a wait, as a job may have left something behind; until
//! then everything is simulated. Three other kinds of syncs need longer samples. Their pace is the
//! mean place in the second half of a sample less that in the first, whatever they did at its ends:
//!
//! * Some *grow*. md's stripe cache grows while a sync of RAID 4, 5 or 6 runs, and its rate with
//!   it, from a third of the disks' pace to all of it in ten seconds. Platters of one kind set the
//!   pace from then on, so one leap may go to the sync's end.
//! * Some have a *rhythm*. With a bitmap a sync of any level comes to rest every five seconds,
//!   and after that thousands of stripes begin together. A half of a sample is as long as the
//!   rhythm. The cache grows on for an hour, ever more slowly, and with it the time that the sync
//!   rests. So a leap is at most half as long as the wait has been so far, and so is one over a
//!   sync that grows and does not reach the disks' own pace. The pace is taken to change on as it
//!   did in the last leap. The sample behind a leap shows what it changed by in truth, and the next
//!   leap is longer or shorter by what the last one lacked or had too much. Before the first leap
//!   nothing is expected to change: neighbouring samples differ by chance, most of all where a
//!   sync passes over parts.
//! * Others are *held back*: md's throttle lets a sync go at full speed up to its maximum, and
//!   then sleeps for half a second, so that the maximum holds over half a minute. An even pace may
//!   be so slow that a second has a few blocks, or none. Samples of them are a minute long. They
//!   are leaped over in sectors, as the throttle counts them, whatever the disks could do. Behind
//!   a job that has slowed it, a sync goes at full speed until the throttle has seen so. What is
//!   faster than the maximum and does not sleep yet is no sample.
//!
//! Where a former member gets only what it missed, a sync passes over the rest in no time. So
//! what counts of a sync is its *way*: the places of what it has to copy, one behind the other.

mod sampled;
mod way;

use crate::drive::Drive;
use crate::jobs::Jobs;
use crate::machine::{Load, Machine, SimError, Watch};
use crate::result::{Latencies, MemberStatistics};
use crate::subject::Gait;
use raidlab_units::{Bytes, Nanos, Sectors};
use raidlab_workload::Direction;
use sampled::{LOOK, Sampled, between_halves, is_own_pace};

/// The longest leap over a sync that is held back, on disks that turn: further in they may be
/// slower than the limit. Where nothing turns, the limit holds to the sync's end.
const LONGEST_HELD_LEAP: Nanos = Nanos::from_secs(3600);

/// The longest time of a drain, which takes seconds at most; a subject that is not quiet after this
/// has work of its own, and is not leaped.
const LONGEST_DRAIN: Nanos = Nanos::from_secs(120);

/// The state of the leaps of a job.
#[derive(Debug)]
pub(crate) struct LeapPlan {
    /// The time at which sampling begins, when the stream runs evenly.
    sample_at: Nanos,
    sample: Option<Sample>,
}

#[derive(Debug)]
struct Sample {
    started: Nanos,
    ends: Nanos,
    offset: Bytes,
    latency: Latencies,
    members: Vec<MemberStatistics>,
}

impl Machine {
    /// Makes a plan, if the group is one long sequential stream. What a processor does for its
    /// requests is counted, not reckoned.
    pub(crate) fn leap_plan(&self, jobs: &Jobs) -> Option<LeapPlan> {
        let (_, _, left) = jobs.lone_sequential()?;
        let simulates = !self.leaps || self.processor.is_some();
        if simulates || self.sync().is_some() || left.0 < self.shortest_leap().0 * 2 {
            return None;
        }
        Some(LeapPlan {
            // The requests that are leaped over count too.
            sample_at: self.now.max(jobs.counts_from) + self.subject.leap_sample(),
            sample: None,
        })
    }

    /// The shortest leap that saves anything: four samples at 200 MB/s.
    fn shortest_leap(&self) -> Bytes {
        Bytes(self.subject.leap_sample().0 / 1_000_000_000 * 4 * 200_000_000 + (1 << 30))
    }

    /// The position of a sector on the first disk. Leaps are made only where that is a whole one.
    fn position(&self, sector: u64) -> u64 {
        let surface = self.drives[0].surface();
        surface.map_or(sector, |surface| surface.position(sector))
    }

    /// The place of an address of the subject, on the first disk.
    fn place(&self, sector: Sectors) -> u64 {
        self.position(self.subject.member_sector(sector).0)
    }

    /// Samples a leapable job, and leaps when the sample is complete; called before each event
    /// of the job.
    pub(crate) fn leap_job(
        &mut self,
        plan: &mut LeapPlan,
        jobs: &mut Jobs,
        watch: &mut Watch<'_>,
    ) -> Result<(), SimError> {
        if self.now < plan.sample_at {
            return Ok(());
        }
        let Some((direction, offset, left)) = jobs.lone_sequential() else {
            plan.sample_at = Nanos::MAX;
            return Ok(());
        };
        if left.0 < self.shortest_leap().0 {
            plan.sample_at = Nanos::MAX;
            return Ok(());
        }
        if matches!(&plan.sample, Some(sample) if self.now < sample.ends) {
            return Ok(());
        }
        let latency = match direction {
            Direction::Write => &jobs.results[0].writes.latency,
            _ => &jobs.results[0].reads.latency,
        };
        match plan.sample.take() {
            // The pace of a shingled disk at the begin of a stream is not its later one.
            None if !self.is_steady() => plan.sample_at = self.now + self.subject.leap_sample(),
            None => {
                plan.sample = Some(Sample {
                    started: self.now,
                    ends: self.now + self.subject.leap_sample(),
                    offset,
                    latency: latency.clone(),
                    members: self.member_statistics(),
                });
            }
            Some(sample) => {
                self.leap_over(&sample, (direction, offset), jobs, watch)?;
                plan.sample_at = self.now + self.subject.leap_sample();
            }
        }
        Ok(())
    }

    fn leap_over(
        &mut self,
        sample: &Sample,
        (direction, offset): (Direction, Bytes),
        jobs: &mut Jobs,
        watch: &mut Watch<'_>,
    ) -> Result<(), SimError> {
        let sampled_time = self.now - sample.started;
        let sampled_bytes = offset - sample.offset;
        let sampled_place =
            self.place(offset.to_sectors()) - self.place(sample.offset.to_sectors());
        let members: Vec<MemberStatistics> = self
            .member_statistics()
            .iter()
            .zip(&sample.members)
            .map(|(now, before)| now.since(*before))
            .collect();
        jobs.hold(self);
        if self.drain(Some(jobs), Nanos::MAX, watch)? && sampled_place > 0 {
            let (_, from, left) = jobs
                .lone_sequential()
                .unwrap_or((direction, offset, Bytes(0)));
            let bytes = Bytes(
                left.0
                    .saturating_sub(self.shortest_leap().0 / 2)
                    .min(self.subject.longest_leap().0),
            );
            let skipped = jobs.skip(bytes, &sample.latency);
            let (start, end) = (from.to_sectors(), (from + skipped).to_sectors());
            let place = self.place(end) - self.place(start);
            let time = crate::result::scale(place, sampled_time.0, sampled_place);
            for (index, statistics) in members.iter().enumerate() {
                jobs.add_leaped_member(index, statistics.scaled(skipped.0, sampled_bytes.0));
            }
            if direction == Direction::Write {
                self.subject.leap_write(start, end - start);
            }
            self.jump(Nanos(time), self.subject.member_sector(end));
        }
        jobs.release(self);
        Ok(())
    }

    /// Whether every disk goes on as it does now.
    fn is_steady(&self) -> bool {
        self.drives.iter().all(Drive::is_steady)
    }

    /// Moves the clock by `time` and every head to a member's `sector`.
    fn jump(&mut self, time: Nanos, sector: Sectors) {
        self.now += time;
        self.leaped += time;
        for drive in &mut self.drives {
            drive.leap(sector);
        }
    }

    /// Runs until nothing is in flight or dirty anywhere; returns false if that does not come about
    /// in reasonable time, or before `end`.
    fn drain(
        &mut self,
        mut jobs: Option<&mut Jobs>,
        end: Nanos,
        watch: &mut Watch<'_>,
    ) -> Result<bool, SimError> {
        let end = end.min(self.now + LONGEST_DRAIN);
        loop {
            let flying = jobs.as_ref().map_or(0, |jobs| jobs.in_flight());
            let drives = self.drives.iter().all(Drive::is_quiet);
            let cores = self.processor.as_ref();
            let cores = cores.is_none_or(|cores| cores.next_time() == u64::MAX);
            let quiet = flying == 0 && self.subject.is_idle() && drives && cores;
            if quiet {
                return Ok(true);
            }
            let load = jobs.as_deref_mut().map(|jobs| jobs as &mut dyn Load);
            if !self.step(load, end, watch)? {
                return Ok(false);
            }
        }
    }

    /// The way in which a sync moves that has just slept, or has not.
    fn gait(&self, slept: bool) -> Gait {
        if slept {
            Gait::HeldBack
        } else {
            self.subject.sync_gait()
        }
    }

    /// The length of a sync's sample, and how much must be left of the sync, or of a wait for it,
    /// for a leap: less is as soon simulated.
    fn sample_of(&self, gait: Gait) -> (Nanos, Nanos) {
        let (sample, worth) = match gait {
            Gait::Even => (self.subject.leap_sample(), 8),
            Gait::Growing(time) | Gait::Rhythmic(time) => (time * 2, 4),
            // The sample is twice as long as md's throttle looks back.
            Gait::HeldBack => (Nanos::from_secs(60), 2),
        };
        (sample, sample * worth)
    }

    /// Lets a recovery run until `end`, leaping where it runs evenly.
    pub(crate) fn leap_sync_until(
        &mut self,
        end: Nanos,
        watch: &mut Watch<'_>,
    ) -> Result<(), SimError> {
        let began = self.now;
        let mut gait = self.gait(false);
        let mut last: Option<Sampled> = None;
        let mut has_agreed = false;
        loop {
            let (sample, worth) = self.sample_of(gait);
            if self.sync().is_none() || self.now + worth >= end {
                return Ok(());
            }
            self.run_sample(sample / 4, watch)?;
            let Some(before) = self.sync() else {
                return Ok(());
            };
            let (Some(way), Some(sectors)) = (self.way(gait), self.way(Gait::HeldBack)) else {
                return Ok(());
            };
            let was_steady = self.is_steady();
            let started = self.now;
            let looks = self.run_sample(sample, watch)?;
            let Some(after) = self.sync() else {
                return Ok(());
            };
            // Members are filled one after the other: this is the sync of another one.
            let goes_on = after.position >= before.position;
            has_agreed &= goes_on;
            let gait_before = std::mem::replace(&mut gait, self.gait(after.sleeps > before.sleeps));
            let copied = self.gone(&sectors, after.position);
            let is_ahead =
                gait != Gait::HeldBack && is_ahead(copied, after.fastest, self.now - started);
            if !goes_on || !was_steady || gait != gait_before || is_ahead {
                last = None;
                continue;
            }
            let places: Vec<u64> = looks.iter().map(|look| self.gone(&way, *look)).collect();
            let keeps_up = self.keeps_up(gait, after.total, &places);
            let (moved, took) = match gait {
                _ if keeps_up => (sample.0, sample),
                Gait::Even => (self.gone(&way, after.position), self.now - started),
                Gait::Growing(_) | Gait::Rhythmic(_) | Gait::HeldBack => between_halves(&places),
            };
            let mut sampled = Sampled::new(self.now, (moved, took));
            let before = last.replace(sampled);
            has_agreed |= keeps_up || gait == Gait::HeldBack;
            // Two samples in which nothing moved agree too, and tell no pace.
            has_agreed |= moved > 0 && before.is_some_and(|before| before.agrees(&sampled));
            if moved == 0 || !has_agreed {
                continue;
            }
            self.freeze_sync();
            if self.drain(None, end, watch)? && self.now < end {
                let longest = self.longest_leap_of(gait, keeps_up, self.now - began);
                let time = longest.min(end - self.now);
                let may_change = matches!(gait, Gait::Growing(_) | Gait::Rhythmic(_));
                if may_change && !keeps_up {
                    sampled.expect(before, time);
                }
                self.leap_recovery(time, &mut sampled, gait);
                last = Some(sampled);
            }
            self.thaw_sync();
        }
    }

    /// Runs for `time`, or until the sync has ended, and returns its positions, from the begin on.
    fn run_sample(&mut self, time: Nanos, watch: &mut Watch<'_>) -> Result<Vec<Sectors>, SimError> {
        let end = self.now + time;
        let mut positions: Vec<_> = self.sync().map(|sync| sync.position).into_iter().collect();
        while self.now < end && self.sync().is_some() {
            self.run_until(end.min(self.now + LOOK), watch)?;
            positions.extend(self.sync().map(|sync| sync.position));
        }
        Ok(positions)
    }

    /// Whether nothing but the platters holds a sync back that was at these places: it has grown
    /// as fast as they are, and all have the same rates up to its end.
    fn keeps_up(&self, gait: Gait, total: Sectors, places: &[u64]) -> bool {
        let sector = self.subject.member_sync_sector(total).0;
        let end = |drive: &Drive| Some(drive.surface()?.position(sector));
        let first = end(&self.drives[0]);
        let are_alike = first.is_some() && self.drives.iter().all(|drive| end(drive) == first);
        let latest = &places[places.len() * 3 / 4..];
        matches!(gait, Gait::Growing(_)) && are_alike && is_own_pace(latest)
    }

    /// The longest leap over a sync that goes so, or as fast as the disks can, in a wait that has
    /// lasted so long.
    fn longest_leap_of(&self, gait: Gait, keeps_up: bool, lasted: Nanos) -> Nanos {
        match gait {
            _ if keeps_up => Nanos::MAX,
            Gait::HeldBack if !self.drives.iter().any(Drive::turns) => Nanos::MAX,
            Gait::HeldBack => LONGEST_HELD_LEAP,
            Gait::Growing(_) | Gait::Rhythmic(_) => {
                (lasted / 2).min(self.subject.longest_sync_leap())
            }
            Gait::Even => self.subject.longest_sync_leap(),
        }
    }

    /// Jumps a drained recovery forward for at most this time, at the pace that the sample expects.
    fn leap_recovery(&mut self, longest: Nanos, sampled: &mut Sampled, gait: Gait) {
        let (Some(now), Some(way)) = (self.sync(), self.way(gait)) else {
            return;
        };
        let (moved, took) = sampled.expected;
        // The very end is simulated: that is where the array changes state.
        let left = self.gone(&way, now.total);
        let left = left - (left / 1000).min(moved);
        let time_left = crate::result::scale(left, took.0, moved);
        let time = longest.min(Nanos(time_left));
        let position = self.reached(&way, crate::result::scale(moved, time.0, took.0));
        // Sync positions are multiples of the largest sync request (1 MiB).
        let position = position.max(now.position);
        let position = Sectors(position.0 / 2048 * 2048).clamp(now.position, now.total);
        self.jump(time, self.subject.member_sync_sector(position));
        self.leap_sync(position);
        sampled.leapt = time;
    }
}

/// Whether a sync that has copied so much in this time, without a sleep, will soon sleep: md looks
/// back half a minute, in which a job may have slowed the sync. It counts whole seconds, so that a
/// sync may be up to 4 % faster for ever.
fn is_ahead(copied: u64, fastest: Option<Sectors>, time: Nanos) -> bool {
    fastest.is_some_and(|fastest| {
        let allowed = u128::from(fastest.0) * u128::from(time.0) * 21 / 20;
        u128::from(copied) * u128::from(Nanos::SECOND.0) > allowed
    })
}
