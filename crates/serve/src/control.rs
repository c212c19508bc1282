//! Speaking to an array while it is served.
//!
//! A unix socket beside the array takes JSON, one object a line, and answers
//! each with one line, in order:
//!
//! ```text
//! {"verb":"fail","device":"/dev/sdb"}
//! {"answer":"done"}
//! {"verb":"fail","device":"/dev/sdz"}
//! {"answer":"refused","error":"no such device: /dev/sdz"}
//! ```
//!
//! After `{"verb":"events"}` the connection carries events, a line each, until
//! one side closes it. The verbs are mdadm's. Only the socket's owner may
//! connect; the kernel checks that. A line is at most [`MAXIMUM_LINE_BYTES`]
//! long; one that cannot be understood is refused, and the connection goes on.

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

/// What is wanted. A device is named by its path or its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ControlRequest {
    /// How the array is.
    Status,
    /// A device is no longer used.
    Fail {
        /// Its path, or the number of its handle.
        device: String,
    },
    /// A failed or spare device leaves the array.
    Remove {
        /// Its path, or the number of its handle.
        device: String,
    },
    /// A new device joins; whatever was on it is lost.
    Add {
        /// The path of the new device.
        path: String,
        /// Also if it is a member of another array.
        #[serde(default)]
        overwrite: bool,
    },
    /// Starts an array of these devices, for adding it as `array:NAME`.
    Assemble {
        /// The paths of its devices, in any order.
        paths: Vec<String>,
    },
    /// A former member comes back and gets what it lacks.
    ReAdd {
        /// The path of the device that comes back.
        path: String,
    },
    /// A device is taken out of service when a spare has its content.
    Replace {
        /// The member that is replaced: its path, or the number of its handle.
        device: String,
        /// The spare; default: the first that fits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        with: Option<String>,
    },
    /// Compare copies or parity everywhere, and change nothing.
    Check,
    /// Compare, and make agree what does not.
    Repair,
    /// End the sync that runs.
    Idle,
    /// Make the array read-only: it takes no more writes.
    ReadOnly,
    /// The array takes writes again.
    ReadWrite,
    /// Throttle syncs, in KiB/s for each member.
    Speed {
        /// KiB/s that a sync may have even while clients work.
        minimum: u64,
        /// KiB/s that a sync may have at most, even while no client works.
        maximum: u64,
    },
    /// Stop the array cleanly and end the server.
    Stop,
    /// Send events from now on.
    Events,
}

/// The answer to a request, or an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum ControlResponse {
    /// The request is done, or under way.
    Done,
    /// The request is refused, and nothing was done.
    Refused {
        /// Why, in words for a person.
        error: String,
    },
    /// How the array is.
    Status {
        /// The state, members and sync of the array.
        status: Box<StatusReport>,
    },
    /// Something has happened to the array, for those who asked for events.
    Event {
        /// What has happened to the array.
        event: EventReport,
    },
}

/// How an array is.
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
    /// In bytes; 0 if the level has none.
    pub chunk_bytes: u64,
    /// How much the array offers, in bytes.
    pub size_bytes: u64,
    /// mdadm's words: `clean, degraded`.
    pub state: String,
    /// Each slot's state, as in /proc/mdstat: `[UU_U]`.
    pub health: String,
    /// The superblocks' event count.
    pub events: u64,
    /// The devices, in the order of their numbers.
    pub devices: Vec<DeviceReport>,
    /// The sync that runs, if one does.
    pub sync: Option<SyncReport>,
    /// Sectors that the last check or repair found to differ.
    pub mismatch_sectors: u64,
    /// Dirty chunks of the bitmap, and all.
    pub bitmap_chunks: Option<(u64, u64)>,
    /// Bytes of each member's write log.
    pub log_bytes: u64,
    /// `io_uring` or `threads`.
    pub backend: String,
    /// What of the payloads' memory is registered with the kernel.
    #[serde(default)]
    pub registered_memory: Option<RegisteredMemory>,
    /// What somebody should know and may want to change.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Why the array takes no more requests; absent while it does.
    pub broken: Option<String>,
    /// CLOCK_MONOTONIC at the answer, in nanoseconds: for rates.
    pub at_ns: u64,
}

impl StatusReport {
    /// Whether a device is to be filled in the place of a member that is missing: a spare that
    /// has its slot already, or one that was added just now and gets it in a moment.
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
    /// The number by which it goes here.
    pub number: u32,
    /// The path by which the device was given.
    pub path: String,
    /// The slot that the device belongs to, if there is one.
    pub slot: Option<u32>,
    /// mdadm's words: `active sync`, `spare rebuilding`, `spare`, `faulty`.
    pub state: String,
    /// The commands to it since it was attached.
    #[serde(flatten)]
    pub counters: MemberCounters,
    /// Read errors corrected in its life, in sectors.
    pub corrected_read_errors: u32,
    /// Sectors without right bytes.
    pub bad_sectors: u64,
    /// Why it counts as gone, in words, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// A sync that runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SyncReport {
    /// `recovery`, `resync`, `check` or `repair`.
    pub kind: String,
    /// The sync is done with everything below this sector.
    pub position: u64,
    /// The sector at which the sync ends.
    pub total: u64,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventReport {
    /// CLOCK_MONOTONIC, in nanoseconds.
    pub at_ns: u64,
    /// In kebab case: `member-failed`, `sync-started`, ...
    pub what: String,
    /// The device's number, where one is concerned.
    pub device: Option<u32>,
    /// The first sector, where sectors are concerned.
    pub start: Option<u64>,
    /// Sectors that it concerns, where it concerns any.
    pub count: Option<u64>,
}

#[cfg(test)]
mod tests;
