//! How a parity array is set up.

use crate::config::{Initial, MemberConfig, MemberTooSmall};
use crate::recovery::{RecoveryConfig, RecoveryConfigError};
use raidlab_geometry::{Level, ParityLayout, Slot, StripeMap, StripeMapError};
use raidlab_units::{Sectors, Span};

/// Sectors of a block: what md calls a stripe's page.
pub(super) const BLOCK: u64 = 8;

/// Whether a write that could do with either reads the old data and parity
/// (read-modify-write) or the data that it leaves alone (reconstruct-write).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WritePolicy {
    /// Linux 3.16 to 4.0 (`handle_stripe_dirtying` of drivers/md/raid5.c):
    /// RAID 6 always reconstructs, the others modify if that reads less.
    Md3_16,
    /// Linux 4.1 and later, by `rmw_level`.
    Md4_1(RmwLevel),
}

/// The values of md's `rmw_level`, which says when a write may modify parity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RmwLevel {
    /// md's 0: parity is never modified, but always made anew.
    Disabled,
    /// 1, md's default: modify if that reads less.
    #[default]
    Enabled,
    /// 2: modify if that does not read more.
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
    /// Which run of the array the records are of: never used before with
    /// these members.
    pub session: u64,
    /// Where the ring of each member lies, in its own sectors (data offset not included), in
    /// whole blocks of 4 KiB: at the same place on all.
    pub ring: Span,
}

/// A RAID 4, 5 or 6.
#[derive(Debug, Clone)]
pub struct StripeConfig {
    /// RAID 4, 5 or 6.
    pub level: Level,
    /// How parity moves from row to row.
    pub layout: ParityLayout,
    /// A power of two of at least 8 sectors.
    pub chunk: Sectors,
    /// Sectors of each member's data area; rounded down to whole chunks.
    pub member_size: Sectors,
    /// What each slot holds.
    pub members: Vec<Initial>,
    /// The choice between read-modify-write and reconstruct-write.
    pub write_policy: WritePolicy,
    /// Windows gathered before all of them go; at least 1; md's stripe cache
    /// has 256 stripes.
    pub stripes: usize,
    /// The longest window; whole blocks. Bounds the scratch memory of one.
    pub window: Sectors,
    /// Block size, depth, throttle and checkpoints of syncs; the rest is for
    /// arrays of copies.
    pub sync: RecoveryConfig,
    /// The write log, if there is one.
    pub log: Option<LogConfig>,
}

/// Why a parity array cannot be set up so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StripeConfigError {
    /// There is no array of this level, layout, chunk and these sizes.
    #[error("there is no such array")]
    Map(#[source] StripeMapError),
    /// A member that cannot hold its part.
    #[error(transparent)]
    MemberTooSmall(#[from] MemberTooSmall),
    /// More members lost than the level can bear.
    #[error("only {in_sync} members are in sync, but {needed} are needed")]
    TooFew {
        /// How many members are in sync.
        in_sync: usize,
        /// How many data blocks a row has, which is how many members are needed.
        needed: usize,
    },
    /// Nothing could be gathered, or windows of no whole block.
    #[error("at least one stripe and windows of whole blocks of 8 sectors are needed")]
    Window,
    /// The engine would wait for a stripe for ever.
    #[error("a cache of {stripes} stripes is too small: at least {least} are needed")]
    Stripes {
        /// How many stripes the cache was to have.
        stripes: usize,
        /// The smallest cache with which the engine works.
        least: usize,
    },
    /// A log that a window does not fit into.
    #[error("the log of member {slot} needs at least 64 sectors beside the data, in whole blocks")]
    Log {
        /// The slot whose member has no room for a log.
        slot: u16,
    },
    /// A parameter of syncs.
    #[error("the sync settings cannot be used")]
    Sync(#[source] RecoveryConfigError),
}

/// The smallest ring: two records of one block each, four times over.
const SMALLEST_RING: u64 = 64;

impl StripeConfig {
    /// md of Linux 6 in what it decides, without a log, all slots missing.
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

    /// Checks all; gives the map and the longest window, in sectors.
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

/// The longest window that fits a ring: a quarter of it holds a record.
const fn ring_window(sectors: u64) -> u64 {
    (sectors / 4 - BLOCK) / BLOCK * BLOCK
}
