//! The array that a seed makes: its level, its number of members, and its layout.

use super::{between, pick};
use raidlab_geometry::{Copies, FarSets, Layout, Level, ParityLayout, Shape, ZoneLayout};
use raidlab_random::Stream;
use raidlab_units::Sectors;

const LEVELS: [Level; 7] = [
    Level::Raid1,
    Level::Raid5,
    Level::Raid6,
    Level::Raid10,
    Level::Raid4,
    Level::Raid0,
    Level::Linear,
];

/// Draws a level; RAID 0 and linear are rare, as they have little that can break.
pub(super) fn draw_level(random: &mut Stream) -> Level {
    let common = if random.percent(92) { 5 } else { LEVELS.len() };
    pick(random, &LEVELS[..common])
}

/// Draws, in one run of ten, a chunk that `create` takes and hardly any array has, and the number
/// of chunks of each member.
pub(super) fn draw_odd_chunk(random: &mut Stream, level: Level) -> Option<(u64, u64)> {
    if !random.percent(10) {
        return None;
    }
    let chunk = match level {
        Level::Linear | Level::Raid0 => pick(random, &[10, 24, 100]),
        _ => pick(random, &[64, 256]),
    };
    let chunks = between(random, (128 / chunk).max(3), (512 / chunk).max(4));
    Some((chunk, chunks))
}

/// Draws, in some runs with RAID 10, any copies that do not collide, in place of the usual layout.
/// The options of the other runs are all drawn as before.
pub(super) fn draw_odd_layout(
    random: &mut Stream,
    members: usize,
    layout: Layout,
    (chunk, used): (u64, u64),
) -> Layout {
    if !random.percent(15) || !matches!(layout, Layout::Copies(_)) {
        return layout;
    }
    let number = |random: &mut Stream| between(random, 1, 4) as u8;
    let copies = Copies {
        near: number(random),
        far: number(random),
        offset: random.percent(50),
        far_sets: pick(random, &[FarSets::None, FarSets::Divided, FarSets::Exact]),
    };
    let drawn = Layout::Copies(copies);
    let (chunk, used) = (Sectors(chunk), Sectors(used));
    let shape = Shape::uniform(Level::Raid10, drawn, chunk, members, used);
    match shape.array_size() {
        Ok(_) => drawn,
        Err(_) => layout,
    }
}

/// Draws the number of slots.
pub(super) fn draw_members(random: &mut Stream, level: Level) -> usize {
    let (low, high) = match level {
        Level::Linear | Level::Raid0 => (1, 4),
        Level::Raid1 => (2, 4),
        Level::Raid4 | Level::Raid5 => (2, 6),
        Level::Raid6 => (4, 8),
        Level::Raid10 => (2, 6),
    };
    between(random, low, high) as usize
}

/// Draws a layout that the level has with this number of members.
pub(super) fn draw_layout(random: &mut Stream, level: Level, members: usize) -> Layout {
    use ParityLayout as P;
    const FIVE: [P; 6] = [
        P::LeftSymmetric,
        P::LeftAsymmetric,
        P::RightAsymmetric,
        P::RightSymmetric,
        P::ParityFirst,
        P::ParityLast,
    ];
    const SIX: [P; 8] = [
        P::RotatingZeroRestart,
        P::RotatingNRestart,
        P::RotatingNContinue,
        P::LeftAsymmetric6,
        P::RightAsymmetric6,
        P::LeftSymmetric6,
        P::RightSymmetric6,
        P::ParityFirst6,
    ];
    match level {
        Level::Linear | Level::Raid1 => Layout::None,
        Level::Raid0 => Layout::Zones(pick(random, &[ZoneLayout::Original, ZoneLayout::Alternate])),
        Level::Raid4 => Layout::Parity(P::ParityLast),
        Level::Raid5 => Layout::Parity(pick(random, &FIVE)),
        Level::Raid6 if random.percent(50) => Layout::Parity(pick(random, &SIX)),
        Level::Raid6 => Layout::Parity(pick(random, &FIVE)),
        Level::Raid10 => Layout::Copies(draw_copies(random, members)),
    }
}

fn draw_copies(random: &mut Stream, members: usize) -> Copies {
    let copies = |near, far, offset| Copies {
        near,
        far,
        offset,
        far_sets: FarSets::None,
    };
    let two = [copies(2, 1, false), copies(1, 2, false), copies(1, 2, true)];
    let three = [copies(3, 1, false), copies(1, 3, false), copies(1, 3, true)];
    match random.below(10) {
        0 | 1 if members >= 3 => pick(random, &three),
        // With other numbers of members md would put two copies on one.
        2 if members == 4 => copies(2, 2, random.percent(50)),
        _ => pick(random, &two),
    }
}
