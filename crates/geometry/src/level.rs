//! RAID levels and layouts under the names and numbers that md and mdadm use.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A RAID level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Members one after the other.
    Linear,
    /// Chunks in turn on all members, without redundancy.
    Raid0,
    /// Mirror of any number of members.
    Raid1,
    /// Parity on the last member.
    Raid4,
    /// One parity block per stripe, on the members in turn.
    Raid5,
    /// Two parity blocks (P and Q) a stripe.
    Raid6,
    /// Striped copies: near, far or offset.
    Raid10,
}

/// The rotation of parity over the members of a RAID 4, 5 or 6. The codes are md's
/// (drivers/md/raid5.h of Linux).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ParityLayout {
    /// Number 0: P moves from the last member to the first, row by row; the row's data chunks
    /// lie on the other members in ascending order.
    LeftAsymmetric,
    /// Number 1: P moves from the first member to the last, row by row; the row's data chunks
    /// lie on the other members in ascending order.
    RightAsymmetric,
    /// Number 2, md's default: P moves from the last member to the first; the row's data chunks
    /// begin on the member after the parity and go round.
    #[default]
    LeftSymmetric,
    /// Number 3: P moves from the first member to the last; the row's data chunks begin on the
    /// member after the parity and go round.
    RightSymmetric,
    /// Number 4: parity on the first member (or the first two).
    ParityFirst,
    /// Number 5: parity on the last member (or the last two), as in RAID 4.
    ParityLast,
    /// Number 8, RAID 6 only: DDF's rotating parity, zero restart.
    RotatingZeroRestart,
    /// Number 9, RAID 6 only: DDF's rotating parity, N restart.
    RotatingNRestart,
    /// Number 10, RAID 6 only: DDF's rotating parity, N continue.
    RotatingNContinue,
    /// Number 16, RAID 6 only: `LeftAsymmetric` over all but the last member, which holds Q.
    LeftAsymmetric6,
    /// Number 17, RAID 6 only: `RightAsymmetric` over all but the last member, which holds Q.
    RightAsymmetric6,
    /// Number 18, RAID 6 only: `LeftSymmetric` over all but the last member, which holds Q.
    LeftSymmetric6,
    /// Number 19, RAID 6 only: `RightSymmetric` over all but the last member, which holds Q.
    RightSymmetric6,
    /// Number 20, RAID 6 only: P on the first member, Q on the last, data on those between.
    ParityFirst6,
}

/// The numbering of chunks in the later zones of a RAID 0 of unequal members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ZoneLayout {
    /// Number 1: by the array's chunk number (Linux up to 3.13, and mdadm's default).
    Original,
    /// Number 2: by the zone's own chunk number (Linux 3.14 to 5.3).
    Alternate,
}

/// The copies of a RAID 10.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Copies {
    /// The number of copies beside each other, at least 1.
    pub near: u8,
    /// The number of copies far apart, at least 1.
    pub far: u8,
    /// Whether far copies lie in the next row instead of the next part of the member.
    pub offset: bool,
    /// Whether far copies stay within sets of members.
    pub far_sets: FarSets,
}

/// The sets of members that far copies stay within (bits 17 and 18 of md's
/// layout word).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum FarSets {
    /// No sets: all members form a single one.
    #[default]
    None,
    /// Bit 17: a set has members / far copies (Linux 3.9 to 4.2).
    Divided,
    /// Bit 18: a set has near copies x far copies members (Linux 4.4 and later).
    Exact,
}

/// A level's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layout {
    /// No layout: linear and RAID 1 need none. A RAID 0 whose layout was not recorded has none
    /// either, which does no harm while it has a single zone.
    None,
    /// The numbering of chunks in the zones of a RAID 0 after its first.
    Zones(ZoneLayout),
    /// The members on which a RAID 4, 5 or 6 keeps parity and data, row by row.
    Parity(ParityLayout),
    /// The number and the places of the copies of a RAID 10.
    Copies(Copies),
}

/// A level that md does not know.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown level `{0}`: linear, 0, 1, 4, 5, 6 or 10")]
pub struct UnknownLevel(pub String);

/// A layout that the level does not have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{level} has no layout `{layout}`")]
pub struct UnknownLayout {
    /// The level for which the layout was asked.
    pub level: Level,
    /// The layout as it was asked for: a name, or a superblock's word in hexadecimal (`0x..`).
    pub layout: String,
}

impl Level {
    /// Returns md's number of the level: -1 for linear.
    #[must_use]
    pub const fn md_number(self) -> i32 {
        match self {
            Self::Linear => -1,
            Self::Raid0 => 0,
            Self::Raid1 => 1,
            Self::Raid4 => 4,
            Self::Raid5 => 5,
            Self::Raid6 => 6,
            Self::Raid10 => 10,
        }
    }

    /// Returns the level with this number in md.
    #[must_use]
    pub const fn from_md_number(number: i32) -> Option<Self> {
        Some(match number {
            -1 => Self::Linear,
            0 => Self::Raid0,
            1 => Self::Raid1,
            4 => Self::Raid4,
            5 => Self::Raid5,
            6 => Self::Raid6,
            10 => Self::Raid10,
            _ => return None,
        })
    }

    /// Returns the number of parity blocks in a stripe: 0, 1 or 2.
    #[must_use]
    pub const fn parity_count(self) -> usize {
        match self {
            Self::Raid4 | Self::Raid5 => 1,
            Self::Raid6 => 2,
            _ => 0,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Linear => formatter.pad("linear"),
            level => formatter.pad(&format!("raid{}", level.md_number())),
        }
    }
}

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownLevel(text.to_owned());
        if text == "linear" {
            return Ok(Self::Linear);
        }
        let number = text.strip_prefix("raid").unwrap_or(text);
        match number {
            "mirror" => Ok(Self::Raid1),
            "stripe" => Ok(Self::Raid0),
            digits => digits
                .parse()
                .ok()
                .filter(|number| *number >= 0)
                .and_then(Self::from_md_number)
                .ok_or_else(unknown),
        }
    }
}
