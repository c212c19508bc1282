//! The superblock of a member's write log.
//!
//! The log lies where md keeps nothing: between the end of md's own metadata (superblock, bitmap,
//! bad-block log) and the member's data. md neither knows nor spares it, and writes to the array
//! without it. So its superblock names the checksums of the last two md superblocks that were
//! written to the member with this log in force. It is written before each of them; whatever the
//! moment of a crash, the md superblock that is found has one of the two, and if it has another
//! one, another system has written since, and the log is void.
//!
//! The area begins with two blocks of 4 KiB, which are written in turn: if the power is cut while
//! one is written, the other is intact, and it names the md superblock on the member, because that
//! is written only afterwards.
//!
//! *Two blocks in force.* Between a block and the md superblock that it announces, both blocks name
//! the md superblock on the member: the older one as the last one written, the newer one as the one
//! before. They may be of two sessions, if the newer one is the first of a run. All members get
//! their blocks before the first of them gets its md superblock, and all of these are written
//! before the run's first record. So if a crash comes in between, the run has recorded nothing, the
//! content of the earlier log was replayed before (and may be again), and a session that every
//! member has is right: the earlier one while no md superblock was written, the newer one once all
//! blocks were. The block of the session that was chosen is never overwritten before the other one:
//! with the next crash it may be all that the members have in common.
//!
//! *Members that stay away.* The writes that a log completes depend on whose records are there. A
//! member that was in service and is away while the log is replayed may come back before any md
//! superblock calls it failed; it has missed the replay then, and with its records, or for lack of
//! them, another choice would be made. So before the first write of a replay, blocks of the same
//! session name the members that are away, until the md superblocks do. They never count as
//! current, whatever their md superblocks say.
//!
//! One block, little-endian:
//!
//! | byte | size | what |
//! |---|---|---|
//! | 0 | 8 | `rlablog1` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | 1: the part above the sector of byte 56 is what the first resync has not reached (see `assembly`); 0: it is not, or that is unknown |
//! | 16 | 16 | the array's UUID |
//! | 32 | 16 | the member's UUID |
//! | 48 | 8 | session: 0 when the log is empty |
//! | 56 | 8 | the array is in sync below this sector, as md's `resync_offset`, not counting writes that the log completes |
//! | 64 | 4 | checksum of the md superblock written last or about to be written |
//! | 68 | 4 | checksum of the one before |
//! | 72 | 8 | first sector of the records, on the member |
//! | 80 | 8 | sectors of the records |
//! | 88 | 8 | how many blocks were written before; even ones are the first block |
//! | 96 | 240 | device numbers of members that were away when the log was replayed, one bit each, the lowest first |
//! | 4092 | 4 | CRC-32C of all before |
use raidlab_metadata::{MemberMetadata, Superblock, Uuid, superblock_checksum};
use raidlab_units::{Sectors, Span};

/// Sectors of the log's superblock, both blocks.
pub const LOG_SUPERBLOCK_SECTORS: Sectors = Sectors(16);

const BYTES: usize = 4096;
const SEAL: usize = BYTES - 4;
const MAGIC: [u8; 8] = *b"rlablog1";
const VERSION: u32 = 1;
const ABSENT_AT: usize = 96;

/// The smallest area for a log, in sectors.
pub(super) const MINIMUM_AREA: u64 = raidlab_metadata::create::LEAST_LOG_AREA.0;

/// Returns the place for a log on a member; `None` where there is no gap that is large enough.
#[must_use]
pub fn log_area(metadata: &MemberMetadata) -> Option<Span> {
    let area = &metadata.log_area;
    let count = area.end.0.checked_sub(area.start.0)?;
    (count >= MINIMUM_AREA).then_some(Span::between(area.start, area.end))
}

/// Returns the checksum that a superblock has on the member; `None` for version 0.90, which has no
/// log beside it.
pub(super) fn checksum(superblock: &Superblock) -> Option<u32> {
    superblock_checksum(&superblock.encode().ok()?)
}

/// A set of device numbers, as many as a superblock of version 1 can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers([u64; 30]);

impl Numbers {
    /// Returns the set with another number; one beyond the highest is ignored.
    #[must_use]
    pub fn with(mut self, number: u32) -> Self {
        let word = usize::try_from(number / 64).unwrap_or(usize::MAX);
        if let Some(word) = self.0.get_mut(word) {
            *word |= 1 << (number % 64);
        }
        self
    }

    /// Whether a number is in the set.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        let word = usize::try_from(number / 64).unwrap_or(usize::MAX);
        self.0
            .get(word)
            .is_some_and(|word| word & 1 << (number % 64) != 0)
    }

    /// Whether the set holds no number.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the numbers of another set.
    pub(super) fn join(&mut self, other: &Self) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own |= other;
        }
    }
}

/// A log superblock as found: its intact blocks, and whether a block could not be read. At least
/// one of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSuperblock {
    blocks: [Option<LogBlock>; 2],
    is_unreadable: bool,
}

/// One of the two blocks of a log superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBlock {
    /// The array that the log belongs to.
    pub array_uuid: Uuid,
    /// The member that the log lies on.
    pub device_uuid: Uuid,
    /// The state of the array by this block.
    pub says: LogSays,
    /// The checksums of the md superblock written last (or about to be), and of the one before.
    pub checksums: [u32; 2],
    /// The place of the records on the member.
    pub ring: Span,
    /// The number of log superblocks that the member got before this one; whether it is odd tells
    /// which of the two blocks this is.
    pub sequence: u64,
    /// Members that were away when the log was replayed.
    pub absent: Numbers,
}

/// The state of the array by a log superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSays {
    /// The run of the array that the records are of; 0: the log is empty.
    pub session: u64,
    /// The sector below which the array was in sync, apart from writes that were under way.
    pub in_sync_below: Sectors,
    /// Whether the part above it is what the array's first resync has not reached: unwritten
    /// sectors, and complete writes.
    pub first_resync: bool,
}

impl LogSays {
    /// Whether nothing above `in_sync_below` was ever torn, as far as the array was not in sync.
    pub(super) fn is_never_torn(&self) -> bool {
        self.first_resync || self.in_sync_below == Superblock::IN_SYNC
    }
}

impl LogSuperblock {
    /// The log superblock of a member with these metadata; `None` if it has no room for a log,
    /// or neither block is intact. `read` fills bytes from a sector of the member on, and
    /// returns whether it could. Each block is read by itself: one that cannot be read does not
    /// hide the other.
    pub fn read(
        metadata: &MemberMetadata,
        mut read: impl FnMut(Sectors, &mut [u8]) -> bool,
    ) -> Option<Self> {
        let area = log_area(metadata)?;
        let mut block = |start| {
            let mut bytes = [0; BYTES];
            read(start, &mut bytes).then_some(bytes)
        };
        let second = area.start + Sectors(LOG_SUPERBLOCK_SECTORS.0 / 2);
        let blocks = [block(area.start), block(second)];
        let mut found = Self::decode(
            blocks
                .each_ref()
                .map(|block| block.as_ref().map(|it| &it[..])),
        )?;
        // Whatever a block says, nothing but the area is read and held in memory.
        let first = area.start + LOG_SUPERBLOCK_SECTORS;
        let inside = |block: &LogBlock| first <= block.ring.start && block.ring.end <= area.end;
        for block in &mut found.blocks {
            *block = block.filter(inside);
        }
        found.is_any().then_some(found)
    }

    /// Decodes the blocks' bytes; `None` for one that could not be read.
    pub(super) fn decode(blocks: [Option<&[u8]>; 2]) -> Option<Self> {
        let found = Self {
            blocks: blocks.map(|block| block.and_then(LogBlock::decode)),
            is_unreadable: blocks.contains(&None),
        };
        found.is_any().then_some(found)
    }

    /// Whether there is a log, or one may be there.
    fn is_any(&self) -> bool {
        self.is_unreadable || self.blocks.iter().any(Option::is_some)
    }

    /// Whether a block could not be read, which may be the one that counts.
    pub(super) fn is_unreadable(&self) -> bool {
        self.is_unreadable
    }

    /// Returns the block that counts for a member with this md superblock: the newest that was
    /// written for it, else the newest that announces its successor, else the newest.
    #[must_use]
    pub fn of(&self, superblock: &Superblock) -> Option<LogBlock> {
        let blocks = self.blocks.iter().copied().flatten();
        blocks.max_by_key(|block| block.rank(superblock))
    }

    /// Returns the blocks in force with this md superblock, the one that counts first.
    pub(super) fn in_force(&self, superblock: &Superblock) -> Vec<LogBlock> {
        let blocks = self.blocks.iter().copied().flatten();
        let mut blocks: Vec<_> = blocks.filter(|it| it.covers(superblock)).collect();
        blocks.sort_by_key(|block| std::cmp::Reverse(block.rank(superblock)));
        blocks
    }
}

impl From<LogBlock> for LogSuperblock {
    fn from(block: LogBlock) -> Self {
        Self {
            blocks: [Some(block), None],
            is_unreadable: false,
        }
    }
}

impl LogBlock {
    /// Returns the bytes of the block.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(16, &self.array_uuid.0);
        put(32, &self.device_uuid.0);
        put(12, &u32::from(self.says.first_resync).to_le_bytes());
        put(48, &self.says.session.to_le_bytes());
        put(56, &self.says.in_sync_below.0.to_le_bytes());
        put(64, &self.checksums[0].to_le_bytes());
        put(68, &self.checksums[1].to_le_bytes());
        put(72, &self.ring.start.0.to_le_bytes());
        put(80, &(self.ring.end.0 - self.ring.start.0).to_le_bytes());
        put(88, &self.sequence.to_le_bytes());
        for (at, word) in (ABSENT_AT..).step_by(8).zip(self.absent.0) {
            put(at, &word.to_le_bytes());
        }
        let seal = crc32c::crc32c(&bytes[..SEAL]);
        bytes[SEAL..].copy_from_slice(&seal.to_le_bytes());
        bytes
    }

    /// Returns the place of the block in sectors from the start of the area.
    #[must_use]
    pub const fn place(&self) -> Sectors {
        Sectors(self.sequence % 2 * BYTES as u64 / 512)
    }

    /// Decodes a block; `None` if it is not a log superblock, damaged, or of a later version.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..BYTES)?;
        let intact = bytes.starts_with(&MAGIC)
            && crc32c::crc32c(&bytes[..SEAL]) == word(bytes, SEAL)
            && word(bytes, 8) == VERSION;
        if !intact {
            return None;
        }
        let start = Sectors(long(bytes, 72));
        Some(Self {
            array_uuid: uuid(bytes, 16),
            device_uuid: uuid(bytes, 32),
            says: LogSays {
                session: long(bytes, 48),
                in_sync_below: Sectors(long(bytes, 56)),
                first_resync: word(bytes, 12) == 1,
            },
            checksums: [word(bytes, 64), word(bytes, 68)],
            ring: Span::between(start, Sectors(start.0.checked_add(long(bytes, 80))?)),
            sequence: long(bytes, 88),
            absent: Numbers(std::array::from_fn(|word| {
                long(bytes, ABSENT_AT + 8 * word)
            })),
        })
    }

    /// Whether the log was in force when this md superblock was written to this
    /// member, or is in force from its successor on.
    #[must_use]
    pub fn covers(&self, superblock: &Superblock) -> bool {
        self.rank(superblock).0 > 0
    }

    /// Returns how well the block fits a member's md superblock (written for it, for its successor,
    /// or not for it at all), and its age.
    fn rank(&self, superblock: &Superblock) -> (u8, u64) {
        let is_its_own =
            self.array_uuid == superblock.array_uuid && self.device_uuid == superblock.device_uuid;
        let sum = checksum(superblock).filter(|_| is_its_own);
        let place = sum.and_then(|sum| self.checksums.iter().position(|it| *it == sum));
        let rank = match place {
            Some(0) => 2,
            Some(_) => 1,
            None => 0,
        };
        (rank, self.sequence)
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    let mut long = [0; 8];
    long.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(long)
}

fn uuid(bytes: &[u8], at: usize) -> Uuid {
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&bytes[at..at + 16]);
    Uuid(uuid)
}
