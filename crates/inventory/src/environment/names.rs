//! The names of all facts, from the table in `names.txt`.

use std::sync::LazyLock;

/// What is known of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The name; `<device>` stands for a kernel name such as `sdb`.
    pub name: &'static str,
    /// The value's unit; empty for text and counts.
    pub unit: &'static str,
    /// Whether a run may not be carried on once it has changed.
    pub stable: bool,
}

/// All names, in the order in which facts are told.
pub static NAMES: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let lines = include_str!("names.txt").lines();
    lines.filter_map(line).collect()
});

fn line(line: &'static str) -> Option<Known> {
    let columns = line.split("  ").map(str::trim);
    let mut columns = columns.filter(|column| !column.is_empty());
    let stable = match columns.next()? {
        "stable" => true,
        "passing" => false,
        _ => return None,
    };
    let (name, unit) = (columns.next()?, columns.next()?);
    Some(Known {
        name,
        unit: if unit == "-" { "" } else { unit },
        stable,
    })
}

/// The entry for a fact's name; a device's own name stands where the entry has
/// `<device>`.
#[must_use]
pub fn known(name: &str) -> Option<&'static Known> {
    NAMES
        .iter()
        .find(|known| match known.name.strip_prefix("disk.<device>.") {
            Some(field) => name
                .strip_prefix("disk.")
                .and_then(|rest| rest.strip_suffix(field))
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|device| !device.is_empty() && !device.contains('.')),
            None => known.name == name,
        })
}
