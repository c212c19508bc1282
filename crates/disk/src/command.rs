//! Commands from the host to a disk, and their completions.

use raidlab_units::Sectors;

/// The operation of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommandKind {
    /// The command reads data from the disk.
    Read,
    /// The command writes data: complete when they are in the write cache.
    Write,
    /// The command writes data: complete when they are on the medium.
    WriteThrough,
    /// The command discards blocks that need not be kept; only for disks that take discards.
    Discard,
    /// The command flushes: complete when everything acknowledged before it is on the medium.
    Flush,
}

/// A command to a disk, in its own 512-byte sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// The tag, chosen by the host, unique among its commands in flight.
    pub tag: u64,
    /// The operation: read, write, discard or flush.
    pub kind: CommandKind,
    /// The first sector; ignored for a flush.
    pub start: Sectors,
    /// The number of sectors, at least 1; ignored for a flush.
    pub count: Sectors,
}

impl Command {
    /// The sector after the last.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.0 + self.count.0
    }
}

/// The completion of a command. Data errors belong to the fault layer, not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The tag of the completed command, as the host chose it.
    pub tag: u64,
}
