//! The configuration of an array, and the reasons why it or a verb is refused.

use crate::admission::Admission;
use crate::policy::{ReadPolicyError, ReadPolicyKind};
use crate::recovery::config::{RecoveryConfig, RecoveryConfigError};
use crate::request::Slot;
use raidlab_geometry::{CopyMap, Layout, Level, MAXIMUM_MEMBERS, Shape, ShapeError, SlotSet};
use raidlab_units::{Sectors, Span};

/// The description of one member for an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberConfig {
    /// Sectors of the whole member.
    pub size: Sectors,
    /// The sector of the member at which the array's data begin.
    pub data_offset: Sectors,
    /// Whether the member is a mechanical disk.
    pub rotational: bool,
    /// md's flag: reads go to the member only where no other one can serve. Drivers without such a
    /// flag ignore it.
    pub write_mostly: bool,
    /// Ranges of the data area whose correct bytes are lost, as the bad-block log names them;
    /// `None`: the member has no log for such ranges. Then a recovery fails the member where no
    /// source can be read.
    pub bad_blocks: Option<Vec<Span>>,
}

/// The configuration of an array of whole copies: linear, RAID 0, RAID 1 or RAID 10.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayConfig {
    /// The level, layout and size. The data areas of missing members count as large enough.
    pub shape: Shape,
    /// The state of each slot, slot 0 first. A RAID 1 of one member is a plain disk.
    pub members: Vec<Initial>,
    /// The policy that chooses the member for a read.
    pub read_policy: ReadPolicyKind,
    /// The rules of recovery. The write barrier is for mirrors; where copies lie at
    /// different sectors, a write waits for a block that it overlaps and a block for
    /// a write ([`WriteBarrier::Overlap`]).
    ///
    /// [`WriteBarrier::Overlap`]: crate::WriteBarrier::Overlap
    pub recovery: RecoveryConfig,
    /// The longest command into which requests are cut, counted from the request's start; 0
    /// means no limit.
    pub maximum_request: Sectors,
    /// Whether writes wait until a member's failure is recorded: see
    /// [`Engine`](crate::Engine).
    pub record_failures: bool,
}

/// The reason why an array cannot be configured like this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// An array without members.
    #[error("an array needs at least one member")]
    NoMembers,
    /// More members than an array can have.
    #[error("{count} members are too many; at most {MAXIMUM_MEMBERS} are possible")]
    TooManyMembers {
        /// The number of slots that were asked for.
        count: usize,
    },
    /// An array of no sectors.
    #[error("an array needs at least one sector")]
    NoSize,
    /// A member is too small for the array.
    #[error(transparent)]
    MemberTooSmall(#[from] MemberTooSmall),
    /// The shape has another number of slots.
    #[error("{count} members are given for {slots} slots")]
    Slots {
        /// The number of members that were given.
        count: usize,
        /// The number of slots of the shape.
        slots: usize,
    },
    /// A shape that an array of copies cannot have.
    #[error("there can be no such array")]
    Shape(#[source] ShapeError),
    /// Some data has no member that is in sync.
    #[error("too few members are in sync")]
    Incomplete,
    /// A read policy with an invalid parameter.
    #[error("the read policy cannot be used")]
    ReadPolicy(#[source] ReadPolicyError),
    /// An invalid parameter of recovery.
    #[error("the recovery settings cannot be used")]
    Recovery(#[source] RecoveryConfigError),
}

/// A member that cannot hold its part of an array, with copies or with parity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("member {slot} has {size} sectors, but the array needs {needed} (data offset included)")]
pub struct MemberTooSmall {
    /// The slot whose member is too small.
    pub slot: u16,
    /// The sectors of that member.
    pub size: u64,
    /// The sectors that the member has to have, its data offset included.
    pub needed: u64,
}

/// The reason why an administrator's verb is refused. The array is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// The verb names a slot that the array does not have.
    #[error("slot {} does not exist", .0.0)]
    NoSuchSlot(Slot),
    /// The verb needs a member, and the slot has none.
    #[error("slot {} is empty", .0.0)]
    Empty(Slot),
    /// The slot holds a member, which must be removed first.
    #[error("slot {} is occupied", .0.0)]
    Occupied(Slot),
    /// The member failed before.
    #[error("the member in slot {} has failed already", .0.0)]
    AlreadyFaulty(Slot),
    /// Without this member some data would have no current copy.
    #[error("it cannot do without the member in slot {}", .0.0)]
    LastInSync(Slot),
    /// The new member cannot hold the array.
    #[error(transparent)]
    TooSmall(#[from] MemberTooSmall),
    /// The array keeps a write log, and the member has no room for it.
    #[error("the member for slot {} has no room for the write log", .0.0)]
    NoLogArea(Slot),
    /// A sync runs already, during which the verb is not possible.
    #[error("a recovery, resync, check or repair is running already")]
    SyncRunning,
}

impl ArrayConfig {
    /// A mirror of these members, all in sync, that stores no metadata.
    #[must_use]
    pub fn mirror(
        members: Vec<MemberConfig>,
        size: Sectors,
        read_policy: ReadPolicyKind,
        recovery: RecoveryConfig,
        maximum_request: Sectors,
    ) -> Self {
        let count = members.len();
        Self {
            shape: Shape::uniform(Level::Raid1, Layout::None, Sectors::ZERO, count, size),
            members: members.into_iter().map(Initial::InSync).collect(),
            read_policy,
            recovery,
            maximum_request,
            record_failures: false,
        }
    }

    /// Checks everything that [`Array::new`](crate::Array::new) refuses.
    pub(crate) fn check(&self) -> Result<CopyMap, ConfigError> {
        let (count, slots) = (self.members.len(), self.shape.member_sizes.len());
        if count == 0 {
            return Err(ConfigError::NoMembers);
        }
        if count > MAXIMUM_MEMBERS {
            return Err(ConfigError::TooManyMembers { count });
        }
        if count != slots {
            return Err(ConfigError::Slots { count, slots });
        }
        let map = CopyMap::new(&self.shape).map_err(|error| match error {
            ShapeError::NoSize => ConfigError::NoSize,
            error => ConfigError::Shape(error),
        })?;
        let mut in_sync = SlotSet::EMPTY;
        for (slot, member) in (0..).map(Slot).zip(&self.members) {
            let config = match member {
                Initial::Missing => continue,
                Initial::Recovering(config, _) => config,
                Initial::InSync(config) => {
                    in_sync = in_sync.with(slot);
                    config
                }
            };
            config.check_room(slot, map.member_used(slot))?;
        }
        if map
            .copy_sets()
            .iter()
            .any(|set| (*set & in_sync).is_empty())
        {
            return Err(ConfigError::Incomplete);
        }
        self.read_policy
            .check(count)
            .map_err(ConfigError::ReadPolicy)?;
        self.recovery.check().map_err(ConfigError::Recovery)?;
        Ok(map)
    }
}

/// The state of a slot when an engine starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Initial {
    /// A member with current content everywhere.
    InSync(MemberConfig),
    /// A member whose recovery has to begin or continue.
    Recovering(MemberConfig, Admission),
    /// No member: the slot is empty.
    Missing,
}

impl MemberConfig {
    /// Returns the sectors that a member must have if `size` of its data area are used.
    pub(crate) const fn needed(&self, size: Sectors) -> u64 {
        self.data_offset.0.saturating_add(size.0)
    }

    /// Checks that the member in a slot has room for `used` sectors of its data area.
    ///
    /// # Errors
    /// When it has not.
    pub(crate) fn check_room(&self, slot: Slot, used: Sectors) -> Result<(), MemberTooSmall> {
        let (size, needed) = (self.size.0, self.needed(used));
        match size < needed {
            true => Err(MemberTooSmall {
                slot: slot.0,
                size,
                needed,
            }),
            false => Ok(()),
        }
    }
}
