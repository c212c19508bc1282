//! A job: one set of requests, in fio's terms.
//!
//! The fields are fio's options with fio's meaning, as far as they change the requests to a disk.
//! Where versions of fio differ, fio 3 is followed; `stop_clock.rs` says what the old versions did.

mod error;
mod pattern;

pub use error::JobError;
pub use pattern::{Engine, Pattern};

use crate::shape::{
    Distribution, ExitWhat, Flow, LatencyTarget, Rate, Runs, Sizes, SteadyState, Strides, Thinking,
    Verify, ZoneRules,
};
use raidlab_units::{Bytes, Nanos};

/// Amounts and places in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Percents {
    /// fio `size`: percent of the bytes before the region's end, in whole blocks.
    pub size: Option<u32>,
    /// fio `io_size`: percent of the amount that `size` gives.
    pub io_size: Option<u32>,
    /// fio `offset`: percent of the device.
    pub offset: Option<u32>,
    /// fio `offset_increment`: percent of the device.
    pub offset_increment: Option<u32>,
}

/// One job: its requests, region, rate, and end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSpec {
    /// The job's name in reports.
    pub name: String,
    /// The directions and order of its requests (fio `rw`).
    pub pattern: Pattern,
    /// The size of each request, or of the smallest where they differ (fio `bs`); at least 1.
    pub block_size: Bytes,
    /// The sizes of reads, writes and discards, where they are not all `block_size`.
    pub sizes: Option<[Sizes; 3]>,
    /// Whether sizes of a range need not be multiples of the smallest (fio `bs_unaligned`).
    pub unaligned_sizes: bool,
    /// The alignment of random offsets of reads, writes and discards, where that is not the
    /// smallest size (fio `blockalign`).
    pub alignment: Option<[Bytes; 3]>,
    /// The number of bytes added to a sequential offset after each request, as the gap in
    /// `rw=read:64k`; negative goes backwards.
    pub step: i64,
    /// The sequential runs of a random job.
    pub runs: Runs,
    /// The distribution of random offsets.
    pub distribution: Distribution,
    /// Zones with gaps between them.
    pub strides: Option<Strides>,
    /// Zones that are written sequentially, emulated on a device without zones.
    pub zones: Option<ZoneRules>,
    /// The number of ranges of one discard (fio `num_range`); at least 1.
    pub ranges: u32,
    /// Whether a clone queues its discards, too; else it waits for each of them, as fio does where
    /// the kernel's asynchronous interface takes none.
    pub queues_trims: bool,
    /// The requests in flight per clone (fio `iodepth`); at least 1; used
    /// only with [`Engine::Libaio`].
    pub io_depth: u32,
    /// The clones of the job that run at once (fio `numjobs`); at least 1.
    pub num_jobs: u32,
    /// The region's length and the amount to do (fio `size`). `None`: to the end of the device.
    pub size: Option<Bytes>,
    /// The amount to do where it differs from `size` (fio `io_size`): passes of `size` are
    /// repeated until it is reached.
    pub io_size: Option<Bytes>,
    /// The region's end, counted from the start of the device (fio
    /// `filesize`); `size` is then only the amount.
    pub file_size: Option<Bytes>,
    /// The region's start (fio `offset`).
    pub offset: Bytes,
    /// The bytes added to `offset` for each further clone (fio `offset_increment`).
    pub offset_increment: Bytes,
    /// Percentages in place of `size`, `io_size`, `offset` and `offset_increment` (fio `size=50%`):
    /// of the region, of that amount, and of the device.
    pub percents: Percents,
    /// The alignment of a start in percent, where that is not the smallest
    /// request (fio `offset_align`).
    pub offset_align: Option<Bytes>,
    /// The number of times that the amount is done (fio `loops`); at least 1.
    pub loops: u32,
    /// Requests in each loop, counted over all loops together, after which the job ends (fio
    /// `number_ios`). `None`: no limit.
    pub request_limit: Option<u64>,
    /// The time after which the job ends (fio `runtime`), without ramp time.
    pub runtime: Option<Nanos>,
    /// Whether to continue from the start of the region until `runtime` is over (fio `time_based`).
    pub time_based: bool,
    /// The time at the start that the driver does not measure (fio `ramp_time`).
    pub ramp_time: Nanos,
    /// The percentage of reads in a mixed pattern, 0 to 100 (fio `rwmixread`).
    pub read_mix_percent: u32,
    /// The way in which its requests are submitted (fio `ioengine`).
    pub engine: Engine,
    /// Whether the clock is read on every 64th request only (fio
    /// `gtod_reduce`), see [`StopClock`](crate::StopClock).
    pub reduced_clock: bool,
    /// The pause of a clone after every `think_time_blocks` requests, which the driver
    /// makes (fio `thinktime`).
    pub think_time: Nanos,
    /// The number of requests between pauses (fio `thinktime_blocks`); at least 1.
    pub think_time_blocks: u32,
    /// The other conditions for its pauses.
    pub thinking: Thinking,
    /// The limit of its rate.
    pub rate: Option<Rate>,
    /// The job's share in the requests of its flow.
    pub flow: Option<Flow>,
    /// The delay of its start after its group's (fio `startdelay`).
    pub start_delay: Nanos,
    /// The job after whose end it starts (fio `wait_for`).
    pub wait_for: Option<String>,
    /// The number of requests in flight at or below which new ones are sent, once the depth
    /// was reached (fio `iodepth_low`, `iodepth_batch_complete_min`); `None`: as soon as
    /// one has completed.
    pub refill_at: Option<u32>,
    /// Reads and writes that a clone hands over together at most, at least 1 (fio
    /// `iodepth_batch`); counts only with [`Engine::Libaio`].
    pub submit_batch: u32,
    /// The reading back of written data.
    pub verify: Option<Verify>,
    /// The latency target that its depth follows.
    pub latency_target: Option<LatencyTarget>,
    /// The steady state at which the job ends.
    pub steady_state: Option<SteadyState>,
    /// Whether reads, writes and discards that fail are tolerated, without counting
    /// (fio `continue_on_error`, `ignore_error`).
    pub tolerates_errors: [bool; 3],
    /// The number of the report group: jobs of the same number are reported
    /// together (fio `new_group`).
    pub report_group: u32,
    /// The jobs that end with it under `exitall`.
    pub exit_what: ExitWhat,
    /// The seed of the offsets, directions and sizes (fio `randseed`), which are then fio's own.
    /// `None`: the stream that the driver passes.
    pub random_seed: Option<u64>,
    /// fio's number of the job's first process in its run, from 1: processes with one seed draw
    /// by their numbers.
    pub first_process: u32,
    /// Whether each block of the region is visited once before any block again: fio's random map,
    /// on unless `norandommap` is given.
    pub random_map: bool,
    /// The number of writes after which there is a flush (fio `fsync`); 0 means never.
    pub fsync_every: u32,
    /// The same number for fio `fdatasync`, which is the same flush on a bare device.
    pub fdatasync_every: u32,
    /// Whether there is a flush after the last request has completed, if the job wrote (fio
    /// `end_fsync`). The driver issues it, since the job's time includes it.
    pub end_fsync: bool,
    /// Whether each write is durable before it completes (fio `sync=1`, `sync=dsync`).
    pub sync_writes: bool,
    /// Whether the job waits until every job before it has ended (fio `stonewall`).
    pub stonewall: bool,
}

impl Default for JobSpec {
    /// fio's defaults: one synchronous clone that reads the whole device
    /// sequentially in blocks of 4 KiB.
    fn default() -> Self {
        Self {
            name: String::from("job"),
            pattern: Pattern::Read,
            block_size: Bytes(4096),
            sizes: None,
            unaligned_sizes: false,
            alignment: None,
            step: 0,
            runs: Runs::default(),
            distribution: Distribution::Even,
            strides: None,
            zones: None,
            ranges: 1,
            queues_trims: false,
            io_depth: 1,
            num_jobs: 1,
            size: None,
            io_size: None,
            file_size: None,
            offset: Bytes(0),
            offset_increment: Bytes(0),
            percents: Percents::default(),
            offset_align: None,
            loops: 1,
            request_limit: None,
            runtime: None,
            time_based: false,
            ramp_time: Nanos::ZERO,
            read_mix_percent: 50,
            engine: Engine::Sync,
            reduced_clock: false,
            think_time: Nanos::ZERO,
            think_time_blocks: 1,
            thinking: Thinking::default(),
            rate: None,
            flow: None,
            start_delay: Nanos::ZERO,
            wait_for: None,
            refill_at: None,
            submit_batch: 1,
            verify: None,
            latency_target: None,
            steady_state: None,
            tolerates_errors: [false; 3],
            report_group: 0,
            exit_what: ExitWhat::Group,
            random_seed: None,
            first_process: 1,
            random_map: true,
            fsync_every: 0,
            fdatasync_every: 0,
            end_fsync: false,
            sync_writes: false,
            stonewall: false,
        }
    }
}

/// The largest product of clones and depth of a job: Linux's default limit
/// of requests (`fs.aio-max-nr`).
const MOST_IN_FLIGHT: u64 = 1 << 16;

impl JobSpec {
    /// Whether it reads, including reading back what it wrote.
    #[must_use]
    pub const fn reads(&self) -> bool {
        self.pattern.reads() || self.verify.is_some()
    }

    /// Whether it reads while it writes, and not only to read back afterwards.
    #[must_use]
    pub fn reads_beside_writes(&self) -> bool {
        self.pattern.reads() || self.verify.is_some_and(|verify| verify.backlog > 0)
    }

    /// The smallest request of a direction: 0 reads, 1 writes, 2 discards.
    #[must_use]
    pub fn least(&self, direction: usize) -> Bytes {
        let sizes = self.sizes.as_ref();
        sizes.map_or(self.block_size, |sizes| sizes[direction].least())
    }

    /// Checks what can be checked without the device.
    ///
    /// # Errors
    /// The first contradiction found.
    pub fn validate(&self) -> Result<(), JobError> {
        let counts = [
            ("bs", self.block_size.0),
            ("iodepth", u64::from(self.io_depth)),
            ("numjobs", u64::from(self.num_jobs)),
            ("loops", u64::from(self.loops)),
            ("thinktime_blocks", u64::from(self.think_time_blocks)),
            ("number_ios", self.request_limit.unwrap_or(1)),
            ("num_range", u64::from(self.ranges)),
        ];
        for (option, count) in counts {
            if count == 0 {
                return Err(JobError::Zero { option });
            }
        }
        let in_flight = u64::from(self.num_jobs) * u64::from(self.io_depth);
        if in_flight > MOST_IN_FLIGHT {
            return Err(JobError::TooMany {
                what: "requests in flight",
                given: in_flight,
                most: MOST_IN_FLIGHT,
            });
        }
        if self.read_mix_percent > 100 {
            return Err(JobError::Percent {
                percent: self.read_mix_percent,
            });
        }
        let sizes = [
            ("size", self.size),
            ("io_size", self.io_size),
            ("filesize", self.file_size),
        ];
        for (option, size) in sizes {
            if let Some(given) = size.filter(|&given| given < self.block_size) {
                return Err(JobError::SmallerThanBlock {
                    option,
                    given,
                    block_size: self.block_size,
                });
            }
        }
        if self.time_based && self.runtime.is_none_or(|time| time == Nanos::ZERO) {
            return Err(JobError::TimeBasedWithoutRuntime);
        }
        Ok(())
    }

    /// The largest number of requests in flight, over all clones.
    #[must_use]
    pub fn queue_depth(&self) -> u32 {
        match self.engine {
            Engine::Libaio => self.io_depth.saturating_mul(self.num_jobs),
            Engine::Sync | Engine::Null => self.num_jobs,
        }
    }

    /// The start of clone `clone`; fio rounds a start that involves percentages up to the next
    /// whole block. `None` where it does not fit into 64 bits.
    fn start(&self, clone: u32, device_size: Bytes) -> Option<u64> {
        let part = |percent: u32| {
            let part = u128::from(device_size.0) * u128::from(percent) / 100;
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let percents = &self.percents;
        let increment = percents
            .offset_increment
            .map_or(self.offset_increment.0, part);
        let start = u64::from(clone)
            .checked_mul(increment)?
            .checked_add(percents.offset.map_or(self.offset.0, part))?;
        if percents.offset.is_none() && percents.offset_increment.is_none() {
            return Some(start);
        }
        start.checked_next_multiple_of(self.offset_align.unwrap_or(self.block_size).0.max(1))
    }

    /// The region of clone `clone` (0 is the first) on a device of `device_size`: the start and the
    /// length. A region that reaches beyond the device's end is cut there.
    ///
    /// The rule is that of `setup_files` in fio's filesetup.c: with `filesize`
    /// the region ends there, else with `size` it is that long, else it ends
    /// with the device.
    ///
    /// # Errors
    /// [`JobError::OffsetBehindEnd`], [`JobError::TooLarge`].
    pub fn region(&self, clone: u32, device_size: Bytes) -> Result<(Bytes, Bytes), JobError> {
        let too_large = JobError::TooLarge {
            option: "offset_increment",
        };
        let start = self.start(clone, device_size).ok_or(too_large)?;
        let behind = |what, end| JobError::OffsetBehindEnd {
            clone,
            offset: Bytes(start),
            what,
            end,
        };
        let room = device_size
            .0
            .checked_sub(start)
            .filter(|&room| room > 0)
            .ok_or_else(|| behind("the device", device_size))?;
        let wanted = match (self.file_size, self.size) {
            (Some(end), _) => end
                .0
                .checked_sub(start)
                .filter(|&wanted| wanted > 0)
                .ok_or_else(|| behind("filesize", end))?,
            (None, Some(size)) => size.0,
            (None, None) => room,
        };
        let mut length = wanted.min(room);
        if let Some(percent) = self.percents.size {
            // fio takes the share of all bytes before the region's end.
            let share = u128::from(start + length) * u128::from(percent) / 100;
            length = u64::try_from(share).map_or(length, |share| share.min(length));
            length -= length % self.block_size.0.max(1);
        }
        Ok(self.align_to_zones((Bytes(start), Bytes(length))))
    }
}

/// Jobs that run at the same time. Groups run one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobGroup {
    /// The jobs in the order of the job file.
    pub jobs: Vec<JobSpec>,
    /// Whether the first job to end ends the others too (fio `exitall`).
    pub stop_together: bool,
}

/// Splits jobs into groups: a job with `stonewall` starts a new one.
/// `stop_together` goes to every group, as fio's `exitall` is one switch for
/// all jobs wherever it stands.
#[must_use]
pub fn group_jobs(jobs: Vec<JobSpec>, stop_together: bool) -> Vec<JobGroup> {
    let mut groups: Vec<JobGroup> = Vec::new();
    let mut process = 1_u32;
    for mut job in jobs {
        job.first_process = process;
        process = process.saturating_add(job.num_jobs);
        if job.stonewall || groups.is_empty() {
            groups.push(JobGroup {
                jobs: Vec::new(),
                stop_together,
            });
        }
        if let Some(group) = groups.last_mut() {
            group.jobs.push(job);
        }
    }
    groups
}

#[cfg(test)]
mod tests;
