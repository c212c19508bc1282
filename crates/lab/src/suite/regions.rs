//! The regions of a suite's disks: an entry of `disks` is a preset's name or path, or a table that
//! also has the part of a drive that a member is, and that drive's channel.

use crate::document::{Document, FileError};
use crate::settings::Size;
use raidlab_units::Bytes;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::fmt;
use toml::Spanned;

/// The size of a page, of which the bounds of regions are multiples.
const UNIT: u64 = 4096;

/// The part of a modelled drive that a member is. Benches with real disks ignore it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Region {
    /// The name of the drive: members with the same one share its arm; empty for a drive
    /// of its own.
    pub drive: String,
    /// The name of the channel: drives with the same one share a cable that carries one command at
    /// a time; empty for a channel of its own.
    pub channel: String,
    /// The bus that all data of the drive cross, if any.
    pub bus: Option<Bus>,
    /// The start of the member on the drive.
    pub start: Bytes,
    /// The size of the member; `None` for the rest of the drive.
    pub size: Option<Bytes>,
    /// The number of 512-byte sectors by which the start is shifted: 63 after an
    /// old partition table.
    pub first_sector: u64,
    /// The earlier use of a solid-state drive: a state that the disk model knows; empty for
    /// the model's default.
    pub state: String,
}

/// A bus that drives share. Members that name the same bus must describe it alike.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// The name of the bus in entries of `disks`.
    pub name: String,
    /// The rate of the bus, in total if half duplex, else in each direction; above 0.
    #[serde(deserialize_with = "rate")]
    pub bytes_per_second: Bytes,
    /// Whether both directions share that rate; otherwise each of them has it.
    #[serde(default)]
    pub half_duplex: bool,
    /// The time that a command takes of the bus beside its data, microseconds.
    #[serde(default)]
    pub command_us: u32,
}

/// Reads a size above 0.
fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let size = Size::deserialize(deserializer)?.0;
    if size.0 == 0 {
        return Err(D::Error::custom("a bus must carry something"));
    }
    Ok(size)
}

impl Region {
    /// The region in words; empty for a whole drive on a channel of its own.
    pub(crate) fn in_words(&self) -> String {
        let mut words = Vec::new();
        match self.size {
            Some(size) => words.push(format!("{size} at {}", self.start)),
            None if self.start.0 > 0 => words.push(format!("from {}", self.start)),
            None => {}
        }
        if !self.drive.is_empty() {
            words.push(format!("drive {}", self.drive));
        }
        if !self.channel.is_empty() {
            words.push(format!("channel {}", self.channel));
        }
        if let Some(bus) = &self.bus {
            words.push(format!("bus {} of {}/s", bus.name, bus.bytes_per_second));
        }
        if self.first_sector > 0 {
            words.push(format!("from sector {}", self.first_sector));
        }
        if !self.state.is_empty() {
            words.push(self.state.clone());
        }
        words.join(", ")
    }
}

/// An entry of `disks` as written.
pub(super) enum RawDisk {
    Plain(String),
    Table(RawRegion),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRegion {
    disk: String,
    #[serde(default)]
    drive: String,
    #[serde(default)]
    channel: String,
    bus: Option<Bus>,
    start: Option<Spanned<Size>>,
    size: Option<Spanned<Size>>,
    #[serde(default)]
    first_sector: u32,
    #[serde(default)]
    state: String,
}

/// Written by hand for the same reason as subjects: an untagged enum loses the place of an error.
impl<'de> Deserialize<'de> for RawDisk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = RawDisk;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a disk preset's name, or a table with `disk`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(RawDisk::Plain(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let table = RawRegion::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RawDisk::Table(table))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// The presets and the regions, member by member.
///
/// # Errors
/// When regions of a drive contradict each other.
pub(super) fn read_disks(
    document: &Document,
    entries: &[Spanned<RawDisk>],
) -> Result<(Vec<String>, Vec<Region>), FileError> {
    let mut disks: Vec<String> = Vec::new();
    let mut regions: Vec<Region> = Vec::new();
    for entry in entries {
        let (disk, region) = match entry.get_ref() {
            RawDisk::Plain(name) => (name.clone(), Region::default()),
            RawDisk::Table(raw) => (raw.disk.clone(), read_region(document, raw)?),
        };
        if region.bus.is_some() && !region.channel.is_empty() {
            let remedy = "leave out one of `bus` and `channel`";
            return Err(document.invalid(entry.span(), "a drive has one way", remedy));
        }
        for (other, before) in disks.iter().zip(&regions) {
            if let (Some(one), Some(two)) = (&before.bus, &region.bus)
                && one.name == two.name
                && one != two
            {
                let what = format!("bus `{}` is told in two ways", one.name);
                let remedy = "give its rate and all else alike";
                return Err(document.invalid(entry.span(), &what, remedy));
            }
            if region.drive.is_empty() || before.drive != region.drive {
                continue;
            }
            if let Some((what, remedy)) = contradiction((other, before), (&disk, &region)) {
                let what = format!("drive `{}` {what}", region.drive);
                return Err(document.invalid(entry.span(), &what, remedy));
            }
        }
        disks.push(disk);
        regions.push(region);
    }
    Ok((disks, regions))
}

fn read_region(document: &Document, raw: &RawRegion) -> Result<Region, FileError> {
    for size in [&raw.start, &raw.size].into_iter().flatten() {
        if !size.get_ref().0.0.is_multiple_of(UNIT) {
            let remedy = "write a multiple of 4k";
            return Err(document.invalid(size.span(), "regions lie on whole pages", remedy));
        }
    }
    if let Some(size) = raw.size.as_ref().filter(|size| size.get_ref().0.0 == 0) {
        let remedy = "write 8k or more, or leave it out for the whole drive";
        return Err(document.invalid(size.span(), "nothing is left of the drive", remedy));
    }
    let value = |size: &Spanned<Size>| size.get_ref().0;
    Ok(Region {
        drive: raw.drive.clone(),
        channel: raw.channel.clone(),
        bus: raw.bus.clone(),
        start: raw.start.as_ref().map_or(Bytes(0), value),
        size: raw.size.as_ref().map(value),
        first_sector: u64::from(raw.first_sector),
        state: raw.state.clone(),
    })
}

/// The contradiction between two members of one drive, and the remedy.
fn contradiction(
    (one, first): (&String, &Region),
    (other, second): (&String, &Region),
) -> Option<(&'static str, &'static str)> {
    if one != other {
        return Some((
            "is two different disks",
            "name one preset for all its parts",
        ));
    }
    if first.state != second.state {
        return Some(("is in two states", "name one state for all its parts"));
    }
    if first.bus != second.bus {
        return Some(("hangs on two buses", "name one bus for all its parts"));
    }
    if first.channel != second.channel {
        return Some((
            "hangs on two channels",
            "name one channel for all its parts",
        ));
    }
    let (Some(first_size), Some(second_size)) = (first.size, second.size) else {
        return Some(("has a part without an end", "give every part its `size`"));
    };
    let start = |region: &Region| region.start.0.saturating_add(region.first_sector * 512);
    let ends = |region: &Region, size: Bytes| start(region).saturating_add(size.0);
    let apart =
        ends(first, first_size) <= start(second) || ends(second, second_size) <= start(first);
    (!apart).then_some((
        "has parts that overlap",
        "let one begin where the other ends",
    ))
}
