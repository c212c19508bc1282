//! Where a suite's disks lie: an entry of `disks` is a preset's name or path, or a
//! table that also says which part of which drive a member is, and on which
//! channel that drive hangs.

use crate::document::{Document, FileError};
use crate::settings::Size;
use raidlab_units::Bytes;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::fmt;
use toml::Spanned;

/// A page: what regions begin and end at.
const UNIT: u64 = 4096;

/// Which part of which modelled drive a member is. Benches with real disks do not
/// look at it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Region {
    /// Members that name the same drive share its arm; empty: a drive of its own.
    pub drive: String,
    /// Drives that name the same channel share a cable that carries one command at
    /// a time; empty: a way of its own.
    pub channel: String,
    /// A bus that all data of its drives cross.
    pub bus: Option<Bus>,
    /// Where on the drive the member begins.
    pub start: Bytes,
    /// How much of it it has; `None`: all from there on.
    pub size: Option<Bytes>,
    /// Sectors of 512 bytes by which it begins further on: 63 behind an old partition table.
    pub first_sector: u64,
    /// What a solid-state drive went through before: a name that the disk model knows;
    /// empty: as the model begins by itself.
    pub state: String,
}

/// A bus that drives share. Members that name the same one say the same of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// The name that entries of `disks` call it by.
    pub name: String,
    /// What it carries in all, or in each direction if it is not half duplex; above 0.
    #[serde(deserialize_with = "rate")]
    pub bytes_per_second: Bytes,
    /// Whether both directions share that rate; else each of them has it.
    #[serde(default)]
    pub half_duplex: bool,
    /// What a command takes of the bus beside its data, microseconds.
    #[serde(default)]
    pub command_us: u32,
}

/// A size above 0.
fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let size = Size::deserialize(deserializer)?.0;
    if size.0 == 0 {
        return Err(D::Error::custom("a bus must carry something"));
    }
    Ok(size)
}

impl Region {
    /// In words; empty for a whole drive with a way of its own.
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

/// Read by hand for the same reason as subjects: an untagged enum forgets where a
/// mistake is.
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

/// What two members of one drive cannot both be, and what would help.
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
