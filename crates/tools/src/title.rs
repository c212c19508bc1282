//! Titles and classes for jobs that have none, made from a tool's output.

use crate::result::ToolResult;

/// The description of a group of jobs, in words and in the terms of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Title {
    /// The group in words, for headings and tables: `random read 4 KiB, queue depth 32`.
    pub title: String,
    /// The class of the job, by which rows are grouped: `sequential-read`.
    pub class: String,
    /// The largest number of I/Os in flight, over all jobs of the group.
    pub queue_depth: u32,
    /// The number of jobs of the group that run at the same time.
    pub streams: u32,
}

impl Title {
    /// The title of a job that does one operation after the other.
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

/// The words with the size of the largest file of a result; the words alone where it has none.
pub(crate) fn sized(result: &ToolResult, words: &str) -> String {
    let sizes = result.parts.iter().filter_map(|part| part.file_size_bytes);
    sizes
        .max()
        .map_or_else(String::new, |bytes| format!("{words}{}", size(bytes)))
}

/// A size in words, `4 KiB`: a whole number of the largest unit that fits.
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
