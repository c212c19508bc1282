//! The control protocol of an array while it is served.
//!
//! A unix socket beside the array takes JSON, one object a line, and answers each with one
//! line, in order:
//!
//! ```text
//! {"verb":"fail","device":"/dev/sdb"}
//! {"answer":"done"}
//! {"verb":"fail","device":"/dev/sdz"}
//! {"answer":"refused","error":"no such device: /dev/sdz"}
//! ```
//!
//! After `{"verb":"events"}` the connection carries events, a line each, until one side closes it.
//! The verbs are mdadm's. Only the socket's owner may connect; the kernel checks that. A line is
//! at most [`MAXIMUM_LINE_BYTES`] long; one that cannot be understood is refused, and the
//! connection goes on.

mod client;
mod lines;
mod place;
mod server;

pub use client::{ClientError, ControlClient};
pub use place::{PlaceError, check_name, clients_path, control_path, log_path};
pub use server::{ControlError, ControlServer, Controlled, Publisher, Subscription, converse};

use crate::member::{MemberCounters, RegisteredMemory};
use serde::{Deserialize, Serialize};

/// The longest line in either direction, its end included.
pub const MAXIMUM_LINE_BYTES: usize = 1 << 20;

/// A request to an array. A device is named by its path or its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ControlRequest {
    /// Return the status of the array.
    Status {},
    /// Mark a device faulty.
    Fail {
        /// The device's path, or the number of its handle.
        device: String,
    },
    /// Remove a failed or spare device from the array.
    Remove {
        /// The device's path, or the number of its handle.
        device: String,
    },
    /// Add a new device; any data on it are lost.
    Add {
        /// The path of the new device.
        path: String,
        /// Whether a member of another array may be added.
        #[serde(default)]
        overwrite: bool,
    },
    /// Start an array of these devices, for adding it as `array:NAME`.
    Assemble {
        /// The paths of its devices, in any order.
        paths: Vec<String>,
    },
    /// Add a former member again, which is brought up to date.
    ReAdd {
        /// The path of the former member.
        path: String,
    },
    /// Take a device out of service when a spare has its content.
    Replace {
        /// The member that is replaced: its path, or the number of its handle.
        device: String,
        /// The spare; by default the first that fits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        with: Option<String>,
    },
    /// Compare copies or parity everywhere, and change nothing.
    Check {},
    /// Compare copies or parity everywhere, and correct differences.
    Repair {},
    /// End the sync that runs.
    Idle {},
    /// Make the array read-only: it takes no more writes.
    ReadOnly {},
    /// Make a read-only array writable again.
    ReadWrite {},
    /// Throttle syncs, in KiB/s for each member.
    Speed {
        /// The rate in KiB/s that a sync may have even while clients work.
        minimum: u64,
        /// The highest rate in KiB/s of a sync, even while no client works.
        maximum: u64,
    },
    /// Stop the array cleanly and end the server.
    Stop {},
    /// Send events from now on.
    Events {},
}

/// The answer to a request, or an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum ControlResponse {
    /// The request is done, or under way.
    Done,
    /// The request is refused, and nothing was done.
    Refused {
        /// The reason, in words for a person.
        error: String,
    },
    /// The status of the array.
    Status {
        /// The state, members and sync of the array.
        status: Box<StatusReport>,
    },
    /// An event of the array, for a client that asked for events.
    Event {
        /// The event of the array.
        event: EventReport,
    },
}

/// The status of an array.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StatusReport {
    /// The array's name as its superblocks have it, `host:name`.
    pub name: String,
    /// The UUID of the array, as mdadm prints it.
    pub uuid: String,
    /// The level of the array: `raid6` and the like.
    pub level: String,
    /// The layout's name; empty if the level has only one.
    pub layout: String,
    /// The chunk in bytes; 0 if the level has none.
    pub chunk_bytes: u64,
    /// The size of the array, in bytes.
    pub size_bytes: u64,
    /// The state in mdadm's words: `clean, degraded`.
    pub state: String,
    /// Each slot's state, as in /proc/mdstat: `[UU_U]`.
    pub health: String,
    /// The superblocks' event count.
    pub events: u64,
    /// The devices, in the order of their numbers.
    pub devices: Vec<DeviceReport>,
    /// The sync that runs, if any.
    pub sync: Option<SyncReport>,
    /// Sectors that the last check or repair found to differ.
    pub mismatch_sectors: u64,
    /// The number of the bitmap's dirty chunks, and of all its chunks.
    pub bitmap_chunks: Option<(u64, u64)>,
    /// Bytes of each member's write log.
    pub log_bytes: u64,
    /// The backend: `io_uring` or `threads`.
    pub backend: String,
    /// The part of the payloads' memory that is registered with the kernel.
    #[serde(default)]
    pub registered_memory: Option<RegisteredMemory>,
    /// Warnings about the array, which the administrator may want to act on.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The reason why the array takes no more requests; absent while it takes them.
    pub broken: Option<String>,
    /// The time of the answer on CLOCK_MONOTONIC, in nanoseconds: for rates.
    pub at_ns: u64,
}

impl StatusReport {
    /// Whether a device is to be recovered in the place of a missing member: a spare that has its
    /// slot already, or one that was added just now and gets it in a moment.
    #[must_use]
    pub fn has_whom_to_fill(&self) -> bool {
        let lacks = self.health.contains('_');
        let mut states = self.devices.iter().map(|device| device.state.as_str());
        states.any(|state| state == "spare rebuilding" || lacks && state == "spare")
    }
}

/// One device of an array.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceReport {
    /// The number of the device in this array.
    pub number: u32,
    /// The path by which the device was given.
    pub path: String,
    /// The slot that the device belongs to, if there is one.
    pub slot: Option<u32>,
    /// The state in mdadm's words: `active sync`, `spare rebuilding`, `spare`, `faulty`.
    pub state: String,
    /// The counters of commands to the device since it was attached.
    #[serde(flatten)]
    pub counters: MemberCounters,
    /// Sectors with read errors that were corrected in the device's life.
    pub corrected_read_errors: u32,
    /// Sectors whose correct bytes are lost.
    pub bad_sectors: u64,
    /// The reason why the device counts as gone, in words, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// A sync that runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SyncReport {
    /// The kind: `recovery`, `resync`, `check` or `repair`.
    pub kind: String,
    /// The sector below which the sync is done.
    pub position: u64,
    /// The sector at which the sync ends.
    pub total: u64,
}

/// An event of an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventReport {
    /// The time on CLOCK_MONOTONIC, in nanoseconds.
    pub at_ns: u64,
    /// The event's name in kebab case: `member-failed`, `sync-started`, ...
    pub what: String,
    /// The number of the device that is concerned, if any.
    pub device: Option<u32>,
    /// The first of the sectors that are concerned, if any.
    pub start: Option<u64>,
    /// The number of sectors that are concerned, if any.
    pub count: Option<u64>,
}

#[cfg(test)]
mod tests;
