//! The world before the first event: disks and their contents.

use crate::disk::Disk;
use crate::driver::data_offset;
use crate::options::Options;
use crate::oracle::Oracle;
use crate::pages::{PAGE, Pages, SECTOR};
use crate::reader::Reader;
use crate::value::Value;
use raidlab_geometry::Level;
use raidlab_metadata::Version;
use raidlab_random::Stream;

/// Returns the sectors of a slot's disk: data, room for metadata and log, and a surplus over other
/// disks. Levels without redundancy use the surplus, too.
pub(super) fn disk_sectors(options: &Options, slot: usize) -> u64 {
    let more = match options.level {
        Level::Linear | Level::Raid0 => slot as u64 % 3 * options.chunk * 3,
        _ => 0,
    };
    let more = more + slot as u64 * options.growth;
    let beside = match options.seldom.room {
        Some(room) => room + room_for_metadata(options),
        None => 6144,
    };
    (options.used + more + beside).next_multiple_of(8)
}

/// Adds a disk for the file of an external bitmap, if there is one, and returns its number.
pub(super) fn add_bitmap_file(options: &Options, disks: &mut Vec<Disk>) -> Option<usize> {
    options.seldom.bitmap_in_file.then(|| {
        disks.push(Disk::new(BITMAP_FILE, options.write_through));
        disks.len() - 1
    })
}

/// Sectors of the file with the bitmap.
const BITMAP_FILE: u64 = 32;

/// Returns the sectors in front of the data, or behind them.
fn room_for_metadata(options: &Options) -> u64 {
    match (options.version, data_offset(options)) {
        (Version::V1_0, _) => END,
        (_, Some(offset)) => offset.0,
        (_, None) => DATA_OFFSET,
    }
}

/// Sectors that are enough for superblock, bitmap and logs at a disk's end.
const END: u64 = 1024;

/// The greatest data offset in sectors, wherever the superblocks lie.
const DATA_OFFSET: u64 = 2048;

/// Sets the contents of the disks before the array: different bytes in every sector of the data,
/// unless these count as in sync, and the same page everywhere else, unless it is never read.
pub(super) fn preset(options: &Options, disks: &mut [Disk], random: &mut Stream) {
    if options.assume_clean && options.seldom.room.is_none() {
        return;
    }
    let before = match (options.seldom.room, options.version) {
        (Some(_), Version::V1_0) => 0,
        (Some(_), _) => room_for_metadata(options),
        (None, _) => DATA_OFFSET,
    };
    for disk in disks {
        let mut page = [0; PAGE];
        scribble(&mut page, random);
        let mut bytes = vec![0; (before + options.used) as usize * SECTOR];
        if !options.assume_clean {
            scribble(&mut bytes, random);
        }
        disk.preset(&page, &bytes);
    }
}

fn scribble(bytes: &mut [u8], random: &mut Stream) {
    let (words, _) = bytes.as_chunks_mut::<8>();
    for word in words {
        *word = random.next_u64().to_le_bytes();
    }
}

/// Returns the oracle of a new array: any copy of each sector is permitted.
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
