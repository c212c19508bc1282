//! RAID 0 (Linux drivers/md/raid0.c, `create_strip_zones` and `map_sector`).
//!
//! Members count in whole chunks. The first zone stripes over all of them, up
//! to the smallest one's size; each further zone over those that go on, in slot
//! order, up to the smallest of these. Row `r` of a zone lies `r` chunks beyond
//! the zone's start on each of its members. Which member of the row a chunk is
//! on: the zone's own chunk number modulo the zone's members (alternate
//! layout), or the array's chunk number modulo them (original layout). They
//! agree in the first zone.

use super::{Content, CopyMap, Found, Inverse, Kind, Pattern};
use crate::level::ZoneLayout;
use crate::shape::{Shape, ShapeError, round_down};
use crate::slots::Slot;
use raidlab_units::Sectors;

#[derive(Debug, Clone)]
pub(super) struct Zones {
    layout: ZoneLayout,
    chunk: u64,
    zones: Vec<Zone>,
}

#[derive(Debug, Clone)]
struct Zone {
    /// The array sector with which the zone begins; `end` is the one after its last.
    start: u64,
    end: u64,
    /// The first sector of the zone on each of its members.
    member_start: u64,
    member_end: u64,
    members: Vec<Slot>,
    /// The pattern of the zone's first member; the others' follow.
    first_pattern: usize,
}

impl Zones {
    pub(super) fn map(shape: &Shape, layout: Option<ZoneLayout>) -> Result<CopyMap, ShapeError> {
        let sizes = shape.member_sizes.iter();
        let used: Vec<_> = sizes.map(|size| round_down(*size, shape.chunk)).collect();
        let (mut zones, mut patterns) = (Vec::new(), Vec::new());
        let (mut start, mut member_start) = (0, 0);
        loop {
            let going_on = (0..).map(Slot).zip(&used);
            let going_on = going_on.filter(|(_, used)| used.0 > member_start);
            let Some(member_end) = going_on.clone().map(|(_, used)| used.0).min() else {
                break;
            };
            let members: Vec<_> = going_on.map(|(slot, _)| slot).collect();
            let end = start + (member_end - member_start) * members.len() as u64;
            let first_pattern = patterns.len();
            patterns.extend(members.iter().copied().map(Pattern::single));
            zones.push(Zone {
                start,
                end,
                member_start,
                member_end,
                members,
                first_pattern,
            });
            (start, member_start) = (end, member_end);
        }
        if zones.len() > 1 && layout.is_none() {
            return Err(ShapeError::UnknownZones);
        }
        let kind = Kind::Zones(Self {
            layout: layout.unwrap_or(ZoneLayout::Original),
            chunk: shape.chunk.0,
            zones,
        });
        Ok(CopyMap::of_patterns(kind, Sectors(start), used, patterns))
    }

    pub(super) fn extent(&self, start: Sectors) -> Found {
        let number = self.zones.partition_point(|zone| zone.end <= start.0);
        let zone = &self.zones[number];
        let within = start.0 - zone.start;
        let members = zone.members.len() as u64;
        let (zone_chunk, offset) = (within / self.chunk, within % self.chunk);
        let member = self
            .layout
            .member(start.0 / self.chunk, zone_chunk, members);
        let contiguous = match members {
            1 => zone.end - start.0,
            _ => self.chunk - offset,
        };
        Found {
            pattern: zone.first_pattern + usize::try_from(member).unwrap_or(0),
            base: Sectors(zone.member_start + zone_chunk / members * self.chunk + offset),
            contiguous: Sectors(contiguous),
        }
    }

    pub(super) fn inverse(&self, slot: Slot, sector: Sectors) -> Inverse {
        let number = self
            .zones
            .partition_point(|zone| zone.member_end <= sector.0);
        let zone = &self.zones[number];
        let members = zone.members.len() as u64;
        let member = zone.members.iter().position(|other| *other == slot);
        let member = member.expect("a member that has this sector is in its zone") as u64;
        let within = sector.0 - zone.member_start;
        let (row, offset) = (within / self.chunk, within % self.chunk);
        let first = match self.layout {
            ZoneLayout::Original => zone.start / self.chunk % members,
            ZoneLayout::Alternate => 0,
        };
        let chunk = row * members + (member + members - first) % members;
        let contiguous = match members {
            1 => zone.member_end - sector.0,
            _ => self.chunk - offset,
        };
        Inverse {
            contiguous: Sectors(contiguous),
            content: Some(Content {
                start: Sectors(zone.start + chunk * self.chunk + offset),
                copy: 0,
            }),
        }
    }
}
