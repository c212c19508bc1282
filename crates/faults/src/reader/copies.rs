//! The places of copies in linear, RAID 0 and RAID 10.

use super::{Place, Reader};
use raidlab_geometry::{Copies, FarSets, ZoneLayout};

impl Reader {
    pub(super) fn linear(&self, sector: u64) -> Vec<Place> {
        let mut start = 0;
        for (slot, (_, size)) in self.areas.iter().enumerate() {
            let size = size - size % self.chunk.max(1);
            if sector < start + size {
                let sector = sector - start;
                return vec![Place { slot, sector }];
            }
            start += size;
        }
        Vec::new()
    }

    pub(super) fn striped(&self, sector: u64, layout: ZoneLayout) -> Vec<Place> {
        let chunk = self.chunk;
        let sizes: Vec<u64> = self
            .areas
            .iter()
            .map(|(_, size)| size - size % chunk)
            .collect();
        let (mut zone_start, mut member_start) = (0, 0);
        loop {
            let members: Vec<usize> = (0..sizes.len())
                .filter(|slot| sizes[*slot] > member_start)
                .collect();
            let Some(end) = members.iter().map(|slot| sizes[*slot]).min() else {
                return Vec::new();
            };
            let count = members.len() as u64;
            let zone_size = (end - member_start) * count;
            if sector >= zone_start + zone_size {
                zone_start += zone_size;
                member_start = end;
                continue;
            }
            let within = sector - zone_start;
            let index = match layout {
                ZoneLayout::Original => sector / chunk % count,
                ZoneLayout::Alternate => within / chunk % count,
            };
            return vec![Place {
                slot: members[index as usize],
                sector: within / (chunk * count) * chunk + within % chunk + member_start,
            }];
        }
    }

    pub(super) fn scattered(&self, sector: u64, copies: Copies) -> Vec<Place> {
        let members = self.members() as u64;
        let (near, far) = (u64::from(copies.near), u64::from(copies.far));
        let chunks = self.used / self.chunk / far * members / near;
        let used_chunks = (chunks * near * far).div_ceil(members);
        let stride = if copies.offset { 1 } else { used_chunks / far } * self.chunk;
        let set_size = match copies.far_sets {
            FarSets::None => members,
            FarSets::Divided => members / far,
            FarSets::Exact => near * far,
        };
        let last_set = (members / set_size - 1) * set_size;
        let last_size = set_size + members % set_size;

        let (chunk, within) = (sector / self.chunk, sector % self.chunk);
        let (mut row, mut member) = (chunk * near / members, chunk * near % members);
        if copies.offset {
            row *= far;
        }
        let mut address = row * self.chunk + within;
        let mut places = Vec::with_capacity(usize::from(copies.near) * usize::from(copies.far));
        for _ in 0..near {
            let (mut slot, mut at) = (member, address);
            places.push((slot, at));
            for _ in 1..far {
                let set = slot / set_size;
                slot += near;
                if !members.is_multiple_of(set_size) && slot > last_set {
                    slot = (slot - last_set) % last_size + last_set;
                } else {
                    slot = slot % set_size + set * set_size;
                }
                at += stride;
                places.push((slot, at));
            }
            member += 1;
            if member >= members {
                member = 0;
                address += self.chunk;
            }
        }
        let place = |(slot, sector): (u64, u64)| Place {
            slot: slot as usize,
            sector,
        };
        places.into_iter().map(place).collect()
    }
}
