//! The configuration of a parity array.

use crate::config::{Initial, MemberConfig, MemberTooSmall};
use crate::recovery::{RecoveryConfig, RecoveryConfigError};
use raidlab_geometry::{Level, ParityLayout, Slot, StripeMap, StripeMapError};
use raidlab_units::{Sectors, Span};

/// Sectors of a block, which is the page of md's stripe.
pub(super) const BLOCK: u64 = 8;

/// The choice for a write that could read either the old data and parity (read-modify-write) or the
/// data that it leaves alone (reconstruct-write).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WritePolicy {
    /// Linux 3.16 to 4.0 (`handle_stripe_dirtying` of drivers/md/raid5.c):
    /// RAID 6 always reconstructs, the others modify if that reads less.
    Md3_16,
    /// Linux 4.1 and later, by `rmw_level`.
    Md4_1(RmwLevel),
}

/// The values of md's `rmw_level`, which determines when a write may modify parity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RmwLevel {
    /// md's 0: parity is never modified, but always computed from all data.
    Disabled,
    /// md's 1, the default: modify if that reads less.
    #[default]
    Enabled,
    /// md's 2: modify if that does not read more.
    Preferred,
}

impl Default for WritePolicy {
    fn default() -> Self {
        Self::Md4_1(RmwLevel::default())
    }
}

impl WritePolicy {
    /// Whether to modify, when that would read `modify` blocks and
    /// reconstructing would read `reconstruct`.
    #[must_use]
    pub fn modifies(self, level: Level, modify: usize, reconstruct: usize) -> bool {
        match self {
            Self::Md3_16 => level != Level::Raid6 && modify < reconstruct,
            Self::Md4_1(RmwLevel::Disabled) => false,
            Self::Md4_1(RmwLevel::Enabled) => modify < reconstruct,
            Self::Md4_1(RmwLevel::Preferred) => modify <= reconstruct && reconstruct > 0,
        }
    }
}

/// The write log, which closes the write hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// The run of the array that the records are of: a number never used before with these members.
    pub session: u64,
    /// The place of each member's ring, in its own sectors (data offset not included), in whole
    /// blocks of 4 KiB: the same on all.
    pub ring: Span,
}

/// The configuration of a RAID 4, 5 or 6.
#[derive(Debug, Clone)]
pub struct StripeConfig {
    /// RAID 4, 5 or 6.
    pub level: Level,
    /// The rotation of parity from row to row.
    pub layout: ParityLayout,
    /// Sectors of a chunk: a power of two of at least 8.
    pub chunk: Sectors,
    /// Sectors of each member's data area; rounded down to whole chunks.
    pub member_size: Sectors,
    /// The state of each slot.
    pub members: Vec<Initial>,
    /// The choice between read-modify-write and reconstruct-write.
    pub write_policy: WritePolicy,
    /// The number of windows gathered before all of them go; at least 1; md's stripe cache
    /// has 256 stripes.
    pub stripes: usize,
    /// The longest window, in whole blocks. It bounds the scratch memory of one.
    pub window: Sectors,
    /// Block size, depth, throttle and checkpoints of syncs; the rest is for
    /// arrays of copies.
    pub sync: RecoveryConfig,
    /// The write log, if there is one.
    pub log: Option<LogConfig>,
}

/// The reason why a parity array cannot be configured like this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StripeConfigError {
    /// No array has this level, layout, chunk and these sizes.
    #[error("there is no such array")]
    Map(#[source] StripeMapError),
    /// A member is too small for its part.
    #[error(transparent)]
    MemberTooSmall(#[from] MemberTooSmall),
    /// More members are lost than the level tolerates.
    #[error("only {in_sync} members are in sync, but {needed} are needed")]
    TooFew {
        /// The number of members in sync.
        in_sync: usize,
        /// The number of data blocks of a row, which is the number of members needed.
        needed: usize,
    },
    /// The number of windows is zero, or windows have no whole block.
    #[error("at least one stripe and windows of whole blocks of 8 sectors are needed")]
    Window,
    /// The cache has so few stripes that the engine would wait for one for ever.
    #[error("a cache of {stripes} stripes is too small: at least {least} are needed")]
    Stripes {
        /// The number of stripes of the cache.
        stripes: usize,
        /// The smallest cache with which the engine works.
        least: usize,
    },
    /// A log that is too small for a window.
    #[error("the log of member {slot} needs at least 64 sectors beside the data, in whole blocks")]
    Log {
        /// The slot whose member has no room for a log.
        slot: u16,
    },
    /// An invalid parameter of syncs.
    #[error("the sync settings cannot be used")]
    Sync(#[source] RecoveryConfigError),
}

/// The sectors of the smallest ring: two records of one block each, four times over.
const SMALLEST_RING: u64 = 64;

impl StripeConfig {
    /// A configuration that imitates md of Linux 6, without a log, all slots missing.
    #[must_use]
    pub fn new(level: Level, layout: ParityLayout, chunk: Sectors, member_size: Sectors) -> Self {
        Self {
            level,
            layout,
            chunk,
            member_size,
            members: Vec::new(),
            write_policy: WritePolicy::default(),
            stripes: 256,
            window: Sectors(1024),
            sync: RecoveryConfig {
                block: raidlab_units::Bytes(64 << 10),
                depth: 16,
                ..RecoveryConfig::md_6()
            },
            log: None,
        }
    }

    /// Checks everything; returns the map and the longest window, in sectors.
    ///
    /// # Errors
    /// When there can be no such array, or a member is too small to be part of it.
    pub fn check(&self) -> Result<(StripeMap, u64), StripeConfigError> {
        let count = self.members.len();
        let map = StripeMap::new(self.level, self.layout, count, self.chunk, self.member_size)
            .map_err(StripeConfigError::Map)?;
        if self.stripes == 0 || self.window.0 == 0 || !self.window.0.is_multiple_of(BLOCK) {
            return Err(StripeConfigError::Window);
        }
        self.sync.check().map_err(StripeConfigError::Sync)?;
        let mut in_sync = 0;
        for (slot, member) in (0..).zip(&self.members) {
            let (Initial::InSync(config) | Initial::Recovering(config, _)) = member else {
                continue;
            };
            in_sync += usize::from(matches!(member, Initial::InSync(_)));
            config.check_room(Slot(slot), map.member_size())?;
            if let Some(log) = &self.log
                && !ring_is_sound(log.ring, config, map.member_size())
            {
                return Err(StripeConfigError::Log { slot });
            }
        }
        if in_sync < map.data_count() {
            return Err(StripeConfigError::TooFew {
                in_sync,
                needed: map.data_count(),
            });
        }
        let fits = self.log.as_ref().map(|log| ring_window(log.ring.count().0));
        let window = self.window.0.min(fits.unwrap_or(u64::MAX));
        Ok((map, window.min(map.chunk().0)))
    }
}

/// Whether a span of a member can be a ring: large enough, and not over data.
pub(super) fn ring_is_sound(area: Span, member: &MemberConfig, used: Sectors) -> bool {
    let sectors = area.end.0.saturating_sub(area.start.0);
    let apart = area.end <= member.data_offset || area.start.0 >= member.needed(used);
    let sound = sectors >= SMALLEST_RING && sectors.is_multiple_of(BLOCK) && sectors < 1 << 32;
    sound && apart && area.end <= member.size
}

/// Returns the longest window that fits a ring: a quarter of it holds a record.
const fn ring_window(sectors: u64) -> u64 {
    (sectors / 4 - BLOCK) / BLOCK * BLOCK
}
