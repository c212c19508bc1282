//! mdadm's names for layouts, and the kernel's numbers.
//!
//! Linux 6.12: drivers/md/raid5.h (`ALGORITHM_*`), raid0.h (`r0layout`), and
//! for `raid10` near copies in the lowest byte, far copies in the next, bit 16
//! for the offset layout (raid10.c, `setup_geo`).

use super::MdLevel;

/// Two near copies, the default of `raid10`.
pub(super) const NEAR_2: u32 = 0x102;

const OFFSET: u32 = 1 << 16;

/// The kernel's number for mdadm's name of a layout; `None` where the level has
/// no such layout.
pub(super) fn layout_number(level: MdLevel, name: &str) -> Option<u32> {
    match level {
        MdLevel::Raid0 => match name {
            "original" => Some(1),
            "alternate" => Some(2),
            _ => None,
        },
        MdLevel::Raid5 => parity(name),
        MdLevel::Raid6 => parity(name).or(match name {
            "ddf-zero-restart" => Some(8),
            "ddf-N-restart" => Some(9),
            "ddf-N-continue" => Some(10),
            "left-asymmetric-6" => Some(16),
            "right-asymmetric-6" => Some(17),
            "left-symmetric-6" => Some(18),
            "right-symmetric-6" => Some(19),
            "parity-first-6" => Some(20),
            _ => None,
        }),
        MdLevel::Raid10 => {
            let copies = |text: &str| {
                text.parse::<u32>()
                    .ok()
                    .filter(|copies| (1..=255).contains(copies))
            };
            match name.split_at_checked(1)? {
                ("n", count) => copies(count).map(|near| near | 1 << 8),
                ("f", count) => copies(count).map(|far| 1 | far << 8),
                ("o", count) => copies(count).map(|far| 1 | far << 8 | OFFSET),
                _ => None,
            }
        }
        MdLevel::Linear | MdLevel::Raid1 | MdLevel::Raid4 => None,
    }
}

fn parity(name: &str) -> Option<u32> {
    match name {
        "left-asymmetric" => Some(0),
        "right-asymmetric" => Some(1),
        "left-symmetric" => Some(2),
        "right-symmetric" => Some(3),
        "parity-first" => Some(4),
        "parity-last" => Some(5),
        _ => None,
    }
}

/// The number of copies of each chunk in a `raid10` of a layout.
pub(super) fn copies(layout: u32) -> usize {
    (near(layout) * far(layout)) as usize
}

fn near(layout: u32) -> u32 {
    layout & 0xff
}

fn far(layout: u32) -> u32 {
    layout >> 8 & 0xff
}

/// Whether a `raid10` has lost every copy of some chunk.
///
/// A chunk's near copies lie on neighbouring slots, chunk after chunk, so they begin at multiples
/// of their number, counted around the array; its far copies lie further on by as many slots as
/// there are near copies (raid10.c, `__raid10_find_phys`).
pub(super) fn raid10_lost(layout: u32, lives: &[bool]) -> bool {
    let slots = lives.len();
    if slots == 0 {
        return true;
    }
    let (near, far) = (near(layout) as usize, far(layout) as usize);
    (0..slots).any(|chunk| {
        let copies = (0..far).flat_map(|j| (0..near).map(move |i| chunk * near + j * near + i));
        copies.into_iter().all(|slot| !lives[slot % slots])
    })
}

#[cfg(test)]
mod tests {
    use super::{MdLevel, NEAR_2, copies, layout_number, raid10_lost};

    #[test]
    fn names_are_the_kernels_numbers() {
        let cases = [
            (MdLevel::Raid5, "left-symmetric", Some(2)),
            (MdLevel::Raid6, "left-symmetric-6", Some(18)),
            (MdLevel::Raid5, "left-symmetric-6", None),
            (MdLevel::Raid10, "n2", Some(NEAR_2)),
            (MdLevel::Raid10, "f2", Some(0x201)),
            (MdLevel::Raid10, "o3", Some(0x1_0301)),
            (MdLevel::Raid10, "n", None),
            (MdLevel::Raid10, "", None),
            (MdLevel::Raid10, "\u{e9}2", None),
            (MdLevel::Raid1, "n2", None),
        ];
        for (level, name, number) in cases {
            assert_eq!(layout_number(level, name), number, "{level:?} {name}");
        }
        assert_eq!(copies(NEAR_2), 2);
        assert_eq!(copies(0x1_0301), 3);
    }

    #[test]
    fn a_raid10_dies_with_the_last_copy_of_a_chunk() {
        let far_2 = 0x201;
        let cases = [
            (NEAR_2, [true, false, true, true], false),
            (NEAR_2, [true, false, false, true], false),
            (NEAR_2, [false, false, true, true], true),
            (far_2, [true, false, false, true], true),
            (far_2, [true, false, true, false], false),
            (far_2, [false, true, true, false], true),
        ];
        for (layout, lives, lost) in cases {
            assert_eq!(raid10_lost(layout, &lives), lost, "{layout:x} {lives:?}");
        }
        // Near copies of three members wrap: each pair of neighbours matters.
        assert!(raid10_lost(NEAR_2, &[false, true, false]));
    }
}
