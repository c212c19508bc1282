//! The names of all facts, from the table in `names.txt`.

use raidlab_units::table;
use std::sync::LazyLock;

/// The properties of a fact's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The name; `<device>` stands for a kernel name such as `sdb`.
    pub name: &'static str,
    /// The value's unit; empty for text and counts.
    pub unit: &'static str,
    /// Whether a run may not be resumed once the fact has changed.
    pub stable: bool,
    /// The file with its value on Linux; empty where it is read in another way.
    pub file: &'static str,
    /// The variable of `sysctl` with its value on FreeBSD; empty where it is read in another way.
    pub variable: &'static str,
}

/// All names, in the order in which facts are reported.
pub static NAMES: LazyLock<Vec<Known>> = LazyLock::new(|| {
    table(include_str!("names.txt"), |row: [&str; 6]| {
        let [stable, name, unit, file, variable, _] = row.map(|w| if w == "-" { "" } else { w });
        let stable = match stable {
            "stable" => true,
            "passing" => false,
            _ => return None,
        };
        Some(Known {
            name,
            unit,
            stable,
            file,
            variable,
        })
    })
});

/// Finds the entry for a fact's name; it may have a device's own name where the
/// entry has `<device>`.
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
