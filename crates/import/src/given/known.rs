//! The facts that have short names, and the beginnings of names that stand for many.

use raidlab_store::fact;

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `16GiB`, `4k`: bytes.
    Size,
    /// A time such as `60s`, kept as nanoseconds.
    Time,
    /// `80%` or `80`.
    Percent,
    /// A number of 0 or more, kept as it is.
    Number,
    /// `true`, `yes`, `1` or their opposites.
    Switch,
    /// A word as it is.
    Text,
}

impl Kind {
    /// What a value of it looks like.
    pub(super) const fn example(self) -> &'static str {
        match self {
            Self::Size => "a size such as 16GiB",
            Self::Time => "a time such as 60s",
            Self::Percent => "a percentage such as 80%",
            Self::Number => "a number",
            Self::Switch => "yes or no",
            Self::Text => "a word",
        }
    }
}

/// A fact with a short name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) short: &'static str,
    /// The names that it stands for.
    pub(super) names: &'static [&'static str],
    pub(super) kind: Kind,
    /// Its value in an example.
    pub(super) example: &'static str,
    /// What the fact is, in words for help texts.
    pub(super) meaning: &'static str,
}

const fn known(
    short: &'static str,
    names: &'static [&'static str],
    kind: Kind,
    example: &'static str,
    meaning: &'static str,
) -> Known {
    Known {
        short,
        names,
        kind,
        example,
        meaning,
    }
}

/// In the order of help.
pub(super) const KNOWN: [Known; 20] = [
    known(
        "ram",
        &[fact::MEMORY_TOTAL_BYTES],
        Kind::Size,
        "16GiB",
        "main memory",
    ),
    known(
        "direct",
        &["fio.option.direct", fact::IOZONE_DIRECT],
        Kind::Switch,
        "yes",
        "direct I/O",
    ),
    known(
        "size",
        &[fact::JOB_WORKING_SET_BYTES],
        Kind::Size,
        "64GiB",
        "bytes that a job touches",
    ),
    known(
        "runtime",
        &[fact::JOB_ASKED_RUNTIME_NS],
        Kind::Time,
        "60s",
        "how long a job was to run",
    ),
    known(
        "filesystem",
        &[fact::FILESYSTEM_TYPE],
        Kind::Text,
        "ext4",
        "type of the file system; none on a bare device",
    ),
    known(
        "system",
        &[fact::ARRAY_SYSTEM],
        Kind::Text,
        "md",
        "what implements the array",
    ),
    known(
        "level",
        &[fact::ARRAY_LEVEL],
        Kind::Text,
        "raid6",
        "the array's level",
    ),
    known(
        "bitmap",
        &[fact::ARRAY_BITMAP],
        Kind::Text,
        "internal",
        "md's write-intent bitmap",
    ),
    known(
        "record",
        &[fact::ARRAY_RECORD_BYTES],
        Kind::Size,
        "128KiB",
        "recordsize or volblocksize",
    ),
    known(
        "stripe",
        &[fact::ARRAY_STRIPE_BYTES],
        Kind::Size,
        "1MiB",
        "data bytes of a whole stripe",
    ),
    known(
        "sync",
        &[fact::SYNC_ACTIVE_START],
        Kind::Text,
        "none",
        "what was copied in the background: none, resync, recovery, check, scrub",
    ),
    known(
        "health",
        &[fact::ARRAY_HEALTH_START],
        Kind::Text,
        "optimal",
        "optimal, degraded or failed",
    ),
    known(
        "compression",
        &[fact::COMPRESSION],
        Kind::Text,
        "off",
        "off or an algorithm",
    ),
    known(
        "compressratio",
        &[fact::COMPRESS_RATIO],
        Kind::Number,
        "1.0",
        "logical over stored bytes",
    ),
    known(
        "dedup",
        &[fact::DEDUPLICATION],
        Kind::Text,
        "off",
        "off or an algorithm",
    ),
    known(
        "data",
        &[fact::JOB_DATA_PATTERN],
        Kind::Text,
        "random",
        "what is written: random, zero, repeated",
    ),
    known(
        "written",
        &[fact::WRITTEN_PERCENT],
        Kind::Percent,
        "100%",
        "part of the region that was ever written",
    ),
    known(
        "fill",
        &[fact::FILL_PERCENT],
        Kind::Percent,
        "40%",
        "part of the pool or file system in use",
    ),
    known(
        "zfs",
        &["version.zfs"],
        Kind::Text,
        "2.1.11",
        "version of ZFS",
    ),
    known(
        "cache-dropped",
        &[fact::CACHES_DROPPED],
        Kind::Switch,
        "yes",
        "whether caches were dropped before the job",
    ),
];

/// How names begin that stand for many: of devices, members, options.
pub(super) const FAMILIES: [&str; 15] = [
    "arc.",
    "array.",
    "cpu.",
    "filesystem.",
    "job.",
    "os.",
    "disk.",
    "member.",
    "setting.",
    "version.",
    "option.",
    "fio.option.",
    "dd.operand.",
    "memory.",
    "claim.",
];
