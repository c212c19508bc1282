//! What a tool did to the subject.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// One kind of operation of a tool. Reads and writes are measured apart, also
/// where one job mixes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Bytes from the subject, in the job's own pattern.
    Read,
    /// Bytes into the subject, in the job's own pattern.
    Write,
    /// Blocks given back to the subject.
    Trim,
    /// bonnie++: bytes out one by one (`putc`).
    WriteCharacter,
    /// bonnie++: bytes in one by one (`getc`).
    ReadCharacter,
    /// bonnie++: read, change and write back each block; iozone: write a file
    /// a second time.
    Rewrite,
    /// bonnie++: random seeks of several processes, each with a read and
    /// sometimes a write; per second.
    Seek,
    /// bonnie++: files created in order.
    CreateSequential,
    /// bonnie++: files looked at in order.
    StatSequential,
    /// bonnie++: files deleted in order.
    DeleteSequential,
    /// bonnie++: files created in random order.
    CreateRandom,
    /// bonnie++: files looked at in random order.
    StatRandom,
    /// bonnie++: files deleted in random order.
    DeleteRandom,
    /// iozone: read a file a second time.
    Reread,
    /// iozone: records read in random order.
    RandomRead,
    /// iozone: records written in random order.
    RandomWrite,
    /// iozone: records read from the end to the start.
    BackwardRead,
    /// iozone: one record written again and again.
    RecordRewrite,
    /// iozone: every n-th record read.
    StrideRead,
    /// iozone: `fwrite`.
    Fwrite,
    /// iozone: `fwrite` a second time.
    Frewrite,
    /// iozone: `fread`.
    Fread,
    /// iozone: `fread` a second time.
    Freread,
}

impl Operation {
    /// Every one, in the order of tables.
    pub const ALL: [Self; 23] = [
        Self::Read,
        Self::Write,
        Self::Trim,
        Self::WriteCharacter,
        Self::ReadCharacter,
        Self::Rewrite,
        Self::Seek,
        Self::CreateSequential,
        Self::StatSequential,
        Self::DeleteSequential,
        Self::CreateRandom,
        Self::StatRandom,
        Self::DeleteRandom,
        Self::Reread,
        Self::RandomRead,
        Self::RandomWrite,
        Self::BackwardRead,
        Self::RecordRewrite,
        Self::StrideRead,
        Self::Fwrite,
        Self::Frewrite,
        Self::Fread,
        Self::Freread,
    ];

    /// Its name in tables, exports and files: `read`, `write-character`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::WriteCharacter => "write-character",
            Self::ReadCharacter => "read-character",
            Self::Rewrite => "rewrite",
            Self::Seek => "seek",
            Self::CreateSequential => "create-sequential",
            Self::StatSequential => "stat-sequential",
            Self::DeleteSequential => "delete-sequential",
            Self::CreateRandom => "create-random",
            Self::StatRandom => "stat-random",
            Self::DeleteRandom => "delete-random",
            Self::Reread => "reread",
            Self::RandomRead => "random-read",
            Self::RandomWrite => "random-write",
            Self::BackwardRead => "backward-read",
            Self::RecordRewrite => "record-rewrite",
            Self::StrideRead => "stride-read",
            Self::Fwrite => "fwrite",
            Self::Frewrite => "frewrite",
            Self::Fread => "fread",
            Self::Freread => "freread",
        }
    }

    /// Whether bytes come from the subject and none go to it.
    #[must_use]
    pub const fn only_reads(self) -> bool {
        matches!(
            self,
            Self::Read
                | Self::ReadCharacter
                | Self::Reread
                | Self::RandomRead
                | Self::BackwardRead
                | Self::StrideRead
                | Self::Fread
                | Self::Freread
        )
    }

    /// Whether bytes go to the subject and none come from it.
    #[must_use]
    pub const fn only_writes(self) -> bool {
        matches!(
            self,
            Self::Write
                | Self::WriteCharacter
                | Self::RandomWrite
                | Self::RecordRewrite
                | Self::Fwrite
                | Self::Frewrite
        )
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word is no operation's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no operation")]
pub struct UnknownOperation(pub String);

impl FromStr for Operation {
    type Err = UnknownOperation;

    fn from_str(name: &str) -> Result<Self, UnknownOperation> {
        let found = Self::ALL.into_iter().find(|op| op.name() == name);
        found.ok_or_else(|| UnknownOperation(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lead_back() {
        for op in Operation::ALL {
            assert_eq!(op.name().parse(), Ok(op));
            let json = serde_json::to_string(&op).unwrap();
            assert_eq!(json, format!("\"{op}\""));
        }
        assert!("append".parse::<Operation>().is_err());
    }
}
