//! What there is before the first event: disks and what they hold.

use crate::disk::Disk;
use crate::options::Options;
use crate::oracle::Oracle;
use crate::pages::{PAGE, Pages, SECTOR};
use crate::reader::Reader;
use crate::value::Value;
use raidlab_geometry::Level;
use raidlab_random::Stream;

/// Data and room for metadata and log, and what the disk is larger than others.
/// Levels without redundancy use that, too.
pub(super) fn disk_sectors(options: &Options, slot: usize) -> u64 {
    let more = match options.level {
        Level::Linear | Level::Raid0 => slot as u64 % 3 * options.chunk * 3,
        _ => 0,
    };
    let more = more + slot as u64 * options.growth;
    (options.used + more + 6144).next_multiple_of(8)
}

/// Where the data begin at the latest, wherever the superblocks lie.
const DATA_OFFSET: u64 = 2048;

/// What was on the disks before: other bytes in every sector of the data, the
/// same page everywhere else.
pub(super) fn fill_with_rubbish(disks: &mut [Disk], used: u64, random: &mut Stream) {
    for disk in disks {
        let mut page = [0; PAGE];
        scribble(&mut page, random);
        let mut bytes = vec![0; (DATA_OFFSET + used) as usize * SECTOR];
        scribble(&mut bytes, random);
        disk.preset(&page, &bytes);
    }
}

fn scribble(bytes: &mut [u8], random: &mut Stream) {
    let (words, _) = bytes.as_chunks_mut::<8>();
    for word in words {
        *word = random.next_u64().to_le_bytes();
    }
}

/// What a new array may hold: any copy of each sector.
pub(super) fn first_oracle(reader: &Reader, disks: &[Disk]) -> Oracle {
    let images: Vec<&Pages> = disks.iter().map(Disk::pristine).collect();
    let values = |sector: u64| {
        let places = reader.places(sector);
        places
            .iter()
            .map(|place| Value::of(reader.at(&images, *place)))
            .collect()
    };
    Oracle::ambiguous((0..reader.size).map(values))
}
