//! The choice of the data offset, and of the used size of each member.

use super::{CreateError, CreateSpec, LEAST_LOG_AREA, LogReserve, MemberSize, RAID1_ROUNDING};
use crate::bitmap::bitmap_space;
use crate::superblock::{SMALLEST_MEMBER, Version};
use raidlab_geometry::Level;
use raidlab_units::Sectors;

/// The most headroom before the data, in sectors, for a later reshape: 128 MiB.
const MOST_HEADROOM: u64 = 128 * 1024 * 2;
/// The unit of the data offset, in sectors: 1 MiB.
const ROUNDING: u64 = 2048;
/// Sectors for superblock, bad-block log and what lies before them (`validate_geometry1`).
const OVERHEAD: u64 = 12 * 2;
/// Sectors of a bad-block log.
const BAD_BLOCK_SECTORS: u64 = 8;

/// The areas that every member has in common.
pub(super) struct Space {
    /// The sector at which the data begin on every member.
    pub(super) data_offset: Sectors,
    /// `size` in the superblock: 0 for levels that use all of each member.
    pub(super) used_size: Sectors,
    /// The room kept for raidlab's log.
    pub(super) reserve: Sectors,
}

/// Returns the sectors kept for raidlab's own log on a member of this size: 32 MiB from 32 GiB
/// on, where mdadm leaves as much anyway, 4 MiB from 64 MiB on, 1 MiB from 16 MiB on,
/// otherwise 256 KiB.
#[must_use]
pub const fn default_log_reserve(size: Sectors) -> Sectors {
    let mebibyte = 2048;
    Sectors(match size.0 / mebibyte {
        32768.. => 32 * mebibyte,
        64.. => 4 * mebibyte,
        16.. => mebibyte,
        _ => mebibyte / 4,
    })
}

/// Chooses the areas, and checks that every member has room.
pub(super) fn choose(
    spec: &CreateSpec,
    chunk: Sectors,
    members: &[Option<MemberSize>],
) -> Result<Space, CreateError> {
    let there = members.iter().enumerate();
    let there: Vec<(usize, &MemberSize)> = there
        .filter_map(|(index, member)| member.as_ref().map(|member| (index, member)))
        .collect();
    // mdadm considers the first member alone; the log needs room on each.
    let first = there
        .first()
        .map_or(Sectors::ZERO, |(_, member)| member.size.to_sectors());
    let least = there
        .iter()
        .map(|(_, member)| member.size.to_sectors())
        .min();
    let reserve = reserve(spec, least.unwrap_or(first));
    let data_offset = data_offset(spec, chunk, first, reserve)?;
    let mut smallest: Option<Sectors> = None;
    for (index, member) in there {
        let too_small = CreateError::TooSmall {
            index,
            size: member.size,
        };
        let size = member.size.to_sectors();
        let offered = offered(spec, size, data_offset, reserve);
        let offered = offered
            .filter(|_| size >= SMALLEST_MEMBER)
            .ok_or(too_small.clone())?;
        // mdadm computes in KiB here, so an odd sector is dropped.
        let offered = whole_chunks(Sectors(offered.0 & !1), chunk);
        if offered < Sectors(BAD_BLOCK_SECTORS + 2) {
            return Err(too_small);
        }
        if let Some(wanted) = spec.size.filter(|wanted| *wanted > offered) {
            return Err(CreateError::SmallerThanSize {
                index,
                offered,
                wanted,
            });
        }
        smallest = Some(smallest.map_or(offered, |smallest| smallest.min(offered)));
    }
    let used_size = match (spec.level, spec.size, smallest) {
        (Level::Linear | Level::Raid0, ..) => Sectors::ZERO,
        (_, Some(size), _) => whole_chunks(Sectors(size.0 & !1), chunk),
        (Level::Raid1, None, smallest) => {
            let Sectors(size) = smallest.unwrap_or_default();
            Sectors(size - size % RAID1_ROUNDING)
        }
        (_, None, smallest) => smallest.unwrap_or_default(),
    };
    let bare = matches!(spec.level, Level::Linear | Level::Raid0);
    if used_size == Sectors::ZERO && !bare {
        return Err(CreateError::Size(
            spec.size.or(smallest).unwrap_or_default(),
        ));
    }
    Ok(Space {
        data_offset,
        used_size,
        reserve,
    })
}

fn reserve(spec: &CreateSpec, least: Sectors) -> Sectors {
    match spec.log {
        LogReserve::Automatic if spec.level.parity_count() > 0 && spec.data_offset.is_none() => {
            default_log_reserve(least)
        }
        LogReserve::Automatic | LogReserve::None | LogReserve::TooLittle => Sectors::ZERO,
        LogReserve::AtLeast(reserve) => Sectors(reserve.0.next_multiple_of(8)),
    }
}

/// Returns the sectors kept for a bitmap. Room that no bitmap takes is a gap for a log.
pub(super) fn bitmap_room(spec: &CreateSpec, size: Sectors) -> Sectors {
    let room = bitmap_space(size);
    match spec.log {
        // Rounding may add a page of 8 sectors at each end.
        LogReserve::TooLittle => room.min(Sectors(LEAST_LOG_AREA.0 - 3 * 8)),
        _ => room,
    }
}

/// Returns the data offset. Headroom is halved from 128 MiB until it is about 0.1 % of the first
/// member, but holds two chunks.
fn data_offset(
    spec: &CreateSpec,
    chunk: Sectors,
    first: Sectors,
    reserve: Sectors,
) -> Result<Sectors, CreateError> {
    let at_end = spec.version == Version::V1_0;
    let needed = if at_end {
        0
    } else {
        OVERHEAD + bitmap_room(spec, first).0 + reserve.0
    };
    if let Some(offset) = spec.data_offset {
        if offset.0 < needed || !offset.0.is_multiple_of(8) {
            return Err(CreateError::DataOffset {
                offset,
                needed: Sectors(needed),
            });
        }
        return Ok(offset);
    }
    if at_end {
        return Ok(Sectors::ZERO);
    }
    if spec.log == LogReserve::TooLittle {
        return Ok(Sectors(needed.next_multiple_of(8)));
    }
    let mut headroom = MOST_HEADROOM;
    while headroom << 10 > first.0 && (chunk == Sectors::ZERO || headroom / 2 >= chunk.0 * 2) {
        headroom /= 2;
    }
    let chosen = OVERHEAD + bitmap_space(first).0 + headroom.max(reserve.0);
    Ok(Sectors(chosen.next_multiple_of(ROUNDING)))
}

/// Returns the sectors that a member offers for data (`validate_geometry1`); `None` if not even
/// the metadata fit.
fn offered(
    spec: &CreateSpec,
    size: Sectors,
    data_offset: Sectors,
    reserve: Sectors,
) -> Option<Sectors> {
    let left = if spec.version == Version::V1_0 {
        let whole = size.0 & !7;
        let overhead = 8 * 2 + BAD_BLOCK_SECTORS + bitmap_room(spec, size).0;
        let left = whole.checked_sub(overhead)?.checked_sub(reserve.0)?;
        left.checked_sub(data_offset.0)?
    } else {
        size.0.checked_sub(data_offset.0)?
    };
    Some(Sectors(left))
}

/// Rounds a size down to whole chunks, if there are chunks.
fn whole_chunks(size: Sectors, chunk: Sectors) -> Sectors {
    Sectors(size.0 - size.0.checked_rem(chunk.0).unwrap_or(0))
}
