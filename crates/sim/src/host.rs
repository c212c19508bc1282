//! What the operating system adds between a job and a disk.

use raidlab_units::{Bytes, Nanos};

/// The host's part of an I/O. There is no elevator as long as the drive's
/// queue takes every command; what overflows waits in the order of the disk
/// (one-way sweep), as both deadline and FreeBSD's bioq do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// From a completion to the next submission of the same job.
    pub turnaround: Nanos,
    /// Commands a drive takes at once.
    pub tags: u32,
    /// Largest request to a member; larger ones are split by the subject.
    pub maximum_request: Bytes,
}
