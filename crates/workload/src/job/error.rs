//! Errors of jobs that cannot run.

use raidlab_units::Bytes;
use thiserror::Error;

/// The reason why a job cannot run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JobError {
    /// A count that must be at least 1 is 0.
    #[error("`{option}` must be at least 1")]
    Zero {
        /// fio's name of the option.
        option: &'static str,
    },
    /// A percentage is above 100.
    #[error("`rwmixread` is {percent}, but a percentage ends at 100")]
    Percent {
        /// The percentage that was given.
        percent: u32,
    },
    /// A limit is smaller than one request.
    #[error("`{option}` is {given}, less than one block of {block_size}")]
    SmallerThanBlock {
        /// fio's name of the option.
        option: &'static str,
        /// The size that was given.
        given: Bytes,
        /// The job's block size.
        block_size: Bytes,
    },
    /// `time_based` is given without a time.
    #[error("`time_based` needs a `runtime`")]
    TimeBasedWithoutRuntime,
    /// The region starts at or after the end of the device or file.
    #[error("clone {clone} starts at {offset}, but {what} ends at {end}")]
    OffsetBehindEnd {
        /// The number of the clone, from 0.
        clone: u32,
        /// The first byte of the clone's region.
        offset: Bytes,
        /// The container of the region: `the device` or `filesize`.
        what: &'static str,
        /// The byte after its last one.
        end: Bytes,
    },
    /// No whole block fits between the region's start and the device's end.
    #[error("no block of {block_size} fits into the {room} that clone {clone} may use")]
    NoRoom {
        /// The number of the clone, from 0.
        clone: u32,
        /// The job's block size.
        block_size: Bytes,
        /// The length of the clone's region.
        room: Bytes,
    },
    /// Zones of `random_distribution=zoned_abs` reach beyond the region.
    #[error(
        "the zones of `random_distribution` end at {end}, but the region has {region}: fio ends \
         a job that draws a place behind it"
    )]
    ZonesBehindEnd {
        /// The end of the last zone.
        end: Bytes,
        /// The length of the region.
        region: Bytes,
    },
    /// `wait_for` names no job before it.
    #[error("`wait_for` names `{name}`, but no job before this one is called so")]
    NoJobToWaitFor {
        /// The name of the job to wait for.
        name: String,
    },
    /// There are more clones, requests or the like at once than is allowed.
    #[error("{given} {what}: more than {most}")]
    TooMany {
        /// The things that are too many.
        what: &'static str,
        /// The given number.
        given: u64,
        /// The largest allowed number.
        most: u64,
    },
    /// The number of requests or an offset does not fit into 64 bits.
    #[error("`{option}` is too large")]
    TooLarge {
        /// fio's name of the option.
        option: &'static str,
    },
}
