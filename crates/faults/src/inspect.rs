//! The claims of the members' superblocks and bitmaps, read from their bytes by a second, small
//! decoder of md's format (version 1), and the test whether they are true.
//!
//! Two promises are checked at every crash point. If the newest superblock says that the array is
//! in sync (`resync_offset` all ones), then copies and parity agree everywhere among the members it
//! calls current. If it says otherwise and there is a bitmap, they agree wherever no current
//! member's bit is set.
//!
//! Offsets of fields: struct `mdp_superblock_1` (include/uapi/linux/raid/md_p.h)
//! and `bitmap_super_s` (drivers/md/md-bitmap.h).

use crate::pages::{Pages, SECTOR};
use crate::reader::{Reader, slot_of};
use raidlab_geometry::SlotSet;
use raidlab_metadata::Version;

const MAGIC: u32 = 0xa92b_4efc;
const BITMAP_MAGIC: u32 = 0x6d74_6962;
const FEATURE_BITMAP: u32 = 1;
const FEATURE_RECOVERY: u32 = 2;
const FEATURE_BAD_BLOCKS: u32 = 8;

/// The most sectors of a superblock, its list of roles included.
pub const SUPERBLOCK_SECTORS: u64 = 8;

/// The fields of a member's superblock on which promises depend.
#[derive(Debug, Clone)]
struct Superblock {
    sector: u64,
    features: u32,
    bitmap_offset: i32,
    used: u64,
    events: u64,
    resync_offset: u64,
    roles: Vec<u16>,
    device: u32,
}

/// The claims of all members together.
#[derive(Debug)]
pub struct Said {
    /// The slots that the newest superblock counts as current.
    current: SlotSet,
    /// Whether the newest superblock says that copies and parity agree everywhere.
    clean: bool,
    /// Whether every current member's superblock says that all is in sync.
    clean_by_all: bool,
    bitmap: Option<Bits>,
    /// The used sectors of each member, by the newest superblock.
    used: u64,
}

/// The union of the current members' bitmaps.
#[derive(Debug)]
struct Bits {
    events: u64,
    /// Sectors of the array or its members that the bits cover.
    sectors: u64,
    chunk: u64,
    bits: Vec<u8>,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |word| u32::from_le_bytes(*word))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |long| u64::from_le_bytes(*long))
}

impl Superblock {
    fn read(disk: &Pages, version: Version) -> Option<Self> {
        let sector = superblock_sector(disk.sectors(), version);
        let mut bytes = vec![0; SUPERBLOCK_SECTORS as usize * SECTOR];
        disk.read(sector, &mut bytes);
        let roles = word(&bytes, 220) as usize;
        if word(&bytes, 0) != MAGIC || roles > 1920 || checksum(&bytes[..256 + 2 * roles]) {
            return None;
        }
        let (pairs, _) = bytes[256..256 + 2 * roles].as_chunks::<2>();
        Some(Self {
            sector,
            features: word(&bytes, 8),
            bitmap_offset: word(&bytes, 96) as i32,
            used: long(&bytes, 80),
            events: long(&bytes, 200),
            resync_offset: long(&bytes, 208),
            roles: pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect(),
            device: word(&bytes, 160),
        })
    }

    fn role(&self, device: u32) -> Option<u16> {
        self.roles
            .get(device as usize)
            .copied()
            .filter(|role| *role < 0xff00)
    }
}

/// Whether the checksum is wrong.
fn checksum(bytes: &[u8]) -> bool {
    let (words, _) = bytes.as_chunks::<4>();
    let sum: u64 = words
        .iter()
        .map(|word| u64::from(u32::from_le_bytes(*word)))
        .sum();
    let tail = bytes.len() % 4;
    let odd = if tail == 2 {
        u64::from(u16::from_le_bytes([
            bytes[bytes.len() - 2],
            bytes[bytes.len() - 1],
        ]))
    } else {
        0
    };
    let found = word(bytes, 216);
    let sum = sum + odd - u64::from(found);
    ((sum & 0xffff_ffff) as u32).wrapping_add((sum >> 32) as u32) != found
}

/// Returns the sector of the superblock on a disk of `sectors` sectors.
#[must_use]
pub const fn superblock_sector(sectors: u64, version: Version) -> u64 {
    match version {
        Version::V1_0 => sectors.saturating_sub(16) & !7,
        Version::V1_1 => 0,
        _ => 8,
    }
}

/// Returns the event count of a disk's superblock, if it has one.
#[must_use]
pub fn events(disk: &Pages, version: Version) -> Option<u64> {
    Superblock::read(disk, version).map(|superblock| superblock.events)
}

/// Whether a disk's superblock says that there are bad blocks on it.
#[must_use]
pub fn has_bad_blocks(disk: &Pages, version: Version) -> bool {
    let own = Superblock::read(disk, version);
    own.is_some_and(|own| own.features & FEATURE_BAD_BLOCKS != 0)
}

/// Whether a disk's superblock counts another disk, under the number that it now has, as in
/// service. A disk's own number always means that disk, even if the other side of a split has given
/// the number to another one. A disk that is not in service by its own superblock is not known
/// either: a spare may have got the number of a former member.
#[must_use]
pub fn knows(disk: &Pages, other: &Pages, version: Version) -> bool {
    let other = Superblock::read(other, version);
    let own = Superblock::read(disk, version);
    let is_counted = |own: &Superblock, number| number != own.device && own.role(number).is_some();
    let serves = |other: &Superblock| other.role(other.device).is_some();
    other
        .filter(serves)
        .is_some_and(|other| own.is_some_and(|own| is_counted(&own, other.device)))
}

impl Said {
    /// Reads the disks in their slots; `None` where there is no disk. Returns `None` if there is no
    /// superblock at all. `file`: the file of an external bitmap; one that is older than the newest
    /// superblock is ignored.
    #[must_use]
    pub fn read(version: Version, disks: &[Option<&Pages>], file: Option<&Pages>) -> Option<Self> {
        let read = |disk: &Option<&Pages>| disk.and_then(|disk| Superblock::read(disk, version));
        let found: Vec<Option<Superblock>> = disks.iter().map(read).collect();
        let newest = found
            .iter()
            .flatten()
            .max_by_key(|found| found.events)?
            .clone();
        let is_current = |slot: &usize| {
            found[*slot].as_ref().is_some_and(|found| {
                found.events + 1 >= newest.events
                    && found.role(found.device) == Some(*slot as u16)
                    && newest.role(found.device) == Some(*slot as u16)
                    && found.features & FEATURE_RECOVERY == 0
            })
        };
        let current: Vec<usize> = (0..disks.len()).filter(is_current).collect();
        let mut bitmap = file
            .and_then(|file| Bits::read(file, 0, file.sectors()))
            .filter(|file| file.events >= newest.events);
        for slot in &current {
            let (Some(superblock), Some(disk)) = (&found[*slot], disks[*slot]) else {
                continue;
            };
            if superblock.features & FEATURE_BITMAP != 0 {
                let place = superblock
                    .sector
                    .wrapping_add_signed(superblock.bitmap_offset.into());
                let own = Bits::read(disk, place, 8)?;
                bitmap = Some(own.with(bitmap));
            }
        }
        let mut asked = current.iter().filter_map(|slot| found[*slot].as_ref());
        let clean_by_all = asked.all(|found| found.resync_offset == u64::MAX);
        Some(Self {
            clean_by_all,
            current: current.into_iter().map(slot_of).collect(),
            clean: newest.resync_offset == u64::MAX,
            bitmap,
            used: newest.used,
        })
    }

    /// Returns the slots whose members count as current.
    #[must_use]
    pub const fn current(&self) -> SlotSet {
        self.current
    }

    /// Whether the superblock of every current member calls the array in sync.
    #[must_use]
    pub const fn is_clean_by_all(&self) -> bool {
        self.clean_by_all
    }

    /// Checks the claims against the bytes.
    ///
    /// # Errors
    /// The first claim that is not true.
    pub fn verify(&self, reader: &Reader, disks: &[Option<&Pages>]) -> Result<(), String> {
        let any = disks.iter().flatten().next();
        let Some(any) = any else {
            return Ok(());
        };
        let images: Vec<&Pages> = disks.iter().map(|disk| disk.unwrap_or(any)).collect();
        let parity = reader.level.parity_count() > 0;
        // A grown array counts with its old size until a superblock has the new one.
        let is_grown = self.used < reader.used;
        let size = if is_grown {
            reader.size_before(self.used)
        } else {
            reader.size
        };
        let positions = if parity {
            reader.used.min(self.used)
        } else {
            size
        };
        // A bitmap of another size is the remains of an interrupted growth, and is ignored.
        let space = if parity { self.used } else { size };
        let bitmap = self.bitmap.as_ref();
        let bitmap = bitmap.filter(|bits| bits.sectors == space);
        if !self.clean && bitmap.is_none() {
            return Ok(());
        }
        for sector in 0..positions {
            let marked = bitmap.is_some_and(|bits| bits.has(sector));
            if marked && !self.clean {
                continue;
            }
            let agrees = if parity {
                reader.row_agrees(&images, self.current, sector)
            } else {
                reader.copies_agree(&images, self.current, sector)
            };
            agrees.map_err(|found| {
                let why = if self.clean { "clean" } else { "no bit is set" };
                format!(
                    "at {}: {}, though the members say {why}",
                    found.sector, found.what
                )
            })?;
        }
        Ok(())
    }
}

impl Bits {
    /// Reads a bitmap of this many sectors: no array here has a longer one on its members.
    fn read(disk: &Pages, place: u64, sectors: u64) -> Option<Self> {
        let mut bytes = vec![0; sectors as usize * SECTOR];
        disk.read(place, &mut bytes);
        (word(&bytes, 0) == BITMAP_MAGIC).then(|| Self {
            events: long(&bytes, 24),
            sectors: long(&bytes, 40),
            chunk: u64::from(word(&bytes, 52)) / SECTOR as u64,
            bits: bytes[256..].to_vec(),
        })
    }

    fn with(mut self, other: Option<Self>) -> Self {
        for (mine, its) in self
            .bits
            .iter_mut()
            .zip(other.map(|other| other.bits).unwrap_or_default())
        {
            *mine |= its;
        }
        self
    }

    /// Whether the bit of a position is set. Positions are array sectors for RAID 10, sectors of
    /// the members for all other levels.
    fn has(&self, sector: u64) -> bool {
        let bit = (sector / self.chunk.max(1)) as usize;
        self.bits
            .get(bit / 8)
            .is_none_or(|byte| byte & (1 << (bit % 8)) != 0)
    }
}
