//! Titles and classes for jobs that have none: from what a tool says it did.

use crate::result::ToolResult;

/// What a group of jobs did, in words and in the terms of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Title {
    /// The group in words, for headings and tables: `random read 4 KiB, queue depth 32`.
    pub title: String,
    /// The class of the job, by which rows are grouped: `sequential-read`.
    pub class: String,
    /// How many I/Os are in flight at most, over all jobs of the group.
    pub queue_depth: u32,
    /// How many jobs of the group run at the same time.
    pub streams: u32,
}

impl Title {
    /// Of a job that does one thing after the other.
    #[must_use]
    pub fn plain(title: &str, class: &str) -> Self {
        Self {
            title: title.to_owned(),
            class: class.to_owned(),
            queue_depth: 1,
            streams: 1,
        }
    }
}

/// The words and the largest file of a result; nothing where it names none.
pub(crate) fn sized(result: &ToolResult, words: &str) -> String {
    let sizes = result.parts.iter().filter_map(|part| part.file_size_bytes);
    sizes
        .max()
        .map_or_else(String::new, |bytes| format!("{words}{}", size(bytes)))
}

/// `4 KiB`: whole numbers of the largest unit that fits.
pub(crate) fn size(bytes: u64) -> String {
    let units = [
        (1_u64 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    let fits = units
        .iter()
        .find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    fits.map_or_else(
        || format!("{bytes} B"),
        |(unit, name)| format!("{} {name}", bytes / unit),
    )
}
