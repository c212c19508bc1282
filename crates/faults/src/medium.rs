//! The kinds of simulated disks: the times at which their commands end, and the landing of writes
//! that are not durable at a power cut.
//!
//! - *Drawn*: times come from a range. At a power cut each write lands by itself: wholly, not
//!   at all, its first sectors, or any of them.
//! - *Platters*: times are those of a mechanical disk (crate `disk`) that orders, caches and
//!   destages. Writes land as above.
//! - *Flash*: times are those of a solid-state disk without protection against the loss of
//!   power, so small that it collects garbage while a script runs. It maps pages of 4 KiB and
//!   programs several of them at once, in the order in which they came, whichever commands they
//!   are from. A program that the power cut hits is lost as a whole, and programs on other dies
//!   are not: so pages land whole or not at all, and those of one program share
//!   their fate, the end of one write and the beginning of the next, a superblock and the data
//!   before it.
//!
//! A model determines times alone; the simulated disk itself decides which writes are volatile.

use raidlab_disk::{DiskParameters, Preset};
use raidlab_random::Stream;
use raidlab_units::Sectors;
use std::sync::LazyLock;

/// The size of the solid-state disk in sectors: 16 MiB.
const FLASH_SECTORS: Sectors = Sectors(1 << 15);

/// The shipped presets; `None` only if a file in the source tree is broken.
static PLATTERS: LazyLock<Option<DiskParameters>> = LazyLock::new(|| {
    let text = include_str!("../../../data/disks/wd4000fyyz.toml");
    parameters("wd4000fyyz.toml", text)
});
static FLASH: LazyLock<Option<DiskParameters>> = LazyLock::new(|| {
    let text = include_str!("../../../data/disks/970pro.toml");
    let large = parameters("970pro.toml", text)?;
    Some(DiskParameters {
        capacity: FLASH_SECTORS,
        ..large
    })
});

fn parameters(name: &str, text: &str) -> Option<DiskParameters> {
    let preset = Preset::parse(name, text).ok()?;
    let set = *preset.set_names().first()?;
    preset.parameters(set).ok().cloned()
}

/// The kind of a run's disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// Disks without a model: times are drawn from a range.
    Drawn,
    /// Mechanical disks, which tear writes as drawn ones do.
    Platters,
    /// Solid-state disks, which lose programs as a whole.
    Flash {
        /// Pages of 4 KiB that are programmed at once, at least 1.
        program_pages: u64,
    },
}

impl Medium {
    /// Draws the medium. Half of the disks that have a model become flash, and so does a tenth of
    /// the others: seeds from before there was flash otherwise stay as they were.
    pub(crate) fn draw(is_modelled: bool, random: &mut Stream) -> Self {
        let flash_percent = if is_modelled { 50 } else { 10 };
        if random.percent(flash_percent) {
            let program_pages = [1, 4, 12, 48][random.below(4) as usize];
            return Self::Flash { program_pages };
        }
        match is_modelled {
            true => Self::Platters,
            false => Self::Drawn,
        }
    }

    /// Returns the parameters of the disks' model; `None` where times are drawn.
    pub(crate) fn parameters(self) -> Option<&'static DiskParameters> {
        match self {
            Self::Drawn => None,
            Self::Platters => PLATTERS.as_ref(),
            Self::Flash { .. } => FLASH.as_ref(),
        }
    }
}
