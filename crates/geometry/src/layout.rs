//! Layouts as md's words (the superblock's `layout`) and as mdadm's names.
//!
//! * Linear, RAID 1: 0, no name.
//! * RAID 0: 1 and 2, `original` and `alternate`; 0 (`dangerous`) where none
//!   is recorded.
//! * RAID 4: the word has no meaning; mdadm writes 0.
//! * RAID 5, 6: the numbers of drivers/md/raid5.h, the names of mdadm's maps.c
//!   and their short forms.
//! * RAID 10: near copies in bits 0 to 7, far copies in bits 8 to 15, bit 16 for
//!   offset, bits 17 and 18 for far sets; `n2`, `f3`, `o2`. For words that mdadm
//!   has no name for: `n2f2`, `n2o2`, and the endings `-sets` (bit 18) and
//!   `-divided-sets` (bit 17).

use crate::level::{Copies, FarSets, Layout, Level, ParityLayout, UnknownLayout, ZoneLayout};
use std::fmt;

const OFFSET_BIT: u32 = 1 << 16;

/// Layouts with their codes and names, mdadm's own name first. The last column: the name means this
/// layout on RAID 6 only.
const PARITY: [(ParityLayout, u32, &str, bool); 14] = [
    (ParityLayout::LeftAsymmetric, 0, "left-asymmetric", false),
    (ParityLayout::RightAsymmetric, 1, "right-asymmetric", false),
    (ParityLayout::LeftSymmetric, 2, "left-symmetric", false),
    (ParityLayout::RightSymmetric, 3, "right-symmetric", false),
    (ParityLayout::ParityFirst, 4, "parity-first", false),
    (ParityLayout::ParityLast, 5, "parity-last", false),
    (
        ParityLayout::RotatingZeroRestart,
        8,
        "ddf-zero-restart",
        true,
    ),
    (ParityLayout::RotatingNRestart, 9, "ddf-N-restart", true),
    (ParityLayout::RotatingNContinue, 10, "ddf-N-continue", true),
    (ParityLayout::LeftAsymmetric6, 16, "left-asymmetric-6", true),
    (
        ParityLayout::RightAsymmetric6,
        17,
        "right-asymmetric-6",
        true,
    ),
    (ParityLayout::LeftSymmetric6, 18, "left-symmetric-6", true),
    (ParityLayout::RightSymmetric6, 19, "right-symmetric-6", true),
    (ParityLayout::ParityFirst6, 20, "parity-first-6", true),
];

/// Further names: for RAID 5 and 6, and the meaning of DDF's names on RAID 5.
const PARITY_ALIASES: [(&str, ParityLayout); 8] = [
    ("default", ParityLayout::LeftSymmetric),
    ("la", ParityLayout::LeftAsymmetric),
    ("ra", ParityLayout::RightAsymmetric),
    ("ls", ParityLayout::LeftSymmetric),
    ("rs", ParityLayout::RightSymmetric),
    ("ddf-zero-restart", ParityLayout::RightAsymmetric),
    ("ddf-N-restart", ParityLayout::LeftAsymmetric),
    ("ddf-N-continue", ParityLayout::LeftSymmetric),
];

impl ParityLayout {
    /// Returns the layout's number in md's superblock, as drivers/md/raid5.h defines it: 0 to
    /// 20 with gaps.
    #[must_use]
    pub fn code(self) -> u32 {
        self.entry().1
    }

    /// Returns the layout's name in mdadm, such as `left-symmetric`, as `mdadm --layout` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().2
    }

    /// Whether only RAID 6 has this layout.
    #[must_use]
    pub fn is_raid6_only(self) -> bool {
        self.entry().3
    }

    fn entry(self) -> &'static (Self, u32, &'static str, bool) {
        let entry = PARITY.iter().find(|(layout, ..)| *layout == self);
        entry.expect("the table has every layout")
    }

    fn is_of(self, level: Level) -> bool {
        match level {
            Level::Raid4 => self == Self::ParityLast,
            Level::Raid5 => !self.is_raid6_only(),
            Level::Raid6 => true,
            _ => false,
        }
    }
}

impl Copies {
    /// A layout of near copies only.
    #[must_use]
    pub const fn near(copies: u8) -> Self {
        Self {
            near: copies,
            far: 1,
            offset: false,
            far_sets: FarSets::None,
        }
    }

    /// A layout with this many far copies, and a single near copy.
    #[must_use]
    pub const fn far(copies: u8) -> Self {
        Self {
            near: 1,
            far: copies,
            offset: false,
            far_sets: FarSets::None,
        }
    }

    /// A layout with this many far copies in the offset layout: in the next rows.
    #[must_use]
    pub const fn offset(copies: u8) -> Self {
        Self {
            near: 1,
            far: copies,
            offset: true,
            far_sets: FarSets::None,
        }
    }

    /// Returns the number of copies of each sector.
    #[must_use]
    pub const fn count(self) -> usize {
        self.near as usize * self.far as usize
    }

    fn to_md(self) -> u32 {
        let sets = match self.far_sets {
            FarSets::None => 0,
            FarSets::Divided => 1,
            FarSets::Exact => 2,
        };
        let offset = if self.offset { OFFSET_BIT } else { 0 };
        u32::from(self.near) | u32::from(self.far) << 8 | offset | sets << 17
    }

    fn from_md(word: u32) -> Option<Self> {
        let [near, far, ..] = word.to_le_bytes();
        let far_sets = match word >> 17 {
            0 => FarSets::None,
            1 => FarSets::Divided,
            2 => FarSets::Exact,
            _ => return None,
        };
        (near > 0 && far > 0).then_some(Self {
            near,
            far,
            offset: word & OFFSET_BIT != 0,
            far_sets,
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let (text, far_sets) = if let Some(rest) = text.strip_suffix("-divided-sets") {
            (rest, FarSets::Divided)
        } else if let Some(rest) = text.strip_suffix("-sets") {
            (rest, FarSets::Exact)
        } else {
            (text, FarSets::None)
        };
        let (mut near, mut far, mut offset) = (None, None, false);
        let mut rest = text;
        while !rest.is_empty() {
            let kind = rest.as_bytes()[0];
            let digits = rest.get(1..)?.bytes().take_while(u8::is_ascii_digit);
            let digits = digits.count();
            let number: u8 = rest.get(1..=digits)?.parse().ok()?;
            let place = match kind {
                b'n' if far.is_none() => &mut near,
                b'f' | b'o' => &mut far,
                _ => return None,
            };
            offset |= kind == b'o';
            if number == 0 || place.replace(number).is_some() {
                return None;
            }
            rest = &rest[1 + digits..];
        }
        (near.is_some() || far.is_some()).then_some(Self {
            near: near.unwrap_or(1),
            far: far.unwrap_or(1),
            offset,
            far_sets,
        })
    }
}

impl fmt::Display for Copies {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.near > 1 || (self.far == 1 && !self.offset) {
            write!(formatter, "n{}", self.near)?;
        }
        if self.far > 1 || self.offset {
            let kind = if self.offset { 'o' } else { 'f' };
            write!(formatter, "{kind}{}", self.far)?;
        }
        formatter.write_str(match self.far_sets {
            FarSets::None => "",
            FarSets::Divided => "-divided-sets",
            FarSets::Exact => "-sets",
        })
    }
}

impl Layout {
    /// The layout that mdadm chooses when none is given.
    #[must_use]
    pub const fn default_of(level: Level) -> Self {
        match level {
            Level::Linear | Level::Raid1 => Self::None,
            Level::Raid0 => Self::Zones(ZoneLayout::Original),
            Level::Raid4 => Self::Parity(ParityLayout::ParityLast),
            Level::Raid5 | Level::Raid6 => Self::Parity(ParityLayout::LeftSymmetric),
            Level::Raid10 => Self::Copies(Copies::near(2)),
        }
    }

    /// Returns the layout of a superblock's word.
    ///
    /// # Errors
    /// When md does not know the word at this level.
    pub fn from_md(level: Level, word: u32) -> Result<Self, UnknownLayout> {
        let layout = match (level, word) {
            (Level::Linear | Level::Raid1, _) | (Level::Raid0, 0) => Some(Self::None),
            (Level::Raid0, 1) => Some(Self::Zones(ZoneLayout::Original)),
            (Level::Raid0, 2) => Some(Self::Zones(ZoneLayout::Alternate)),
            (Level::Raid0, _) => None,
            (Level::Raid4, _) => Some(Self::default_of(level)),
            (Level::Raid5 | Level::Raid6, _) => PARITY
                .iter()
                .find(|(layout, code, ..)| *code == word && layout.is_of(level))
                .map(|(layout, ..)| Self::Parity(*layout)),
            (Level::Raid10, _) => Copies::from_md(word).map(Self::Copies),
        };
        layout.ok_or_else(|| UnknownLayout {
            level,
            layout: format!("{word:#x}"),
        })
    }

    /// Returns the word for a superblock of this level.
    #[must_use]
    pub fn to_md(self, level: Level) -> u32 {
        match self {
            Self::Zones(ZoneLayout::Original) => 1,
            Self::Zones(ZoneLayout::Alternate) => 2,
            Self::Parity(layout) if level != Level::Raid4 => layout.code(),
            Self::None | Self::Parity(_) => 0,
            Self::Copies(copies) => copies.to_md(),
        }
    }

    /// Returns the layout of a name that mdadm uses.
    ///
    /// # Errors
    /// When the level has no such layout.
    pub fn parse(level: Level, name: &str) -> Result<Self, UnknownLayout> {
        let layout = match level {
            Level::Linear | Level::Raid1 => None,
            Level::Raid0 => match name {
                "original" | "1" => Some(Self::Zones(ZoneLayout::Original)),
                "alternate" | "2" => Some(Self::Zones(ZoneLayout::Alternate)),
                "dangerous" | "0" => Some(Self::None),
                _ => None,
            },
            Level::Raid4 | Level::Raid5 | Level::Raid6 => {
                parse_parity(level, name).map(Self::Parity)
            }
            Level::Raid10 => Copies::parse(name).map(Self::Copies),
        };
        layout.ok_or_else(|| UnknownLayout {
            level,
            layout: name.to_owned(),
        })
    }
}

fn parse_parity(level: Level, name: &str) -> Option<ParityLayout> {
    let own = PARITY.iter().map(|(layout, _, name, _)| (*name, *layout));
    own.chain(PARITY_ALIASES)
        .find(|(known, layout)| *known == name && layout.is_of(level))
        .map(|(_, layout)| layout)
}

impl fmt::Display for Layout {
    /// Writes mdadm's name; `-` for [`Layout::None`].
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.pad("-"),
            Self::Zones(ZoneLayout::Original) => formatter.pad("original"),
            Self::Zones(ZoneLayout::Alternate) => formatter.pad("alternate"),
            Self::Parity(layout) => formatter.pad(layout.name()),
            Self::Copies(copies) => formatter.pad(&copies.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PARITY;
    use crate::level::{Copies, FarSets, Layout, Level, ParityLayout, ZoneLayout};

    const LEVELS: [Level; 7] = [
        Level::Linear,
        Level::Raid0,
        Level::Raid1,
        Level::Raid4,
        Level::Raid5,
        Level::Raid6,
        Level::Raid10,
    ];

    #[test]
    fn words_and_names_come_back_as_they_were() {
        let mut seen = 0;
        for level in LEVELS {
            for word in (0..0x400)
                .chain(0x1_0100..0x1_0400)
                .chain(0x2_0101..0x4_0404)
            {
                let Ok(layout) = Layout::from_md(level, word) else {
                    continue;
                };
                seen += 1;
                let again = Layout::from_md(level, layout.to_md(level));
                assert_eq!(again, Ok(layout), "{level} {word:#x}");
                if !matches!(level, Level::Linear | Level::Raid1 | Level::Raid4) {
                    assert_eq!(layout.to_md(level), word, "{level}");
                }
                if layout != Layout::None {
                    let named = Layout::parse(level, &layout.to_string());
                    assert_eq!(named, Ok(layout), "{level} {layout}");
                }
            }
        }
        assert!(seen > 1000, "{seen}");
    }

    #[test]
    fn mdadms_names() {
        let parity = |layout| Ok(Layout::Parity(layout));
        let copies = |copies| Ok(Layout::Copies(copies));
        let cases = [
            (Level::Raid5, "ls", parity(ParityLayout::LeftSymmetric)),
            (Level::Raid6, "default", parity(ParityLayout::LeftSymmetric)),
            (
                Level::Raid5,
                "ddf-N-restart",
                parity(ParityLayout::LeftAsymmetric),
            ),
            (
                Level::Raid6,
                "ddf-N-restart",
                parity(ParityLayout::RotatingNRestart),
            ),
            (
                Level::Raid4,
                "parity-last",
                parity(ParityLayout::ParityLast),
            ),
            (
                Level::Raid0,
                "alternate",
                Ok(Layout::Zones(ZoneLayout::Alternate)),
            ),
            (Level::Raid0, "dangerous", Ok(Layout::None)),
            (Level::Raid10, "n3", copies(Copies::near(3))),
            (Level::Raid10, "f2", copies(Copies::far(2))),
            (Level::Raid10, "o2", copies(Copies::offset(2))),
        ];
        for (level, name, layout) in cases {
            assert_eq!(Layout::parse(level, name), layout, "{level} {name}");
        }
        for (level, name) in [
            (Level::Raid5, "left-symmetric-6"),
            (Level::Raid4, "ls"),
            (Level::Raid1, "n2"),
            (Level::Raid10, ""),
            (Level::Raid10, "n"),
            (Level::Raid10, "n0"),
            (Level::Raid10, "n256"),
            (Level::Raid10, "f2n2"),
            (Level::Raid10, "f2o2"),
            (Level::Raid10, "n\u{e9}2"),
        ] {
            assert!(Layout::parse(level, name).is_err(), "{level} {name}");
        }
    }

    #[test]
    fn mds_words() {
        let word = |level| Layout::default_of(level).to_md(level);
        assert_eq!(LEVELS.map(word), [0, 1, 0, 0, 2, 2, 0x102]);
        assert_eq!(Layout::Copies(Copies::far(2)).to_md(Level::Raid10), 0x201);
        let offset = Layout::Copies(Copies::offset(2));
        assert_eq!(offset.to_md(Level::Raid10), 0x1_0201);
        let exact = Copies {
            far_sets: FarSets::Exact,
            ..Copies::far(2)
        };
        assert_eq!(Layout::Copies(exact).to_md(Level::Raid10), 0x4_0201);
        for (level, word) in [
            (Level::Raid0, 3),
            (Level::Raid5, 6),
            (Level::Raid5, 8),
            (Level::Raid6, 7),
            (Level::Raid10, 0x100),
            (Level::Raid10, 0x002),
            (Level::Raid10, 0x6_0102),
            (Level::Raid10, 0x8_0102),
        ] {
            assert!(Layout::from_md(level, word).is_err(), "{level} {word:#x}");
        }
    }

    #[test]
    fn the_table_of_parity_layouts_is_in_the_order_of_its_codes() {
        assert!(PARITY.is_sorted_by_key(|(layout, code, ..)| (*code, *layout)));
    }
}
