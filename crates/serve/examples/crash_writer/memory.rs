//! The permitted contents of every sector of a disk.
//!
//! A sector has a floor, the newest fill that is known to be durable, and after it the later fills
//! that were sent and may or may not have been stored. A flush raises floors to the fills
//! acknowledged before it was sent, a write with FUA to itself. After a crash a sector must contain
//! its floor or one of the later fills; a fill that was once read there is the floor from then on,
//! since the content of a disk must not change without a write.

use raidlab_random::Stream;
use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// Bytes of a sector: the smallest unit that a crash leaves whole.
pub const SECTOR: usize = 512;

/// The fill that is all zeros.
pub const ZEROS: u64 = 0;

/// Returns the bytes of a sector: its own number, the fill's, and noise derived from both, so that
/// a sector shows which fill it has and where it belongs.
pub fn content(sector: u64, fill: u64) -> [u8; SECTOR] {
    let mut bytes = [0; SECTOR];
    if fill == ZEROS {
        return bytes;
    }
    let mut noise = Stream::new(sector.rotate_left(32) ^ fill);
    let words = [sector, fill].into_iter();
    let words = words.chain(std::iter::from_fn(|| Some(noise.next_u64())));
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// A fill that may have been stored.
struct Later {
    fill: u64,
    /// The time when its write was acknowledged; `None` while it is in flight.
    acknowledged: Option<u64>,
}

#[derive(Default)]
struct Sector {
    floor: u64,
    /// The fills after the floor, in the order of sending; only the last may be in flight.
    later: Vec<Later>,
}

/// The result of a look at the whole disk.
#[derive(Default)]
pub struct Findings {
    /// Sectors that could contain any of several fills.
    pub open: u64,
    /// Those of the `open` sectors that contain the newest fill.
    pub newest: u64,
    /// Those of the `open` sectors that contain an older fill than an acknowledged one: allowed, as
    /// no flush followed.
    pub older_than_acknowledged: u64,
}

/// The state of a disk as its only writer knows it.
pub struct Memory {
    sectors: Vec<Sector>,
    /// The sectors with later fills.
    open: BTreeSet<u64>,
    next_fill: u64,
    /// The clock: it counts acknowledgements and flushes sent.
    now: u64,
}

impl Memory {
    /// A disk of `sectors` sectors with unknown contents: all have to be written before
    /// the first look.
    pub fn new(sectors: u64) -> Self {
        Self {
            sectors: (0..sectors).map(|_| Sector::default()).collect(),
            open: BTreeSet::new(),
            next_fill: 1,
            now: 1,
        }
    }

    /// Returns the number of sectors of the disk.
    pub fn len(&self) -> u64 {
        self.sectors.len() as u64
    }

    /// Returns a fill that was never used.
    pub fn new_fill(&mut self) -> u64 {
        self.next_fill += 1;
        self.next_fill - 1
    }

    /// Advances the clock, and returns the time for [`Memory::flushed`].
    pub fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// Records that a write is about to be sent.
    pub fn sent(&mut self, range: Range<u64>, fill: u64) {
        for number in range {
            let acknowledged = None;
            self.sectors[index(number)]
                .later
                .push(Later { fill, acknowledged });
            self.open.insert(number);
        }
    }

    /// Records that a write was acknowledged; `durable` when it had FUA.
    pub fn acknowledged(&mut self, range: Range<u64>, durable: bool) {
        let now = self.tick();
        for number in range {
            let sector = &mut self.sectors[index(number)];
            if let Some(last) = sector.later.last_mut() {
                last.acknowledged = Some(now);
            }
            if durable {
                self.raise(number, now);
            }
        }
    }

    /// Records that a flush that was sent at `sent_at` was acknowledged.
    pub fn flushed(&mut self, sent_at: u64) {
        let open: Vec<u64> = self.open.iter().copied().collect();
        for number in open {
            self.raise(number, sent_at);
        }
    }

    /// Raises a sector's floor to what was acknowledged up to a time.
    fn raise(&mut self, number: u64, until: u64) {
        let sector = &mut self.sectors[index(number)];
        let durable = |later: &Later| later.acknowledged.is_some_and(|at| at <= until);
        if let Some(last) = sector.later.iter().rposition(durable) {
            sector.floor = sector.later[last].fill;
            sector.later.drain(..=last);
        }
        if sector.later.is_empty() {
            self.open.remove(&number);
        }
    }

    /// Compares a piece of the disk that begins at a sector.
    ///
    /// # Errors
    /// When a sector has contents that are not permitted.
    pub fn look(
        &mut self,
        first: u64,
        bytes: &[u8],
        findings: &mut Findings,
    ) -> Result<(), Box<dyn Error>> {
        for (number, found) in (first..).zip(bytes.chunks_exact(SECTOR)) {
            let sector = &mut self.sectors[index(number)];
            let holds = |later: &Later| content(number, later.fill) == found;
            let place = sector.later.iter().rposition(holds);
            if place.is_none() && content(number, sector.floor) != found {
                return Err(wrong(number, sector, found).into());
            }
            if !sector.later.is_empty() {
                let acknowledged = sector.later.iter().rposition(|l| l.acknowledged.is_some());
                findings.open += 1;
                findings.newest += u64::from(place == Some(sector.later.len() - 1));
                findings.older_than_acknowledged += u64::from(place < acknowledged);
            }
            if let Some(place) = place {
                sector.floor = sector.later[place].fill;
            }
            sector.later.clear();
            self.open.remove(&number);
        }
        Ok(())
    }

    /// Writes the memory to a file, as numbers of eight bytes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        let mut words = vec![self.next_fill, self.len()];
        for sector in &self.sectors {
            words.extend([sector.floor, sector.later.len() as u64]);
            for later in &sector.later {
                words.extend([later.fill, u64::from(later.acknowledged.is_some())]);
            }
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        fs::write(path, bytes)
    }

    /// Reads a memory that [`Memory::save`] wrote.
    ///
    /// # Errors
    /// When it cannot be read or ends early.
    pub fn load(path: &Path) -> Result<Self, Box<dyn Error>> {
        let bytes = fs::read(path)?;
        let mut words = bytes
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
        let mut next = || {
            words
                .next()
                .ok_or("the file of what was written ends early")
        };
        let next_fill = next()?;
        let mut memory = Self::new(next()?);
        memory.next_fill = next_fill;
        for number in 0..memory.len() {
            memory.sectors[index(number)].floor = next()?;
            for _ in 0..next()? {
                let (fill, acknowledged) = (next()?, next()? != 0);
                let acknowledged = acknowledged.then_some(memory.now);
                let later = Later { fill, acknowledged };
                memory.sectors[index(number)].later.push(later);
                memory.open.insert(number);
            }
        }
        Ok(memory)
    }
}

/// Returns a sector's index; every disk here is small enough for it.
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Describes the fault of a sector.
fn wrong(number: u64, sector: &Sector, found: &[u8]) -> String {
    let word = |at: usize| u64::from_le_bytes(found[at..at + 8].try_into().unwrap_or_default());
    let (of_sector, fill) = (word(0), word(8));
    let found = if found.iter().all(|byte| *byte == 0) {
        "zeros".to_owned()
    } else if content(of_sector, fill) == found {
        format!("fill {fill} of sector {of_sector}")
    } else {
        format!("garbage that begins with {of_sector:#x} {fill:#x}")
    };
    let later = sector.later.iter().map(|later| {
        let acknowledged = later.acknowledged.map_or("in flight", |_| "acknowledged");
        format!(", {} ({acknowledged})", later.fill)
    });
    let later: String = later.collect();
    format!(
        "sector {number} holds {found}; it may hold {} (durable){later}",
        sector.floor
    )
}
