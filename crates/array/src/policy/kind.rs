//! The read policies by name.

use super::btrfs::{BtrfsDevid, BtrfsPid, BtrfsRoundRobin};
use super::gflash::Gflash;
use super::gmirror_list::GmirrorRoundRobin;
use super::gmirror_load::GmirrorLoad;
use super::gmirror_prefer::GmirrorPrefer;
use super::gmirror_split::GmirrorSplit;
use super::least_pending::LeastPending;
use super::md_3_16::Md316;
use super::md_4_10::Md410;
use super::md_6_9::Md69;
use super::md_raid10::MdRaid10;
use super::nearest_head::NearestHead;
use super::round_robin::RoundRobin;
use super::spdk::Spdk;
use super::{ReadPolicy, ZfsFreebsd10, Zol06};
use crate::request::Slot;
use raidlab_units::{ParseUnitError, SECTOR_BYTES, Sectors, parse_bytes};
use std::fmt;
use std::str::FromStr;

/// A read policy and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadPolicyKind {
    /// md of Linux 3.13 to 4.9.
    Md316 {
        /// What non-rotational members report as optimal I/O size; 0 = none.
        optimal_io: Sectors,
    },
    /// md of Linux 4.10 to 6.8.
    Md410 {
        /// As for [`Self::Md316`].
        optimal_io: Sectors,
    },
    /// md of Linux 6.9 and later.
    Md69 {
        /// As for [`Self::Md316`].
        optimal_io: Sectors,
    },
    /// md's RAID 10 of Linux 3.13 to 5.3.
    MdRaid10,
    /// md's RAID 10 of Linux 5.4 and later.
    MdRaid10From54,
    /// gmirror's default.
    GmirrorLoad,
    /// gmirror, disks in turn.
    GmirrorRoundRobin,
    /// gmirror, one read over all disks.
    GmirrorSplit {
        /// Reads up to this size are not split.
        slice: Sectors,
    },
    /// gmirror, the disk of the highest priority.
    GmirrorPrefer,
    /// Our reading of gflash.
    Gflash {
        /// Within this distance of a last position idleness does not count.
        near: Sectors,
    },
    /// ZFS of FreeBSD 10, OpenZFS since 0.7.
    ZfsFreebsd10,
    /// ZFS on Linux 0.6.
    Zol06,
    /// Fewest outstanding, nearest on a tie.
    LeastPending,
    /// Nearest to the last issued position.
    NearestHead,
    /// Address stripes in turn.
    RoundRobin {
        /// The stripe, at least 1 sector.
        stripe: Sectors,
    },
    /// btrfs, by process.
    BtrfsPid,
    /// btrfs, in turn by amount read.
    BtrfsRoundRobin {
        /// What one copy serves before the next one does, at least 1 sector.
        contiguous: Sectors,
    },
    /// btrfs, one named device.
    BtrfsDevid {
        /// Its slot.
        slot: Slot,
    },
    /// SPDK.
    Spdk,
}

/// A read policy that does not exist or cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadPolicyError {
    /// No policy of this name.
    #[error("`{name}` is not a read policy; known are {}", known_names())]
    Unknown {
        /// The name that was asked for.
        name: String,
    },
    /// A parameter where there is none.
    #[error("the read policy `{name}` takes no parameter")]
    NoParameter {
        /// The policy.
        name: &'static str,
    },
    /// A size that cannot be read.
    #[error("the parameter of the read policy `{name}` is not a size")]
    Size {
        /// The policy.
        name: &'static str,
        /// Why not.
        #[source]
        source: ParseUnitError,
    },
    /// A size that is not whole sectors, or zero where that has no meaning.
    #[error("the parameter of the read policy `{name}` must be {expected}")]
    Parameter {
        /// The policy.
        name: &'static str,
        /// What it may be.
        expected: &'static str,
    },
    /// A device that the array does not have.
    #[error("the read policy names slot {slot}, but the array has {members} members")]
    NoSuchSlot {
        /// The slot that was asked for.
        slot: u16,
        /// How many there are.
        members: usize,
    },
}

impl ReadPolicyKind {
    /// Every policy with its usual parameters, in the order of the manual.
    pub const ALL: [Self; 19] = [
        Self::Md316 {
            optimal_io: Sectors::ZERO,
        },
        Self::Md410 {
            optimal_io: Sectors::ZERO,
        },
        Self::Md69 {
            optimal_io: Sectors::ZERO,
        },
        Self::MdRaid10,
        Self::MdRaid10From54,
        Self::GmirrorLoad,
        Self::GmirrorRoundRobin,
        // 4096 bytes, the default of `gmirror configure -s`.
        Self::GmirrorSplit { slice: Sectors(8) },
        Self::GmirrorPrefer,
        // 16 GiB; fitted to its figures for three and four streams.
        Self::Gflash {
            near: Sectors(1 << 25),
        },
        Self::ZfsFreebsd10,
        Self::Zol06,
        Self::LeastPending,
        Self::NearestHead,
        Self::RoundRobin {
            stripe: Sectors(128),
        },
        Self::BtrfsPid,
        Self::BtrfsRoundRobin {
            contiguous: Sectors(512),
        },
        Self::BtrfsDevid { slot: Slot(0) },
        Self::Spdk,
    ];

    /// The name without parameters.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Md316 { .. } => "md-3.16",
            Self::Md410 { .. } => "md-4.10",
            Self::Md69 { .. } => "md-6.9",
            Self::MdRaid10 => "md-raid10-3.13",
            Self::MdRaid10From54 => "md-raid10-5.4",
            Self::GmirrorLoad => "gmirror-load",
            Self::GmirrorRoundRobin => "gmirror-round-robin",
            Self::GmirrorSplit { .. } => "gmirror-split",
            Self::GmirrorPrefer => "gmirror-prefer",
            Self::Gflash { .. } => "gflash",
            Self::ZfsFreebsd10 => "zfs-freebsd-10",
            Self::Zol06 => "zol-0.6",
            Self::LeastPending => "least-pending",
            Self::NearestHead => "nearest-head",
            Self::RoundRobin { .. } => "round-robin",
            Self::BtrfsPid => "btrfs-pid",
            Self::BtrfsRoundRobin { .. } => "btrfs-round-robin",
            Self::BtrfsDevid { .. } => "btrfs-devid",
            Self::Spdk => "spdk",
        }
    }

    /// The rule in one line.
    #[must_use]
    pub const fn describe(&self) -> &'static str {
        match self {
            Self::Md316 { .. } => {
                "md of Linux 3.13-4.9: slot by slot the first sequential or idle member, else the nearest completed position"
            }
            Self::Md410 { .. } => {
                "md of Linux 4.10-6.8: any sequential member, else an idle one, else the nearest completed position"
            }
            Self::Md69 { .. } => {
                "md of Linux 6.9 and later: sequential, else idle, else the nearest completed position"
            }
            Self::MdRaid10 => {
                "md's RAID 10 of Linux 3.13-5.3: an idle near copy, else the nearest completed address; the outermost far copy"
            }
            Self::MdRaid10From54 => {
                "md's RAID 10 of Linux 5.4 and later: as before, but the quietest non-rotational copy first"
            }
            Self::GmirrorLoad => {
                "gmirror's default: a decaying load per disk, a bonus for continuing or being within 1 MiB"
            }
            Self::GmirrorRoundRobin => "gmirror: disks in turn, from the last named",
            Self::GmirrorSplit { .. } => {
                "gmirror: each read above the slice size is split over all disks"
            }
            Self::GmirrorPrefer => "gmirror: the disk of the highest priority",
            Self::Gflash { .. } => {
                "our reading of gflash, a closed driver: idle members first except near a last position, then the nearest issued position"
            }
            Self::ZfsFreebsd10 => {
                "ZFS of FreeBSD 10 and OpenZFS 0.7 and later: active I/Os plus a penalty for seeks, ties by 2 MiB stripes"
            }
            Self::Zol06 => "ZFS on Linux 0.6: fewest active I/Os, ties by 10 ms of the clock",
            Self::LeastPending => "synthetic: fewest outstanding commands, nearest on a tie",
            Self::NearestHead => "synthetic: nearest to the last issued position",
            Self::RoundRobin { .. } => "synthetic: stripes of the address space in turn",
            Self::BtrfsPid => "btrfs: the process id chooses the copy",
            Self::BtrfsRoundRobin { .. } => "btrfs: the copies in turn, 256 KiB of reads each",
            Self::BtrfsDevid { .. } => "btrfs: one named device",
            Self::Spdk => "SPDK: fewest read blocks outstanding",
        }
    }

    /// Checks the parameters for an array of `members`.
    pub(crate) fn check(&self, members: usize) -> Result<(), ReadPolicyError> {
        match *self {
            Self::RoundRobin { stripe: size } | Self::BtrfsRoundRobin { contiguous: size }
                if size == Sectors::ZERO =>
            {
                Err(ReadPolicyError::Parameter {
                    name: self.name(),
                    expected: AT_LEAST_ONE_SECTOR,
                })
            }
            Self::BtrfsDevid { slot } if slot.index() >= members => {
                Err(ReadPolicyError::NoSuchSlot {
                    slot: slot.0,
                    members,
                })
            }
            _ => Ok(()),
        }
    }

    /// The policy for an array of `members`, with no history.
    #[must_use]
    pub fn build(&self, members: usize) -> Box<dyn ReadPolicy> {
        match *self {
            Self::Md316 { optimal_io } => Box::new(Md316::new(members, optimal_io)),
            Self::Md410 { optimal_io } => Box::new(Md410::new(members, optimal_io)),
            Self::Md69 { optimal_io } => Box::new(Md69::new(members, optimal_io)),
            Self::MdRaid10 => Box::new(MdRaid10::new(members, false)),
            Self::MdRaid10From54 => Box::new(MdRaid10::new(members, true)),
            Self::GmirrorLoad => Box::new(GmirrorLoad::new(members)),
            Self::GmirrorRoundRobin => Box::new(GmirrorRoundRobin::new(members)),
            Self::GmirrorSplit { slice } => Box::new(GmirrorSplit::new(members, slice)),
            Self::GmirrorPrefer => Box::new(GmirrorPrefer::new(members)),
            Self::Gflash { near } => Box::new(Gflash::new(members, near)),
            Self::ZfsFreebsd10 => Box::new(ZfsFreebsd10::new(members)),
            Self::Zol06 => Box::new(Zol06),
            Self::LeastPending => Box::new(LeastPending::new(members)),
            Self::NearestHead => Box::new(NearestHead::new(members)),
            Self::RoundRobin { stripe } => Box::new(RoundRobin::new(stripe)),
            Self::BtrfsPid => Box::new(BtrfsPid),
            Self::BtrfsRoundRobin { contiguous } => Box::new(BtrfsRoundRobin::new(contiguous)),
            Self::BtrfsDevid { slot } => Box::new(BtrfsDevid::new(slot)),
            Self::Spdk => Box::new(Spdk::new(members)),
        }
    }

    /// The parameter that is a size, to be set.
    fn size_mut(&mut self) -> Option<&mut Sectors> {
        match self {
            Self::Md316 { optimal_io: size }
            | Self::Md410 { optimal_io: size }
            | Self::Md69 { optimal_io: size }
            | Self::GmirrorSplit { slice: size }
            | Self::Gflash { near: size }
            | Self::RoundRobin { stripe: size }
            | Self::BtrfsRoundRobin { contiguous: size } => Some(size),
            _ => None,
        }
    }

    fn set_parameter(&mut self, text: &str) -> Result<(), ReadPolicyError> {
        let name = self.name();
        if let Self::BtrfsDevid { slot } = self {
            slot.0 = text.parse().map_err(|_| ReadPolicyError::Parameter {
                name,
                expected: "a slot number",
            })?;
            return Ok(());
        }
        let Some(size) = self.size_mut() else {
            return Err(ReadPolicyError::NoParameter { name });
        };
        let bytes = parse_bytes(text).map_err(|source| ReadPolicyError::Size { name, source })?;
        if !bytes.0.is_multiple_of(SECTOR_BYTES) {
            return Err(ReadPolicyError::Parameter {
                name,
                expected: "whole sectors of 512 bytes",
            });
        }
        *size = bytes.to_sectors();
        Ok(())
    }
}

const AT_LEAST_ONE_SECTOR: &str = "at least one sector";

fn known_names() -> String {
    ReadPolicyKind::ALL.map(|kind| kind.name()).join(", ")
}

impl FromStr for ReadPolicyKind {
    type Err = ReadPolicyError;

    /// Reads `name` or `name:parameter`: a size as fio writes it
    /// (`gmirror-split:8k`, `round-robin:64k`, `gflash:16g`, `md-6.9:128k` for
    /// the optimal I/O size), or a slot (`btrfs-devid:1`).
    fn from_str(text: &str) -> Result<Self, ReadPolicyError> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let known = Self::ALL.into_iter().find(|kind| kind.name() == name);
        let mut kind = known.ok_or_else(|| ReadPolicyError::Unknown {
            name: name.to_owned(),
        })?;
        if let Some(parameter) = parameter {
            kind.set_parameter(parameter)?;
        }
        // Only a device's slot depends on the array; it is checked there.
        kind.check(usize::MAX)?;
        Ok(kind)
    }
}

impl fmt::Display for ReadPolicyKind {
    /// The name, and the parameter where it is not the usual one; what
    /// `FromStr` reads.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())?;
        if Self::ALL.contains(self) {
            return Ok(());
        }
        let mut kind = *self;
        if let Self::BtrfsDevid { slot } = kind {
            write!(formatter, ":{}", slot.0)
        } else if let Some(size) = kind.size_mut() {
            write!(formatter, ":{}", size.to_bytes().0)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ReadPolicyKind, Slot};
    use raidlab_units::Sectors;
    use std::error::Error;

    #[test]
    fn every_name_is_read_back() {
        for kind in ReadPolicyKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.to_string(), kind.name());
            assert!(!kind.describe().is_empty());
        }
        for text in ["gmirror-split:8192", "btrfs-devid:3", "gflash:0"] {
            let kind: ReadPolicyKind = text.parse().expect(text);
            assert_eq!(kind.to_string(), text);
        }
    }

    #[test]
    fn parameters_are_sizes_or_slots() {
        assert_eq!(
            "round-robin:1m".parse(),
            Ok(ReadPolicyKind::RoundRobin {
                stripe: Sectors(2048)
            })
        );
        assert_eq!(
            "btrfs-devid:1".parse(),
            Ok(ReadPolicyKind::BtrfsDevid { slot: Slot(1) })
        );
    }

    #[test]
    fn errors_name_the_cause() {
        let explain = |text: &str| {
            let error = text.parse::<ReadPolicyKind>().expect_err(text);
            match error.source() {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            }
        };
        let texts = [
            "md-9",
            "spdk:4k",
            "gflash:x",
            "round-robin:0",
            "gmirror-split:100",
            "btrfs-devid:a",
        ];
        insta::assert_snapshot!(texts.map(explain).join("\n"), @r"
        `md-9` is not a read policy; known are md-3.16, md-4.10, md-6.9, md-raid10-3.13, md-raid10-5.4, gmirror-load, gmirror-round-robin, gmirror-split, gmirror-prefer, gflash, zfs-freebsd-10, zol-0.6, least-pending, nearest-head, round-robin, btrfs-pid, btrfs-round-robin, btrfs-devid, spdk
        the read policy `spdk` takes no parameter
        the parameter of the read policy `gflash` is not a size: `x` does not start with a number
        the parameter of the read policy `round-robin` must be at least one sector
        the parameter of the read policy `gmirror-split` must be whole sectors of 512 bytes
        the parameter of the read policy `btrfs-devid` must be a slot number
        ");
    }
}
