//! What the host says to a disk, and what the disk answers.

use raidlab_units::Sectors;

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommandKind {
    /// Data from the disk.
    Read,
    /// Data into the disk: complete when in the write cache.
    Write,
    /// Data into the disk: complete when on the medium.
    WriteThrough,
    /// Blocks that need not be kept; only for disks that take discards.
    Discard,
    /// Complete when everything acknowledged before it is on the medium.
    Flush,
}

/// A command to a disk, in its own 512-byte sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Chosen by the host, unique among its commands in flight.
    pub tag: u64,
    /// Whether it reads, writes, discards or flushes.
    pub kind: CommandKind,
    /// First sector; ignored for a flush.
    pub start: Sectors,
    /// Number of sectors, at least 1; ignored for a flush.
    pub count: Sectors,
}

impl Command {
    /// The sector after the last.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.0 + self.count.0
    }
}

/// A command is done. Data errors belong to the fault layer, not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The tag of the command that is done, as the host chose it.
    pub tag: u64,
}
