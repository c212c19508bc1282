//! The names of facts: what writers of observations and series (the host
//! bench, importers, the inventory) and their readers (audit, report) share.
//!
//! A name is dotted, lower case, with its unit at the end where it has one.
//! Values are text: whole numbers and decimals with a point, [`TRUE`] or
//! [`FALSE`], or words. A fact that is not known is not written; nothing
//! stands for "unknown". Devices are named as the kernel does, without
//! `/dev/`: `sdb1`, `nvme0n1p1`, `ada2`, `mirror/m0`. They may hold dots, so
//! names are put together and looked up, never taken apart.
//!
//! The inventory has more names for a machine than these: its own table lists them all, and spells
//! those below in the same way.
//!
//! The scope says what a fact is about: a machine (only `host` is filled), a
//! subject (also `subject`, and `filesystem` where it depends on that), or a
//! cell (all parts). The constants below are grouped by it.

pub mod disk_property;
mod names;

pub use names::{is_known, like};

use crate::Operation;

/// The value of a fact that holds.
pub const TRUE: &str = "true";
/// The value of a fact that does not hold.
pub const FALSE: &str = "false";

// Facts of a machine.

/// The size of main memory, bytes (`MemTotal`, `hw.physmem`).
pub const MEMORY_TOTAL_BYTES: &str = "memory.total_bytes";
/// The operating system or distribution: `Debian`, `FreeBSD`.
pub const OS_NAME: &str = "os.name";
/// The release of the operating system: `5.0.5`, `12.2`.
pub const OS_VERSION: &str = "os.version";
/// The kernel: `Linux`, `FreeBSD`.
pub const OS_KERNEL: &str = "os.kernel";
/// The kernel's release: `3.16.0-31-generic`.
pub const OS_RELEASE: &str = "os.release";
/// The processor's model.
pub const CPU_MODEL: &str = "cpu.model";
/// The number of the machine's logical processors.
pub const CPU_COUNT: &str = "cpu.count";
/// The frequency policy of the processors: `performance`, `powersave`; the worst where they differ.
pub const CPU_GOVERNOR: &str = "cpu.governor";
/// The version of a program: [`version`]`("fio")` is `version.fio`. A fact of the machine or, where
/// versions differ between them, of a subject. `mdadm`, `zfs`, `bonnie++`.
#[must_use]
pub fn version(program: &str) -> String {
    format!("version.{program}")
}

/// A property of a device: `disk.sdb.model`; properties are in [`disk_property`]. A fact of the
/// machine; readings that change (temperature, SMART counts) also of a cell, at its end.
#[must_use]
pub fn disk(device: &str, property: &str) -> String {
    format!("disk.{device}.{property}")
}

// Facts of a subject.

/// The level of the array: `raid0`, `raid1`, `raid5`, `raid6`, `raid10`, `mirror`, `raidz1`,
/// `linear`, `single`, as the system names it.
pub const ARRAY_LEVEL: &str = "array.level";
/// The system that implements the array: `md`, `gmirror`, `gflash`, `zfs`, `btrfs`, `lvm`, `disk`.
pub const ARRAY_SYSTEM: &str = "array.system";
/// The size of a chunk, bytes.
pub const ARRAY_CHUNK_BYTES: &str = "array.chunk_bytes";
/// The data in a whole stripe, bytes.
pub const ARRAY_STRIPE_BYTES: &str = "array.stripe_bytes";
/// Bytes that all members together write for each byte written in sequence: `2` for two
/// copies of everything.
pub const ARRAY_MEMBER_BYTES_PER_BYTE: &str = "array.member_bytes_per_byte";
/// `true` where rewritten data go to another place.
pub const ARRAY_COPIES_ON_WRITE: &str = "array.copies_on_write";
/// The bytes that can be stored.
pub const ARRAY_CAPACITY_BYTES: &str = "array.capacity_bytes";
/// The write-intent bitmap: `internal`, `none`, `external`, `default` (md's own choice, not known).
pub const ARRAY_BITMAP: &str = "array.bitmap";
/// The smallest block that the array or data set rewrites whole (recordsize, volblocksize), bytes.
pub const ARRAY_RECORD_BYTES: &str = "array.record_bytes";
/// The auxiliary devices of a ZFS pool: `cache`, `log`, `cache log`.
pub const ARRAY_AUXILIARY: &str = "array.auxiliary";
/// The compression: `off` or an algorithm.
pub const COMPRESSION: &str = "compression";
/// The ratio of logical bytes to stored ones; for a cell, after it.
pub const COMPRESS_RATIO: &str = "compression.ratio";
/// The deduplication: `off` or an algorithm.
pub const DEDUPLICATION: &str = "deduplication";
/// The ratio of referenced bytes to stored ones; for a cell, after it.
pub const DEDUPLICATION_RATIO: &str = "deduplication.ratio";
/// The share of the pool or file system that is in use, percent; for a cell, before it.
pub const FILL_PERCENT: &str = "fill_percent";
/// The share of the job's region that was ever written, percent; for a cell, before it.
pub const WRITTEN_PERCENT: &str = "written_percent";
/// ZFS's measure of its free space, percent.
pub const FRAGMENTATION_PERCENT: &str = "fragmentation_percent";
/// The options with which the file system was made, as its program took them.
pub const FILESYSTEM_OPTIONS: &str = "filesystem.options";
/// The type of the file system: `ext4`, `ufs`; its label may say more.
pub const FILESYSTEM_TYPE: &str = "filesystem.type";
/// `true` where ext4's tables or journal are still written in the background.
pub const FILESYSTEM_LAZY: &str = "filesystem.lazy_initialisation";
/// The stripe width that the file system was given, bytes; 0 for none.
pub const FILESYSTEM_STRIPE_BYTES: &str = "filesystem.stripe_bytes";

/// The device in a slot, from 0: `member.0.device`.
#[must_use]
pub fn member_device(slot: usize) -> String {
    format!("member.{slot}.device")
}

/// The role of a member beside being one: `write-mostly`, `spare`, `journal`, `replacement`.
#[must_use]
pub fn member_role(slot: usize) -> String {
    format!("member.{slot}.role")
}

/// The parts of a setting or an option, for [`setting`] and [`option`].
pub mod outcome {
    /// The requested value; not written where the default was taken.
    pub const ASKED: &str = "asked";
    /// The value in force, as read back.
    pub const FOUND: &str = "found";
    /// Whether the requested value is in force.
    pub const APPLIED: &str = "applied";
}

/// A setting of the subject or, in its scope, of the machine:
/// `setting.primarycache.found`; `what` is one of [`outcome`]. Names are the
/// system's own: `ashift`, `recordsize`, `vfs.zfs.prefetch_disable`.
#[must_use]
pub fn setting(name: &str, what: &str) -> String {
    format!("setting.{name}.{what}")
}

// Facts of a cell: the job as requested and as reported.

/// An option of the cell's tool: `option.iodepth.asked`; `what` is one of
/// [`outcome`].
#[must_use]
pub fn option(name: &str, what: &str) -> String {
    format!("option.{name}.{what}")
}

/// An option as fio reports or logs it: `fio.option.gtod_reduce`; a switch without a value has `1`.
/// Imports write it too, from their job lines.
#[must_use]
pub fn fio_option(name: &str) -> String {
    format!("fio.option.{name}")
}

/// The percentage of I/Os issued with so many in flight: `fio.iodepth_level.32`, keys as in fio's
/// JSON (`1`, `2`, ..., `>=64`).
#[must_use]
pub fn fio_depth_level(key: &str) -> String {
    format!("fio.iodepth_level.{key}")
}

/// The requested run time of the job, nanoseconds.
pub const JOB_ASKED_RUNTIME_NS: &str = "job.asked_runtime_ns";
/// The bytes that the job was to move, all clones together.
pub const JOB_ASKED_SIZE_BYTES: &str = "job.asked_size_bytes";
/// The bytes that the job can touch: the region or files of all clones together.
pub const JOB_WORKING_SET_BYTES: &str = "job.working_set_bytes";
/// The start of the job's region on the subject, bytes.
pub const JOB_OFFSET_BYTES: &str = "job.offset_bytes";
/// The pattern of the data that are written: `random`, `zero`, `repeated`.
pub const JOB_DATA_PATTERN: &str = "job.data_pattern";
/// `true` where the job itself says that background copying may be under way.
pub const JOB_ALLOWS_SYNC: &str = "job.allows_sync";
/// `true` where the job itself says that the array may be degraded.
pub const JOB_ALLOWS_DEGRADED: &str = "job.allows_degraded";

/// The number of clones (threads or processes) that one part of fio's output stands for.
pub const FIO_JOBS: &str = "fio.jobs";
/// The message of the error that ended dd.
pub const DD_ERROR: &str = "dd.error";
/// fio's error number; 0 for none.
pub const FIO_ERROR: &str = "fio.error";
/// Requests that moved fewer bytes than asked.
pub const FIO_SHORT_IOS: &str = "fio.short_ios";
/// Requests that were dropped.
pub const FIO_DROPPED_IOS: &str = "fio.dropped_ios";
/// Shortest run time among jobs of the group, nanoseconds (`mint`).
pub const FIO_SHORTEST_RUNTIME_NS: &str = "fio.shortest_runtime_ns";
/// Longest run time among jobs of the group, nanoseconds (`maxt`).
pub const FIO_LONGEST_RUNTIME_NS: &str = "fio.longest_runtime_ns";
/// Processor time in the kernel, percent of one processor.
pub const FIO_SYSTEM_CPU_PERCENT: &str = "fio.system_cpu_percent";
/// Time spent flushing at the end, nanoseconds (`end_fsync`, `conv=fsync`).
pub const END_SYNC_NS: &str = "job.end_sync_ns";

/// Whole records that dd read, `records_in.whole`, as dd counts them.
pub const DD_RECORDS_IN_WHOLE: &str = "dd.records_in.whole";
/// Reads that were shorter than `bs`.
pub const DD_RECORDS_IN_PARTIAL: &str = "dd.records_in.partial";
/// The number of records that dd wrote whole (the first number of its `records out`).
pub const DD_RECORDS_OUT_WHOLE: &str = "dd.records_out.whole";
/// Writes of less than a record.
pub const DD_RECORDS_OUT_PARTIAL: &str = "dd.records_out.partial";
/// The rate that dd printed, bytes per second by the unit as printed
/// (`49.02 MB/s` is 49020000).
pub const DD_PRINTED_BYTES_PER_SECOND: &str = "dd.printed_bytes_per_second";
/// A rate of an operation, for [`fio_printed`] and [`fio_limit`].
pub mod rate_of {
    /// Bytes per second, by the unit as printed.
    pub const BYTES: &str = "bytes_per_second";
    /// Requests per second.
    pub const REQUESTS: &str = "iops";
}

/// The rate that fio printed, where it differs from fio's counts over its time:
/// `fio.printed.read.iops`; `what` is one of [`rate_of`].
#[must_use]
pub fn fio_printed(op: Operation, what: &str) -> String {
    format!("fio.printed.{op}.{what}")
}

/// The limit on the rate of all clones together (`rate`, `rate_iops`):
/// `fio.limit.write.bytes_per_second`; `what` is one of [`rate_of`].
#[must_use]
pub fn fio_limit(op: Operation, what: &str) -> String {
    format!("fio.limit.{op}.{what}")
}

/// `true` where few options of a job are known: in fio's terse output and its text for people.
pub const FIO_OPTIONS_UNTOLD: &str = "fio.options_untold";
/// The share of its time that a clone waited because of `thinktime`, percent.
pub const FIO_THINKING_PERCENT: &str = "fio.thinking_percent";
/// The mean number of requests in flight, by fio's own latencies: their sum over the time.
pub const FIO_IN_FLIGHT: &str = "fio.in_flight";
/// The largest number of requests in flight: clones times depth of all jobs together.
pub const FIO_ASKED_IN_FLIGHT: &str = "fio.asked_in_flight";
/// The number of sequential streams that begin at the same place of the same file.
pub const FIO_STREAMS_ON_ONE_REGION: &str = "fio.streams_on_one_region";
/// The disks and arrays that fio counted, by the kernel's names: `md0 sdb sdc`.
pub const FIO_DISKS: &str = "fio.disks";
/// Figures of a tool that cannot be true together, in words.
pub const CONTRADICTION: &str = "job.contradiction";
/// dd's arguments as in its command: `if`, `of`, `bs`, `count`, `conv`, `oflag`.
#[must_use]
pub fn dd_operand(name: &str) -> String {
    format!("dd.operand.{name}")
}

/// `true` where bonnie++ printed `+++++`: the test was too short for a value.
#[must_use]
pub fn bonnie_not_timed(op: Operation) -> String {
    format!("bonnie.{op}.not_timed")
}
/// Files that bonnie++ made; its `-n` counts in units of 1024.
pub const BONNIE_FILES: &str = "bonnie.files";
/// The number given to `-n`, or stated in an article.
pub const BONNIE_FILES_ASKED: &str = "bonnie.files_asked";

/// `true` where iozone counted the flush in write times (`-e`).
pub const IOZONE_INCLUDES_FSYNC: &str = "iozone.includes_fsync";
/// `true` where iozone counted the close in write times (`-c`).
pub const IOZONE_INCLUDES_CLOSE: &str = "iozone.includes_close";
/// `true` where iozone used direct I/O (`-I`).
pub const IOZONE_DIRECT: &str = "iozone.direct";
/// Cells of iozone's tables that were not run and are printed as 0.
pub const IOZONE_NOT_RUN: &str = "iozone.not_run";

// Facts of a cell: the machine and the array before, during and after.

/// The moment of a reading, for [`cached_bytes`] and the like.
pub mod moment {
    /// The value was read before the caches were dropped.
    pub const BEFORE_DROP: &str = "before_drop";
    /// The value was read before the job, after the caches were dropped.
    pub const BEFORE: &str = "before";
    /// The value was read after the job.
    pub const AFTER: &str = "after";
}

/// The size of the page cache (`Cached` and `Buffers`), bytes: `memory.before.cached_bytes`.
#[must_use]
pub fn cached_bytes(moment: &str) -> String {
    format!("memory.{moment}.cached_bytes")
}

/// The sum of `Dirty` and `Writeback`, bytes: `memory.after.dirty_bytes`.
#[must_use]
pub fn dirty_bytes(moment: &str) -> String {
    format!("memory.{moment}.dirty_bytes")
}

/// The size of the ARC, bytes: `arc.before.size_bytes`.
#[must_use]
pub fn arc_size_bytes(moment: &str) -> String {
    format!("arc.{moment}.size_bytes")
}

/// `true` where a drop of the caches was requested before the job.
pub const CACHES_DROPPED: &str = "caches.dropped";
/// Blocks of data that were demanded during the job and found in the ARC, other than by prefetch.
pub const ARC_HITS: &str = "arc.hits";
/// Blocks of data that were demanded and not in the ARC: they came from the disks, by prefetch
/// or on demand.
pub const ARC_MISSES: &str = "arc.misses";
/// The dirty data in the array's cache on disks of its own, not yet written
/// back, bytes: `cache.before.dirty_bytes`.
#[must_use]
pub fn cache_dirty_bytes(moment: &str) -> String {
    format!("cache.{moment}.dirty_bytes")
}

/// Reads during the job that hit the array's cache on disks of its own.
pub const CACHE_READ_HITS: &str = "cache.read_hits";
/// Reads during the job that missed the array's cache.
pub const CACHE_READ_MISSES: &str = "cache.read_misses";
/// Writes during the job that hit the array's cache.
pub const CACHE_WRITE_HITS: &str = "cache.write_hits";
/// Writes during the job that missed the array's cache.
pub const CACHE_WRITE_MISSES: &str = "cache.write_misses";
/// Blocks that were promoted into the cache during the job.
pub const CACHE_PROMOTIONS: &str = "cache.promotions";
/// Blocks that were demoted from the cache during the job.
pub const CACHE_DEMOTIONS: &str = "cache.demotions";
/// Commands that reached cache devices during the job.
pub const CACHE_DEVICE_IOS: &str = "cache_device.ios";
/// Commands that reached log devices during the job.
pub const LOG_DEVICE_IOS: &str = "log_device.ios";
/// The background copying when the job began: `none`, `resync`, `recovery`, `check`, `reshape`,
/// `scrub`, `trim`, `balance`.
pub const SYNC_ACTIVE_START: &str = "sync.active.start";
/// The background copying when the job ended, including what was seen in between.
pub const SYNC_ACTIVE_END: &str = "sync.active.end";
/// The health of the array when the job began: `optimal`, `degraded`, `failed`.
pub const ARRAY_HEALTH_START: &str = "array.health.start";
/// The health of the array when the job ended, in the same words.
pub const ARRAY_HEALTH_END: &str = "array.health.end";
/// The bytes of a subject that were copied onto a member after it was put back.
pub const SYNC_COPIED_BYTES: &str = "sync.copied_bytes";
/// The bytes of a subject's member that hold data, or could.
pub const SYNC_MEMBER_BYTES: &str = "sync.member_bytes";
/// Bytes that other programs read from or wrote to the members during the job.
pub const FOREIGN_BYTES: &str = "foreign.bytes";
/// Time that the hypervisor gave to other guests, percent of the job.
pub const CPU_STEAL_PERCENT: &str = "cpu.steal_percent";
/// The processor preset of a modelled machine.
pub const CPU_PRESET: &str = "cpu.preset";
/// The share of all cores' time that the kernel and the jobs used, percent of all of them together.
pub const CPU_BUSY_PERCENT: &str = "cpu.busy_percent";
/// The time of the job's threads in user mode, percent of one processor.
pub const CPU_USER_PERCENT: &str = "cpu.user_percent";
/// The time of the job's threads in the kernel, percent of one processor.
pub const CPU_SYSTEM_PERCENT: &str = "cpu.system_percent";
/// The time in interrupts, percent of one processor.
pub const CPU_INTERRUPT_PERCENT: &str = "cpu.interrupt_percent";

/// The time of a kernel thread, percent of one processor: `cpu.thread.md0_raid5.percent`.
#[must_use]
pub fn cpu_thread_percent(name: &str) -> String {
    format!("cpu.thread.{name}.percent")
}

/// The time of all cores by its purpose, percent of one processor: `cpu.for.lock.percent`.
#[must_use]
pub fn cpu_for_percent(place: &str) -> String {
    format!("cpu.for.{place}.percent")
}

/// Time of the job's mean request that was spent at a place, nanoseconds: `time.medium.ns`. The
/// times of all places add up to the request's latency.
#[must_use]
pub fn time_ns(place: &str) -> String {
    format!("time.{place}.ns")
}

/// The facts about a kernel lock during a job, for [`lock`].
pub mod lock_part {
    /// The number of times that the lock was taken.
    pub const PASSES: &str = "passes";
    /// The number of times that the lock was found taken.
    pub const CONTENDED: &str = "contended";
    /// The time that cores spun for the lock, nanoseconds of all together.
    pub const WAIT_NS: &str = "wait_ns";
    /// The time for which the lock was held, nanoseconds.
    pub const HOLD_NS: &str = "hold_ns";
}

/// A fact about a kernel lock, `lock.device_lock.passes`; `what` is one of [`lock_part`].
#[must_use]
pub fn lock(name: &str, what: &str) -> String {
    format!("lock.{name}.{what}")
}

/// The number of times that heat throttled the processor during the job.
pub const CPU_THROTTLED: &str = "cpu.throttled";
/// The difference between the wall clock and the monotonic clock over the job, nanoseconds.
pub const CLOCK_STEP_NS: &str = "clock.step_ns";
/// The latency of the very first I/O, nanoseconds.
pub const FIRST_IO_NS: &str = "job.first_io_ns";
/// Bytes written to the members in the last idle second before the job.
pub const IDLE_WRITTEN_BYTES: &str = "idle.written_bytes";
/// The share of the files' extents that are allocated but unwritten, percent, before the job.
pub const UNWRITTEN_EXTENTS_PERCENT: &str = "extents.unwritten_percent";
/// The time between two samples of a monitor, nanoseconds.
pub const MONITOR_PERIOD_NS: &str = "monitor.period_ns";

// Facts of a cell: what an article printed about it, for imports. Each stands for one operation
// and, where not empty, one part of the tool's output. The observation's `unit` is the unit as
// printed, its `source` the place in the article.

/// The parts of a claim, for [`claim`].
pub mod claim_part {
    /// The number as printed; its unit as printed is the observation's:
    /// `MB/s`, `KB/s`, `MiB/s`, `1/s`, `s`.
    pub const VALUE: &str = "value";
    /// The change against the base as printed, percent: `-99`.
    pub const PERCENT: &str = "percent";
    /// The value that the percent refers to, in the value's unit; where it is
    /// not given it is the best value of the same job and operation.
    pub const BASE: &str = "base";
    /// `true` where the article calls this subject the best of the job.
    pub const WINNER: &str = "winner";
}

/// A part of a claim, `claim.read.percent`, or `claim.read[16384k/64k].value` for one part of the
/// output; `what` is one of [`claim_part`].
#[must_use]
pub fn claim(op: Operation, part: &str, what: &str) -> String {
    if part.is_empty() {
        format!("claim.{op}.{what}")
    } else {
        format!("claim.{op}[{part}].{what}")
    }
}

/// Names of series, with their units.
pub mod series {
    /// Bytes per second read by the job or, where that is not sampled, from
    /// the array.
    pub const READ_BYTES_PER_SECOND: &str = "array.read_bytes_per_second";
    /// Bytes per second written by the job or, where that is not sampled, to the array.
    pub const WRITE_BYTES_PER_SECOND: &str = "array.write_bytes_per_second";
    /// Reads per second.
    pub const READ_IOPS: &str = "array.read_iops";
    /// Writes per second.
    pub const WRITE_IOPS: &str = "array.write_iops";
    /// Progress of resync or recovery, percent.
    pub const SYNC_PERCENT: &str = "sync.percent";

    /// A series of a member: `member.0.read_iops`; `what` is `read_iops`, `write_iops`,
    /// `read_bytes_per_second`, `write_bytes_per_second`, `busy_percent` or `temperature_celsius`.
    #[must_use]
    pub fn member(slot: usize, what: &str) -> String {
        format!("member.{slot}.{what}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_stands_between_disk_and_its_property() {
        let name = disk("gpt/tank.0", disk_property::PENDING_SECTORS);
        assert_eq!(name, "disk.gpt/tank.0.smart.pending_sectors");
    }

    #[test]
    fn a_claim_names_its_part_where_there_is_one() {
        let claim = |part| claim(Operation::Read, part, claim_part::VALUE);
        assert_eq!(claim(""), "claim.read.value");
        assert_eq!(claim("16384k/64k"), "claim.read[16384k/64k].value");
    }
}
