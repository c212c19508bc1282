//! The pattern of a job's requests, and the engine that submits them.

/// The order of a job's requests (fio's `rw`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Pattern {
    /// `read`: sequential reads.
    #[default]
    Read,
    /// `write`: sequential writes.
    Write,
    /// `trim`: sequential discards.
    Trim,
    /// `randread`: reads at random offsets.
    RandRead,
    /// `randwrite`: writes at random offsets.
    RandWrite,
    /// `randtrim`: discards at random offsets.
    RandTrim,
    /// `rw`, `readwrite`: sequential reads mixed with sequential writes, each
    /// direction at its own position.
    ReadWrite,
    /// `randrw`: reads and writes at random offsets.
    RandRw,
    /// `trimwrite`: each block is discarded and then written, in sequence.
    TrimWrite,
    /// `randtrimwrite`: each block is discarded and then written, at random offsets.
    RandTrimWrite,
}

impl Pattern {
    /// All patterns with fio's words for them.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::Read, "read"),
        (Self::Write, "write"),
        (Self::Trim, "trim"),
        (Self::RandRead, "randread"),
        (Self::RandWrite, "randwrite"),
        (Self::RandTrim, "randtrim"),
        (Self::ReadWrite, "readwrite"),
        (Self::RandRw, "randrw"),
        (Self::TrimWrite, "trimwrite"),
        (Self::RandTrimWrite, "randtrimwrite"),
    ];

    /// Whether offsets are drawn.
    #[must_use]
    pub const fn is_random(self) -> bool {
        matches!(
            self,
            Self::RandRead | Self::RandWrite | Self::RandTrim | Self::RandRw | Self::RandTrimWrite
        )
    }

    /// Whether the job reads.
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(
            self,
            Self::Read | Self::RandRead | Self::ReadWrite | Self::RandRw
        )
    }

    /// Whether the job writes.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(
            self,
            Self::Write | Self::RandWrite | Self::ReadWrite | Self::RandRw
        ) || self.trims_and_writes()
    }

    /// Whether the job discards.
    #[must_use]
    pub const fn trims(self) -> bool {
        matches!(self, Self::Trim | Self::RandTrim) || self.trims_and_writes()
    }

    /// Whether each block is discarded and then written.
    #[must_use]
    pub const fn trims_and_writes(self) -> bool {
        matches!(self, Self::TrimWrite | Self::RandTrimWrite)
    }

    /// Whether the direction is drawn for each request.
    #[must_use]
    pub const fn is_mixed(self) -> bool {
        self.reads() && self.writes()
    }

    /// Whether the job reads, writes and discards.
    #[must_use]
    pub const fn directions(self) -> [bool; 3] {
        [self.reads(), self.writes(), self.trims()]
    }

    /// fio's word for the pattern.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(pattern, _)| *pattern == self);
        found.map_or("", |(_, name)| name)
    }
}

/// The way in which a job submits requests to the kernel, which decides how many can wait at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Engine {
    /// Asynchronous (`libaio`, `io_uring`, `posixaio`): each clone keeps up to
    /// `io_depth` requests in flight under one clock.
    Libaio,
    /// Synchronous (`sync`, `psync`, `vsync`, `pvsync`, `pvsync2`): each clone
    /// has one request in flight; fio ignores `iodepth`. `psync` is fio's
    /// default engine on Unix.
    #[default]
    Sync,
    /// `null`: each request is answered at once without a device, one at a time per clone, so that
    /// the host is measured.
    Null,
}
