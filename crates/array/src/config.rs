//! How an array is set up, and why a set-up or a verb is refused.

use crate::policy::{ReadPolicyError, ReadPolicyKind};
use crate::recovery::{RecoveryConfig, RecoveryConfigError};
use crate::request::Slot;
use raidlab_geometry::MAXIMUM_MEMBERS;
use raidlab_units::Sectors;

/// One member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberConfig {
    /// The whole member.
    pub size: Sectors,
    /// Where the array's data begins on it.
    pub data_offset: Sectors,
    /// Whether it is a mechanical disk.
    pub rotational: bool,
    /// md's flag: read from it only where no other member can serve. Drivers
    /// that know no such flag ignore it.
    pub write_mostly: bool,
}

/// A mirror with all members in sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayConfig {
    /// 1 to [`MAXIMUM_MEMBERS`] members, slot 0 first; one is a plain disk.
    pub members: Vec<MemberConfig>,
    /// Sectors that the array offers.
    pub size: Sectors,
    /// Which member serves a read.
    pub read_policy: ReadPolicyKind,
    /// How a new member is filled.
    pub recovery: RecoveryConfig,
    /// Requests are cut into commands of at most this size, counted from the
    /// request's start; 0 means no limit.
    pub maximum_request: Sectors,
}

/// Why an array cannot be set up so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No members.
    #[error("an array needs at least one member")]
    NoMembers,
    /// More members than slots.
    #[error("{count} members are too many; at most {MAXIMUM_MEMBERS} are possible")]
    TooManyMembers {
        /// As given.
        count: usize,
    },
    /// An array of no sectors.
    #[error("an array needs at least one sector")]
    NoSize,
    /// A member that cannot hold the array.
    #[error(
        "member {slot} has {size} sectors, but the array needs {needed} (data offset included)"
    )]
    MemberTooSmall {
        /// Which one.
        slot: u16,
        /// Its sectors.
        size: u64,
        /// What it would need.
        needed: u64,
    },
    /// A parameter of the read policy.
    #[error("the read policy cannot be used")]
    ReadPolicy(#[source] ReadPolicyError),
    /// A parameter of recovery.
    #[error("the recovery settings cannot be used")]
    Recovery(#[source] RecoveryConfigError),
}

/// Why an administrator's verb is refused. The array is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// The array has fewer slots.
    #[error("slot {} does not exist", .0.0)]
    NoSuchSlot(Slot),
    /// The slot is empty.
    #[error("slot {} is empty", .0.0)]
    Empty(Slot),
    /// The slot holds a member, which must be removed first.
    #[error("slot {} is occupied", .0.0)]
    Occupied(Slot),
    /// The member failed before.
    #[error("the member in slot {} has failed already", .0.0)]
    AlreadyFaulty(Slot),
    /// Without this member there is no current copy.
    #[error("the member in slot {} is the last one in sync", .0.0)]
    LastInSync(Slot),
    /// The new member cannot hold the array.
    #[error("the member has {size} sectors, but the array needs {needed} (data offset included)")]
    TooSmall {
        /// Its sectors.
        size: u64,
        /// What it would need.
        needed: u64,
    },
    /// Recovery or resync is running.
    #[error("recovery or resync is running already")]
    SyncRunning,
}

impl ArrayConfig {
    /// Checks everything that [`Array::new`](crate::Array::new) refuses.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.members.is_empty() {
            return Err(ConfigError::NoMembers);
        }
        if self.members.len() > MAXIMUM_MEMBERS {
            return Err(ConfigError::TooManyMembers {
                count: self.members.len(),
            });
        }
        if self.size == Sectors::ZERO {
            return Err(ConfigError::NoSize);
        }
        for (slot, member) in (0..).zip(&self.members) {
            let needed = member.needed(self.size);
            if member.size.0 < needed {
                return Err(ConfigError::MemberTooSmall {
                    slot,
                    size: member.size.0,
                    needed,
                });
            }
        }
        self.read_policy
            .check(self.members.len())
            .map_err(ConfigError::ReadPolicy)?;
        self.recovery
            .check(self.members.len())
            .map_err(ConfigError::Recovery)
    }
}

impl MemberConfig {
    /// Sectors a member must have to hold an array of `size`.
    pub(crate) const fn needed(&self, size: Sectors) -> u64 {
        self.data_offset.0.saturating_add(size.0)
    }
}
