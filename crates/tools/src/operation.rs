//! What a number is about.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// One kind of operation that a tool times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Bytes read, in the job's own pattern.
    Read,
    /// Bytes written, in the job's own pattern.
    Write,
    /// Blocks given back.
    Trim,
    /// fio with `unified_rw_reporting=1` and iozone `-i 8`: reads and writes
    /// together.
    Mixed,
    /// fio: flushes that the job asked for.
    Sync,
    /// bonnie++: bytes out one by one (`putc`).
    WriteCharacter,
    /// bonnie++: bytes in one by one (`getc`).
    ReadCharacter,
    /// bonnie++: each block read, changed and written back; iozone: a file
    /// written a second time.
    Rewrite,
    /// bonnie++: random seeks of several processes, each with a read and now
    /// and then a write.
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
    /// iozone: a file read a second time.
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
    /// iozone: `pwrite`.
    Pwrite,
    /// iozone: `pwrite` a second time.
    Repwrite,
    /// iozone: `pread`.
    Pread,
    /// iozone: `pread` a second time.
    Repread,
}

impl Operation {
    /// Every one with its name, in the order of tables.
    const NAMES: [(Self, &'static str); 29] = [
        (Self::Read, "read"),
        (Self::Write, "write"),
        (Self::Trim, "trim"),
        (Self::Mixed, "mixed"),
        (Self::Sync, "sync"),
        (Self::WriteCharacter, "write-character"),
        (Self::ReadCharacter, "read-character"),
        (Self::Rewrite, "rewrite"),
        (Self::Seek, "seek"),
        (Self::CreateSequential, "create-sequential"),
        (Self::StatSequential, "stat-sequential"),
        (Self::DeleteSequential, "delete-sequential"),
        (Self::CreateRandom, "create-random"),
        (Self::StatRandom, "stat-random"),
        (Self::DeleteRandom, "delete-random"),
        (Self::Reread, "reread"),
        (Self::RandomRead, "random-read"),
        (Self::RandomWrite, "random-write"),
        (Self::BackwardRead, "backward-read"),
        (Self::RecordRewrite, "record-rewrite"),
        (Self::StrideRead, "stride-read"),
        (Self::Fwrite, "fwrite"),
        (Self::Frewrite, "frewrite"),
        (Self::Fread, "fread"),
        (Self::Freread, "freread"),
        (Self::Pwrite, "pwrite"),
        (Self::Repwrite, "repwrite"),
        (Self::Pread, "pread"),
        (Self::Repread, "repread"),
    ];

    /// Every one, in the order of tables.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.into_iter().map(|(operation, _)| operation)
    }

    /// Its name in kebab-case.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(operation, _)| *operation == self)
            .map_or("", |(_, name)| name)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// No operation has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no operation")]
pub struct UnknownOperation {
    /// As given.
    pub name: String,
}

impl FromStr for Operation {
    type Err = UnknownOperation;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(operation, _)| *operation)
            .ok_or_else(|| UnknownOperation {
                name: name.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::Operation;

    #[test]
    fn every_name_is_read_back_and_is_serdes() {
        for operation in Operation::all() {
            assert_eq!(operation.to_string().parse(), Ok(operation));
            let json = serde_json::to_value(operation).expect("a plain name");
            assert_eq!(json, operation.name());
        }
        assert_eq!(
            "sekk"
                .parse::<Operation>()
                .expect_err("no name")
                .to_string(),
            "`sekk` is no operation"
        );
    }
}
