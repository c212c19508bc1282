//! The columns of a run's tables: a subject with a file system on a host.
//!
//! Fits of a disk model are not separate columns: they make the band of a figure.

use raidlab_store::{Measurement, Scope};
use raidlab_units::distinct;

/// The identity of a column, which its cells have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column<'a> {
    /// The machine; empty for modelled ones.
    pub host: &'a str,
    /// The subject's name, as in its rows.
    pub subject: &'a str,
    /// The file system's label; empty on the raw array.
    pub filesystem: &'a str,
}

impl<'a> Column<'a> {
    /// The column of a measurement.
    pub(crate) fn of(m: &'a Measurement) -> Self {
        Self {
            host: &m.host,
            subject: &m.subject,
            filesystem: &m.filesystem,
        }
    }

    /// The column that a scope names, with empty names for the parts that it leaves open.
    pub(crate) fn of_scope(scope: &'a Scope) -> Self {
        Self {
            host: &scope.host,
            subject: &scope.subject,
            filesystem: &scope.filesystem,
        }
    }

    /// Whether a measurement belongs to the column.
    pub(crate) fn holds(&self, m: &Measurement) -> bool {
        *self == Column::of(m)
    }
}

/// All columns, in order of appearance.
pub(crate) fn columns(measurements: &[Measurement]) -> Vec<Column<'_>> {
    distinct(measurements.iter().map(Column::of))
}

/// The short names of columns: `md/ext4@one`, without the parts that are the same everywhere. A
/// single column is named by its subject.
pub(crate) fn names(columns: &[Column<'_>]) -> Vec<String> {
    let varies = |part: fn(&Column<'_>) -> String| {
        let mut parts = columns.iter().map(part);
        let first = parts.next();
        parts.any(|other| Some(other) != first)
    };
    let hosts = varies(|column| column.host.to_owned());
    let filesystems = varies(|column| column.filesystem.to_owned());
    let subjects = varies(|column| column.subject.to_owned()) || !(hosts || filesystems);
    let name = |column: &Column<'_>| {
        let mut parts = Vec::new();
        if subjects {
            parts.push(column.subject);
        }
        if filesystems {
            parts.push(match column.filesystem {
                "" => "raw",
                label => label,
            });
        }
        let name = parts.join("/");
        match (hosts, name.is_empty()) {
            (false, _) => name,
            (true, true) => column.host.to_owned(),
            (true, false) => format!("{name}@{}", column.host),
        }
    };
    columns.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::{Column, names};

    fn named(columns: &[(&str, &str, &str)]) -> Vec<String> {
        let column = |&(host, subject, filesystem): &(_, _, _)| Column {
            host,
            subject,
            filesystem,
        };
        names(&columns.iter().map(column).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_the_same_everywhere_is_left_out() {
        assert_eq!(named(&[("one", "md", "ext4")]), ["md"]);
        assert_eq!(
            named(&[("one", "md", "ext4"), ("one", "zfs", "ext4")]),
            ["md", "zfs"]
        );
        assert_eq!(
            named(&[("one", "md", ""), ("one", "md", "xfs")]),
            ["raw", "xfs"]
        );
        assert_eq!(
            named(&[("one", "md", ""), ("two", "md", "")]),
            ["one", "two"]
        );
        assert_eq!(
            named(&[("one", "md", "ext4"), ("two", "zfs", "xfs")]),
            ["md/ext4@one", "zfs/xfs@two"]
        );
    }
}
