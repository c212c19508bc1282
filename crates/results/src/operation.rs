//! Operations: what a tool did to the subject, and what the subject did by itself.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The direction in which an operation moves bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moves {
    /// Bytes move from the subject, and none to it.
    In,
    /// Bytes move to the subject, and none from it.
    Out,
    /// Bytes move both ways, or not at all.
    Other,
}

/// Defines the operations with their names and directions, in the order of tables.
macro_rules! operations {
    ($($(#[$attribute:meta])* $operation:ident, $name:literal, $moves:ident;)*) => {
        /// One kind of operation that a tool times, or that an array does in the
        /// background. Reads and writes are measured apart, also where one job mixes
        /// them, unless the tool itself counts them together.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize,
            Deserialize,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum Operation {
            $($(#[$attribute])* $operation,)*
        }

        impl Operation {
            /// All operations, in the order of tables.
            pub const ALL: &'static [Self] = &[$(Self::$operation),*];

            /// The operation's name in tables, exports and files: `read`, `write-character`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$operation => $name,)*
                }
            }

            const fn moves(self) -> Moves {
                match self {
                    $(Self::$operation => Moves::$moves,)*
                }
            }
        }
    };
}

operations! {
    /// Bytes from the subject, in the job's own pattern.
    #[default]
    Read, "read", In;
    /// Bytes into the subject, in the job's own pattern.
    Write, "write", Out;
    /// Blocks given back to the subject.
    Trim, "trim", Other;
    /// fio with `unified_rw_reporting=1` and iozone `-i 8`: reads and writes
    /// counted together.
    Mixed, "mixed", Other;
    /// fio: flushes that the job asked for; per second of the whole job.
    Sync, "sync", Other;
    /// bonnie++: bytes out one by one (`putc`).
    WriteCharacter, "write-character", Out;
    /// bonnie++: bytes in one by one (`getc`).
    ReadCharacter, "read-character", In;
    /// bonnie++: read, change and write back each block; iozone: write a file
    /// a second time.
    Rewrite, "rewrite", Other;
    /// bonnie++: random seeks of several processes, each with a read and
    /// sometimes a write; per second.
    Seek, "seek", Other;
    /// bonnie++: files created in order.
    CreateSequential, "create-sequential", Other;
    /// bonnie++: files looked at in order.
    StatSequential, "stat-sequential", Other;
    /// bonnie++: files deleted in order.
    DeleteSequential, "delete-sequential", Other;
    /// bonnie++: files created in random order.
    CreateRandom, "create-random", Other;
    /// bonnie++: files looked at in random order.
    StatRandom, "stat-random", Other;
    /// bonnie++: files deleted in random order.
    DeleteRandom, "delete-random", Other;
    /// iozone: read a file a second time.
    Reread, "reread", In;
    /// iozone: records read in random order.
    RandomRead, "random-read", In;
    /// iozone: records written in random order.
    RandomWrite, "random-write", Out;
    /// iozone: records read from the end to the start.
    BackwardRead, "backward-read", In;
    /// iozone: one record written again and again.
    RecordRewrite, "record-rewrite", Out;
    /// iozone: every n-th record read.
    StrideRead, "stride-read", In;
    /// iozone: a file written with `fwrite`.
    Fwrite, "fwrite", Out;
    /// iozone: `fwrite` a second time.
    Frewrite, "frewrite", Out;
    /// iozone: a file read with `fread`.
    Fread, "fread", In;
    /// iozone: `fread` a second time.
    Freread, "freread", In;
    /// iozone: a file written with `pwrite`.
    Pwrite, "pwrite", Out;
    /// iozone: `pwrite` a second time.
    Repwrite, "repwrite", Out;
    /// iozone: a file read with `pread`.
    Pread, "pread", In;
    /// iozone: `pread` a second time.
    Repread, "repread", In;
    /// The array makes its members equal, after its creation or after a crash.
    Resync, "resync", Other;
    /// The array writes a member anew from the others: a rebuild; ZFS: resilver.
    Recovery, "recovery", Other;
    /// The array compares its copies, or data and parity; ZFS, btrfs: scrub.
    Check, "check", Other;
    /// The array changes its layout.
    Reshape, "reshape", Other;
    /// The array lacks a member, from its loss until the last one is rebuilt.
    Degraded, "degraded", Other;
    /// The share of a job's rate that is left while one of these goes on.
    Kept, "kept", Other;
}

impl Operation {
    /// Whether bytes come from the subject and none go to it.
    #[must_use]
    pub const fn only_reads(self) -> bool {
        matches!(self.moves(), Moves::In)
    }

    /// Whether bytes go to the subject and none come from it.
    #[must_use]
    pub const fn only_writes(self) -> bool {
        matches!(self.moves(), Moves::Out)
    }

    /// Whether the operation is of no job: background work of an array, and the share of a rate
    /// that it leaves to jobs.
    #[must_use]
    pub const fn is_background(self) -> bool {
        matches!(
            self,
            Self::Resync
                | Self::Recovery
                | Self::Check
                | Self::Reshape
                | Self::Degraded
                | Self::Kept
        )
    }

    /// Whether the operation handles whole files and moves none of their bytes, as
    /// bonnie++'s `-n` does.
    #[must_use]
    pub const fn handles_files(self) -> bool {
        matches!(
            self,
            Self::CreateSequential
                | Self::StatSequential
                | Self::DeleteSequential
                | Self::CreateRandom
                | Self::StatRandom
                | Self::DeleteRandom
        )
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error of a word that is no operation's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no operation")]
pub struct UnknownOperation(pub String);

impl FromStr for Operation {
    type Err = UnknownOperation;

    fn from_str(name: &str) -> Result<Self, UnknownOperation> {
        let found = Self::ALL.iter().find(|op| op.name() == name);
        found
            .copied()
            .ok_or_else(|| UnknownOperation(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::Operation;

    #[test]
    fn names_are_serdes_and_lead_back() {
        for &op in Operation::ALL {
            assert_eq!(op.name().parse(), Ok(op));
            let json = serde_json::to_string(&op).unwrap();
            assert_eq!(json, format!("\"{op}\""));
            assert!(!(op.only_reads() && op.only_writes()));
        }
        let unknown = "append".parse::<Operation>().unwrap_err();
        assert_eq!(unknown.to_string(), "`append` is no operation");
    }
}
