//! The choice of a bitmap's chunk size and of the room for it: mdadm's rules.

use super::header::HEADER_BYTES;
use raidlab_units::{Bytes, Sectors};

/// The smallest chunk in bytes (a page of the kernel).
const SMALLEST_CHUNK: u64 = 4096;
/// The smallest chunk in bytes of an internal bitmap whose chunk is not given.
const DEFAULT_CHUNK: u64 = 64 << 20;
/// The most sectors used for a bitmap whose chunk is not given.
const MOST_ROOM: u64 = 128 * 2;

/// Returns the sectors that mdadm leaves for a bitmap on a member of this size (`choose_bm_space`
/// of super1.c): 0, 4 KiB, 64 KiB or 128 KiB.
#[must_use]
pub const fn bitmap_space(size: Sectors) -> Sectors {
    let Sectors(size) = size;
    Sectors(if size < 64 * 2 {
        0
    } else if size - 64 * 2 >= 200 * 1024 * 1024 * 2 {
        128 * 2
    } else if size - 4 * 2 > 8 * 1024 * 1024 * 2 {
        64 * 2
    } else {
        4 * 2
    })
}

/// Returns the chunk of an internal bitmap for `sync_size` in `room` sectors
/// (`add_internal_bitmap1`): as wished, or the smallest power of two that fits, but at least 64
/// MiB. `None` if there is no room or the wish does not fit.
#[must_use]
pub fn internal_chunk(sync_size: Sectors, room: Sectors, wished: Option<Bytes>) -> Option<Bytes> {
    let room = if wished.is_some() {
        room.0
    } else {
        room.0.min(MOST_ROOM)
    };
    if room <= 1 {
        return None;
    }
    let most_bits = (room * 512 - HEADER_BYTES as u64) * 8;
    let mut smallest = SMALLEST_CHUNK;
    let mut bits = sync_size.0 / (SMALLEST_CHUNK / 512) + 1;
    while bits > most_bits {
        smallest *= 2;
        bits = bits.div_ceil(2);
    }
    let chunk = wished.map_or(smallest.max(DEFAULT_CHUNK), |wished| wished.0);
    // The field of the chunk on disk has 32 bits.
    let sound = chunk.is_power_of_two() && chunk >= smallest && chunk < 1 << 32;
    sound.then_some(Bytes(chunk))
}

/// Returns the chunk of an external bitmap for `sync_size` when none is wished (`CreateBitmap` of
/// bitmap.c): the smallest power of two from 4 KiB on that needs at most 2^20 bits.
#[must_use]
pub fn external_chunk(sync_size: Sectors) -> Bytes {
    let mut chunk = SMALLEST_CHUNK;
    while chunk < 1 << 31 && sync_size.0 > chunk << (20 - 9) {
        chunk <<= 1;
    }
    Bytes(chunk)
}
